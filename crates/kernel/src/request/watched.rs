//! Ends `WATCH` and `MULTI`.

use crate::client::session::{Session, WatchedKey};
use crate::ctx::{Ctx, Data};
use crate::thread_parts::ThreadParts;
use ladon_engine::{Key, Locks, WatchFlag};
use ladon_record::SpaceId;
use ladon_resp::{Proto, Reply};
use std::sync::Arc;

/// Stops watching; also when a connection ends.
pub fn forget(ctx: &mut Ctx<'_>) {
    let watched = std::mem::take(&mut ctx.session.watched);
    ctx.session.watched_bytes = 0;
    if watched.is_empty() {
        return;
    }
    let flag = std::mem::take(&mut ctx.session.watch_flag);
    *ctx.session.info.watch_flag.lock() = None;
    for WatchedKey { db: number, key, space } in &watched {
        if let Some(space) = *space {
            forget_tuple(ctx, space, key, &flag);
            continue;
        }
        let hashed = ctx.key(key);
        let done = ctx.on(Locks::One(hashed.hash), |tx| {
            let db = tx.keyspace().select(*number);
            tx.unwatch(db, hashed, &flag);
        });
        if done.is_err() {
            let watched = WatchedKey { db: *number, key: key.clone(), space: None };
            ctx.local.unwatch_later.push((watched, Arc::clone(&flag)));
        }
    }
}

/// Stops watching a tuple of a mounted space.
#[cold]
fn forget_tuple(ctx: &mut Ctx<'_>, space: SpaceId, key: &[u8], flag: &Arc<WatchFlag>) {
    match &mut ctx.data {
        Data::Held(tx) if tx.holds_space(space) => tx.unwatch_tuple(space, key, flag),
        // Its lock would be out of order, unless no space is held.
        Data::Held(tx) if tx.mounts().is_some() => {
            let watched = WatchedKey { db: 0, key: key.to_vec(), space: Some(space) };
            ctx.local.unwatch_later.push((watched, Arc::clone(flag)));
        }
        _ => ctx.node.keyspace.spaces.unwatch(space, key, flag),
    }
}

/// As `forget`, where there is no transaction to do it in: [`forget_the_rest`] does it.
pub fn forget_later(ctx: &mut Ctx<'_>) {
    let watched = std::mem::take(&mut ctx.session.watched);
    ctx.session.watched_bytes = 0;
    let flag = std::mem::take(&mut ctx.session.watch_flag);
    *ctx.session.info.watch_flag.lock() = None;
    let later = watched.into_iter().map(|watched| (watched, Arc::clone(&flag)));
    ctx.local.unwatch_later.extend(later);
}

/// Stops watching the keys whose partitions a long script held when their client went away.
pub fn forget_the_rest(thread: &mut ThreadParts<'_>) {
    let ThreadParts { node, local, scratch, append, now_ms, .. } = thread;
    local.unwatch_later.retain(|(WatchedKey { db: number, key, space }, flag)| {
        if let Some(space) = *space {
            node.keyspace.spaces.unwatch(space, key, flag);
            return false;
        }
        let key = Key { hash: node.keyspace.hash(key), bytes: key };
        let tx = node.begin_or_busy(Locks::One(key.hash), scratch, *now_ms);
        let Some(mut tx) = tx else { return true };
        let db = tx.keyspace().select(*number);
        tx.unwatch(db, key, flag);
        tx.commit(&mut **append);
        false
    });
}

/// Forgets an open MULTI and what is watched.
pub fn abandon(ctx: &mut Ctx<'_>) {
    ctx.session.multi = None;
    forget(ctx);
}

/// As `abandon`, where no command runs.
pub(crate) fn abandon_outside(thread: &mut ThreadParts<'_>, session: &mut Session) {
    session.multi = None;
    if session.watched.is_empty() {
        return;
    }
    let ThreadParts { node, local, scratch, append, .. } = thread;
    let mut unused = Vec::new();
    let (reply, now_ms) = (Reply::new(&mut unused, Proto::Resp2), node.clock.unix_ms());
    let mut ctx = Ctx::new(node, local, session, reply, now_ms, *append);
    ctx.data = Data::Free(scratch);
    forget(&mut ctx);
}
