//! Moves entries out of sparse slabs, a few buckets at a time, so that the slabs are freed.
//!
//! An entry is one allocation and one word points at it, so moving it is a copy and a store. No
//! other code keeps an entry's address: prefetchers only prefetch its old address.

use super::Table;
use super::prefetch;
use super::segment::{BUCKETS, LocalHash, Place, SLOTS, bucket_start, home_of, moved, unpack};

/// Cost of examining an entry.
const LOOK_COST: usize = 1;
/// Cost of moving an entry
const MOVE_COST: usize = 4;
/// and of moving this many of its bytes.
const BYTES_COST: usize = 256;

/// The budget of a compaction, and its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// What is left; one is about 50 ns.
    pub(crate) budget: usize,
    /// Bytes that were moved.
    pub(crate) moved_bytes: usize,
}

impl Work {
    pub(crate) fn spend(&mut self, cost: usize) {
        self.budget = self.budget.saturating_sub(cost);
    }

    pub(crate) fn moved(&mut self, bytes: usize) {
        self.spend(MOVE_COST + bytes / BYTES_COST);
        self.moved_bytes += bytes;
    }
}

impl Table {
    /// Whether packing its small entries would free slabs.
    pub(crate) fn is_sparse(&self) -> bool {
        self.arena.is_sparse()
    }

    /// Free bytes within its slabs of small entries.
    pub(crate) fn free_bytes(&self) -> usize {
        self.arena.free_bytes()
    }

    /// Moves entries, and packed values, from `from` on as far as `work` allows. Returns where to
    /// continue, or `None` at the end. A table that shares data with a frozen one is left as it is.
    ///
    /// Only for a keyspace's tables: entries of collections may be known by their addresses.
    pub(crate) fn compact(&mut self, from: LocalHash, work: &mut Work) -> Option<LocalHash> {
        if self.shares {
            return None;
        }
        let directory = self.directory()?;
        let mut at = from;
        loop {
            let (pointer, depth) = directory.segment_and_depth(at);
            // SAFETY: segments in the directory are live.
            let segment = unsafe { pointer.as_ref() };
            for bucket in home_of(at, depth)..BUCKETS {
                if work.budget == 0 {
                    return bucket_start(segment.prefix.get(), depth, bucket);
                }
                if bucket + 1 < BUCKETS {
                    for slot in 0..SLOTS {
                        prefetch::prefetch_word(segment.word(Place { bucket: bucket + 1, slot }));
                    }
                }
                for slot in 0..SLOTS {
                    let place = Place { bucket, slot };
                    let word = segment.word(place);
                    if word == 0 {
                        continue;
                    }
                    work.spend(LOOK_COST);
                    let entry = unpack(word);
                    // SAFETY: entries in words are live, and `&mut self` makes the access
                    // exclusive. The word changes before anybody looks at it again.
                    unsafe {
                        if let Some(object) = entry.object_mut() {
                            let bytes = object.compact();
                            if bytes != 0 {
                                work.moved(bytes);
                            }
                        }
                        let bytes = entry.bytes();
                        if let Some(new) = self.arena.compact(entry.0, bytes) {
                            segment.set_word(place, moved(word, new));
                            work.moved(bytes);
                        }
                    }
                }
            }
            at = bucket_start(segment.prefix.get(), depth, BUCKETS)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::table::entry::{ValueInit, ValueRef};
    use crate::types::hash::{HashLimits, HashValue};
    use ladon_record::KeyHasher;
    use ladon_testkit::Random;
    use std::collections::BTreeMap;

    fn work(budget: usize) -> Work {
        Work { budget, moved_bytes: 0 }
    }

    /// A value as the model has it; longer ones of some keys are packed hashes.
    fn value_of(mark: u64, length: usize, is_hash: bool) -> Vec<u8> {
        if is_hash { vec![mark as u8; length % 4000 + 1] } else { vec![mark as u8; length] }
    }

    fn hash_of(hasher: &KeyHasher, bytes: &[u8]) -> HashValue {
        let limits = HashLimits { listpack_entries: 8, listpack_value: usize::MAX };
        let mut hash = HashValue::with_room(1, bytes.len() + 8);
        hash.set(hasher, limits, b"field", bytes, 0);
        hash
    }

    fn bytes_of(value: ValueRef<'_>) -> Vec<u8> {
        match value {
            ValueRef::Bytes { bytes, .. } => bytes.to_vec(),
            ValueRef::Int(int) => int.to_string().into_bytes(),
            ValueRef::Object(object) => {
                let mut found = Vec::new();
                object.for_each(|parts| found = parts[1].to_vec());
                found
            }
        }
    }

    /// Every operation of a table, with slices of compaction in between, against a plain map.
    #[test]
    fn what_is_moved_stays_what_it_is() {
        let (steps, keys) = if cfg!(miri) { (500, 60) } else { (60_000, 3000) };
        let hasher = KeyHasher::new(4);
        for seed in 1..if cfg!(miri) { 2 } else { 6 } {
            let mut random = Random::new(seed);
            let mut table = Table::new(0);
            let mut model: BTreeMap<Vec<u8>, (Vec<u8>, u64)> = BTreeMap::new();
            let (mut at, mut moved) = (None, 0);
            for step in 0..steps {
                let number = random.below(keys);
                let key = format!("key:{number}").into_bytes();
                let local = table.local(hasher.hash(&key).0);
                let length_max = if random.below(3) == 0 { 9000 } else { 250 };
                let length = random.below(length_max) as usize;
                let (is_hash, expire_at) = (number.is_multiple_of(4), random.below(2) * step);
                let bytes = value_of(step, length, is_hash);
                let grows = (step / (steps / 4)).is_multiple_of(2);
                match random.below(if grows { 3 } else { 9 }) {
                    0 | 1 => {
                        let value = if is_hash {
                            ValueInit::Object(Box::new(Object::Hash(hash_of(&hasher, &bytes))))
                        } else {
                            ValueInit::Bytes { bytes: &bytes, grown: false }
                        };
                        if let Some(mut slot) = table.get_mut(local, &key) {
                            drop(slot.take_object());
                            slot.set(expire_at, value);
                        } else {
                            table.insert(&hasher, local, &key, expire_at, value, 7);
                        }
                        model.insert(key, (bytes, expire_at));
                    }
                    2 => {
                        if let Some(mut slot) = table.get_mut(local, &key) {
                            slot.set_expire(expire_at);
                        }
                        model.entry(key).and_modify(|(_, at)| *at = expire_at);
                    }
                    _ => {
                        let removed = table.get_mut(local, &key).map(|slot| slot.remove(&hasher));
                        assert_eq!(removed.is_some(), model.remove(&key).is_some());
                    }
                }
                if random.below(4) == 0 {
                    let before = table.bytes();
                    let mut work = work(random.below(200) as usize);
                    at = table.compact(at.unwrap_or(0), &mut work);
                    moved += work.moved_bytes;
                    assert_eq!(table.bytes(), before, "the account is of sizes, not of places");
                }
            }
            assert!(cfg!(miri) || moved > 100_000, "{moved} bytes were moved");
            let mut found = BTreeMap::new();
            table.for_each(|entry| {
                let value = (bytes_of(entry.value()), entry.expire_at());
                assert!(found.insert(entry.key().to_vec(), value).is_none());
                assert_eq!(entry.access(), 7);
            });
            assert_eq!(found, model, "seed {seed}");
            for key in model.keys() {
                assert!(table.get(table.local(hasher.hash(key).0), key).is_some());
            }
        }
    }

    #[test]
    fn what_is_left_of_small_entries_lies_together_again() {
        let keys = if cfg!(miri) { 600 } else { 20_000 };
        let hasher = KeyHasher::new(5);
        let mut table = Table::new(0);
        let name = |number: usize| format!("key:{number:06}").into_bytes();
        for number in 0..keys {
            let (key, bytes) = (name(number), [1; 80]);
            let local = table.local(hasher.hash(&key).0);
            table.insert(
                &hasher,
                local,
                &key,
                0,
                ValueInit::Bytes { bytes: &bytes, grown: false },
                0,
            );
        }
        let mut random = Random::new(6);
        for number in 0..keys {
            if random.below(10) != 0 {
                let key = name(number);
                let local = table.local(hasher.hash(&key).0);
                table.get_mut(local, &key).unwrap().remove(&hasher);
            }
        }
        let live = table.len() * 96;
        assert!(table.is_sparse() && table.free_bytes() > live, "most of each slab is free");
        let (mut slices, mut at) = (0, Some(0));
        while let Some(from) = at {
            let mut work = work(100);
            at = table.compact(from, &mut work);
            slices += 1;
        }
        assert!(cfg!(miri) || slices > 20, "{slices} slices");
        assert!(!table.is_sparse());
        // So few keys fill hardly a slab of each size.
        let begun = if cfg!(miri) { 2 * 4096 } else { 0 };
        assert!(table.free_bytes() <= live / 2 + begun, "{} of {live}", table.free_bytes());
    }

    /// Readers of a frozen table hold no lock, so what they may see is not moved.
    #[test]
    fn a_table_that_is_shared_is_left_alone() {
        let hasher = KeyHasher::new(7);
        let mut table = Table::new(0);
        for number in 0..300u32 {
            let key = number.to_le_bytes();
            let local = table.local(hasher.hash(&key).0);
            table.insert(&hasher, local, &key, 0, ValueInit::Int(1), 0);
        }
        let frozen = table.freeze();
        for number in 0..270u32 {
            let key = number.to_le_bytes();
            let local = table.local(hasher.hash(&key).0);
            table.get_mut(local, &key).unwrap().remove(&hasher);
        }
        let mut work = work(usize::MAX);
        assert_eq!(table.compact(0, &mut work), None);
        assert_eq!(work.moved_bytes, 0);
        drop(frozen);
    }
}
