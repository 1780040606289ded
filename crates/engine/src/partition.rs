//! A partition: the keys whose hash begins with its number, in every database.
//!
//! **Architecture invariant:** plain single-threaded code. The owner of a `&mut Partition` holds
//! its lock; nothing here blocks, and nothing knows of threads.

use crate::expiry::Expires;
use crate::object::Object;
use crate::table::Table;
use crate::table::prefetch::RootPtr;
use crate::wait::Awaited;
use crate::watch::Watched;
use ladon_record::{KeyHash, Lsn};
use std::mem::offset_of;

/// Top bits of a key's hash that choose its partition. Fewer under Miri, which would need minutes
/// to create a keyspace for each case.
pub(crate) const PARTITION_BITS: u32 = if cfg!(miri) { 6 } else { 9 };
/// Number of partitions; enough that 16 threads with short locks rarely meet.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// Which partition a key lives in.
#[inline]
pub fn partition_of(hash: KeyHash) -> usize {
    (hash.0 >> (64 - PARTITION_BITS)) as usize
}

/// One database's part of a partition. The first cache line holds what most commands need on their
/// way to the bucket and afterwards.
#[repr(C, align(64))]
pub(crate) struct Database {
    pub(crate) watched: Watched,
    pub(crate) awaited: Awaited,
    /// Bytes that boxed objects own.
    pub(crate) object_bytes: usize,
    pub(crate) table: Table,
    pub(crate) expires: Expires,
    /// Keys whose values have expiring elements, ordered by the first element that expires.
    pub(crate) element_expires: Expires,
}

const _: () = assert!(
    offset_of!(Database, table) + Table::HOT_BYTES <= 64,
    "what is always needed spills over the line"
);

/// The part that every command needs shares a cache line with the lock.
#[repr(C)]
pub(crate) struct Partition {
    pub(crate) dbs: Box<[Database]>,
    changed: Changed,
}

const _: () = assert!(
    size_of::<usize>() + offset_of!(Partition, changed) + offset_of!(Changed, by_hash) <= 64,
    "what every change needs spills over the lock's line"
);

/// A value's share of a database's accounts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weight {
    pub(crate) object_bytes: usize,
    pub(crate) next_expiry: u64,
}

impl Weight {
    #[inline]
    pub(crate) fn of(object: &Object) -> Weight {
        Weight { object_bytes: object.bytes(), next_expiry: object.next_expiry() }
    }
}

impl Database {
    /// Changes the account of a value from one weight to another. Returns the change of memory
    /// outside of the table.
    #[must_use]
    #[inline]
    pub(crate) fn reweigh(&mut self, hash: KeyHash, old: Weight, new: Weight) -> i64 {
        self.object_bytes = self.object_bytes + new.object_bytes - old.object_bytes;
        new.object_bytes as i64 - old.object_bytes as i64
            + self.element_expires.change(hash.0, old.next_expiry, new.next_expiry)
    }
}

impl Database {
    /// Bytes that its keys, values and indexes take, as accounted.
    #[cfg(debug_assertions)]
    pub(crate) fn accounted_bytes(&self) -> usize {
        let indexes = self.expires.bytes() + self.element_expires.bytes();
        self.table.bytes() + indexes + self.object_bytes
    }

    /// When the first of its keys or elements expires; `u64::MAX` if none does.
    pub(crate) fn next_due(&self) -> u64 {
        let first = |expires: &Expires| expires.first().map_or(u64::MAX, |(at, _)| at);
        first(&self.expires).min(first(&self.element_expires))
    }
}

impl Partition {
    /// When the first key or element in any of its databases expires; `u64::MAX` if none does.
    pub(crate) fn next_due(&self) -> u64 {
        self.dbs.iter().map(Database::next_due).min().unwrap_or(u64::MAX)
    }

    /// Creates a partition with one database for each location in which to publish its table's
    /// directory.
    pub(crate) fn new(shown: impl Iterator<Item = RootPtr>) -> Partition {
        let dbs = shown.map(|shown| Database {
            table: Table::shown_at(PARTITION_BITS, shown),
            expires: Expires::default(),
            element_expires: Expires::default(),
            watched: Watched::default(),
            awaited: Awaited::default(),
            object_bytes: 0,
        });
        Partition { dbs: dbs.collect(), changed: Changed::default() }
    }

    /// Offset of the place that keeps when this key last changed.
    #[inline]
    pub(crate) fn changed_offset(hash: KeyHash) -> usize {
        offset_of!(Partition, changed)
            + offset_of!(Changed, by_hash)
            + Changed::slot(hash) * size_of::<Lsn>()
    }

    /// The LSN that a reply showing this key's value (or its absence) depends on.
    #[inline]
    pub(crate) fn dependency(&self, hash: KeyHash) -> Lsn {
        self.changed.by_hash[Changed::slot(hash)].max(self.changed.all)
    }

    /// The LSN that a reply about the partition as a whole depends on.
    pub(crate) fn dependency_of_all(&self) -> Lsn {
        self.changed.latest
    }

    /// Records that the record at `lsn` changed the key.
    #[inline]
    pub(crate) fn mark_changed(&mut self, hash: KeyHash, lsn: Lsn) {
        self.changed.debug_assert_in_order(lsn);
        self.changed.by_hash[Changed::slot(hash)] = lsn;
        self.changed.latest = lsn;
    }

    /// Records that the record at `lsn` may have changed every key.
    pub(crate) fn mark_all_changed(&mut self, lsn: Lsn) {
        self.changed.debug_assert_in_order(lsn);
        self.changed.all = lsn;
        self.changed.latest = lsn;
    }
}

/// When keys last changed, so that a read waits at the gate for its own key only.
///
/// A fixed number of slots by hash instead of an exact map: it needs no memory per key and one
/// store per change. Two keys that share a slot (one in 16 within a partition) can make a read wait
/// for the other's change, but never let it leave too early.
#[repr(C)]
struct Changed {
    all: Lsn,
    latest: Lsn,
    by_hash: [Lsn; Changed::SLOTS],
}

impl Changed {
    const SLOTS: usize = 16;

    #[inline]
    fn slot(hash: KeyHash) -> usize {
        hash.0 as usize % Self::SLOTS
    }

    /// Changes are logged under the partition's lock, so the log has them in the data's order.
    #[inline]
    fn debug_assert_in_order(&self, lsn: Lsn) {
        debug_assert!(self.latest <= lsn, "a change at {lsn} after one at {}", self.latest);
    }
}

impl Default for Changed {
    fn default() -> Self {
        Changed { by_hash: [Lsn::ZERO; Self::SLOTS], all: Lsn::ZERO, latest: Lsn::ZERO }
    }
}
