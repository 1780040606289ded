//! What must hold at the end of each transaction, checked where debug assertions are on.
//!
//! - What was changed was given to the log: otherwise a crash, or a replica, would not know of it.
//! - What an undoable transaction changed was committed or taken back.
//! - The memory of the held partitions changed by just what was counted.
//! - Every so often, in one of the partitions: entries, expiries and bytes are what a walk over all
//!   of them finds, and every key is where its hash puts it.
#![cfg(debug_assertions)]

use super::{Scratch, Tx};
use crate::locked::Locked;
use crate::partition::{Database, Partition, Weight, partition_of};
use crate::table::entry::ValueRef;
use std::cell::Cell;

/// From one walk to the next, in transactions of a thread.
const WALK_EVERY: u32 = 64;
/// Larger databases are not walked: a test would do nothing else.
const WALK_KEYS_MAX: usize = 512;

/// Of transactions on all partitions, one in so many has its memory added up.
const ALL_ADDED_UP_EVERY: u32 = 16;

pub(super) struct Audit {
    /// `None` where memory is not added up.
    bytes_before: Option<i64>,
    counted_before: i64,
    is_logged: Cell<bool>,
}

impl Audit {
    pub(super) fn begin(locked: &Locked<'_>, scratch: &Scratch) -> Audit {
        Audit {
            bytes_before: is_added_up(locked).then(|| accounted_bytes(locked)),
            counted_before: scratch.counters.bytes_delta,
            is_logged: Cell::new(false),
        }
    }

    /// The transaction holds one more partition.
    pub(super) fn is_grown_by(&mut self, partition: &Partition) {
        if let Some(before) = &mut self.bytes_before {
            *before += accounted_bytes_of(partition);
        }
    }

    pub(super) fn is_logged(&self) {
        self.is_logged.set(true);
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_end();
        }
    }
}

impl Tx<'_> {
    pub(super) fn begin_audit(&mut self, locked: &Locked<'_>) {
        self.audit = Audit::begin(locked, self.scratch);
    }

    pub(super) fn check_end(&self) {
        let Audit { bytes_before, counted_before, is_logged } = &self.audit;
        let has_changes = !self.scratch.changes.is_empty() || self.scratch.stored.is_some();
        assert!(!has_changes || is_logged.get(), "a change of data was not given to the log");
        let undo = self.scratch.undo.as_ref();
        let is_settled = !self.scratch.undoable || undo.is_none_or(|undo| undo.is_empty());
        assert!(is_settled, "changes were noted, and neither committed nor taken back");
        let counted = self.scratch.counters.bytes_delta - counted_before;
        if let Some(before) = bytes_before {
            let grown = accounted_bytes(&self.locked) - before;
            assert_eq!(grown, counted, "bytes by which partitions grew, and what was counted");
        }
        self.walk_now_and_then();
    }
}

fn is_added_up(locked: &Locked<'_>) -> bool {
    thread_local!(static BEGUN: Cell<u32> = const { Cell::new(0) });
    if !matches!(locked, Locked::All(_)) {
        return true;
    }
    BEGUN.set(BEGUN.get().wrapping_add(1));
    BEGUN.get().is_multiple_of(ALL_ADDED_UP_EVERY)
}

fn accounted_bytes(locked: &Locked<'_>) -> i64 {
    match locked {
        Locked::One(_, partition) => accounted_bytes_of(partition),
        Locked::Many(held) => held.iter().map(|(_, it)| accounted_bytes_of(it)).sum(),
        Locked::All(held) => held.iter().map(|it| accounted_bytes_of(it)).sum(),
    }
}

fn accounted_bytes_of(partition: &Partition) -> i64 {
    partition.dbs.iter().map(Database::accounted_bytes).sum::<usize>() as i64
}

impl Tx<'_> {
    fn walk_now_and_then(&self) {
        thread_local!(static ENDED: Cell<u32> = const { Cell::new(0) });
        let ended = ENDED.get().wrapping_add(1);
        ENDED.set(ended);
        let held = match &self.locked {
            Locked::One(..) => 1,
            Locked::Many(held) => held.len(),
            Locked::All(held) => held.len(),
        };
        if ended.is_multiple_of(WALK_EVERY) && held != 0 {
            let at = (ended / WALK_EVERY) as usize % held;
            let index = match &self.locked {
                Locked::One(index, _) => usize::from(*index),
                Locked::Many(held) => usize::from(held[at].0),
                Locked::All(_) => at,
            };
            for database in &self.locked.look_at(index).dbs {
                if database.table.len() <= WALK_KEYS_MAX {
                    self.walk(index, database);
                }
            }
        }
    }

    /// As now and then at the end of a transaction, in every held partition.
    #[cfg(test)]
    pub(crate) fn check_all(&self) {
        for index in self.locked.indexes() {
            self.locked.look_at(index).dbs.iter().for_each(|database| self.walk(index, database));
        }
    }

    fn walk(&self, index: usize, database: &Database) {
        let (mut keys, mut entry_bytes, mut object_bytes) = (0, 0, 0);
        let (mut expiries, mut element_expiries) = (0, 0);
        database.table.for_each(|entry| {
            let hash = self.keyspace.hash(entry.key());
            assert_eq!(partition_of(hash), index, "a key in another key's partition");
            keys += 1;
            entry_bytes += entry.rounded_bytes();
            if let ValueRef::Object(object) = entry.value() {
                let weight = Weight::of(object);
                object_bytes += weight.object_bytes;
                element_expiries += database.element_expires.count(weight.next_expiry, hash.0);
            }
            expiries += database.expires.count(entry.expire_at(), hash.0);
        });
        assert_eq!(keys, database.table.len(), "keys found, and counted");
        assert_eq!(object_bytes, database.object_bytes, "bytes of objects found, and counted");
        database.table.check(entry_bytes);
        assert_eq!(expiries, database.expires.len(), "keys that expire, and their index");
        let indexed = database.element_expires.len();
        assert_eq!(element_expiries, indexed, "values with elements that expire, and their index");
        let (next, noted) = (database.next_due(), self.keyspace.next_due(index));
        assert!(noted <= next, "something expires at {next}, and is looked for from {noted} on");
    }
}
