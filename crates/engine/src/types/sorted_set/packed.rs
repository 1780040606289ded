//! A few short members in one piece of memory, in order: score (8 bytes, little-endian), length
//! and bytes of each.

use crate::types::buffer::Buffer;
use ladon_record::varint::{self, Sink};
use std::cmp::Ordering;
use std::ops::Range;

const SCORE_BYTES: usize = 8;

/// Distinct members with their scores.
#[derive(Clone, Default)]
pub(super) struct Packed {
    bytes: Buffer,
    count: u32,
}

/// A member and its position.
pub(super) struct Place {
    pub(super) rank: usize,
    pub(super) score: f64,
    /// In bytes.
    range: Range<usize>,
}

/// Appends a score and a member.
pub(super) fn put(out: &mut impl Sink, score: f64, member: &[u8]) {
    out.extend_from_slice(&score.to_le_bytes());
    varint::put_bytes(out, member);
}

/// Takes what `put` wrote off the front of `input`; `None` if that is malformed.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Option<(f64, &'a [u8])> {
    let (score, rest) = input.split_first_chunk::<SCORE_BYTES>()?;
    let score = f64::from_le_bytes(*score);
    *input = rest;
    (!score.is_nan()).then_some((score, varint::take_bytes(input)?))
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

    pub(super) fn find(&self, member: &[u8]) -> Option<Place> {
        let mut walk = self.walk().enumerate();
        let (rank, (score, _, range)) = walk.find(|(_, (_, other, _))| *other == member)?;
        Some(Place { rank, score, range })
    }

    /// The members in order, with their scores.
    pub(super) fn iter(&self) -> impl Iterator<Item = (f64, &[u8])> {
        self.walk().map(|(score, member, _)| (score, member))
    }

    /// Adds a member that is not there. As in Redis, where a small set keeps whole scores as
    /// integers, zero has no sign here.
    pub(super) fn insert(&mut self, score: f64, member: &[u8]) {
        let score = score + 0.0;
        let after = |(other, present, _): &(f64, &[u8], Range<usize>)| {
            order((*other, present), (score, member)) == Ordering::Greater
        };
        let at = self.walk().find(after).map_or(self.bytes.len(), |(.., range)| range.start);
        let old_bytes = self.bytes.len();
        self.bytes.reserve(SCORE_BYTES + member.len() + varint::bytes(member.len() as u64));
        put(&mut self.bytes, score, member);
        let added = self.bytes.len() - old_bytes;
        self.bytes[at..].rotate_right(added);
        self.count += 1;
    }

    pub(super) fn remove_place(&mut self, place: &Place) {
        self.bytes.remove(place.range.clone());
        self.count -= 1;
    }

    /// Takes the members of these ranks out; `visit` sees them.
    pub(super) fn remove_ranks(&mut self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], f64)) {
        let mut span: Option<Range<usize>> = None;
        let mut removed = 0;
        for (score, member, range) in self.walk().skip(ranks.start).take(ranks.len()) {
            visit(member, score);
            let start = span.map_or(range.start, |span| span.start);
            span = Some(start..range.end);
            removed += 1;
        }
        if let Some(span) = span {
            self.bytes.remove(span);
            self.count -= removed;
        }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    fn walk(&self) -> impl Iterator<Item = (f64, &[u8], Range<usize>)> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let start = self.bytes.len() - rest.len();
            let (score, member) = take(&mut rest)?;
            Some((score, member, start..self.bytes.len() - rest.len()))
        })
    }
}

/// By score, then by bytes. No score is NaN, and the two zeros are equal.
pub(super) fn order((score, member): (f64, &[u8]), other: (f64, &[u8])) -> Ordering {
    score.partial_cmp(&other.0).unwrap_or(Ordering::Equal).then_with(|| member.cmp(other.1))
}
