//! Which clients have read which keys.
//!
//! In parts as the keyspace's partitions, so that who holds a key's lock finds its part free; the
//! parts have locks of their own, because keys are also evicted and swept without those.

use super::tracker_set::{Bits, TrackerSet};
use hashbrown::HashTable;
use ladon_engine::{PARTITIONS, partition_of};
use ladon_record::KeyHash;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A key and its readers.
#[derive(Debug)]
pub(super) struct Tracked {
    hash: u64,
    pub(super) key: Box<[u8]>,
    pub(super) readers: TrackerSet,
}

impl Tracked {
    fn bytes(&self) -> usize {
        /// Its place in the hash table, with what that keeps free.
        const INDEX_BYTES: usize = 10;
        size_of::<Tracked>() + INDEX_BYTES + self.key.len() + self.readers.bytes()
    }
}

/// The keys of one partition.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Indexes of `tracked`, by hash.
    index: HashTable<u32>,
    tracked: Vec<Tracked>,
    random: u64,
}

/// The bits of the hash that `partition_of` takes are the same in a part: the index is not to begin
/// with them.
fn spread(hash: KeyHash) -> u64 {
    hash.0.rotate_right(32)
}

impl Part {
    fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let is_it = |&at: &u32| {
            let tracked = &self.tracked[at as usize];
            tracked.hash == hash && *tracked.key == *key
        };
        self.index.find(hash, is_it).map(|&at| at as usize)
    }

    fn push(&mut self, tracked: Tracked) {
        let at = self.tracked.len() as u32;
        let (hash, all) = (tracked.hash, &self.tracked);
        self.index.insert_unique(hash, at, |&at| all[at as usize].hash);
        self.tracked.push(tracked);
    }

    /// Removes the key at `at`; the last one takes its place.
    fn remove(&mut self, at: usize) -> Tracked {
        let last = self.tracked.len() - 1;
        if let Ok(slot) = self.index.find_entry(self.tracked[at].hash, |&it| it as usize == at) {
            slot.remove();
        }
        if at != last
            && let Some(moved) =
                self.index.find_mut(self.tracked[last].hash, |&it| it as usize == last)
        {
            *moved = at as u32;
        }
        self.tracked.swap_remove(at)
    }

    fn choose(&mut self) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % self.tracked.len()
    }
}

/// Which clients have read which keys.
#[derive(Debug)]
pub(super) struct Table {
    parts: Box<[Mutex<Part>]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    bytes: AtomicUsize,
    /// The part where eviction goes on.
    next: AtomicUsize,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// Number of keys.
    #[inline]
    pub(super) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// Number of pairs of a key and a client.
    pub(super) fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    fn forget(&self, tracked: &Tracked) {
        self.keys.fetch_sub(1, Relaxed);
        self.items.fetch_sub(tracked.readers.len(), Relaxed);
        self.bytes.fetch_sub(tracked.bytes(), Relaxed);
    }

    /// Notes that a client read a key. If that makes more than `keys_max`, returns another key,
    /// which is no longer tracked.
    pub(super) fn insert(
        &self,
        hash: KeyHash,
        key: &[u8],
        number: u32,
        keys_max: usize,
    ) -> Option<Tracked> {
        let mut part = self.parts[partition_of(hash)].lock();
        let hash = spread(hash);
        if let Some(at) = part.find(hash, key) {
            let readers = &mut part.tracked[at].readers;
            let before = readers.bytes();
            if readers.insert(number) {
                self.items.fetch_add(1, Relaxed);
                self.bytes.fetch_add(readers.bytes(), Relaxed);
                self.bytes.fetch_sub(before, Relaxed);
            }
            return None;
        }
        let mut evicted = None;
        if self.keys() >= keys_max && !part.tracked.is_empty() {
            let at = part.choose();
            let tracked = part.remove(at);
            self.forget(&tracked);
            evicted = Some(tracked);
        }
        let tracked = Tracked { hash, key: key.into(), readers: TrackerSet::of(number) };
        self.keys.fetch_add(1, Relaxed);
        self.items.fetch_add(1, Relaxed);
        self.bytes.fetch_add(tracked.bytes(), Relaxed);
        part.push(tracked);
        evicted
    }

    /// Removes a key; returns its readers.
    pub(super) fn take(&self, hash: KeyHash, key: &[u8]) -> Option<TrackerSet> {
        let mut part = self.parts[partition_of(hash)].lock();
        let at = part.find(spread(hash), key)?;
        let tracked = part.remove(at);
        self.forget(&tracked);
        Some(tracked.readers)
    }

    /// Removes random keys until `keys_max` are left, or `most` were removed.
    pub(super) fn evict(&self, keys_max: usize, most: usize, mut visit: impl FnMut(Tracked)) {
        let mut left = most;
        for _ in 0..self.parts.len() {
            if left == 0 || self.keys() <= keys_max {
                return;
            }
            let at = self.next.fetch_add(1, Relaxed) % self.parts.len();
            let mut part = self.parts[at].lock();
            // An equal share of each, so that nobody's keys go first.
            let keys = part.tracked.len();
            let all = self.keys().max(1);
            let surplus = keys.saturating_sub(keys_max * keys / all).min(all - keys_max.min(all));
            for _ in 0..surplus.min(left) {
                let at = part.choose();
                let tracked = part.remove(at);
                self.forget(&tracked);
                left -= 1;
                visit(tracked);
            }
        }
    }

    /// Removes all keys; returns them, to be dropped where nobody waits.
    pub(super) fn clear(&self) -> Vec<Part> {
        let mut taken = Vec::new();
        for part in &self.parts {
            let mut part = part.lock();
            if part.tracked.is_empty() {
                continue;
            }
            let fresh = Part { random: part.random, ..Part::default() };
            let old = std::mem::replace(&mut *part, fresh);
            drop(part);
            self.keys.fetch_sub(old.tracked.len(), Relaxed);
            let items = old.tracked.iter().map(|tracked| tracked.readers.len()).sum();
            self.items.fetch_sub(items, Relaxed);
            let bytes = old.tracked.iter().map(Tracked::bytes).sum();
            self.bytes.fetch_sub(bytes, Relaxed);
            taken.push(old);
        }
        taken
    }

    /// Removes clients from the readers of up to `most` keys of a part, the last ones before `end`.
    /// Returns how many keys there were before `end`, and how many are left to look at.
    pub(super) fn sweep(
        &self,
        part: usize,
        end: usize,
        most: usize,
        gone: &Bits,
    ) -> (usize, usize) {
        let mut part = self.parts[part].lock();
        let end = end.min(part.tracked.len());
        let begin = end.saturating_sub(most);
        for at in (begin..end).rev() {
            let removed = part.tracked[at].readers.remove(gone);
            self.items.fetch_sub(removed, Relaxed);
            if part.tracked[at].readers.len() == 0 {
                let tracked = part.remove(at);
                self.forget(&tracked);
            }
        }
        (end, begin)
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_record::KeyHasher;
    use std::collections::{BTreeMap, BTreeSet};

    type Model = BTreeMap<Vec<u8>, BTreeSet<u32>>;

    fn check(table: &Table, model: &Model) {
        assert_eq!(table.keys(), model.len());
        assert_eq!(table.items(), model.values().map(BTreeSet::len).sum());
        let parts = table.parts.iter().map(Mutex::lock);
        let bytes: usize =
            parts.map(|part| part.tracked.iter().map(Tracked::bytes).sum::<usize>()).sum();
        assert_eq!(table.bytes(), bytes);
    }

    #[test]
    fn it_remembers_who_read_what() {
        let hasher = KeyHasher::new(3);
        let mut random = 1u64;
        let mut next = |max: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % max
        };
        let (table, mut model) = (Table::new(), Model::new());
        for step in 0..20_000 {
            let key = format!("key:{}", next(3000)).into_bytes();
            let hash = hasher.hash(&key);
            match next(20) {
                0..12 => {
                    let number = next(40) as u32;
                    let evicted = table.insert(hash, &key, number, usize::MAX);
                    assert!(evicted.is_none());
                    model.entry(key).or_default().insert(number);
                }
                12..19 => {
                    let taken = table.take(hash, &key);
                    let taken = taken.map(|set| set.iter().collect::<BTreeSet<u32>>());
                    assert_eq!(taken, model.remove(&key));
                }
                _ if step % 10 == 0 => {
                    let left = model.len() / 2;
                    table.evict(left, usize::MAX, |tracked| {
                        assert!(model.remove(&*tracked.key).is_some());
                    });
                    assert!(model.len() <= left);
                }
                _ => {
                    let mut gone = Bits::default();
                    (0..3).for_each(|_| {
                        gone.insert(next(40) as u32);
                    });
                    for part in 0..table.parts() {
                        let mut end = usize::MAX;
                        while end > 0 {
                            end = table.sweep(part, end, 2, &gone).1;
                        }
                    }
                    model.retain(|_, readers| {
                        readers.retain(|&number| !gone.has(number));
                        !readers.is_empty()
                    });
                }
            }
        }
        check(&table, &model);
        let keys: usize = table.clear().iter().map(|part| part.tracked.len()).sum();
        assert_eq!(keys, model.len());
        check(&table, &Model::new());
    }

    #[test]
    fn one_comes_and_one_goes_at_the_limit() {
        let (hasher, table) = (KeyHasher::new(3), Table::new());
        let mut evicted = 0;
        for number in 0..100_000u32 {
            let key = number.to_le_bytes();
            let gone = table.insert(hasher.hash(&key), &key, 1, 5000);
            evicted += usize::from(gone.is_some());
        }
        assert_eq!(table.keys() + evicted, 100_000);
        assert!(table.keys() <= 5000 + table.parts(), "{}", table.keys());
    }
}
