//! A set's members as its readers see them.

use super::ints::Ints;
use crate::table::{Entries, Position};
use crate::types::hash::Fields;
use ladon_record::varint;

/// A member, borrowed from its set; an integer where the set keeps it as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member<'a> {
    /// Represents its decimal form.
    Int(i64),
    /// The bytes themselves.
    Bytes(&'a [u8]),
}

impl Member<'_> {
    /// Calls `f` with the member's bytes.
    #[inline]
    pub fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Member::Int(int) => f(itoa::Buffer::new().format(int).as_bytes()),
            Member::Bytes(bytes) => f(bytes),
        }
    }
}

/// Every member of a set once: integers in ascending order, packed ones in the order they came,
/// those of a table in the order of their hashes.
pub struct Members<'a>(pub(super) Walk<'a>);

pub(super) enum Walk<'a> {
    Ints(&'a Ints, usize),
    Packed(&'a [u8]),
    Table(Entries<'a>),
    Timed(Fields<'a>),
}

impl Members<'_> {
    /// The position of the walk over a frozen set, for `SetValue::members_from`.
    pub fn position(&self) -> Position {
        match &self.0 {
            Walk::Table(entries) => entries.position(),
            Walk::Timed(fields) => fields.position(),
            Walk::Ints(..) | Walk::Packed(_) => unreachable!("small sets are not frozen"),
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        match &mut self.0 {
            Walk::Ints(ints, at) => {
                let int = ints.get(*at)?;
                *at += 1;
                Some(Member::Int(int))
            }
            Walk::Packed([]) => None,
            Walk::Packed(rest) => varint::take_bytes(rest).map(Member::Bytes),
            Walk::Table(entries) => entries.next().map(|entry| Member::Bytes(entry.key())),
            Walk::Timed(fields) => fields.next().map(|field| Member::Bytes(field.name)),
        }
    }
}
