//! Moving data together in memory, so that slabs with a few entries each become a few full ones and
//! the rest goes back to the system.
//!
//! A pass goes over the partitions, a slice at a time; each thread that has a moment may make the
//! next slice. It takes one partition's lock at a time, never waits for one, and moves nothing
//! while slabs are full enough: then it only looks at each table's own count of sparse slabs.
//!
//! **Not moved:** the elements of collections on tables or trees, chunks of long lists, and what is
//! longer than 32 KiB.

use crate::keyspace::{Keyspace, PARTITIONS};
use crate::pieces::Pieces;
use crate::table::LocalHash;
use crate::table::arena::PAGES;
use crate::table::compact::Work;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Up to this, what is free within slabs is not counted: slabs that each size has begun, and a page
/// for each partition.
const SLACK_BYTES_MIN: usize = 8 << 20;
/// Slabs that could be saved are left alone up to this, ...
const EXCESS_BYTES_MIN: usize = 1 << 20;
/// ... and up to this part of what is in use.
const EXCESS_SHARE: usize = 32;
/// A pass that moved less than this part of what is in use is not worth another soon.
const MOVED_SHARE: usize = 256;
/// What is done under one lock: about 25 microseconds.
const WORK_A_LOCK: usize = 500;
/// What is done in a slice: about a tenth of a millisecond.
const WORK_A_SLICE: usize = 2000;
/// From one slice to the next: a tenth of one thread's time is spent.
const SLICE_EVERY_NS: u64 = 1_000_000;
/// From one look at all tables to the next, where not all are walked through.
const LOOK_EVERY_MS: u64 = 1000;
/// What taking a lock and looking at a table costs.
const TABLE_COST: usize = 2;

/// Gives the memory of free slabs back to the system: of all, or of those that nobody has wanted
/// since the last call.
pub fn purge_memory(all: bool) {
    Pieces::blocks().purge(all);
    PAGES.purge(all);
}

/// Where moving data together stands.
#[derive(Default)]
pub(crate) struct Compaction {
    state: Mutex<State>,
    is_allowed: AtomicBool,
    is_running: AtomicBool,
    /// Monotonic time of the next slice.
    next_ns: AtomicU64,
    slack_bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Bytes that were free within tables' slabs of small entries in the last pass, and in this one
    /// so far.
    small_free: usize,
    small_free_so_far: usize,
    partition: usize,
    db: usize,
    at: LocalHash,
    /// Whether all tables are walked through, not only those with sparse slabs of their own.
    everything: bool,
    moved_in_pass: usize,
    /// What was free when a pass had moved hardly anything: until that has changed by much, another
    /// would move as little.
    futile_at: usize,
    /// What memory looked like when the last pass began, and when that was.
    seen: (u64, usize),
    looked_ms: u64,
}

impl Keyspace {
    /// Bytes within slabs that no data takes, as of a moment ago and above 8 MiB: slabs that
    /// each size has begun are not worth counting. None where data may not be moved.
    #[inline]
    pub fn slack_bytes(&self) -> u64 {
        self.compaction.slack_bytes.load(Relaxed)
    }

    /// Bytes of free slabs that have not gone back to the system.
    pub fn idle_slab_bytes(&self) -> u64 {
        (Pieces::blocks().dirty_bytes() + PAGES.dirty_bytes()) as u64
    }

    /// Data may be moved from now on. Otherwise nothing is, so that the same requests do the same
    /// again: how full slabs are depends on all of the process.
    pub fn allow_compaction(&self) {
        self.compaction.is_allowed.store(true, Relaxed);
    }

    /// Begins to move data together if that is allowed, and there is something to gain or it is time
    /// to look for that.
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

    /// Goes on moving data together for about a tenth of a millisecond if the last slice is long
    /// enough ago, unless another thread is at it. No locks may be held.
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

    /// At the end of a pass: whether the next one has begun.
    fn is_another_worthwhile(&mut self) -> bool {
        self.small_free = std::mem::take(&mut self.small_free_so_far);
        let (was_everything, moved) = (self.everything, self.moved_in_pass);
        let totals = Pieces::totals();
        let is_little = moved <= totals.live / MOVED_SHARE;
        self.futile_at = if was_everything && is_little { totals.free } else { 0 };
        self.begin();
        self.everything && !is_little
    }

    /// Does one table's part under its lock, or as much of it as `work` allows.
    fn go_on(&mut self, keyspace: &Keyspace, work: &mut Work) {
        work.spend(TABLE_COST);
        let Some(mut partition) = keyspace.try_lock(self.partition) else {
            // Whoever is at it goes on changing it; the next pass will come past.
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
