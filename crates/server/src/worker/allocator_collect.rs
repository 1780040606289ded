//! Collects memory of this thread that other threads have freed.
//!
//! mimalloc returns memory that other threads freed (the dropper, or a thread that overwrites a
//! value) only when the owning thread collects. Collecting takes about 1 ms per GB with holes, and
//! 60 ms per GB that is found. So a thread collects only after much memory was freed, and only
//! while the server is quiet: a busy thread finds such memory bit by bit as it allocates.
//! Afterwards the dropper returns the memory to the system.

use super::Worker;
use std::sync::atomic::Ordering::Relaxed;

/// Collect after this much data was freed, or an eighth of the data if that is more.
const COLLECT_AFTER_BYTES: u64 = 8 << 20;

impl Worker {
    /// Collects if it is due. Called at a tick.
    pub(super) fn collect_freed_memory(&mut self, is_quiet: bool) {
        let Some(dropper) = &self.dropper else { return };
        if !is_quiet {
            dropper.purge_later();
        }
        let bytes = self.node.keyspace.used_bytes();
        self.most_bytes = self.most_bytes.max(bytes);
        let gone = self.most_bytes - bytes;
        let is_much = gone >= COLLECT_AFTER_BYTES.max(self.most_bytes / 8);
        if is_quiet && is_much && self.node.lazy_free.pending.load(Relaxed) == 0 {
            self.node.process.purge_idle_memory();
            self.most_bytes = bytes;
            dropper.purge_later();
        }
    }
}
