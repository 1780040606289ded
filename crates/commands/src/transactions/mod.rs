//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! `EXEC` takes the union of the locks of what was queued and runs it as one transaction of the
//! engine: one record in the log, serializable across threads.

use ladon_engine::Locks;
use ladon_kernel::client::session::{Multi, WatchedKey};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::long_replies::Several;
use ladon_kernel::request::mounted;
use ladon_kernel::request::queued::{self, Wanted};
use ladon_kernel::request::watched;
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
    let wanted = Wanted::by(ctx, &multi);
    if !wanted.begin(ctx) {
        return busy(ctx);
    }
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
        queued::run(ctx, &multi, queued, wanted.first_keys[at]);
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
