//! Large values that were removed from the data and are not freed yet.
//!
//! The dropper thread frees them. On a busy machine it may hardly run, so these values count as
//! used memory, and when that exceeds `maxmemory`, the threads that serve clients help
//! (`eviction.rs`).

use ladon_engine::Garbage;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of the oldest values among which a cheap one is searched.
const LOOKED_AT: usize = 16;

/// What waits to be freed, and how much was freed.
#[derive(Default)]
pub struct LazyFree {
    /// Values that wait.
    pub pending: AtomicU64,
    /// Values that were freed.
    pub freed: AtomicU64,
    pending_bytes: AtomicU64,
    definition_bytes: AtomicU64,
    queue: Mutex<VecDeque<Garbage>>,
}

impl LazyFree {
    /// Bytes that wait to be freed or are being freed.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes.load(Relaxed)
    }

    /// Bytes that are freed at most with what definitions of spaces have left. What they left may be
    /// used elsewhere still, so these are not among [`LazyFree::pending_bytes`].
    #[inline]
    pub fn definition_bytes(&self) -> u64 {
        self.definition_bytes.load(Relaxed)
    }

    /// Takes values over, to be freed by [`LazyFree::free_next`].
    pub fn add(&self, garbage: Vec<Garbage>) {
        self.pending.fetch_add(garbage.iter().map(Garbage::values).sum(), Relaxed);
        let bytes = garbage.iter().map(|garbage| garbage.bytes() as u64).sum();
        self.pending_bytes.fetch_add(bytes, Relaxed);
        let bytes = garbage.iter().map(|garbage| garbage.definition_bytes() as u64).sum();
        self.definition_bytes.fetch_add(bytes, Relaxed);
        self.queue.lock().extend(garbage);
    }

    /// Frees one of the oldest values that costs at most `effort_max` allocations. Returns whether
    /// there was one.
    pub fn free_next(&self, effort_max: usize) -> bool {
        let next = {
            let mut queue = self.queue.lock();
            let at = queue.iter().take(LOOKED_AT).position(|it| it.effort() <= effort_max);
            at.and_then(|at| queue.remove(at))
        };
        let Some(garbage) = next else { return false };
        let (values, bytes) = (garbage.values(), garbage.bytes() as u64);
        let definition_bytes = garbage.definition_bytes() as u64;
        drop(garbage);
        self.definition_bytes.fetch_sub(definition_bytes, Relaxed);
        let values_before = self.pending.fetch_sub(values, Relaxed);
        let bytes_before = self.pending_bytes.fetch_sub(bytes, Relaxed);
        debug_assert!(values_before >= values && bytes_before >= bytes, "more freed than given");
        self.freed.fetch_add(values, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_and_the_quickest_of_the_oldest_goes_first() {
        let lazy_free = LazyFree::default();
        lazy_free.add(vec![Garbage::of_bytes(vec![0; 1000], 1000), Garbage::of_bytes((), 24)]);
        assert_eq!(lazy_free.pending_bytes(), 1024);
        assert!(!lazy_free.free_next(0));
        assert!(lazy_free.free_next(1));
        assert_eq!(lazy_free.pending_bytes(), 24);
        assert!(lazy_free.free_next(usize::MAX) && !lazy_free.free_next(usize::MAX));
        assert_eq!(lazy_free.pending_bytes(), 0);
        lazy_free.add(vec![Garbage::of_definition((), 7), Garbage::of_definition((), 9)]);
        assert_eq!((lazy_free.pending_bytes(), lazy_free.definition_bytes()), (0, 16));
        assert!(lazy_free.free_next(usize::MAX));
        assert_eq!(lazy_free.definition_bytes(), 9);
    }
}
