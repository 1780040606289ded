//! SHA1, which names scripts.

use sha1::{Digest as _, Sha1};

/// The SHA1 of some bytes, in lowercase hexadecimal digits.
#[must_use]
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    hex(Sha1::new_with_prefix(bytes))
}

/// What was hashed, in lowercase hexadecimal digits.
pub(crate) fn hex(hash: Sha1) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(hash.finalize()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}
