//! Sorted sets: packed, or a table with a counted tree, by size as Redis chooses.
//!
//! Members are ordered by score, and members with the same score by their bytes; the first has rank
//! 0. No score is NaN. A sorted set that was converted from the packed form does not go back; a
//! command that stores it anew starts with the packed form.

mod collection;
mod gather;
mod indexed;
mod item;
mod packed;
mod range;
mod score;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use collection::{OP_REMOVE, put_removed, put_score};
pub use gather::Gathered;
pub use range::{LexBound, LexRange, ScoreRange};
pub use score::write_score_17;

use crate::prefetch::prefetch_bytes;
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crossbeam_epoch::Guard;
use indexed::Indexed;
use ladon_record::KeyHasher;
use packed::Packed;
use std::ops::Range;

/// Sizes up to which sorted sets stay packed.
#[derive(Clone, Copy, Debug)]
pub struct SortedSetLimits {
    pub(crate) entries: usize,
    pub(crate) value: usize,
}

impl SortedSetLimits {
    /// For results that are only sent: packing is not worth it, and would, as in Redis, lose the
    /// sign of a zero, which a reply shows.
    pub const NEVER_PACKED: SortedSetLimits = SortedSetLimits { entries: 0, value: 0 };
}

/// Distinct members in order of their scores.
pub struct SortedSet(Repr);

enum Repr {
    Packed(Packed),
    Indexed(Box<Indexed>),
}

impl std::fmt::Debug for SortedSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SortedSet({}, {} members)", self.encoding(), self.len())
    }
}

impl SortedSet {
    /// An empty sorted set, fit for about `expected` members like one of `bytes` bytes.
    pub fn for_members(expected: usize, bytes: usize, limits: SortedSetLimits) -> SortedSet {
        if expected <= limits.entries && bytes <= limits.value {
            SortedSet(Repr::Packed(Packed::default()))
        } else {
            SortedSet::indexed()
        }
    }

    /// An empty sorted set that is not packed.
    pub fn indexed() -> SortedSet {
        SortedSet(Repr::Indexed(Box::new(Indexed::new())))
    }

    /// See [`crate::Object::prefetch`].
    pub(crate) fn prefetch(&self, inside: AccessedPart, guard: &Guard) -> BucketHint {
        match (&self.0, inside) {
            (Repr::Indexed(indexed), AccessedPart::Element(hash)) => {
                return indexed.table().prefetch_bucket(hash.0, guard);
            }
            (Repr::Indexed(_), _) => {}
            (Repr::Packed(packed), _) => prefetch_bytes(packed.as_bytes()),
        }
        BucketHint::NONE
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match self.0 {
            Repr::Packed(_) => "listpack",
            // The name that clients know; Ladon has no skip list.
            Repr::Indexed(_) => "skiplist",
        }
    }

    /// Whether it is in the small form.
    pub fn is_packed(&self) -> bool {
        matches!(self.0, Repr::Packed(_))
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.len(),
            Repr::Indexed(indexed) => indexed.len(),
        }
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beyond the value itself.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.bytes(),
            Repr::Indexed(indexed) => indexed.bytes(),
        }
    }

    /// A member's score.
    #[inline]
    pub fn score(&self, hasher: &KeyHasher, member: &[u8]) -> Option<f64> {
        match &self.0 {
            Repr::Packed(packed) => packed.find(member).map(|place| place.score),
            Repr::Indexed(indexed) => indexed.score(hasher, member),
        }
    }

    /// Gives a member the score that `decide` makes of the one it has; `None` leaves all as it
    /// is. Returns the old score.
    pub fn update(
        &mut self,
        hasher: &KeyHasher,
        limits: SortedSetLimits,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        let packed = match &mut self.0 {
            Repr::Indexed(indexed) => return indexed.update(hasher, member, decide),
            Repr::Packed(packed) => packed,
        };
        let Some(place) = packed.find(member) else {
            let score = decide(None)?;
            if packed.len() < limits.entries && member.len() <= limits.value {
                packed.insert(score, member);
                return None;
            }
            self.become_indexed(hasher).update(hasher, member, |_| Some(score));
            return None;
        };
        let old = place.score;
        if let Some(score) = decide(Some(old)).filter(|&score| score != old) {
            packed.remove_place(&place);
            packed.insert(score, member);
        }
        Some(old)
    }

    /// Before about `expected` members are added: leaves the packed form at once if they are many.
    pub fn expect(&mut self, hasher: &KeyHasher, limits: SortedSetLimits, expected: usize) {
        if self.is_packed() && expected > limits.entries {
            self.become_indexed(hasher);
        }
    }

    /// Removes a member; the score it had.
    pub fn remove(&mut self, hasher: &KeyHasher, member: &[u8]) -> Option<f64> {
        match &mut self.0 {
            Repr::Packed(packed) => {
                let place = packed.find(member)?;
                packed.remove_place(&place);
                Some(place.score)
            }
            Repr::Indexed(indexed) => indexed.remove(hasher, member),
        }
    }

    /// Removes the members of these ranks; `visit` sees them in order.
    pub fn remove_ranks(
        &mut self,
        hasher: &KeyHasher,
        ranks: Range<usize>,
        visit: impl FnMut(&[u8], f64),
    ) {
        match &mut self.0 {
            Repr::Packed(packed) => packed.remove_ranks(ranks, visit),
            Repr::Indexed(indexed) => indexed.remove_ranks(hasher, ranks, visit),
        }
    }

    /// A member's rank and score.
    pub fn rank(&self, hasher: &KeyHasher, member: &[u8]) -> Option<(usize, f64)> {
        match &self.0 {
            Repr::Packed(packed) => packed.find(member).map(|place| (place.rank, place.score)),
            Repr::Indexed(indexed) => indexed.rank(hasher, member),
        }
    }

    /// The ranks of the members whose scores are in a range.
    pub fn ranks_by_score(&self, range: &ScoreRange) -> Range<usize> {
        let count = |before: &dyn Fn(f64) -> bool| match &self.0 {
            Repr::Packed(packed) => packed.iter().take_while(|(score, _)| before(*score)).count(),
            Repr::Indexed(indexed) => indexed.count_before_score(before),
        };
        let start = count(&|score| range.is_below(score));
        start..count(&|score| range.is_up_to_end(score)).max(start)
    }

    /// The ranks of the members that are in a range of members; it means something only where all
    /// scores are the same.
    pub fn ranks_by_lex(&self, range: &LexRange<'_>) -> Range<usize> {
        let count = |before: &dyn Fn(&[u8]) -> bool| match &self.0 {
            Repr::Packed(packed) => packed.iter().take_while(|(_, member)| before(member)).count(),
            Repr::Indexed(indexed) => indexed.count_before(|member, _| before(member)),
        };
        let start = count(&|member| range.is_below(member));
        start..count(&|member| range.is_up_to_end(member)).max(start)
    }

    /// Visits the members of these ranks in order.
    pub fn for_each(&self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], f64)) {
        match &self.0 {
            Repr::Packed(packed) => {
                let members = packed.iter().skip(ranks.start).take(ranks.len());
                members.for_each(|(score, member)| visit(member, score));
            }
            Repr::Indexed(indexed) => indexed.for_each(ranks, visit),
        }
    }

    /// Visits the members of these ranks in order, until `visit` says no.
    pub fn for_each_while(&self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], f64) -> bool) {
        match &self.0 {
            Repr::Packed(packed) => {
                let mut members = packed.iter().skip(ranks.start).take(ranks.len());
                members.all(|(score, member)| visit(member, score));
            }
            Repr::Indexed(indexed) => indexed.for_each_while(ranks, visit),
        }
    }

    /// Visits the members of these ranks from the last to the first.
    pub fn for_each_reversed(&self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], f64)) {
        match &self.0 {
            Repr::Packed(packed) => {
                let members: Vec<_> = packed.iter().skip(ranks.start).take(ranks.len()).collect();
                members.into_iter().rev().for_each(|(score, member)| visit(member, score));
            }
            Repr::Indexed(indexed) => indexed.for_each_reversed(ranks, visit),
        }
    }

    /// Visits members from a cursor (0 to begin) on, at least about `count` of them unless the end
    /// comes first, or `visit` says that it is enough. Returns the next cursor, 0 at the end. A
    /// member that stays for the whole scan is visited at least once.
    pub fn scan(
        &self,
        hasher: &KeyHasher,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], f64) -> bool,
    ) -> u64 {
        match &self.0 {
            Repr::Packed(_) => {
                self.for_each(0..self.len(), |member, score| {
                    visit(member, score);
                });
                0
            }
            Repr::Indexed(indexed) => indexed.scan(hasher, cursor, count, visit),
        }
    }

    fn become_indexed(&mut self, hasher: &KeyHasher) -> &mut Indexed {
        let walk = |visit: &mut dyn FnMut(&[u8], f64)| self.for_each(0..self.len(), visit);
        self.0 = Repr::Indexed(Box::new(Indexed::of_ordered(hasher, walk)));
        match &mut self.0 {
            Repr::Indexed(indexed) => indexed,
            Repr::Packed(_) => unreachable!("just made"),
        }
    }
}
