//! One element in a chunk, in the layout of Redis' listpacks, so that sizes and thresholds agree
//! with Redis' to the byte. It can be read from either side.
//!
//! ```text
//! entry := head, data, back
//! head     0xxxxxxx                    integer 0..=127
//!          10xxxxxx                    string of up to 63 bytes
//!          110xxxxx x                  integer of 13 bits, two's complement
//!          1110xxxx x                  string of up to 4095 bytes
//!          11110000 4 bytes            string of up to 2^32 - 1 bytes
//!          11110001 .. 11110100        integer of 16, 24, 32, 64 bits follows
//!          11110101 8 bytes            longer string (Ladon's own)
//! back     the length of head and data, seven bits a byte, to be read from its end: the first
//!          byte from the end has the lowest bits, and all but the last read have the top bit set
//! ```
//! Numbers in head and data are little-endian. An integer in canonical decimal form is always
//! stored as one, in the shortest form that holds it, so that equal elements are equal bytes.

use crate::types::integer::parse_int;

/// An element, borrowed from its list; an integer where the list keeps it as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Represents its decimal form.
    Int(i64),
    /// The bytes themselves.
    Bytes(&'a [u8]),
}

impl Element<'_> {
    /// Calls `f` with the element's bytes.
    #[inline]
    pub fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Element::Int(int) => f(itoa::Buffer::new().format(int).as_bytes()),
            Element::Bytes(bytes) => f(bytes),
        }
    }

    /// A copy of the element's bytes.
    pub fn to_vec(self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }
}

/// An element to search for.
#[derive(Clone, Copy, Debug)]
pub struct Needle<'a> {
    bytes: &'a [u8],
    int: Option<i64>,
}

impl<'a> Needle<'a> {
    /// Looks for these bytes.
    pub fn new(bytes: &'a [u8]) -> Needle<'a> {
        Needle { bytes, int: parse_int(bytes) }
    }

    /// Whether the element is it.
    #[inline]
    pub fn is(self, element: Element<'_>) -> bool {
        match element {
            Element::Int(int) => self.int == Some(int),
            // Integers are always stored as such.
            Element::Bytes(bytes) => bytes == self.bytes,
        }
    }
}

const STRING_6: u8 = 0x80;
const INT_13: u8 = 0xc0;
const STRING_12: u8 = 0xe0;
const STRING_32: u8 = 0xf0;
const INT_16: u8 = 0xf1;
const INT_24: u8 = 0xf2;
const INT_32: u8 = 0xf3;
const INT_64: u8 = 0xf4;
const STRING_64: u8 = 0xf5;

/// An entry before it is written.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    head: [u8; 9],
    head_len: u8,
    back_len: u8,
    data: &'a [u8],
}

impl<'a> Entry<'a> {
    #[inline]
    pub(super) fn new(element: &'a [u8]) -> Entry<'a> {
        let is_number = matches!(element.first(), Some(b'0'..=b'9' | b'-'));
        if is_number && let Some(int) = parse_int(element) {
            return Entry::of_int(int);
        }
        let len = element.len();
        let mut head = [0; 9];
        let head_len = match len {
            0..=63 => {
                head[0] = STRING_6 | len as u8;
                1
            }
            64..=4095 => {
                head[0] = STRING_12 | (len >> 8) as u8;
                head[1] = len as u8;
                2
            }
            _ if u32::try_from(len).is_ok() => {
                head[0] = STRING_32;
                head[1..5].copy_from_slice(&(len as u32).to_le_bytes());
                5
            }
            _ => {
                head[0] = STRING_64;
                head[1..9].copy_from_slice(&(len as u64).to_le_bytes());
                9
            }
        };
        let back_len = back_len(usize::from(head_len) + len);
        Entry { head, head_len, back_len, data: element }
    }

    fn of_int(int: i64) -> Entry<'static> {
        let mut head = [0; 9];
        let little = int.to_le_bytes();
        let mut wide = |tag: u8, bytes: usize| {
            head[0] = tag;
            head[1..=bytes].copy_from_slice(&little[..bytes]);
            bytes as u8 + 1
        };
        let head_len = match int {
            0..=127 => {
                head[0] = int as u8;
                1
            }
            -4096..=4095 => {
                head[0] = INT_13 | (int >> 8) as u8 & 0x1f;
                head[1] = int as u8;
                2
            }
            -0x8000..=0x7fff => wide(INT_16, 2),
            -0x80_0000..=0x7f_ffff => wide(INT_24, 3),
            -0x8000_0000..=0x7fff_ffff => wide(INT_32, 4),
            _ => wide(INT_64, 8),
        };
        Entry { head, head_len, back_len: 1, data: &[] }
    }

    /// Bytes of the whole entry.
    #[inline]
    pub(super) fn size(&self) -> usize {
        usize::from(self.head_len) + self.data.len() + usize::from(self.back_len)
    }

    /// Writes the entry over `out`, which has its size.
    #[inline]
    pub(super) fn write(&self, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(usize::from(self.head_len));
        head.copy_from_slice(&self.head[..head.len()]);
        let (data, back) = rest.split_at_mut(self.data.len());
        data.copy_from_slice(self.data);
        let mut left = head.len() + data.len();
        let (first, later) = back.split_first_mut().expect("an entry has its length at its end");
        for byte in later.iter_mut().rev() {
            *byte = left as u8 & 0x7f | 0x80;
            left >>= 7;
        }
        *first = left as u8;
    }

    /// The entry as it is written.
    #[cfg(test)]
    pub(super) fn to_vec(self) -> Vec<u8> {
        let mut out = vec![0; self.size()];
        self.write(&mut out);
        out
    }
}

/// Bytes of the length at an entry's end; the bounds are Redis'.
#[inline]
const fn back_len(len: usize) -> u8 {
    match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        268_435_455..=0x7_ffff_ffff => 5,
        _ => 9,
    }
}

/// The first element of `entries`, which are not empty, and the size of its entry.
#[inline]
pub(super) fn first(entries: &[u8]) -> (Element<'_>, usize) {
    let head = entries[0];
    let string = |at: usize, len: usize| {
        let size = at + len + usize::from(back_len(at + len));
        (Element::Bytes(&entries[at..at + len]), size)
    };
    match head {
        0x00..=0x7f => (Element::Int(i64::from(head)), 2),
        0x80..=0xbf => string(1, usize::from(head & 0x3f)),
        0xc0..=0xdf => {
            let raw = u16::from(head & 0x1f) << 8 | u16::from(entries[1]);
            // The thirteenth bit is the sign.
            (Element::Int(i64::from((raw << 3) as i16 >> 3)), 3)
        }
        0xe0..=0xef => string(2, usize::from(head & 0x0f) << 8 | usize::from(entries[1])),
        STRING_32 => string(5, little(&entries[1..5]) as usize),
        INT_16 => (Element::Int(signed(&entries[1..3])), 4),
        INT_24 => (Element::Int(signed(&entries[1..4])), 5),
        INT_32 => (Element::Int(signed(&entries[1..5])), 6),
        INT_64 => (Element::Int(signed(&entries[1..9])), 10),
        STRING_64 => string(9, little(&entries[1..9]) as usize),
        _ => unreachable!("no entry begins with {head:#x}"),
    }
}

/// The size of the last entry of `entries`, which are not empty.
#[inline]
pub(super) fn last_size(entries: &[u8]) -> usize {
    let mut len = 0;
    for (index, &byte) in entries.iter().rev().enumerate() {
        len |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return len + index + 1;
        }
    }
    unreachable!("an entry has its length at its end")
}

/// Where the element of this index begins among `count` entries, walking from the nearer end;
/// `index` may be `count`.
pub(super) fn offset(entries: &[u8], count: usize, index: usize) -> usize {
    if index <= count / 2 {
        let mut at = 0;
        for _ in 0..index {
            at += first(&entries[at..]).1;
        }
        at
    } else {
        let mut at = entries.len();
        for _ in index..count {
            at -= last_size(&entries[..at]);
        }
        at
    }
}

fn little(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len() as u32;
    (little(bytes) << unused) as i64 >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_back_from_both_sides_with_redis_sizes() {
        let text = |len: usize| vec![b'x'; len];
        // Element and the size of its entry in a listpack.
        let cases: Vec<(Vec<u8>, usize)> = vec![
            (b"0".to_vec(), 2),
            (b"127".to_vec(), 2),
            (b"128".to_vec(), 3),
            (b"-1".to_vec(), 3),
            (b"-4096".to_vec(), 3),
            (b"4095".to_vec(), 3),
            (b"4096".to_vec(), 4),
            (b"-32768".to_vec(), 4),
            (b"32768".to_vec(), 5),
            (b"-8388608".to_vec(), 5),
            (b"8388608".to_vec(), 6),
            (b"-2147483648".to_vec(), 6),
            (b"2147483648".to_vec(), 10),
            (i64::MIN.to_string().into_bytes(), 10),
            (i64::MAX.to_string().into_bytes(), 10),
            (b"9223372036854775808".to_vec(), 21),
            (b"01".to_vec(), 4),
            (b"-0".to_vec(), 4),
            (b"-".to_vec(), 3),
            (text(0), 2),
            (text(63), 65),
            (text(64), 67),
            (text(125), 128),
            (text(126), 130),
            (text(4095), 4099),
            (text(4096), 4103),
            (text(16_378), 16_386),
            (text(70_000), 70_008),
        ];
        for (element, size) in cases {
            let entry = Entry::new(&element);
            let mut written = entry.to_vec();
            assert_eq!(written.len(), size, "{:?}", String::from_utf8_lossy(&element));
            assert_eq!(last_size(&written), size);
            written.insert(0, 7);
            assert_eq!(last_size(&written), size);
            written.push(9);
            let (read, read_size) = first(&written[1..]);
            assert_eq!((read.to_vec(), read_size), (element, size));
        }
    }
}
