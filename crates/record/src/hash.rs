//! The hash of a key, stable for the life of a data directory.
//!
//! The table, `SCAN`'s cursor and the ranges of a checkpoint are all laid out in the order of
//! this hash, so it is written to disk by implication: the function is rapidhash V3 (a fixed
//! specification) and its seed is drawn once per data directory.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// A key's 64-bit hash; its top bits choose partition, segment and bucket, in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u64);

/// Hashes keys with one data directory's seed.
#[derive(Clone)]
pub struct KeyHasher {
    seed: u64,
    secrets: RapidSecrets,
}

impl KeyHasher {
    /// A hasher for a data directory's `seed`.
    pub fn new(seed: u64) -> Self {
        KeyHasher { seed, secrets: RapidSecrets::seed(seed) }
    }

    /// The seed that this hasher was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of `key`.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(rapidhash_v3_seeded(key, &self.secrets))
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyHasher").field("seed", &self.seed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_a_data_directory_never_changes() {
        // Written to disk by implication: if this fails, old data directories cannot be read.
        let hasher = KeyHasher::new(7);
        assert_eq!(hasher.hash(b"ladon"), KeyHasher::new(7).hash(b"ladon"));
        assert_ne!(hasher.hash(b"ladon"), KeyHasher::new(8).hash(b"ladon"));
    }
}
