//! This thread's share of memory compaction (the engine's `compact.rs`).

use super::Worker;
use std::time::Duration;

/// Longest wait for the network while compaction is in progress.
const SLICE_EVERY: Duration = Duration::from_millis(1);

/// Longest wait for the network while memory could get huge pages.
const ENLARGE_EVERY: Duration = Duration::from_millis(200);

impl Worker {
    /// Compacts one slice, or moves memory into a huge page, if that is due.
    #[inline]
    pub(super) fn compact_memory(&self) {
        if self.node.keyspace.is_compacting() {
            self.node.keyspace.compact(self.node.clock.monotonic_ns());
        }
        if self.node.keyspace.has_small_parts() {
            self.node.keyspace.enlarge_pages(self.node.clock.monotonic_ns());
        }
    }

    /// Shortens `timeout` while there is something to compact or to move.
    #[inline]
    pub(super) fn until_next_slice(&self, timeout: Duration) -> Duration {
        if self.node.keyspace.is_compacting() {
            timeout.min(SLICE_EVERY)
        } else if self.node.keyspace.has_small_parts() {
            timeout.min(ENLARGE_EVERY)
        } else {
            timeout
        }
    }
}
