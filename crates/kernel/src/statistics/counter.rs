//! A counter that one thread writes and any reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with one writer: adding is a load and a store, not a locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning thread may.
    #[inline]
    pub fn add(&self, value: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(value), Relaxed);
    }

    /// Takes an addition back; only the owning thread may.
    pub(crate) fn take_back(&self, value: u64) {
        // A reset may have come in between.
        self.0.store(self.0.load(Relaxed).saturating_sub(value), Relaxed);
    }

    /// Becomes `value` if that is more; only the owning thread may.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.0.store(value, Relaxed);
        }
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Back to zero (`CONFIG RESETSTAT`); an addition at the same time may be lost.
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}
