//! `flush_all` with a delay: what is there at a moment to come is removed then.
//!
//! The moment is not in the log: after a restart there is none. The thread that meets it first removes
//! the keys: at its next tick, or before it runs a request of memcached's protocol.

use ladon_engine::Locks;
use ladon_kernel::thread_parts::ThreadParts;
use std::sync::atomic::Ordering::Relaxed;

/// Removes what was to be removed by now.
#[inline]
pub fn flush_if_due(thread: &mut ThreadParts<'_>) {
    let at_ms = thread.node.flush_at_ms.load(Relaxed);
    if at_ms != 0 && at_ms <= thread.now_ms {
        flush(thread, at_ms);
    }
}

#[cold]
fn flush(thread: &mut ThreadParts<'_>, at_ms: u64) {
    let node = thread.node;
    if node.flush_at_ms.compare_exchange(at_ms, 0, Relaxed, Relaxed).is_err() {
        return;
    }
    let may_flush = node.loading.is_none() && node.may_change() && !thread.local.serves_busy;
    let ThreadParts { scratch, append, now_ms, .. } = thread;
    scratch.read_only = false;
    let begun = may_flush.then(|| node.begin_or_busy(Locks::All, scratch, *now_ms)).flatten();
    match begun {
        Some(mut tx) => {
            let db = node.keyspace.select(0);
            tx.flush(db);
            tx.commit(append);
        }
        // In a moment, unless somebody wants another moment by then.
        None => drop(node.flush_at_ms.compare_exchange(0, at_ms, Relaxed, Relaxed)),
    }
}
