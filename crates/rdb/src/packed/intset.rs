//! Intsets: sets of integers packed into one string.
//!
//! ```text
//! intset := bytes of an integer u32 (2, 4 or 8), integers u32, integers in order (little endian)
//! ```
//!
//! Source: `intset.c` of Redis 7.4.

use std::io::Read;

use super::Item;
use crate::error::Fault;
use crate::source::Source;
use crate::text::Text;

const HEAD_BYTES: u64 = 8;

pub(super) struct Intset {
    width: u32,
    last: Option<i64>,
}

impl Intset {
    pub(super) fn open<R: Read>(text: &mut Text, source: &mut Source<R>) -> Result<Intset, Fault> {
        let width = u32::from_le_bytes(text.array(source)?);
        if !matches!(width, 2 | 4 | 8) {
            return Err(Fault::Malformed("an intset's integers have neither 2, 4 nor 8 bytes"));
        }
        let count = u32::from_le_bytes(text.array(source)?);
        if text.length() != HEAD_BYTES + u64::from(count) * u64::from(width) {
            return Err(Fault::Malformed("an intset's head has another count"));
        }
        Ok(Intset { width, last: None })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        text: &mut Text,
        source: &mut Source<R>,
    ) -> Result<Option<Item>, Fault> {
        if text.remaining() == 0 {
            return Ok(None);
        }
        let number = match self.width {
            2 => i16::from_le_bytes(text.array(source)?).into(),
            4 => i32::from_le_bytes(text.array(source)?).into(),
            _ => i64::from_le_bytes(text.array(source)?),
        };
        if self.last.is_some_and(|last| last >= number) {
            return Err(Fault::Malformed("an intset is not in order"));
        }
        self.last = Some(number);
        Ok(Some(Item::Number(number)))
    }
}
