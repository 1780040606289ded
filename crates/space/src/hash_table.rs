//! A hash table in shards, which are split when they are full: no change moves more than one shard.
//!
//! ```text
//! highest bits of the hash     directory            shards
//!                      00 ->   [ 0 ] ----------->   0xxx...   depth 1
//!                      01 ->   [ 0 ] --------/
//!                      10 ->   [ 1 ] ----------->   10xx...   depth 2
//!                      11 ->   [ 2 ] ----------->   11xx...   depth 2
//! ```
//!
//! Order is that of the hashes, and splitting keeps it. So a walk can go on after an item that is
//! gone, whatever was inserted in between. Shards are shared by clones of the table, and copied
//! before they change.

use hashbrown::HashTable;
use std::sync::Arc;

/// More items than this are split: hashbrown's limit for 2048 places.
const SHARD_ITEMS_MAX: usize = 1792;
/// The directory is at most so many bits deeper than even hashes would make it. Beyond, hashes are
/// no longer even, and shards grow instead.
const DEPTH_SLACK: u32 = 5;

/// So many items ahead are fetched while a shard's items are hashed.
const FETCHED_AHEAD: usize = 8;

/// What a table holds.
pub(crate) trait Stored: Clone {
    /// Begins to fetch what its hash is computed of.
    fn fetch(&self);
}

#[derive(Clone)]
struct Shard<T> {
    /// How many of the hash's highest bits all items have in common.
    depth: u32,
    items: HashTable<T>,
}

/// Items by their hashes; the caller knows how to hash and compare them.
#[derive(Clone)]
pub(crate) struct ShardedTable<T> {
    /// Numbers of shards by the highest `depth` bits of the hash. A shard of a smaller depth is in
    /// there several times, in a row.
    directory: Vec<u32>,
    shards: Vec<Arc<Shard<T>>>,
    depth: u32,
    len: u64,
    /// Bytes that the shards' items take.
    item_bytes: usize,
}

impl<T: Stored> ShardedTable<T> {
    /// A table without items.
    pub fn new() -> ShardedTable<T> {
        let shard = Arc::new(Shard { depth: 0, items: HashTable::new() });
        ShardedTable { directory: vec![0], shards: vec![shard], depth: 0, len: 0, item_bytes: 0 }
    }

    /// How many items there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory that the table takes.
    pub fn bytes(&self) -> usize {
        let head = size_of::<Shard<T>>() + 3 * size_of::<usize>();
        self.item_bytes
            + self.shards.capacity() * head
            + self.directory.capacity() * size_of::<u32>()
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash.checked_shr(u64::BITS - self.depth).unwrap_or(0) as usize
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Shard<T> {
        &self.shards[self.directory[self.place(hash)] as usize]
    }

    #[inline]
    fn shard_mut(&mut self, hash: u64) -> &mut Shard<T> {
        let place = self.place(hash);
        Arc::make_mut(&mut self.shards[self.directory[place] as usize])
    }

    /// The item with this hash that is equal.
    #[inline]
    pub fn get(&self, hash: u64, is_equal: impl FnMut(&T) -> bool) -> Option<&T> {
        self.shard(hash).items.find(hash, is_equal)
    }

    /// Adds an item; none is equal.
    pub fn insert(&mut self, hash: u64, item: T, rehash: impl Fn(&T) -> u64) {
        while self.shard(hash).items.len() >= SHARD_ITEMS_MAX && self.split(hash, &rehash) {}
        let items = &mut self.shard_mut(hash).items;
        let before = items.allocation_size();
        items.insert_unique(hash, item, &rehash);
        let after = items.allocation_size();
        self.item_bytes = self.item_bytes + after - before;
        self.len += 1;
    }

    /// Puts `item` into the place of the equal one, which returns.
    ///
    /// # Errors
    /// `item`, if no item is equal.
    pub fn replace(
        &mut self,
        hash: u64,
        item: T,
        is_equal: impl FnMut(&T) -> bool,
    ) -> Result<T, T> {
        match self.shard_mut(hash).items.find_mut(hash, is_equal) {
            Some(found) => Ok(std::mem::replace(found, item)),
            None => Err(item),
        }
    }

    /// Removes the item with this hash that is equal.
    pub fn remove(&mut self, hash: u64, is_equal: impl FnMut(&T) -> bool) -> Option<T> {
        let entry = self.shard_mut(hash).items.find_entry(hash, is_equal).ok()?;
        let (item, _) = entry.remove();
        self.len -= 1;
        Some(item)
    }

    /// Splits the shard of this hash by one more bit; returns whether it could.
    fn split(&mut self, hash: u64, rehash: &impl Fn(&T) -> u64) -> bool {
        let number = self.directory[self.place(hash)];
        let depth = self.shards[number as usize].depth;
        if depth == self.depth {
            let even = (self.shards.len() as u64).ilog2();
            if self.depth >= even + DEPTH_SLACK {
                return false;
            }
            self.directory = self.directory.iter().flat_map(|shard| [*shard; 2]).collect();
            self.depth += 1;
        }
        let Ok(added) = u32::try_from(self.shards.len()) else { return false };
        let is_upper = |hash: u64| hash >> (u64::BITS - 1 - depth) & 1 == 1;
        let shard = Arc::make_mut(&mut self.shards[number as usize]);
        let before = shard.items.allocation_size();
        let items = std::mem::take(&mut shard.items);
        let (lower, upper) = divide(items, is_upper, rehash);
        let after = lower.allocation_size() + upper.allocation_size();
        self.item_bytes = self.item_bytes + after - before;
        (shard.depth, shard.items) = (depth + 1, lower);
        self.shards.push(Arc::new(Shard { depth: depth + 1, items: upper }));
        // The upper half of the shard's places.
        let first = (hash >> (u64::BITS - 1 - depth) | 1) << (u64::BITS - 1 - depth);
        let places = 1usize << (self.depth - depth - 1);
        let first = self.place(first);
        self.directory[first..first + places].fill(added);
        true
    }

    /// The items of the shard that a hash belongs to, and the first hash of the next shard.
    pub fn shard_of(&self, hash: u64) -> (impl Iterator<Item = &T>, Option<u64>) {
        let shard = self.shard(hash);
        let width = 1u64.checked_shl(u64::BITS - shard.depth).unwrap_or(0);
        let next = match width {
            0 => None,
            width => (hash & !(width - 1)).checked_add(width),
        };
        (shard.items.iter(), next)
    }

    /// Some item, chosen by a number that is random.
    pub fn random(&self, number: u64) -> Option<&T> {
        // A shard is chosen by the highest bits, as hashes do; empty ones are passed.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let first = self.place(number.wrapping_mul(SPREAD));
        let mut places = self.directory[first..].iter().chain(&self.directory[..first]);
        let shard = places.find_map(|shard| {
            let items = &self.shards[*shard as usize].items;
            (!items.is_empty()).then_some(items)
        })?;
        shard.iter().nth((number % shard.len() as u64) as usize)
    }

    /// All items, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.shards.iter().flat_map(|shard| shard.items.iter())
    }
}

/// Moves items into two tables, which have room for some more. Every item is hashed once: its memory
/// is seldom in the cache.
fn divide<T: Stored>(
    items: HashTable<T>,
    is_upper: impl Fn(u64) -> bool,
    rehash: &impl Fn(&T) -> u64,
) -> (HashTable<T>, HashTable<T>) {
    let items: Vec<T> = items.into_iter().collect();
    let hash = |at: usize| {
        if let Some(soon) = items.get(at + FETCHED_AHEAD) {
            soon.fetch();
        }
        rehash(&items[at])
    };
    let hashes: Vec<u64> = (0..items.len()).map(hash).collect();
    let uppers = hashes.iter().filter(|hash| is_upper(**hash)).count();
    let table = |count: usize| HashTable::with_capacity(count + count / 8);
    let (mut lower, mut upper) = (table(items.len() - uppers), table(uppers));
    for (item, hash) in items.into_iter().zip(hashes) {
        let half = if is_upper(hash) { &mut upper } else { &mut lower };
        half.insert_unique(hash, item, rehash);
    }
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    impl Stored for u64 {
        fn fetch(&self) {}
    }

    fn walk(table: &ShardedTable<u64>) -> Vec<u64> {
        let (mut items, mut hash) = (Vec::new(), Some(0));
        while let Some(from) = hash {
            let (shard, next) = table.shard_of(from);
            items.extend(shard.copied());
            hash = next;
        }
        items
    }

    #[test]
    fn items_are_found_however_shards_split() {
        let mut random = ladon_testkit::Random::new(5);
        for skew in [0, 4, 40] {
            let mut table = ShardedTable::new();
            let mut model = BTreeSet::new();
            for _ in 0..40_000 {
                let hash = random.next_u64() >> skew;
                if model.insert(hash) {
                    table.insert(hash, hash, |item| *item);
                }
                let gone = model.range(random.next_u64() >> skew..).next().copied();
                if let Some(gone) = gone.filter(|gone| gone % 3 == 0) {
                    assert_eq!(table.remove(gone, |item| *item == gone), Some(gone));
                    model.remove(&gone);
                }
            }
            assert_eq!(table.len(), model.len() as u64);
            let items = table.shards.iter().map(|shard| shard.items.allocation_size());
            assert_eq!(table.item_bytes, items.sum::<usize>());
            assert!(model.iter().all(|hash| table.get(*hash, |item| item == hash).is_some()));
            let mut walked = walk(&table);
            walked.sort_unstable();
            assert_eq!(walked, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_clone_keeps_what_it_was() {
        let mut table = ShardedTable::new();
        (0..10_000u64).for_each(|item| table.insert(item << 50, item, |item| item << 50));
        let clone = table.clone();
        for item in 0..10_000u64 {
            assert_eq!(table.remove(item << 50, |other| *other == item), Some(item));
        }
        assert_eq!((table.len(), clone.len(), clone.iter().count()), (0, 10_000, 10_000));
    }
}
