//! A partition's lock, which has a place in the lock order.

use crate::partition::Partition;
use crate::sync_primitives::{Mutex, MutexGuard};
use ladon_platform::lock_order::{self, Held, Place};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// How often a thread that waits checks whether it should give up: short beside any threshold.
const BUSY_CHECK_EVERY: Duration = Duration::from_millis(5);

/// Two cache lines, because processors fetch lines in pairs.
#[repr(align(128))]
pub(crate) struct PartitionLock(Mutex<Partition>);

/// A locked partition.
pub(crate) struct PartitionGuard<'a> {
    partition: MutexGuard<'a, Partition>,
    _held: Held,
}

impl PartitionLock {
    pub(crate) fn new(partition: Partition) -> PartitionLock {
        PartitionLock(Mutex::new(partition))
    }

    /// Waits for the lock of the partition with this index.
    #[inline(always)]
    pub(crate) fn lock(&self, index: usize) -> PartitionGuard<'_> {
        let place = Place::partition(index);
        lock_order::check(place);
        PartitionGuard { partition: self.0.lock(), _held: lock_order::taken(place) }
    }

    /// `None` if another thread holds the lock. This does not wait, so it may be out of order.
    #[inline(always)]
    pub(crate) fn try_lock(&self, index: usize) -> Option<PartitionGuard<'_>> {
        let partition = self.0.try_lock()?;
        Some(PartitionGuard { partition, _held: lock_order::taken(Place::partition(index)) })
    }

    /// As `lock`, but gives up once `is_busy` says so; `None` then.
    pub(crate) fn lock_unless_busy(
        &self,
        index: usize,
        is_busy: &impl Fn(usize) -> bool,
    ) -> Option<PartitionGuard<'_>> {
        if cfg!(loom) {
            // It has no time, so that nobody gives up.
            return Some(self.lock(index));
        }
        let place = Place::partition(index);
        lock_order::check(place);
        let mut partition = self.0.try_lock();
        while partition.is_none() && !is_busy(index) {
            partition = self.0.try_lock_for(BUSY_CHECK_EVERY);
        }
        Some(PartitionGuard { partition: partition?, _held: lock_order::taken(place) })
    }
}

impl Deref for PartitionGuard<'_> {
    type Target = Partition;

    #[inline(always)]
    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl DerefMut for PartitionGuard<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Partition {
        &mut self.partition
    }
}
