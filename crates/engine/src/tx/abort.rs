//! Takes back what a transaction changed; `undo.rs` says what it has noted for that.

use super::undo::{Before, Flushed, Inverse, Moved, Saved, Step, Value};
use super::{Garbage, Tx, put_entry};
use crate::key::Key;
use crate::object::Object;
use crate::partition::{Database, Weight};
use crate::table::entry::ValueInit;
use crate::types::collection::Env;
use ladon_record::{DbId, varint};

impl Tx<'_> {
    /// Takes every change since [`Tx::make_undoable`] back: the data, expiries, access words,
    /// accounts, counters, what the watchers would have learned, events, ready keys, and the
    /// changes to log. What had expired exists again, until somebody looks. The locks are held
    /// until this is dropped; until then it is a transaction without changes, which cannot be taken
    /// back.
    ///
    /// # Panics
    /// If the transaction is not undoable.
    pub fn abort(&mut self) {
        assert!(self.scratch.undoable, "a transaction that noted nothing is taken back");
        self.scratch.undoable = false;
        self.undo_spaces();
        let Some(mut undo) = self.scratch.undo.take() else { return };
        if self.scratch.forgetful_undo_canary {
            undo.steps.truncate(undo.steps.len().saturating_sub(1));
        }
        for step in undo.steps.drain(..).rev() {
            match step {
                Step::Key(saved) => self.restore_key(saved),
                Step::Moved(moved) => self.move_back(*moved),
                Step::Flushed(flushed) => self.restore_database(*flushed),
                Step::Swapped { first, second } => self.exchange(first, second),
                Step::Library { name, before } => self.restore_library(&name, before),
                Step::LibrariesTaken(before) => {
                    for library in before {
                        self.restore_library(&[], Some(library));
                    }
                }
                Step::Watchers { db, partition, before } => {
                    let watched = &mut self.locked.at(partition).dbs[usize::from(db)].watched;
                    before.iter().rev().for_each(|before| watched.restore(before));
                }
            }
        }
        let scratch = &mut *self.scratch;
        let begin = undo.begin;
        // The memory is what it is, though it may be distributed differently.
        let bytes_delta = scratch.counters.bytes_delta;
        scratch.counters = begin.counters;
        scratch.counters.bytes_delta = bytes_delta;
        scratch.ready.truncate(begin.ready);
        scratch.random = begin.random;
        scratch.changes.clear();
        scratch.events.clear();
        scratch.garbage.extend(scratch.stored.take().map(Garbage::of));
        scratch.touched.clear();
        (self.touched_all, self.uncounted) = (false, 0);
        undo.clear();
        scratch.undo = Some(undo);
    }

    fn restore_key(&mut self, saved: Saved) {
        let Saved { db, hash, key, before } = saved;
        let key = Key { hash, bytes: &key };
        let (expire_at, access, value) = match before {
            Before::Missing => {
                if let Some(removed) = self.remove_for_good(db, key) {
                    self.scratch.discard(removed.object);
                }
                return;
            }
            Before::Present { expire_at, access, value } => (expire_at, access, value),
        };
        let env = self.env();
        match value {
            Value::Unchanged => {}
            Value::Int(int) => self.put_back(db, key, ValueInit::Int(int), expire_at, access),
            Value::Bytes { bytes, grown, head } => {
                let value = ValueInit::of_bytes(&bytes, grown, head);
                self.put_back(db, key, value, expire_at, access);
            }
            Value::Object(object) => {
                let object = object.expect("a value that was to be replaced has left the data");
                self.put_back(db, key, ValueInit::Object(object), expire_at, access);
            }
            Value::Changed { object: Some(mut object), inverse } => {
                let rest = revert(&mut object, inverse, env);
                rest.into_iter().for_each(|rest| self.scratch.discard_inverse(rest));
                self.put_back(db, key, ValueInit::Object(object), expire_at, access);
            }
            Value::Changed { object: None, inverse } => self.revert_in_place(db, key, inverse),
        }
        self.restore_head(db, key, expire_at, access);
    }

    /// Gives the key a former value.
    fn put_back(
        &mut self,
        db: DbId,
        key: Key<'_>,
        value: ValueInit<'_>,
        expire_at: u64,
        access: u32,
    ) {
        let unwanted = put_entry(
            self.keyspace,
            self.locked.partition(key.hash),
            db,
            key,
            value,
            expire_at,
            |_| access,
            &mut self.scratch.counters.bytes_delta,
        );
        self.scratch.discard(unwanted);
    }

    fn revert_in_place(&mut self, db: DbId, key: Key<'_>, inverse: Inverse) {
        let env = self.env();
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let mut slot = database.table.get_mut(database.table.local(key.hash.0), key.bytes);
        let object = slot.as_mut().and_then(|slot| slot.object_mut());
        let object = object.expect("a value that changed in place is still there");
        let old = Weight::of(object);
        let rest = revert(object, inverse, env);
        let new = Weight::of(object);
        self.scratch.counters.bytes_delta += database.reweigh(key.hash, old, new);
        self.keyspace.note_element_expiry(key.hash, new.next_expiry);
        rest.into_iter().for_each(|rest| self.scratch.discard_inverse(rest));
    }

    fn restore_head(&mut self, db: DbId, key: Key<'_>, expire_at: u64, access: u32) {
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let Database { table, expires, .. } = database;
        let before = table.bytes() as i64;
        let mut slot = table
            .get_mut(table.local(key.hash.0), key.bytes)
            .expect("a key whose value was restored exists");
        let old = slot.get().expire_at();
        slot.set_expire(expire_at);
        slot.set_access(access);
        let delta = table.bytes() as i64 - before + expires.change(key.hash.0, old, expire_at);
        self.scratch.counters.bytes_delta += delta;
        self.keyspace.note_expiry(key.hash, expire_at);
    }

    fn move_back(&mut self, moved: Moved) {
        let Moved { from: (from_db, from_hash, from), to: (to_db, to_hash, to), .. } = moved;
        let to = Key { hash: to_hash, bytes: &to };
        let removed = self.remove_for_good(to_db, to);
        let object = removed.and_then(|removed| removed.object);
        let object = object.expect("what was moved is where it went");
        let from = Key { hash: from_hash, bytes: &from };
        let value = ValueInit::Object(object);
        self.put_back(from_db, from, value, moved.expire_at, moved.access);
    }

    fn restore_database(&mut self, mut flushed: Flushed) {
        let partition = flushed.partition;
        let database = &mut self.locked.at(partition).dbs[usize::from(flushed.db)];
        let bytes = |it: &Database| {
            (it.table.bytes() + it.expires.bytes() + it.element_expires.bytes() + it.object_bytes)
                as i64
        };
        let before = bytes(database);
        database.table.exchange(&mut flushed.table);
        std::mem::swap(&mut database.expires, &mut flushed.expires);
        std::mem::swap(&mut database.element_expires, &mut flushed.element_expires);
        std::mem::swap(&mut database.object_bytes, &mut flushed.object_bytes);
        self.scratch.counters.bytes_delta += bytes(database) - before;
        let next_due = database.next_due().min(self.keyspace.next_due(partition));
        self.keyspace.set_next_due(partition, next_due);
        self.scratch.garbage.extend(flushed.into_garbage());
    }
}

/// Makes an object what it was. Returns what is left to be dropped.
fn revert(object: &mut Object, inverse: Inverse, env: Env<'_>) -> Option<Inverse> {
    match inverse {
        Inverse::Frozen { before, ops } => {
            let mut rest = &ops[..];
            let next = || (!rest.is_empty()).then(|| varint::take_bytes(&mut rest)).flatten();
            object.revert(&before, &mut std::iter::from_fn(next), env);
            Some(Inverse::Frozen { before, ops: Vec::new() })
        }
        Inverse::Writes(writes) => {
            let Object::String(string) = object else {
                unreachable!("only strings are written at an offset")
            };
            writes.into_iter().rev().for_each(|write| write.revert(string));
            None
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
