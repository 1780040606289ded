//! What a transaction notes in order to take its changes back.
//!
//! The notes are a list of steps in the order of the changes; [`Tx::abort`] goes through it from
//! the last to the first (`abort.rs`). A key has one step, made before it is changed for the first
//! time:
//!
//! ```text
//! was                        the step keeps
//! missing                    nothing
//! string in its entry        a copy
//! long string                what was there where it is written, per write
//! packed collection          a copy
//! large collection           a frozen copy, and the log's ops: they name the changed elements
//! any value, replaced        the value itself, once it leaves the data
//! ```
//!
//! So what a step costs depends on what is changed, and hardly on the value's size. Whatever else
//! happens to the key needs no step of its own, until the key's value moves to another key or its
//! database is flushed. A transaction that is not undoable makes no notes.
//!
//! Watchers' flags cannot be taken back, because other threads may have set them too: they are set
//! at the commit.

use super::{Garbage, GarbageKind, Scratch, Tx, TxCounters};
use crate::expiry::Expires;
use crate::item::ItemHead;
use crate::key::Key;
use crate::libraries::Library;
use crate::object::Object;
use crate::table::entry::{EntryRef, ValueRef};
use crate::table::{SlotMut, Table};
use crate::types;
use crate::types::collection::Env;
use crate::types::long_string::LongString;
use crate::watch::{Untold, WatchFlag, WatcherBefore};
use ladon_record::{DbId, KeyHash, ValueKind, varint};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// The notes of an undoable transaction; their memory is used again by the next.
#[derive(Default)]
pub(super) struct Undo {
    pub(super) steps: Vec<Step>,
    /// The steps of keys that need no other. Two keys with the same hash may displace each other:
    /// then one gets another step.
    saved: Index,
    /// To be touched at the commit.
    flags: Vec<Arc<WatchFlag>>,
    pub(super) begin: Begin,
}

/// The latest step of each key. Most transactions change a few keys, for which a map costs more
/// than looking through a list.
#[derive(Default)]
struct Index {
    few: Vec<(DbId, KeyHash, usize)>,
    many: HashMap<(DbId, KeyHash), usize, BuildHasherDefault<Hashed>>,
}

impl Index {
    const FEW_MAX: usize = 8;

    #[inline]
    fn get(&self, db: DbId, hash: KeyHash) -> Option<usize> {
        let few = self.few.iter().find(|known| (known.0, known.1) == (db, hash));
        match few {
            Some(&(_, _, at)) => Some(at),
            None if self.many.is_empty() => None,
            None => self.many.get(&(db, hash)).copied(),
        }
    }

    fn insert(&mut self, db: DbId, hash: KeyHash, at: usize) {
        let mut few = self.few.iter_mut();
        if let Some(known) = few.find(|known| (known.0, known.1) == (db, hash)) {
            known.2 = at;
        } else if self.few.len() < Index::FEW_MAX {
            self.few.push((db, hash, at));
        } else {
            self.many.insert((db, hash), at);
        }
    }

    fn remove(&mut self, db: DbId, hash: KeyHash) {
        self.few.retain(|known| (known.0, known.1) != (db, hash));
        self.many.remove(&(db, hash));
    }

    fn clear(&mut self) {
        self.few.clear();
        if !self.many.is_empty() {
            self.many.clear();
        }
    }
}

/// Hasher of keys that are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a database's number and a hash are integers")
    }

    fn write_u16(&mut self, db: u16) {
        self.0 ^= u64::from(db);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 ^= hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The state of the thread's buffers when the transaction began.
#[derive(Clone, Copy, Default)]
pub(super) struct Begin {
    pub(super) counters: TxCounters,
    pub(super) ready: usize,
    pub(super) random: u64,
}

/// Something to take back.
pub(super) enum Step {
    Key(Saved),
    Moved(Box<Moved>),
    Flushed(Box<Flushed>),
    Swapped { first: u16, second: u16 },
    Library { name: Box<[u8]>, before: Option<Arc<Library>> },
    LibrariesTaken(Vec<Arc<Library>>),
    Watchers { db: DbId, partition: usize, before: Vec<WatcherBefore> },
}

impl Step {
    /// Whether it has something that must not be dropped on the spot. Most steps of scripts, which
    /// count and set short strings, have nothing.
    #[inline]
    fn may_hold_garbage(&self) -> bool {
        match self {
            Step::Key(saved) => match &saved.before {
                Before::Missing => false,
                Before::Present { value, .. } => {
                    matches!(value, Value::Object(_) | Value::Changed { .. })
                }
            },
            _ => true,
        }
    }
}

/// A key as it was.
pub(super) struct Saved {
    pub(super) db: DbId,
    pub(super) hash: KeyHash,
    pub(super) key: SmallVec<[u8; 24]>,
    pub(super) before: Before,
}

pub(super) enum Before {
    Missing,
    Present { expire_at: u64, access: u32, value: Value },
}

pub(super) enum Value {
    /// It has not changed since.
    Unchanged,
    Int(i64),
    Bytes {
        bytes: Box<[u8]>,
        grown: bool,
        head: ItemHead,
    },
    /// The object itself, which has left the data (`None` until it has), or a copy.
    Object(Option<Box<Object>>),
    /// The object changes in place.
    Changed {
        /// The object, once it has left the data.
        object: Option<Box<Object>>,
        inverse: Inverse,
    },
}

/// How to take changes of an object back.
pub(super) enum Inverse {
    /// See [`Object::revert`]; each op as length and bytes.
    Frozen { before: Object, ops: Vec<u8> },
    /// A long string's writes, in order.
    Writes(Vec<Write>),
}

/// What a write to a long string will overwrite.
pub(super) enum Write {
    /// The string was this long, and had these bytes there.
    Range { length: usize, at: usize, bytes: Box<[u8]> },
    /// All of it.
    Whole(LongString),
}

/// An object that went from one key to another.
pub(super) struct Moved {
    pub(super) from: (DbId, KeyHash, Box<[u8]>),
    pub(super) to: (DbId, KeyHash, Box<[u8]>),
    pub(super) expire_at: u64,
    pub(super) access: u32,
}

/// What a flush took from a database's part of a partition.
pub(super) struct Flushed {
    pub(super) partition: usize,
    pub(super) db: DbId,
    pub(super) table: Table,
    pub(super) expires: Expires,
    pub(super) element_expires: Expires,
    pub(super) object_bytes: usize,
}

impl Flushed {
    /// What is taken will not come back.
    pub(super) fn into_garbage(self) -> Option<Garbage> {
        let bytes = self.table.bytes() + self.object_bytes;
        let holds_keys = self.table.len() > 0;
        holds_keys.then(|| Garbage { kind: GarbageKind::Database(Box::new(self.table)), bytes })
    }
}

impl Undo {
    /// Whether nothing is noted; for the audit.
    #[cfg(debug_assertions)]
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.flags.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        const KEPT_STEPS_MAX: usize = 1 << 12;
        self.steps.clear();
        self.saved.clear();
        self.flags.clear();
        if self.steps.capacity() > KEPT_STEPS_MAX {
            (self.steps, self.saved) = Default::default();
        }
    }

    /// The key's step, if it has one that needs no other.
    fn saved_at(&self, db: DbId, key: Key<'_>) -> Option<usize> {
        let at = self.saved.get(db, key.hash)?;
        matches!(&self.steps[at], Step::Key(saved) if *saved.key == *key.bytes).then_some(at)
    }

    fn save(&mut self, db: DbId, key: Key<'_>, before: Before) -> usize {
        let at = self.steps.len();
        let bytes = SmallVec::from_slice(key.bytes);
        self.steps.push(Step::Key(Saved { db, hash: key.hash, key: bytes, before }));
        self.saved.insert(db, key.hash, at);
        at
    }

    /// Before the integer in a key's entry changes.
    pub(super) fn save_int(
        &mut self,
        db: DbId,
        key: Key<'_>,
        (expire_at, access): (u64, u32),
        int: i64,
    ) {
        let value = Value::Int(int);
        match self.saved_at(db, key) {
            None => {
                self.save(db, key, Before::Present { expire_at, access, value });
            }
            Some(at) => {
                if let Some(unchanged @ Value::Unchanged) = self.value_at(at) {
                    *unchanged = value;
                }
            }
        }
    }

    /// The value of a present key's step.
    fn value_at(&mut self, at: usize) -> Option<&mut Value> {
        match &mut self.steps[at] {
            Step::Key(Saved { before: Before::Present { value, .. }, .. }) => Some(value),
            _ => None,
        }
    }

    fn is_unchanged(&mut self, at: usize) -> bool {
        matches!(self.value_at(at), Some(Value::Unchanged))
    }

    /// The key's value was changed in place, as the op says.
    pub(super) fn changed(&mut self, db: DbId, key: Key<'_>, op: &[u8]) {
        if op.is_empty() {
            return;
        }
        let Some(at) = self.saved_at(db, key) else { return };
        if let Some(Value::Changed { object: None, inverse: Inverse::Frozen { ops, .. } }) =
            self.value_at(at)
        {
            varint::put_bytes(ops, op);
        }
    }

    /// An object went from one key to another, where it has just replaced what was there. Either
    /// key's next change needs a step of its own.
    pub(super) fn moved(
        &mut self,
        (from_db, from): (DbId, Key<'_>),
        (to_db, to): (DbId, Key<'_>),
        expire_at: u64,
        access: u32,
    ) {
        let place = |db, key: Key<'_>| (db, key.hash, key.bytes.into());
        let (from_at, to_at) = (place(from_db, from), place(to_db, to));
        let moved = Moved { from: from_at, to: to_at, expire_at, access };
        self.steps.push(Step::Moved(Box::new(moved)));
        self.saved.remove(from_db, from.hash);
        self.saved.remove(to_db, to.hash);
    }

    pub(super) fn flushed(&mut self, flushed: Flushed) {
        self.steps.push(Step::Flushed(Box::new(flushed)));
    }

    /// Every key's next change needs a step of its own.
    pub(super) fn forget_saved_keys(&mut self) {
        self.saved.clear();
    }

    pub(super) fn swapped(&mut self, first: u16, second: u16) {
        self.steps.push(Step::Swapped { first, second });
    }

    pub(super) fn watchers(&mut self, db: DbId, partition: usize, untold: Untold) {
        self.flags.extend(untold.flags);
        if !untold.before.is_empty() {
            self.steps.push(Step::Watchers { db, partition, before: untold.before });
        }
    }
}

impl Scratch {
    /// The notes of the present transaction, which is undoable.
    pub(super) fn undo(&mut self) -> &mut Undo {
        self.undo.get_or_insert_default()
    }

    /// Takes an object that has left the data. It belongs to the key's step if it is the value that
    /// the key had at first; otherwise nobody needs it.
    pub(super) fn keep_displaced(&mut self, at: usize, object: Option<Box<Object>>) {
        let Some(object) = object else { return };
        match self.undo().value_at(at) {
            Some(Value::Object(kept @ None) | Value::Changed { object: kept @ None, .. }) => {
                *kept = Some(object);
            }
            _ => self.discard(Some(object)),
        }
    }
}

impl Tx<'_> {
    /// From now on every change can be taken back by [`Tx::abort`]. Called before the first change;
    /// has no effect if the transaction is undoable already.
    pub fn make_undoable(&mut self) {
        if self.scratch.undoable {
            return;
        }
        assert!(self.change_count() == 0, "what was changed before could not be taken back");
        let begin = Begin {
            counters: self.scratch.counters,
            ready: self.scratch.ready.len(),
            random: self.scratch.random,
        };
        let undo = self.scratch.undo();
        undo.clear();
        undo.begin = begin;
        self.scratch.undoable = true;
    }

    /// Whether [`Tx::abort`] is possible.
    pub fn is_undoable(&self) -> bool {
        self.scratch.undoable
    }

    /// Before the key's expiry or access word changes.
    #[cold]
    #[inline(never)]
    pub(super) fn save_head(&mut self, db: DbId, key: Key<'_>) {
        if self.scratch.undo().saved_at(db, key).is_some() {
            return;
        }
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let Some(entry) = table.get(table.local(key.hash.0), key.bytes) else { return };
        let (expire_at, access, value) = (entry.expire_at(), entry.access(), Value::Unchanged);
        self.scratch.undo().save(db, key, Before::Present { expire_at, access, value });
    }

    /// Before the key's value changes in place, if it is of this kind.
    #[cold]
    #[inline(never)]
    pub(super) fn save_value(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) {
        let undo = self.scratch.undo.get_or_insert_default();
        let at = undo.saved_at(db, key);
        if at.is_some_and(|at| !undo.is_unchanged(at)) {
            return;
        }
        // A frozen value lacks what is hidden.
        self.unhide_elements(db, key, usize::MAX);
        let env = self.keyspace.env();
        let undo = self.scratch.undo.get_or_insert_default();
        let table = &mut self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let Some(mut slot) = table.get_mut(table.local(key.hash.0), key.bytes) else { return };
        let entry = slot.get();
        let (expire_at, access) = (entry.expire_at(), entry.access());
        let value = if types::kind_of(entry.value()) == kind {
            value_changing_in_place(&mut slot, env)
        } else {
            Value::Unchanged
        };
        match at.and_then(|at| undo.value_at(at)) {
            Some(unchanged) => *unchanged = value,
            None => {
                undo.save(db, key, Before::Present { expire_at, access, value });
            }
        }
    }

    /// Before the key's string is written within this range, or extended.
    #[cold]
    #[inline(never)]
    pub(super) fn save_string(&mut self, db: DbId, key: Key<'_>, within: Range<usize>) {
        self.save_value(db, key, ValueKind::String);
        let undo = self.scratch.undo.get_or_insert_default();
        let Some(at) = undo.saved_at(db, key) else { return };
        let Some(Value::Changed { object: None, inverse: Inverse::Writes(writes) }) =
            undo.value_at(at)
        else {
            return;
        };
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let entry = table.get(table.local(key.hash.0), key.bytes);
        if let Some(ValueRef::Object(Object::String(string))) = entry.map(|entry| entry.value()) {
            writes.push(Write::of(string, within));
        }
    }

    /// Before the key's entry is replaced, created or removed. Returns the step, to which
    /// [`Scratch::keep_displaced`] gives what leaves the data.
    #[cold]
    #[inline(never)]
    pub(super) fn save_displaced(&mut self, db: DbId, key: Key<'_>) -> usize {
        let undo = self.scratch.undo.get_or_insert_default();
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let entry = table.get(table.local(key.hash.0), key.bytes);
        match (undo.saved_at(db, key), entry) {
            (None, None) => undo.save(db, key, Before::Missing),
            (None, Some(entry)) => {
                let (expire_at, access) = (entry.expire_at(), entry.access());
                let value = value_in_entry(entry);
                undo.save(db, key, Before::Present { expire_at, access, value })
            }
            (Some(at), entry) => {
                if let (Some(value @ Value::Unchanged), Some(entry)) = (undo.value_at(at), entry) {
                    *value = value_in_entry(entry);
                }
                at
            }
        }
    }

    /// At the commit: what was kept to be restored is garbage, and the watchers are told.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_changes(&mut self) {
        self.scratch.undoable = false;
        let Some(mut undo) = self.scratch.undo.take() else { return };
        undo.flags.drain(..).for_each(|flag| flag.touch());
        if undo.steps.iter().any(Step::may_hold_garbage) {
            undo.steps.drain(..).for_each(|step| self.scratch.discard_step(step));
        }
        undo.clear();
        self.scratch.undo = Some(undo);
    }
}

impl Scratch {
    /// Drops what a step would have restored, or leaves it to the garbage.
    fn discard_step(&mut self, step: Step) {
        match step {
            Step::Key(Saved { before: Before::Present { value, .. }, .. }) => {
                self.discard_saved(value);
            }
            Step::Flushed(flushed) => self.garbage.extend(flushed.into_garbage()),
            Step::LibrariesTaken(before) => self.garbage.push(Garbage::of(before)),
            _ => {}
        }
    }

    /// Drops a saved value, or leaves it to the garbage.
    pub(super) fn discard_saved(&mut self, value: Value) {
        match value {
            Value::Object(object) => self.discard(object),
            Value::Changed { object, inverse } => {
                self.discard_inverse(inverse);
                self.discard(object);
            }
            _ => {}
        }
    }

    /// A frozen table is dropped at once: it is quick, and as long as it exists, the living value
    /// copies what it changes. A list may be the last to have its chunks.
    pub(super) fn discard_inverse(&mut self, inverse: Inverse) {
        if let Inverse::Frozen { before, .. } = inverse
            && before.is_ordered()
            && before.drop_effort() > super::DROP_EFFORT_MAX
        {
            self.garbage.push(Garbage::of(before));
        }
    }
}

/// What takes back the changes that a value is about to undergo in place.
fn value_changing_in_place(slot: &mut SlotMut<'_>, env: Env<'_>) -> Value {
    match slot.object_mut() {
        Some(Object::String(_)) => {
            Value::Changed { object: None, inverse: Inverse::Writes(Vec::new()) }
        }
        Some(object) => match object.frozen() {
            Some(before) => {
                let inverse = Inverse::Frozen { before, ops: Vec::new() };
                Value::Changed { object: None, inverse }
            }
            None => Value::Object(Some(Box::new(object.duplicate(env)))),
        },
        None => value_in_entry(slot.get()),
    }
}

/// A copy of a value in its entry, or the place for an object that is about to leave the data.
fn value_in_entry(entry: EntryRef<'_>) -> Value {
    match entry.value() {
        ValueRef::Int(int) => Value::Int(int),
        ValueRef::Bytes { bytes, grown } => {
            Value::Bytes { bytes: bytes.into(), grown, head: entry.item() }
        }
        ValueRef::Object(_) => Value::Object(None),
    }
}

impl Write {
    fn of(string: &LongString, within: Range<usize>) -> Write {
        let (start, end) = (within.start.min(string.len()), within.end.min(string.len()));
        if (end - start) > string.len() / 2 {
            return Write::Whole(string.freeze());
        }
        Write::Range { length: string.len(), at: start, bytes: string[start..end].into() }
    }

    /// Takes the write back, after those that followed it.
    pub(super) fn revert(self, string: &mut LongString) {
        match self {
            Write::Whole(before) => *string = before,
            Write::Range { length, at, bytes } => string.edit(|string| {
                string.truncate(length);
                string[at..at + bytes.len()].copy_from_slice(&bytes);
            }),
        }
    }
}
