//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! `EXEC` takes the union of the locks of what was queued and runs it as one transaction of the
//! engine: one record in the log, serializable across threads.

use ladon_engine::{Ahead, Locks};
use ladon_identity::{Context, Denied};
use ladon_kernel::access;
use ladon_kernel::client::session::{Multi, WatchedKey};
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, Handler, LockNeed};
use ladon_kernel::ctx::{Ctx, Data};
use ladon_kernel::long::long_replies::Several;
use ladon_kernel::request::invoke::{self, Caller, Command};
use ladon_kernel::request::mounted;
use ladon_kernel::request::watched;
use ladon_record::KeyHash;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Memory of a watched key besides its name, which is stored twice: the session's entry, and the
/// partition's with its list of watchers.
const WATCHED_KEY_BYTES: usize = 160;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("multi", LockNeed::None, multi).with(Flags::NOT_QUEUED),
    Code::with_locks("exec", LockNeed::Own, exec).with(Flags::NOT_QUEUED.or(Flags::RUNS_QUEUE)),
    Code::with_locks("discard", LockNeed::Own, discard).with(Flags::NOT_QUEUED),
    Code::with_locks("watch", LockNeed::Own, watch).with(Flags::NOT_QUEUED),
    Code::with_locks("unwatch", LockNeed::Own, unwatch),
];

fn multi(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if ctx.session.multi.is_some() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    ctx.session.multi = Some(Box::new(Multi::default()));
    ctx.reply.ok();
    Ok(())
}

fn discard(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if ctx.session.multi.take().is_none() {
        return Err(CommandError::text("ERR DISCARD without MULTI"));
    }
    watched::forget(ctx);
    ctx.reply.ok();
    Ok(())
}

fn watch(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.multi.is_some() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    if ctx.session.watch_flag.is_touched() && !ctx.session.watched.is_empty() {
        // The transaction will fail anyway.
        ctx.reply.ok();
        return Ok(());
    }
    let number = ctx.session.db;
    let flag = Arc::clone(&ctx.session.watch_flag);
    *ctx.session.info.watch_flag.lock() = Some(Arc::clone(&flag));
    for name in &args[1..] {
        let space = match ctx.keyspace().spaces.has_mounts() {
            true => mounted::watch(ctx, name, &flag)?,
            false => None,
        };
        let watched = WatchedKey { db: number, key: name.to_vec(), space };
        if space.is_some() || ctx.session.watched.contains(&watched) {
            note_watched(ctx, watched);
            continue;
        }
        let key = ctx.key(name);
        ctx.on(Locks::One(key.hash), |tx| {
            let db = tx.keyspace().select(number);
            tx.watch(db, key, &flag);
        })?;
        note_watched(ctx, watched);
    }
    ctx.reply.ok();
    Ok(())
}

fn note_watched(ctx: &mut Ctx<'_>, watched: WatchedKey) {
    let bytes = WATCHED_KEY_BYTES + 2 * watched.key.len();
    if ctx.session.watched.insert(watched) {
        ctx.session.watched_bytes += bytes;
    }
}

fn unwatch(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if !ctx.in_exec {
        watched::forget(ctx);
    }
    ctx.reply.ok();
    Ok(())
}

fn exec(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let Some(multi) = ctx.session.multi.take() else {
        return Err(CommandError::text("ERR EXEC without MULTI"));
    };
    if multi.aborted {
        watched::forget(ctx);
        return Err(CommandError::text(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    let Data::Free(scratch) = std::mem::replace(&mut ctx.data, Data::Gone) else {
        unreachable!("EXEC begins its own transaction")
    };
    let wanted = Wanted::by(ctx, &multi);
    let locks = if wanted.all { Locks::All } else { Locks::Keys(&wanted.hashes) };
    let Some(tx) = ctx.node.begin_or_busy(locks, scratch, ctx.now_ms) else {
        return busy(ctx);
    };
    ctx.data = Data::Held(tx);
    if ctx.keyspace().spaces.has_mounts() {
        mounted::lock_for_exec(ctx, &multi).inspect_err(|_| watched::forget(ctx))?;
    }
    if is_outdated(ctx) {
        // The watched keys are forgotten within the same transaction, which holds their locks.
        watched::forget(ctx);
        ctx.reply.null_array();
        return Ok(());
    }
    watched::forget(ctx);
    ctx.in_exec = true;
    if multi.flags.has(Flags::RUNS_SCRIPT) {
        // If a script is stopped, nothing of the transaction stays.
        ctx.make_undoable();
    }
    let position = ctx.reply.position();
    Multi::publish(Some(&multi), &ctx.session.info);
    ctx.reply.array(multi.queued.len());
    let mut replies = Several::default();
    let mut lookahead = ctx.node.keyspace.lookahead();
    for (at, &queued) in multi.queued.iter().enumerate() {
        lookahead.advance(&wanted.first_keys, at);
        let spec = ctx.node.table.spec(queued.id);
        let (Handler::Run(handler) | Handler::RunOrContainer(handler)) = spec.handler else {
            unreachable!("subcommands are resolved before they are queued")
        };
        let args = multi.args(queued);
        let is_hashed = matches!(spec.locks, LockNeed::Keys | LockNeed::KeysUnless(_))
            && spec.keys.is_one(args.len());
        ctx.first_key = is_hashed.then(|| wanted.first_keys[at].hash);
        let started = ctx.local.start(ctx.node, spec, &args);
        let mut command = Command { id: queued.id, spec, handler, args: &args };
        if ctx.tx().mounts().is_some() {
            mounted::redirect(ctx, &mut command);
        }
        if !ctx.session.access.user.is_unlimited() {
            check_rights(ctx, &mut command);
        }
        invoke::call(ctx, command, started, Caller::Exec);
        if ctx.local.abandons_exec {
            return abandoned(ctx, position);
        }
        if let Some(slices) = ctx.deferred.take().and_then(|deferred| deferred.slices) {
            replies.add(&mut ctx.reply, slices);
        }
    }
    ctx.in_exec = false;
    ctx.first_key = None;
    if let Some(rest) = replies.end(&mut ctx.reply) {
        ctx.reply_in_slices(rest);
    }
    Ok(())
}

/// Puts the error in the place of a command that the user may not run any more.
#[cold]
fn check_rights(ctx: &mut Ctx<'_>, command: &mut Command<'_>) {
    if denied(ctx, command.id, command.args).is_some() {
        command.handler = |ctx, args| {
            let id = ctx.node.table.find_with_subcommand(args);
            let denied = id.and_then(|id| Some((id, denied(ctx, id, args)?)));
            let Some((id, denied)) = denied else { return Err(CommandError::Syntax) };
            access::note(ctx.node, ctx.session, Context::Multi, denied, id, args);
            Err(access::changed_since_queued(denied))
        };
    }
}

/// What of a queued command is denied.
fn denied(ctx: &Ctx<'_>, id: CommandId, args: &[&[u8]]) -> Option<Denied> {
    let session = &*ctx.session;
    access::may_run(ctx.node, &session.access.user, session.db, id, args).err()
}

/// Another client's script holds a lock for long. The transaction ends, as it does in Redis.
#[cold]
fn busy(ctx: &mut Ctx<'_>) -> CommandResult {
    let busy = ctx.node.scripts.running.busy().to_string();
    watched::forget_later(ctx);
    Err(CommandError::Other(format!("EXECABORT Transaction discarded because of: {busy}").into()))
}

/// A script was stopped: nothing of the transaction happens.
#[cold]
fn abandoned(ctx: &mut Ctx<'_>, position: usize) -> CommandResult {
    let text = String::from_utf8_lossy(&ctx.reply.take_from(position)).into_owned();
    let reason = text.rsplit("\r\n").find(|line| line.starts_with('-'));
    let reason = reason.map_or("a script was stopped", |line| &line[1..]);
    let reason = reason.strip_prefix("ERR ").unwrap_or(reason);
    ctx.local.abandons_exec = false;
    ctx.in_exec = false;
    ctx.first_key = None;
    ctx.abort();
    Err(CommandError::Other(format!("EXECABORT Transaction discarded because of: {reason}").into()))
}

/// What a transaction needs.
struct Wanted {
    /// Whether all locks are needed.
    all: bool,
    /// Otherwise, the hashes of the keys to lock.
    hashes: Vec<KeyHash>,
    /// The first key of each command, for prefetching; arbitrary if it has none.
    first_keys: Vec<Ahead>,
}

impl Wanted {
    fn by(ctx: &Ctx<'_>, multi: &Multi) -> Wanted {
        let (keyspace, db) = (ctx.keyspace(), ctx.session.db);
        let count = multi.queued.len();
        let mut wanted = Wanted {
            all: false,
            hashes: Vec::with_capacity(count + ctx.session.watched.len()),
            first_keys: Vec::with_capacity(count),
        };
        wanted.hashes.extend(ctx.session.watched.iter().map(|watched| keyspace.hash(&watched.key)));
        for &queued in &multi.queued {
            let spec = ctx.node.table.spec(queued.id);
            let (args, before) = (multi.args(queued), wanted.hashes.len());
            match spec.locks {
                LockNeed::None => {}
                LockNeed::All | LockNeed::Own => wanted.all = true,
                LockNeed::Keys | LockNeed::KeysUnless(_) => {
                    if let LockNeed::KeysUnless(reaches_further) = spec.locks {
                        wanted.all |= reaches_further(&args);
                    }
                    let positions = spec.keys.positions(&args);
                    wanted.hashes.extend(positions.map(|at| keyspace.hash(args[at])));
                }
            }
            let hash = wanted.hashes.get(before).copied().unwrap_or(KeyHash(0));
            wanted.first_keys.push(Ahead { db, hash });
        }
        wanted
    }
}

/// Whether a watched key was touched, or has expired since it was watched.
fn is_outdated(ctx: &mut Ctx<'_>) -> bool {
    let watched: BTreeSet<WatchedKey> = std::mem::take(&mut ctx.session.watched);
    let mut has_moved = false;
    for WatchedKey { db: number, key, space } in &watched {
        // What was a tuple may be an ordinary key by now, and the other way round.
        has_moved |= mounted::space_of(ctx, *number, key) != *space;
        if space.is_some() {
            continue;
        }
        let key = ctx.key(key);
        let db = ctx.keyspace().select(*number);
        // Removes the key if it has expired, which touches it.
        ctx.tx().exists(db, key);
    }
    ctx.session.watched = watched;
    has_moved || ctx.session.watch_flag.is_touched()
}
