//! Implements [`Collection`] for sets, and their form in the log: a whole set's members, and what
//! was added or removed.

use super::{Repr, SetValue};
use crate::prefetch_target::Inside;
use crate::table::Table;
use crate::table::bucket::BucketHint;
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::Shown;
use crossbeam_epoch::Guard;
use ladon_model::{KeyHash, varint};

/// The members that follow were added.
pub(crate) const OP_ADD: u8 = 1;
/// The members that follow were removed.
pub(crate) const OP_REMOVE: u8 = 2;

impl SetValue {
    /// The table, if the set is on one.
    fn as_table(&self) -> Option<&Table> {
        match &self.0 {
            Repr::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// The next of the members that were logged.
fn take_member<'a>(members: &mut &'a [u8]) -> Option<&'a [u8]> {
    (!members.is_empty()).then(|| varint::take_bytes(members)).flatten()
}

impl Collection for SetValue {
    const ORDERED: bool = false;

    fn len(&self) -> usize {
        SetValue::len(self)
    }

    #[inline]
    fn bytes(&self) -> usize {
        SetValue::bytes(self)
    }

    fn encoding(&self) -> &'static str {
        SetValue::encoding(self)
    }

    fn drop_effort(&self) -> usize {
        self.as_table().map_or(1, Table::len)
    }

    fn compact(&mut self) -> usize {
        match &mut self.0 {
            Repr::Packed(packed) => packed.compact(),
            _ => 0,
        }
    }

    fn duplicate(&self, env: Env<'_>) -> SetValue {
        SetValue(match &self.0 {
            Repr::Ints(ints) => Repr::Ints(ints.clone()),
            Repr::Packed(packed) => Repr::Packed(packed.clone()),
            Repr::Table(_) => self.on_table(env.hasher),
        })
    }

    fn prefetch_element(&self, hash: KeyHash, guard: &Guard) -> BucketHint {
        self.prefetch(Inside::Element(hash), guard)
    }

    fn freeze(&mut self) -> Option<SetValue> {
        match &mut self.0 {
            Repr::Table(table) => Some(SetValue(Repr::Table(Box::new(table.freeze())))),
            _ => None,
        }
    }

    fn revert(&mut self, before: &SetValue, ops: &mut dyn Iterator<Item = &[u8]>, env: Env<'_>) {
        let limits = env.limits.of_sets();
        for op in ops {
            let mut members = op.get(1..).unwrap_or_default();
            while let Some(member) = take_member(&mut members) {
                if before.contains(env.hasher, member) {
                    self.add(env.hasher, limits, member);
                } else {
                    self.remove(env.hasher, member);
                }
            }
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]])) {
        self.members().for_each(|member| member.with_bytes(|bytes| visit(&[bytes])));
    }

    /// The members, each as length and bytes.
    fn encode(&self, out: &mut Vec<u8>) {
        match self.packed_bytes() {
            Some(bytes) => out.extend_from_slice(bytes),
            None => {
                self.members().for_each(|m| m.with_bytes(|bytes| varint::put_bytes(out, bytes)))
            }
        }
    }

    fn decode(mut body: &[u8], env: Env<'_>) -> Option<SetValue> {
        let limits = env.limits.of_sets();
        let mut set: Option<SetValue> = None;
        while !body.is_empty() {
            let member = varint::take_bytes(&mut body)?;
            // Expect few: the set converts itself where the limits say so.
            set.get_or_insert_with(|| SetValue::for_members(member, 1, limits))
                .add(env.hasher, limits, member);
        }
        let mut set = set?;
        set.shrink_to_fit();
        Some(set)
    }

    /// `OP_*`, then members.
    fn apply_op(&mut self, op: &[u8], env: Env<'_>) -> Option<()> {
        let limits = env.limits.of_sets();
        let (&tag, mut members) = op.split_first()?;
        if !matches!(tag, OP_ADD | OP_REMOVE) {
            return None;
        }
        while !members.is_empty() {
            let member = varint::take_bytes(&mut members)?;
            if tag == OP_ADD {
                self.add(env.hasher, limits, member);
            } else {
                self.remove(env.hasher, member);
            }
        }
        Some(())
    }

    fn saving(&self, piece: usize) -> Saving {
        match self.as_table() {
            Some(table) if table.len() > 2 * piece => Saving::InRanges,
            _ => Saving::Whole,
        }
    }

    fn encode_range(&self, from: u64, env: Env<'_>, op: &mut Vec<u8>) -> (u64, usize) {
        if op.is_empty() {
            op.push(OP_ADD);
        }
        let mut count = 0;
        let table = self.as_table();
        let last = table.map(|table| {
            table.segment_from(env.hasher, from, |member| {
                varint::put_bytes(op, member.key());
                count += 1;
            })
        });
        (last.unwrap_or(u64::MAX), count)
    }

    /// A set on a table stays on it: one that is not is another.
    fn is_in_ranges(&self) -> bool {
        self.as_table().is_some()
    }

    fn for_ranges() -> Option<SetValue> {
        Some(SetValue::table())
    }

    fn show_body(body: &[u8]) -> Option<Shown<'_>> {
        Shown::list_of_bytes(body)
    }

    fn show_op(op: &[u8]) -> Option<Shown<'_>> {
        let (&tag, members) = op.split_first()?;
        let verb = match tag {
            OP_ADD => "add",
            OP_REMOVE => "remove",
            _ => return None,
        };
        Some(Shown::Record(vec![(verb, Shown::list_of_bytes(members)?)]))
    }
}
