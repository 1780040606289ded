//! A segment: buckets of one cache line each, and what found no place in them.
//!
//! ```text
//! head   | what has no place | unused ...                        48 B, behind an Arc's counts
//! bucket | word | word | word | word | word | word | word | word | 63 of them
//!
//! word:    a tuple, marked with 14 bits of its hash and 4 bits of how far away from home it is
//! ```
//!
//! A hash has a home bucket. An item of it is there, or in one of the next buckets, the first one
//! behind the last; or beyond [`REACH`] buckets, among those without a place.
//!
//! **Invariants:** the words of a bucket are its first ones; all buckets from an item's home to the
//! one before its own are full. So a search ends at the first bucket that is not, and when a word
//! of a full bucket is taken out, one that had passed it comes back. Whatever the marks say is of
//! the hash, so items are moved without being hashed, which would wait for a tuple's memory.

use super::FETCHED_AHEAD;
use crate::left_behind::note_clone;
use crate::tuple::{MARK_BITS, Tuple};
use hashbrown::HashTable;
use std::sync::Arc;

const BUCKETS: usize = 63;
const BUCKET_WORDS: usize = 8;
/// So many buckets may have an item: its home is the first.
const REACH: usize = 1 << AWAY_BITS;
const AWAY_BITS: u32 = 4;
/// Bits of the hash that a mark has.
pub(super) const TAG_BITS: u32 = MARK_BITS - AWAY_BITS;

type Bucket = [Option<Tuple>; BUCKET_WORDS];

/// See the module.
#[derive(Default)]
#[repr(C)]
pub(super) struct Segment {
    beyond: Option<Box<HashTable<Tuple>>>,
    _unused: [u64; 5],
    buckets: Buckets,
}

struct Buckets([Bucket; BUCKETS]);

/// With the counts of owners of an [`Arc`], a segment is a page, and a bucket a line.
pub(super) const SEGMENT_BYTES: usize = 2 * size_of::<usize>() + size_of::<Segment>();
const _: () = assert!(SEGMENT_BYTES == 4096);

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets([const { [const { None }; BUCKET_WORDS] }; BUCKETS])
    }
}

/// Clones have the marks, too.
impl Clone for Segment {
    fn clone(&self) -> Segment {
        note_clone(SEGMENT_BYTES);
        let mut clone = Segment { beyond: self.beyond.clone(), ..Segment::default() };
        for (to, from) in clone.buckets.0.iter_mut().zip(&self.buckets.0) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.as_ref().map(|tuple| tuple.clone().marked(tuple.mark()));
            }
        }
        clone
    }
}

/// What a segment needs of a hash.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    home: usize,
    tag: u32,
}

impl Spot {
    /// Of a hash whose tag leaves out its highest `base` bits.
    #[inline]
    pub fn of(hash: u64, base: u32) -> Spot {
        // The lowest bits, which choose no segment.
        let home = (u64::from(hash as u32) * BUCKETS as u64) >> u32::BITS;
        Spot { home: home as usize, tag: (hash << base >> (u64::BITS - TAG_BITS)) as u32 }
    }

    fn of_mark(mark: u32, bucket: usize) -> Spot {
        let home = (bucket + BUCKETS - away_of(mark)) % BUCKETS;
        Spot { home, tag: mark >> AWAY_BITS }
    }

    fn mark(self, away: usize) -> u32 {
        self.tag << AWAY_BITS | away as u32
    }

    fn bucket(self, away: usize) -> usize {
        let bucket = self.home + away;
        if bucket < BUCKETS { bucket } else { bucket - BUCKETS }
    }
}

fn away_of(mark: u32) -> usize {
    mark as usize % REACH
}

fn is_full(bucket: &Bucket) -> bool {
    bucket[BUCKET_WORDS - 1].is_some()
}

/// How a segment is divided: by the bit of the hash behind the highest `depth` ones.
#[derive(Clone, Copy)]
pub(super) struct Division {
    pub depth: u32,
    /// What tags leave out, before and after.
    pub base: u32,
    pub new_base: u32,
}

impl Division {
    /// Which half a tag belongs to.
    fn is_upper(self, tag: u32) -> bool {
        tag >> (TAG_BITS - 1 - (self.depth - self.base)) & 1 == 1
    }

    /// Where in the halves a hash belongs, and to which.
    fn of_hash(self, hash: u64) -> (Spot, bool) {
        (Spot::of(hash, self.new_base), hash << self.depth >> (u64::BITS - 1) == 1)
    }
}

enum Place {
    /// Of a bucket, the word.
    At(usize, usize),
    Nowhere,
    /// All buckets that may have it are full.
    Beyond,
}

impl Segment {
    /// Begins to fetch the bucket where most items with this hash would be.
    #[inline]
    pub fn fetch(&self, spot: Spot) {
        crate::prefetch::line(&raw const self.buckets.0[spot.home]);
    }

    /// Begins to fetch the tuple that is probably the sought one.
    #[inline]
    pub fn fetch_found(&self, spot: Spot) {
        let mark = spot.mark(0);
        let words = self.buckets.0[spot.home].iter().flatten();
        words.filter(|tuple| tuple.mark() == mark).for_each(Tuple::fetch_all);
    }

    #[inline]
    fn place(&self, spot: Spot, is_equal: &mut impl FnMut(&Tuple) -> bool) -> Place {
        for away in 0..REACH {
            let (number, mark) = (spot.bucket(away), spot.mark(away));
            let bucket = &self.buckets.0[number];
            for (at, word) in bucket.iter().enumerate() {
                let Some(tuple) = word else { return Place::Nowhere };
                if tuple.mark() == mark && is_equal(tuple) {
                    return Place::At(number, at);
                }
            }
        }
        Place::Beyond
    }

    /// The item with this hash that is equal.
    #[inline]
    pub fn get(
        &self,
        (spot, hash): (Spot, u64),
        mut is_equal: impl FnMut(&Tuple) -> bool,
    ) -> Option<&Tuple> {
        match self.place(spot, &mut is_equal) {
            Place::At(bucket, at) => self.buckets.0[bucket][at].as_ref(),
            Place::Nowhere => None,
            Place::Beyond => self.beyond.as_ref()?.find(hash, is_equal),
        }
    }

    /// Puts `tuple` into the place of the equal item, which returns.
    ///
    /// # Errors
    /// `tuple`, if no item is equal.
    #[inline]
    pub fn replace(
        &mut self,
        (spot, hash): (Spot, u64),
        tuple: Tuple,
        mut is_equal: impl FnMut(&Tuple) -> bool,
    ) -> Result<Tuple, Tuple> {
        let word = match self.place(spot, &mut is_equal) {
            Place::At(bucket, at) => self.buckets.0[bucket][at].as_mut(),
            Place::Nowhere => None,
            Place::Beyond => {
                self.beyond.as_mut().and_then(|beyond| beyond.find_mut(hash, is_equal))
            }
        };
        let Some(word) = word else { return Err(tuple) };
        let mark = word.mark();
        Ok(std::mem::replace(word, tuple.marked(mark)).marked(0))
    }

    /// Adds an item; none is equal.
    ///
    /// # Errors
    /// The item, if it finds no place.
    #[inline]
    pub fn insert(&mut self, spot: Spot, tuple: Tuple) -> Result<(), Tuple> {
        for away in 0..REACH {
            let bucket = &mut self.buckets.0[spot.bucket(away)];
            if let Some(word) = bucket.iter_mut().find(|word| word.is_none()) {
                *word = Some(tuple.marked(spot.mark(away)));
                return Ok(());
            }
        }
        Err(tuple)
    }

    /// Adds an item that finds no place.
    pub fn insert_beyond(&mut self, hash: u64, tuple: Tuple, rehash: impl Fn(&Tuple) -> u64) {
        self.beyond.get_or_insert_default().insert_unique(hash, tuple.marked(0), rehash);
    }

    /// Bytes that those without a place take.
    pub fn bytes_beyond(&self) -> usize {
        self.beyond.as_ref().map_or(0, |beyond| size_of_val(&**beyond) + beyond.allocation_size())
    }

    /// Removes the item with this hash that is equal; `base` is what tags leave out. Returns how many
    /// bytes less are beside the segment, too.
    pub fn remove(
        &mut self,
        (spot, hash): (Spot, u64),
        base: u32,
        mut is_equal: impl FnMut(&Tuple) -> bool,
        rehash: impl Fn(&Tuple) -> u64,
    ) -> Option<(Tuple, usize)> {
        match self.place(spot, &mut is_equal) {
            Place::Nowhere => None,
            Place::At(bucket, at) => {
                let was_full = is_full(&self.buckets.0[bucket]);
                let taken = self.take(bucket, at)?.marked(0);
                // Otherwise nothing has passed the bucket, and the segment's head is not fetched.
                let freed = if was_full { self.fill(bucket, base, rehash) } else { 0 };
                Some((taken, freed))
            }
            Place::Beyond => self.take_beyond(hash, is_equal),
        }
    }

    /// Takes out one that has no place.
    fn take_beyond(
        &mut self,
        hash: u64,
        is_equal: impl FnMut(&Tuple) -> bool,
    ) -> Option<(Tuple, usize)> {
        let before = self.bytes_beyond();
        let beyond = self.beyond.as_mut()?;
        let (taken, _) = beyond.find_entry(hash, is_equal).ok()?.remove();
        if beyond.is_empty() {
            self.beyond = None;
        }
        Some((taken, before - self.bytes_beyond()))
    }

    /// Takes out a word; the bucket's last one gets its place.
    fn take(&mut self, bucket: usize, at: usize) -> Option<Tuple> {
        let bucket = &mut self.buckets.0[bucket];
        let len = bucket.iter().take_while(|word| word.is_some()).count();
        bucket.swap(at, len - 1);
        bucket[len - 1].take()
    }

    /// After a word of a full bucket was taken out, brings back one that had passed it. Returns how
    /// many bytes less are beside the segment.
    fn fill(&mut self, mut hole: usize, base: u32, rehash: impl Fn(&Tuple) -> u64) -> usize {
        let mut away = 1;
        while away < REACH {
            let from = (hole + away) % BUCKETS;
            let has_passed = |word: &Option<Tuple>| {
                word.as_ref().is_some_and(|tuple| away_of(tuple.mark()) >= away)
            };
            let was_full = is_full(&self.buckets.0[from]);
            if let Some(at) = self.buckets.0[from].iter().position(has_passed) {
                if let Some(tuple) = self.take(from, at) {
                    let mark = tuple.mark() - away as u32;
                    self.buckets.0[hole][BUCKET_WORDS - 1] = Some(tuple.marked(mark));
                }
                if !was_full {
                    return 0;
                }
                (hole, away) = (from, 0);
            } else if !was_full {
                break;
            }
            away += 1;
        }
        self.fill_from_beyond(hole, base, rehash).unwrap_or(0)
    }

    fn fill_from_beyond(
        &mut self,
        hole: usize,
        base: u32,
        rehash: impl Fn(&Tuple) -> u64,
    ) -> Option<usize> {
        let away = |hash: u64| (hole + BUCKETS - Spot::of(hash, base).home) % BUCKETS;
        let mut hashes = self.beyond.as_ref()?.iter().map(&rehash);
        let hash = hashes.find(|hash| away(*hash) < REACH)?;
        let (tuple, freed) = self.take_beyond(hash, |tuple| rehash(tuple) == hash)?;
        let mark = Spot::of(hash, base).mark(away(hash));
        self.buckets.0[hole][BUCKET_WORDS - 1] = Some(tuple.marked(mark));
        Some(freed)
    }

    /// Moves everything into two segments.
    pub fn divide(&mut self, by: Division, rehash: &impl Fn(&Tuple) -> u64) -> [Arc<Segment>; 2] {
        let mut halves = [Segment::default(), Segment::default()];
        let mut add = |(spot, is_upper): (Spot, bool), hash: Option<u64>, tuple: Tuple| {
            let half = &mut halves[usize::from(is_upper)];
            if let Err(tuple) = half.insert(spot, tuple) {
                half.insert_beyond(hash.unwrap_or_else(|| rehash(&tuple)), tuple, rehash);
            }
        };
        // Behind a bucket that nothing has passed, so that no item is farther away afterwards: what
        // is put in before an item was before it, too.
        let buckets = &mut self.buckets.0;
        let first = buckets.iter().position(|bucket| !is_full(bucket)).map_or(0, |last| last + 1);
        let is_hashed = by.new_base != by.base;
        for bucket in (first..first + BUCKETS).map(|bucket| bucket % BUCKETS) {
            if is_hashed {
                let soon = &buckets[(bucket + FETCHED_AHEAD / BUCKET_WORDS) % BUCKETS];
                soon.iter().flatten().for_each(Tuple::fetch);
            }
            for tuple in buckets[bucket].iter_mut().filter_map(Option::take) {
                if is_hashed {
                    let hash = rehash(&tuple);
                    add(by.of_hash(hash), Some(hash), tuple);
                } else {
                    let spot = Spot::of_mark(tuple.mark(), bucket);
                    add((spot, by.is_upper(spot.tag)), None, tuple);
                }
            }
        }
        for tuple in self.beyond.take().into_iter().flat_map(|beyond| *beyond) {
            let hash = rehash(&tuple);
            add(by.of_hash(hash), Some(hash), tuple);
        }
        halves.map(Arc::new)
    }

    /// All items, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Tuple> {
        let beyond = self.beyond.iter().flat_map(|beyond| beyond.iter());
        self.buckets.0.iter().flatten().flatten().chain(beyond)
    }

    /// What must always hold; `base` is what tags leave out.
    #[cfg(test)]
    pub fn check(&self, base: u32, rehash: impl Fn(&Tuple) -> u64) {
        let are_full = |home: usize, count: usize| {
            (home..home + count).all(|bucket| is_full(&self.buckets.0[bucket % BUCKETS]))
        };
        for (number, bucket) in self.buckets.0.iter().enumerate() {
            assert!(bucket.is_sorted_by_key(Option::is_none));
            for tuple in bucket.iter().flatten() {
                let (spot, away) = (Spot::of(rehash(tuple), base), away_of(tuple.mark()));
                assert_eq!((spot.bucket(away), spot.mark(away)), (number, tuple.mark()));
                assert!(are_full(spot.home, away));
            }
        }
        for tuple in self.beyond.iter().flat_map(|beyond| beyond.iter()) {
            assert!(are_full(Spot::of(rehash(tuple), base).home, REACH));
        }
    }
}
