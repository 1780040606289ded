//! Ends `WATCH` and `MULTI`.

use crate::kernel::ctx::{Ctx, Data};
use crate::kernel::session::{Session, WatchedKey};
use crate::kernel::thread_parts::ThreadParts;
use ladon_engine::Locks;
use ladon_resp::{Proto, Reply};

/// Stops watching; also when a connection ends.
pub(crate) fn forget(ctx: &mut Ctx<'_>) {
    let watched = std::mem::take(&mut ctx.session.watched);
    ctx.session.watched_bytes = 0;
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

/// Forgets an open MULTI and what is watched.
pub(crate) fn abandon(ctx: &mut Ctx<'_>) {
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
