//! Variable-length unsigned integers (LEB128): seven bits a byte, least significant first.

/// What bytes are appended to.
pub trait Sink {
    /// Appends a byte.
    fn push(&mut self, byte: u8);
    /// Appends bytes.
    fn extend_from_slice(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn push(&mut self, byte: u8) {
        Vec::push(self, byte);
    }

    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        Vec::extend_from_slice(self, bytes);
    }
}

/// Appends `value`, one to ten bytes.
#[inline]
pub fn put(out: &mut impl Sink, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that `put` appends.
#[inline]
#[must_use]
pub const fn bytes(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Takes an integer off the front of `input`; `None` when it is cut short or over 64 bits.
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    // Most integers are lengths, counts and differences of one byte.
    if let [byte @ ..0x80, rest @ ..] = *input {
        *input = rest;
        return Some(u64::from(*byte));
    }
    take_long(input)
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in input.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            *input = &input[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Appends a length and the bytes.
#[inline]
pub fn put_bytes(out: &mut impl Sink, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes a length and that many bytes off the front of `input`.
#[inline]
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take(input)?).ok()?;
    if length > input.len() {
        return None;
    }
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_bounds() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(bytes(value), out.len());
            let mut input = &out[..];
            assert_eq!(take(&mut input), Some(value));
            assert!(input.is_empty());
            assert_eq!(take(&mut &out[..out.len() - 1]), None);
        }
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        assert_eq!(take_bytes(&mut &[5, b'a'][..]), None);
    }
}
