//! Removes expired keys, and expired elements of values.
//!
//! Every lookup removes what has expired first, so that no command sees it; threads remove the rest
//! in spare time. Both log the removal, because replay reads no clock.
//!
//! Nothing is removed, and all of it only hidden, while no change can be logged (the log takes none,
//! or clients are paused), and while this node follows another one, whose log says what goes and
//! when: a later record of that log may give an expired field a new time. Keys are hidden by their
//! time. Elements are hidden inside of their value, because a value is read as a whole in many ways;
//! see `Collection::hide_due`.

use super::Tx;
use crate::events::EventClass;
use crate::key::Key;
use crate::object::Object;
use crate::partition::{Weight, partition_of};
use crate::table::entry::EntryRef;
use crate::types::hash::Item;
use ladon_record::{Change, DbId, KeyHash, ValueKind};

impl Tx<'_> {
    /// Removes up to `max` expired keys and elements from a held partition; returns how many.
    pub fn expire_due(&mut self, partition: usize, max: usize) -> usize {
        if self.keyspace.next_due(partition) > self.now_ms || self.only_hides() {
            return 0;
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

    /// Whether what has expired stays.
    #[inline]
    pub(super) fn only_hides(&self) -> bool {
        let follows = self.keyspace.is_follower() && !self.scratch.replica_expires_canary;
        self.scratch.read_only || follows
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
        if self.only_hides() {
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
    /// remove or hide all of them: does so with that many, and returns true.
    pub fn expire_ahead(&mut self, db: DbId, key: Key<'_>, max: usize) -> bool {
        let now_ms = self.now_ms;
        if self.keyspace.next_due(partition_of(key.hash)) > now_ms {
            return false;
        }
        let object = self.object_of_living(db, key);
        if self.only_hides() {
            if object.is_none_or(|object| !object.has_to_hide(now_ms, max + 1)) {
                return false;
            }
            self.hide_elements(db, key, max);
            return true;
        }
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

    /// Hides up to `max` expired elements of the key's value.
    #[cold]
    pub(super) fn hide_elements(&mut self, db: DbId, key: Key<'_>, max: usize) {
        let (env, now_ms) = (self.env(), self.now_ms);
        if self.object_of_living(db, key).is_some_and(|object| object.has_to_hide(now_ms, 1)) {
            self.reweighed(db, key, |object| object.hide_due(now_ms, max, env));
        }
    }

    /// Shows up to `max` hidden elements of the key's value; returns how many.
    #[cold]
    pub(super) fn unhide_elements(&mut self, db: DbId, key: Key<'_>, max: usize) -> usize {
        let env = self.env();
        if self.object_of_living(db, key).is_none_or(|object| object.hidden() == 0) {
            return 0;
        }
        self.reweighed(db, key, |object| object.unhide(max, env))
    }

    /// Runs `change` on the key's object, which takes other memory then, but is the same value.
    /// Returns 0 without an object.
    fn reweighed(
        &mut self,
        db: DbId,
        key: Key<'_>,
        change: impl FnOnce(&mut Object) -> usize,
    ) -> usize {
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let local = database.table.local(key.hash.0);
        let Some(mut slot) = database.table.get_mut(local, key.bytes) else { return 0 };
        let Some(object) = slot.object_mut() else { return 0 };
        let before = Weight::of(object);
        let changed = change(object);
        let after = Weight::of(object);
        self.scratch.counters.bytes_delta += database.reweigh(key.hash, before, after);
        self.keyspace.note_element_expiry(key.hash, after.next_expiry);
        changed
    }

    /// Removes up to `max` expired elements of the key's value, and the key with the last one; a
    /// value of which all elements have expired as a whole, unless their names are wanted. Returns
    /// how many, or how many were shown that had been hidden.
    #[cold]
    pub(super) fn expire_elements(&mut self, db: DbId, key: Key<'_>, max: usize) -> usize {
        let (env, now_ms, by_name) = (self.env(), self.now_ms, self.names_are_wanted());
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let local = database.table.local(key.hash.0);
        let Some(entry) = database.table.get(local, key.bytes) else { return 0 };
        let kind = crate::types::kind_of(entry.value());
        if let Some(object) = entry.object().filter(|object| object.is_over(now_ms) && !by_name) {
            let count = object.len() + object.hidden();
            if let Some(removed) = self.remove(db, key) {
                self.scratch.discard(removed.object);
            }
            self.scratch.counters.expired_elements += count as u64;
            self.note_expired(db, key, kind, None, &[]);
            return count;
        }
        let shown = match entry.object() {
            Some(object) if object.hidden() > 0 => self.unhide_elements(db, key, max),
            _ => 0,
        };
        if shown == max {
            return shown;
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
        count + shown
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
