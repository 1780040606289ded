//! Loads large values.

use super::{SHORT, SHORT_BYTES, Sizes, Value};
use crate::load::question::Question;
use crate::load::random::mix;
use crate::load::words::{array, bulk, bulk_number, integer, name};

/// Loads a value, many elements with each request.
#[derive(Debug)]
pub struct Fill {
    value: Value,
    sizes: Sizes,
}

/// Elements that one request carries.
const ELEMENTS_AT_ONCE: u32 = 50;
/// Bytes of a string that one request carries.
const BYTES_AT_ONCE: u32 = 64 << 10;

impl Fill {
    /// Loads `value`, which is not there.
    #[must_use]
    pub const fn new(value: Value, sizes: Sizes) -> Self {
        Self { value, sizes }
    }

    const fn elements(&self) -> u32 {
        match self.value {
            Value::SortedSet => self.sizes.sorted_set,
            Value::Hash | Value::Renamed => self.sizes.hash,
            Value::FirstSet | Value::SecondSet => self.sizes.set,
            Value::List => self.sizes.list,
            Value::FirstString | Value::SecondString => self.sizes.string,
            Value::ShortStrings => 2 * SHORT_BYTES,
        }
    }

    const fn at_once(&self) -> u32 {
        match self.value {
            Value::FirstString | Value::SecondString => BYTES_AT_ONCE,
            Value::ShortStrings => SHORT_BYTES,
            _ => ELEMENTS_AT_ONCE,
        }
    }

    fn range(&self, about: u32) -> std::ops::Range<u32> {
        let start = about * self.at_once();
        start..self.elements().min(start + self.at_once())
    }

    /// Writes a piece of a string at its place.
    fn write_bytes(&self, about: u32, to: &mut Vec<u8>) {
        let range = self.range(about);
        let (key, start) = match self.value {
            Value::ShortStrings => (SHORT[about as usize % 2], 0),
            value => (value.key(), range.start),
        };
        array(4, to);
        bulk(b"SETRANGE", to);
        bulk(key.as_bytes(), to);
        bulk_number(start.into(), to);
        let byte = if self.value == Value::SecondString { 0x55 } else { 0xff };
        bulk(&vec![byte; range.len()], to);
    }
}

impl Question for Fill {
    fn count(&self) -> u32 {
        self.elements().div_ceil(self.at_once())
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let (command, words) = match self.value {
            Value::SortedSet => (&b"ZADD"[..], 2),
            Value::Hash | Value::Renamed => (&b"HSET"[..], 2),
            Value::FirstSet | Value::SecondSet => (&b"SADD"[..], 1),
            Value::List => (&b"RPUSH"[..], 1),
            Value::FirstString | Value::SecondString | Value::ShortStrings => {
                return self.write_bytes(about, to);
            }
        };
        let range = self.range(about);
        array(2 + words * range.len(), to);
        bulk(command, to);
        bulk(self.value.key().as_bytes(), to);
        for number in range {
            match self.value {
                Value::SortedSet => {
                    bulk_number(mix(number.into()) % 100_000_000, to);
                    bulk(&name(b'm', number), to);
                }
                Value::Hash | Value::Renamed => {
                    bulk(&name(b'f', number), to);
                    bulk(&name(b'v', number), to);
                }
                Value::FirstSet => bulk(&name(b'm', number), to),
                Value::SecondSet => bulk(&name(b'm', number + self.sizes.set / 2), to),
                _ => bulk(&name(b'e', number), to),
            }
        }
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        let range = self.range(about);
        let length = match self.value {
            Value::List | Value::FirstString | Value::SecondString => range.end,
            _ => range.len() as u32,
        };
        integer(length.into(), to);
    }
}
