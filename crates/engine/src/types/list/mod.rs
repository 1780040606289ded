//! Lists: a deque of packed chunks, open at both ends.
//!
//! A short list is one chunk within the value (Redis: listpack). A longer one is pointers to
//! chunks of some KiB (quicklist), each shared with the snapshots that saving takes and copied
//! before its next change. Those far from both ends may be compressed (`list-compress-depth`).
//!
//! ```text
//! Packed   [ a b c ]
//! Chunked  (3, ->[ a b c ]) (2, ->[ d e ]) (3, ->[ f g h ])      counts beside the pointers
//! ```

mod chunk;
mod chunks;
mod collection;
mod compressed;
mod delta;
mod elements;
mod entry;
pub(super) mod limits;
mod link;
mod walk;

#[cfg(test)]
mod tests;

pub use delta::Step;
pub use elements::Elements;
pub use entry::{Element, Needle};
pub use limits::{LARGE_BYTES, ListLimits};

use crate::prefetch::{prefetch, prefetch_bytes};
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use chunk::Chunk;
use chunks::Chunks;
use crossbeam_epoch::Guard;
use entry::Entry;
use link::Link;

/// One of a list's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The head: Redis' LEFT.
    Front,
    /// The tail: Redis' RIGHT.
    Back,
}

/// A list of elements.
pub struct ListValue(Repr);

enum Repr {
    Packed(Chunk),
    Chunked(Box<Chunks>),
}

impl std::fmt::Debug for ListValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ListValue({}, {} elements)", self.encoding(), self.len())
    }
}

impl Default for ListValue {
    fn default() -> Self {
        ListValue::new()
    }
}

impl ListValue {
    /// An empty list.
    pub fn new() -> ListValue {
        ListValue(Repr::Packed(Chunk::default()))
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(chunk) => chunk.len(),
            Repr::Chunked(chunks) => chunks.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beyond the value itself.
    #[inline]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Packed(chunk) => chunk.bytes(),
            Repr::Chunked(chunks) => chunks.bytes(),
        }
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match self.0 {
            Repr::Packed(_) => "listpack",
            Repr::Chunked(_) => "quicklist",
        }
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        match &self.0 {
            Repr::Packed(_) => 1,
            Repr::Chunked(chunks) => chunks.links().len(),
        }
    }

    /// Bytes that listpacks of the same chunks would have.
    pub fn listpack_bytes(&self) -> usize {
        match &self.0 {
            Repr::Packed(chunk) => chunk.listpack_bytes(),
            Repr::Chunked(chunks) => chunks.links().iter().map(Link::listpack_bytes).sum(),
        }
    }

    /// How many chunks at each end stay plain; 0 where all do.
    pub fn compress_depth(&self) -> usize {
        match &self.0 {
            Repr::Packed(_) => 0,
            Repr::Chunked(chunks) => chunks.depth(),
        }
    }

    /// The same elements in the same chunks, which both lists share if they are many.
    pub fn duplicate(&self) -> ListValue {
        match &self.0 {
            Repr::Packed(chunk) => ListValue(Repr::Packed(chunk.clone())),
            Repr::Chunked(chunks) => ListValue(Repr::Chunked(Box::new(Chunks::clone(chunks)))),
        }
    }

    /// See [`crate::Object::prefetch`].
    pub(crate) fn prefetch(&self, _inside: AccessedPart, _guard: &Guard) -> BucketHint {
        match &self.0 {
            Repr::Chunked(chunks) => prefetch(&raw const **chunks),
            Repr::Packed(chunk) => prefetch_bytes(chunk.entries()),
        }
        BucketHint::NONE
    }

    // ---- changing ----

    /// Called before `count` elements of `bytes` bytes together are pushed at `end`: a list that
    /// would become too long for one chunk gets several.
    pub fn expect(&mut self, end: End, limits: ListLimits, bytes: usize, count: usize) {
        /// What an entry has around most elements.
        const AROUND_BYTES: usize = 2;
        let Repr::Packed(chunk) = &mut self.0 else { return };
        if limits.exceeded(chunk.listpack_bytes() + bytes, chunk.len() + count) {
            self.0 = Repr::Chunked(Box::new(Chunks::of(std::mem::take(chunk), limits.depth)));
        } else if count > 1 {
            chunk.expect(end, bytes + AROUND_BYTES * count);
        }
    }

    /// Puts an element at an end, for which `expect` has made ready.
    #[inline]
    pub fn push(&mut self, end: End, limits: ListLimits, element: &[u8]) {
        match &mut self.0 {
            Repr::Packed(chunk) => chunk.push(end, &Entry::new(element)),
            Repr::Chunked(chunks) => chunks.push(end, limits, element),
        }
    }

    /// Puts an element at the back of a list that is being made or loaded, without an `expect`: it
    /// gets more chunks as the first is full, as if it had grown and shrunk to this.
    pub fn append(&mut self, limits: ListLimits, element: &[u8]) {
        if let Repr::Packed(chunk) = &mut self.0 {
            let (bytes, count) = (chunk.listpack_bytes(), chunk.len());
            let fits = if count == 0 {
                !limits.exceeded(bytes + element.len(), 1)
            } else {
                limits.admit(bytes, count, element.len())
            };
            if !fits {
                self.0 = Repr::Chunked(Box::new(Chunks::of(std::mem::take(chunk), limits.depth)));
            }
        }
        self.push(End::Back, limits, element);
    }

    /// Takes the element at an end out, and hands it to `visit` first; `None` if there is none.
    #[inline]
    pub fn pop<R>(&mut self, end: End, visit: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        Some(match &mut self.0 {
            Repr::Packed(chunk) => chunk.pop(end, visit),
            Repr::Chunked(chunks) => chunks.pop(end, visit),
        })
    }

    /// Replaces an element; returns whether there is one at this index.
    pub fn set(&mut self, index: usize, limits: ListLimits, element: &[u8]) -> bool {
        if index >= self.len() {
            return false;
        }
        match &mut self.0 {
            Repr::Packed(chunk) => chunk.set(index, &Entry::new(element)),
            Repr::Chunked(chunks) => chunks.set(index, limits, element),
        }
        true
    }

    /// Inserts an element before the one of this index, or at the end; returns whether the index is
    /// valid.
    pub fn insert(&mut self, index: usize, limits: ListLimits, element: &[u8]) -> bool {
        if index > self.len() {
            return false;
        }
        match &mut self.0 {
            Repr::Packed(chunk) => chunk.insert(index, &Entry::new(element)),
            Repr::Chunked(chunks) => chunks.insert(index, limits, element),
        }
        true
    }

    /// Removes up to `count` elements from `index` on.
    pub fn remove(&mut self, index: usize, count: usize) {
        let count = count.min(self.len().saturating_sub(index));
        match &mut self.0 {
            _ if count == 0 => {}
            Repr::Packed(chunk) => chunk.remove(index, count),
            Repr::Chunked(chunks) => chunks.remove(index, count),
        }
    }

    /// Removes the elements of these indexes, which ascend; none of them may be beyond the end.
    pub fn remove_each(&mut self, indexes: &[usize]) {
        match &mut self.0 {
            Repr::Packed(chunk) => chunk.remove_each(0, indexes),
            Repr::Chunked(chunks) => chunks.remove_each(indexes),
        }
    }

    /// After elements have left, or been replaced: a list that is short again is one chunk.
    #[inline]
    pub fn settle(&mut self, limits: ListLimits) {
        let Repr::Chunked(chunks) = &mut self.0 else { return };
        if chunks.links().len() > 1 {
            return;
        }
        let bytes = chunks.links().front().map_or(0, Link::listpack_bytes);
        if limits.is_small(bytes, chunks.len()) {
            self.0 = Repr::Packed(std::mem::take(&mut **chunks).into_one());
        }
    }
}
