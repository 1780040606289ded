//! The length in front of every packet.
//!
//! Connectors send it as `0xce` and four bytes; every unsigned MessagePack number is accepted, as
//! Tarantool does.

use crate::RequestError;

/// The largest packet that Tarantool takes (`IPROTO_PACKET_SIZE_MAX`).
pub const PACKET_BYTES_MAX: u64 = 2 << 30;

/// The longest form of a length.
pub const LENGTH_BYTES_MAX: usize = 9;

/// Room suggested by a length alone: about what one read brings.
const UNPROVEN_BYTES_MAX: usize = 16 * 1024;

/// What the bytes at the start of a buffer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A whole packet: header and body are `buffer[start..end]`.
    Complete {
        /// First byte of the header.
        start: usize,
        /// First byte after the packet.
        end: usize,
    },
    /// More bytes are needed. Call again with the same first byte and more bytes after it.
    Incomplete {
        /// Number of further bytes to make room for: never more than the packet still needs, and
        /// never more than has arrived of it, so that a client that announces much and sends
        /// little gets little.
        needed: usize,
    },
    /// No packet. The stream has no known boundary any more: reply (with sync 0) and close.
    Invalid(RequestError),
}

/// Finds the packet at the start of `buffer`. `packet_bytes_max` is the largest length accepted.
#[inline]
pub fn next(buffer: &[u8], packet_bytes_max: u64) -> Progress {
    let Some(first) = buffer.first() else { return Progress::Incomplete { needed: 1 } };
    let size: usize = match first {
        0x00..=0x7f => 0,
        0xcc..=0xcf => 1 << (first - 0xcc),
        _ => return Progress::Invalid(RequestError::InvalidMsgpack("packet length")),
    };
    let start = 1 + size;
    let Some(digits) = buffer.get(1..start) else {
        return Progress::Incomplete { needed: start - buffer.len() };
    };
    let length = match size {
        0 => u64::from(*first),
        _ => digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    };
    if length > packet_bytes_max {
        return Progress::Invalid(RequestError::PacketTooLarge(length));
    }
    let end = usize::try_from(length).ok().and_then(|length| length.checked_add(start));
    match end {
        None => Progress::Invalid(RequestError::PacketTooLarge(length)),
        Some(end) if end <= buffer.len() => Progress::Complete { start, end },
        Some(end) => {
            let needed = (end - buffer.len()).min(buffer.len().max(UNPROVEN_BYTES_MAX));
            Progress::Incomplete { needed }
        }
    }
}

/// The length that the bytes at the start of `buffer` announce, if they are there.
pub fn announced(buffer: &[u8]) -> Option<u64> {
    let first = *buffer.first()?;
    let size = match first {
        0x00..=0x7f => return Some(first.into()),
        0xcc..=0xcf => 1 << (first - 0xcc),
        _ => return None,
    };
    let digits = buffer.get(1..=size)?;
    Some(digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(buffer: &[u8], expected: Progress) {
        assert_eq!(next(buffer, PACKET_BYTES_MAX), expected, "{buffer:x?}");
    }

    #[test]
    fn every_form_of_the_length() {
        check(&[0x02, 1, 2, 3], Progress::Complete { start: 1, end: 3 });
        check(&[0xcc, 2, 1, 2, 3], Progress::Complete { start: 2, end: 4 });
        check(&[0xcd, 0, 2, 1, 2, 3], Progress::Complete { start: 3, end: 5 });
        check(&[0xce, 0, 0, 0, 2, 1, 2, 3], Progress::Complete { start: 5, end: 7 });
        check(&[0xcf, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2], Progress::Complete { start: 9, end: 11 });
        check(&[0x00], Progress::Complete { start: 1, end: 1 });
    }

    #[test]
    fn what_is_announced() {
        for (buffer, expected) in [
            (&[0x02, 1][..], Some(2)),
            (&[0xcd, 1, 0], Some(256)),
            (&[0xce, 0x25, 0x80, 0, 0, 9], Some(600 << 20)),
            (&[0xce, 0x25, 0x80, 0], None),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(announced(buffer), expected, "{buffer:x?}");
        }
    }

    #[test]
    fn what_is_missing() {
        check(&[], Progress::Incomplete { needed: 1 });
        check(&[0xce, 0], Progress::Incomplete { needed: 3 });
        check(&[0xce, 0, 0, 0, 9, 1], Progress::Incomplete { needed: 8 });
        // A length alone gets no more room than one read brings.
        check(&[0xce, 0x7f, 0, 0, 0], Progress::Incomplete { needed: UNPROVEN_BYTES_MAX });
        let mut long = vec![0xce, 0x7f, 0, 0, 0];
        long.resize(100_000, 0);
        check(&long, Progress::Incomplete { needed: 100_000 });
    }

    #[test]
    fn what_is_no_packet() {
        for first in [0x80, 0xc0, 0xca, 0xd0, 0xd3, 0xff] {
            let error = RequestError::InvalidMsgpack("packet length");
            check(&[first, 0, 0, 0, 0], Progress::Invalid(error));
        }
        check(&[0xce, 0x80, 0, 0, 0], Progress::Incomplete { needed: UNPROVEN_BYTES_MAX });
        let error = RequestError::PacketTooLarge(0x8000_0001);
        let text = "Invalid MsgPack - too big packet size in the header: 2147483649";
        assert_eq!(error.to_string(), text);
        check(&[0xce, 0x80, 0, 0, 1], Progress::Invalid(error));
        check(&[0xcf; 9], Progress::Invalid(RequestError::PacketTooLarge(0xcfcf_cfcf_cfcf_cfcf)));
    }
}
