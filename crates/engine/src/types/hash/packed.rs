//! A few short fields, concatenated in insertion order.

use super::field::Field;
use super::item::{AT_BYTES, Item, TAG_BITS, TAG_SET, TAG_SET_EXPIRING};
use crate::types::buffer::Buffer;
use std::ops::Range;

/// Distinct fields in one piece of memory: `Item::Set` only.
#[derive(Clone, Default)]
pub(super) struct Packed {
    bytes: Buffer,
    count: u32,
    /// Some field once had an expiry; Redis has a separate encoding for that.
    timed: bool,
    /// When the first field expires; 0 for never.
    next_expiry: u64,
}

/// Where a field is.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// The item's bytes.
    item: Range<usize>,
    value: Range<usize>,
    pub(super) at: u64,
}

impl Packed {
    /// Room for so many bytes of items.
    pub(super) fn with_room(bytes: usize) -> Packed {
        Packed { bytes: Buffer::with_room(bytes), ..Packed::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// See [`Buffer::compact`].
    pub(super) fn compact(&mut self) -> usize {
        self.bytes.compact()
    }

    /// Bytes of memory that the fields take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The fields as items.
    pub(super) fn as_items(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_timed(&self) -> bool {
        self.timed
    }

    pub(super) fn next_expiry(&self) -> u64 {
        self.next_expiry
    }

    /// The position of the field.
    #[inline]
    pub(super) fn find(&self, field: &[u8]) -> Option<Spot> {
        let bytes = &self.bytes[..];
        let last = field.last();
        let mut at = 0;
        loop {
            let (spot, name) = spot_at(bytes, at)?;
            let name = &bytes[name];
            // The names in a hash are often equally long and differ only in their last bytes.
            if name.len() == field.len() && name.last() == last && name == field {
                return Some(spot);
            }
            at = spot.item.end;
        }
    }

    #[inline]
    pub(super) fn value(&self, spot: &Spot) -> &[u8] {
        &self.bytes[spot.value.clone()]
    }

    /// The fields in their order.
    pub(super) fn fields(&self) -> PackedFields<'_> {
        PackedFields(&self.bytes)
    }

    /// Adds a field that is not there.
    pub(super) fn push(&mut self, field: &[u8], value: &[u8], at: u64) {
        self.bytes.reserve(item_bytes(field.len(), value.len(), at));
        Item::Set { field, value, at }.put(&mut self.bytes);
        self.count += 1;
        self.expiry_changed(0, at);
    }

    /// Gives the field at a spot another value and expiry.
    pub(super) fn replace(&mut self, spot: Spot, value: &[u8], at: u64) {
        if value.len() == spot.value.len() && (at == 0) == (spot.at == 0) {
            self.bytes[spot.value.clone()].copy_from_slice(value);
            if at != 0 {
                self.bytes[spot.value.end..spot.item.end].copy_from_slice(&at.to_le_bytes());
            }
        } else {
            let field = name_at(&self.bytes, spot.item.start);
            let mut item = Vec::with_capacity(item_bytes(field.len(), value.len(), at));
            Item::Set { field: &self.bytes[field], value, at }.put(&mut item);
            self.bytes.replace(spot.item, &item);
        }
        self.expiry_changed(spot.at, at);
    }

    pub(super) fn remove(&mut self, spot: Spot) {
        self.bytes.remove(spot.item);
        self.count -= 1;
        self.expiry_changed(spot.at, 0);
    }

    /// Removes the fields that are due at `now`; `visit` sees them.
    pub(super) fn expire_due(
        &mut self,
        now: u64,
        max: usize,
        mut visit: impl FnMut(Field<'_>),
    ) -> usize {
        let mut removed = 0;
        let mut at = 0;
        while removed < max
            && let Some((spot, name)) = spot_at(&self.bytes, at)
        {
            if spot.at != 0 && spot.at <= now {
                let (name, value) = (&self.bytes[name], &self.bytes[spot.value.clone()]);
                visit(Field { name, value, expire_at: spot.at });
                self.bytes.remove(spot.item);
                self.count -= 1;
                removed += 1;
            } else {
                at = spot.item.end;
            }
        }
        self.next_expiry = self.first_expiry();
        removed
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// A field's expiry went from `old` to `new`.
    fn expiry_changed(&mut self, old: u64, new: u64) {
        if old == new {
            return;
        }
        self.timed |= new != 0;
        if new != 0 && (self.next_expiry == 0 || new <= self.next_expiry) {
            self.next_expiry = new;
        } else if old == self.next_expiry {
            self.next_expiry = self.first_expiry();
        }
    }

    fn first_expiry(&self) -> u64 {
        self.fields().map(|field| field.expire_at).filter(|&at| at != 0).min().unwrap_or(0)
    }
}

/// Bytes that an item takes, or a few more.
fn item_bytes(field: usize, value: usize, at: u64) -> usize {
    let head = if field < 32 { 1 } else { 5 };
    let length = if value < 128 { 1 } else { 5 };
    head + field + length + value + if at == 0 { 0 } else { AT_BYTES }
}

/// The range of the name in the item at an offset.
fn name_at(bytes: &[u8], at: usize) -> Range<usize> {
    spot_at(bytes, at).map_or(at..at, |(_, name)| name)
}

/// The item at an offset and the range of its name; `None` at the end.
#[inline]
fn spot_at(bytes: &[u8], at: usize) -> Option<(Spot, Range<usize>)> {
    let (head, name_start) = varint_at(bytes, at)?;
    let name_end = name_start + (head >> TAG_BITS);
    let (value_len, value_start) = varint_at(bytes, name_end)?;
    let value_end = value_start + value_len;
    let (end, expire_at) = match head as u8 & ((1 << TAG_BITS) - 1) {
        TAG_SET => (value_end, 0),
        tag => {
            debug_assert_eq!(tag, TAG_SET_EXPIRING);
            let end = value_end + AT_BYTES;
            let at = bytes.get(value_end..end)?.try_into().ok()?;
            (end, u64::from_le_bytes(at))
        }
    };
    let spot = Spot { item: at..end, value: value_start..value_end, at: expire_at };
    Some((spot, name_start..name_end))
}

/// The number at an offset, and where it ends.
#[inline]
fn varint_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let &first = bytes.get(at)?;
    if first < 0x80 {
        return Some((usize::from(first), at + 1));
    }
    let mut rest = &bytes[at..];
    let value = ladon_record::varint::take(&mut rest)?;
    Some((value as usize, bytes.len() - rest.len()))
}

/// Walks over packed fields.
pub(super) struct PackedFields<'a>(&'a [u8]);

impl<'a> Iterator for PackedFields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        match Item::take(&mut self.0)? {
            Item::Set { field, value, at } => Some(Field { name: field, value, expire_at: at }),
            _ => None,
        }
    }
}
