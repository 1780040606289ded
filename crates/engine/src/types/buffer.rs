//! The bytes of a packed value, in finely sized memory ([`Pieces`]).
//!
//! A value that grows bit by bit gets an eighth more capacity than it needs: copying it for every
//! element would cost more than the memory is worth. A value that is built at once, or stored
//! again, has the exact size.

use crate::pieces::Pieces;
use allocator_api2::vec::Vec as PieceVec;
use ladon_record::varint::Sink;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

/// Slack capacity of a growing buffer, as a fraction of its length.
const SLACK_DIVISOR: usize = 8;

/// Growable bytes.
#[derive(Debug)]
pub(crate) struct Buffer(PieceVec<u8, Pieces>);

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer(PieceVec::new_in(Pieces))
    }
}

impl Clone for Buffer {
    /// Without the room to grow.
    fn clone(&self) -> Buffer {
        Buffer::of(self)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Where room was not made before, it is made with slack.
impl Sink for Buffer {
    // Inlined everywhere: a call costs more than what it does, and varints are pushed bytewise.
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.reserve(1);
        self.0.push(byte);
    }

    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.put(bytes);
    }
}

impl Buffer {
    /// An empty buffer with this capacity.
    pub(crate) fn with_room(bytes: usize) -> Buffer {
        Buffer(PieceVec::with_capacity_in(Pieces::rounded(bytes), Pieces))
    }

    /// A buffer of these bytes, without slack.
    pub(crate) fn of(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::with_room(bytes.len());
        buffer.put(bytes);
        buffer
    }

    /// Appends bytes for which there is capacity. The vector's own method takes them one by one,
    /// because it lacks the standard library's specialization for types that can be copied at once.
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let length = self.0.len();
        self.0.spare_capacity_mut()[..bytes.len()].write_copy_of_slice(bytes);
        // SAFETY: the bytes after the first `length` were just written, within the capacity.
        unsafe { self.0.set_len(length + bytes.len()) };
    }

    /// Bytes of memory that it takes.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Reserves capacity for this many more bytes, and for some slack if there is none yet.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.0.capacity() - self.0.len() < more {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let length = self.0.len();
        let needed = length.saturating_add(more);
        let wanted = Pieces::rounded(needed.saturating_add(length / SLACK_DIVISOR));
        self.0.reserve_exact(wanted - length);
    }

    /// Changes the length; new bytes are zero.
    #[inline]
    pub(crate) fn resize(&mut self, length: usize) {
        self.reserve(length.saturating_sub(self.0.len()));
        self.0.resize(length, 0);
    }

    #[inline]
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// Replaces the bytes in `range` by `bytes`.
    pub(crate) fn replace(&mut self, range: Range<usize>, bytes: &[u8]) {
        let (length, end) = (self.0.len(), range.start + bytes.len());
        if bytes.len() > range.len() {
            self.resize(length + bytes.len() - range.len());
            self.0.copy_within(range.end..length, end);
        } else {
            self.0.copy_within(range.end..length, end);
            self.0.truncate(length + bytes.len() - range.len());
        }
        self.0[range.start..end].copy_from_slice(bytes);
    }

    /// Removes the bytes in `range`, and frees memory if less than half is used.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        self.replace(range, &[]);
        let length = self.0.len();
        if length < self.0.capacity() / 2 {
            self.0.shrink_to(Pieces::rounded(length + length / SLACK_DIVISOR));
        }
    }

    /// Moves the bytes if that saves memory; returns how many were moved.
    pub(crate) fn compact(&mut self) -> usize {
        let room = self.0.capacity();
        // SAFETY: the vector's own memory, which it got for this capacity.
        if !unsafe { Pieces::is_sparse(NonNull::from(&mut *self.0).cast(), room) } {
            return 0;
        }
        let mut moved = Buffer(PieceVec::with_capacity_in(room, Pieces));
        moved.put(self);
        *self = moved;
        room
    }

    /// Frees the slack.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to(Pieces::rounded(self.0.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]

        #[test]
        fn it_does_what_a_vector_does(
            steps in prop::collection::vec(
                (0u8..6, any::<u16>(), any::<u16>(), 0usize..700),
                0..if cfg!(miri) { 12 } else { 60 },
            )
        ) {
            let (mut buffer, mut model) = (Buffer::default(), Vec::new());
            for (index, (step, a, b, count)) in steps.into_iter().enumerate() {
                let (a, b) = (usize::from(a) % (model.len() + 1), usize::from(b) % (model.len() + 1));
                let range = a.min(b)..a.max(b);
                let bytes = vec![index as u8; count];
                match step {
                    0 | 1 => {
                        buffer.extend_from_slice(&bytes);
                        model.extend_from_slice(&bytes);
                    }
                    2 => {
                        buffer.replace(range.clone(), &bytes);
                        model.splice(range, bytes);
                    }
                    3 => {
                        buffer.remove(range.clone());
                        model.drain(range);
                    }
                    4 => {
                        buffer.resize(count);
                        model.resize(count, 0);
                    }
                    _ => {
                        buffer.shrink_to_fit();
                        prop_assert_eq!(buffer.capacity(), Pieces::rounded(model.len()));
                    }
                }
                let room = buffer.capacity();
                buffer.compact();
                prop_assert_eq!(buffer.capacity(), room);
                prop_assert_eq!(&buffer[..], &model[..]);
                prop_assert_eq!(&buffer.clone()[..], &model[..]);
                prop_assert_eq!(buffer.capacity(), Pieces::rounded(buffer.capacity()));
            }
        }
    }

    #[test]
    fn slack_is_an_eighth_and_what_is_built_at_once_has_none() {
        let mut grown = Buffer::default();
        for _ in 0..54 {
            grown.extend_from_slice(&[1; 20]);
            assert!(grown.capacity() <= grown.len() + grown.len() / SLACK_DIVISOR + 20);
        }
        assert_eq!(Buffer::of(&grown).capacity(), 1088);
        grown.remove(0..600);
        assert!(grown.capacity() <= 560, "{}", grown.capacity());
    }
}
