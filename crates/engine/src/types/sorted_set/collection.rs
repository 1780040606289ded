//! Implements [`Collection`] for sorted sets, and their form in the log: score and member of each,
//! and what was set or removed.

use super::packed::{put, take};
use super::score::write_score_17;
use super::{Indexed, Repr, SortedSet};
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::DumpValue;
use crossbeam_epoch::Guard;
use ladon_record::{KeyHash, ValueKind, varint};

/// The members that follow have the scores in front of them now.
pub(crate) const OP_SET: u8 = 1;
/// The members that follow were removed.
pub(crate) const OP_REMOVE: u8 = 2;

/// Appends a score that a member has now to an `OP_SET`.
pub(crate) fn put_score(op: &mut Vec<u8>, member: &[u8], score: f64) {
    if op.is_empty() {
        op.push(OP_SET);
    }
    put(op, score, member);
}

/// Appends a removed member to an `OP_REMOVE`.
pub(crate) fn put_removed(op: &mut Vec<u8>, member: &[u8]) {
    if op.is_empty() {
        op.push(OP_REMOVE);
    }
    varint::put_bytes(op, member);
}

impl Collection for SortedSet {
    const KIND: ValueKind = ValueKind::SortedSet;
    /// The scores say all about the order.
    const ORDERED: bool = false;

    fn len(&self) -> usize {
        SortedSet::len(self)
    }

    #[inline]
    fn bytes(&self) -> usize {
        SortedSet::bytes(self)
    }

    fn encoding(&self) -> &'static str {
        SortedSet::encoding(self)
    }

    fn drop_effort(&self) -> usize {
        match &self.0 {
            Repr::Packed(_) => 1,
            Repr::Indexed(indexed) => indexed.len(),
        }
    }

    fn compact(&mut self) -> usize {
        match &mut self.0 {
            Repr::Packed(packed) => packed.compact(),
            _ => 0,
        }
    }

    fn duplicate(&self, env: Env<'_>) -> SortedSet {
        SortedSet(match &self.0 {
            Repr::Packed(packed) => Repr::Packed(packed.clone()),
            Repr::Indexed(indexed) => {
                let walk = |visit: &mut dyn FnMut(&[u8], f64)| {
                    indexed.for_each(0..indexed.len(), visit);
                };
                Repr::Indexed(Box::new(Indexed::of_ordered(env.hasher, walk)))
            }
        })
    }

    fn prefetch_element(&self, hash: KeyHash, guard: &Guard) -> BucketHint {
        self.prefetch(AccessedPart::Element(hash), guard)
    }

    fn freeze(&mut self) -> Option<SortedSet> {
        match &mut self.0 {
            Repr::Indexed(indexed) => Some(SortedSet(Repr::Indexed(Box::new(indexed.freeze())))),
            Repr::Packed(_) => None,
        }
    }

    fn revert(&mut self, before: &SortedSet, ops: &mut dyn Iterator<Item = &[u8]>, env: Env<'_>) {
        let limits = env.limits.of_sorted_sets();
        for op in ops {
            let Some((&tag, mut rest)) = op.split_first() else { continue };
            while !rest.is_empty() {
                let member = match tag {
                    OP_SET => take(&mut rest).map(|(_, member)| member),
                    _ => varint::take_bytes(&mut rest),
                };
                let Some(member) = member else { break };
                match before.score(env.hasher, member) {
                    Some(score) => {
                        self.update(env.hasher, limits, member, |_| Some(score));
                    }
                    None => {
                        self.remove(env.hasher, member);
                    }
                }
            }
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]])) {
        let mut text = Vec::new();
        SortedSet::for_each(self, 0..self.len(), |member, score| {
            text.clear();
            write_score_17(&mut text, score);
            visit(&[member, &text]);
        });
    }

    /// Each member's score (8 bytes, little-endian), length and bytes, in order.
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Packed(packed) => out.extend_from_slice(packed.as_bytes()),
            Repr::Indexed(indexed) => {
                indexed.for_each(0..indexed.len(), |member, score| put(out, score, member));
            }
        }
    }

    fn decode(mut body: &[u8], env: Env<'_>) -> Option<SortedSet> {
        let limits = env.limits.of_sorted_sets();
        let mut gathered = super::Gathered::default();
        while !body.is_empty() {
            let (score, member) = take(&mut body)?;
            gathered.set(env.hasher, member, |_| score);
        }
        (!gathered.is_empty()).then(|| gathered.into_sorted_set(limits))
    }

    /// `OP_SET`, then scores and members, or `OP_REMOVE`, then members.
    fn apply_op(&mut self, op: &[u8], env: Env<'_>) -> Option<()> {
        let limits = env.limits.of_sorted_sets();
        let (&tag, mut rest) = op.split_first()?;
        while !rest.is_empty() {
            match tag {
                OP_SET => {
                    let (score, member) = take(&mut rest)?;
                    self.update(env.hasher, limits, member, |_| Some(score));
                }
                OP_REMOVE => {
                    self.remove(env.hasher, varint::take_bytes(&mut rest)?);
                }
                _ => return None,
            }
        }
        matches!(tag, OP_SET | OP_REMOVE).then_some(())
    }

    fn saving(&self, piece: usize) -> Saving {
        match &self.0 {
            Repr::Indexed(indexed) if indexed.len() > 2 * piece => Saving::InRanges,
            _ => Saving::Whole,
        }
    }

    fn encode_range(&self, from: u64, env: Env<'_>, op: &mut Vec<u8>) -> (u64, usize) {
        if op.is_empty() {
            op.push(OP_SET);
        }
        let Repr::Indexed(indexed) = &self.0 else { return (u64::MAX, 0) };
        let mut count = 0;
        let last = indexed.table().segment_from(env.hasher, from, |entry| {
            put(op, super::indexed::score_of(entry), entry.key());
            count += 1;
        });
        (last, count)
    }

    /// What has left the packed form does not go back: one that is packed is another.
    fn is_in_ranges(&self) -> bool {
        !self.is_packed()
    }

    fn for_ranges() -> Option<SortedSet> {
        Some(SortedSet::indexed())
    }

    fn show_body(body: &[u8]) -> Option<DumpValue<'_>> {
        let mut rest = body;
        let mut list = Vec::new();
        while !rest.is_empty() {
            let (score, member) = take(&mut rest)?;
            let parts =
                vec![("member", DumpValue::Bytes(member)), ("score", DumpValue::Float(score))];
            list.push(DumpValue::Record(parts));
        }
        Some(DumpValue::List(list))
    }

    fn show_op(op: &[u8]) -> Option<DumpValue<'_>> {
        let (&tag, rest) = op.split_first()?;
        Some(DumpValue::Record(vec![match tag {
            OP_SET => ("set", Self::show_body(rest)?),
            OP_REMOVE => ("remove", DumpValue::list_of_bytes(rest)?),
            _ => return None,
        }]))
    }
}
