//! A hash table in segments of a page, which are divided when they are full: no change moves more
//! than one segment's items.
//!
//! ```text
//! highest bits of the hash     directory            groups           segments
//!                      00 ->   [ 0 ] ----------->   0xxx... depth 1 -> 64 slots -> segment
//!                      01 ->   [ 0 ] --------/
//!                      10 ->   [ 1 ] ----------->   10xx... depth 2 -> 64 slots -> segment
//!                      11 ->   [ 2 ] ----------->   11xx... depth 2 -> 64 slots -> segment
//! ```
//!
//! Order is that of the hashes, and dividing keeps it. So a walk can go on after an item that is
//! gone, whatever was inserted in between. Groups are shared by clones of the table, and segments
//! by clones of groups; both are copied before they change.

mod group;
mod segment;
#[cfg(test)]
mod tests;

use crate::tuple::Tuple;
use group::{Divided, Group};
use segment::SEGMENT_BYTES;
use std::sync::Arc;

/// The directory is at most so many bits deeper than even hashes would make it. Beyond, hashes are
/// no longer even, and what finds no place in its segment is kept beside it.
const DEPTH_SLACK: u32 = 5;

/// So many items ahead are fetched while items are hashed.
const FETCHED_AHEAD: usize = 8;

/// Tuples by their hashes; the caller knows how to hash and compare them.
#[derive(Clone)]
pub(crate) struct SegmentedTable {
    /// Numbers of groups by the highest `depth` bits of the hash. A group of a smaller depth is in
    /// there several times, in a row.
    directory: Vec<u32>,
    groups: Vec<Arc<Group>>,
    depth: u32,
    len: u64,
    segments: usize,
    /// Bytes of those that are beside their segments.
    bytes_beyond: usize,
}

impl SegmentedTable {
    /// A table without items.
    pub fn new() -> SegmentedTable {
        let groups = vec![Arc::new(Group::new())];
        SegmentedTable {
            directory: vec![0],
            groups,
            depth: 0,
            len: 0,
            segments: 1,
            bytes_beyond: 0,
        }
    }

    /// How many items there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory that the table takes.
    pub fn bytes(&self) -> usize {
        let group = size_of::<Group>() + 3 * size_of::<usize>();
        self.segments * SEGMENT_BYTES
            + self.bytes_beyond
            + self.groups.capacity() * group
            + self.directory.capacity() * size_of::<u32>()
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash.checked_shr(u64::BITS - self.depth).unwrap_or(0) as usize
    }

    #[inline]
    fn group(&self, hash: u64) -> &Group {
        &self.groups[self.directory[self.place(hash)] as usize]
    }

    #[inline]
    fn group_mut(&mut self, hash: u64) -> &mut Group {
        let place = self.place(hash);
        Arc::make_mut(&mut self.groups[self.directory[place] as usize])
    }

    /// Begins to fetch what searches for these hashes need: first all buckets, then all tuples, so
    /// that they wait for memory together.
    pub fn fetch(&self, hashes: &[u64]) {
        for hash in hashes {
            let (segment, spot) = self.group(*hash).segment(*hash);
            segment.fetch(spot);
        }
        for hash in hashes {
            let (segment, spot) = self.group(*hash).segment(*hash);
            segment.fetch_found(spot);
        }
    }

    /// The item with this hash that is equal.
    #[inline]
    pub fn get(&self, hash: u64, is_equal: impl FnMut(&Tuple) -> bool) -> Option<&Tuple> {
        let (segment, spot) = self.group(hash).segment(hash);
        segment.get((spot, hash), is_equal)
    }

    /// Puts `item` into the place of the equal one, which returns; if there is none, adds it.
    pub fn put(
        &mut self,
        hash: u64,
        item: Tuple,
        is_equal: impl FnMut(&Tuple) -> bool,
        rehash: impl Fn(&Tuple) -> u64,
    ) -> Option<Tuple> {
        let (segment, spot, _) = self.group_mut(hash).segment_mut(hash);
        match segment.replace((spot, hash), item, is_equal) {
            Ok(old) => Some(old),
            Err(item) => {
                self.insert(hash, item, rehash);
                None
            }
        }
    }

    fn insert(&mut self, hash: u64, mut item: Tuple, rehash: impl Fn(&Tuple) -> u64) {
        self.len += 1;
        loop {
            let (segment, spot, _) = self.group_mut(hash).segment_mut(hash);
            match segment.insert(spot, item) {
                Ok(()) => return,
                Err(back) => item = back,
            }
            if !self.divide(hash, &rehash) {
                break;
            }
        }
        let (segment, ..) = self.group_mut(hash).segment_mut(hash);
        let before = segment.bytes_beyond();
        segment.insert_beyond(hash, item, rehash);
        let after = segment.bytes_beyond();
        self.bytes_beyond = self.bytes_beyond + after - before;
    }

    /// Removes the item with this hash that is equal.
    pub fn remove(
        &mut self,
        hash: u64,
        is_equal: impl FnMut(&Tuple) -> bool,
        rehash: impl Fn(&Tuple) -> u64,
    ) -> Option<Tuple> {
        let (segment, spot, base) = self.group_mut(hash).segment_mut(hash);
        let (removed, freed) = segment.remove((spot, hash), base, is_equal, rehash)?;
        self.bytes_beyond -= freed;
        self.len -= 1;
        Some(removed)
    }

    /// Divides the segment of this hash by one more bit; returns whether it could.
    fn divide(&mut self, hash: u64, rehash: &impl Fn(&Tuple) -> u64) -> bool {
        match self.group_mut(hash).divide(hash, rehash) {
            Divided::Done { before, after } => {
                self.bytes_beyond = self.bytes_beyond + after - before;
                self.segments += 1;
                true
            }
            // Then the segment can be divided.
            Divided::GroupFirst => self.divide_group(hash),
            Divided::Never => false,
        }
    }

    /// Divides the group of this hash by one more bit; returns whether it could.
    fn divide_group(&mut self, hash: u64) -> bool {
        let number = self.directory[self.place(hash)];
        let group = &self.groups[number as usize];
        let depth = group.depth();
        if depth == self.depth {
            let even = (self.groups.len() as u64).ilog2();
            if self.depth >= even + DEPTH_SLACK {
                return false;
            }
            self.directory = self.directory.iter().flat_map(|group| [*group; 2]).collect();
            self.depth += 1;
        }
        let Ok(added) = u32::try_from(self.groups.len()) else { return false };
        let [lower, upper] = group.halves();
        self.groups[number as usize] = Arc::new(lower);
        self.groups.push(Arc::new(upper));
        // The upper half of the group's places.
        let first = (hash >> (u64::BITS - 1 - depth) | 1) << (u64::BITS - 1 - depth);
        let places = 1usize << (self.depth - depth - 1);
        let first = self.place(first);
        self.directory[first..first + places].fill(added);
        true
    }

    /// The items of the segment that a hash belongs to, and the first hash of the next segment.
    pub fn segment_of(&self, hash: u64) -> (impl Iterator<Item = &Tuple>, Option<u64>) {
        let group = self.group(hash);
        let width = 1u64.checked_shl(u64::BITS - group.depth_of_segment(hash)).unwrap_or(0);
        let next = match width {
            0 => None,
            width => (hash & !(width - 1)).checked_add(width),
        };
        (group.segment(hash).0.iter(), next)
    }

    /// Some item, chosen by a number that is random.
    pub fn random(&self, number: u64) -> Option<&Tuple> {
        // A segment is chosen by the highest bits, as hashes do; empty ones are passed.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        if self.len == 0 {
            return None;
        }
        let mut hash = number.wrapping_mul(SPREAD);
        loop {
            let (items, next) = self.segment_of(hash);
            let count = items.count();
            if count > 0 {
                return self.segment_of(hash).0.nth((number % count as u64) as usize);
            }
            hash = next.unwrap_or(0);
        }
    }

    /// All items, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Tuple> {
        self.groups.iter().flat_map(|group| group.segments()).flat_map(|segment| segment.iter())
    }
}
