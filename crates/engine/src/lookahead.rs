//! Prefetching: while one key of a batch is executed, the memory of the following keys is being
//! fetched.
//!
//! ```text
//! keys of the batch   0 . . i . +2 . +4 . +6 . +8 . . . . . . . i+24 . . .
//!                           |    |    |    |    | entry           | bucket
//!              executed ----+    |    |    +- value's header
//!                                |    +- what the value keeps: its bytes, or a member's bucket
//!                                +- the member's entry
//! ```
//! With three strict passes over the batch (all buckets, all entries, all executions), a pass would
//! wait for fetches that were only just requested. Here the executions in between hide them.
//!
//! Buckets and entries are fetched without the partition's lock. To fetch inside a value outside
//! its entry, the entry and the value have to be read, which takes the lock, if it is free. For
//! values in the caches that costs more than it saves, so it is done only once there is more data
//! than the caches hold.
//!
//! # Soundness
//! The hints in the windows are only used while the `guard` under which they were made is held: all
//! of them are dropped together.

use crate::keyspace::Keyspace;
use crate::prefetch_target::{Ahead, PartAhead};
use crate::table::bucket::BucketHint;
use crossbeam_epoch::Guard;

/// Distance in keys for prefetching an entry: eight executions take longer than one cache miss.
const ENTRIES_AHEAD: usize = 8;
/// Distance in keys for prefetching a bucket, which must arrive before its entry is fetched.
const BUCKETS_AHEAD: usize = 24;
/// Distance in keys for prefetching the header of a value outside its entry.
const VALUES_AHEAD: usize = 6;
/// Distance in keys for prefetching what the header points to.
const INSIDES_AHEAD: usize = 4;
/// Distance in keys for prefetching the element found there.
const ELEMENTS_AHEAD: usize = 2;
/// More than the distance between bucket and entry.
const WINDOW: usize = 32;

const _: () = assert!(BUCKETS_AHEAD - ENTRIES_AHEAD < WINDOW && WINDOW.is_power_of_two());

/// With less data than this, values are in a core's own caches anyway.
const CACHED_BYTES: u64 = 2 << 20;

/// How far the keys of a batch have been prefetched.
pub struct Lookahead<'k> {
    keyspace: &'k Keyspace,
    guard: Guard,
    window: [BucketHint; WINDOW],
    /// The same of members within values.
    elements: [BucketHint; WINDOW],
    buckets: usize,
    entries: usize,
    values: usize,
    insides: usize,
    fetched: usize,
}

impl<'k> Lookahead<'k> {
    pub(crate) fn new(keyspace: &'k Keyspace) -> Lookahead<'k> {
        let guard = crossbeam_epoch::pin();
        let window = [BucketHint::NONE; WINDOW];
        let elements = [BucketHint::NONE; WINDOW];
        let (buckets, entries, values, insides, fetched) = (0, 0, 0, 0, 0);
        Lookahead { keyspace, guard, window, elements, buckets, entries, values, insides, fetched }
    }

    /// Whether prefetching inside values is worthwhile.
    pub fn is_inside_worthwhile(keyspace: &Keyspace) -> bool {
        keyspace.used_bytes() > CACHED_BYTES
    }

    /// Prefetches for the keys after position `next`, which is about to be executed. `keys` are all
    /// keys of the batch, the same at every call.
    #[inline]
    pub fn advance(&mut self, keys: &[Ahead], next: usize) {
        let buckets = keys.len().min(next + BUCKETS_AHEAD);
        while self.buckets < buckets {
            if self.buckets - self.entries == WINDOW {
                self.fetch_entry();
            }
            let Ahead { db, hash, .. } = keys[self.buckets];
            let hint = self.keyspace.prefetch_bucket(db, hash, &self.guard);
            self.window[self.buckets % WINDOW] = hint;
            self.buckets += 1;
        }
        let entries = keys.len().min(next + ENTRIES_AHEAD);
        while self.entries < entries {
            self.fetch_entry();
        }
    }

    /// As `advance`, for the parts inside the values of some of these keys, in their order; call it
    /// after `advance`. The caller holds no locks.
    #[inline]
    pub fn advance_inside(&mut self, insides: &[PartAhead], next: usize) {
        let due = |done: usize, ahead: usize| {
            insides.get(done).filter(|part| (part.at as usize) < next + ahead)
        };
        while let Some(part) = due(self.values, VALUES_AHEAD) {
            self.keyspace.prefetch_value(&part.key);
            self.values += 1;
        }
        while let Some(part) = due(self.insides, INSIDES_AHEAD) {
            let hint = self.keyspace.prefetch_inside(part, &self.guard);
            self.elements[self.insides % WINDOW] = hint;
            self.insides += 1;
        }
        while due(self.fetched, ELEMENTS_AHEAD).is_some() {
            // SAFETY: made under `guard`, which is still held.
            unsafe { self.elements[self.fetched % WINDOW].prefetch_entry() };
            self.fetched += 1;
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
