//! The state of loading, while clients are served without data.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far loading has got; bytes of files.
#[derive(Debug)]
pub struct Loading {
    /// When it began, Unix milliseconds.
    pub began_ms: u64,
    /// Bytes read, of `bytes_total`, of the files being read: first the checkpoint's, then the
    /// log's.
    pub bytes_done: AtomicU64,
    /// Bytes to read.
    pub bytes_total: AtomicU64,
}

impl Loading {
    /// The state at the start.
    pub fn new(began_ms: u64) -> Loading {
        Loading { began_ms, bytes_done: AtomicU64::new(0), bytes_total: AtomicU64::new(0) }
    }

    /// (bytes read, bytes to read), the first never more than the second.
    pub fn bytes(&self) -> (u64, u64) {
        let total = self.bytes_total.load(Relaxed);
        (self.bytes_done.load(Relaxed).min(total), total)
    }
}
