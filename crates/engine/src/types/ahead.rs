//! Many elements of one collection in a row: what its table has of those further on is fetched while
//! the others are looked at, as a batch's keys are (`lookahead.rs`).
//!
//! # Soundness
//! The hints are only used while `guard`, under which they were made, is held: all live and die
//! together.

use crate::table::bucket::BucketHint;
use crossbeam_epoch::Guard;

/// How many elements ahead a bucket is fetched, ...
const BUCKETS_AHEAD: usize = 16;
/// ... and an entry.
const ENTRIES_AHEAD: usize = 6;
/// More than lie between them.
const WINDOW: usize = 16;

const _: () = assert!(BUCKETS_AHEAD - ENTRIES_AHEAD < WINDOW && WINDOW.is_power_of_two());

/// Fewer are not worth it.
const ELEMENTS_MIN: usize = 8;

/// How far a row of elements has been fetched.
pub(crate) struct ElementsAhead {
    guard: Guard,
    hints: [BucketHint; WINDOW],
    buckets: usize,
    entries: usize,
}

impl ElementsAhead {
    /// For a row of so many; `None` where they are too few.
    pub(crate) fn of(count: usize) -> Option<ElementsAhead> {
        (count >= ELEMENTS_MIN).then(|| ElementsAhead {
            guard: crossbeam_epoch::pin(),
            hints: [BucketHint::NONE; WINDOW],
            buckets: 0,
            entries: 0,
        })
    }

    /// The element at `next` of `count` is about to be looked at: `fetch` fetches the bucket of
    /// another one, each in its turn.
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
