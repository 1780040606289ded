//! Changes to collections of any type.

use super::Tx;
use crate::key::Key;
use crate::object::{Object, Variant};
use crate::partition::{Weight, partition_of};
use crate::table::entry::{EntryRef, ValueInit, ValueRef};
use crate::types::collection::{Env, WrongType};
use crate::types::element_prefetch::ElementsAhead;
use ladon_record::{Change, DbId, ValueKind};

/// Members that a request names; most name few.
pub(super) type Members<'a> = smallvec::SmallVec<[&'a [u8]; 8]>;

/// A value as it was found.
pub enum Look<'t, C> {
    /// In the data, valid as long as the transaction is not used otherwise.
    Here(&'t C),
    /// Frozen.
    Frozen(C),
}

impl<'a> Tx<'a> {
    /// What values need to know beyond themselves.
    #[inline]
    pub fn env(&self) -> Env<'a> {
        self.keyspace.env()
    }

    /// The key's collection, for a reading command: counts a hit or a miss.
    #[inline]
    pub fn read_value<C: Variant>(
        &mut self,
        db: DbId,
        key: Key<'_>,
    ) -> Result<Option<&C>, WrongType> {
        self.read(db, key).map(value_of).transpose()
    }

    /// As `read_value`; if `is_large` accepts the value, it is frozen if possible, for reading
    /// after the transaction.
    pub fn read_or_freeze<C: Variant>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        is_large: impl FnOnce(&C) -> bool,
    ) -> Result<Option<Look<'_, C>>, WrongType> {
        match self.read_value::<C>(db, key)? {
            None => return Ok(None),
            Some(value) if is_large(value) => {
                if let Some(frozen) = self.freeze(db, key) {
                    return Ok(Some(Look::Frozen(frozen)));
                }
            }
            Some(_) => {}
        }
        self.peek(db, key).map(value_of).transpose().map(|found| found.map(Look::Here))
    }

    /// Freezes a value that was just read; `None` if it is of another type or cannot be frozen.
    pub fn freeze<C: Variant>(&mut self, db: DbId, key: Key<'_>) -> Option<C> {
        let table = &mut self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let mut slot = table.get_mut(table.local(key.hash.0), key.bytes)?;
        slot.object_mut().and_then(C::of_mut).and_then(C::freeze)
    }

    /// As `freeze`, but copies a value that cannot be frozen. `None` if it is of another type.
    pub fn freeze_or_copy<C: Variant>(&mut self, db: DbId, key: Key<'_>) -> Option<C> {
        let env = self.env();
        let table = &mut self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let mut slot = table.get_mut(table.local(key.hash.0), key.bytes)?;
        let value = slot.object_mut().and_then(C::of_mut)?;
        Some(value.freeze().unwrap_or_else(|| value.duplicate(env)))
    }

    /// As `read_value`, for several keys; fails if any is of another type.
    pub fn read_values<C: Variant>(
        &mut self,
        db: DbId,
        keys: &[Key<'_>],
    ) -> Result<Vec<Option<&C>>, WrongType> {
        self.read_each(db, keys, value_of)
    }

    /// As `read_values`, of any type but strings.
    pub fn read_objects(
        &mut self,
        db: DbId,
        keys: &[Key<'_>],
    ) -> Result<Vec<Option<&Object>>, WrongType> {
        self.read_each(db, keys, |entry| match entry.value() {
            ValueRef::Object(object) if object.kind() != ValueKind::String => Ok(object),
            _ => Err(WrongType),
        })
    }

    fn read_each<T>(
        &mut self,
        db: DbId,
        keys: &[Key<'_>],
        pick: for<'e> fn(EntryRef<'e>) -> Result<&'e T, WrongType>,
    ) -> Result<Vec<Option<&T>>, WrongType> {
        // Removes expired keys first, because references to several values cannot outlive a change.
        let mut found = Vec::with_capacity(keys.len());
        for &key in keys {
            found.push(self.read(db, key).map(pick).transpose()?.is_some());
        }
        let look = |(&key, &found): (&Key<'_>, &bool)| {
            let database = &self.locked.look_at(partition_of(key.hash)).dbs[usize::from(db)];
            let entry = database.table.get(database.table.local(key.hash.0), key.bytes)?;
            found.then(|| pick(entry).ok()).flatten()
        };
        Ok(keys.iter().zip(&found).map(look).collect())
    }

    /// The key's collection, for a changing command: nothing is counted.
    #[inline]
    pub fn get_value<C: Variant>(
        &mut self,
        db: DbId,
        key: Key<'_>,
    ) -> Result<Option<&C>, WrongType> {
        self.get(db, key).map(value_of).transpose()
    }

    /// Stores a collection, whatever the key held before; an empty one removes the key.
    pub fn put_value<C: Variant>(&mut self, db: DbId, key: Key<'_>, value: C, expire_at: u64) {
        self.put_object(db, key, value.into_object(), expire_at);
    }

    /// As `put_value`, for a value of any type.
    pub fn put_object(&mut self, db: DbId, key: Key<'_>, object: Object, expire_at: u64) {
        if let Object::String(string) = &object {
            return self.put_string(db, key, string, expire_at);
        }
        if object.is_empty() {
            self.delete_for_empty(db, key);
            return;
        }
        let mut body = std::mem::take(&mut self.scratch.body);
        body.clear();
        object.encode(&mut body);
        let kind = object.kind();
        self.note_overwritten(db, key, kind);
        self.put(db, key, ValueInit::Object(Box::new(object)), expire_at);
        let name = key.bytes;
        self.changed_by(key, &mut body, |body| Change::Put {
            db,
            key: name,
            expire_at,
            kind,
            body,
        });
        self.scratch.body = body;
        self.trim_body();
    }

    /// Runs `change` on the key's collection; `None` if there is none. `change` writes what it did
    /// into the operation to log, which is empty at first; if it stays empty, nothing changed. An
    /// empty collection is removed with its key.
    #[inline]
    pub fn change_value<C: Variant, R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        change: impl FnOnce(&mut C, &mut Vec<u8>, Env<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let mut op = std::mem::take(&mut self.scratch.body);
        op.clear();
        let outcome = self.change_found(db, key, &mut op, change);
        self.scratch.body = op;
        self.trim_body();
        outcome
    }

    /// As `change_value`, but if the key does not exist, `change` runs on the result of `create`,
    /// which is then stored unless it is empty.
    #[inline]
    pub fn upsert_value<C: Variant, R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        create: impl FnOnce(Env<'_>) -> C,
        change: impl FnOnce(&mut C, &mut Vec<u8>, Env<'_>) -> R,
    ) -> Result<R, WrongType> {
        let mut change = Some(change);
        let found = self.change_value(db, key, |value: &mut C, op, env| {
            change.take().map(|change| change(value, op, env))
        })?;
        if let Some(Some(result)) = found {
            return Ok(result);
        }
        let Some(change) = change else { unreachable!("what was not found was not changed") };
        let mut value = create(self.env());
        // The operation is not logged in this case, but its scratch memory is used.
        let mut op = std::mem::take(&mut self.scratch.body);
        op.clear();
        let result = change(&mut value, &mut op, self.env());
        self.scratch.body = op;
        if !value.is_empty() {
            self.put_value(db, key, value, 0);
        }
        Ok(result)
    }

    /// Removes members from the key's value, and the key with the last one. Returns how many
    /// existed according to `remove`, which also logs what it did.
    pub(super) fn remove_members<'m, C: Variant>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        members: impl Iterator<Item = &'m [u8]>,
        remove: impl Fn(&mut C, &mut Vec<u8>, Env<'_>, &[u8]) -> bool,
    ) -> Result<usize, WrongType> {
        let removed = self.change_value(db, key, |value: &mut C, op, env| {
            let members: Members<'_> = members.collect();
            let mut ahead = ElementsAhead::of(members.len());
            let mut removed = 0;
            for (at, member) in members.iter().enumerate() {
                if let Some(ahead) = &mut ahead {
                    ahead.advance(members.len(), at, |at, guard| {
                        value.prefetch_element(env.hasher.hash(members[at]), guard)
                    });
                }
                if remove(value, op, env, member) {
                    removed += 1;
                    if value.is_empty() {
                        break;
                    }
                }
            }
            removed
        })?;
        Ok(removed.unwrap_or(0))
    }

    #[inline]
    fn change_found<C: Variant, R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        op: &mut Vec<u8>,
        change: impl FnOnce(&mut C, &mut Vec<u8>, Env<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let Some((result, is_empty)) = self.edit_found(db, key, op, change)? else {
            return Ok(None);
        };
        if op.is_empty() {
            return Ok(Some(result));
        }
        if is_empty {
            if let Some(removed) = self.remove(db, key) {
                self.scratch.discard(removed.object);
            }
            self.changed(key, Change::Delete { db, key: key.bytes });
        } else {
            let (kind, name) = (C::KIND, key.bytes);
            self.changed_by(key, op, |op| Change::Update { db, key: name, kind, op });
        }
        Ok(Some(result))
    }

    /// Runs `change` on the key's collection, which writes what it did into `op`; the caller
    /// records that. Returns the result, and whether the collection is empty now.
    #[inline]
    pub(super) fn edit_found<C: Variant, R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        op: &mut Vec<u8>,
        change: impl FnOnce(&mut C, &mut Vec<u8>, Env<'_>) -> R,
    ) -> Result<Option<(R, bool)>, WrongType> {
        let env = self.env();
        if self.scratch.undoable {
            self.save_value(db, key, C::KIND);
        }
        let Some(mut slot) = self.slot(db, key) else { return Ok(None) };
        let value = slot.object_mut().and_then(C::of_mut).ok_or(WrongType)?;
        let before = weight_of(value);
        let result = change(value, op, env);
        let (after, is_empty) = (weight_of(value), value.is_empty());
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        self.scratch.counters.bytes_delta += database.reweigh(key.hash, before, after);
        self.keyspace.note_element_expiry(key.hash, after.next_expiry);
        if self.scratch.undoable {
            self.scratch.undo().changed(db, key, op);
        }
        Ok(Some((result, is_empty)))
    }
}

/// As far as it changes: the object's own size does not.
#[inline]
fn weight_of<C: Variant>(value: &C) -> Weight {
    Weight { object_bytes: value.bytes(), next_expiry: value.next_expiry() }
}

fn value_of<C: Variant>(entry: EntryRef<'_>) -> Result<&C, WrongType> {
    match entry.value() {
        ValueRef::Object(object) => C::of(object).ok_or(WrongType),
        _ => Err(WrongType),
    }
}
