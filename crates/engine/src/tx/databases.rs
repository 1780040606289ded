//! Databases as a whole: their keys counted, visited, removed, and exchanged.

use super::undo::Flushed;
use super::{Garbage, GarbageKind, Tx, is_due};
use crate::key::Key;
use crate::partition::{Database, PARTITIONS};
use crate::table::entry::EntryRef;
use crate::watch::{Presence, Untold};
use ladon_record::{Change, DbId, KeyHash};

impl Tx<'_> {
    /// Number of keys of a database in the held partitions, including expired ones that still take
    /// memory (as in `DBSIZE`).
    pub fn len(&mut self, db: DbId) -> usize {
        self.depend_on_all();
        let indexes = self.locked.indexes();
        indexes.into_iter().map(|i| self.locked.at(i).dbs[usize::from(db)].table.len()).sum()
    }

    /// As `len`, of one held partition; the reply will not depend on what changed there.
    pub fn len_of(&mut self, db: DbId, partition: usize) -> usize {
        self.locked.at(partition).dbs[usize::from(db)].table.len()
    }

    /// (keys, keys with an expiry, mean remaining ms) of a database in the held partitions.
    pub fn summary(&mut self, db: DbId) -> (usize, usize, u64) {
        self.depend_on_all();
        let now_ms = self.now_ms;
        let (mut keys, mut expires, mut sum, mut count) = (0, 0, 0, 0);
        for index in self.locked.indexes() {
            let database = &self.locked.at(index).dbs[usize::from(db)];
            keys += database.table.len();
            expires += database.expires.len();
            let (partition_sum, partition_count) = database.expires.sample_ttl(now_ms);
            sum += partition_sum;
            count += partition_count;
        }
        (keys, expires, sum.checked_div(count).unwrap_or(0))
    }

    /// Every live key of a database in the held partitions.
    pub fn for_each(&mut self, db: DbId, mut visit: impl FnMut(EntryRef<'_>)) {
        self.depend_on_all();
        let now_ms = self.now_ms;
        for index in self.locked.indexes() {
            self.locked.at(index).dbs[usize::from(db)].table.for_each(|entry| {
                if !is_due(entry, now_ms) {
                    visit(entry);
                }
            });
        }
    }

    /// A random key of a held partition that has not expired.
    pub fn random(
        &mut self,
        db: DbId,
        partition: usize,
        mut random: impl FnMut() -> u64,
    ) -> Option<Vec<u8>> {
        const TRIES_MAX: usize = 100;
        let now_ms = self.now_ms;
        let held = self.locked.at(partition);
        self.dependency = self.dependency.max(held.dependency_of_all());
        let table = &held.dbs[usize::from(db)].table;
        for _ in 0..TRIES_MAX {
            let entry = table.random(&mut random)?;
            if !is_due(entry, now_ms) {
                return Some(entry.key().to_vec());
            }
        }
        None
    }

    /// Visits the keys of a held partition in hash order from `from` (a hash) on, at most `buckets`
    /// buckets. Returns the hash to continue from, `None` at the partition's end.
    pub fn scan(
        &mut self,
        db: DbId,
        partition: usize,
        from: KeyHash,
        buckets: usize,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> Option<KeyHash> {
        let (now_ms, hasher) = (self.now_ms, self.keyspace.hasher());
        let held = self.locked.at(partition);
        self.dependency = self.dependency.max(held.dependency_of_all());
        let table = &held.dbs[usize::from(db)].table;
        if table.len() == 0 {
            return None;
        }
        let mut due: Vec<Box<[u8]>> = Vec::new();
        let next = table.scan(hasher, table.local(from.0), buckets, |entry| {
            if is_due(entry, now_ms) {
                due.push(entry.key().into());
            } else {
                visit(entry);
            }
        });
        for bytes in &due {
            self.expire(db, Key { hash: hasher.hash(bytes), bytes });
        }
        let next = next?;
        let bits = crate::partition::PARTITION_BITS;
        Some(KeyHash((partition as u64) << (64 - bits) | next >> bits))
    }

    /// Removes every key of a database; needs all locks. The memory goes to the garbage.
    pub fn flush(&mut self, db: DbId) {
        for index in 0..PARTITIONS {
            let mut untold = self.scratch.undoable.then(Untold::default);
            let database = &mut self.locked.at(index).dbs[usize::from(db)];
            let Database { table, watched, .. } = database;
            if !watched.is_empty() {
                let hasher = self.keyspace.hasher();
                let holds = |key: &[u8]| table.get(table.local(hasher.hash(key).0), key).is_some();
                watched.replace_all(holds, |_| Presence::Missing, untold.as_mut());
            }
            let indexes = database.expires.bytes() + database.element_expires.bytes();
            let bytes = table.bytes() + indexes + database.object_bytes;
            self.scratch.counters.bytes_delta -= bytes as i64;
            if table.len() > 0 {
                let table = table.take();
                if self.scratch.undoable {
                    let expires = std::mem::take(&mut database.expires);
                    let element_expires = std::mem::take(&mut database.element_expires);
                    let object_bytes = database.object_bytes;
                    let taken = Flushed {
                        partition: index,
                        db,
                        table,
                        expires,
                        element_expires,
                        object_bytes,
                    };
                    self.scratch.undo().flushed(taken);
                } else {
                    let kind = GarbageKind::Database(Box::new(table));
                    self.scratch.garbage.push(Garbage { kind, bytes: bytes - indexes });
                }
            } else {
                // It has segments if keys came and went.
                table.release_empty();
            }
            database.expires.clear();
            database.element_expires.clear();
            database.object_bytes = 0;
            if let Some(untold) = untold {
                self.scratch.undo().watchers(db, index, untold);
            }
            self.note_all_ready(db, index);
        }
        if self.scratch.undoable {
            self.scratch.undo().forget_saved_keys();
        }
        self.scratch.changes.push(Change::FlushDb { db });
        self.invalidate_all();
        self.touched_all = true;
    }

    /// Exchanges what `SELECT first` and `SELECT second` mean; needs all locks.
    pub fn swap(&mut self, first: u16, second: u16) {
        let (first_db, second_db) = (self.keyspace.select(first), self.keyspace.select(second));
        for index in 0..PARTITIONS {
            let dbs = &mut self.locked.at(index).dbs;
            let hasher = self.keyspace.hasher();
            let now_ms = self.now_ms;
            // A client that watches a key by database number sees the other database's data appear
            // there.
            for (here, there) in [(first_db, second_db), (second_db, first_db)] {
                let mut untold = self.scratch.undoable.then(Untold::default);
                let mut watched = std::mem::take(&mut dbs[usize::from(here)].watched);
                let look = |db: DbId, key: &[u8]| {
                    let table = &dbs[usize::from(db)].table;
                    match table.get(table.local(hasher.hash(key).0), key) {
                        None => Presence::Missing,
                        Some(entry) if is_due(entry, now_ms) => Presence::Expired,
                        Some(_) => Presence::Live,
                    }
                };
                let before = |key: &[u8]| look(here, key) != Presence::Missing;
                watched.replace_all(before, |key| look(there, key), untold.as_mut());
                dbs[usize::from(here)].watched = watched;
                if let Some(untold) = untold {
                    self.scratch.undo().watchers(here, index, untold);
                }
            }
        }
        if self.scratch.undoable {
            self.scratch.undo().swapped(first, second);
        }
        self.exchange(first, second);
        for index in 0..PARTITIONS {
            self.note_all_ready(first_db, index);
            self.note_all_ready(second_db, index);
        }
        self.scratch.changes.push(Change::SwapDb { first, second });
        self.invalidate_all();
        self.touched_all = true;
    }

    /// Exchanges what two numbers mean. The watchers and waiters stay with the number, while the
    /// data moves.
    pub(super) fn exchange(&mut self, first: u16, second: u16) {
        let (first_db, second_db) = (self.keyspace.select(first), self.keyspace.select(second));
        for index in 0..PARTITIONS {
            let dbs = &mut self.locked.at(index).dbs;
            let [a, b] = dbs
                .get_disjoint_mut([usize::from(first_db), usize::from(second_db)])
                .expect("two different databases");
            std::mem::swap(&mut a.watched, &mut b.watched);
            std::mem::swap(&mut a.awaited, &mut b.awaited);
        }
        self.keyspace.set_select(first, second_db);
        self.keyspace.set_select(second, first_db);
    }
}
