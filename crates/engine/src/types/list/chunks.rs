//! A list of many chunks: pointers to them with their counts, so that an index is found without
//! looking into any.
//!
//! Chunks are shared with whoever took a snapshot; a shared one is copied before it changes.

use super::End;
use super::chunk::Chunk;
use super::entry::{Element, Entry};
use super::limits::ListLimits;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct Link {
    pub(super) chunk: Arc<Chunk>,
    /// The chunk's number of elements, never zero.
    count: u32,
}

/// What a chunk costs beyond its elements: itself and its two counters of owners.
const CHUNK_BYTES: usize = size_of::<Chunk>() + 2 * size_of::<usize>();

impl Link {
    fn new(chunk: Chunk) -> Link {
        let count = chunk.len() as u32;
        Link { chunk: Arc::new(chunk), count }
    }

    fn bytes(&self) -> usize {
        CHUNK_BYTES + self.chunk.bytes()
    }
}

/// Chunks, none of them empty. A clone shares them.
#[derive(Clone, Default)]
pub(super) struct Chunks {
    links: VecDeque<Link>,
    len: usize,
    /// Bytes of all chunks.
    bytes: usize,
}

impl Chunks {
    pub(super) fn of(chunk: Chunk) -> Chunks {
        let mut chunks = Chunks::default();
        if chunk.len() != 0 {
            chunks.insert_chunk(0, chunk);
        }
        chunks
    }

    /// The chunk, if there is but one; an empty one, if there is none.
    pub(super) fn into_one(mut self) -> Chunk {
        debug_assert!(self.links.len() <= 1);
        self.links.pop_front().map_or_else(Chunk::default, |link| Arc::unwrap_or_clone(link.chunk))
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Chunks>() + self.links.capacity() * size_of::<Link>() + self.bytes
    }

    pub(super) fn links(&self) -> &VecDeque<Link> {
        &self.links
    }

    /// The chunk that has the element of this index, which is there, and its index within.
    #[inline]
    pub(super) fn find(&self, index: usize) -> (usize, usize) {
        if index >= self.len / 2 {
            let mut behind = self.len - index;
            for (at, link) in self.links.iter().enumerate().rev() {
                let count = link.count as usize;
                if behind <= count {
                    return (at, count - behind);
                }
                behind -= count;
            }
        } else {
            let mut before = index;
            for (at, link) in self.links.iter().enumerate() {
                if before < link.count as usize {
                    return (at, before);
                }
                before -= link.count as usize;
            }
        }
        unreachable!("the list has an element {index}")
    }

    #[inline]
    pub(super) fn push(&mut self, end: End, limits: ListLimits, element: &[u8]) {
        let entry = Entry::new(element);
        let at = match end {
            End::Front => 0,
            End::Back => self.links.len().wrapping_sub(1),
        };
        if self.admits(at, limits, element.len()) {
            self.edit(at, |chunk| chunk.push(end, &entry));
            return;
        }
        if at < self.links.len() {
            self.edit(at, Chunk::trim);
        }
        let mut chunk = Chunk::default();
        chunk.push(end, &entry);
        self.insert_chunk(if end == End::Front { 0 } else { self.links.len() }, chunk);
    }

    /// Takes the element at an end out; there is one.
    #[inline]
    pub(super) fn pop<R>(&mut self, end: End, visit: impl FnOnce(Element<'_>) -> R) -> R {
        let at = if end == End::Front { 0 } else { self.links.len() - 1 };
        self.edit(at, |chunk| chunk.pop(end, visit))
    }

    pub(super) fn set(&mut self, index: usize, limits: ListLimits, element: &[u8]) {
        let (at, within) = self.find(index);
        let link = &self.links[at];
        let (bytes, count) = (link.chunk.listpack_bytes(), link.chunk.len());
        // As Redis: what no longer fits is put in anew.
        if count == 1 || limits.admit(bytes, count - 1, element.len()) {
            self.edit(at, |chunk| chunk.set(within, &Entry::new(element)));
        } else {
            self.edit(at, |chunk| chunk.remove(within, 1));
            self.insert(index, limits, element);
        }
    }

    /// Puts an element before the one of this index, or at the end.
    pub(super) fn insert(&mut self, index: usize, limits: ListLimits, element: &[u8]) {
        if index == self.len {
            return self.push(End::Back, limits, element);
        }
        let len = element.len();
        let (at, within) = self.find(index);
        let entry = Entry::new(element);
        if self.admits(at, limits, len) {
            self.edit(at, |chunk| chunk.insert(within, &entry));
        } else if within == 0 && at > 0 && self.admits(at - 1, limits, len) {
            self.edit(at - 1, |chunk| chunk.push(End::Back, &entry));
        } else if within == 0 {
            let mut chunk = Chunk::default();
            chunk.push(End::Back, &entry);
            self.insert_chunk(at, chunk);
        } else {
            let tail = self.edit(at, |chunk| chunk.split_off(within));
            self.insert_chunk(at + 1, tail);
            if self.admits(at, limits, len) {
                self.edit(at, |chunk| chunk.push(End::Back, &entry));
            } else {
                let mut chunk = Chunk::default();
                chunk.push(End::Back, &entry);
                self.insert_chunk(at + 1, chunk);
            }
            self.merge_around(at, limits);
        }
    }

    /// Removes `count` elements from `index` on; they are there.
    pub(super) fn remove(&mut self, index: usize, mut count: usize) {
        if count == 0 {
            return;
        }
        let (mut at, mut within) = self.find(index);
        while count > 0 {
            let present = self.links[at].count as usize;
            let here = count.min(present - within);
            if here == present {
                // The next one stands in its place now.
                self.remove_chunk(at);
            } else {
                self.edit(at, |chunk| chunk.remove(within, here));
                at += 1;
            }
            count -= here;
            within = 0;
        }
    }

    /// Removes the elements of these indexes, which ascend and are there.
    pub(super) fn remove_each(&mut self, mut indexes: &[usize]) {
        let mut end = self.len;
        for at in (0..self.links.len()).rev() {
            let first = end - self.links[at].count as usize;
            let (before, here) = indexes.split_at(indexes.partition_point(|&index| index < first));
            if !here.is_empty() {
                self.edit(at, |chunk| chunk.remove_each(first, here));
            }
            (indexes, end) = (before, first);
        }
    }

    /// Joins the chunks about `at` as far as they fit into one: what a split has left.
    fn merge_around(&mut self, at: usize, limits: ListLimits) {
        let first = at.saturating_sub(1);
        let mut left = first;
        for _ in 0..4 {
            let Some(right) = self.links.get(left + 1) else { return };
            let (here, next) = (&self.links[left].chunk, &right.chunk);
            // One frame is left of two.
            let bytes = here.listpack_bytes() + next.listpack_bytes() - 7;
            if limits.exceeded(bytes, here.len() + next.len()) {
                left += 1;
                continue;
            }
            let next = Arc::clone(next);
            self.remove_chunk(left + 1);
            self.edit(left, |chunk| chunk.append(&next));
        }
    }

    fn admits(&self, at: usize, limits: ListLimits, len: usize) -> bool {
        self.links
            .get(at)
            .is_some_and(|link| limits.admit(link.chunk.listpack_bytes(), link.count as usize, len))
    }

    /// Changes a chunk, of its own if it is shared, and keeps accounts; an empty one goes.
    #[inline]
    fn edit<R>(&mut self, at: usize, change: impl FnOnce(&mut Chunk) -> R) -> R {
        let link = &mut self.links[at];
        let (bytes, count) = (link.bytes(), link.count);
        let chunk = Arc::make_mut(&mut link.chunk);
        let result = change(chunk);
        link.count = chunk.len() as u32;
        let now = link.count;
        self.bytes = self.bytes + link.bytes() - bytes;
        self.len = self.len + now as usize - count as usize;
        if now == 0 {
            self.remove_chunk(at);
        }
        result
    }

    fn insert_chunk(&mut self, at: usize, chunk: Chunk) {
        let link = Link::new(chunk);
        self.len += link.count as usize;
        self.bytes += link.bytes();
        self.links.insert(at, link);
    }

    fn remove_chunk(&mut self, at: usize) {
        if let Some(link) = self.links.remove(at) {
            self.len -= link.count as usize;
            self.bytes -= link.bytes();
        }
        if self.links.len() < self.links.capacity() / 4 {
            self.links.shrink_to(self.links.len() * 2);
        }
    }
}

#[cfg(test)]
impl Chunks {
    pub(super) fn bytes_by_walking(&self) -> usize {
        let chunks: usize = self.links.iter().map(Link::bytes).sum();
        size_of::<Chunks>() + self.links.capacity() * size_of::<Link>() + chunks
    }
}
