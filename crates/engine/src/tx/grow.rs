//! A transaction that locks more partitions as it goes on.
//!
//! Two-phase locking: everything is held to the end, so growing transactions are serializable. See
//! `locked.rs` for why none of them waits for another for ever.

use super::Tx;
use crate::keyspace::Locks;
use crate::locked::{Grown, Locked, PartitionSet};
use crate::partition::partition_of;
use ladon_record::{KeyHash, Lsn};

impl<'a> Tx<'a> {
    /// Whether the key's partition is locked.
    #[inline]
    pub fn holds(&self, hash: KeyHash) -> bool {
        self.locked.holds(partition_of(hash))
    }

    /// Locks the partitions of these keys too. It waits for those above all that are held. For the
    /// others it only tries, for a few microseconds: waiting would be out of order.
    pub fn grow(&mut self, hashes: &[KeyHash]) -> Grown {
        if hashes.iter().all(|&hash| self.holds(hash)) {
            return Grown::Held;
        }
        self.grow_by(PartitionSet::of(hashes), &|_| false)
    }

    /// Locks all partitions, by the same rules.
    pub fn grow_to_all(&mut self) -> Grown {
        self.grow_by(PartitionSet::ALL, &|_| false)
    }

    /// As `grow`, unless `is_busy` says, as for [`Keyspace::begin_or_busy`], that a partition
    /// should not be waited for.
    ///
    /// [`Keyspace::begin_or_busy`]: crate::Keyspace::begin_or_busy
    pub fn grow_or_busy(&mut self, hashes: &[KeyHash], is_busy: impl Fn(usize) -> bool) -> Grown {
        if hashes.iter().all(|&hash| self.holds(hash)) {
            return Grown::Held;
        }
        self.grow_by(PartitionSet::of(hashes), &is_busy)
    }

    /// As `grow_to_all`, unless a partition is busy.
    pub fn grow_to_all_or_busy(&mut self, is_busy: impl Fn(usize) -> bool) -> Grown {
        self.grow_by(PartitionSet::ALL, &is_busy)
    }

    /// The numbers of the partitions that are locked, in order.
    pub fn held_partitions(&self) -> Vec<usize> {
        self.locked.indexes()
    }

    /// Releases all locks, and begins as a new transaction with others, at the same time of day.
    /// Nothing may have changed, as after [`Tx::abort`]; and the new one is not undoable yet.
    pub fn begin_again(&mut self, locks: Locks<'_>) {
        self.release();
        let locked = self.keyspace.lock(locks);
        self.begin_with(locked);
    }

    /// As `begin_again`, and as [`Keyspace::begin_or_busy`] if a lock cannot be had in time; then
    /// this returns `false`, and the transaction holds nothing.
    ///
    /// [`Keyspace::begin_or_busy`]: crate::Keyspace::begin_or_busy
    pub fn begin_again_or_busy(
        &mut self,
        locks: Locks<'_>,
        is_busy: impl Fn(usize) -> bool,
    ) -> bool {
        self.release();
        let Some(locked) = self.keyspace.lock_unless_busy(locks, is_busy) else { return false };
        self.begin_with(locked);
        true
    }

    fn release(&mut self) {
        assert!(self.change_count() == 0 && !self.scratch.undoable, "a change would be lost");
        #[cfg(debug_assertions)]
        self.check_end();
        self.release_spaces();
        self.begin_with(Locked::Many(Vec::new()));
    }

    fn begin_with(&mut self, locked: Locked<'a>) {
        #[cfg(debug_assertions)]
        self.begin_audit(&locked);
        self.locked = locked;
        self.dependency = Lsn::ZERO;
    }

    #[cold]
    fn grow_by(&mut self, wanted: PartitionSet, is_busy: &impl Fn(usize) -> bool) -> Grown {
        #[cfg(debug_assertions)]
        let audit = &mut self.audit;
        self.locked.grow(self.keyspace, wanted, is_busy, |partition| {
            #[cfg(debug_assertions)]
            audit.is_grown_by(partition);
            let _ = partition;
        })
    }
}
