//! The progress of a search of an index, a few entries at a time.

use crate::tuple::Tuple;

/// A tuple, and the hint of the key by which it was found.
pub type Found<'a> = (u64, &'a Tuple);

/// Entries that a search looks at before others may have a turn.
pub(crate) const LOOKED_AT_ONCE: usize = 64;

/// The result of a look at some entries at most.
#[derive(Clone, Copy, Debug)]
pub enum Looked<'a> {
    /// The next tuple.
    Found(Found<'a>),
    /// Nothing yet.
    AtSome,
    /// Nothing is left.
    AtAll,
}

impl<'a> Looked<'a> {
    /// Looks until something is found, or nothing is left.
    pub(crate) fn until_found(mut look: impl FnMut() -> Looked<'a>) -> Option<Found<'a>> {
        loop {
            match look() {
                Looked::Found(found) => return Some(found),
                Looked::AtSome => {}
                Looked::AtAll => return None,
            }
        }
    }
}
