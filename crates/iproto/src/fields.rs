//! The pairs of a header or a body, a map whose keys are numbers.

use ladon_msgpack::{Error, Kind, Value, read, skip};

/// Reads a map's pairs one after the other. The bytes behind the last pair are what `rest` is then.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    remaining: u32,
}

/// One pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    /// `None` if it is not a number.
    pub key: Option<u64>,
    /// The value; of an array or map, its head.
    pub value: Value<'a>,
    /// The whole value's bytes.
    pub bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads the map's head. `Ok(None)` if the bytes begin with something else.
    pub fn new(mut bytes: &'a [u8]) -> Result<Option<Fields<'a>>, Error> {
        match read(&mut bytes)? {
            Value::Map(remaining) => Ok(Some(Fields { rest: bytes, remaining })),
            _ => Ok(None),
        }
    }

    /// The next pair, `None` after the last one.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Field<'a>>, Error> {
        let Some(remaining) = self.remaining.checked_sub(1) else { return Ok(None) };
        self.remaining = remaining;
        let key = match self.rest.split_first() {
            // All known keys are such small numbers.
            Some((&key @ 0..0x80, rest)) => {
                self.rest = rest;
                Some(u64::from(key))
            }
            _ => match self.value()? {
                (Value::Uint(key), _) => Some(key),
                _ => None,
            },
        };
        let (value, bytes) = self.value()?;
        Ok(Some(Field { key, value, bytes }))
    }

    /// What follows the map, once all pairs are read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn value(&mut self) -> Result<(Value<'a>, &'a [u8]), Error> {
        let before = self.rest;
        let value = read(&mut self.rest)?;
        if matches!(value.kind(), Kind::Array | Kind::Map) {
            self.rest = before;
            skip(&mut self.rest)?;
        }
        Ok((value, &before[..before.len() - self.rest.len()]))
    }
}
