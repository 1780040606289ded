//! A list of many chunks: pointers to them with their counts, so that an index is found without
//! reading any chunk.
//!
//! Chunks are shared with snapshots; a shared one is copied before it changes. With a depth
//! (`list-compress-depth`), that many chunks at each end are plain, and those between them are
//! compressed if that pays, whenever no change is in progress.

use super::End;
use super::chunk::{Chunk, LISTPACK_FRAME_BYTES};
use super::entry::{Element, Entry};
use super::limits::ListLimits;
use super::link::Link;
use std::collections::VecDeque;
use std::ops::Range;

/// Chunks, none of them empty. A clone shares them.
#[derive(Clone, Default)]
pub(super) struct Chunks {
    links: VecDeque<Link>,
    len: usize,
    /// Bytes of all chunks.
    bytes: usize,
    /// Number of chunks at each end that stay plain; 0 for all. The setting at the time when the
    /// list got its second chunk.
    depth: usize,
}

impl Chunks {
    pub(super) fn of(chunk: Chunk, depth: usize) -> Chunks {
        let mut chunks = Chunks { depth, ..Chunks::default() };
        if chunk.len() != 0 {
            chunks.insert_chunk(0, chunk);
        }
        chunks
    }

    /// The only chunk; an empty one if there is none.
    pub(super) fn into_one(mut self) -> Chunk {
        debug_assert!(self.links.len() <= 1);
        self.links.pop_front().map_or_else(Chunk::default, Link::into_chunk)
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

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The chunk that has the element of this index, which is there, and its index within.
    #[inline]
    pub(super) fn find(&self, index: usize) -> (usize, usize) {
        if index >= self.len / 2 {
            let mut behind = self.len - index;
            for (at, link) in self.links.iter().enumerate().rev() {
                let count = link.count();
                if behind <= count {
                    return (at, count - behind);
                }
                behind -= count;
            }
        } else {
            let mut before = index;
            for (at, link) in self.links.iter().enumerate() {
                if before < link.count() {
                    return (at, before);
                }
                before -= link.count();
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
        let before = self.links.len();
        if at < before {
            self.edit(at, Chunk::trim);
        }
        let mut chunk = Chunk::default();
        chunk.push(end, &entry);
        self.insert_chunk(if end == End::Front { 0 } else { before }, chunk);
        self.settle(before);
    }

    /// Takes the element at an end out; there is one.
    #[inline]
    pub(super) fn pop<R>(&mut self, end: End, visit: impl FnOnce(Element<'_>) -> R) -> R {
        let before = self.links.len();
        let at = if end == End::Front { 0 } else { before - 1 };
        let result = self.edit(at, |chunk| chunk.pop(end, visit));
        self.settle(before);
        result
    }

    pub(super) fn set(&mut self, index: usize, limits: ListLimits, element: &[u8]) {
        let (at, within) = self.find(index);
        let link = &self.links[at];
        let (bytes, count) = (link.listpack_bytes(), link.count());
        // As in Redis: an element that no longer fits is inserted again.
        if count == 1 || limits.admit(bytes, count - 1, element.len()) {
            self.edit(at, |chunk| chunk.set(within, &Entry::new(element)));
            self.settle_at(at..at + 1);
        } else {
            self.edit(at, |chunk| chunk.remove(within, 1));
            self.insert(index, limits, element);
            // A separate chunk may precede the one that it left.
            self.settle_at(at..at + 2);
        }
    }

    /// Puts an element before the one of this index, or at the end.
    pub(super) fn insert(&mut self, index: usize, limits: ListLimits, element: &[u8]) {
        if index == self.len {
            return self.push(End::Back, limits, element);
        }
        let (len, before) = (element.len(), self.links.len());
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
        self.settle(before);
        // At most one before it and two behind it were touched.
        self.settle_at(at.saturating_sub(1)..at + 3);
    }

    /// Removes `count` elements from `index` on; they are there.
    pub(super) fn remove(&mut self, index: usize, mut count: usize) {
        if count == 0 {
            return;
        }
        let before = self.links.len();
        let (mut at, mut within) = self.find(index);
        let first = at;
        while count > 0 {
            let present = self.links[at].count();
            let here = count.min(present - within);
            if here == present {
                // The next chunk has taken its place.
                self.remove_chunk(at);
            } else {
                self.edit(at, |chunk| chunk.remove(within, here));
                at += 1;
            }
            count -= here;
            within = 0;
        }
        self.settle(before);
        self.settle_at(first..first + 2);
    }

    /// Removes the elements of these indexes, which ascend and are there.
    pub(super) fn remove_each(&mut self, mut indexes: &[usize]) {
        let (mut end, before) = (self.len, self.links.len());
        for at in (0..before).rev() {
            let first = end - self.links[at].count();
            let (rest, here) = indexes.split_at(indexes.partition_point(|&index| index < first));
            if !here.is_empty() {
                self.edit(at, |chunk| chunk.remove_each(first, here));
                self.settle_at(at..at + 1);
            }
            (indexes, end) = (rest, first);
        }
        self.settle(before);
    }

    /// Merges the chunks around `at` as far as they fit into one, after a split.
    fn merge_around(&mut self, at: usize, limits: ListLimits) {
        let first = at.saturating_sub(1);
        let mut left = first;
        for _ in 0..4 {
            let Some(right) = self.links.get(left + 1) else { return };
            let here = &self.links[left];
            // One frame is left of two.
            let bytes = here.listpack_bytes() + right.listpack_bytes() - LISTPACK_FRAME_BYTES;
            if limits.exceeded(bytes, here.count() + right.count()) {
                left += 1;
                continue;
            }
            if let Some(right) = self.remove_chunk(left + 1) {
                let right = right.into_chunk();
                self.edit(left, |chunk| chunk.append(&right));
            }
        }
    }

    fn admits(&self, at: usize, limits: ListLimits, len: usize) -> bool {
        self.links
            .get(at)
            .is_some_and(|link| limits.admit(link.listpack_bytes(), link.count(), len))
    }

    // ---- which are compressed ----

    /// Called after chunks were added or removed, when there were `before` of them: compresses or
    /// unpacks those whose distance from either end has changed.
    #[inline]
    fn settle(&mut self, before: usize) {
        if self.depth != 0 && before != self.links.len() {
            self.settle_ends(before);
        }
    }

    #[cold]
    fn settle_ends(&mut self, before: usize) {
        let moved = before.abs_diff(self.links.len());
        let from = self.depth.saturating_sub(moved);
        let to = self.depth.saturating_add(moved).min(self.links.len());
        for at in from..to {
            self.settle_one(at);
            self.settle_one(self.links.len() - 1 - at);
        }
    }

    /// After the chunks of these places were changed; there may be fewer.
    #[inline]
    fn settle_at(&mut self, places: Range<usize>) {
        if self.depth != 0 {
            for at in places.start..places.end.min(self.links.len()) {
                self.settle_one(at);
            }
        }
    }

    #[cold]
    fn settle_one(&mut self, at: usize) {
        let nearest = at.min(self.links.len() - 1 - at);
        let link = &mut self.links[at];
        self.bytes -= link.bytes();
        if nearest >= self.depth {
            link.pack();
        } else {
            link.unpack();
        }
        self.bytes += link.bytes();
    }

    // ---- keeping accounts ----

    /// Changes a chunk, of its own if it is shared; an empty one goes.
    #[inline]
    fn edit<R>(&mut self, at: usize, change: impl FnOnce(&mut Chunk) -> R) -> R {
        let link = &mut self.links[at];
        let (bytes, count) = (link.bytes(), link.count());
        let result = link.edit(change);
        let now = link.count();
        self.bytes = self.bytes + link.bytes() - bytes;
        self.len = self.len + now - count;
        if now == 0 {
            self.remove_chunk(at);
        }
        result
    }

    fn insert_chunk(&mut self, at: usize, chunk: Chunk) {
        let link = Link::new(chunk);
        self.len += link.count();
        self.bytes += link.bytes();
        self.links.insert(at, link);
    }

    fn remove_chunk(&mut self, at: usize) -> Option<Link> {
        let link = self.links.remove(at)?;
        self.len -= link.count();
        self.bytes -= link.bytes();
        if self.links.len() < self.links.capacity() / 4 {
            self.links.shrink_to(self.links.len() * 2);
        }
        Some(link)
    }
}

#[cfg(test)]
impl Chunks {
    pub(super) fn bytes_by_walking(&self) -> usize {
        let chunks: usize = self.links.iter().map(Link::bytes).sum();
        size_of::<Chunks>() + self.links.capacity() * size_of::<Link>() + chunks
    }

    /// Whether the chunks at the ends are plain, and which of those between them are compressed.
    pub(super) fn compressed(&self) -> (bool, Vec<bool>) {
        let depth = if self.depth == 0 { usize::MAX } else { self.depth };
        let is_inner = |at: usize| at.min(self.links.len() - 1 - at) >= depth;
        let links = || self.links.iter().enumerate();
        let plain_ends = links().all(|(at, link)| is_inner(at) || !link.is_compressed());
        let inner = links().filter(|(at, _)| is_inner(*at));
        (plain_ends, inner.map(|(_, link)| link.is_compressed()).collect())
    }
}
