//! Passes whole values, however they are nested.

use crate::{Error, Value, read};

/// Deepest nesting of arrays and maps. A recursive walk of the value needs a bound.
pub const DEPTH_MAX: usize = 128;

/// By its first byte, how many bytes a value takes; 0 where that says too little.
const LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut first = 0;
    while first < 256 {
        lengths[first] = match first {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 1,
            0xa0..=0xbf => 1 + (first as u8 & 0x1f),
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 | 0xd4 => 3,
            0xca | 0xce | 0xd2 => 5,
            0xcb | 0xcf | 0xd3 => 9,
            0xd5 => 4,
            0xd6 => 6,
            0xd7 => 10,
            0xd8 => 18,
            _ => 0,
        };
        first += 1;
    }
    lengths
};

/// Passes the value at the front, if its first byte says where it ends.
#[inline]
fn skip_short(input: &mut &[u8]) -> bool {
    let Some(first) = input.first() else { return false };
    let length = usize::from(LENGTHS[usize::from(*first)]);
    match input.get(length..) {
        Some(rest) if length > 0 => {
            *input = rest;
            true
        }
        _ => false,
    }
}

/// Passes one value with everything in it.
///
/// # Errors
/// `Truncated`, `Unused` or `Depth`.
#[inline]
pub fn skip(input: &mut &[u8]) -> Result<(), Error> {
    if skip_short(input) {
        return Ok(());
    }
    match read(input)? {
        Value::Array(count) => skip_nested(input, u64::from(count)),
        Value::Map(count) => skip_nested(input, 2 * u64::from(count)),
        _ => Ok(()),
    }
}

/// Passes `count` values, all of which are in an array or map.
fn skip_nested(input: &mut &[u8], mut count: u64) -> Result<(), Error> {
    // Most arrays and maps have none inside, and need no list of those that are open.
    while count > 0 {
        count -= 1;
        if skip_short(input) {
            continue;
        }
        match read(input)? {
            Value::Array(inner) => return skip_deep(input, count, u64::from(inner)),
            Value::Map(inner) => return skip_deep(input, count, 2 * u64::from(inner)),
            _ => {}
        }
    }
    Ok(())
}

/// Passes `count` values of an array or map, and after them `outside` of the one around it.
fn skip_deep(input: &mut &[u8], outside: u64, mut count: u64) -> Result<(), Error> {
    let mut outer = [0u64; DEPTH_MAX];
    outer[1] = outside;
    let mut depth = 2;
    loop {
        while count == 0 {
            depth -= 1;
            if depth == 0 {
                return Ok(());
            }
            count = outer[depth];
        }
        count -= 1;
        let inner = match read(input)? {
            Value::Array(count) => u64::from(count),
            Value::Map(count) => 2 * u64::from(count),
            _ => continue,
        };
        if depth == DEPTH_MAX {
            return Err(Error::Depth);
        }
        outer[depth] = count;
        depth += 1;
        count = inner;
    }
}

/// Takes the bytes of one value with everything in it.
///
/// # Errors
/// As [`skip`].
#[inline]
pub fn take<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let before = *input;
    skip(input)?;
    Ok(&before[..before.len() - input.len()])
}

/// Checks that the bytes are exactly one value.
///
/// # Errors
/// As [`skip`], and `Trailing`.
pub fn validate(mut bytes: &[u8]) -> Result<(), Error> {
    skip(&mut bytes)?;
    if bytes.is_empty() { Ok(()) } else { Err(Error::Trailing) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write;

    #[test]
    fn nesting_is_bounded_and_needs_no_stack() {
        let nested = |depth: usize| {
            let mut bytes = vec![0x91; depth];
            bytes.push(0xc0);
            bytes
        };
        assert_eq!(validate(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(validate(&nested(DEPTH_MAX + 1)), Err(Error::Depth));
        assert_eq!(validate(&nested(10_000_000)), Err(Error::Depth));
        // Four billion announced values take nothing.
        assert_eq!(validate(&[0xdf, 0xff, 0xff, 0xff, 0xff]), Err(Error::Truncated));
    }

    #[test]
    fn lengths_are_those_that_reading_finds() {
        for first in 0..=255u8 {
            let mut bytes = [0; 300];
            (bytes[0], bytes[299]) = (first, 0xc1);
            let mut rest = &bytes[..];
            let length = read(&mut rest).map_or(0, |_| bytes.len() - rest.len());
            let known = usize::from(LENGTHS[usize::from(first)]);
            assert!(known == 0 || known == length, "{first:x}");
            let is_nested = matches!(first, 0x80..=0x9f | 0xdc..=0xdf);
            assert!(!is_nested || known == 0, "{first:x}");
            for cut in 0..length {
                assert_eq!(skip(&mut &bytes[..cut]), Err(Error::Truncated), "{first:x}");
            }
        }
    }

    #[test]
    fn a_value_is_taken_whole() {
        let mut bytes = Vec::new();
        write::array(&mut bytes, 2);
        write::map(&mut bytes, 1);
        write::str(&mut bytes, b"key");
        write::array(&mut bytes, 0);
        write::uint(&mut bytes, 7);
        let whole = bytes.len();
        write::nil(&mut bytes);
        let mut rest = &bytes[..];
        assert_eq!(take(&mut rest).unwrap().len(), whole);
        assert_eq!(rest, [0xc0]);
        assert_eq!(validate(&bytes), Err(Error::Trailing));
        for cut in 0..whole {
            assert_eq!(validate(&bytes[..cut]), Err(Error::Truncated));
        }
    }
}
