//! Prefetching for consecutive elements of one collection: its table's buckets and entries of later
//! elements are fetched while earlier ones are read, as for a batch's keys (`lookahead.rs`).
//!
//! # Soundness
//! The hints are only used while the `guard` under which they were made is held: all of them are
//! dropped together.

use crate::table::bucket::BucketHint;
use crossbeam_epoch::Guard;

/// Distance in elements for prefetching a bucket.
const BUCKETS_AHEAD: usize = 16;
/// Distance in elements for prefetching an entry.
const ENTRIES_AHEAD: usize = 6;
/// More than the distance between them.
const WINDOW: usize = 16;

const _: () = assert!(BUCKETS_AHEAD - ENTRIES_AHEAD < WINDOW && WINDOW.is_power_of_two());

/// Fewer elements are not worth it.
const ELEMENTS_MIN: usize = 8;

/// How far consecutive elements have been prefetched.
pub(crate) struct ElementsAhead {
    guard: Guard,
    hints: [BucketHint; WINDOW],
    buckets: usize,
    entries: usize,
}

impl ElementsAhead {
    /// For this many elements; `None` if they are too few.
    pub(crate) fn of(count: usize) -> Option<ElementsAhead> {
        (count >= ELEMENTS_MIN).then(|| ElementsAhead {
            guard: crossbeam_epoch::pin(),
            hints: [BucketHint::NONE; WINDOW],
            buckets: 0,
            entries: 0,
        })
    }

    /// The element at `next` of `count` is about to be read: `fetch` prefetches the bucket of a
    /// later one, each in turn.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        count: usize,
        next: usize,
        mut fetch: impl FnMut(usize, &Guard) -> BucketHint,
    ) {
        while self.buckets < count.min(next + BUCKETS_AHEAD) {
            self.hints[self.buckets % WINDOW] = fetch(self.buckets, &self.guard);
            self.buckets += 1;
        }
        while self.entries < count.min(next + ENTRIES_AHEAD) {
            // SAFETY: made under `guard`, which is still held.
            unsafe { self.hints[self.entries % WINDOW].prefetch_entry() };
            self.entries += 1;
        }
    }
}
