//! Removes expired keys, and expired elements of values.
//!
//! Every lookup removes what has expired first, so that no command sees it; threads remove the rest
//! in spare time. Both log the removal, because replay reads no clock.
//!
//! While no change can be logged (the log takes none, or clients are paused), an expired key is
//! only hidden. Elements are removed, because a value is read as a whole in many ways. The log
//! records owed for them wait in the partition, and precede the next change there.

use super::Tx;
use crate::events::EventClass;
use crate::key::Key;
use crate::object::Object;
use crate::partition::{Unlogged, Weight, partition_of};
use crate::table::entry::EntryRef;
use crate::types::hash::Item;
use ladon_record::{Change, DbId, KeyHash, ValueKind};

impl Tx<'_> {
    /// Removes up to `max` expired keys and elements from a held partition; returns how many.
    pub fn expire_due(&mut self, partition: usize, max: usize) -> usize {
        if self.scratch.read_only || self.keyspace.next_due(partition) > self.now_ms {
            return 0;
        }
        if !self.locked.at(partition).unlogged.is_empty() {
            self.log_unlogged(partition);
        }
        let mut removed = 0;
        for db in 0..self.keyspace.databases() {
            while removed < max && self.expire_due_key(db, partition) {
                removed += 1;
            }
            while removed < max
                && let Some(count) = self.expire_due_elements(db, partition, max - removed)
            {
                removed += count;
            }
        }
        let next_due = self.locked.at(partition).next_due();
        self.keyspace.set_next_due(partition, next_due);
        removed
    }

    /// Removes one expired key; returns whether there was one.
    fn expire_due_key(&mut self, db: DbId, partition: usize) -> bool {
        let hasher = self.keyspace.hasher();
        let database = &mut self.locked.at(partition).dbs[usize::from(db)];
        while let Some((at, hash)) = database.expires.due(self.now_ms) {
            let table = &database.table;
            let found = table.key_where(hasher, table.local(hash), |key| key.expire_at() == at);
            if let Some(bytes) = found {
                self.expire(db, Key { bytes: &bytes, hash: KeyHash(hash) });
                return true;
            }
            // Two keys with the same hash and expiry shared the index's entry.
            self.scratch.counters.bytes_delta += database.expires.remove(at, hash);
        }
        false
    }

    /// Removes expired elements of the next value that has any; returns how many, or `None` if
    /// there is no such value.
    fn expire_due_elements(&mut self, db: DbId, partition: usize, max: usize) -> Option<usize> {
        let hasher = self.keyspace.hasher();
        let database = &mut self.locked.at(partition).dbs[usize::from(db)];
        while let Some((at, hash)) = database.element_expires.due(self.now_ms) {
            let table = &database.table;
            let found = table.key_where(hasher, table.local(hash), |entry| {
                entry.object().is_some_and(|object| object.next_expiry() == at)
            });
            if let Some(bytes) = found {
                let key = Key { bytes: &bytes, hash: KeyHash(hash) };
                return Some(self.expire_elements(db, key, max));
            }
            // As above.
            self.scratch.counters.bytes_delta += database.element_expires.remove(at, hash);
        }
        None
    }

    #[cold]
    pub(super) fn expire(&mut self, db: DbId, key: Key<'_>) {
        if self.scratch.read_only {
            return;
        }
        let Some(removed) = self.remove(db, key) else { return };
        self.scratch.discard(removed.object);
        self.changed(key, Change::Delete { db, key: key.bytes });
        self.was_by_server();
        self.notify(EventClass::EXPIRED, "expired", db, key);
        self.scratch.counters.expired += 1;
    }

    /// If more than `max` elements have expired of the key's value, so that a look at it would
    /// remove all of them: removes so many, and returns true.
    pub fn expire_ahead(&mut self, db: DbId, key: Key<'_>, max: usize) -> bool {
        let now_ms = self.now_ms;
        if self.keyspace.next_due(partition_of(key.hash)) > now_ms {
            return false;
        }
        let object = self.object_of_living(db, key);
        let is_quick = |object: &Object| {
            object.is_over(now_ms) && !self.names_are_wanted() || !object.has_due(now_ms, max + 1)
        };
        if object.is_none_or(is_quick) {
            return false;
        }
        self.expire_elements(db, key, max);
        true
    }

    /// Whether somebody wants to know which fields expire. Then a hash does not go as a whole.
    fn names_are_wanted(&self) -> bool {
        self.changed_names(EventClass::HASH).are_wanted()
    }

    /// The value of a key that has not expired, where it is an object.
    fn object_of_living(&self, db: DbId, key: Key<'_>) -> Option<&Object> {
        let table = &self.locked.look_at(partition_of(key.hash)).dbs[usize::from(db)].table;
        let entry = table.get(table.local(key.hash.0), key.bytes);
        let entry = entry.filter(|entry| entry.expire_at() == 0 || entry.expire_at() > self.now_ms);
        entry.and_then(EntryRef::object)
    }

    /// Whether the key, which has not expired, holds a value of which all elements have.
    #[cold]
    pub(super) fn is_over(&self, db: DbId, key: Key<'_>) -> bool {
        self.object_of_living(db, key).is_some_and(|object| object.is_over(self.now_ms))
    }

    /// Removes up to `max` expired elements of the key's value, and the key with the last one; a
    /// value of which all elements have expired as a whole, unless their names are wanted. Returns
    /// how many.
    #[cold]
    pub(super) fn expire_elements(&mut self, db: DbId, key: Key<'_>, max: usize) -> usize {
        let (env, now_ms, by_name) = (self.env(), self.now_ms, self.names_are_wanted());
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let local = database.table.local(key.hash.0);
        let Some(entry) = database.table.get(local, key.bytes) else { return 0 };
        let kind = crate::types::kind_of(entry.value());
        if let Some(object) = entry.object().filter(|object| object.is_over(now_ms) && !by_name) {
            let count = object.len();
            if let Some(removed) = self.remove(db, key) {
                self.scratch.discard(removed.object);
            }
            self.scratch.counters.expired_elements += count as u64;
            self.note_expired(db, key, kind, None, &[]);
            return count;
        }
        if self.scratch.undoable {
            self.save_value(db, key, kind);
        }
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let Some(mut slot) = database.table.get_mut(local, key.bytes) else { return 0 };
        let Some(object) = slot.object_mut() else { return 0 };
        let before = Weight::of(object);
        let mut op = Vec::new();
        let count = object.expire_due(now_ms, max, env, &mut op);
        let (after, is_empty) = (Weight::of(object), object.is_empty());
        self.scratch.counters.bytes_delta += database.reweigh(key.hash, before, after);
        self.keyspace.note_element_expiry(key.hash, after.next_expiry);
        if kind != ValueKind::Stream {
            self.scratch.counters.expired_elements += count as u64;
        }
        if self.scratch.undoable {
            self.scratch.undo().changed(db, key, &op);
        }
        if is_empty && let Some(removed) = self.remove(db, key) {
            self.scratch.discard(removed.object);
        }
        if count > 0 {
            let names = if by_name { fields_of(kind, &op) } else { Vec::new() };
            self.note_expired(db, key, kind, (!is_empty).then_some(&op), &names);
        }
        count
    }

    /// Announces and logs that elements have expired; no `op`: the key went with them.
    fn note_expired(
        &mut self,
        db: DbId,
        key: Key<'_>,
        kind: ValueKind,
        op: Option<&Vec<u8>>,
        names: &[&[u8]],
    ) {
        match kind {
            // Nobody is told what a stream forgets of its producers.
            ValueKind::Stream => {}
            ValueKind::Set => self.notify_removal(EventClass::SET, "sexpired", db, key),
            _ => {
                let mut changed = self.changed_names(EventClass::HASH);
                changed.extend(names.iter().copied());
                self.notify_removal_of(EventClass::HASH, "hexpired", db, key, &changed);
            }
        }
        if self.scratch.read_only {
            if op.is_none() {
                // A checkpoint may no longer have the key, and then these could not be applied.
                self.forget_unlogged_of(db, key);
            }
            self.save_unlogged(partition_of(key.hash));
            let partition = self.locked.partition(key.hash);
            let op = op.cloned();
            partition.unlogged.push(Unlogged { db, key: key.bytes.into(), kind, op });
            // So that expiry visits the partition as soon as it can log the removal.
            self.keyspace.note_expiry(key.hash, self.now_ms);
            return;
        }
        match op {
            None => self.changed(key, Change::Delete { db, key: key.bytes }),
            Some(op) => self.elements_expired(db, key, kind, op),
        }
        self.was_by_server();
    }

    /// Records that elements have expired. What a stream forgets of its producers is no change to
    /// who watches it.
    fn elements_expired(&mut self, db: DbId, key: Key<'_>, kind: ValueKind, op: &[u8]) {
        match kind {
            ValueKind::Stream => self.record_stream_op(db, key, op),
            _ => self.changed(key, Change::Update { db, key: key.bytes, kind, op }),
        }
    }

    /// Logs what was removed from a held partition while nothing could be logged.
    #[cold]
    pub(super) fn log_unlogged(&mut self, partition: usize) {
        self.save_unlogged(partition);
        for unlogged in std::mem::take(&mut self.locked.at(partition).unlogged) {
            let Unlogged { db, key: bytes, kind, op } = unlogged;
            let key = Key { bytes: &bytes, hash: self.keyspace.hash(&bytes) };
            match &op {
                None => self.changed(key, Change::Delete { db, key: &bytes }),
                Some(op) => self.elements_expired(db, key, kind, op),
            }
            self.was_by_server();
        }
    }

    /// Drops the owed records of a key, because a later record replaces them.
    pub(super) fn forget_unlogged_of(&mut self, db: DbId, key: Key<'_>) {
        if !self.locked.partition(key.hash).unlogged.is_empty() {
            let is_of = |it: &Unlogged| it.db == db && *it.key == *key.bytes;
            self.forget_unlogged(partition_of(key.hash), is_of);
        }
    }

    /// As `forget_unlogged_of`, for all matching values in a held partition.
    pub(super) fn forget_unlogged(
        &mut self,
        partition: usize,
        is_meant: impl Fn(&Unlogged) -> bool,
    ) {
        if !self.locked.at(partition).unlogged.is_empty() {
            self.save_unlogged(partition);
            self.locked.at(partition).unlogged.retain(|it| !is_meant(it));
        }
    }
}

/// The names of the fields that an op of a hash changes.
fn fields_of(kind: ValueKind, mut op: &[u8]) -> Vec<&[u8]> {
    match kind {
        ValueKind::Hash => {
            std::iter::from_fn(|| Item::take(&mut op).map(|item| item.field())).collect()
        }
        _ => Vec::new(),
    }
}
