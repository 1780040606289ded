//! The fields of a tuple's MessagePack array.

use ladon_msgpack as msgpack;

/// The fields, one after the other: an array without its head. Ends early where the bytes are
/// damaged.
pub struct Fields<'a>(&'a [u8], u32);

impl<'a> Fields<'a> {
    /// The fields of an array; none of anything else.
    pub fn of(mut bytes: &'a [u8]) -> Fields<'a> {
        let count = msgpack::read_array(&mut bytes).unwrap_or(0);
        Fields(bytes, count)
    }

    /// How many are left.
    pub fn count(&self) -> u32 {
        self.1
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.1 = self.1.checked_sub(1)?;
        msgpack::take(&mut self.0).ok()
    }
}

/// The field with this number, from 0.
#[inline]
pub fn field(bytes: &[u8], number: u32) -> Option<&[u8]> {
    let mut rest = from_field(bytes, number)?;
    msgpack::take(&mut rest).ok()
}

/// The array's bytes from the field with this number on.
#[inline]
pub fn from_field(mut bytes: &[u8], number: u32) -> Option<&[u8]> {
    // Most arrays are shorter than 16.
    let count = match bytes.first() {
        Some(first @ 0x90..=0x9f) => {
            bytes = &bytes[1..];
            u32::from(first & 0x0f)
        }
        _ => msgpack::read_array(&mut bytes).ok()?,
    };
    if number >= count {
        return None;
    }
    for _ in 0..number {
        msgpack::skip(&mut bytes).ok()?;
    }
    Some(bytes)
}
