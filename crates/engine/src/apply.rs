//! Applies changes: a checkpoint's blocks, then the log's records.
//!
//! A block covers a range of hashes as of its own LSN, so a record's change is skipped if the key's
//! block already contains it (`checkpoint_coverage.rs`). Blocks load in parallel and in any order.
//! Several workers replay the records; each reads all of them in order and applies those of its own
//! partitions.

use crate::access::AccessNow;
use crate::checkpoint_coverage::CheckpointCoverage;
use crate::item::ItemHead;
use crate::key::Key;
use crate::keyspace::{Keyspace, Locks};
use crate::libraries::Library;
use crate::object::Object;
use crate::partition::{PARTITIONS, Partition, Weight, partition_of};
use crate::save::SavedBlock;
use crate::space::{RecoveringSpaces, SpaceFault, SpaceReplay};
use crate::table::entry::ValueInit;
use crate::tx::{put_entry, remove_entry};
use crate::types::{self, string, string_op};
use ladon_record::{
    Change, ChangeError, Changes, DbId, KeyHash, LibraryBody, Lsn, SpaceId, UnixMillis, ValueKind,
    varint,
};
use parking_lot::Mutex;
use std::sync::Arc;
use thiserror::Error;

/// Why a change cannot be applied: the files contradict each other.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ApplyError {
    /// The encoding is malformed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A value's body or delta is malformed.
    #[error("malformed {what} of key '{key}'")]
    Malformed {
        /// Which part.
        what: &'static str,
        /// The key, readably.
        key: String,
    },
    /// A delta for a key that is not there or has another type.
    #[error("a change to key '{0}', which does not exist with that type")]
    NoSuchValue(String),
    /// A database number out of range.
    #[error("database {0} is out of range; raise 'databases' to read this data")]
    NoSuchDb(DbId),
    /// A library's body is malformed.
    #[error("malformed library '{0}'")]
    Library(String),
    /// A tuple does not fit its space, or a definition the others.
    #[error("space {0}: {1}")]
    Space(SpaceId, String),
    /// The select map in a checkpoint is malformed.
    #[error("malformed select map")]
    SelectMap,
}

impl From<SpaceFault> for ApplyError {
    fn from(fault: SpaceFault) -> ApplyError {
        match fault {
            SpaceFault::Change(error) => error.into(),
            SpaceFault::Tuple(space, error) => ApplyError::Space(space, error.to_string()),
        }
    }
}

/// A keyspace being rebuilt from a data directory.
pub struct Recovering<'a> {
    keyspace: &'a Keyspace,
    access: AccessNow,
    held: CheckpointCoverage,
    spaces: RecoveringSpaces,
    select_lsn: Mutex<Lsn>,
}

impl<'a> Recovering<'a> {
    /// Recovers into `keyspace`, which must be empty; keys count as used at `now_ms`.
    pub fn new(keyspace: &'a Keyspace, now_ms: UnixMillis) -> Self {
        let access = keyspace.access_rules().at(now_ms);
        Recovering {
            keyspace,
            access,
            held: CheckpointCoverage::new(),
            spaces: RecoveringSpaces::default(),
            select_lsn: Mutex::new(Lsn::ZERO),
        }
    }

    /// Loads one block of a checkpoint. May be called from several threads at once.
    pub fn block(&self, block: &SavedBlock, encoded: &[u8]) -> Result<(), ApplyError> {
        self.check_db(block.db)?;
        let mut bytes_delta = 0;
        let mut scratch = crate::tx::Scratch::default();
        let mut changes = Changes::new(encoded).peekable();
        if let Some(Ok(change @ Change::Update { .. })) = changes.peek() {
            let loaded = self.piece(*change, &mut bytes_delta);
            self.keyspace.add_used_bytes(bytes_delta);
            return loaded;
        }
        if let Some(&Ok(Change::SpacePut { space, .. })) = changes.peek() {
            return Ok(self.spaces.block(block, space, encoded)?);
        }
        if let Some(Ok(Change::Library { .. })) = changes.peek() {
            return changes.try_for_each(|change| self.library(change?));
        }
        let partition = partition_of(KeyHash(block.hash_first));
        self.held.add(block);
        for change in changes {
            let change = change?;
            let Some((db, bytes)) = change.key() else {
                return Err(ApplyError::Malformed { what: "block", key: String::new() });
            };
            let key = Key { bytes, hash: self.keyspace.hash(bytes) };
            if partition_of(key.hash) != partition {
                return Err(ApplyError::Malformed { what: "hash range", key: readable(bytes) });
            }
            if let Change::Put { expire_at, kind, body: [], .. } = change
                && kind != ValueKind::String
            {
                // The elements follow in pieces, some of which may have been loaded before.
                self.make_empty(db, key, kind, &mut bytes_delta)?;
                let change = Change::Expire { db, key: bytes, expire_at };
                self.apply(change, key, &mut bytes_delta, &mut scratch)?;
            } else {
                self.apply(change, key, &mut bytes_delta, &mut scratch)?;
            }
        }
        self.keyspace.add_used_bytes(bytes_delta);
        Ok(())
    }

    /// Loads some elements of a value that was saved in pieces.
    ///
    /// Replay repeats all changes to the value since its block, including those that a piece
    /// already contains. The last change to an element decides its state, so the pieces need not be
    /// recorded.
    fn piece(&self, change: Change<'_>, bytes_delta: &mut i64) -> Result<(), ApplyError> {
        let Change::Update { db, key: bytes, kind, .. } = change else {
            return Err(ApplyError::Malformed { what: "block", key: String::new() });
        };
        let key = Key { bytes, hash: self.keyspace.hash(bytes) };
        self.check_db(db)?;
        self.make_empty(db, key, kind, bytes_delta)?;
        let mut scratch = crate::tx::Scratch::default();
        self.apply(change, key, bytes_delta, &mut scratch)
    }

    /// Creates an empty value, to which pieces add, if the key does not exist.
    fn make_empty(
        &self,
        db: DbId,
        key: Key<'_>,
        kind: ValueKind,
        bytes_delta: &mut i64,
    ) -> Result<(), ApplyError> {
        let Some(object) = Object::for_ranges(kind) else {
            return Err(ApplyError::Malformed { what: "value", key: readable(key.bytes) });
        };
        let mut held = self.keyspace.lock(Locks::One(key.hash));
        let partition = held.partition(key.hash);
        let table = &partition.dbs[usize::from(db)].table;
        if table.get(table.local(key.hash.0), key.bytes).is_none() {
            let value = ValueInit::Object(Box::new(object));
            put_entry(self.keyspace, partition, db, key, value, 0, self.access(), bytes_delta);
        }
        Ok(())
    }

    /// What applies records for `worker` of `workers`. Several may be at work at once; each worker
    /// must be given every record, in order.
    pub fn replay(&self, (worker, workers): (usize, usize)) -> Replay<'_, 'a> {
        let scratch = crate::tx::Scratch::default();
        Replay { recovering: self, worker, workers, spaces: None, bytes_delta: 0, scratch }
    }

    /// Ends recovery, after all blocks and records.
    ///
    /// # Errors
    /// If the spaces' secondary indexes cannot be built.
    pub fn finish(&self) -> Result<(), ApplyError> {
        Ok(self.spaces.finish(self.keyspace)?)
    }

    /// Loads the select map as of `lsn`, see [`Keyspace::encode_select_map`].
    pub fn select_map(&self, lsn: Lsn, mut bytes: &[u8]) -> Result<(), ApplyError> {
        let bytes = &mut bytes;
        let count = varint::take(bytes).ok_or(ApplyError::SelectMap)?;
        for number in 0..count {
            let db = varint::take(bytes).ok_or(ApplyError::SelectMap)?;
            let number = u16::try_from(number).map_err(|_| ApplyError::SelectMap)?;
            let db = u16::try_from(db).map_err(|_| ApplyError::SelectMap)?;
            self.check_db(db.max(number))?;
            self.keyspace.set_select(number, db);
        }
        *self.select_lsn.lock() = lsn;
        Ok(())
    }

    /// Applies a change of a library.
    ///
    /// Replay repeats all changes since the checkpoint's begin over the libraries as the checkpoint
    /// saved them, perhaps later. The last change to a library decides, so it need not be recorded
    /// when that was.
    fn library(&self, change: Change<'_>) -> Result<(), ApplyError> {
        let libraries = &self.keyspace.libraries;
        match change {
            Change::Library { name, body } => {
                libraries.put(Arc::new(library_of(name, body)?));
            }
            Change::DeleteLibrary { name } => drop(libraries.remove(name)),
            Change::FlushLibraries => drop(libraries.take()),
            _ => return Err(ApplyError::Library(String::new())),
        }
        Ok(())
    }

    /// Every key counts as used once, now: its earlier use is unknown.
    fn access(&self) -> impl FnOnce(Option<u32>) -> u32 + use<> {
        let word = self.access.first();
        move |_| word
    }

    fn check_db(&self, db: DbId) -> Result<(), ApplyError> {
        self.keyspace.check_db(db)
    }

    fn flush(&self, partition: usize, db: DbId, lsn: Lsn, bytes_delta: &mut i64) {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        {
            let mut held = self.keyspace.lock(Locks::Partition(partition));
            let table = &held.at(partition).dbs[usize::from(db)].table;
            table.for_each(|entry| {
                if !self.held.holds(db, self.keyspace.hash(entry.key()), lsn) {
                    keys.push(entry.key().to_vec());
                }
            });
        }
        let mut held = self.keyspace.lock(Locks::Partition(partition));
        for bytes in &keys {
            let key = Key { bytes, hash: self.keyspace.hash(bytes) };
            remove_entry(self.keyspace, held.at(partition), db, key, bytes_delta);
        }
    }

    fn apply(
        &self,
        change: Change<'_>,
        key: Key<'_>,
        bytes_delta: &mut i64,
        scratch: &mut crate::tx::Scratch,
    ) -> Result<(), ApplyError> {
        let keyspace = self.keyspace;
        let malformed = |what| ApplyError::Malformed { what, key: readable(key.bytes) };
        match change {
            Change::Put { db, expire_at, kind, body, .. } => {
                types::decode_body(kind, body, keyspace.env(), |value| {
                    let mut held = keyspace.lock(Locks::One(key.hash));
                    let partition = held.partition(key.hash);
                    let access = self.access();
                    put_entry(keyspace, partition, db, key, value, expire_at, access, bytes_delta);
                })
                .ok_or_else(|| malformed("value"))
            }
            Change::PutItem { db, expire_at, marks, body, .. } => {
                let head = ItemHead::of_marks(marks);
                let value = string::init_item(body, string::Form::Shortest, head);
                let mut held = keyspace.lock(Locks::One(key.hash));
                let partition = held.partition(key.hash);
                let access = self.access();
                put_entry(keyspace, partition, db, key, value, expire_at, access, bytes_delta);
                Ok(())
            }
            Change::Delete { db, .. } => {
                let mut held = keyspace.lock(Locks::One(key.hash));
                remove_entry(keyspace, held.partition(key.hash), db, key, bytes_delta);
                Ok(())
            }
            // A past expiry is still applied as a time: only normal operation removes expired keys.
            Change::Expire { db, expire_at, .. } => {
                // At time zero nothing is due, and that time must not count as a use.
                scratch.no_touch = true;
                let mut tx = keyspace.begin(Locks::One(key.hash), scratch, 0);
                let exists = tx.set_expire(db, key, expire_at);
                tx.forget_logged();
                *bytes_delta += std::mem::take(&mut scratch.counters.bytes_delta);
                exists.then_some(()).ok_or_else(|| ApplyError::NoSuchValue(readable(key.bytes)))
            }
            Change::Update { db, kind, op, .. } => self.update(db, key, kind, op, bytes_delta),
            _ => {
                unreachable!("changes without a key are applied by `record`")
            }
        }
    }

    /// Applies a delta to the key's value.
    fn update(
        &self,
        db: DbId,
        key: Key<'_>,
        kind: ValueKind,
        op: &[u8],
        bytes_delta: &mut i64,
    ) -> Result<(), ApplyError> {
        let keyspace = self.keyspace;
        let mut held = keyspace.lock(Locks::One(key.hash));
        let partition = held.partition(key.hash);
        let replaced = update_entry(keyspace, partition, db, key, (kind, op), bytes_delta)?;
        if let Some((bytes, expire_at, head)) = replaced {
            let value = string::init_item(&bytes, string::Form::Grown, head);
            let access = self.access();
            put_entry(keyspace, partition, db, key, value, expire_at, access, bytes_delta);
        }
        Ok(())
    }
}

/// Applies a delta to the key's value in its place. A string in its entry is returned instead, as
/// it is to be, with its expiry and head: it may need another form.
pub(crate) fn update_entry(
    keyspace: &Keyspace,
    partition: &mut Partition,
    db: DbId,
    key: Key<'_>,
    (kind, op): (ValueKind, &[u8]),
    bytes_delta: &mut i64,
) -> Result<Option<(Vec<u8>, u64, ItemHead)>, ApplyError> {
    let malformed = |what| ApplyError::Malformed { what, key: readable(key.bytes) };
    let database = &mut partition.dbs[usize::from(db)];
    let local = database.table.local(key.hash.0);
    let none = || ApplyError::NoSuchValue(readable(key.bytes));
    let mut slot = database.table.get_mut(local, key.bytes).ok_or_else(none)?;
    if types::kind_of(slot.get().value()) != kind {
        return Err(none());
    }
    let Some(object) = slot.object_mut() else {
        let entry = slot.get();
        let bytes = string::bytes(entry.value());
        let mut bytes = bytes.map_or(Vec::new(), std::borrow::Cow::into_owned);
        string_op::apply_op(&mut bytes, op).ok_or_else(|| malformed("change"))?;
        return Ok(Some((bytes, entry.expire_at(), entry.item().of_changed())));
    };
    let before = Weight::of(object);
    // A malformed op may still have changed something.
    let applied = object.apply_op(op, keyspace.env());
    let after = Weight::of(object);
    *bytes_delta += database.reweigh(key.hash, before, after);
    keyspace.note_element_expiry(key.hash, after.next_expiry);
    applied.ok_or_else(|| malformed("change"))?;
    Ok(None)
}

/// The library of a change.
pub(crate) fn library_of(name: &[u8], body: &[u8]) -> Result<Library, ApplyError> {
    let body = LibraryBody::decode(body).ok_or_else(|| ApplyError::Library(readable(name)))?;
    Ok(Library::new(name, body))
}

/// Applies records, see [`Recovering::replay`].
pub struct Replay<'r, 'k> {
    recovering: &'r Recovering<'k>,
    worker: usize,
    workers: usize,
    /// From the first change of a space on: only one worker changes them.
    spaces: Option<SpaceReplay<'r>>,
    bytes_delta: i64,
    scratch: crate::tx::Scratch,
}

impl Replay<'_, '_> {
    /// Applies the changes of one record that belong to the worker.
    pub fn record(&mut self, lsn: Lsn, changes: &[u8]) -> Result<(), ApplyError> {
        let of = self.recovering;
        for change in Changes::new(changes) {
            match change? {
                Change::FlushDb { db } => {
                    of.check_db(db)?;
                    for partition in (self.worker..PARTITIONS).step_by(self.workers) {
                        of.flush(partition, db, lsn, &mut self.bytes_delta);
                    }
                }
                Change::SwapDb { first, second } => {
                    of.check_db(first.max(second))?;
                    if self.worker == 0 && lsn > *of.select_lsn.lock() {
                        let keyspace = of.keyspace;
                        let (a, b) = (keyspace.select(first), keyspace.select(second));
                        keyspace.set_select(first, b);
                        keyspace.set_select(second, a);
                    }
                }
                change @ (Change::Library { .. }
                | Change::DeleteLibrary { .. }
                | Change::FlushLibraries) => {
                    if self.worker == 0 {
                        of.library(change)?;
                    }
                }
                change @ (Change::SpacePut { .. } | Change::SpaceDelete { .. }) => {
                    if self.worker == 0 {
                        let spaces = self.spaces.get_or_insert_with(|| of.spaces.replay());
                        spaces.change(of.keyspace, lsn, change)?;
                    }
                }
                change => {
                    let (db, bytes) = change.key().expect("the other changes have a key");
                    of.check_db(db)?;
                    let key = Key { bytes, hash: of.keyspace.hash(bytes) };
                    if partition_of(key.hash) % self.workers == self.worker
                        && !of.held.holds(db, key.hash, lsn)
                    {
                        of.apply(change, key, &mut self.bytes_delta, &mut self.scratch)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Replay<'_, '_> {
    fn drop(&mut self) {
        self.recovering.keyspace.add_used_bytes(self.bytes_delta);
    }
}

impl Keyspace {
    /// The meaning of every `SELECT` number, with the log's end when it was read: a checkpoint's
    /// metadata.
    pub fn encode_select_map(&self, reserved: impl Fn() -> Lsn) -> (Lsn, Vec<u8>) {
        // Holding any lock excludes SWAPDB, which takes all.
        let _held = self.lock(Locks::Partition(0));
        let mut out = Vec::new();
        varint::put(&mut out, u64::from(self.databases()));
        for number in 0..self.databases() {
            varint::put(&mut out, u64::from(self.select(number)));
        }
        (reserved(), out)
    }
}

pub(crate) fn readable(key: &[u8]) -> String {
    let shown = key.escape_ascii().to_string();
    if shown.len() > 100 { format!("{}...", &shown[..100]) } else { shown }
}
