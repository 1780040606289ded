//! Fetching ahead: while one key of a batch is executed, the memory of those that follow is on its
//! way.
//!
//! ```text
//! keys of the batch   0 . . . i . . . . . . . i+8 . . . . . . . i+24 . . .
//!                             | executed      | entry fetched   | bucket fetched
//! ```
//! Against three strict passes over the batch (all buckets, all entries, all executions), nobody
//! ever waits for a fetch that was only just asked for: the executions in between hide it.
//!
//! # Soundness
//! The hints in `window` are only used while `guard`, under which they were made, is held: both
//! live and die together.

use crate::keyspace::Keyspace;
use crate::table::prefetch::BucketHint;
use crossbeam_epoch::Guard;
use ladon_model::KeyHash;

/// How many keys ahead an entry is fetched: eight executions take longer than one miss.
const ENTRIES_AHEAD: usize = 8;
/// How many keys ahead a bucket is fetched, which has to be there when its entry is.
const BUCKETS_AHEAD: usize = 24;
/// More than lie between the two.
const WINDOW: usize = 32;

const _: () = assert!(BUCKETS_AHEAD - ENTRIES_AHEAD < WINDOW && WINDOW.is_power_of_two());

/// How far a batch's keys have been fetched.
pub struct Lookahead<'k> {
    keyspace: &'k Keyspace,
    guard: Guard,
    window: [BucketHint; WINDOW],
    buckets: usize,
    entries: usize,
}

impl<'k> Lookahead<'k> {
    pub(crate) fn new(keyspace: &'k Keyspace) -> Lookahead<'k> {
        let guard = crossbeam_epoch::pin();
        let window = [BucketHint::NONE; WINDOW];
        Lookahead { keyspace, guard, window, buckets: 0, entries: 0 }
    }

    /// Keys up to position `next` are about to be executed: fetches what those after them need.
    /// `keys` are all keys of the batch, each with the number of its database; the same at every
    /// call.
    #[inline]
    pub fn advance(&mut self, keys: &[(u16, KeyHash)], next: usize) {
        let buckets = keys.len().min(next + BUCKETS_AHEAD);
        while self.buckets < buckets {
            if self.buckets - self.entries == WINDOW {
                self.fetch_entry();
            }
            let (number, hash) = keys[self.buckets];
            let hint = self.keyspace.prefetch_bucket(number, hash, &self.guard);
            self.window[self.buckets % WINDOW] = hint;
            self.buckets += 1;
        }
        let entries = keys.len().min(next + ENTRIES_AHEAD);
        while self.entries < entries {
            self.fetch_entry();
        }
    }

    #[inline]
    fn fetch_entry(&mut self) {
        let hint = self.window[self.entries % WINDOW];
        // SAFETY: made under `guard`, which is still held.
        unsafe { hint.prefetch_entry() };
        self.entries += 1;
    }
}
