//! What a stream remembers of its producers, so that an entry that is sent twice is added once:
//! `XADD ... IDMP` of Redis 8.6.
//!
//! ```text
//! entries    entry id -> producer                   in the order of ids, which is that of time
//! producers  (hash of the name, n) -> name, [(entry id, idempotent id) ...]     oldest first
//! ```
//!
//! A producer's name has its place by its hash and, among names with the same hash, by a number. A
//! producer of which nothing is remembered is gone. Maps and producers are shared with frozen
//! copies, as the rest of the stream is.
//!
//! **Invariant:** no id in `entries` is larger than the stream's last id.

use super::StreamId;
use super::id_map::IdMap;
use ladon_record::KeyHasher;
use std::collections::VecDeque;
use std::sync::Arc;

/// How much a stream remembers of each producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// For how long, in seconds.
    pub duration_s: u64,
    /// Maximum number of idempotent ids of a producer.
    pub ids_max: usize,
}

impl Memory {
    /// Bounds of `duration_s`.
    pub const DURATION_S: std::ops::RangeInclusive<u64> = 1..=86_400;
    /// Bounds of `ids_max`.
    pub const IDS_MAX: std::ops::RangeInclusive<usize> = 1..=10_000;

    fn is_valid(&self) -> bool {
        Memory::DURATION_S.contains(&self.duration_s) && Memory::IDS_MAX.contains(&self.ids_max)
    }
}

/// What is remembered.
#[derive(Clone)]
pub struct Idempotence {
    pub(super) memory: Memory,
    entries: IdMap<Place, StreamId>,
    producers: IdMap<Arc<Producer>, Place>,
    /// Entries that were ever added with an idempotent id.
    pub(super) added: u64,
    /// Entries that were not, because they had been.
    pub(super) duplicates: u64,
    /// Bytes of all producers.
    producer_bytes: usize,
}

/// Where a producer is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    hash: u64,
    number: u32,
}

#[derive(Clone)]
struct Producer {
    name: Box<[u8]>,
    sent: VecDeque<Sent>,
    /// Hashes of the ids in `sent`, to be searched quickly.
    hashes: VecDeque<u32>,
    /// Bytes of all ids in `sent`.
    id_bytes: usize,
}

/// Hashes that are looked at together.
const HASH_BLOCK: usize = 64;

#[derive(Clone)]
struct Sent {
    entry: StreamId,
    id: Arc<[u8]>,
}

impl Sent {
    fn bytes(&self) -> usize {
        2 * size_of::<usize>() + self.id.len()
    }
}

impl Producer {
    fn bytes(&self) -> usize {
        let lists =
            self.sent.capacity() * size_of::<Sent>() + self.hashes.capacity() * size_of::<u32>();
        2 * size_of::<usize>() + size_of::<Producer>() + self.name.len() + self.id_bytes + lists
    }

    fn push(&mut self, entry: StreamId, id: &[u8], hash: u64) {
        let sent = Sent { entry, id: id.into() };
        self.id_bytes += sent.bytes();
        self.sent.push_back(sent);
        self.hashes.push_back(hash as u32);
    }

    fn pop_first(&mut self) -> Option<StreamId> {
        let sent = self.sent.pop_front()?;
        self.hashes.pop_front();
        self.id_bytes -= sent.bytes();
        if self.sent.len() * 4 < self.sent.capacity() {
            self.sent.shrink_to(self.sent.len() * 2);
            self.hashes.shrink_to(self.hashes.len() * 2);
        }
        Some(sent.entry)
    }

    fn find(&self, id: &[u8], hash: u64) -> Option<StreamId> {
        let hash = hash as u32;
        let (first, second) = self.hashes.as_slices();
        for (from, hashes) in [(0, first), (first.len(), second)] {
            for (number, block) in hashes.chunks(HASH_BLOCK).enumerate() {
                // Without a way out, so that it is some instructions for all of the block.
                if !block.iter().fold(false, |found, known| found | (*known == hash)) {
                    continue;
                }
                let from = from + number * HASH_BLOCK;
                let mut sent = self.sent.range(from..from + block.len());
                if let Some(sent) = sent.find(|sent| *sent.id == *id) {
                    return Some(sent.entry);
                }
            }
        }
        None
    }
}

impl Idempotence {
    /// Nothing remembered yet; `None` if `memory` is out of bounds.
    pub(super) fn new(memory: Memory) -> Option<Idempotence> {
        memory.is_valid().then(|| Idempotence {
            memory,
            entries: IdMap::default(),
            producers: IdMap::default(),
            added: 0,
            duplicates: 0,
            producer_bytes: 0,
        })
    }

    /// How much is remembered.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Number of producers that are remembered.
    pub fn producers(&self) -> usize {
        self.producers.len()
    }

    /// Number of idempotent ids that are remembered.
    pub fn ids(&self) -> usize {
        self.entries.len()
    }

    /// Number of entries that were ever added with an idempotent id.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Number of entries that were not added, because they had been.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Bytes of memory, itself included.
    pub(super) fn bytes(&self) -> usize {
        let maps = self.entries.bytes() + self.producers.bytes();
        2 * size_of::<usize>() + size_of::<Idempotence>() + maps + self.producer_bytes
    }

    /// Cost of dropping it, in allocations.
    pub(super) fn drop_effort(&self) -> usize {
        let maps = self.entries.runs() + self.producers.runs();
        1 + maps + 4 * self.producers.len() + self.entries.len()
    }

    /// The entry that this producer has sent under this idempotent id.
    pub fn entry(&self, hasher: &KeyHasher, producer: &[u8], id: &[u8]) -> Option<StreamId> {
        self.find(hasher.hash(producer).0, producer, hasher.hash(id).0, id)
    }

    fn find(&self, hash: u64, producer: &[u8], id_hash: u64, id: &[u8]) -> Option<StreamId> {
        let place = self.place(hash, producer).ok()?;
        self.producers.get(place)?.find(id, id_hash)
    }

    /// The place of a producer; where there is none, that of a new one.
    fn place(&self, hash: u64, producer: &[u8]) -> Result<Place, Place> {
        let mut free = Place { hash, number: 0 };
        for (place, known) in self.producers.from(free) {
            if place.hash != hash {
                break;
            }
            if *known.name == *producer {
                return Ok(*place);
            }
            free.number = place.number + 1;
        }
        Err(free)
    }

    /// Remembers an entry; `None` if it does not come after all others that are remembered.
    pub(super) fn remember(
        &mut self,
        hasher: &KeyHasher,
        producer: &[u8],
        id: &[u8],
        entry: StreamId,
    ) -> Option<()> {
        self.insert(hasher.hash(producer).0, producer, hasher.hash(id).0, id, entry)
    }

    fn insert(
        &mut self,
        hash: u64,
        producer: &[u8],
        id_hash: u64,
        id: &[u8],
        entry: StreamId,
    ) -> Option<()> {
        if self.entries.last().is_some_and(|(last, _)| *last >= entry) {
            return None;
        }
        let place = match self.place(hash, producer) {
            Ok(place) => place,
            Err(place) => {
                let (name, sent) = (producer.into(), VecDeque::new());
                let new = Producer { name, sent, hashes: VecDeque::new(), id_bytes: 0 };
                self.producer_bytes += new.bytes();
                self.producers.insert(place, Arc::new(new));
                place
            }
        };
        let ids_max = self.memory.ids_max;
        let forgotten = self.edit(place, |producer| {
            let is_full = producer.sent.len() >= ids_max;
            let forgotten = if is_full { producer.pop_first() } else { None };
            producer.push(entry, id, id_hash);
            forgotten
        });
        if let Some(forgotten) = forgotten {
            self.entries.remove(forgotten);
        }
        self.entries.insert(entry, place);
        Some(())
    }

    fn edit<R>(&mut self, place: Place, change: impl FnOnce(&mut Producer) -> R) -> R {
        let bytes = &mut self.producer_bytes;
        let changed = self.producers.update(place, |producer| {
            let before = producer.bytes();
            let producer = Arc::make_mut(producer);
            let result = change(producer);
            *bytes = *bytes + producer.bytes() - before;
            result
        });
        changed.expect("an entry's producer is remembered")
    }

    /// Forgets the oldest `count` entries.
    pub(super) fn forget_first(&mut self, count: usize) {
        let places: Vec<Place> = self.entries.iter().take(count).map(|(_, place)| *place).collect();
        self.entries.remove_first(count);
        for place in places {
            let is_empty = self.edit(place, |producer| {
                producer.pop_first();
                producer.sent.is_empty()
            });
            if is_empty && let Some(producer) = self.producers.remove(place) {
                self.producer_bytes -= producer.bytes();
            }
        }
    }

    /// The last entry that is remembered.
    pub(super) fn last(&self) -> Option<StreamId> {
        self.entries.last().map(|(id, _)| *id)
    }

    /// When the oldest entry is to be forgotten, Unix milliseconds; 0 if there is none.
    #[inline]
    pub(super) fn next_expiry(&self) -> u64 {
        self.entries.first().map_or(0, |(id, _)| self.expiry(*id))
    }

    fn expiry(&self, entry: StreamId) -> u64 {
        entry.ms.saturating_add(self.memory.duration_s * 1000)
    }

    /// How many entries are to be forgotten at `now_ms`, or `max` if there are more.
    pub(super) fn due(&self, now_ms: u64, max: usize) -> usize {
        let is_due = |(id, _): &&(StreamId, Place)| self.expiry(*id) <= now_ms;
        self.entries.iter().take_while(is_due).take(max).count()
    }

    /// What is remembered, in the order of the entries: producer, idempotent id, entry.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], StreamId)> {
        self.entries.iter().filter_map(|(entry, place)| {
            let producer = self.producers.get(*place)?;
            let at = producer.sent.binary_search_by_key(entry, |sent| sent.entry).ok()?;
            Some((&*producer.name, &*producer.sent[at].id, *entry))
        })
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        self.entries.check();
        self.producers.check();
        let producers = || self.producers.iter().map(|(_, producer)| producer);
        assert_eq!(producers().map(|it| it.bytes()).sum::<usize>(), self.producer_bytes);
        assert_eq!(producers().map(|it| it.sent.len()).sum::<usize>(), self.entries.len());
        for producer in producers() {
            assert!((1..=self.memory.ids_max).contains(&producer.sent.len()));
            assert_eq!(producer.hashes.len(), producer.sent.len());
            assert_eq!(producer.id_bytes, producer.sent.iter().map(Sent::bytes).sum::<usize>());
        }
        assert_eq!(self.iter().count(), self.entries.len());
    }

    /// Producers' names, and what each has sent, oldest first: entry and idempotent id.
    pub(super) fn by_producer(
        &self,
    ) -> impl Iterator<Item = (&[u8], impl ExactSizeIterator<Item = (StreamId, &[u8])>)> {
        self.producers.iter().map(|(_, producer)| {
            (&*producer.name, producer.sent.iter().map(|sent| (sent.entry, &*sent.id)))
        })
    }

    /// The same memory with nothing in it; what was ever counted stays.
    pub(super) fn cleared(&self, memory: Memory) -> Option<Idempotence> {
        let (added, duplicates) = (self.added, self.duplicates);
        Some(Idempotence { added, duplicates, ..Idempotence::new(memory)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_same_hash_are_told_apart() {
        let mut idempotence = Idempotence::new(Memory { duration_s: 1, ids_max: 2 }).unwrap();
        let names: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        let entry = |number: usize| StreamId::new(number as u64 + 1, 0);
        // All ids have the same hash, too.
        for (number, name) in names[..3].iter().enumerate() {
            idempotence.insert(7, name, 9, name, entry(number)).unwrap();
        }
        idempotence.insert(8, b"other", 9, b"a", entry(3)).unwrap();
        for (number, name) in names[..3].iter().enumerate() {
            assert_eq!(idempotence.find(7, name, 9, name), Some(entry(number)));
            assert_eq!(idempotence.find(7, name, 9, b"other"), None);
        }
        idempotence.forget_first(1);
        idempotence.insert(7, b"d", 9, b"d", entry(4)).unwrap();
        idempotence.check();
        assert_eq!(idempotence.find(7, b"a", 9, b"a"), None);
        for name in &names[1..] {
            assert!(idempotence.find(7, name, 9, name).is_some());
        }
        assert_eq!((idempotence.producers(), idempotence.ids()), (4, 4));
        assert_eq!(idempotence.insert(7, b"d", 9, b"e", entry(4)), None);
    }
}
