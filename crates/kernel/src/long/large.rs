//! From which size on a value is large: its reply is made in slices, or its result aside.

use ladon_engine::Collection;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sizes from which values are large, and the size of slices; for the whole node.
#[derive(Debug)]
pub struct Slicing {
    /// Elements from which on a reply is made in slices.
    pub large_elements: AtomicUsize,
    /// Maximum number of elements in a slice.
    pub slice_elements: AtomicUsize,
    /// Elements from which on a result is computed aside (`aside.rs`).
    pub aside_elements: AtomicUsize,
}

/// A tenth to a fifth of a millisecond of work.
const SLICE_ELEMENTS: usize = 1024;
/// About a millisecond of unions and intersections.
const ASIDE_ELEMENTS: usize = 8192;
/// Elements with more bytes than this together are a large reply, however few they are.
const LARGE_BYTES: usize = 1 << 20;

/// Bytes of a string that are about as much work as an element of a collection.
const BYTES_LIKE_AN_ELEMENT: usize = 512;

/// A string shorter than this fraction of a long one is copied, because sending it separately takes
/// longer.
const PARTS_OF_LONG_MAX: usize = 16;

impl Default for Slicing {
    fn default() -> Self {
        Slicing {
            large_elements: (2 * SLICE_ELEMENTS).into(),
            slice_elements: SLICE_ELEMENTS.into(),
            aside_elements: ASIDE_ELEMENTS.into(),
        }
    }
}

/// The size from which a value is frozen and answered in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Large(usize);

impl Large {
    /// No value is large.
    pub const NEVER: Large = Large(usize::MAX);

    /// Whether values with this many elements and bytes together are large.
    pub fn is_total(self, elements: usize, bytes: usize) -> bool {
        elements >= self.0 || self.0 != usize::MAX && bytes >= LARGE_BYTES
    }

    /// Whether strings of this many bytes together are large.
    pub fn is_total_string(self, bytes: usize) -> bool {
        self.is_long(bytes) || self.is_total(0, bytes)
    }

    /// Whether a string is long of which this many bytes are read or sent.
    pub fn is_long(self, bytes: usize) -> bool {
        bytes >= self.bytes()
    }

    /// Whether to send a string from its own memory, in a reply that already has `before` bytes of
    /// others.
    pub fn is_block(self, bytes: usize, before: usize) -> bool {
        self.is_long(before.saturating_add(bytes)) && bytes >= self.bytes() / PARTS_OF_LONG_MAX
    }

    /// Elements from which on a value is large.
    pub fn elements(self) -> usize {
        self.0
    }

    /// Bytes of a string from which on it is long.
    pub(crate) fn bytes(self) -> usize {
        self.0.saturating_mul(BYTES_LIKE_AN_ELEMENT)
    }

    /// Whether a value is large of which this many elements go into the reply.
    pub fn is(self, value: &impl Collection, elements: usize) -> bool {
        // A small part of a large value is a short reply: freezing the value would cost more.
        let bytes = || elements as u128 * value.bytes() as u128 / value.len().max(1) as u128;
        // One element is one slice in any case.
        elements >= self.0 || self.0 != usize::MAX && elements > 1 && bytes() >= LARGE_BYTES as u128
    }
}

impl Slicing {
    /// The size from which a reply is made in slices.
    pub(crate) fn large_reply(&self) -> Large {
        Large(self.large_elements.load(Relaxed))
    }

    /// The size from which a result is computed aside.
    pub fn large_aside(&self) -> Large {
        Large(self.aside_elements.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_engine::types::list::{End, ListLimits, ListValue};

    #[test]
    fn a_reply_is_as_large_as_what_goes_into_it() {
        let list = |elements: usize, bytes: usize| {
            let mut list = ListValue::new();
            for _ in 0..elements {
                list.push(End::Back, ListLimits::of_setting(-2), &vec![b'x'; bytes]);
            }
            list
        };
        let large = Large(2048);
        let (many, long) = (list(200_000, 10), list(40, 100_000));
        assert!(large.is(&many, 2048));
        assert!(!large.is(&many, 100), "a hundred of many");
        assert!(large.is(&long, 40), "few, but of 4 MB");
        assert!(!large.is(&long, 5), "half a megabyte of it");
        assert!(!large.is(&long, 1), "one is a slice");
        assert!(!Large(usize::MAX).is(&many, 200_000), "where the reply is made at once");
    }
}
