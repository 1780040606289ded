//! Waiting for keys, within a transaction.

use super::Tx;
use crate::key::Key;
use crate::types;
use crate::wait::{Place, ReadyKey, Waiter};
use ladon_record::{DbId, ValueKind};
use std::sync::Arc;

impl Tx<'_> {
    /// Appends a waiter to the key's queue.
    pub fn wait(&mut self, db: DbId, key: Key<'_>, waiter: &Arc<Waiter>) {
        self.locked.partition(key.hash).dbs[usize::from(db)].awaited.add(key.bytes, waiter);
    }

    /// Removes a waiter from the key's queue.
    pub fn stop_waiting(&mut self, db: DbId, key: Key<'_>, waiter: &Arc<Waiter>) {
        self.locked.partition(key.hash).dbs[usize::from(db)].awaited.remove(key.bytes, waiter);
    }

    /// Whether clients wait for a value of this type under an existing key. A newcomer has to queue
    /// behind them, and ensures that they are served.
    #[inline]
    pub fn is_awaited(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) -> bool {
        let awaited = &self.locked.partition(key.hash).dbs[usize::from(db)].awaited;
        if awaited.is_empty() || awaited.first(key.bytes, Some(kind), Place::default()).is_none() {
            return false;
        }
        // Usually another thread is about to serve them; but it may have found the log closed.
        self.scratch.ready.push(ReadyKey { db, key: key.bytes.to_vec(), hash: key.hash });
        true
    }

    /// The type of the key's value; nothing is counted, nor does the key count as used.
    pub fn kind(&mut self, db: DbId, key: Key<'_>) -> Option<ValueKind> {
        self.peek(db, key).map(|entry| types::kind_of(entry.value()))
    }

    /// The first waiter after `after` in the key's queue that is to be served with the present
    /// value, or with none.
    pub fn next_waiter(
        &mut self,
        db: DbId,
        key: Key<'_>,
        after: Place,
    ) -> Option<(Place, Arc<Waiter>)> {
        let kind = self.kind(db, key);
        let awaited = &self.locked.partition(key.hash).dbs[usize::from(db)].awaited;
        awaited.first(key.bytes, kind, after).map(|(place, waiter)| (place, Arc::clone(waiter)))
    }

    /// Number of keys with waiters in the held partitions, and of those with waiters that are
    /// served when the key loses its value.
    pub fn awaited_keys(&mut self) -> (usize, usize) {
        let mut count = (0, 0);
        for index in self.locked.indexes() {
            for database in &self.locked.at(index).dbs {
                let awaited = &database.awaited;
                count.0 += awaited.len();
                count.1 += awaited.keys().filter(|key| awaited.hears_loss(key)).count();
            }
        }
        count
    }

    /// The key got a value, or it was changed: while the log took no changes, a client may have
    /// waited despite a value. No client waits for a string; but one may wait for what it replaced.
    #[inline]
    pub(super) fn note_ready(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) {
        let awaited = &self.locked.partition(key.hash).dbs[usize::from(db)].awaited;
        if !awaited.is_empty() && awaited.has(key.bytes) {
            if kind == ValueKind::String && !awaited.hears_loss(key.bytes) {
                return;
            }
            let ready = ReadyKey { db, key: key.bytes.to_vec(), hash: key.hash };
            self.scratch.ready.push(ready);
        }
    }

    /// The key has no value any more.
    #[inline]
    pub(super) fn note_lost(&mut self, db: DbId, key: Key<'_>) {
        let awaited = &self.locked.partition(key.hash).dbs[usize::from(db)].awaited;
        if !awaited.is_empty() && awaited.hears_loss(key.bytes) {
            let ready = ReadyKey { db, key: key.bytes.to_vec(), hash: key.hash };
            self.scratch.ready.push(ready);
        }
    }

    /// Notes the awaited keys of the database in a held partition, because its data was replaced.
    pub(super) fn note_all_ready(&mut self, db: DbId, partition: usize) {
        let hasher = self.keyspace.hasher();
        let database = &self.locked.at(partition).dbs[usize::from(db)];
        for key in database.awaited.keys() {
            let hash = hasher.hash(key);
            let table = &database.table;
            if table.get(table.local(hash.0), key).is_some() || database.awaited.hears_loss(key) {
                self.scratch.ready.push(ReadyKey { db, key: key.to_vec(), hash });
            }
        }
    }
}
