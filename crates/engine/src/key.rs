//! A key beside its hash, which is computed once.

use ladon_record::KeyHash;

/// A key and its hash.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's bytes.
    pub bytes: &'a [u8],
    /// `Keyspace::hash` of them.
    pub hash: KeyHash,
}
