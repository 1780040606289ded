//! Keys and values as text that says what it must be: a value tells its version and is right for
//! one key only.
//!
//! ```text
//!   key    space ':' number, ten digits          orders:0000000007
//!   value  version, eight letters, then letters that follow from space, number and version
//! ```
//!
//! Letters `A` to `P` stand for four bits each: every protocol carries them unescaped.

use crate::load::data::write_digits;
use crate::load::random::mix;

/// A value must have room for its version and for proof of its key.
pub const VALUE_BYTES_MIN: usize = 16;

const VERSION_BYTES: usize = 8;

/// Writes the key of thing `number` of `space`.
#[inline]
pub fn write_key(space: &str, number: u32, to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(space.as_bytes());
    to.extend_from_slice(b":0000000000");
    let start = to.len() - 10;
    write_digits(number, &mut to[start..]);
}

/// Writes version `version` of the value of thing `number`, of `bytes` bytes.
#[inline]
pub fn write_value(number: u64, version: u32, bytes: usize, to: &mut Vec<u8>) {
    to.clear();
    to.resize(bytes.max(VALUE_BYTES_MIN), b' ');
    let (head, rest) = to.split_at_mut(VERSION_BYTES);
    head.copy_from_slice(&letters(version));
    let seed = seed(number, version);
    for (index, piece) in rest.chunks_mut(8).enumerate() {
        piece.copy_from_slice(&letters(mix(seed + index as u64) as u32)[..piece.len()]);
    }
}

/// The version that `value` says it is, if it is one of thing `number`'s of `bytes` bytes.
#[inline]
#[must_use]
pub fn version_of(number: u64, value: &[u8], bytes: usize) -> Option<u32> {
    if value.len() != bytes.max(VALUE_BYTES_MIN) {
        return None;
    }
    let (head, rest) = value.split_at(VERSION_BYTES);
    let mut version = 0u32;
    for &letter in head {
        let digit = letter.wrapping_sub(b'A');
        if digit > 15 {
            return None;
        }
        version = version << 4 | u32::from(digit);
    }
    let seed = seed(number, version);
    let right = rest
        .chunks(8)
        .enumerate()
        .all(|(index, piece)| piece == &letters(mix(seed + index as u64) as u32)[..piece.len()]);
    right.then_some(version)
}

const fn seed(number: u64, version: u32) -> u64 {
    mix(number.rotate_left(32) ^ version as u64)
}

/// Four bits a letter, the highest first.
#[inline]
fn letters(bits: u32) -> [u8; 8] {
    // Nibbles spread to bytes by shifts and masks, all eight at once.
    let mut spread = u64::from(bits);
    spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF;
    spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF;
    spread = (spread | spread << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    (spread + 0x4141_4141_4141_4141).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_right_for_one_key_and_version_only() {
        let mut value = Vec::new();
        for bytes in [16, 19, 64, 256] {
            for version in [1, 77, u32::MAX] {
                write_value(5, version, bytes, &mut value);
                assert_eq!(value.len(), bytes);
                assert!(value.iter().all(|letter| (b'A'..=b'P').contains(letter)));
                assert_eq!(version_of(5, &value, bytes), Some(version));
                assert_eq!(version_of(6, &value, bytes), None, "another key's");
                assert_eq!(version_of(5, &value, bytes + 8), None, "another length");
                for place in [0, 8, bytes - 1] {
                    let mut other = value.clone();
                    other[place] = if other[place] == b'A' { b'B' } else { b'A' };
                    assert_eq!(version_of(5, &other, bytes), None, "a changed letter");
                }
            }
        }
    }

    #[test]
    fn keys_sort_as_their_numbers() {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        write_key("k", 99, &mut low);
        write_key("k", 100, &mut high);
        assert_eq!(low, b"k:0000000099");
        assert!(low < high);
    }

    #[test]
    fn letters_are_hexadecimal() {
        assert_eq!(&letters(0x0123_F00A), b"ABCDPAAK");
    }
}
