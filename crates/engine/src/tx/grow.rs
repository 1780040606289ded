//! A transaction that locks more partitions as it goes on.
//!
//! Two-phase locking: everything is held to the end, so growing transactions are serializable. See
//! `locked.rs` for why none of them waits for another for ever.

use super::Tx;
use crate::keyspace::partition_of;
use crate::locked::{Grown, PartitionSet};
use ladon_model::KeyHash;

impl Tx<'_> {
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
        self.grow_by(PartitionSet::of(hashes))
    }

    /// Locks all partitions, by the same rules.
    pub fn grow_to_all(&mut self) -> Grown {
        self.grow_by(PartitionSet::ALL)
    }

    #[cold]
    fn grow_by(&mut self, wanted: PartitionSet) -> Grown {
        #[cfg(debug_assertions)]
        let audit = &mut self.audit;
        self.locked.grow(self.keyspace, wanted, |partition| {
            #[cfg(debug_assertions)]
            audit.is_grown_by(partition);
            let _ = partition;
        })
    }
}
