//! A transaction: the one way to read and change data.
//!
//! Every method keeps four things consistent, so that no command can forget one: the data itself,
//! the changes to log, the LSN that the reply will depend on, and the watchers of the key.

mod abort;
mod audit;
mod databases;
mod events;
pub(crate) mod evict;
mod expiry;
pub(crate) mod follow;
mod grow;
mod hashes;
mod keys;
mod libraries;
mod lists;
mod lookup;
mod rebuild;
mod recount;
mod sets;
pub(crate) mod sorted_sets;
pub(crate) mod stored;
pub(crate) mod streams;
pub(crate) mod strings;
mod undo;
pub(crate) mod values;
mod waits;

use crate::access::Use;
use crate::events::{Collected, EventClass};
use crate::key::Key;
use crate::keyspace::Keyspace;
use crate::locked::Locked;
use crate::object::Object;
use crate::partition::{Partition, Weight, partition_of};
use crate::preparation_limits::PreparationLimits;
use crate::space::{HeldSpaces, TupleEvent};
use crate::table::entry::{EntryRef, ValueInit};
use crate::wait::ReadyKey;
use crate::watch::{Untold, WatchFlag};
use ladon_record::{Change, ChangeBuffer, DbId, KeyHash, LargeRecord, Lsn, Record, ValueKind};
use std::any::Any;
use std::sync::Arc;
use thiserror::Error;

/// What a thread's transactions did since the counters were last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxCounters {
    /// Lookups by reading commands that found the key.
    pub hits: u64,
    /// Lookups by reading commands that did not.
    pub misses: u64,
    /// Keys removed because they expired.
    pub expired: u64,
    /// Elements removed because they expired.
    pub expired_elements: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Change of the memory that the data takes.
    pub bytes_delta: i64,
}

/// A thread's reusable buffers.
#[derive(Default)]
pub struct Scratch {
    changes: ChangeBuffer,
    /// The change made by `put_stored`, encoded beforehand; then there are no other changes.
    stored: Option<Box<LargeRecord>>,
    touched: Vec<KeyHash>,
    events: Collected,
    /// Who makes the changes, for those that keep copies of values.
    origin: u64,
    body: Vec<u8>,
    /// Counters, to be read and reset by the owner.
    pub counters: TxCounters,
    /// Keys that were created while clients waited for them, in order. The committer of the
    /// transaction serves the waiters and empties this.
    pub ready: Vec<ReadyKey>,
    /// Large values that were removed from the data; drop them where no client waits.
    pub garbage: Vec<Garbage>,
    /// The data must not change: the log takes no records, or clients are paused. What has expired
    /// is then only hidden.
    pub read_only: bool,
    /// Lookups do not change the access time (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// Testing only: what is taken back is not all that was done, which the simulator must notice.
    pub forgetful_undo_canary: bool,
    /// Testing only: a look removes what has expired although the node follows another one, which
    /// tests must notice.
    pub replica_expires_canary: bool,
    /// Testing only: a commit on spaces does not look at the first read, which the simulator must
    /// notice.
    pub skipped_read_canary: bool,
    /// Testing only: a commit does not check the foreign keys of what it repeats, which the
    /// simulator must notice.
    pub skipped_keys_canary: bool,
    /// Testing only: limits of commits on spaces instead of the usual ones.
    pub commit_limits: Option<CommitLimits>,
    /// Testing only: limits of preparations of definitions instead of the usual ones.
    pub preparation_limits: Option<PreparationLimits>,
    /// State of the random numbers that access counters take.
    random: u64,
    /// The transaction notes in `undo` what it changes.
    undoable: bool,
    undo: Option<Box<Undo>>,
}

/// Testing only: limits of a commit instead of the usual ones.
#[derive(Clone, Copy, Debug)]
pub struct CommitLimits {
    /// Statements to repeat at once.
    pub work: usize,
    /// How often a space's steps are repeated before its writers are asked to wait.
    pub rounds_without_waiting: u32,
}

impl Scratch {
    /// The memory of a transaction on spaces beside one that has this memory.
    pub fn spare(&self) -> Scratch {
        Scratch {
            skipped_read_canary: self.skipped_read_canary,
            skipped_keys_canary: self.skipped_keys_canary,
            commit_limits: self.commit_limits,
            ..Scratch::default()
        }
    }

    /// Takes over what a transaction has left in memory that was spare.
    pub fn take_over(&mut self, mut spare: Scratch) {
        self.garbage.append(&mut spare.garbage);
        self.ready.append(&mut spare.ready);
    }

    /// Forgets the changes of the last transaction.
    pub(crate) fn begin_changes(&mut self) {
        self.changes.clear();
        self.stored = None;
        self.touched.clear();
        self.undoable = false;
    }

    pub(crate) fn changes_mut(&mut self) -> &mut ChangeBuffer {
        &mut self.changes
    }
}

use undo::Undo;

/// A value that takes long to drop.
pub struct Garbage {
    kind: GarbageKind,
    bytes: usize,
}

impl Garbage {
    /// A value that may be the last reference to a large one, and is not counted.
    pub fn of(last: impl Send + 'static) -> Garbage {
        Garbage::of_bytes(last, 0)
    }

    /// The last reference to this many bytes.
    pub fn of_bytes(last: impl Send + 'static, bytes: usize) -> Garbage {
        Garbage { kind: GarbageKind::Other(Box::new(last)), bytes }
    }

    /// What a definition of a space leaves: the last reference to this many bytes at most.
    pub fn of_definition(last: impl Send + 'static, bytes_max: usize) -> Garbage {
        Garbage { kind: GarbageKind::OfDefinition(Box::new(last), bytes_max), bytes: 0 }
    }

    fn of_object(object: Box<Object>) -> Garbage {
        Garbage { bytes: object.bytes(), kind: GarbageKind::Object(object) }
    }

    /// Bytes of memory that dropping it frees, as far as known.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that dropping it may free at most, if a definition left it.
    pub fn definition_bytes(&self) -> usize {
        match &self.kind {
            GarbageKind::OfDefinition(_, bytes_max) => *bytes_max,
            _ => 0,
        }
    }

    /// Cost of dropping it, in allocations.
    pub fn effort(&self) -> usize {
        match &self.kind {
            GarbageKind::Object(object) => object.drop_effort(),
            GarbageKind::Database(table) => table.len(),
            GarbageKind::OfDefinition(..) | GarbageKind::Other(_) => 1,
        }
    }

    /// Number of values in it.
    pub fn values(&self) -> u64 {
        match &self.kind {
            GarbageKind::Object(_) => 1,
            GarbageKind::Database(table) => table.len() as u64,
            GarbageKind::OfDefinition(..) | GarbageKind::Other(_) => 0,
        }
    }
}

enum GarbageKind {
    Object(Box<Object>),
    Database(Box<crate::table::Table>),
    OfDefinition(#[allow(dead_code, reason = "held for its drop")] Box<dyn Any + Send>, usize),
    Other(#[allow(dead_code, reason = "held for its drop")] Box<dyn Any + Send>),
}

/// Values of up to this many allocations are dropped at once.
const DROP_EFFORT_MAX: usize = 64;

/// From this size on, the log takes over the memory of a transaction's changes: copying them costs
/// more than a chunk of their own.
const LARGE_RECORD_BYTES: usize = 4 << 20;

/// A value would exceed the caller's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("string exceeds maximum allowed size (proto-max-bulk-len)")]
pub struct StringTooLong;

/// Locked partitions and what was done to them.
pub struct Tx<'a> {
    keyspace: &'a Keyspace,
    locked: Locked<'a>,
    scratch: &'a mut Scratch,
    now_ms: u64,
    dependency: Lsn,
    touched_all: bool,
    /// Changes that are counted together with others.
    uncounted: u32,
    /// Mounted spaces that it holds as well.
    pub(crate) spaces: Option<Box<HeldSpaces>>,
    #[cfg(debug_assertions)]
    audit: audit::Audit,
}

impl<'a> Tx<'a> {
    #[inline(always)]
    pub(crate) fn new(
        keyspace: &'a Keyspace,
        locked: Locked<'a>,
        scratch: &'a mut Scratch,
        now_ms: u64,
    ) -> Tx<'a> {
        scratch.begin_changes();
        #[cfg(debug_assertions)]
        let audit = audit::Audit::begin(&locked, scratch);
        Tx {
            keyspace,
            locked,
            scratch,
            now_ms,
            dependency: Lsn::ZERO,
            touched_all: false,
            uncounted: 0,
            spaces: None,
            #[cfg(debug_assertions)]
            audit,
        }
    }

    /// The keyspace that this works on.
    pub fn keyspace(&self) -> &'a Keyspace {
        self.keyspace
    }

    /// The moment of this transaction, Unix milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Whether data may change: a command that only reads has to look before it keeps a result.
    pub fn may_change(&self) -> bool {
        !self.scratch.read_only && !self.keyspace.is_follower()
    }

    /// A key with its hash.
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: self.keyspace.hash(bytes) }
    }

    /// Number of changes so far (Redis: "dirty").
    pub fn change_count(&self) -> u32 {
        let stored = u32::from(self.scratch.stored.is_some());
        (self.scratch.changes.count() + stored).saturating_sub(self.uncounted)
    }

    /// Counts the last two changes as one, for clients: something moved.
    pub fn count_two_as_one(&mut self) {
        self.uncounted += 1;
    }

    /// Ends the transaction. If anything changed, `append` logs the encoded changes and returns
    /// their LSN. Returns the LSN that a reply depends on, and whether anything changed.
    #[inline]
    pub fn commit(mut self, append: impl FnOnce(Record<'_>) -> Lsn) -> (Lsn, bool) {
        self.commit_in_place(append)
    }

    /// Ends a transaction whose changes are in the log already.
    pub(crate) fn forget_logged(self) {
        #[cfg(debug_assertions)]
        self.audit.is_logged();
    }

    /// As `commit`, but the locks are held until this is dropped, which has to follow: moving the
    /// transaction costs a pipelined GET more than finding its key.
    #[inline]
    pub fn commit_in_place(&mut self, append: impl FnOnce(Record<'_>) -> Lsn) -> (Lsn, bool) {
        #[cfg(debug_assertions)]
        self.audit.is_logged();
        let (depends, changed) = self.log_changes(append);
        if self.spaces.is_some() {
            self.commit_spaces(depends);
        }
        if !self.scratch.events.is_empty() {
            self.deliver_events(depends);
        }
        (depends, changed)
    }

    #[inline(always)]
    fn log_changes(&mut self, append: impl FnOnce(Record<'_>) -> Lsn) -> (Lsn, bool) {
        if self.scratch.undoable {
            self.keep_changes();
        }
        let lsn = if self.scratch.stored.is_some() {
            append(self.take_stored())
        } else if self.scratch.changes.is_empty() {
            return (self.dependency, false);
        } else if self.scratch.changes.as_bytes().len() >= LARGE_RECORD_BYTES
            || self.scratch.changes.is_shared()
        {
            append(self.take_large())
        } else {
            append(Record::Changes(self.scratch.changes.as_bytes()))
        };
        self.mark_touched(lsn);
        (lsn, true)
    }

    /// Whoever reads what this has changed depends on `lsn`.
    #[inline(always)]
    fn mark_touched(&mut self, lsn: Lsn) {
        for &hash in &self.scratch.touched {
            self.locked.partition(hash).mark_changed(hash, lsn);
        }
        if self.touched_all {
            for index in self.locked.indexes() {
                self.locked.at(index).mark_all_changed(lsn);
            }
        }
    }

    // ---- mounted spaces ----

    /// The spaces that are held, and where their changes go.
    pub(crate) fn spaces_and_changes(&mut self) -> (Option<&mut HeldSpaces>, &mut ChangeBuffer) {
        (self.spaces.as_deref_mut(), &mut self.scratch.changes)
    }

    /// Makes the reply depend on a change.
    pub(crate) fn depend_on(&mut self, lsn: Lsn) {
        self.dependency = self.dependency.max(lsn);
    }

    /// Notes what happened to a tuple that is a key.
    pub(crate) fn note_tuple(&mut self, event: &TupleEvent) {
        self.scratch.note_tuple(self.keyspace, event);
    }

    // ---- reading ----

    /// Counts a lookup as `read` does, for commands that look up several keys by themselves.
    pub fn count_lookup(&mut self, found: bool) {
        let counters = &mut self.scratch.counters;
        *(if found { &mut counters.hits } else { &mut counters.misses }) += 1;
    }

    /// Makes the reply depend on everything in the held partitions.
    pub fn depend_on_all(&mut self) {
        for index in self.locked.indexes() {
            self.dependency = self.dependency.max(self.locked.at(index).dependency_of_all());
        }
    }

    // ---- watching ----

    /// Watches a key for a client.
    pub fn watch(&mut self, db: DbId, key: Key<'_>, flag: &Arc<WatchFlag>) {
        let now_ms = self.now_ms;
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let entry = database.table.get(database.table.local(key.hash.0), key.bytes);
        let expired = entry.is_some_and(|entry| is_due(entry, now_ms));
        database.watched.add(key.bytes, flag, expired);
    }

    /// Stops watching.
    pub fn unwatch(&mut self, db: DbId, key: Key<'_>, flag: &Arc<WatchFlag>) {
        self.locked.partition(key.hash).dbs[usize::from(db)].watched.remove(key.bytes, flag);
    }

    // ---- shared by the above ----

    /// Replaces or creates the entry, and updates the accounts.
    #[inline]
    fn put(&mut self, db: DbId, key: Key<'_>, value: ValueInit<'_>, expire_at: u64) {
        let saved = if self.scratch.undoable { Some(self.save_displaced(db, key)) } else { None };
        let (rules, now_ms) = (self.keyspace.access_rules(), self.now_ms);
        let mut is_new = false;
        let garbage = put_entry(
            self.keyspace,
            self.locked.partition(key.hash),
            db,
            key,
            value,
            expire_at,
            |old| match old {
                Some(word) => rules.after(now_ms, word, Use::Change, &mut self.scratch.random),
                None => {
                    is_new = true;
                    rules.at(now_ms).first()
                }
            },
            &mut self.scratch.counters.bytes_delta,
        );
        if is_new {
            self.notify(EventClass::NEW, "new", db, key);
        }
        match saved {
            None => self.scratch.discard(garbage),
            Some(saved) => self.scratch.keep_displaced(saved, garbage),
        }
    }

    #[inline]
    fn remove(&mut self, db: DbId, key: Key<'_>) -> Option<Removed> {
        if self.scratch.undoable {
            return self.remove_undoable(db, key);
        }
        self.remove_for_good(db, key)
    }

    #[cold]
    fn remove_undoable(&mut self, db: DbId, key: Key<'_>) -> Option<Removed> {
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        table.get(table.local(key.hash.0), key.bytes)?;
        let saved = self.save_displaced(db, key);
        let mut removed = self.remove_for_good(db, key)?;
        self.scratch.keep_displaced(saved, removed.object.take());
        Some(removed)
    }

    /// As `remove`, for a caller that notes by itself how to undo that.
    #[inline]
    fn remove_for_good(&mut self, db: DbId, key: Key<'_>) -> Option<Removed> {
        remove_entry(
            self.keyspace,
            self.locked.partition(key.hash),
            db,
            key,
            &mut self.scratch.counters.bytes_delta,
        )
    }

    /// Records a change that has just been made.
    #[inline]
    fn changed(&mut self, key: Key<'_>, change: Change<'_>) {
        self.begin_change(key);
        self.scratch.changes.push(change);
        match change {
            Change::Put { db, kind, .. } | Change::Update { db, kind, .. } => {
                self.noted(db, key, true, Some(kind));
            }
            Change::PutItem { db, .. } => self.noted(db, key, true, Some(ValueKind::String)),
            Change::Expire { db, .. } => self.noted(db, key, true, None),
            Change::Delete { db, .. } => self.noted(db, key, false, None),
            _ => unreachable!("changes without a key are recorded where they are made"),
        }
    }

    /// As `changed`, of a change whose body is in `body`.
    #[inline]
    fn changed_by<'b>(
        &mut self,
        key: Key<'_>,
        body: &'b mut Vec<u8>,
        change: impl FnOnce(&'b [u8]) -> Change<'b>,
    ) {
        if body.len() < LARGE_RECORD_BYTES {
            return self.changed(key, change(body));
        }
        self.begin_change(key);
        let change = self.push_long(std::mem::take(body), change(&[]));
        if let Change::Put { db, kind, .. } | Change::Update { db, kind, .. } = change {
            self.noted(db, key, true, Some(kind));
        }
    }

    /// Adds a change whose body is in `body` to the record, which takes over the memory of a long
    /// one.
    #[inline]
    fn push_change<'b>(
        &mut self,
        body: &'b mut Vec<u8>,
        change: impl FnOnce(&'b [u8]) -> Change<'b>,
    ) {
        if body.len() < LARGE_RECORD_BYTES {
            self.scratch.changes.push(change(body));
        } else {
            self.push_long(std::mem::take(body), change(&[]));
        }
    }

    #[cold]
    fn push_long<'b>(&mut self, body: Vec<u8>, change: Change<'b>) -> Change<'b> {
        self.scratch.changes.push_shared(change, Arc::new(body));
        change
    }

    /// The next change to record is one of this key.
    #[inline]
    fn begin_change(&mut self, key: Key<'_>) {
        debug_assert!(self.locked.holds(partition_of(key.hash)), "a change of a key");
        debug_assert!(!self.scratch.read_only, "a change of data that must not change");
        debug_assert!(self.scratch.stored.is_none(), "what is stored is the only change");
    }

    /// Notifies a key's watchers of a change and, if the key got a value, notes its waiters.
    #[inline(always)]
    fn noted(&mut self, db: DbId, key: Key<'_>, exists: bool, came: Option<ValueKind>) {
        self.scratch.touched.push(key.hash);
        self.touch_watchers(db, key, exists);
        if let Some(kind) = came {
            self.note_ready(db, key, kind);
        } else if !exists {
            self.note_lost(db, key);
        }
    }

    /// Notifies a key's watchers of a change, and notes that copies of its value are invalid.
    /// Recording a change does so too. Redis also counts some requests that leave a value as it
    /// was.
    #[inline(always)]
    pub fn touch_watchers(&mut self, db: DbId, key: Key<'_>, exists: bool) {
        self.invalidate(key);
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        if !database.watched.is_empty() {
            let mut untold = self.scratch.undoable.then(Untold::default);
            database.watched.touch(key.bytes, exists, untold.as_mut());
            if let Some(untold) = untold {
                self.scratch.undo().watchers(db, partition_of(key.hash), untold);
            }
        }
    }

    /// All changes, in memory that the log takes over.
    #[cold]
    fn take_large(&mut self) -> Record<'static> {
        Record::Large(self.scratch.changes.take_record())
    }

    /// The record that `put_stored` has left for the log.
    #[cold]
    fn take_stored(&mut self) -> Record<'static> {
        match self.scratch.stored.take() {
            Some(record) => Record::Large(*record),
            None => Record::Changes(&[]),
        }
    }

    fn trim_body(&mut self) {
        const KEPT_BYTES_MAX: usize = 1 << 20;
        if self.scratch.body.capacity() > KEPT_BYTES_MAX {
            self.scratch.body = Vec::new();
        }
    }
}

impl Scratch {
    fn discard(&mut self, object: Option<Box<Object>>) {
        if let Some(object) = object
            && object.drop_effort() > DROP_EFFORT_MAX
        {
            self.garbage.push(Garbage::of_object(object));
        }
    }
}

#[inline]
fn is_due(entry: EntryRef<'_>, now_ms: u64) -> bool {
    is_over(entry.expire_at(), now_ms)
}

#[inline]
fn is_over(expire_at: u64, now_ms: u64) -> bool {
    expire_at != 0 && expire_at <= now_ms
}

#[inline]
fn weight_of(value: &ValueInit<'_>) -> Weight {
    match value {
        ValueInit::Object(object) => Weight::of(object),
        _ => Weight::default(),
    }
}

/// Replaces or creates an entry and updates the partition's accounts; returns the replaced object.
/// `access` computes the entry's access word from its old one.
#[allow(clippy::too_many_arguments, reason = "shared with recovery, which has no Tx")]
#[inline]
pub(crate) fn put_entry(
    keyspace: &Keyspace,
    partition: &mut Partition,
    db: DbId,
    key: Key<'_>,
    value: ValueInit<'_>,
    expire_at: u64,
    access: impl FnOnce(Option<u32>) -> u32,
    bytes_delta: &mut i64,
) -> Option<Box<Object>> {
    let database = &mut partition.dbs[usize::from(db)];
    let local = database.table.local(key.hash.0);
    let new_weight = weight_of(&value);
    let before = database.table.bytes() as i64;
    let mut old_object = None;
    let mut old_expire_at = 0;
    if let Some(mut slot) = database.table.get_mut(local, key.bytes) {
        old_expire_at = slot.get().expire_at();
        old_object = slot.take_object();
        let word = access(Some(slot.get().access()));
        slot.set(expire_at, value);
        slot.set_access(word);
    } else {
        database.table.insert(keyspace.hasher(), local, key.bytes, expire_at, value, access(None));
    }
    *bytes_delta += database.expires.change(key.hash.0, old_expire_at, expire_at);
    let old_weight = old_object.as_deref().map_or(Weight::default(), Weight::of);
    *bytes_delta += database.table.bytes() as i64 - before;
    *bytes_delta += database.reweigh(key.hash, old_weight, new_weight);
    keyspace.note_expiry(key.hash, expire_at);
    keyspace.note_element_expiry(key.hash, new_weight.next_expiry);
    old_object
}

/// The parts of a removed entry.
pub(crate) struct Removed {
    expire_at: u64,
    object: Option<Box<Object>>,
}

/// Removes an entry and updates the partition's accounts; `None` if there is none.
#[inline]
pub(crate) fn remove_entry(
    keyspace: &Keyspace,
    partition: &mut Partition,
    db: DbId,
    key: Key<'_>,
    bytes_delta: &mut i64,
) -> Option<Removed> {
    let database = &mut partition.dbs[usize::from(db)];
    let local = database.table.local(key.hash.0);
    let before = database.table.bytes() as i64;
    let slot = database.table.get_mut(local, key.bytes)?;
    let expire_at = slot.get().expire_at();
    let object = slot.remove(keyspace.hasher());
    *bytes_delta += database.expires.change(key.hash.0, expire_at, 0);
    let weight = object.as_deref().map_or(Weight::default(), Weight::of);
    *bytes_delta += database.table.bytes() as i64 - before;
    *bytes_delta += database.reweigh(key.hash, weight, Weight::default());
    Some(Removed { expire_at, object })
}
