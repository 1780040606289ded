//! A table's directory: which segment holds which top bits of the hash.
//!
//! Both pointers on the way to a bucket carry a depth in their low bits, so that a search reads
//! no header before the bucket itself:
//!
//! ```text
//! root:  address of the slots  | how many top bits of the hash choose the slot
//! slot:  address of a segment  | how many top bits all keys of that segment share
//! ```
//!
//! # Soundness
//! Slots and segments are aligned to 64 bytes, so six low bits are free. The pointers are atomics
//! because other threads follow them for prefetching (`prefetch.rs`); writes happen under `&mut`
//! of the table. Slots that were replaced are freed through `crossbeam_epoch`, so that a pinned
//! reader may still hold them.

use super::segment::{LocalHash, Segment};
use std::alloc::{self, Layout};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const ALIGN: usize = 64;
const DEPTH_MASK: usize = ALIGN - 1;

type Slot = AtomicPtr<Segment>;

/// Points to the current directory; null while the table is empty.
#[derive(Default)]
pub(crate) struct Root(AtomicPtr<Slot>);

/// A directory, as its root describes it; good until the root is changed.
#[derive(Clone, Copy)]
pub(super) struct Directory {
    slots: NonNull<Slot>,
    /// How many top bits of the hash choose the slot.
    pub(super) depth: u32,
}

impl Root {
    #[inline]
    pub(super) fn load(&self) -> Option<Directory> {
        let tagged = self.0.load(Acquire);
        let depth = tagged.addr() & DEPTH_MASK;
        let slots = NonNull::new(tagged.map_addr(|address| address & !DEPTH_MASK))?;
        Some(Directory { slots, depth: depth as u32 })
    }

    pub(super) fn store(&self, directory: Option<Directory>) {
        let tagged = directory.map_or(ptr::null_mut(), |directory| {
            directory.slots.as_ptr().map_addr(|address| address | directory.depth as usize)
        });
        self.0.store(tagged, Release);
    }
}

impl Directory {
    /// A directory of 2^`depth` segments; freed by `free`.
    pub(super) fn new(depth: u32, segments: impl Iterator<Item = NonNull<Segment>>) -> Directory {
        let layout = Self::layout(depth);
        // SAFETY: the layout has a size; all-zero slots are null pointers.
        let slots = unsafe { alloc::alloc_zeroed(layout) }.cast::<Slot>();
        let Some(slots) = NonNull::new(slots) else { alloc::handle_alloc_error(layout) };
        let directory = Directory { slots, depth };
        let mut filled = 0;
        for (slot, segment) in segments.enumerate().take(directory.len()) {
            directory.set(slot, segment);
            filled = slot + 1;
        }
        assert_eq!(filled, directory.len(), "a directory has no empty slots");
        directory
    }

    /// The same again; freed by `free`.
    pub(super) fn copy(self) -> Directory {
        let layout = Self::layout(self.depth);
        // SAFETY: the layout has a size; all-zero slots are null pointers.
        let slots = unsafe { alloc::alloc_zeroed(layout) }.cast::<Slot>();
        let Some(slots) = NonNull::new(slots) else { alloc::handle_alloc_error(layout) };
        let copy = Directory { slots, depth: self.depth };
        for slot in 0..self.len() {
            // With the depths in them: no segment is looked at.
            copy.slot(slot).store(self.slot(slot).load(Relaxed), Relaxed);
        }
        copy
    }

    /// # Safety
    /// No longer any root's, freed once, and no pinned reader left.
    pub(super) unsafe fn free(self) {
        // SAFETY: by contract; allocated with this layout.
        unsafe { alloc::dealloc(self.slots.as_ptr().cast(), Self::layout(self.depth)) }
    }

    fn layout(depth: u32) -> Layout {
        let bytes = size_of::<Slot>() << depth;
        Layout::from_size_align(bytes, ALIGN).expect("depth is bounded by the table")
    }

    #[inline]
    fn slot(&self, slot: usize) -> &Slot {
        debug_assert!(slot < self.len());
        // SAFETY: within the allocation, which lives as long as this view may be used.
        unsafe { self.slots.add(slot).as_ref() }
    }

    #[inline]
    pub(super) fn slot_of(&self, local: LocalHash) -> usize {
        // Two shifts, as one by 64 is not defined.
        (local >> 1 >> (63 - self.depth)) as usize
    }

    /// The segment of a hash.
    #[inline]
    pub(super) fn segment(&self, local: LocalHash) -> NonNull<Segment> {
        self.at(self.slot_of(local))
    }

    /// The segment of a hash, and its depth.
    #[inline]
    pub(super) fn segment_and_depth(&self, local: LocalHash) -> (NonNull<Segment>, u32) {
        let tagged = self.slot(self.slot_of(local)).load(Acquire);
        (untag(tagged), (tagged.addr() & DEPTH_MASK) as u32)
    }

    #[inline]
    pub(super) fn at(&self, slot: usize) -> NonNull<Segment> {
        untag(self.slot(slot).load(Acquire))
    }

    pub(super) fn set(&self, slot: usize, segment: NonNull<Segment>) {
        // SAFETY: the caller's segment is live.
        let depth = usize::from(unsafe { segment.as_ref() }.depth.get());
        self.slot(slot).store(segment.as_ptr().map_addr(|address| address | depth), Release);
    }

    pub(super) fn len(&self) -> usize {
        1 << self.depth
    }

    /// Every segment once, in hash order.
    pub(super) fn segments(self) -> impl Iterator<Item = NonNull<Segment>> {
        let mut previous = None;
        (0..self.len()).filter_map(move |slot| {
            let segment = self.at(slot);
            let new = previous != Some(segment);
            previous = Some(segment);
            new.then_some(segment)
        })
    }
}

#[inline]
fn untag(tagged: *mut Segment) -> NonNull<Segment> {
    // SAFETY: slots always hold a segment, whose address is not zero.
    unsafe { NonNull::new_unchecked(tagged.map_addr(|address| address & !DEPTH_MASK)) }
}
