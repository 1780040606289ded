//! `maxmemory-clients`: what all connections' buffers may take together.
//!
//! Every thread adds what its connections' buffers grew by to one sum; who pushes it over the limit
//! looks for the connections that take most and asks their threads to close them. A connection
//! that was asked to go counts no more, so that nobody else goes in its place.

use ladon_commands::{ClientInfo, Message, Node};
use ladon_settings::ClientMemory as Limit;
use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

/// One thread's copy of the limit.
#[derive(Default)]
pub(crate) struct ClientMemory {
    /// Bytes; `None` for no limit.
    limit: Option<u64>,
}

impl ClientMemory {
    /// Reads the settings; whether connections count now and did not before.
    pub(crate) fn refresh(&mut self, node: &Node) -> bool {
        let before = self.limit;
        self.limit = match node.settings.maxmemory_clients() {
            Limit::Unlimited => None,
            Limit::Bytes(bytes) => Some(bytes),
            Limit::PercentOfMaxmemory(percent) => match node.settings.maxmemory() {
                0 => None,
                bytes => Some((u128::from(bytes) * u128::from(percent) / 100) as u64),
            },
        };
        before.is_none() && self.limit.is_some()
    }

    /// Counts what the connection takes now.
    #[inline]
    pub(crate) fn count(&self, node: &Node, info: &ClientInfo) {
        if self.limit.is_some() && !info.killed.load(Relaxed) {
            recount(node, info, info.bytes_in_use());
        }
    }

    /// Closes the largest connections while all together take too much.
    #[inline]
    pub(crate) fn enforce(&self, node: &Node) {
        if let Some(limit) = self.limit
            && node.clients.bytes.load(Relaxed) > limit
        {
            evict(node, limit);
        }
    }
}

/// The connection is gone.
pub(crate) fn forget(node: &Node, info: &ClientInfo) {
    recount(node, info, 0);
}

fn recount(node: &Node, info: &ClientInfo, bytes: usize) {
    let before = info.counted_bytes.swap(bytes, Relaxed);
    // Wraps where it shrank.
    node.clients.bytes.fetch_add((bytes as u64).wrapping_sub(before as u64), Relaxed);
}

#[cold]
fn evict(node: &Node, limit: u64) {
    let mut clients = node.clients.list();
    clients.retain(|info| !info.no_evict.load(Relaxed));
    clients.sort_by_key(|info| Reverse(info.counted_bytes.load(Relaxed)));
    for info in clients {
        if node.clients.bytes.load(Relaxed) <= limit {
            return;
        }
        if info.counted_bytes.load(Relaxed) == 0 || info.killed.swap(true, Relaxed) {
            continue;
        }
        tracing::warn!("closing client id={}: maxmemory-clients is reached", info.id);
        forget(node, &info);
        node.evicted_clients.fetch_add(1, Relaxed);
        node.threads[info.thread].send(Message::Kill);
    }
}
