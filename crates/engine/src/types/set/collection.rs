//! Implements [`Collection`] for sets, and their form in the log: a whole set's members, and what
//! was added or removed. Where members have times, both are items of a hash without values.

use super::{Repr, SetValue};
use crate::prefetch_target::AccessedPart;
use crate::table::Table;
use crate::table::bucket::BucketHint;
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::DumpValue;
use crate::types::hash::item::Item;
use crossbeam_epoch::Guard;
use ladon_record::{KeyHash, ValueKind, varint};

/// The members that follow were added.
pub(crate) const OP_ADD: u8 = 1;
/// The members that follow were removed.
pub(crate) const OP_REMOVE: u8 = 2;
/// Items of a hash follow, whose values are empty: members and when they expire.
pub(crate) const OP_ITEMS: u8 = 3;

/// What a body of items begins with: the length of no member. A version that does not know items
/// refuses such a body as malformed.
const BODY_OF_ITEMS: u64 = u64::MAX;

/// Appends a member to an operation, whose first byte says what happened to all of them.
#[inline]
pub(crate) fn put_member(op: &mut Vec<u8>, tag: u8, member: &[u8]) {
    if op.is_empty() {
        op.push(tag);
    }
    varint::put_bytes(op, member);
}

/// Appends an item to an operation of items.
pub(super) fn put_item(op: &mut Vec<u8>, item: Item<'_>) {
    if op.is_empty() {
        op.push(OP_ITEMS);
    }
    item.put(op);
}

impl SetValue {
    /// The table, if the set is on one.
    fn as_table(&self) -> Option<&Table> {
        match &self.0 {
            Repr::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// The next member of an operation with this tag.
fn take_name<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    match (tag, rest.is_empty()) {
        (_, true) => None,
        (OP_ITEMS, false) => Item::take(rest).map(Item::field),
        (_, false) => varint::take_bytes(rest),
    }
}

/// The items of a body, if it is one of items.
fn items_of(mut body: &[u8]) -> Option<&[u8]> {
    (varint::take(&mut body)? == BODY_OF_ITEMS).then_some(body)
}

/// A member and its time as tools show it; `None` if the time is out of range.
fn shown_item(member: &[u8], at: u64) -> Option<DumpValue<'_>> {
    Some(match at {
        0 => DumpValue::Bytes(member),
        at => {
            DumpValue::List(vec![DumpValue::Bytes(member), DumpValue::Int(i64::try_from(at).ok()?)])
        }
    })
}

impl Collection for SetValue {
    const KIND: ValueKind = ValueKind::Set;
    const ORDERED: bool = false;

    fn len(&self) -> usize {
        SetValue::len(self)
    }

    fn is_empty(&self) -> bool {
        SetValue::len(self) == 0 && self.hidden() == 0
    }

    #[inline]
    fn bytes(&self) -> usize {
        SetValue::bytes(self)
    }

    fn encoding(&self) -> &'static str {
        SetValue::encoding(self)
    }

    fn drop_effort(&self) -> usize {
        match &self.0 {
            Repr::Ints(_) | Repr::Packed(_) => 1,
            Repr::Table(table) => table.len(),
            Repr::Timed(hash) => hash.drop_effort(),
        }
    }

    fn compact(&mut self) -> usize {
        match &mut self.0 {
            Repr::Packed(packed) => packed.compact(),
            Repr::Timed(hash) => hash.compact(),
            Repr::Ints(_) | Repr::Table(_) => 0,
        }
    }

    fn duplicate(&self, env: Env<'_>) -> SetValue {
        SetValue(match &self.0 {
            Repr::Ints(ints) => Repr::Ints(ints.clone()),
            Repr::Packed(packed) => Repr::Packed(packed.clone()),
            Repr::Table(_) => self.on_table(env.hasher),
            Repr::Timed(hash) => Repr::Timed(Box::new(hash.duplicate(env))),
        })
    }

    fn prefetch_element(&self, hash: KeyHash, guard: &Guard) -> BucketHint {
        self.prefetch(AccessedPart::Element(hash), guard)
    }

    fn freeze(&mut self) -> Option<SetValue> {
        match &mut self.0 {
            Repr::Table(table) => Some(SetValue(Repr::Table(Box::new(table.freeze())))),
            Repr::Timed(hash) => Some(SetValue(Repr::Timed(Box::new(hash.freeze()?)))),
            Repr::Ints(_) | Repr::Packed(_) => None,
        }
    }

    fn revert(&mut self, before: &SetValue, ops: &mut dyn Iterator<Item = &[u8]>, env: Env<'_>) {
        let limits = env.limits.of_sets();
        for op in ops {
            let Some((&tag, mut rest)) = op.split_first() else { continue };
            while let Some(member) = take_name(tag, &mut rest) {
                match before.expire_at(env.hasher, member) {
                    Some(at) => self.put(env.hasher, limits, member, at),
                    None => self.remove(env.hasher, member),
                };
            }
        }
        if !before.is_timed() {
            self.forget_times();
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]])) {
        let Repr::Timed(hash) = &self.0 else {
            self.members().for_each(|member| member.with_bytes(|bytes| visit(&[bytes])));
            return;
        };
        for field in hash.all_fields() {
            match field.expire_at {
                0 => visit(&[field.name]),
                at => visit(&[field.name, at.to_string().as_bytes()]),
            }
        }
    }

    #[inline]
    fn next_expiry(&self) -> u64 {
        match &self.0 {
            Repr::Timed(hash) => hash.next_expiry(),
            Repr::Ints(_) | Repr::Packed(_) | Repr::Table(_) => 0,
        }
    }

    fn is_over(&self, now: u64) -> bool {
        matches!(&self.0, Repr::Timed(hash) if hash.is_over(now))
    }

    fn has_due(&self, now: u64, count: usize) -> bool {
        matches!(&self.0, Repr::Timed(hash) if hash.has_due(now, count))
    }

    fn expire_due(&mut self, now: u64, max: usize, env: Env<'_>, op: &mut Vec<u8>) -> usize {
        let Repr::Timed(hash) = &mut self.0 else { return 0 };
        hash.expire_each(env.hasher, now, max, |it| put_member(op, OP_REMOVE, it.name))
    }

    fn hidden(&self) -> usize {
        match &self.0 {
            Repr::Timed(hash) => hash.hidden(),
            Repr::Ints(_) | Repr::Packed(_) | Repr::Table(_) => 0,
        }
    }

    fn has_to_hide(&self, now: u64, count: usize) -> bool {
        matches!(&self.0, Repr::Timed(hash) if hash.has_to_hide(now, count))
    }

    fn hide_due(&mut self, now: u64, max: usize, env: Env<'_>) -> usize {
        let Repr::Timed(hash) = &mut self.0 else { return 0 };
        hash.hide_due(env.hasher, now, max)
    }

    fn unhide(&mut self, max: usize, env: Env<'_>) -> usize {
        let Repr::Timed(hash) = &mut self.0 else { return 0 };
        hash.unhide(env.hasher, max)
    }

    /// The members, each as length and bytes; with times, a mark and items.
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Packed(packed) => out.extend_from_slice(packed.as_bytes()),
            Repr::Timed(hash) => {
                varint::put(out, BODY_OF_ITEMS);
                hash.encode(out);
            }
            Repr::Ints(_) | Repr::Table(_) => {
                self.members().for_each(|m| m.with_bytes(|bytes| varint::put_bytes(out, bytes)));
            }
        }
    }

    fn decode(mut body: &[u8], env: Env<'_>) -> Option<SetValue> {
        let limits = env.limits.of_sets();
        let mut set: Option<SetValue> = None;
        let items = items_of(body);
        body = items.unwrap_or(body);
        while !body.is_empty() {
            let (member, at) = match items {
                None => (varint::take_bytes(&mut body)?, 0),
                Some(_) => match Item::take(&mut body)? {
                    Item::Set { field, value: [], at } => (field, at),
                    _ => return None,
                },
            };
            // Expect few: the set converts itself where the limits say so.
            set.get_or_insert_with(|| SetValue::for_members(member, 1, limits))
                .put(env.hasher, limits, member, at);
        }
        let mut set = set?;
        set.shrink_to_fit();
        Some(set)
    }

    /// `OP_*`, then members or items.
    fn apply_op(&mut self, op: &[u8], env: Env<'_>) -> Option<()> {
        let limits = env.limits.of_sets();
        let (&tag, mut rest) = op.split_first()?;
        while !rest.is_empty() {
            let item = match tag {
                OP_ADD => Item::Set { field: varint::take_bytes(&mut rest)?, value: &[], at: 0 },
                OP_REMOVE => Item::Remove { field: varint::take_bytes(&mut rest)? },
                OP_ITEMS => Item::take(&mut rest)?,
                _ => return None,
            };
            match item {
                Item::Set { field, value: [], at } => self.put(env.hasher, limits, field, at),
                Item::Set { .. } => return None,
                Item::Remove { field } => self.remove(env.hasher, field),
                Item::Expire { field, at } => self.set_expiry(env.hasher, limits, field, at),
            };
        }
        matches!(tag, OP_ADD | OP_REMOVE | OP_ITEMS).then_some(())
    }

    fn saving(&self, piece: usize) -> Saving {
        match &self.0 {
            Repr::Table(table) if table.len() > 2 * piece => Saving::InRanges,
            Repr::Timed(hash) => hash.saving(piece),
            _ => Saving::Whole,
        }
    }

    fn encode_range(&self, from: u64, env: Env<'_>, op: &mut Vec<u8>) -> (u64, usize) {
        if let Repr::Timed(hash) = &self.0 {
            if op.is_empty() {
                op.push(OP_ITEMS);
            }
            return hash.encode_range(from, env, op);
        }
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
        self.is_on_table()
    }

    fn for_ranges() -> Option<SetValue> {
        Some(SetValue::table())
    }

    fn show_body(body: &[u8]) -> Option<DumpValue<'_>> {
        let Some(mut items) = items_of(body) else { return DumpValue::list_of_bytes(body) };
        let mut members = Vec::new();
        while !items.is_empty() {
            match Item::take(&mut items)? {
                Item::Set { field, value: [], at } => members.push(shown_item(field, at)?),
                _ => return None,
            }
        }
        Some(DumpValue::List(members))
    }

    fn show_op(op: &[u8]) -> Option<DumpValue<'_>> {
        let (&tag, mut rest) = op.split_first()?;
        match tag {
            OP_ADD => {
                return Some(DumpValue::Record(vec![("add", DumpValue::list_of_bytes(rest)?)]));
            }
            OP_REMOVE => {
                return Some(DumpValue::Record(vec![("remove", DumpValue::list_of_bytes(rest)?)]));
            }
            OP_ITEMS => {}
            _ => return None,
        }
        let (mut add, mut remove, mut expire) = (Vec::new(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            match Item::take(&mut rest)? {
                Item::Set { field, value: [], at } => add.push(shown_item(field, at)?),
                Item::Set { .. } => return None,
                Item::Remove { field } => remove.push(DumpValue::Bytes(field)),
                Item::Expire { field, at } => {
                    let at = DumpValue::Int(i64::try_from(at).ok()?);
                    expire.push(DumpValue::List(vec![DumpValue::Bytes(field), at]));
                }
            }
        }
        let said = [("add", add), ("remove", remove), ("expire", expire)];
        let said = said.into_iter().filter(|(_, list)| !list.is_empty());
        Some(DumpValue::Record(said.map(|(verb, list)| (verb, DumpValue::List(list))).collect()))
    }
}
