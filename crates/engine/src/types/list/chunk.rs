//! A chunk: some elements in one allocation, with space at both ends.
//!
//! ```text
//! buffer  [ gap | entry entry entry | room ]
//!               ^start              ^len    ^capacity
//! ```

use super::End;
use super::entry::{self, Element, Entry};
use crate::types::buffer::Buffer;
use ladon_record::varint::Sink;

/// Bytes of a listpack besides its entries, which Redis' limits count.
pub(super) const LISTPACK_FRAME_BYTES: usize = 7;

/// Minimum spare capacity after growing.
const SPARE_BYTES_MIN: usize = 16;

/// A short chunk used as a queue, in at one end and out at the other, gets capacity for this many
/// elements at once: otherwise every element or two would move all others.
const QUEUED_MIN: usize = 8;

/// Up to this size a chunk counts as short; in a longer one, an eighth of it has room for as many
/// elements.
const SHORT_BYTES: usize = 1024;

/// A run of elements.
#[derive(Default)]
pub(super) struct Chunk {
    buffer: Buffer,
    /// 32 bits suffice: a chunk of several elements is far smaller than 4 GiB, and one of a single
    /// element needs no gap.
    start: u32,
    count: u32,
}

impl Clone for Chunk {
    /// Without the gap.
    fn clone(&self) -> Chunk {
        Chunk::of_entries(self.entries(), self.count)
    }
}

impl Chunk {
    /// A chunk of these entries, which are so many.
    pub(super) fn of_entries(entries: &[u8], count: u32) -> Chunk {
        Chunk { buffer: Buffer::of(entries), start: 0, count }
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// See [`Buffer::compact`].
    pub(super) fn compact(&mut self) -> usize {
        self.buffer.compact()
    }

    /// The entries, one behind the other.
    #[inline]
    pub(super) fn entries(&self) -> &[u8] {
        &self.buffer[self.start as usize..]
    }

    /// Bytes of memory that the elements take.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes that a listpack of the same elements would have.
    #[inline]
    pub(super) fn listpack_bytes(&self) -> usize {
        self.entries().len() + LISTPACK_FRAME_BYTES
    }

    /// Makes room for about so many bytes of further entries, at the front or at the back.
    pub(super) fn expect(&mut self, end: End, bytes: usize) {
        match end {
            End::Front if (self.start as usize) < bytes => self.regrow(bytes, 0),
            End::Back if self.buffer.capacity() - self.buffer.len() < bytes => {
                self.regrow(0, bytes);
            }
            _ => {}
        }
    }

    #[inline]
    pub(super) fn push(&mut self, end: End, entry: &Entry<'_>) {
        match end {
            // One element needs no gap, and may be too long for one.
            End::Front if self.count != 0 || self.start != 0 => self.push_front(entry),
            _ => self.push_back(entry),
        }
    }

    #[inline]
    fn push_back(&mut self, entry: &Entry<'_>) {
        let (size, len) = (entry.size(), self.buffer.len());
        if self.buffer.capacity() - len < size {
            self.make_room(End::Back, size);
        }
        let at = self.buffer.len();
        self.buffer.resize(at + size);
        entry.write(&mut self.buffer[at..]);
        self.count += 1;
    }

    #[inline]
    fn push_front(&mut self, entry: &Entry<'_>) {
        let size = entry.size();
        if (self.start as usize) < size {
            self.make_room(End::Front, size);
        }
        let end = self.start as usize;
        entry.write(&mut self.buffer[end - size..end]);
        self.start -= size as u32;
        self.count += 1;
    }

    /// Takes the element at an end out; `visit` sees it first. There is one.
    #[inline]
    pub(super) fn pop<R>(&mut self, end: End, visit: impl FnOnce(Element<'_>) -> R) -> R {
        let entries = self.entries();
        let (result, size) = match end {
            End::Front => {
                let (element, size) = entry::first(entries);
                (visit(element), size)
            }
            End::Back => {
                let size = entry::last_size(entries);
                (visit(entry::first(&entries[entries.len() - size..]).0), size)
            }
        };
        self.count -= 1;
        if self.count == 0 {
            self.clear();
            return result;
        }
        match end {
            End::Front => self.start += size as u32,
            End::Back => self.buffer.truncate(self.buffer.len() - size),
        }
        self.shrink();
        result
    }

    /// Where the element of this index begins among the entries; `index` may be the number of
    /// elements.
    fn offset(&self, index: usize) -> usize {
        entry::offset(self.entries(), self.len(), index)
    }

    /// Puts an element before the one of this index, or at the end.
    pub(super) fn insert(&mut self, index: usize, entry: &Entry<'_>) {
        let at = self.offset(index);
        self.replace_bytes(at, 0, entry);
        self.count += 1;
    }

    /// Puts an element in the place of the one of this index.
    pub(super) fn set(&mut self, index: usize, entry: &Entry<'_>) {
        let at = self.offset(index);
        let (_, size) = entry::first(&self.entries()[at..]);
        self.replace_bytes(at, size, entry);
    }

    /// Removes `count` elements from `index` on.
    pub(super) fn remove(&mut self, index: usize, count: usize) {
        if count == self.len() {
            self.clear();
            return;
        }
        let (begin, end) = (self.offset(index), self.offset(index + count));
        let start = self.start as usize;
        if begin == 0 {
            self.start += end as u32;
        } else {
            self.buffer.replace(start + begin..start + end, &[]);
        }
        self.count -= count as u32;
        self.shrink();
    }

    /// Removes the elements of these indexes, counted from `first`, which ascend and are there.
    pub(super) fn remove_each(&mut self, first: usize, indexes: &[usize]) {
        if indexes.len() == self.len() {
            return self.clear();
        }
        let mut kept = Buffer::with_room(self.entries().len());
        let mut rest = self.entries();
        let mut next = first;
        for &index in indexes {
            let begin = rest;
            while next < index {
                rest = &rest[entry::first(rest).1..];
                next += 1;
            }
            kept.extend_from_slice(&begin[..begin.len() - rest.len()]);
            rest = &rest[entry::first(rest).1..];
            next += 1;
        }
        kept.extend_from_slice(rest);
        (self.buffer, self.start) = (kept, 0);
        self.count -= indexes.len() as u32;
        self.shrink();
    }

    /// Takes the elements from `index` on out into a chunk of their own.
    pub(super) fn split_off(&mut self, index: usize) -> Chunk {
        let at = self.start as usize + self.offset(index);
        let count = self.count - index as u32;
        let tail = Chunk::of_entries(&self.buffer[at..], count);
        self.buffer.truncate(at);
        self.count -= count;
        self.shrink();
        tail
    }

    /// Appends the elements of another chunk.
    pub(super) fn append(&mut self, other: &Chunk) {
        self.expect(End::Back, other.entries().len());
        self.buffer.extend_from_slice(other.entries());
        self.count += other.count;
    }

    /// Gives back room that a chunk which no longer grows has no use for.
    pub(super) fn trim(&mut self) {
        let live = self.entries().len();
        if self.buffer.capacity() - live > live / 16 + SPARE_BYTES_MIN {
            self.regrow(0, 0);
        }
    }

    fn clear(&mut self) {
        self.buffer.truncate(0);
        (self.start, self.count) = (0, 0);
    }

    /// Puts `entry` over the `old` bytes at `at` of the entries.
    fn replace_bytes(&mut self, at: usize, old: usize, entry: &Entry<'_>) {
        let size = entry.size();
        if size > old && self.buffer.capacity() - self.buffer.len() < size - old {
            self.make_room(End::Back, size - old);
        }
        let at = self.start as usize + at;
        let tail = at + old..self.buffer.len();
        if size >= old {
            self.buffer.resize(tail.end + (size - old));
            self.buffer.copy_within(tail, at + size);
        } else {
            let end = tail.end - (old - size);
            self.buffer.copy_within(tail, at + size);
            self.buffer.truncate(end);
        }
        entry.write(&mut self.buffer[at..at + size]);
    }

    /// Makes room for `size` bytes before or after the entries: taken from the other side if there
    /// is much, otherwise from the allocator.
    #[cold]
    fn make_room(&mut self, end: End, size: usize) {
        let live = self.entries().len();
        let spare = (live / 8).max(SPARE_BYTES_MIN);
        let unused = self.buffer.capacity() - live;
        let others = match end {
            End::Front => unused,
            End::Back => self.start as usize,
        };
        let queued = QUEUED_MIN * size;
        let wanted = if others < size + spare {
            // It only grows.
            size + spare
        } else if others < queued && live + queued < SHORT_BYTES {
            queued
        } else {
            // A third stays on the other side, for a list that is pushed to from both sides.
            return match end {
                End::Front => self.place(size.max(unused - unused / 3)),
                End::Back => self.place((others / 3).min(others - size)),
            };
        };
        match end {
            End::Front => self.regrow(wanted, 0),
            End::Back => self.regrow(0, wanted),
        }
    }

    /// Moves the entries within the memory that there is.
    fn place(&mut self, start: usize) {
        let (from, live) = (self.start as usize, self.entries().len());
        if start > from {
            self.buffer.resize(start + live);
            self.buffer.copy_within(from..from + live, start);
        } else {
            self.buffer.copy_within(from.., start);
            self.buffer.truncate(start + live);
        }
        self.start = start as u32;
    }

    /// Moves the entries into new memory with `gap` bytes before and `room` bytes behind them.
    fn regrow(&mut self, gap: usize, room: usize) {
        let entries = self.entries();
        let mut buffer = Buffer::with_room(gap + entries.len() + room);
        buffer.resize(gap);
        buffer.extend_from_slice(entries);
        self.buffer = buffer;
        self.start = gap as u32;
    }

    /// Gives memory back when most of it is unused.
    #[inline]
    fn shrink(&mut self) {
        const KEPT_BYTES: usize = 64;
        let (live, capacity) = (self.entries().len(), self.buffer.capacity());
        if live < capacity / 4 && capacity > KEPT_BYTES {
            self.regrow(live / 2, live / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a chunk of ten elements moves them while a thousand go through, and the memory it
    /// has then.
    fn queue(end: End, bytes: usize) -> (usize, usize) {
        let other = if end == End::Front { End::Back } else { End::Front };
        let element = vec![b'x'; bytes];
        let mut chunk = Chunk::default();
        (0..10).for_each(|_| chunk.push(end, &Entry::new(&element)));
        let mut moved = 0;
        for _ in 0..1000 {
            let before = chunk.entries().as_ptr_range();
            chunk.push(end, &Entry::new(&element));
            let after = chunk.entries().as_ptr_range();
            moved += usize::from(before.start != after.start && before.end != after.end);
            chunk.pop(other, |_| ());
        }
        (moved, chunk.bytes())
    }

    #[test]
    fn what_goes_through_a_short_chunk_seldom_moves_the_rest() {
        for end in [End::Front, End::Back] {
            let (moved, bytes) = queue(end, 10);
            assert!(moved <= 1000 / 5, "moved {moved} times");
            assert!(bytes <= 2 * 11 * 12, "{bytes} bytes for eleven of 12");
            // Long elements are moved more often rather than given much room.
            let (_, bytes) = queue(end, 200);
            assert!(bytes <= 11 * 203 * 6 / 4, "{bytes} bytes for eleven of 203");
        }
    }
}
