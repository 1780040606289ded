//! Empty buffers for requests and replies, kept for reuse.
//!
//! An idle connection keeps no buffer, and an idle worker soon keeps none either: each tick frees
//! half of the buffers that were not needed since the previous tick.

/// Maximum number of kept buffers.
const KEPT_MAX: usize = 64;
/// Capacity above which a buffer is not kept.
pub(super) const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Empty buffers.
#[derive(Default)]
pub(super) struct Buffers {
    kept: Vec<Vec<u8>>,
    /// Smallest number of kept buffers since the last `trim`.
    fewest: usize,
}

impl Buffers {
    /// Returns an empty buffer, a kept one with capacity if possible.
    #[inline]
    pub(super) fn take(&mut self) -> Vec<u8> {
        let buffer = self.kept.pop();
        self.fewest = self.fewest.min(self.kept.len());
        buffer.unwrap_or_default()
    }

    /// Keeps a buffer for reuse and discards its content.
    #[inline]
    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        if (1..=BUFFER_BYTES_MAX).contains(&buffer.capacity()) && self.kept.len() < KEPT_MAX {
            buffer.clear();
            self.kept.push(buffer);
        }
    }

    /// Whether no buffer is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Frees half of the buffers that were not needed since the last call, the oldest ones.
    pub(super) fn trim(&mut self) {
        self.kept.drain(..self.fewest.div_ceil(2));
        self.fewest = self.kept.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_needs_is_given_back() {
        let mut buffers = Buffers::default();
        let filled = || b"a reply".to_vec();
        (0..100).for_each(|_| buffers.give(filled()));
        buffers.give(Vec::new());
        buffers.give(Vec::with_capacity(BUFFER_BYTES_MAX + 1));
        assert_eq!(buffers.kept.len(), KEPT_MAX);
        // Ten are always in use, and stay.
        for _ in 0..20 {
            let taken: Vec<_> = (0..10).map(|_| buffers.take()).collect();
            assert!(taken.iter().all(|buffer| buffer.is_empty() && buffer.capacity() != 0));
            taken.into_iter().for_each(|_| buffers.give(filled()));
            buffers.trim();
        }
        assert_eq!(buffers.kept.len(), 10);
        (0..20).for_each(|_| buffers.trim());
        assert!(buffers.is_empty());
        assert_eq!(buffers.take().capacity(), 0);
    }
}
