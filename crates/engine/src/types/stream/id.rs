//! The id of an entry: a time in milliseconds, and a sequence number within that millisecond.

use crate::types::integer::{INT_BYTES_MAX, write_digits};
use ladon_record::varint::{self, Sink};

/// An entry's id; ids ascend with the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds; Unix time where the server made the id.
    pub ms: u64,
    /// Distinguishes entries of the same millisecond.
    pub seq: u64,
}

/// Longest text of an id.
pub const ID_TEXT_MAX: usize = 2 * INT_BYTES_MAX + 1;

impl StreamId {
    /// The smallest id; no entry has it.
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    /// The largest id.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// An id of its two parts.
    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// The next larger id; `None` for the largest.
    pub fn next(self) -> Option<StreamId> {
        match (self.ms, self.seq) {
            (u64::MAX, u64::MAX) => None,
            (ms, u64::MAX) => Some(StreamId::new(ms + 1, 0)),
            (ms, seq) => Some(StreamId::new(ms, seq + 1)),
        }
    }

    /// The next smaller id; `None` for the smallest.
    pub fn previous(self) -> Option<StreamId> {
        match (self.ms, self.seq) {
            (0, 0) => None,
            (ms, 0) => Some(StreamId::new(ms - 1, u64::MAX)),
            (ms, seq) => Some(StreamId::new(ms, seq - 1)),
        }
    }

    /// Whether it is 0-0.
    pub fn is_zero(self) -> bool {
        self == StreamId::MIN
    }

    /// Calls `show` with the id as text: `ms-seq`.
    #[inline]
    pub fn with_text<R>(self, show: impl FnOnce(&[u8]) -> R) -> R {
        let mut text = [0; ID_TEXT_MAX];
        let dash = write_digits(self.seq, &mut text, ID_TEXT_MAX) - 1;
        text[dash] = b'-';
        let begin = write_digits(self.ms, &mut text, dash);
        show(&text[begin..])
    }

    /// The id as text.
    pub fn to_text(self) -> Vec<u8> {
        self.with_text(<[u8]>::to_vec)
    }

    /// Appends the encoding.
    #[inline]
    pub(super) fn put(self, out: &mut impl Sink) {
        varint::put(out, self.ms);
        varint::put(out, self.seq);
    }

    /// Takes an id off the front of `input`.
    #[inline]
    pub(super) fn take(input: &mut &[u8]) -> Option<StreamId> {
        Some(StreamId::new(varint::take(input)?, varint::take(input)?))
    }

    /// Appends the encoding relative to a smaller or equal id.
    #[inline]
    pub(super) fn put_after(self, base: StreamId, out: &mut impl Sink) {
        let ms = self.ms - base.ms;
        varint::put(out, ms);
        varint::put(out, if ms == 0 { self.seq - base.seq } else { self.seq });
    }

    /// Takes what `put_after` wrote; `None` if there is no such id.
    #[inline]
    pub(super) fn take_after(base: StreamId, input: &mut &[u8]) -> Option<StreamId> {
        let (ms, seq) = (varint::take(input)?, varint::take(input)?);
        match ms {
            0 => Some(StreamId::new(base.ms, base.seq.checked_add(seq)?)),
            _ => Some(StreamId::new(base.ms.checked_add(ms)?, seq)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_text() {
        let id = StreamId::new(5, u64::MAX);
        assert_eq!(id.next(), Some(StreamId::new(6, 0)));
        assert_eq!(StreamId::new(6, 0).previous(), Some(id));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
        assert_eq!(id.to_text(), b"5-18446744073709551615");
        assert_eq!(StreamId::MAX.to_text(), b"18446744073709551615-18446744073709551615");
        assert_eq!(StreamId::MIN.to_text(), b"0-0");
    }

    #[test]
    fn relative_ids_read_back() {
        let base = StreamId::new(1 << 40, 7);
        for id in [base, StreamId::new(1 << 40, 9), StreamId::new((1 << 40) + 3, 0), StreamId::MAX]
        {
            let mut out = Vec::new();
            id.put_after(base, &mut out);
            assert_eq!(StreamId::take_after(base, &mut &out[..]), Some(id));
        }
        assert_eq!(StreamId::take_after(StreamId::MAX, &mut &[0, 1][..]), None);
        assert_eq!(StreamId::take_after(StreamId::MAX, &mut &[1, 1][..]), None);
    }
}
