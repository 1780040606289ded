//! Memory compaction: moves entries out of sparse slabs, so that their memory can be returned to
//! the system.
//!
//! A pass visits the partitions, a slice at a time. Any thread with spare time may run the next
//! slice. A slice takes one partition's lock at a time and never waits for one. While slabs are
//! full enough, nothing is moved, and a pass only reads each table's own count of sparse slabs.
//!
//! **Not moved:** the elements of collections on tables or trees, chunks of long lists, and
//! anything longer than 32 KiB.

use crate::compaction::State;
use crate::keyspace::Keyspace;
use crate::partition::PARTITIONS;
use crate::pieces::{Pieces, touch_ahead};
use crate::table::arena::PAGES;
use crate::table::compact::Work;
use std::sync::atomic::Ordering::Relaxed;

/// Free memory within slabs up to this is ignored: each size has a slab in use, and each partition
/// a page.
const SLACK_BYTES_MIN: usize = 8 << 20;
/// A saving of fewer bytes of slabs than this is not worth moving data,
const EXCESS_BYTES_MIN: usize = 1 << 20;
/// nor is a saving of less than this fraction of the memory in use.
const EXCESS_SHARE: usize = 32;
/// After a pass that moved less than this fraction of the memory in use, the next pass waits.
const MOVED_SHARE: usize = 256;
/// Work per lock: about 25 microseconds.
const WORK_A_LOCK: usize = 500;
/// Work per slice: about a tenth of a millisecond.
const WORK_A_SLICE: usize = 2000;
/// Interval between slices, so that a tenth of one thread's time is used.
const SLICE_EVERY_NS: u64 = 1_000_000;
/// Interval between checks of all tables, while not all are compacted.
const LOOK_EVERY_MS: u64 = 1000;
/// Cost of taking a lock and checking a table.
const TABLE_COST: usize = 2;

/// Returns the memory of free slabs to the system: of all, or of those unused since the last call.
pub fn purge_memory(all: bool) {
    Pieces::blocks().purge(all);
    PAGES.purge(all);
}

/// Gives memory its pages before other threads need them, on the calling thread, for ever. Returns
/// at once if another thread of this process does so already.
pub fn touch_memory_ahead() {
    touch_ahead(&[Pieces::blocks(), &PAGES]);
}

impl Keyspace {
    /// Free bytes within slabs, as of a moment ago and above 8 MiB, because partly used slabs of
    /// each size are not worth counting. Zero if data may not be moved.
    #[inline]
    pub fn slack_bytes(&self) -> u64 {
        self.compaction.slack_bytes.load(Relaxed)
    }

    /// Bytes of free slabs whose memory was not returned to the system.
    pub fn idle_slab_bytes(&self) -> u64 {
        (Pieces::blocks().dirty_bytes() + PAGES.dirty_bytes()) as u64
    }

    /// Allows moving data from now on. Otherwise nothing moves, so that the same requests always do
    /// the same: how full slabs are depends on the whole process.
    pub fn allow_compaction(&self) {
        self.compaction.is_allowed.store(true, Relaxed);
    }

    /// Begins a pass if that is allowed, and if there is something to gain or the next check is
    /// due.
    pub fn begin_compaction(&self, now_ms: u64) {
        if !self.compaction.is_allowed.load(Relaxed) {
            return;
        }
        let Some(mut state) = self.compaction.state.try_lock() else { return };
        let totals = Pieces::totals();
        let seen = (self.used_bytes(), totals.free);
        let slack = (seen.1 + state.small_free).saturating_sub(SLACK_BYTES_MIN) as u64;
        self.compaction.slack_bytes.store(slack, Relaxed);
        if self.is_compacting() || state.seen == seen {
            return;
        }
        state.begin();
        if state.everything || now_ms.abs_diff(state.looked_ms) >= LOOK_EVERY_MS {
            (state.seen, state.looked_ms) = (seen, now_ms);
            self.compaction.is_running.store(true, Relaxed);
        }
    }

    /// Whether [`Keyspace::compact`] has something to do.
    #[inline]
    pub fn is_compacting(&self) -> bool {
        self.compaction.is_running.load(Relaxed)
    }

    /// Continues compaction for about a tenth of a millisecond if a slice is due and no other
    /// thread is running one. The caller may hold no locks.
    pub fn compact(&self, now_ns: u64) {
        let next_ns = &self.compaction.next_ns;
        if now_ns < next_ns.load(Relaxed) {
            return;
        }
        let Some(mut state) = self.compaction.state.try_lock() else { return };
        next_ns.store(now_ns + SLICE_EVERY_NS, Relaxed);
        let mut left = WORK_A_SLICE;
        while left > 0 && self.is_compacting() {
            let mut work = Work { budget: left.min(WORK_A_LOCK), moved_bytes: 0 };
            let before = work.budget;
            state.go_on(self, &mut work);
            left -= before - work.budget;
            state.moved_in_pass += work.moved_bytes;
            if state.partition == PARTITIONS && !state.is_another_worthwhile() {
                self.compaction.is_running.store(false, Relaxed);
            }
        }
    }
}

impl State {
    fn begin(&mut self) {
        let totals = Pieces::totals();
        let is_excessive = totals.excess > EXCESS_BYTES_MIN.max(totals.live / EXCESS_SHARE);
        let is_futile = totals.free.abs_diff(self.futile_at) < self.futile_at / 8;
        self.everything = is_excessive && !is_futile;
        (self.partition, self.db, self.at, self.moved_in_pass) = (0, 0, 0, 0);
    }

    /// Called at the end of a pass. Returns whether the next one has begun.
    fn is_another_worthwhile(&mut self) -> bool {
        self.small_free = std::mem::take(&mut self.small_free_so_far);
        let (was_everything, moved) = (self.everything, self.moved_in_pass);
        let totals = Pieces::totals();
        let is_little = moved <= totals.live / MOVED_SHARE;
        self.futile_at = if was_everything && is_little { totals.free } else { 0 };
        self.begin();
        self.everything && !is_little
    }

    /// Compacts one table under its lock, as far as `work` allows.
    fn go_on(&mut self, keyspace: &Keyspace, work: &mut Work) {
        work.spend(TABLE_COST);
        let Some(mut partition) = keyspace.try_lock(self.partition) else {
            // Another thread is changing this partition; the next pass visits it again.
            return self.next_partition();
        };
        while let Some(database) = partition.dbs.get_mut(self.db) {
            let table = &mut database.table;
            if table.len() != 0
                && (self.everything || table.is_sparse())
                && let Some(next) = table.compact(self.at, work)
            {
                self.at = next;
                return;
            }
            self.small_free_so_far += table.free_bytes();
            (self.db, self.at) = (self.db + 1, 0);
            work.spend(TABLE_COST);
            if work.budget == 0 && self.db < partition.dbs.len() {
                return;
            }
        }
        self.next_partition();
    }

    fn next_partition(&mut self) {
        (self.partition, self.db, self.at) = (self.partition + 1, 0, 0);
    }
}
