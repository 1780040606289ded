//! Changes to keys of any type: removing, expiry, renaming, copying.

use super::Tx;
use crate::events::EventClass;
use crate::item::ItemHead;
use crate::key::Key;
use crate::object::Object;
use crate::table::entry::{EntryRef, ValueInit, ValueRef};
use crate::types;
use ladon_record::{Change, DbId, ValueKind};

/// How a value is stored in its entry, apart from its bytes.
#[derive(Clone, Copy)]
enum Shape {
    Int(i64),
    Bytes { grown: bool, head: ItemHead },
    Object,
}

impl Shape {
    fn of(entry: EntryRef<'_>) -> Shape {
        match entry.value() {
            ValueRef::Int(int) => Shape::Int(int),
            ValueRef::Bytes { grown, .. } => {
                Shape::Bytes { grown, head: entry.item().of_changed() }
            }
            ValueRef::Object(_) => Shape::Object,
        }
    }

    /// The same representation for `bytes`; `None` for an object.
    fn again(self, bytes: &[u8]) -> Option<ValueInit<'_>> {
        match self {
            Shape::Int(int) => Some(ValueInit::Int(int)),
            Shape::Bytes { grown, head } => Some(ValueInit::of_bytes(bytes, grown, head)),
            Shape::Object => None,
        }
    }
}

/// The change that gives a key this value.
fn put_of<'a>(
    (db, key): (DbId, Key<'a>),
    expire_at: u64,
    kind: ValueKind,
    head: ItemHead,
    body: &'a [u8],
) -> Change<'a> {
    match head.marks() {
        0 => Change::Put { db, key: key.bytes, expire_at, kind, body },
        marks => Change::PutItem { db, key: key.bytes, expire_at, marks, body },
    }
}

impl Tx<'_> {
    /// Removes the key; returns whether it existed (and had not expired).
    #[inline]
    pub fn delete(&mut self, db: DbId, key: Key<'_>) -> bool {
        let partition = self.locked.partition(key.hash);
        self.dependency = self.dependency.max(partition.dependency(key.hash));
        let due = partition.dbs[usize::from(db)].element_expires.due(self.now_ms);
        // A value whose elements have all expired does not exist.
        if due.is_some() && self.is_over(db, key) {
            self.expire_elements(db, key, 0);
            return false;
        }
        let Some(removed) = self.remove(db, key) else { return false };
        self.scratch.discard(removed.object);
        self.changed(key, Change::Delete { db, key: key.bytes });
        if removed.expire_at != 0 && removed.expire_at <= self.now_ms {
            self.was_by_server();
            self.notify(EventClass::EXPIRED, "expired", db, key);
            self.scratch.counters.expired += 1;
            return false;
        }
        true
    }

    /// Removes the key because an empty value was to be stored there.
    pub(super) fn delete_for_empty(&mut self, db: DbId, key: Key<'_>) {
        if self.delete(db, key) {
            self.notify(EventClass::GENERIC, "del", db, key);
        }
    }

    /// Changes the key's expiry (0: never); returns whether the key exists. A past time removes it.
    pub fn set_expire(&mut self, db: DbId, key: Key<'_>, expire_at: u64) -> bool {
        self.set_expire_if(db, key, expire_at, |_| true)
    }

    /// As `set_expire` if `allows` accepts the present expiry (0: none); returns whether it was
    /// done.
    #[inline]
    pub fn set_expire_if(
        &mut self,
        db: DbId,
        key: Key<'_>,
        expire_at: u64,
        allows: impl FnOnce(u64) -> bool,
    ) -> bool {
        let now_ms = self.now_ms;
        if self.scratch.undoable {
            self.save_head(db, key);
        }
        let Some(mut slot) = self.slot(db, key) else { return false };
        let old = slot.get().expire_at();
        if !allows(old) {
            return false;
        }
        if expire_at != 0 && expire_at <= now_ms {
            return self.delete(db, key);
        }
        let before = slot.get().bytes();
        slot.set_expire(expire_at);
        let after = slot.get().bytes();
        self.scratch.counters.bytes_delta += after as i64 - before as i64;
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let index_bytes = database.expires.change(key.hash.0, old, expire_at);
        self.scratch.counters.bytes_delta += index_bytes;
        self.keyspace.note_expiry(key.hash, expire_at);
        self.changed(key, Change::Expire { db, key: key.bytes, expire_at });
        true
    }

    /// Moves value and expiry of `from` over `to`, another key or the same in another database;
    /// returns whether `from` exists.
    pub fn rename(&mut self, from_db: DbId, from: Key<'_>, to_db: DbId, to: Key<'_>) -> bool {
        debug_assert!(from_db != to_db || from.bytes != to.bytes);
        let mut body = std::mem::take(&mut self.scratch.body);
        body.clear();
        let Some(entry) = self.get(from_db, from) else { return false };
        let (expire_at, access, value) = (entry.expire_at(), entry.access(), entry.value());
        let (kind, shape, head) = (types::kind_of(value), Shape::of(entry), entry.item());
        types::encode_body(value, &mut body);
        let is_moved = self.scratch.undoable && matches!(shape, Shape::Object);
        let removed = match is_moved {
            true => self.remove_for_good(from_db, from),
            false => self.remove(from_db, from),
        };
        let Some(mut removed) = removed else { return false };
        if let Some(Object::String(string)) = removed.object.as_deref_mut() {
            // Of this key, no client has asked for a version.
            string.forget_version();
        }
        self.changed(from, Change::Delete { db: from_db, key: from.bytes });
        self.note_overwritten(to_db, to, kind);
        if let Some(value) = removed.object.map(ValueInit::Object).or_else(|| shape.again(&body)) {
            self.put(to_db, to, value, expire_at);
        }
        if is_moved {
            self.scratch.undo().moved((from_db, from), (to_db, to), expire_at, access);
        }
        self.changed(to, put_of((to_db, to), expire_at, kind, head, &body));
        self.scratch.body = body;
        self.trim_body();
        true
    }

    /// Copies value and expiry of `from` over `to`, another key or the same in another database;
    /// returns whether `from` exists.
    pub fn copy(&mut self, from_db: DbId, from: Key<'_>, to_db: DbId, to: Key<'_>) -> bool {
        debug_assert!(from_db != to_db || from.bytes != to.bytes);
        let mut body = std::mem::take(&mut self.scratch.body);
        body.clear();
        let env = self.env();
        let Some(entry) = self.get(from_db, from) else { return false };
        let (expire_at, value) = (entry.expire_at(), entry.value());
        let (kind, shape, head) = (types::kind_of(value), Shape::of(entry), entry.item());
        types::encode_body(value, &mut body);
        let object = match value {
            ValueRef::Object(object) => Some(Box::new(object.duplicate(env))),
            _ => None,
        };
        self.note_overwritten(to_db, to, kind);
        if let Some(value) = object.map(ValueInit::Object).or_else(|| shape.again(&body)) {
            self.put(to_db, to, value, expire_at);
        }
        self.changed(to, put_of((to_db, to), expire_at, kind, head, &body));
        self.scratch.body = body;
        self.trim_body();
        true
    }
}
