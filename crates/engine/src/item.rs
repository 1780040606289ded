//! What a string has besides its bytes where memcached's protocol is spoken: client flags, a number
//! that tells its versions apart, and marks of a cache's clients.
//!
//! ```text
//!                kept        given                           lost
//! flags, stale   in the log  with the value                  when another value is put
//! cas            in memory   when it is first asked for      with every change of the bytes
//! won            in memory   by a request                    with every change of the bytes
//! ```
//!
//! Only strings that have one of them take memory for it. A change of a string's bytes keeps the
//! flags, whatever protocol asks for it; putting another value does not.

/// What a string has besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemHead {
    /// What clients keep there, often how they have encoded the value.
    pub flags: u32,
    /// Tells the value from every other one that its key had or gets; 0 until it is asked for.
    pub cas: u64,
    /// The value is out of date, and is to be made again.
    pub stale: bool,
    /// A client was told to make the value again.
    pub won: bool,
}

const STALE: u8 = 1;
const WON: u8 = 1 << 1;
const HAS_CAS: u8 = 1 << 2;
/// Where the marks say how long the flags are: 0, 1, 2 or 4 bytes.
const FLAGS_SHIFT: u32 = 3;

/// Bytes that a head takes in an entry at most.
pub(crate) const HEAD_BYTES_MAX: usize = 13;

const CAS_BYTES: usize = 8;

/// Bytes of the flags, as the marks say.
fn flags_bytes(marks: u8) -> usize {
    [0, 1, 2, 4][usize::from(marks >> FLAGS_SHIFT & 3)]
}

/// A head as it is in an entry.
///
/// ```text
/// marks 1 byte | flags 0, 1, 2 or 4 bytes | cas 8 bytes, if it was asked for
/// ```
pub(crate) struct HeadBytes {
    bytes: [u8; HEAD_BYTES_MAX],
    len: usize,
}

impl HeadBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The length of a head that begins with these marks.
    #[inline]
    pub(crate) fn len_of(marks: u8) -> usize {
        1 + flags_bytes(marks) + if marks & HAS_CAS != 0 { CAS_BYTES } else { 0 }
    }
}

/// The bit of the log's marks that says that the value is stale; the flags are below.
const LOGGED_STALE: u64 = 1 << 32;

impl ItemHead {
    /// That of a new value with these flags.
    pub fn of_flags(flags: u32) -> ItemHead {
        ItemHead { flags, ..ItemHead::default() }
    }

    /// Whether there is nothing to keep.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        *self == ItemHead::default()
    }

    /// What the log keeps of it: flags, and whether the value is stale.
    pub(crate) fn marks(&self) -> u64 {
        u64::from(self.flags) | if self.stale { LOGGED_STALE } else { 0 }
    }

    /// The head that the log has kept.
    pub(crate) fn of_marks(marks: u64) -> ItemHead {
        let stale = marks & LOGGED_STALE != 0;
        ItemHead { flags: marks as u32, stale, ..ItemHead::default() }
    }

    /// What is left of it after a change of the bytes, or in a copy.
    pub(crate) fn of_changed(self) -> ItemHead {
        ItemHead { flags: self.flags, stale: self.stale, ..ItemHead::default() }
    }

    pub(crate) fn to_bytes(self) -> HeadBytes {
        let (code, flags_len) = match self.flags {
            0 => (0, 0),
            1..=0xff => (1, 1),
            0x100..=0xffff => (2, 2),
            _ => (3, 4),
        };
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let marks = bit(self.stale, STALE) | bit(self.won, WON) | bit(self.cas != 0, HAS_CAS);
        let mut bytes = [0; HEAD_BYTES_MAX];
        bytes[0] = marks | code << FLAGS_SHIFT;
        bytes[1..=flags_len].copy_from_slice(&self.flags.to_le_bytes()[..flags_len]);
        let len = HeadBytes::len_of(bytes[0]);
        if self.cas != 0 {
            bytes[len - CAS_BYTES..len].copy_from_slice(&self.cas.to_le_bytes());
        }
        HeadBytes { bytes, len }
    }

    /// Reads a head of this length, see [`HeadBytes::len_of`].
    pub(crate) fn of_bytes(bytes: &[u8]) -> ItemHead {
        let marks = bytes[0];
        let number = |bytes: &[u8]| {
            bytes.iter().rev().fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
        };
        let (flags, cas) = bytes[1..].split_at(flags_bytes(marks));
        ItemHead {
            flags: number(flags) as u32,
            cas: number(cas),
            stale: marks & STALE != 0,
            won: marks & WON != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let lengths = [(1, 0, 2), (0x100, 0, 3), (0x1_0000, 1, 13)];
        for (flags, cas, len) in lengths {
            let head = ItemHead { cas, ..ItemHead::of_flags(flags) };
            assert_eq!(head.to_bytes().as_slice().len(), len, "{head:?}");
        }
        let all_flags = [0, 1, 0xff, 0x100, 0xffff, 0x1_0000, 0x0102_0304, u32::MAX];
        for (flags, bits) in
            all_flags.into_iter().flat_map(|it| (0..8u8).map(move |bits| (it, bits)))
        {
            let head = ItemHead {
                flags,
                cas: if bits & 4 != 0 { u64::MAX - 7 } else { 0 },
                stale: bits & 1 != 0,
                won: bits & 2 != 0,
            };
            let bytes = head.to_bytes();
            assert_eq!(HeadBytes::len_of(bytes.as_slice()[0]), bytes.as_slice().len());
            assert_eq!(ItemHead::of_bytes(bytes.as_slice()), head);
            assert_eq!(ItemHead::of_marks(head.marks()), head.of_changed());
        }
    }
}
