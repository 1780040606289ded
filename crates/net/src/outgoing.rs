//! Bytes to be sent: a buffer, or a part of shared memory.
//!
//! A part of something long is sent without a copy. The memory can still be read by others, but
//! because an [`Arc`] shares it, it neither changes nor moves while this exists.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// What a backend sends, and returns when the kernel has taken it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A buffer, which may be used again.
    Buffer(Vec<u8>),
    /// The bytes in `range` of `whole`.
    Part {
        /// The shared memory.
        whole: Arc<Vec<u8>>,
        /// Their range in it.
        range: Range<usize>,
    },
}

impl From<Vec<u8>> for Outgoing {
    #[inline]
    fn from(buffer: Vec<u8>) -> Outgoing {
        Outgoing::Buffer(buffer)
    }
}

impl Deref for Outgoing {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Outgoing::Buffer(buffer) => buffer,
            Outgoing::Part { whole, range } => &whole[range.clone()],
        }
    }
}

impl Outgoing {
    /// Splits off the bytes from `at` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Outgoing {
        match self {
            Outgoing::Buffer(buffer) => Outgoing::Buffer(buffer.split_off(at)),
            Outgoing::Part { whole, range } => {
                assert!(at <= range.len(), "a split beyond the end");
                let rest = range.start + at..range.end;
                range.end = rest.start;
                Outgoing::Part { whole: Arc::clone(whole), range: rest }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_split_without_a_copy() {
        let whole = Arc::new(b"0123456789".to_vec());
        let mut part = Outgoing::Part { whole: Arc::clone(&whole), range: 2..9 };
        let rest = part.split_off(3);
        assert_eq!((&part[..], &rest[..]), (&b"234"[..], &b"5678"[..]));
        assert_eq!(rest.as_ptr(), whole[5..].as_ptr());
        let mut buffer = Outgoing::from(b"0123".to_vec());
        assert_eq!(buffer.split_off(1), Outgoing::from(b"123".to_vec()));
        assert_eq!(&buffer[..], b"0");
    }
}
