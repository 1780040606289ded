//! What will be looked at, and is fetched ahead (`lookahead.rs`).

use ladon_model::KeyHash;

/// What a command will look at inside a value that does not sit in its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// Nothing, or it is not known.
    #[default]
    Nothing,
    /// Its beginning and its end.
    Whole,
    /// The member or field with this hash.
    Element(KeyHash),
    /// A string's byte.
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

/// What will be looked at inside a key's value.
#[derive(Clone, Copy, Debug)]
pub struct AheadInside {
    /// The key.
    pub key: Ahead,
    /// Which of the batch's keys that is.
    pub at: u32,
    /// What is looked at.
    pub inside: Inside,
    /// The value's header was not looked at lately, and has to be fetched before what it points to.
    pub fetch_header: bool,
}
