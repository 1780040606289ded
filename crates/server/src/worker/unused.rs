//! When this thread looks for memory of its own that nobody uses any more.
//!
//! What other threads free of a thread's memory (the dropper, or whoever overwrites a value) its own
//! part of the allocator learns only when the thread looks. That takes about 1 ms for each GB that has
//! holes, and 60 ms for each GB that is found, so it is done once much has gone, and only when all is
//! quiet: a busy thread finds such memory bit by bit, as it needs some. What was found, the dropper
//! has returned to the system.

use super::Worker;
use std::sync::atomic::Ordering::Relaxed;

/// So much of the data, or an eighth of it if that is more, has to go for a look.
const MUCH_BYTES: u64 = 8 << 20;

impl Worker {
    /// Looks if it is time; at a tick.
    pub(super) fn look_for_unused_memory(&mut self, is_quiet: bool) {
        let Some(dropper) = &self.dropper else { return };
        if !is_quiet {
            dropper.purge_later();
        }
        let bytes = self.node.keyspace.used_bytes();
        self.most_bytes = self.most_bytes.max(bytes);
        let gone = self.most_bytes - bytes;
        let is_much = gone >= MUCH_BYTES.max(self.most_bytes / 8);
        if is_quiet && is_much && self.node.lazy_free.pending.load(Relaxed) == 0 {
            self.node.process.purge_idle_memory();
            self.most_bytes = bytes;
            dropper.purge_later();
        }
    }
}
