//! Which register an element belongs to, and what it raises it to: MurmurHash64A with Redis' seed.

use super::{PATTERN_BITS, REGISTER_BITS, REGISTERS};

const SEED: u64 = 0xadc8_3b19;

/// A register, and a count for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Below [`REGISTERS`].
    pub(crate) index: usize,
    pub(crate) count: u8,
}

/// An element's register, and the length of the run of zeros there with the one that ends it.
#[inline]
pub(crate) fn position(element: &[u8]) -> Position {
    let hash = murmur_64a(element);
    let index = hash as usize & (REGISTERS - 1);
    // The bit above the pattern ends the longest run.
    let pattern = hash >> REGISTER_BITS | 1 << PATTERN_BITS;
    Position { index, count: pattern.trailing_zeros() as u8 + 1 }
}

fn murmur_64a(bytes: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> R;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}
