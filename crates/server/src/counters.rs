//! What transactions have counted, passed on to the thread's statistics and to the keyspace.

use ladon_engine::Scratch;
use ladon_kernel::node::Node;
use ladon_kernel::statistics::stats::ThreadStats;

/// Passes on what a thread's transactions have counted since the last time.
pub(crate) fn settle(node: &Node, stats: &ThreadStats, scratch: &mut Scratch) {
    let counters = std::mem::take(&mut scratch.counters);
    stats.keyspace_hits.add(counters.hits);
    stats.keyspace_misses.add(counters.misses);
    stats.expired_keys.add(counters.expired);
    stats.evicted_keys.add(counters.evicted);
    stats.expired_subkeys.add(counters.expired_elements);
    node.keyspace.add_used_bytes(counters.bytes_delta);
}
