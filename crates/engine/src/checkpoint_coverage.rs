//! What a checkpoint's blocks cover: which key hashes, up to which LSN.

use crate::partition::{PARTITIONS, partition_of};
use crate::save::SavedBlock;
use ladon_record::{DbId, KeyHash, Lsn};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ranges of one partition, which do not overlap: (database, last hash) to (first hash, LSN).
type Ranges = BTreeMap<(DbId, u64), (u64, Lsn)>;

/// All of a checkpoint's blocks.
pub(crate) struct CheckpointCoverage {
    partitions: Vec<RwLock<Ranges>>,
    lsn_max: AtomicU64,
}

impl CheckpointCoverage {
    pub(crate) fn new() -> CheckpointCoverage {
        let partitions = (0..PARTITIONS).map(|_| RwLock::default()).collect();
        CheckpointCoverage { partitions, lsn_max: AtomicU64::new(0) }
    }

    /// Adds a block of keys.
    pub(crate) fn add(&self, block: &SavedBlock) {
        let partition = partition_of(KeyHash(block.hash_first));
        let range = (block.hash_first, block.lsn);
        self.partitions[partition].write().insert((block.db, block.hash_last), range);
        self.lsn_max.fetch_max(block.lsn.0, Relaxed);
    }

    /// Whether the key's block contains the effect of the record at `lsn`.
    #[inline]
    pub(crate) fn holds(&self, db: DbId, hash: KeyHash, lsn: Lsn) -> bool {
        if lsn.0 > self.lsn_max.load(Relaxed) {
            return false;
        }
        let ranges = self.partitions[partition_of(hash)].read();
        let range = ranges.range((db, hash.0)..).next();
        range.is_some_and(|(&(of, _), &(first, held))| of == db && first <= hash.0 && held >= lsn)
    }
}
