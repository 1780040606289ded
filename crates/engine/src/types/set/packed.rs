//! A few short members, concatenated: length and bytes of each, in insertion order.

use crate::types::buffer::Buffer;
use ladon_record::varint;
use std::ops::Range;

/// Distinct members in one piece of memory.
#[derive(Clone, Default)]
pub(super) struct Packed {
    bytes: Buffer,
    count: u32,
}

impl Packed {
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// See [`Buffer::compact`].
    pub(super) fn compact(&mut self) -> usize {
        self.bytes.compact()
    }

    /// Bytes of memory that the members take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The members' bytes, in the form of a log record.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn contains(&self, member: &[u8]) -> bool {
        self.find(member).is_some()
    }

    /// Adds a member that is not there.
    pub(super) fn push(&mut self, member: &[u8]) {
        self.bytes.reserve(member.len() + varint::bytes(member.len() as u64));
        varint::put_bytes(&mut self.bytes, member);
        self.count += 1;
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(place) = self.find(member) else { return false };
        self.remove_place(place);
        true
    }

    /// The member at a position, and its range including its length.
    pub(super) fn nth(&self, index: usize) -> Option<(&[u8], Range<usize>)> {
        let mut rest = &self.bytes[..];
        for _ in 0..index {
            varint::take_bytes(&mut rest)?;
        }
        let start = self.bytes.len() - rest.len();
        let member = varint::take_bytes(&mut rest)?;
        Some((member, start..self.bytes.len() - rest.len()))
    }

    pub(super) fn remove_place(&mut self, place: Range<usize>) {
        self.bytes.remove(place);
        self.count -= 1;
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    fn find(&self, member: &[u8]) -> Option<Range<usize>> {
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            let start = self.bytes.len() - rest.len();
            if varint::take_bytes(&mut rest)? == member {
                return Some(start..self.bytes.len() - rest.len());
            }
        }
        None
    }
}
