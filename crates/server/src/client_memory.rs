//! Memory of connections: its share of the used memory, and `maxmemory-clients`.
//!
//! Each thread adds the growth of its connections to one shared sum, at the end of a turn or as
//! soon as the growth is large. While the sum exceeds `maxmemory-clients`, each turn asks the
//! threads of the largest connections to close them, a few at a time. A connection that was asked
//! to close no longer counts, so that no other connection is closed in its place.

use crate::connection::Connection;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::message::Message;
use ladon_kernel::node::Node;
use ladon_settings::ClientMemory as Limit;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// From this size on, input is counted when it arrives: before its request runs, and while a
/// request is incomplete.
pub(crate) const LARGE_INPUT_BYTES: usize = 32 * 1024;

/// A thread publishes the growth of its connections once it exceeds this, even in the middle of a
/// turn.
const UNSEEN_BYTES_MAX: i64 = 16 * 1024;

/// As in Redis. With a lower limit, no client could connect to raise it.
const LIMIT_BYTES_MIN: u64 = 128 * 1024;

/// Most connections that one turn asks to close.
const EVICTIONS_MAX: usize = 64;

/// One thread's part of the count.
#[derive(Default)]
pub(crate) struct ClientMemory {
    /// Growth of its connections that other threads do not see yet.
    unseen: i64,
}

impl ClientMemory {
    /// Counts the connection's present memory, according to its `info`.
    #[inline]
    pub(crate) fn count(&mut self, node: &Node, info: &Arc<ClientInfo>) {
        if info.killed.load(Relaxed) {
            return;
        }
        let bytes = info.bytes();
        if bytes != info.counted_bytes.load(Relaxed) {
            let before = info.counted_bytes.swap(bytes, Relaxed);
            self.unseen += bytes as i64 - before as i64;
            if self.unseen.abs() > UNSEEN_BYTES_MAX {
                self.show(node);
            }
        }
        // The connection may have become exempt, or may have stopped being exempt.
        node.clients.rank(info, bytes);
    }

    /// Counts input that has just arrived, if it is large.
    #[inline]
    pub(crate) fn count_input(&mut self, node: &Node, connection: &Connection) {
        if connection.input.len() >= LARGE_INPUT_BYTES {
            self.count_large_input(node, connection);
        }
    }

    #[cold]
    fn count_large_input(&mut self, node: &Node, connection: &Connection) {
        let info = &connection.session.info;
        info.query_bytes.store(connection.input.len(), Relaxed);
        info.query_capacity.store(connection.input.capacity(), Relaxed);
        self.count(node, info);
        self.enforce(node);
    }

    /// Removes a closed connection from the count.
    pub(crate) fn forget(&mut self, info: &ClientInfo) {
        self.unseen -= info.counted_bytes.swap(0, Relaxed) as i64;
    }

    fn show(&mut self, node: &Node) {
        if self.unseen != 0 {
            // A negative growth wraps around.
            node.clients.bytes.fetch_add(std::mem::take(&mut self.unseen) as u64, Relaxed);
        }
    }

    /// Publishes this thread's count, and closes the largest connections while the sum exceeds the
    /// limit.
    #[inline]
    pub(crate) fn enforce(&mut self, node: &Node) {
        self.show(node);
        if let Some(limit) = limit(node)
            && node.clients_memory() > limit
        {
            evict(node, limit);
        }
    }
}

/// `maxmemory-clients` in bytes; `None` for no limit.
#[inline]
fn limit(node: &Node) -> Option<u64> {
    let bytes = match node.settings.maxmemory_clients() {
        Limit::Unlimited => return None,
        Limit::Bytes(bytes) => bytes,
        Limit::PercentOfMaxmemory(percent) => match node.settings.maxmemory() {
            0 => return None,
            bytes => (u128::from(bytes) * u128::from(percent) / 100) as u64,
        },
    };
    Some(bytes.max(LIMIT_BYTES_MIN))
}

#[cold]
fn evict(node: &Node, limit: u64) {
    for _ in 0..EVICTIONS_MAX {
        if node.clients_memory() <= limit {
            return;
        }
        let Some(info) = node.clients.take_largest() else { return };
        if info.no_evict.load(Relaxed) || info.killed.swap(true, Relaxed) {
            continue;
        }
        // Only the thread whose swap returns the bytes subtracts them.
        let bytes = info.counted_bytes.swap(0, Relaxed);
        tracing::warn!(
            "closing client id={}, which takes {bytes} bytes: maxmemory-clients is reached",
            info.id
        );
        node.clients.bytes.fetch_sub(bytes as u64, Relaxed);
        node.evicted_clients.fetch_add(1, Relaxed);
        if let Some(claim) = &*info.claim.lock() {
            // From here on, no thread can serve its wait.
            claim.take();
        }
        node.threads[info.thread].send(Message::Evict { client: info.id, slot: info.slot });
    }
}
