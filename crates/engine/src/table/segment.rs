//! A segment: one page of buckets, each one cache line of tagged words.
//!
//! ```text
//! segment (4 KiB, 64-byte aligned)
//!   header   64 B   how many keys are away from home (4 bits a bucket), depth, prefix, count
//!   bucket   64 B   x 63: eight words
//! word (8 B)        tag (16 bits of hash) | address of the entry (48 bits); zero when free
//! ```
//!
//! A key's home bucket is where its hash puts it; when that is full the key goes to one of the
//! next three, and the home's count of displaced keys tells a search whether to look on.
//!
//! # Soundness
//! Words are atomics only because other threads read them, without the partition's lock, for
//! prefetching (see `prefetch.rs`); all writes happen under `&mut` of the table. The header's
//! cells are only touched under the lock. Addresses in words were exposed by the arena.

use super::arena::PAGES;
pub(super) use super::bucket::SLOTS;
use super::bucket::{Bucket, POINTER_BITS};
use super::entry_ptr::EntryPtr;
use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const BUCKETS: usize = 63;
/// Keys that a segment can hold at most.
pub(super) const CAPACITY: usize = BUCKETS * SLOTS;
/// A segment is considered for merging when it has fewer keys than this.
pub(super) const MERGE_TRY_COUNT: usize = CAPACITY / 8;
/// How many buckets a key may live in, its home included.
const WINDOW: usize = 4;
/// A displaced count that reached this is no longer exact and stays.
const DISPLACED_MAX: u8 = 15;
const POINTER_MASK: u64 = (1 << POINTER_BITS) - 1;

/// The part of a hash that orders keys within one table: its top bits choose the segment.
pub(crate) type LocalHash = u64;

#[repr(C, align(64))]
pub(crate) struct Segment {
    displaced: [Cell<u8>; BUCKETS.div_ceil(2)],
    /// How many top bits of the hash all keys here share.
    pub(super) depth: Cell<u8>,
    count: Cell<u16>,
    /// Those bits, right-aligned.
    pub(super) prefix: Cell<u64>,
    /// When it was made, in freezings of its table.
    pub(super) generation: Cell<u64>,
    /// The rest of the header's line: a bucket that began within it would lie on two lines.
    _rest: [u64; 1],
    buckets: [Bucket; BUCKETS],
}

const _: () = assert!(size_of::<Segment>() == 4096);
const _: () = assert!(std::mem::offset_of!(Segment, buckets) == 64);

/// A place of a word in a segment.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) bucket: usize,
    pub(super) slot: usize,
}

#[inline]
pub(super) fn tag_of(local: LocalHash) -> u64 {
    // Bits that choose neither segment nor bucket in a table of any real size.
    local << 32 >> POINTER_BITS << POINTER_BITS
}

#[inline]
pub(super) fn pack(local: LocalHash, entry: EntryPtr) -> u64 {
    let address = entry.0.as_ptr().expose_provenance() as u64;
    debug_assert_eq!(address & !POINTER_MASK, 0, "user addresses have 47 bits");
    tag_of(local) | address
}

/// The word of an entry that was moved.
#[inline]
pub(super) fn moved(word: u64, to: NonNull<u8>) -> u64 {
    word & !POINTER_MASK | to.as_ptr().expose_provenance() as u64
}

#[inline]
pub(super) fn unpack(word: u64) -> EntryPtr {
    debug_assert_ne!(word, 0);
    let address = (word & POINTER_MASK) as usize;
    // SAFETY: words that are not zero hold the address of a live entry.
    EntryPtr(unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(address)) })
}

/// The home bucket, from the sixteen bits after the segment's.
#[inline]
pub(super) fn home_of(local: LocalHash, depth: u32) -> usize {
    ((local << depth >> 48) as usize * BUCKETS) >> 16
}

/// The first hash whose home lies in `bucket` or after it; `None` past the segment's end when
/// that is also the end of the table.
pub(super) fn bucket_start(prefix: u64, depth: u32, bucket: usize) -> Option<LocalHash> {
    let sixteenth = ((bucket << 16).div_ceil(BUCKETS)) as u64;
    let base = if depth == 0 { 0 } else { prefix << (64 - depth) };
    let offset = sixteenth.checked_shl(48).filter(|_| sixteenth < 1 << 16);
    match offset {
        Some(offset) => Some(base + (offset >> depth)),
        // One past the last bucket: the next segment's start.
        None if depth == 0 => None,
        None => (prefix + 1).checked_shl(64 - depth).filter(|&start| start != 0),
    }
}

impl Segment {
    pub(super) fn new(depth: u8, prefix: u64, generation: u64) -> NonNull<Segment> {
        let Some(segment) = PAGES.allocate_zeroed() else {
            alloc::handle_alloc_error(Layout::new::<Segment>())
        };
        let segment = segment.cast::<Segment>();
        // SAFETY: all-zero bytes are a valid segment, and a block is as long and aligned.
        unsafe {
            segment.as_ref().depth.set(depth);
            segment.as_ref().prefix.set(prefix);
            segment.as_ref().generation.set(generation);
            segment
        }
    }

    /// A copy.
    pub(super) fn copy(&self, generation: u64) -> NonNull<Segment> {
        let Some(copy) = PAGES.allocate() else {
            alloc::handle_alloc_error(Layout::new::<Segment>())
        };
        let copy = copy.cast::<Segment>();
        // SAFETY: a segment is plain data, the new one has its size and is nobody else's yet; who
        // reads this one at the same time writes nothing.
        unsafe {
            copy.as_ptr().copy_from_nonoverlapping(self, 1);
            copy.as_ref().generation.set(generation);
            copy
        }
    }

    /// # Safety
    /// Made by `new`, freed once, not used any more.
    pub(super) unsafe fn free(segment: NonNull<Segment>) {
        // SAFETY: by contract.
        unsafe { PAGES.free(segment.cast()) }
    }

    /// Clears all words and becomes a segment of this depth and prefix. A prefetching thread may
    /// see words or nothing.
    pub(super) fn restart(&self, depth: u8, prefix: u64) {
        for word in self.buckets.iter().flatten() {
            word.store(0, Relaxed);
        }
        self.displaced.iter().for_each(|cell| cell.set(0));
        self.count.set(0);
        self.depth.set(depth);
        self.prefix.set(prefix);
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.get() as usize
    }

    #[inline]
    pub(super) fn word(&self, place: Place) -> u64 {
        self.buckets[place.bucket][place.slot].load(Relaxed)
    }

    /// The word of this index, counted over all buckets.
    #[inline]
    pub(super) fn word_at(&self, index: usize) -> u64 {
        self.word(Place { bucket: index / SLOTS, slot: index % SLOTS })
    }

    #[inline]
    pub(super) fn set_word(&self, place: Place, word: u64) {
        self.buckets[place.bucket][place.slot].store(word, Relaxed);
    }

    /// The words of a bucket, for prefetching and scans.
    #[inline]
    pub(super) fn bucket(&self, bucket: usize) -> &[AtomicU64; SLOTS] {
        &self.buckets[bucket]
    }

    /// Finds the word of the entry that `matches`, among those with the hash's tag. The caller
    /// knows the segment's depth, so that a hit at home reads no header.
    #[inline]
    pub(super) fn find(
        &self,
        local: LocalHash,
        depth: u32,
        matches: impl Fn(EntryPtr) -> bool,
    ) -> Option<Place> {
        debug_assert_eq!(depth, u32::from(self.depth.get()));
        let home = home_of(local, depth);
        let tag = tag_of(local);
        let mut bucket = home;
        for step in 0..WINDOW {
            for (slot, word) in self.buckets[bucket].iter().enumerate() {
                let word = word.load(Relaxed);
                // Equal tags cancel out and leave the address, which is zero only for a free slot.
                let address = word ^ tag;
                if address < 1 << POINTER_BITS && word != 0 && matches(unpack(word)) {
                    return Some(Place { bucket, slot });
                }
            }
            if step == 0 && self.displaced(home) == 0 {
                return None;
            }
            bucket = if bucket + 1 == BUCKETS { 0 } else { bucket + 1 };
        }
        None
    }

    /// Puts a word into a free slot near its home; `None` when there is none.
    #[inline]
    pub(super) fn insert(&self, local: LocalHash, word: u64) -> Option<Place> {
        let home = home_of(local, u32::from(self.depth.get()));
        let mut bucket = home;
        for _ in 0..WINDOW {
            if let Some(slot) = self.buckets[bucket].iter().position(|w| w.load(Relaxed) == 0) {
                let place = Place { bucket, slot };
                self.set_word(place, word);
                self.count.set(self.count.get() + 1);
                if bucket != home {
                    self.change_displaced(home, 1);
                }
                return Some(place);
            }
            bucket = if bucket + 1 == BUCKETS { 0 } else { bucket + 1 };
        }
        None
    }

    /// Frees the slot at `place`, which holds a key of this hash.
    pub(super) fn remove(&self, local: LocalHash, place: Place) {
        self.set_word(place, 0);
        self.count.set(self.count.get() - 1);
        let home = home_of(local, u32::from(self.depth.get()));
        if place.bucket != home {
            self.change_displaced(home, -1);
        }
    }

    /// All words that are not free, with their places, in bucket order.
    pub(super) fn words(&self) -> impl Iterator<Item = (Place, u64)> + '_ {
        (0..BUCKETS).flat_map(move |bucket| {
            (0..SLOTS).filter_map(move |slot| {
                let place = Place { bucket, slot };
                let word = self.word(place);
                (word != 0).then_some((place, word))
            })
        })
    }

    /// The words whose home may be `bucket`: those in it and, if some were displaced, beyond.
    pub(super) fn words_near(&self, bucket: usize) -> impl Iterator<Item = u64> + '_ {
        let steps = if self.displaced(bucket) == 0 { 1 } else { WINDOW };
        (0..steps).flat_map(move |step| {
            let bucket = (bucket + step) % BUCKETS;
            self.buckets[bucket].iter().map(|w| w.load(Relaxed)).filter(|&word| word != 0)
        })
    }

    #[inline]
    fn displaced(&self, bucket: usize) -> u8 {
        self.displaced[bucket / 2].get() >> (4 * (bucket % 2)) & 0x0f
    }

    fn change_displaced(&self, bucket: usize, by: i8) {
        let old = self.displaced(bucket);
        if old == DISPLACED_MAX {
            return;
        }
        debug_assert!(by > 0 || old > 0, "no key is away from home bucket {bucket}");
        let shift = 4 * (bucket % 2);
        let cell = &self.displaced[bucket / 2];
        cell.set(cell.get() & !(0x0f << shift) | old.wrapping_add_signed(by) << shift);
    }
}
