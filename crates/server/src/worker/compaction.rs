//! This thread's share of memory compaction (the engine's `compact.rs`).

use super::Worker;
use std::time::Duration;

/// Longest wait for the network while compaction is in progress.
const SLICE_EVERY: Duration = Duration::from_millis(1);

impl Worker {
    /// Compacts one slice if one is due.
    #[inline]
    pub(super) fn compact_memory(&self) {
        if self.node.keyspace.is_compacting() {
            self.node.keyspace.compact(self.node.clock.monotonic_ns());
        }
    }

    /// Shortens `timeout` while compaction is in progress.
    #[inline]
    pub(super) fn until_next_slice(&self, timeout: Duration) -> Duration {
        if self.node.keyspace.is_compacting() { timeout.min(SLICE_EVERY) } else { timeout }
    }
}
