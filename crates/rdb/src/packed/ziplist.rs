//! Ziplists: collections packed into one string, up to Redis 6.
//!
//! ```text
//! ziplist := bytes u32, position of the last element u32, elements u16 (65535: unknown),
//!            element..., ff                                              (little endian)
//! element := length of the element before: u8 | fe u32
//!            00xxxxxx bytes | 01xxxxxx x bytes | 80 u32 bytes            (big endian)
//!            | c0 i16 | d0 i32 | e0 i64 | f0 i24 | fe i8 | f1..fd: 0 to 12
//! ```
//!
//! Source: `ziplist.c` of Redis 7.4.

use std::io::Read;

use super::Item;
use crate::error::Fault;
use crate::source::Source;
use crate::text::Text;

const HEAD_BYTES: u64 = 10;
const END: u8 = 0xff;
const LONG: u8 = 0xfe;
const COUNT_UNKNOWN: u16 = u16::MAX;

pub(super) struct Ziplist {
    /// What the head says, if it says it.
    count: Option<u64>,
    seen: u64,
    /// Position of the last element.
    tail: u64,
    /// Position of the element that was read last.
    last: u64,
}

impl Ziplist {
    pub(super) fn open<R: Read>(text: &mut Text, source: &mut Source<R>) -> Result<Ziplist, Fault> {
        let bytes = u32::from_le_bytes(text.array(source)?);
        if u64::from(bytes) != text.length() {
            return Err(Fault::Malformed("a ziplist's head has another length"));
        }
        let tail = u32::from_le_bytes(text.array(source)?).into();
        let count = u16::from_le_bytes(text.array(source)?);
        let count = (count != COUNT_UNKNOWN).then_some(count.into());
        Ok(Ziplist { count, seen: 0, tail, last: HEAD_BYTES })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        text: &mut Text,
        source: &mut Source<R>,
    ) -> Result<Option<Item>, Fault> {
        let at = text.taken();
        let [first] = text.array(source)?;
        let before = match first {
            END => {
                return self.check_end().map(|()| None);
            }
            LONG => u32::from_le_bytes(text.array(source)?).into(),
            short => u64::from(short),
        };
        let is_first = at == HEAD_BYTES;
        if before != if is_first { 0 } else { at - self.last } {
            return Err(Fault::Malformed("a ziplist's element has another length before it"));
        }
        self.last = at;
        self.seen += 1;
        element(text, source).map(Some)
    }

    fn check_end(&self) -> Result<(), Fault> {
        if self.last != self.tail {
            return Err(Fault::Malformed("a ziplist's head has another last element"));
        }
        if self.count.is_some_and(|count| count != self.seen) {
            return Err(Fault::Malformed("a ziplist's head has another count"));
        }
        Ok(())
    }
}

/// An element without what precedes it.
fn element<R: Read>(text: &mut Text, source: &mut Source<R>) -> Result<Item, Fault> {
    let [first] = text.array(source)?;
    Ok(match first {
        0..0x40 => Item::Bytes(text.take(source, first.into())?),
        0x40..0x80 => {
            let [low] = text.array(source)?;
            Item::Bytes(text.take(source, u64::from(first & 0x3f) << 8 | u64::from(low))?)
        }
        0x80 => {
            let length = u32::from_be_bytes(text.array(source)?);
            Item::Bytes(text.take(source, length.into())?)
        }
        0xc0 => Item::Number(i16::from_le_bytes(text.array(source)?).into()),
        0xd0 => Item::Number(i32::from_le_bytes(text.array(source)?).into()),
        0xe0 => Item::Number(i64::from_le_bytes(text.array(source)?)),
        0xf0 => {
            let [low, middle, high] = text.array(source)?;
            Item::Number((i32::from_le_bytes([0, low, middle, high]) >> 8).into())
        }
        0xfe => {
            let [byte] = text.array(source)?;
            Item::Number((byte as i8).into())
        }
        0xf1..0xfe => Item::Number(i64::from(first & 0x0f) - 1),
        _ => return Err(Fault::Malformed("a ziplist's element has an unknown form")),
    })
}
