//! One field's state or change, in bytes: the form of fields in a packed hash and in the log.
//!
//! ```text
//! item := head varint (length of the field * 4 + tag), field, then by tag
//!   0 set           value (length varint, bytes); the field never expires
//!   1 set expiring  value, at u64 (Unix milliseconds, little endian)
//!   2 remove
//!   3 expire        at u64 (0: never); nothing if there is no such field
//! ```

use ladon_record::varint::{self, Sink};

/// One item, borrowed from its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// The field has this value and expires then (0: never).
    Set {
        field: &'a [u8],
        value: &'a [u8],
        at: u64,
    },
    Remove {
        field: &'a [u8],
    },
    /// The field, if there is one, expires then (0: never).
    Expire {
        field: &'a [u8],
        at: u64,
    },
}

pub(super) const TAG_SET: u8 = 0;
pub(super) const TAG_SET_EXPIRING: u8 = 1;
const TAG_REMOVE: u8 = 2;
const TAG_EXPIRE: u8 = 3;
pub(super) const TAG_BITS: u32 = 2;

/// Bytes of a moment.
pub(super) const AT_BYTES: usize = 8;

impl<'a> Item<'a> {
    /// Appends the encoding.
    #[inline]
    pub(crate) fn put(self, out: &mut impl Sink) {
        match self {
            Item::Set { field, value, at: 0 } => {
                put_head(out, field, TAG_SET);
                varint::put_bytes(out, value);
            }
            Item::Set { field, value, at } => {
                put_head(out, field, TAG_SET_EXPIRING);
                varint::put_bytes(out, value);
                out.extend_from_slice(&at.to_le_bytes());
            }
            Item::Remove { field } => put_head(out, field, TAG_REMOVE),
            Item::Expire { field, at } => {
                put_head(out, field, TAG_EXPIRE);
                out.extend_from_slice(&at.to_le_bytes());
            }
        }
    }

    /// The field's name.
    pub(crate) fn field(self) -> &'a [u8] {
        match self {
            Item::Set { field, .. } | Item::Remove { field } | Item::Expire { field, .. } => field,
        }
    }

    /// Reads an item off the front; `None` if it is malformed.
    #[inline]
    pub(crate) fn take(input: &mut &'a [u8]) -> Option<Item<'a>> {
        let head = varint::take(input)?;
        let field_len = usize::try_from(head >> TAG_BITS).ok()?;
        let (field, rest) = input.split_at_checked(field_len)?;
        *input = rest;
        Some(match head as u8 & ((1 << TAG_BITS) - 1) {
            TAG_SET => Item::Set { field, value: varint::take_bytes(input)?, at: 0 },
            TAG_SET_EXPIRING => {
                Item::Set { field, value: varint::take_bytes(input)?, at: take_at(input)? }
            }
            TAG_REMOVE => Item::Remove { field },
            _ => Item::Expire { field, at: take_at(input)? },
        })
    }
}

#[inline]
fn put_head(out: &mut impl Sink, field: &[u8], tag: u8) {
    varint::put(out, (field.len() as u64) << TAG_BITS | u64::from(tag));
    out.extend_from_slice(field);
}

#[inline]
fn take_at(input: &mut &[u8]) -> Option<u64> {
    let (at, rest) = input.split_first_chunk::<AT_BYTES>()?;
    *input = rest;
    Some(u64::from_le_bytes(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_read_back_and_cuts_do_not() {
        let (field, value) = (&[b'f'; 40][..], &[b'v'; 300][..]);
        let items = [
            Item::Set { field, value, at: 0 },
            Item::Set { field: b"", value: b"", at: u64::MAX },
            Item::Remove { field },
            Item::Expire { field: b"x", at: 0 },
        ];
        for item in items {
            let mut out = Vec::new();
            item.put(&mut out);
            let mut rest = &out[..];
            assert_eq!((Item::take(&mut rest), rest), (Some(item), &[][..]));
            for cut in 0..out.len() {
                assert_eq!(Item::take(&mut &out[..cut]), None, "{item:?} cut at {cut}");
            }
        }
    }
}
