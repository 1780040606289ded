//! A string too long to sit in its entry. A very long one can be frozen.
//!
//! Freezing takes a second hold of the same memory. The living string copies all of it before its
//! next change, if it is still held by then: once for each time it was frozen. So only what would
//! keep others waiting for longer than such a copy does may freeze a string.

use super::collection::Saving;
use crate::item::ItemHead;
use std::ops::Deref;
use std::sync::Arc;

/// From this length on a string is kept so that it can be frozen; its reference count is then no
/// memory to speak of.
const SHARED_BYTES_MIN: usize = 64 << 10;
/// Longer strings are not copied while a checkpoint holds the lock.
const SNAPSHOT_BYTES_MIN: usize = 1 << 20;
/// What counts as a piece of memory when it is dropped: given back to the system, this much takes
/// about as long as any other piece.
const DROPPED_BYTES: usize = 64 << 10;

/// A string's bytes.
#[derive(Debug)]
pub struct LongString {
    repr: Repr,
    /// Too few have one for it to count as memory.
    head: Option<Box<ItemHead>>,
}

#[derive(Debug)]
enum Repr {
    Own(Vec<u8>),
    Shared(Arc<Vec<u8>>),
}

impl From<Vec<u8>> for LongString {
    fn from(bytes: Vec<u8>) -> LongString {
        let repr = if bytes.len() < SHARED_BYTES_MIN {
            Repr::Own(bytes)
        } else {
            Repr::Shared(Arc::new(bytes))
        };
        LongString { repr, head: None }
    }
}

impl Default for LongString {
    fn default() -> LongString {
        LongString { repr: Repr::Own(Vec::new()), head: None }
    }
}

impl Deref for LongString {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.vec()
    }
}

impl LongString {
    #[inline]
    fn vec(&self) -> &Vec<u8> {
        match &self.repr {
            Repr::Own(bytes) => bytes,
            Repr::Shared(bytes) => bytes,
        }
    }

    /// Bytes of memory beyond the value itself.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let counts = match &self.repr {
            Repr::Own(_) => 0,
            Repr::Shared(_) => size_of::<Vec<u8>>() + 2 * size_of::<usize>(),
        };
        self.vec().capacity() + counts
    }

    /// How much work dropping it is, in pieces of memory.
    pub(crate) fn drop_effort(&self) -> usize {
        1 + self.vec().capacity() / DROPPED_BYTES
    }

    /// Changes the bytes in place.
    #[inline]
    pub(crate) fn edit<R>(&mut self, edit: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.head.is_some() {
            self.forget_version();
        }
        match &mut self.repr {
            Repr::Own(bytes) => {
                let result = edit(bytes);
                if bytes.len() >= SHARED_BYTES_MIN {
                    self.repr = LongString::from(std::mem::take(bytes)).repr;
                }
                result
            }
            Repr::Shared(bytes) => edit(Arc::make_mut(bytes)),
        }
    }

    /// The same bytes for reading on any thread, unaffected by later changes; never to be changed.
    /// A copy, if that is as quick.
    pub fn freeze(&self) -> LongString {
        match &self.repr {
            Repr::Own(_) => self.duplicate(),
            Repr::Shared(bytes) => {
                let repr = Repr::Shared(Arc::clone(bytes));
                LongString { repr, head: None }.with_head(self.head().of_changed())
            }
        }
    }

    /// The bytes of a frozen one, for any number of holders.
    pub fn into_shared(self) -> Arc<Vec<u8>> {
        match self.repr {
            Repr::Own(bytes) => Arc::new(bytes),
            Repr::Shared(bytes) => bytes,
        }
    }

    /// A copy in separate memory.
    pub(crate) fn duplicate(&self) -> LongString {
        LongString::from(self.to_vec()).with_head(self.head().of_changed())
    }

    /// What it has besides its bytes.
    #[inline]
    pub fn head(&self) -> ItemHead {
        self.head.as_deref().copied().unwrap_or_default()
    }

    pub(crate) fn set_head(&mut self, head: ItemHead) {
        self.head = (!head.is_empty()).then(|| Box::new(head));
    }

    /// The same with another head.
    pub(crate) fn with_head(mut self, head: ItemHead) -> LongString {
        self.set_head(head);
        self
    }

    /// The bytes are about to change, or to belong to another key.
    #[cold]
    pub(crate) fn forget_version(&mut self) {
        self.set_head(self.head().of_changed());
    }

    pub(crate) fn saving(&self) -> Saving {
        if self.len() < SNAPSHOT_BYTES_MIN {
            return Saving::Whole;
        }
        let frozen = self.freeze();
        Saving::Snapshot(Box::new(move |take: &mut dyn FnMut(&[u8])| take(&frozen)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frozen_stays_whatever_the_living_string_does() {
        let mut living = LongString::from(vec![1; SHARED_BYTES_MIN]);
        let frozen = living.freeze();
        assert_eq!(frozen.as_ptr(), living.as_ptr(), "nothing was copied");
        living.edit(|bytes| bytes[7] = 2);
        assert_ne!(frozen.as_ptr(), living.as_ptr());
        assert_eq!((frozen[7], living[7]), (1, 2));
        let at = living.as_ptr();
        drop(frozen);
        living.edit(|bytes| bytes[8] = 3);
        assert_eq!(living.as_ptr(), at, "nobody else holds it");
    }

    #[test]
    fn a_string_that_grows_long_can_be_frozen() {
        let mut string = LongString::from(vec![0; 5000]);
        assert_ne!(string.freeze().as_ptr(), string.as_ptr());
        let before = string.bytes();
        string.edit(|bytes| bytes.resize(SHARED_BYTES_MIN, 0));
        assert_eq!(string.freeze().as_ptr(), string.as_ptr());
        assert!(string.bytes() >= before + SHARED_BYTES_MIN - 5000);
        assert!(string.drop_effort() > 1);
        assert!(matches!(string.saving(), Saving::Whole));
    }
}
