//! Fields and values within a node: integers in few bytes, everything else as length and bytes.
//!
//! ```text
//! value := varint (length * 2), bytes
//!        | varint (length * 2 + 1), that many bytes of an integer, two's complement, little-endian
//! ```
//! An integer's bytes are as few as hold it. Only text of which this saves some is an integer.

use crate::types::integer::{INT_BYTES_MAX, format_int, parse_int};
use ladon_record::varint::{self, Sink};

/// Shortest text that may be kept as an integer.
const INT_TEXT_MIN: usize = 3;

/// A field or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer instead of its decimal text.
    Int(i64),
    /// Any text.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Calls `show` with the text.
    #[inline]
    pub fn with_bytes<R>(self, show: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Value::Int(int) => show(format_int(int, &mut [0; INT_BYTES_MAX])),
            Value::Bytes(bytes) => show(bytes),
        }
    }

    /// The text.
    pub fn to_vec(self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }

    /// Appends the encoding of a text.
    #[inline]
    pub(super) fn put(text: &[u8], out: &mut impl Sink) {
        if (INT_TEXT_MIN..=INT_BYTES_MAX).contains(&text.len())
            && let Some(int) = parse_int(text)
        {
            let bytes = int_bytes(int);
            out.push((bytes << 1 | 1) as u8);
            out.extend_from_slice(&int.to_le_bytes()[..bytes]);
            return;
        }
        varint::put(out, (text.len() as u64) << 1);
        out.extend_from_slice(text);
    }

    /// Takes a value off the front of `input`; `None` if it is malformed.
    #[inline]
    pub(super) fn take(input: &mut &'a [u8]) -> Option<Value<'a>> {
        let head = varint::take(input)?;
        let length = usize::try_from(head >> 1).ok()?;
        let (bytes, rest) = input.split_at_checked(length)?;
        if head & 1 == 0 {
            *input = rest;
            return Some(Value::Bytes(bytes));
        }
        let mut whole = [0; 8];
        whole.get_mut(..length)?.copy_from_slice(bytes);
        *input = rest;
        let unused = 64 - 8 * length as u32;
        // Zero bytes would hold nothing to shift.
        (length != 0).then(|| Value::Int((u64::from_le_bytes(whole) << unused) as i64 >> unused))
    }

    /// Skips a value.
    #[inline]
    pub(super) fn skip(input: &mut &'a [u8]) -> Option<()> {
        let length = usize::try_from(varint::take(input)? >> 1).ok()?;
        *input = input.get(length..)?;
        Some(())
    }
}

/// Bytes that hold the integer, 1 to 8.
fn int_bytes(int: i64) -> usize {
    let significant = 65 - (int ^ int >> 63).leading_zeros() as usize;
    significant.div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back_and_integers_are_short() {
        let cases: [(&[u8], usize); 16] = [
            (b"", 1),
            (b"7", 2),
            (b"-1", 3),
            (b"100", 2),
            (b"127", 2),
            (b"128", 3),
            (b"-128", 2),
            (b"-129", 3),
            (b"32768", 4),
            (b"1700000000000", 7),
            (b"9223372036854775807", 9),
            (b"-9223372036854775808", 9),
            (b"9223372036854775808", 20),
            (b"0100", 5),
            (b"abc", 4),
            (&[b'x'; 200], 202),
        ];
        for (text, size) in cases {
            let mut out = Vec::new();
            Value::put(text, &mut out);
            assert_eq!(out.len(), size, "{}", text.escape_ascii());
            let mut input = &out[..];
            assert_eq!(Value::take(&mut input).map(Value::to_vec), Some(text.to_vec()));
            assert!(input.is_empty());
            let mut input = &out[..];
            assert_eq!((Value::skip(&mut input), input.len()), (Some(()), 0));
            for cut in 0..out.len() {
                assert_eq!(Value::take(&mut &out[..cut]), None);
                assert_eq!(Value::skip(&mut &out[..cut]), None);
            }
        }
        assert_eq!(Value::take(&mut &[1][..]), None, "an integer of no bytes");
        assert_eq!(Value::take(&mut &[19, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]), None, "of nine");
    }
}
