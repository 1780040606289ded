//! A group: the segments of the hashes that have their highest bits in common.

use super::segment::{Division, Segment, Spot, TAG_BITS};
use crate::tuple::Tuple;
use arrayvec::ArrayVec;
use std::sync::Arc;

/// A segment of a group has at most so many more bits in common than the group.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Hashes of one segment have at most so many bits in common: tags need the rest.
const DEPTH_MAX: u32 = u64::BITS - TAG_BITS;
/// As segments are divided, their tags tell fewer items apart. Then they are taken anew.
const TAG_BITS_MIN: u32 = 8;

/// See the module. A clone shares the segments.
#[derive(Clone)]
pub(super) struct Group {
    depth: u32,
    /// By the [`SLOT_BITS`] of the hash behind the common ones. A segment of a smaller depth is in
    /// there several times, in a row.
    slots: [Slot; SLOTS],
    segments: ArrayVec<Arc<Segment>, SLOTS>,
}

#[derive(Clone, Copy)]
struct Slot {
    segment: u8,
    /// How many of the highest bits the segment's hashes have in common.
    depth: u8,
    /// How many of them tags leave out.
    base: u8,
}

/// What came of dividing a segment.
pub(super) enum Divided {
    /// With the bytes of what was, and is, beside segments.
    Done { before: usize, after: usize },
    /// The group has to be divided first.
    GroupFirst,
    /// There are no more bits.
    Never,
}

impl Group {
    /// With an empty segment.
    pub fn new() -> Group {
        let slots = [Slot { segment: 0, depth: 0, base: 0 }; SLOTS];
        Group { depth: 0, slots, segments: ArrayVec::from_iter([Arc::default()]) }
    }

    /// How many of the highest bits all hashes have in common.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    fn slot(&self, hash: u64) -> Slot {
        self.slots[(hash << self.depth >> (u64::BITS - SLOT_BITS)) as usize]
    }

    /// The segment of a hash, and what it needs of the hash.
    #[inline]
    pub fn segment(&self, hash: u64) -> (&Segment, Spot) {
        let Slot { segment, base, .. } = self.slot(hash);
        (&self.segments[usize::from(segment)], Spot::of(hash, u32::from(base)))
    }

    /// As [`Group::segment`], to change it; with what its tags leave out.
    #[inline]
    pub fn segment_mut(&mut self, hash: u64) -> (&mut Segment, Spot, u32) {
        let Slot { segment, base, .. } = self.slot(hash);
        let base = u32::from(base);
        let segment = Arc::make_mut(&mut self.segments[usize::from(segment)]);
        (segment, Spot::of(hash, base), base)
    }

    /// How many bits the hashes of this one's segment have in common.
    pub fn depth_of_segment(&self, hash: u64) -> u32 {
        u32::from(self.slot(hash).depth)
    }

    /// Divides the segment of a hash by one more bit.
    pub fn divide(&mut self, hash: u64, rehash: &impl Fn(&Tuple) -> u64) -> Divided {
        let Slot { segment, depth, base } = self.slot(hash);
        let (depth, base) = (u32::from(depth), u32::from(base));
        if depth >= DEPTH_MAX {
            return Divided::Never;
        }
        let slot_bits = depth - self.depth;
        if slot_bits == SLOT_BITS {
            return Divided::GroupFirst;
        }
        let are_tags_good = TAG_BITS - (depth + 1 - base) >= TAG_BITS_MIN;
        let new_base = if are_tags_good { base } else { depth + 1 };
        let divided = &mut self.segments[usize::from(segment)];
        let before = divided.bytes_beyond();
        let [lower, upper] =
            Arc::make_mut(divided).divide(Division { depth, base, new_base }, rehash);
        let after = lower.bytes_beyond() + upper.bytes_beyond();
        *divided = lower;
        let added = self.segments.len() as u8;
        self.segments.push(upper);
        let places = SLOTS >> slot_bits;
        let at = (hash << self.depth >> (u64::BITS - SLOT_BITS)) as usize & !(places - 1);
        let slot = |segment| Slot { segment, depth: depth as u8 + 1, base: new_base as u8 };
        self.slots[at..at + places / 2].fill(slot(segment));
        self.slots[at + places / 2..at + places].fill(slot(added));
        Divided::Done { before, after }
    }

    /// The groups of the lower and the upper half of the hashes. Every segment has one more bit in
    /// common than the group.
    pub fn halves(&self) -> [Group; 2] {
        [&self.slots[..SLOTS / 2], &self.slots[SLOTS / 2..]].map(|slots| {
            let mut half =
                Group { depth: self.depth + 1, slots: self.slots, segments: ArrayVec::new() };
            let mut last = None;
            for (at, slot) in slots.iter().enumerate() {
                if last != Some(slot.segment) {
                    last = Some(slot.segment);
                    half.segments.push(Arc::clone(&self.segments[usize::from(slot.segment)]));
                }
                let segment = half.segments.len() as u8 - 1;
                half.slots[2 * at..2 * at + 2].fill(Slot { segment, ..*slot });
            }
            half
        })
    }

    /// The group's segments.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().map(|segment| &**segment)
    }

    /// What must always hold.
    #[cfg(test)]
    pub fn check(&self, prefix: u64, rehash: impl Fn(&Tuple) -> u64) {
        let highest = |hash: u64, bits: u32| hash.checked_shr(u64::BITS - bits).unwrap_or(0);
        let mut seen = std::collections::BTreeSet::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let depth = u32::from(slot.depth);
            assert!((self.depth..=self.depth + SLOT_BITS).contains(&depth));
            assert!(u32::from(slot.base) <= depth && depth - u32::from(slot.base) < TAG_BITS);
            let first = prefix | (at as u64) << (u64::BITS - SLOT_BITS) >> self.depth;
            if seen.insert(slot.segment) {
                let segment = &self.segments[usize::from(slot.segment)];
                segment.check(u32::from(slot.base), &rehash);
                let of_slot = |tuple| highest(rehash(tuple), depth) == highest(first, depth);
                assert!(segment.iter().all(of_slot));
            }
        }
        assert_eq!(seen.len(), self.segments.len());
    }
}
