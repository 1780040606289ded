//! A tuple in a tree, beside its key's hint.

use crate::tree::Item;
use crate::tuple::Tuple;

/// A tuple in a tree, with its key's hint: most comparisons need no look at the tuple.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) hint: u64,
    pub(crate) tuple: Tuple,
}

impl Item for Entry {
    #[inline]
    fn hint(&self) -> u64 {
        self.hint
    }

    #[inline]
    fn fetch(&self) {
        self.tuple.fetch();
    }

    #[inline]
    fn fetch_all(&self) {
        self.tuple.fetch_all();
    }
}
