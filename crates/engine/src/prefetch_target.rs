//! What to prefetch (`lookahead.rs`).

use ladon_record::KeyHash;

/// The part of a value that a command will access, if the value is not stored in its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessedPart {
    /// None, or unknown.
    #[default]
    Nothing,
    /// The beginning and the end.
    Whole,
    /// The member or field with this hash.
    Element(KeyHash),
    /// A byte of a string.
    Byte(usize),
}

/// A key that will be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// The number of its database.
    pub db: u16,
    /// Its hash.
    pub hash: KeyHash,
}

/// The part of a key's value that a command will access.
#[derive(Clone, Copy, Debug)]
pub struct PartAhead {
    /// The key.
    pub key: Ahead,
    /// The key's index in the batch.
    pub at: u32,
    /// The part.
    pub inside: AccessedPart,
}
