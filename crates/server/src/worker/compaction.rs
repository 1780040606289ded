//! This thread's part in moving data together in memory (the engine's `compact.rs`).

use super::Worker;
use std::time::Duration;

/// How long the network is waited for at most while data is moved.
const SLICE_EVERY: Duration = Duration::from_millis(1);

impl Worker {
    /// Makes the next slice if it is time for that.
    #[inline]
    pub(super) fn compact_memory(&self) {
        if self.node.keyspace.is_compacting() {
            self.node.keyspace.compact(self.node.clock.monotonic_ns());
        }
    }

    /// As `timeout`, which is too long while data is moved.
    #[inline]
    pub(super) fn until_next_slice(&self, timeout: Duration) -> Duration {
        if self.node.keyspace.is_compacting() { timeout.min(SLICE_EVERY) } else { timeout }
    }
}
