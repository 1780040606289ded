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

/// Bytes that a head takes in an entry.
pub(crate) const HEAD_BYTES: usize = 13;

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

    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.flags.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.cas.to_le_bytes());
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        bytes[12] = bit(self.stale, STALE) | bit(self.won, WON);
        bytes
    }

    pub(crate) fn of_bytes(bytes: [u8; HEAD_BYTES]) -> ItemHead {
        let [f0, f1, f2, f3, c0, c1, c2, c3, c4, c5, c6, c7, marks] = bytes;
        ItemHead {
            flags: u32::from_le_bytes([f0, f1, f2, f3]),
            cas: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
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
        for bits in 0..4u8 {
            let head = ItemHead {
                flags: 0x0102_0304,
                cas: u64::MAX - 7,
                stale: bits & 1 != 0,
                won: bits & 2 != 0,
            };
            assert_eq!(ItemHead::of_bytes(head.to_bytes()), head);
            assert_eq!(ItemHead::of_marks(head.marks()), head.of_changed());
        }
    }
}
