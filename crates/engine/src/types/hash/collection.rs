//! Implements [`Collection`] for hashes, and their form in the log: items, of a whole hash or of
//! what changed.

use super::hiding::LOOKED_AT_FIRST;
use super::item::Item;
use super::on_table::{OnTable, field_of};
use super::packed::Packed;
use super::{Field, HashValue, Repr};
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::DumpValue;
use crossbeam_epoch::Guard;
use ladon_record::{KeyHash, ValueKind};

impl Item<'_> {
    fn of(field: Field<'_>) -> Item<'_> {
        Item::Set { field: field.name, value: field.value, at: field.expire_at }
    }
}

impl HashValue {
    /// The table with the fields that readers see.
    fn as_table(&self) -> Option<&OnTable> {
        match &self.0 {
            Repr::Table(fields) => Some(fields),
            Repr::Packed(_) => None,
            Repr::Hiding(hiding) => hiding.seen.as_table(),
        }
    }
}

impl Collection for HashValue {
    const KIND: ValueKind = ValueKind::Hash;
    const ORDERED: bool = false;

    fn len(&self) -> usize {
        HashValue::len(self)
    }

    fn is_empty(&self) -> bool {
        HashValue::len(self) == 0 && self.hidden() == 0
    }

    #[inline]
    fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.bytes(),
            Repr::Table(fields) => fields.bytes(),
            Repr::Hiding(hiding) => hiding.bytes(),
        }
    }

    fn encoding(&self) -> &'static str {
        HashValue::encoding(self)
    }

    fn drop_effort(&self) -> usize {
        self.as_table().map_or(1, |fields| fields.table.len()) + self.hidden()
    }

    fn compact(&mut self) -> usize {
        match &mut self.0 {
            Repr::Packed(packed) => packed.compact(),
            _ => 0,
        }
    }

    fn duplicate(&self, env: Env<'_>) -> HashValue {
        self.copy(env.hasher)
    }

    fn prefetch_element(&self, hash: KeyHash, guard: &Guard) -> BucketHint {
        self.prefetch(AccessedPart::Element(hash), guard)
    }

    fn freeze(&mut self) -> Option<HashValue> {
        match &mut self.0 {
            Repr::Table(fields) => Some(HashValue(Repr::Table(Box::new(fields.freeze())))),
            Repr::Packed(_) => None,
            // For readers. Before anything changes, nothing is hidden.
            Repr::Hiding(hiding) => hiding.seen.freeze(),
        }
    }

    fn revert(&mut self, before: &HashValue, ops: &mut dyn Iterator<Item = &[u8]>, env: Env<'_>) {
        let limits = env.limits.of_hashes();
        for mut op in ops {
            while !op.is_empty()
                && let Some(item) = Item::take(&mut op)
            {
                let name = item.field();
                match before.look(env.hasher, name) {
                    Some((value, at)) => {
                        self.set(env.hasher, limits, name, value, at);
                    }
                    None => {
                        self.remove(env.hasher, name);
                    }
                }
            }
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]])) {
        for field in self.all_fields() {
            match field.expire_at {
                0 => visit(&[field.name, field.value]),
                at => visit(&[field.name, field.value, at.to_string().as_bytes()]),
            }
        }
    }

    #[inline]
    fn next_expiry(&self) -> u64 {
        match &self.0 {
            Repr::Packed(packed) => packed.next_expiry(),
            Repr::Table(fields) => fields.next_expiry(),
            Repr::Hiding(_) => LOOKED_AT_FIRST,
        }
    }

    fn is_over(&self, now: u64) -> bool {
        match &self.0 {
            Repr::Packed(packed) => {
                packed.fields().all(|it| it.expire_at != 0 && it.expire_at <= now)
            }
            Repr::Table(fields) => fields.is_over(now),
            Repr::Hiding(hiding) => hiding.is_over(now),
        }
    }

    fn has_due(&self, now: u64, count: usize) -> bool {
        match &self.0 {
            Repr::Packed(packed) => {
                let due = packed.fields().filter(|it| it.expire_at != 0 && it.expire_at <= now);
                due.count() >= count
            }
            Repr::Table(fields) => fields.has_due(now, count),
            Repr::Hiding(hiding) => hiding.has_due(now, count),
        }
    }

    fn expire_due(&mut self, now: u64, max: usize, env: Env<'_>, op: &mut Vec<u8>) -> usize {
        self.expire_each(env.hasher, now, max, |it| Item::Remove { field: it.name }.put(op))
    }

    fn hidden(&self) -> usize {
        HashValue::hidden(self)
    }

    fn has_to_hide(&self, now: u64, count: usize) -> bool {
        HashValue::has_to_hide(self, now, count)
    }

    fn hide_due(&mut self, now: u64, max: usize, env: Env<'_>) -> usize {
        HashValue::hide_due(self, env.hasher, now, max)
    }

    fn unhide(&mut self, max: usize, env: Env<'_>) -> usize {
        HashValue::unhide(self, env.hasher, max)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Packed(packed) => out.extend_from_slice(packed.as_items()),
            Repr::Table(_) => self.fields().for_each(|field| Item::of(field).put(out)),
            Repr::Hiding(hiding) => {
                hiding.seen.encode(out);
                hiding.hidden.encode(out);
            }
        }
    }

    fn decode(body: &[u8], env: Env<'_>) -> Option<HashValue> {
        let mut hash = HashValue(Repr::Packed(Packed::with_room(body.len())));
        hash.apply_op(body, env)?;
        (!hash.is_empty()).then_some(hash)
    }

    fn apply_op(&mut self, mut op: &[u8], env: Env<'_>) -> Option<()> {
        let limits = env.limits.of_hashes();
        while !op.is_empty() {
            match Item::take(&mut op)? {
                Item::Set { field, value, at } => {
                    self.set(env.hasher, limits, field, value, at);
                }
                Item::Remove { field } => {
                    self.remove(env.hasher, field);
                }
                Item::Expire { field, at } => {
                    self.set_expiry(env.hasher, field, at);
                }
            }
        }
        Some(())
    }

    fn saving(&self, piece: usize) -> Saving {
        match self.as_table() {
            Some(fields) if fields.table.len() + self.hidden() > 2 * piece => Saving::InRanges,
            _ => Saving::Whole,
        }
    }

    fn encode_range(&self, from: u64, env: Env<'_>, op: &mut Vec<u8>) -> (u64, usize) {
        let Some(fields) = self.as_table() else { return (u64::MAX, 0) };
        let mut count = 0;
        let last = fields.table.segment_from(env.hasher, from, |entry| {
            Item::of(field_of(entry)).put(op);
            count += 1;
        });
        let mut from = Some(from);
        while let (Some(first), Repr::Hiding(hiding)) = (from.filter(|&it| it <= last), &self.0)
            && let Some(hidden) = hiding.hidden.as_table()
        {
            let end = hidden.table.segment_from(env.hasher, first, |entry| {
                if env.hasher.hash(entry.key()).0 <= last {
                    Item::of(field_of(entry)).put(op);
                    count += 1;
                }
            });
            from = end.checked_add(1);
        }
        (last, count)
    }

    /// A hash on a table stays on it; a packed one has replaced it.
    fn is_in_ranges(&self) -> bool {
        self.as_table().is_some()
    }

    fn for_ranges() -> Option<HashValue> {
        Some(HashValue::on_table())
    }

    fn show_body(mut body: &[u8]) -> Option<DumpValue<'_>> {
        let mut fields = Vec::new();
        while !body.is_empty() {
            let Item::Set { field, value, at } = Item::take(&mut body)? else { return None };
            let mut parts = vec![DumpValue::Bytes(field), DumpValue::Bytes(value)];
            if at != 0 {
                parts.push(DumpValue::Int(i64::try_from(at).ok()?));
            }
            fields.push(DumpValue::List(parts));
        }
        Some(DumpValue::List(fields))
    }

    fn show_op(mut op: &[u8]) -> Option<DumpValue<'_>> {
        let (mut set, mut removed, mut expire) = (Vec::new(), Vec::new(), Vec::new());
        while !op.is_empty() {
            match Item::take(&mut op)? {
                Item::Set { field, value, at } => {
                    let mut parts = vec![DumpValue::Bytes(field), DumpValue::Bytes(value)];
                    if at != 0 {
                        parts.push(DumpValue::Int(i64::try_from(at).ok()?));
                    }
                    set.push(DumpValue::List(parts));
                }
                Item::Remove { field } => removed.push(DumpValue::Bytes(field)),
                Item::Expire { field, at } => {
                    let at = DumpValue::Int(i64::try_from(at).ok()?);
                    expire.push(DumpValue::List(vec![DumpValue::Bytes(field), at]));
                }
            }
        }
        let said = [("set", set), ("remove", removed), ("expire", expire)];
        let said = said.into_iter().filter(|(_, list)| !list.is_empty());
        Some(DumpValue::Record(said.map(|(verb, list)| (verb, DumpValue::List(list))).collect()))
    }
}
