//! Values that were made, and encoded for the log, before the locks were taken.

use super::{Removed, Tx};
use crate::key::Key;
use crate::object::Object;
use crate::table::entry::ValueInit;
use crate::types::collection::Env;
use ladon_record::{Change, DbId, LargeRecord, RecordPart};

/// A value to be stored, with its encoded record.
pub struct Stored {
    db: DbId,
    key: Vec<u8>,
    expire_at: u64,
    /// A frozen copy if the value moves: the state that was encoded.
    object: Box<Object>,
    /// The key from which the value moves, if it is in the data already.
    from: Option<(DbId, Vec<u8>)>,
    /// None if the value is empty: then the key is to be removed.
    record: Option<Box<LargeRecord>>,
}

/// The encoded record does not fit the transaction: it names another database, because databases
/// were swapped meanwhile, or the transaction has made changes already.
#[derive(Debug)]
pub struct Misplaced;

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stored({:?})", self.object)
    }
}

impl Stored {
    /// Encodes the value as that of `key`; an empty one will remove the key.
    pub fn new(db: DbId, key: &[u8], object: Object, expire_at: u64) -> Stored {
        let record = (!object.is_empty()).then(|| encode(Vec::new(), db, key, &object, expire_at));
        Stored { db, key: key.to_vec(), expire_at, object: Box::new(object), from: None, record }
    }

    /// Encodes that the value of `from`, which is `frozen` now, moves to `key`.
    pub fn moved(
        (from_db, from): (DbId, &[u8]),
        frozen: Object,
        (db, key): (DbId, &[u8]),
        expire_at: u64,
    ) -> Stored {
        let mut changes = Vec::new();
        Change::Delete { db: from_db, key: from }.encode(&mut changes);
        let record = Some(encode(changes, db, key, &frozen, expire_at));
        let from = Some((from_db, from.to_vec()));
        Stored { db, key: key.to_vec(), expire_at, object: Box::new(frozen), from, record }
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty, reason = "as for objects")]
    pub fn len(&self) -> usize {
        self.object.len()
    }
}

/// More than the size of a change without its key and body.
const CHANGE_HEAD_BYTES: usize = 64;

/// Adds a change to a record by which the key gets the value. A string's bytes are shared with the
/// record: until they are written, a change of the living string copies it.
fn encode(
    mut changes: Vec<u8>,
    db: DbId,
    key: &[u8],
    object: &Object,
    expire_at: u64,
) -> Box<LargeRecord> {
    let kind = object.kind();
    if let Object::String(string) = object {
        changes.reserve_exact(CHANGE_HEAD_BYTES + key.len());
        let (at, length) = ((db, key), string.len());
        match string.head().marks() {
            0 => Change::encode_put_head(&mut changes, at, expire_at, kind, length),
            marks => Change::encode_put_item_head(&mut changes, at, expire_at, marks, length),
        }
        let shared = RecordPart::Shared(string.freeze().into_shared());
        let parts = vec![RecordPart::Own(changes.into_boxed_slice()), shared];
        return Box::new(LargeRecord::of(parts));
    }
    let mut body = Vec::new();
    object.encode(&mut body);
    changes.reserve_exact(CHANGE_HEAD_BYTES + key.len() + body.len());
    Change::Put { db, key, expire_at, kind, body: &body }.encode(&mut changes);
    drop(body);
    Box::new(LargeRecord::new(changes))
}

impl Object {
    /// The value as it is now, for reading on any thread, unaffected by later changes; never to be
    /// changed. Copied if it is small or cannot be frozen; see [`Collection::freeze`].
    ///
    /// [`Collection::freeze`]: crate::Collection::freeze
    pub(crate) fn freeze(&mut self, env: Env<'_>) -> Object {
        self.frozen().unwrap_or_else(|| self.duplicate(env))
    }

    /// A copy in separate memory, in the same encoding.
    pub fn copy(&self, env: Env<'_>) -> Object {
        self.duplicate(env)
    }
}

impl Tx<'_> {
    /// Freezes a value that was just read; `None` for a short string or a missing key.
    pub fn freeze_object(&mut self, db: DbId, key: Key<'_>) -> Option<Object> {
        let env = self.env();
        let table = &mut self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let mut slot = table.get_mut(table.local(key.hash.0), key.bytes)?;
        slot.object_mut().map(|object| object.freeze(env))
    }

    /// Removes a key whose value is an object, to move that; also returns the access word.
    fn remove_object(&mut self, db: DbId, key: Key<'_>) -> Option<(u32, Removed)> {
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let entry = table.get(table.local(key.hash.0), key.bytes)?;
        entry.object()?;
        let access = entry.access();
        Some((access, self.remove_for_good(db, key)?))
    }

    /// Discards a value that is not wanted any more.
    pub fn discard(&mut self, stored: Stored) {
        self.scratch.discard(Some(stored.object));
    }

    /// Stores the value, whatever the key held before: as `put_value`, but in constant time. It is
    /// the only change of its transaction.
    ///
    /// # Errors
    /// [`Misplaced`]; nothing was changed then.
    pub fn put_stored(&mut self, db: DbId, key: Key<'_>, stored: Stored) -> Result<(), Misplaced> {
        if stored.db != db || stored.key != key.bytes || !self.scratch.changes.is_empty() {
            self.discard(stored);
            return Err(Misplaced);
        }
        let Some(record) = stored.record else {
            self.delete_for_empty(db, key);
            return Ok(());
        };
        let kind = stored.object.kind();
        let mut moved_from = None;
        let object = match stored.from {
            None => stored.object,
            Some((from_db, name)) => {
                self.scratch.discard(Some(stored.object));
                let from = self.key(&name);
                let Some((access, removed)) = self.remove_object(from_db, from) else {
                    return Err(Misplaced);
                };
                let Removed { expire_at, object: Some(mut object) } = removed else {
                    unreachable!("an object was removed")
                };
                if let Object::String(string) = &mut *object {
                    // Of this key, no client has asked for a version.
                    string.forget_version();
                }
                self.noted(from_db, from, false, None);
                moved_from = Some((from_db, name, expire_at, access));
                object
            }
        };
        self.note_overwritten(db, key, kind);
        self.put(db, key, ValueInit::Object(object), stored.expire_at);
        if let Some((from_db, name, expire_at, access)) = moved_from
            && self.scratch.undoable
        {
            let from = self.key(&name);
            self.scratch.undo().moved((from_db, from), (db, key), expire_at, access);
        }
        self.scratch.stored = Some(record);
        self.noted(db, key, true, Some(kind));
        Ok(())
    }
}
