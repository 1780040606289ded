//! The data set that a server is given: which keys there are and what each must hold.
//!
//! A value follows from its key and its **version**, so any reply can be checked without keeping
//! values: `data` holds one version byte per key. All writes of one phase of a run carry the same
//! version, so the order in which a server runs two writes to one key does not matter, and once
//! their replies are in, the key must hold exactly that version.

use super::random::mix;

/// Keys `key:000...0` to `key:000...(keys - 1)` of one length, with values of one length.
#[derive(Clone, Debug)]
pub struct Data {
    keys: u32,
    key_bytes: usize,
    value_bytes: usize,
    versions: Vec<u8>,
    version: u8,
}

/// What every key begins with.
const PREFIX: &[u8; 4] = b"key:";

/// Odd numbers with well-spread bits: one per word of a value, so that words differ.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Data {
    /// `keys` keys of `key_bytes` bytes each with values of `value_bytes` bytes, version 0.
    ///
    /// # Panics
    /// When `key_bytes` is too small to number that many keys (see [`Self::key_bytes_min`]).
    #[must_use]
    pub fn new(keys: u32, key_bytes: usize, value_bytes: usize) -> Self {
        assert!(
            key_bytes >= Self::key_bytes_min(keys),
            "{keys} keys do not fit in {key_bytes} bytes"
        );
        Self { keys, key_bytes, value_bytes, versions: vec![0; keys as usize], version: 0 }
    }

    /// The shortest keys with which `keys` of them can be told apart: `key:` and the digits.
    #[must_use]
    pub fn key_bytes_min(keys: u32) -> usize {
        PREFIX.len() + keys.saturating_sub(1).max(1).ilog10() as usize + 1
    }

    /// How many keys.
    #[must_use]
    pub const fn keys(&self) -> u32 {
        self.keys
    }

    /// Length of each key in bytes.
    #[must_use]
    pub const fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Length of each value in bytes.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Begins a phase in which writes carry a new version. Only between phases, when no reply is
    /// outstanding. Versions wrap after 256 phases; a value 256 phases old would go unnoticed.
    pub const fn next_version(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// Writes key `key` into `to`, of [`Self::key_bytes`] bytes.
    #[inline]
    pub fn write_key(&self, key: u32, to: &mut [u8]) {
        let (prefix, digits) = to.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        write_digits(key, digits);
    }

    /// Notes that key `key` is being written, and writes its new value into `to`.
    #[inline]
    pub fn write_new_value(&mut self, key: u32, to: &mut [u8]) {
        self.versions[key as usize] = self.version;
        fill(key, self.version, to);
    }

    /// Writes the value that key `key` holds already into `to`.
    #[inline]
    pub fn write_same_value(&self, key: u32, to: &mut [u8]) {
        fill(key, self.versions[key as usize], to);
    }

    /// Whether `value` is what key `key` must hold.
    #[inline]
    #[must_use]
    pub fn is_value_of(&self, key: u32, value: &[u8]) -> bool {
        value.len() == self.value_bytes && matches(key, self.versions[key as usize], value)
    }

    /// What key `key` must hold, for messages.
    #[must_use]
    pub fn value_of(&self, key: u32) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        self.write_same_value(key, &mut value);
        value
    }
}

/// Bytes that follow from a number and a version, for elements that no [`Data`] numbers.
#[inline]
pub(crate) fn write_bytes(number: u32, version: u8, to: &mut [u8]) {
    fill(number, version, to);
}

#[inline]
const fn seed(key: u32, version: u8) -> u64 {
    mix(((version as u64) << 32 | key as u64).wrapping_add(STEP))
}

#[inline]
fn fill(key: u32, version: u8, to: &mut [u8]) {
    let mut word = seed(key, version);
    let mut chunks = to.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&word.to_le_bytes());
        word = word.wrapping_add(STEP);
    }
    let rest = chunks.into_remainder();
    rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
}

#[inline]
fn matches(key: u32, version: u8, value: &[u8]) -> bool {
    let mut word = seed(key, version);
    let mut chunks = value.chunks_exact(8);
    let mut different = 0;
    for chunk in &mut chunks {
        // Exactly 8 bytes, as chunks_exact gives them.
        different |= u64::from_le_bytes(chunk.try_into().unwrap_or_default()) ^ word;
        word = word.wrapping_add(STEP);
    }
    let rest = chunks.remainder();
    different == 0 && rest == &word.to_le_bytes()[..rest.len()]
}

/// `number` in decimal, right-aligned, filled with zeros; two digits at a time, as a division for
/// each would cost the generator more than sending the request does.
#[inline]
pub(crate) fn write_digits(mut number: u32, to: &mut [u8]) {
    let mut end = to.len();
    while end >= 2 && number > 0 {
        to[end - 2..end].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
        end -= 2;
    }
    if end == 1 {
        to[0] = b'0' + (number % 10) as u8;
    } else {
        to[..end].fill(b'0');
    }
}

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbered_in_full() {
        let data = Data::new(10_000_000, 11, 8);
        let mut key = [0; 11];
        data.write_key(9_999_999, &mut key);
        assert_eq!(&key, b"key:9999999");
        for (number, digits) in
            [(0, "0000000"), (7, "0000007"), (1_234_567, "1234567"), (98_700, "0098700")]
        {
            data.write_key(number, &mut key);
            assert_eq!(&key[4..], digits.as_bytes());
        }
        let mut even = [b'x'; 12];
        data.write_key(4_321, &mut even);
        assert_eq!(&even, b"key:00004321");
        assert_eq!(Data::key_bytes_min(10_000_000), 11);
        assert_eq!(Data::key_bytes_min(10_000_001), 12);
        assert_eq!(Data::key_bytes_min(1), 5);
    }

    #[test]
    fn only_the_last_version_of_the_right_key_is_right() {
        for value_bytes in [1, 8, 13, 64] {
            let mut data = Data::new(100, 16, value_bytes);
            let old = data.value_of(7);
            assert!(data.is_value_of(7, &old));
            data.next_version();
            assert!(data.is_value_of(7, &old), "not written yet");
            let mut new = vec![0; value_bytes];
            data.write_new_value(7, &mut new);
            assert_eq!(new, data.value_of(7));
            assert!(data.is_value_of(7, &new));
            assert!(!data.is_value_of(7, &old), "a lost write");
            assert!(!data.is_value_of(8, &new), "another key's value");
            assert!(!data.is_value_of(7, &new[..value_bytes - 1]), "too short");
            new[value_bytes - 1] ^= 1;
            assert!(!data.is_value_of(7, &new), "a flipped bit");
        }
    }
}
