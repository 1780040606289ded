//! Consumer groups: how far each has read, what it delivered and to whom.
//!
//! **Invariant:** an entry that is pending in a group is pending with one of the group's consumers,
//! and the other way round, unless it was released: then no consumer has it.

use super::id::StreamId;
use super::id_map::IdMap;
use super::idle::ByTime;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// When it was delivered last, Unix milliseconds.
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub count: u64,
    /// Number of its consumer in the group, or `NOBODY`.
    consumer: u32,
}

/// Stands for a consumer's number in a released entry. As it was delivered at no time, it is idle
/// for longer than all others.
const NOBODY: u32 = u32::MAX;

/// A member of a group.
#[derive(Clone)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// When it last tried to read, Unix milliseconds.
    pub seen_ms: u64,
    /// When it last read or claimed something, Unix milliseconds.
    pub active_ms: Option<u64>,
    pending: IdMap<()>,
}

/// Bytes of a tree's node: one allocation.
const DROP_BYTES: usize = 256;

/// About what a map takes for each of its items beyond their sizes.
const TREE_BYTES: usize = 16;

impl Pending {
    /// Number of its consumer in the group; `None` if it was released.
    pub(super) fn consumer(&self) -> Option<u32> {
        Some(self.consumer).filter(|&number| number != NOBODY)
    }
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Number of entries that are pending with it.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    fn bytes(&self) -> usize {
        let name = 2 * size_of::<usize>() + self.name.len() + TREE_BYTES + size_of::<Arc<[u8]>>();
        size_of::<Option<Consumer>>() + name + self.pending.bytes()
    }
}

/// A consumer group.
#[derive(Default)]
pub struct Group {
    /// The last entry that was delivered.
    pub last_id: StreamId,
    /// How many of the entries that were ever added it has read, where that is known.
    pub entries_read: Option<u64>,
    pending: IdMap<Pending>,
    by_time: ByTime,
    /// By their numbers; a free number is used again.
    consumers: Vec<Option<Consumer>>,
    names: BTreeMap<Arc<[u8]>, u32>,
    /// Bytes of all consumers.
    consumer_bytes: usize,
}

impl Clone for Group {
    fn clone(&self) -> Group {
        let mut group = Group {
            last_id: self.last_id,
            entries_read: self.entries_read,
            pending: self.pending.clone(),
            by_time: self.by_time.clone(),
            consumers: self.consumers.clone(),
            names: self.names.clone(),
            consumer_bytes: 0,
        };
        group.consumer_bytes = group.consumers.iter().flatten().map(Consumer::bytes).sum();
        group
    }
}

impl Group {
    pub(super) fn new(last_id: StreamId, entries_read: Option<u64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// Bytes of memory, itself included.
    pub(super) fn bytes(&self) -> usize {
        let pending = self.pending.bytes() + self.by_time.bytes();
        size_of::<Group>() + 2 * size_of::<usize>() + pending + self.consumer_bytes
    }

    /// Cost of dropping it, in allocations.
    pub(super) fn drop_effort(&self) -> usize {
        self.pending.runs() + 2 * self.names.len() + self.by_time.bytes() / DROP_BYTES
    }

    /// Number of pending entries.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Number of consumers.
    pub fn consumer_count(&self) -> usize {
        self.names.len()
    }

    /// Its consumers in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.names.values().filter_map(|&number| self.consumers[number as usize].as_ref())
    }

    /// The consumer of this name.
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        let number = *self.names.get(name)?;
        self.consumers[number as usize].as_ref()
    }

    /// The consumer with which an entry is pending; `None` if it was released.
    pub fn consumer_of(&self, pending: &Pending) -> Option<&Consumer> {
        let number = pending.consumer()? as usize;
        Some(self.consumers[number].as_ref().expect("a pending entry has a consumer"))
    }

    /// Number of pending entries that were released.
    pub fn released(&self) -> usize {
        self.pending.len() - self.consumers().map(Consumer::pending).sum::<usize>()
    }

    /// A pending entry.
    pub fn pending_entry(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(id)
    }

    /// The first and the last pending entry.
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        Some((self.pending.first()?.0, self.pending.last()?.0))
    }

    /// The pending entries from this id on.
    pub fn pending_from(&self, id: StreamId) -> impl Iterator<Item = &(StreamId, Pending)> {
        self.pending.from(id)
    }

    /// When the entry was delivered that has been pending longest.
    pub fn oldest_delivery(&self) -> Option<u64> {
        match self.by_time.iter() {
            Some(mut index) => index.next().map(|(delivered_ms, _)| delivered_ms),
            None => self.pending.iter().map(|(_, pending)| pending.delivered_ms).min(),
        }
    }

    /// Up to `max` entries that were delivered at `until_ms` or before, the oldest first. Quick
    /// after `index_by_time`.
    pub fn delivered_until(&self, until_ms: u64, max: usize) -> Vec<StreamId> {
        let is_old = |(delivered_ms, _): &(u64, StreamId)| *delivered_ms <= until_ms;
        let id = |(_, id): (u64, StreamId)| id;
        match self.by_time.iter() {
            Some(index) => index.take_while(is_old).map(id).take(max).collect(),
            None => {
                let mut all: Vec<_> = self.times().filter(is_old).collect();
                all.sort_unstable();
                all.into_iter().map(id).take(max).collect()
            }
        }
    }

    /// Builds the index of pending entries by time, unless there is one.
    pub(super) fn index_by_time(&mut self) {
        let mut by_time = std::mem::take(&mut self.by_time);
        by_time.build(self.times());
        self.by_time = by_time;
    }

    fn times(&self) -> impl Iterator<Item = (u64, StreamId)> {
        self.pending.iter().map(|(id, pending)| (pending.delivered_ms, *id))
    }

    /// The entries from this id on that are pending with a consumer.
    pub fn pending_with<'a>(
        &'a self,
        consumer: &'a Consumer,
        from: StreamId,
    ) -> impl Iterator<Item = (StreamId, Pending)> + 'a {
        consumer.pending.from(from).filter_map(|(id, ())| Some((*id, *self.pending.get(*id)?)))
    }

    /// Runs `change` on a consumer, and keeps the account of its memory.
    fn on_consumer<R>(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Consumer) -> R,
    ) -> Option<R> {
        let consumer = self.consumers.get_mut(number as usize)?.as_mut()?;
        let before = consumer.bytes();
        let result = change(consumer);
        self.consumer_bytes = self.consumer_bytes + consumer.bytes() - before;
        Some(result)
    }

    /// The consumer tries to read: it is created if there is none.
    pub(super) fn see(&mut self, name: &[u8], at_ms: u64) -> u32 {
        if let Some(&number) = self.names.get(name) {
            self.on_consumer(number, |consumer| consumer.seen_ms = at_ms);
            return number;
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer {
            name: Arc::clone(&name),
            seen_ms: at_ms,
            active_ms: None,
            pending: IdMap::default(),
        };
        self.consumer_bytes += consumer.bytes();
        let free = self.consumers.iter().position(Option::is_none);
        let number = free.unwrap_or(self.consumers.len());
        match free {
            Some(free) => self.consumers[free] = Some(consumer),
            None => self.consumers.push(Some(consumer)),
        }
        self.names.insert(name, number as u32);
        number as u32
    }

    pub(super) fn number(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The consumer reads or claims something.
    pub(super) fn set_active(&mut self, number: u32, at_ms: Option<u64>) {
        self.on_consumer(number, |consumer| consumer.active_ms = at_ms);
    }

    /// Removes a consumer with all that is pending with it; returns how many entries were.
    pub(super) fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.names.remove(name)?;
        let consumer = self.consumers[number as usize].take()?;
        self.consumer_bytes -= consumer.bytes();
        for (id, ()) in consumer.pending.iter() {
            if let Some(pending) = self.pending.remove(*id) {
                self.by_time.remove(pending.delivered_ms, *id);
            }
        }
        while self.consumers.last().is_some_and(Option::is_none) {
            self.consumers.pop();
        }
        Some(consumer.pending.len())
    }

    /// Makes an entry pending with a consumer, whatever it was before; `None` if there is no such
    /// consumer.
    pub(super) fn assign(
        &mut self,
        id: StreamId,
        consumer: u32,
        delivered_ms: u64,
        count: u64,
    ) -> Option<()> {
        self.consumers.get(consumer as usize)?.as_ref()?;
        let before = self.pending.insert(id, Pending { delivered_ms, count, consumer });
        if let Some(before) = before {
            self.by_time.remove(before.delivered_ms, id);
        }
        self.by_time.insert(delivered_ms, id);
        if let Some(before) = before {
            if before.consumer == consumer {
                return Some(());
            }
            self.on_consumer(before.consumer, |consumer| consumer.pending.remove(id));
        }
        self.on_consumer(consumer, |consumer| consumer.pending.insert(id, ()));
        Some(())
    }

    /// Makes an entry pending with no consumer, whatever it was before.
    pub(super) fn release(&mut self, id: StreamId, count: u64) {
        let released = Pending { delivered_ms: 0, count, consumer: NOBODY };
        let before = self.pending.insert(id, released);
        if let Some(before) = before {
            self.by_time.remove(before.delivered_ms, id);
            self.on_consumer(before.consumer, |consumer| consumer.pending.remove(id));
        }
        self.by_time.insert(0, id);
    }

    /// Makes an entry pending that is not yet, for a consumer that will be assigned.
    pub(super) fn await_consumer(&mut self, id: StreamId, delivered_ms: u64, count: u64) {
        self.pending.insert(id, Pending { delivered_ms, count, consumer: NOBODY });
        self.by_time.insert(delivered_ms, id);
    }

    /// Counts another delivery of a pending entry.
    pub(super) fn redeliver(&mut self, id: StreamId, at_ms: u64) {
        let before = self.pending.update(id, |pending| {
            pending.count = pending.count.saturating_add(1);
            std::mem::replace(&mut pending.delivered_ms, at_ms)
        });
        if let Some(before) = before {
            self.by_time.remove(before, id);
            self.by_time.insert(at_ms, id);
        }
    }

    /// An entry is no longer pending; returns whether it was.
    pub(super) fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(id) else { return false };
        self.by_time.remove(pending.delivered_ms, id);
        self.on_consumer(pending.consumer, |consumer| consumer.pending.remove(id));
        true
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        self.pending.check();
        if let Some(index) = self.by_time.iter() {
            let mut times: Vec<_> = self.times().collect();
            times.sort_unstable();
            assert!(index.eq(times));
        }
        let mut count = 0;
        let mut bytes = 0;
        for consumer in self.consumers() {
            consumer.pending.check();
            count += consumer.pending.len();
            bytes += consumer.bytes();
            for (id, ()) in consumer.pending.iter() {
                let pending = self.pending.get(*id).expect("pending in the group");
                assert_eq!(self.consumer_of(pending).map(Consumer::name), Some(consumer.name()));
            }
        }
        let released = self.pending.iter().filter(|(_, pending)| pending.consumer().is_none());
        assert_eq!(released.count(), self.released());
        assert_eq!((count + self.released(), bytes), (self.pending.len(), self.consumer_bytes));
    }
}
