//! Choosing and removing keys to make room.

use super::Tx;
use crate::access::next_random;
use crate::events::EventClass;
use crate::key::Key;
use crate::table::entry::EntryRef;
use ladon_record::{Change, DbId, KeyHash};

/// A key that may be evicted, as it was when it was sampled.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(crate) db: DbId,
    pub(crate) hash: KeyHash,
    pub(crate) key: Vec<u8>,
    /// The access word, see `access.rs`.
    pub(crate) access: u32,
    /// Unix milliseconds; 0 for never.
    pub(crate) expire_at: u64,
}

/// With at most this many expiring keys in a partition, walking to any of them is quick.
const WALKED_MAX: usize = 1024;

/// Keys of any kind that are examined per expiring one, if expiring keys are rare.
const PROBES: usize = 64;

impl Tx<'_> {
    /// Samples up to `count` random keys of each database in a held partition, only expiring ones
    /// if `volatile`; returns how many it saw. Updates the access words that it reads.
    pub(crate) fn sample(
        &mut self,
        partition: usize,
        count: usize,
        volatile: bool,
        random: &mut u64,
        mut visit: impl FnMut(DbId, EntryRef<'_>),
    ) -> usize {
        let access = self.keyspace.access_rules().at(self.now_ms);
        let mut seen = 0;
        let mut look = |db, entry: EntryRef<'_>| {
            let word = access.faded(entry.access());
            seen += 1;
            visit(db, entry);
            word
        };
        for db in 0..self.keyspace.databases() {
            let database = &mut self.locked.at(partition).dbs[usize::from(db)];
            if !volatile {
                let probe = |entry: EntryRef<'_>| Some(look(db, entry));
                database.table.sample(next_random(random), count, count, probe);
                continue;
            }
            let expiring = database.expires.len();
            if expiring == 0 {
                continue;
            }
            if expiring > WALKED_MAX {
                let probe = |entry: EntryRef<'_>| (entry.expire_at() != 0).then(|| look(db, entry));
                if database.table.sample(next_random(random), count, count * PROBES, probe) > 0 {
                    continue;
                }
            }
            let chosen: Vec<(u64, u64)> = if expiring <= WALKED_MAX {
                database.expires.some(next_random(random), count).collect()
            } else {
                database.expires.some_from_time(next_random(random), count).collect()
            };
            for (at, hash) in chosen {
                let (hasher, local) = (self.keyspace.hasher(), database.table.local(hash));
                if let Some(key) =
                    database.table.key_where(hasher, local, |it| it.expire_at() == at)
                    && let Some(mut slot) = database.table.get_mut(local, &key)
                {
                    let word = look(db, slot.get());
                    slot.set_access(word);
                }
            }
        }
        seen
    }

    /// The key of each database in a held partition that expires first.
    pub(crate) fn first_to_expire(
        &mut self,
        partition: usize,
        mut visit: impl FnMut(DbId, EntryRef<'_>),
    ) -> usize {
        let mut seen = 0;
        for db in 0..self.keyspace.databases() {
            let database = &self.locked.at(partition).dbs[usize::from(db)];
            let Some((at, hash)) = database.expires.first() else { continue };
            let (hasher, local) = (self.keyspace.hasher(), database.table.local(hash));
            if let Some(key) = database.table.key_where(hasher, local, |it| it.expire_at() == at)
                && let Some(entry) = database.table.get(local, &key)
            {
                seen += 1;
                visit(db, entry);
            }
        }
        seen
    }

    /// Frees what the tables of a held partition keep although they have no keys; returns whether
    /// there was anything. A page per table is a lot if `maxmemory` is a few MiB.
    pub(crate) fn release_empty(&mut self, partition: usize) -> bool {
        let mut released = false;
        for db in 0..self.keyspace.databases() {
            let table = &mut self.locked.at(partition).dbs[usize::from(db)].table;
            let before = table.bytes() as i64;
            released |= table.release_empty();
            self.scratch.counters.bytes_delta += table.bytes() as i64 - before;
        }
        released
    }

    /// Removes a candidate in a held partition, unless it was used, changed or removed since it was
    /// sampled. Returns whether it was removed.
    pub(crate) fn evict(&mut self, candidate: &Candidate) -> bool {
        let key = Key { bytes: &candidate.key, hash: candidate.hash };
        let db = candidate.db;
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let unchanged = table.get(table.local(key.hash.0), key.bytes).is_some_and(|entry| {
            entry.access() == candidate.access && entry.expire_at() == candidate.expire_at
        });
        if !unchanged {
            return false;
        }
        let Some(removed) = self.remove(db, key) else { return false };
        self.scratch.discard(removed.object);
        self.changed(key, Change::Delete { db, key: key.bytes });
        self.was_by_server();
        self.notify(EventClass::EVICTED, "evicted", db, key);
        self.scratch.counters.evicted += 1;
        true
    }
}
