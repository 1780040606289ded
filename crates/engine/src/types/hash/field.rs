//! A field of a hash.

/// A field, borrowed from its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// When it expires, Unix milliseconds; 0 for never.
    pub expire_at: u64,
}
