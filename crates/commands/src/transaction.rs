//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! `EXEC` takes the union of the locks of what was queued and runs it as one transaction of the
//! engine: one record in the log, serializable across threads.

use crate::ctx::{After, Append, Ctx, Data, Local};
use crate::error::{CommandError, CommandResult};
use crate::node::Node;
use crate::session::{Multi, Session, WatchedKey};
use crate::spec::{CommandSpec, Flags, Handler, KeySpec, LockNeed, Part};
use ladon_engine::{Locks, Scratch};
use ladon_model::{KeyHash, Lsn};
use ladon_resp::{Proto, Reply};
use std::sync::Arc;

const CONTROL: Flags = Flags::NOSCRIPT
    .or(Flags::LOADING)
    .or(Flags::STALE)
    .or(Flags::FAST)
    .or(Flags::ALLOW_BUSY)
    .or(Flags::NOT_QUEUED);

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::without_keys("multi", 1, CONTROL, LockNeed::None, multi),
    CommandSpec::without_keys(
        "exec",
        1,
        Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::SKIP_SLOWLOG)
            .or(Flags::NOT_QUEUED)
            .or(Flags::RUNS_QUEUE),
        LockNeed::Own,
        exec,
    ),
    CommandSpec::without_keys("discard", 1, CONTROL, LockNeed::Own, discard),
    CommandSpec {
        name: "watch",
        arity: -2,
        flags: CONTROL,
        keys: KeySpec::ALL,
        part: Part::None,
        locks: LockNeed::Own,
        handler: Handler::Run(watch),
        subcommands: &[],
    },
    CommandSpec::without_keys(
        "unwatch",
        1,
        Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST).or(Flags::ALLOW_BUSY),
        LockNeed::Own,
        unwatch,
    ),
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
    forget_watched(ctx);
    ctx.reply.ok();
    Ok(())
}

fn watch(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.multi.is_some() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    if ctx.session.watch_flag.is_touched() && !ctx.session.watched.is_empty() {
        // The transaction is lost already.
        ctx.reply.ok();
        return Ok(());
    }
    let number = ctx.session.db;
    let flag = Arc::clone(&ctx.session.watch_flag);
    *ctx.session.info.watch_flag.lock() = Some(Arc::clone(&flag));
    for name in &args[1..] {
        let watched = WatchedKey { db: number, key: name.to_vec() };
        if ctx.session.watched.contains(&watched) {
            continue;
        }
        let key = ctx.key(name);
        ctx.on(Locks::One(key.hash), |tx| {
            let db = tx.keyspace().select(number);
            tx.watch(db, key, &flag);
        });
        ctx.session.watched.push(watched);
    }
    ctx.reply.ok();
    Ok(())
}

fn unwatch(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if !ctx.in_exec {
        forget_watched(ctx);
    }
    ctx.reply.ok();
    Ok(())
}

/// Stops watching; also when a connection ends.
pub(crate) fn forget_watched(ctx: &mut Ctx<'_>) {
    let watched = std::mem::take(&mut ctx.session.watched);
    if watched.is_empty() {
        return;
    }
    let flag = std::mem::take(&mut ctx.session.watch_flag);
    *ctx.session.info.watch_flag.lock() = None;
    for WatchedKey { db: number, key } in &watched {
        let key = ctx.key(key);
        ctx.on(Locks::One(key.hash), |tx| {
            let db = tx.keyspace().select(*number);
            tx.unwatch(db, key, &flag);
        });
    }
}

fn exec(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let Some(multi) = ctx.session.multi.take() else {
        return Err(CommandError::text("ERR EXEC without MULTI"));
    };
    if multi.aborted {
        forget_watched(ctx);
        return Err(CommandError::text(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    let Data::Free(scratch) = std::mem::replace(&mut ctx.data, Data::Gone) else {
        unreachable!("EXEC begins its own transaction")
    };
    let hashes = wanted_hashes(ctx, &multi);
    let locks = hashes.as_deref().map_or(Locks::All, Locks::Keys);
    ctx.data = Data::Held(ctx.node.keyspace.begin(locks, scratch, ctx.now_ms));
    if is_outdated(ctx) {
        // What was watched is forgotten within the same transaction: its locks are held.
        forget_watched(ctx);
        ctx.reply.null_array();
        return Ok(());
    }
    forget_watched(ctx);
    ctx.in_exec = true;
    crate::client::publish_multi(&ctx.session.info, Some(&multi));
    ctx.reply.array(multi.queued.len());
    for queued in &multi.queued {
        let spec = ctx.node.table.spec(queued.id);
        let (Handler::Run(handler) | Handler::RunOrContainer(handler)) = spec.handler else {
            unreachable!("subcommands are resolved before they are queued")
        };
        let args: Vec<&[u8]> = queued.args.iter().map(Vec::as_slice).collect();
        let position = ctx.reply.position();
        let started = ctx.local.start(ctx.node, spec, &args);
        if let Err(error) = handler(ctx, &args) {
            ctx.local.stats.command(queued.id).failed.add(1);
            let text = error.to_string();
            ctx.local.stats.count_error(text.as_bytes());
            ctx.reply.rewind(position);
            ctx.reply.error(text);
        }
        let reply_bytes = ctx.reply.position().saturating_sub(position);
        ctx.local.stop(ctx.node, ctx.session, queued.id, &args, started, reply_bytes);
        if ctx.node.clients.has_monitors() {
            crate::monitor::note(ctx.node, ctx.local, ctx.session, spec, &args);
        }
    }
    ctx.in_exec = false;
    Ok(())
}

/// The hashes of all keys that the transaction needs; `None` when it needs everything.
fn wanted_hashes(ctx: &Ctx<'_>, multi: &Multi) -> Option<Vec<KeyHash>> {
    let keyspace = ctx.keyspace();
    let mut hashes: Vec<KeyHash> =
        ctx.session.watched.iter().map(|watched| keyspace.hash(&watched.key)).collect();
    for queued in &multi.queued {
        let spec = ctx.node.table.spec(queued.id);
        match spec.locks {
            LockNeed::None => {}
            LockNeed::All | LockNeed::Own => return None,
            LockNeed::Keys | LockNeed::KeysUnless(_) => {
                let args: Vec<&[u8]> = queued.args.iter().map(Vec::as_slice).collect();
                if let LockNeed::KeysUnless(reaches_further) = spec.locks
                    && reaches_further(&args)
                {
                    return None;
                }
                hashes.extend(spec.keys.positions(&args).map(|at| keyspace.hash(args[at])));
            }
        }
    }
    Some(hashes)
}

/// Whether a watched key was touched, or has expired since it was watched.
fn is_outdated(ctx: &mut Ctx<'_>) -> bool {
    let watched: Vec<WatchedKey> = ctx.session.watched.clone();
    for WatchedKey { db: number, key } in &watched {
        let key = ctx.key(key);
        let db = ctx.keyspace().select(*number);
        // Removes the key if its time is over, which touches it.
        ctx.tx().exists(db, key);
    }
    ctx.session.watch_flag.is_touched()
}

/// Forgets an open MULTI and what is watched.
pub(crate) fn abandon(ctx: &mut Ctx<'_>) {
    ctx.session.multi = None;
    forget_watched(ctx);
}

/// As `abandon`, where no command runs.
pub(crate) fn abandon_outside(
    node: &Node,
    local: &mut Local,
    scratch: &mut Scratch,
    session: &mut Session,
    append: Append<'_>,
) {
    session.multi = None;
    if session.watched.is_empty() {
        return;
    }
    let mut unused = Vec::new();
    forget_watched(&mut Ctx {
        node,
        session,
        local,
        reply: Reply::new(&mut unused, Proto::Resp2),
        now_ms: node.clock.unix_ms(),
        after: After::Continue,
        in_exec: false,
        in_attempt: false,
        first_key: None,
        depends: Lsn::ZERO,
        data: Data::Free(scratch),
        append,
    });
}
