//! Listpacks: collections packed into one string, since Redis 5 (streams) and 7 (all).
//!
//! ```text
//! listpack := bytes u32, elements u16 (65535: unknown), element..., ff   (little endian)
//! element  := 0xxxxxxx | 110xxxxx x (13 bits, signed) | f1 i16 | f2 i24 | f3 i32 | f4 i64
//!             | 10xxxxxx bytes | 1110xxxx x bytes | f0 u32 bytes
//!             followed by its own length, for walking backwards
//! ```
//!
//! Source: `listpack.c` of Redis 7.4.

use std::io::Read;

use super::Item;
use crate::error::Fault;
use crate::source::Source;
use crate::text::Text;

const HEAD_BYTES: usize = 6;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;

pub(super) struct Listpack {
    /// What the head says, if it says it.
    count: Option<u64>,
    seen: u64,
}

impl Listpack {
    pub(super) fn open<R: Read>(
        text: &mut Text,
        source: &mut Source<R>,
    ) -> Result<Listpack, Fault> {
        let head: [u8; HEAD_BYTES] = text.array(source)?;
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        if u64::from(bytes) != text.length() {
            return Err(Fault::Malformed("a listpack's head has another length"));
        }
        let count = u16::from_le_bytes([head[4], head[5]]);
        let count = (count != COUNT_UNKNOWN).then_some(count.into());
        Ok(Listpack { count, seen: 0 })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        text: &mut Text,
        source: &mut Source<R>,
    ) -> Result<Option<Item>, Fault> {
        let before = text.taken();
        let [first] = text.array(source)?;
        let item = match first {
            END => {
                if self.count.is_some_and(|count| count != self.seen) {
                    return Err(Fault::Malformed("a listpack's head has another count"));
                }
                return Ok(None);
            }
            0..0x80 => Item::Number(first.into()),
            0x80..0xc0 => Item::Bytes(text.take(source, u64::from(first & 0x3f))?),
            0xc0..0xe0 => {
                let [low] = text.array(source)?;
                let bits = i16::from(first & 0x1f) << 8 | i16::from(low);
                // 13 bits, of which the highest is the sign.
                Item::Number((bits << 3 >> 3).into())
            }
            0xe0..0xf0 => {
                let [low] = text.array(source)?;
                let length = u64::from(first & 0x0f) << 8 | u64::from(low);
                Item::Bytes(text.take(source, length)?)
            }
            0xf0 => {
                let length = u32::from_le_bytes(text.array(source)?);
                Item::Bytes(text.take(source, length.into())?)
            }
            0xf1 => Item::Number(i16::from_le_bytes(text.array(source)?).into()),
            0xf2 => {
                let [low, middle, high] = text.array(source)?;
                Item::Number((i32::from_le_bytes([0, low, middle, high]) >> 8).into())
            }
            0xf3 => Item::Number(i32::from_le_bytes(text.array(source)?).into()),
            0xf4 => Item::Number(i64::from_le_bytes(text.array(source)?)),
            _ => return Err(Fault::Malformed("a listpack's element has an unknown form")),
        };
        let expected = Backwards::of(text.taken() - before);
        let expected = expected.bytes();
        if text.peek(source, expected.len())? != expected {
            return Err(Fault::Malformed("a listpack's element has another length at its end"));
        }
        text.advance(expected.len());
        self.seen += 1;
        Ok(Some(item))
    }
}

/// The length of an element as it stands behind it: seven bits a byte, the highest first; the first
/// byte is below 0x80, which ends it for those who read backwards.
struct Backwards {
    bytes: [u8; 5],
    count: usize,
}

impl Backwards {
    fn of(length: u64) -> Backwards {
        // One less than the bytes could say, as in `lpEncodeBacklen`.
        let count = match length {
            0..=127 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        };
        let mut bytes = [0; 5];
        for place in 0..count {
            let more = if place + 1 < count { 0x80 } else { 0 };
            bytes[4 - place] = (length >> (7 * place) & 0x7f) as u8 | more;
        }
        Backwards { bytes, count }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[5 - self.count..]
    }
}

/// A listpack that is being written.
pub(crate) struct Pack {
    bytes: Vec<u8>,
    count: u64,
}

impl Pack {
    pub(crate) fn new() -> Pack {
        Pack { bytes: vec![0; HEAD_BYTES], count: 0 }
    }

    pub(crate) fn push_number(&mut self, number: i64) {
        let before = self.bytes.len();
        let out = &mut self.bytes;
        match number {
            0..0x80 => out.push(number as u8),
            -0x1000..0x1000 => {
                out.extend_from_slice(&((number as u16) & 0x1fff | 0xc000).to_be_bytes());
            }
            -0x8000..0x8000 => {
                out.push(0xf1);
                out.extend_from_slice(&(number as i16).to_le_bytes());
            }
            -0x80_0000..0x80_0000 => {
                out.push(0xf2);
                out.extend_from_slice(&number.to_le_bytes()[..3]);
            }
            -0x8000_0000..0x8000_0000 => {
                out.push(0xf3);
                out.extend_from_slice(&(number as i32).to_le_bytes());
            }
            _ => {
                out.push(0xf4);
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        self.end_element(before);
    }

    /// A string; one that a number prints becomes that number, as in Redis.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if let Some(number) = crate::write::canonical_number(bytes) {
            return self.push_number(number);
        }
        let before = self.bytes.len();
        let out = &mut self.bytes;
        match bytes.len() {
            length @ 0..0x40 => out.push(0x80 | length as u8),
            length @ 0x40..0x1000 => {
                out.extend_from_slice(&(0xe000 | length as u16).to_be_bytes());
            }
            length => {
                out.push(0xf0);
                out.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
        out.extend_from_slice(bytes);
        self.end_element(before);
    }

    fn end_element(&mut self, before: usize) {
        let length = self.bytes.len() - before;
        self.bytes.extend_from_slice(Backwards::of(length as u64).bytes());
        self.count += 1;
    }

    /// The whole listpack.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.bytes[4..HEAD_BYTES].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}
