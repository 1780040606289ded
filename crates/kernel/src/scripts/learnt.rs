//! What earlier runs of a script taught about the locks that it needs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is known of one script or function; threads share it.
#[derive(Debug, Default)]
pub struct Learnt {
    needs_all: AtomicBool,
}

impl Learnt {
    /// Whether the script should begin with all partitions: it asked for them before, or it was
    /// refused partitions again and again.
    pub fn needs_all(&self) -> bool {
        self.needs_all.load(Relaxed)
    }

    /// From now on the script begins with all partitions.
    pub fn learn_all(&self) {
        if !self.needs_all() {
            self.needs_all.store(true, Relaxed);
        }
    }
}
