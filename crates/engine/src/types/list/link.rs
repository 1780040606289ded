//! A chunk in a list of many: shared, and plain or compressed.

use super::chunk::{Chunk, LISTPACK_FRAME_BYTES};
use super::compressed::Compressed;
use std::sync::Arc;

/// A pointer to a chunk, and its number of elements, which is never zero.
#[derive(Clone)]
pub(super) enum Link {
    Plain { count: u32, chunk: Arc<Chunk> },
    Compressed { count: u32, chunk: Arc<Compressed> },
}

const _: () = assert!(size_of::<Link>() == 16);

/// Overhead of shared memory: its two reference counters.
const OWNERS_BYTES: usize = 2 * size_of::<usize>();

impl Link {
    pub(super) fn new(chunk: Chunk) -> Link {
        Link::Plain { count: chunk.len() as u32, chunk: Arc::new(chunk) }
    }

    /// Number of elements.
    #[inline]
    pub(super) fn count(&self) -> usize {
        match self {
            Link::Plain { count, .. } | Link::Compressed { count, .. } => *count as usize,
        }
    }

    /// Bytes of memory that the chunk takes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Link::Plain { chunk, .. } => OWNERS_BYTES + size_of::<Chunk>() + chunk.bytes(),
            Link::Compressed { chunk, .. } => {
                OWNERS_BYTES + size_of::<Compressed>() + chunk.bytes()
            }
        }
    }

    /// Bytes that a listpack of the same elements would have.
    #[inline]
    pub(super) fn listpack_bytes(&self) -> usize {
        match self {
            Link::Plain { chunk, .. } => chunk.listpack_bytes(),
            Link::Compressed { chunk, .. } => chunk.plain_bytes() + LISTPACK_FRAME_BYTES,
        }
    }

    /// The entries, concatenated; decompressed into `unpacked` if necessary.
    #[inline]
    pub(super) fn entries<'a>(&'a self, unpacked: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Link::Plain { chunk, .. } => chunk.entries(),
            Link::Compressed { chunk, .. } => chunk.entries(unpacked),
        }
    }

    /// The chunk itself if it is not shared, otherwise a copy.
    pub(super) fn into_chunk(mut self) -> Chunk {
        self.unpack();
        match self {
            Link::Plain { chunk, .. } => Arc::unwrap_or_clone(chunk),
            Link::Compressed { .. } => unreachable!("it was unpacked"),
        }
    }

    /// Changes the chunk, or a copy of it if it is shared; it is then plain, and may be empty.
    #[inline]
    pub(super) fn edit<R>(&mut self, change: impl FnOnce(&mut Chunk) -> R) -> R {
        if self.is_compressed() {
            self.unpack();
        }
        match self {
            Link::Plain { count, chunk } => {
                let chunk = Arc::make_mut(chunk);
                let result = change(chunk);
                *count = chunk.len() as u32;
                result
            }
            Link::Compressed { .. } => unreachable!("it was unpacked"),
        }
    }

    #[inline]
    pub(super) fn is_compressed(&self) -> bool {
        matches!(self, Link::Compressed { .. })
    }

    /// Compresses a plain chunk, if that pays.
    pub(super) fn pack(&mut self) {
        if let Link::Plain { count, chunk } = self
            && let Some(compressed) = Compressed::of(chunk)
        {
            *self = Link::Compressed { count: *count, chunk: Arc::new(compressed) };
        }
    }

    /// Makes a compressed chunk plain.
    #[cold]
    pub(super) fn unpack(&mut self) {
        if let Link::Compressed { count, chunk } = self {
            let chunk = Chunk::of_entries(chunk.entries(&mut Vec::new()), *count);
            *self = Link::Plain { count: *count, chunk: Arc::new(chunk) };
        }
    }
}
