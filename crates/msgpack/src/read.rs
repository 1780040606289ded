//! Reads one value from the front of a slice.

use crate::{Error, Value};

/// Reads a scalar, or the head of an array or map.
///
/// # Errors
/// `Truncated` or `Unused`.
#[inline]
pub fn read<'a>(input: &mut &'a [u8]) -> Result<Value<'a>, Error> {
    let first = take_array::<1>(input)?[0];
    Ok(match first {
        0x00..=0x7f => Value::Uint(u64::from(first)),
        0x80..=0x8f => Value::Map(u32::from(first & 0x0f)),
        0x90..=0x9f => Value::Array(u32::from(first & 0x0f)),
        0xa0..=0xbf => Value::Str(take_bytes(input, u64::from(first & 0x1f))?),
        0xc0 => Value::Nil,
        0xc1 => return Err(Error::Unused),
        0xc2 => Value::Bool(false),
        0xc3 => Value::Bool(true),
        0xc4..=0xc6 => {
            let length = take_uint(input, 1 << (first - 0xc4))?;
            Value::Bin(take_bytes(input, length)?)
        }
        0xc7..=0xc9 => {
            let length = take_uint(input, 1 << (first - 0xc7))?;
            take_ext(input, length)?
        }
        0xca => Value::Float(f32::from_be_bytes(take_array(input)?)),
        0xcb => Value::Double(f64::from_be_bytes(take_array(input)?)),
        0xcc..=0xcf => Value::Uint(take_uint(input, 1 << (first - 0xcc))?),
        0xd0 => signed(i64::from(i8::from_be_bytes(take_array(input)?))),
        0xd1 => signed(i64::from(i16::from_be_bytes(take_array(input)?))),
        0xd2 => signed(i64::from(i32::from_be_bytes(take_array(input)?))),
        0xd3 => signed(i64::from_be_bytes(take_array(input)?)),
        0xd4..=0xd8 => take_ext(input, 1 << (first - 0xd4))?,
        0xd9..=0xdb => {
            let length = take_uint(input, 1 << (first - 0xd9))?;
            Value::Str(take_bytes(input, length)?)
        }
        0xdc | 0xdd => Value::Array(take_uint(input, 2 << (first - 0xdc))? as u32),
        0xde | 0xdf => Value::Map(take_uint(input, 2 << (first - 0xde))? as u32),
        0xe0..=0xff => Value::Int(i64::from(first as i8)),
    })
}

#[inline]
fn signed<'a>(value: i64) -> Value<'a> {
    u64::try_from(value).map_or(Value::Int(value), Value::Uint)
}

#[inline]
fn take_ext<'a>(input: &mut &'a [u8], length: u64) -> Result<Value<'a>, Error> {
    let kind = take_array::<1>(input)?[0] as i8;
    Ok(Value::Ext(kind, take_bytes(input, length)?))
}

/// Reads a big-endian number of 1, 2, 4 or 8 bytes.
#[inline]
pub(crate) fn take_uint(input: &mut &[u8], size: usize) -> Result<u64, Error> {
    Ok(match size {
        1 => u64::from(take_array::<1>(input)?[0]),
        2 => u64::from(u16::from_be_bytes(take_array(input)?)),
        4 => u64::from(u32::from_be_bytes(take_array(input)?)),
        _ => u64::from_be_bytes(take_array(input)?),
    })
}

#[inline]
pub(crate) fn take_bytes<'a>(input: &mut &'a [u8], length: u64) -> Result<&'a [u8], Error> {
    let length = usize::try_from(length).map_err(|_| Error::Truncated)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(Error::Truncated)?;
    *input = rest;
    Ok(bytes)
}

#[inline]
pub(crate) fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Error> {
    let (bytes, rest) = input.split_first_chunk::<N>().ok_or(Error::Truncated)?;
    *input = rest;
    Ok(*bytes)
}

/// Reads an integer that is not negative.
///
/// # Errors
/// Those of [`read`], and `Type` if it is something else.
#[inline]
pub fn read_uint(input: &mut &[u8]) -> Result<u64, Error> {
    match input.split_first() {
        Some((&first @ 0x00..=0x7f, rest)) => {
            *input = rest;
            Ok(u64::from(first))
        }
        Some((&first @ 0xcc..=0xcf, rest)) => {
            *input = rest;
            take_uint(input, 1 << (first - 0xcc))
        }
        _ => match read(input)? {
            Value::Uint(value) => Ok(value),
            other => Err(Error::Type { expected: "unsigned", found: other.kind().name() }),
        },
    }
}

macro_rules! read_as {
    ($(#[$doc:meta] $name:ident: $expected:literal, $variant:ident -> $type:ty;)*) => {
        $(
            #[$doc]
            ///
            /// # Errors
            /// Those of [`read`], and `Type` if it is something else.
            #[allow(clippy::needless_lifetimes, reason = "some return what they borrow")]
            #[inline]
            pub fn $name<'a>(input: &mut &'a [u8]) -> Result<$type, Error> {
                match read(input)? {
                    Value::$variant(value) => Ok(value),
                    other => Err(Error::Type { expected: $expected, found: other.kind().name() }),
                }
            }
        )*
    };
}

read_as! {
    /// Reads a boolean.
    read_bool: "boolean", Bool -> bool;
    /// Reads a string.
    read_str: "string", Str -> &'a [u8];
    /// Reads bytes.
    read_bin: "varbinary", Bin -> &'a [u8];
    /// Reads the head of an array: the number of values that follow.
    read_array: "array", Array -> u32;
    /// Reads the head of a map: the number of pairs that follow.
    read_map: "map", Map -> u32;
}

/// Reads nil.
///
/// # Errors
/// Those of [`read`], and `Type` if it is something else.
#[inline]
pub fn read_nil(input: &mut &[u8]) -> Result<(), Error> {
    match read(input)? {
        Value::Nil => Ok(()),
        other => Err(Error::Type { expected: "nil", found: other.kind().name() }),
    }
}
