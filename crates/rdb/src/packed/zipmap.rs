//! Zipmaps: hashes packed into one string, up to Redis 2.4.
//!
//! ```text
//! zipmap := pairs u8 (254 and more: unknown), pair..., ff
//! pair   := length, field, length, unused bytes u8, value, the unused bytes
//! length := u8 below 254 | fe u32                                        (little endian)
//! ```
//!
//! Source: `zipmap.c` of Redis 7.4.

use std::io::Read;

use super::Item;
use crate::error::Fault;
use crate::source::Source;
use crate::text::Text;

const END: u8 = 0xff;
const LONG: u8 = 0xfe;

pub(super) struct Zipmap {
    /// What the head says, if it says it.
    pairs: Option<u64>,
    /// Fields and values.
    seen: u64,
}

impl Zipmap {
    pub(super) fn open<R: Read>(text: &mut Text, source: &mut Source<R>) -> Result<Zipmap, Fault> {
        let [pairs] = text.array(source)?;
        let pairs = (pairs < LONG).then_some(pairs.into());
        Ok(Zipmap { pairs, seen: 0 })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        text: &mut Text,
        source: &mut Source<R>,
    ) -> Result<Option<Item>, Fault> {
        let is_value = self.seen % 2 == 1;
        let [first] = text.array(source)?;
        let length = match first {
            END if is_value => return Err(Fault::Malformed("a zipmap ends behind a field")),
            END => {
                if self.pairs.is_some_and(|pairs| pairs != self.seen / 2) {
                    return Err(Fault::Malformed("a zipmap's head has another count"));
                }
                return Ok(None);
            }
            LONG => u32::from_le_bytes(text.array(source)?).into(),
            short => u64::from(short),
        };
        let unused = if is_value { text.array::<1, R>(source)?[0] } else { 0 };
        let bytes = text.take(source, length)?;
        text.take(source, unused.into())?;
        self.seen += 1;
        Ok(Some(Item::Bytes(bytes)))
    }
}
