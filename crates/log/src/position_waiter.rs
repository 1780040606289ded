//! Threads that wait for the log's positions to advance.
//!
//! An IO thread that holds back replies stores the lowest LSN that it waits for in its own waiter,
//! and is woken once when that LSN is reached. A thread that advances a position checks every
//! waiter, which is one load each. No thread is woken for a position that it does not wait for.
//!
//! **Invariant:** the waiter stores what it awaits, then (sequentially consistent fence) reads the
//! position; the writer stores the position, then (fence) reads what is awaited. At least one of
//! them sees the other, so no wake-up is lost.

use crate::sync_primitives::{AtomicU64, AtomicUsize, CachePadded, Mutex, Ordering, fence};
use ladon_record::Lsn;
use std::sync::Arc;

/// Value of a slot that awaits nothing.
const NOTHING: u64 = u64::MAX;

/// The log's positions; each only grows, but for a follower's log that is cut.
pub(crate) struct Positions {
    pub(crate) written: CachePadded<AtomicU64>,
    pub(crate) durable: CachePadded<AtomicU64>,
    /// On most of the disks of the group that the log's node is a member of; zero without one.
    pub(crate) committed: CachePadded<AtomicU64>,
    /// Counts the changes of what the other members have.
    pub(crate) others_news: CachePadded<AtomicU64>,
    /// The highest position that somebody waits for others to have.
    pub(crate) wanted: CachePadded<AtomicU64>,
}

impl Positions {
    pub(crate) fn new(at: Lsn) -> Positions {
        Positions {
            written: CachePadded(AtomicU64::new(at.0)),
            durable: CachePadded(AtomicU64::new(at.0)),
            committed: CachePadded(AtomicU64::new(0)),
            others_news: CachePadded(AtomicU64::new(0)),
            wanted: CachePadded(AtomicU64::new(0)),
        }
    }

    /// The caller holds the log's io lock.
    pub(crate) fn advance_written(&self, to: u64) {
        let (written, durable) = (&self.written.0, &self.durable.0);
        let before = written.load(Ordering::Relaxed);
        assert!(before <= to, "written goes back from {before} to {to}");
        debug_assert!(durable.load(Ordering::Relaxed) <= before, "durable before it is written");
        written.store(to, Ordering::Release);
    }

    /// A follower's log ends at `to` now. The caller holds both locks.
    pub(crate) fn cut(&self, to: u64) {
        self.written.0.fetch_min(to, Ordering::SeqCst);
        self.durable.0.fetch_min(to, Ordering::SeqCst);
    }

    /// The caller holds the log's sync lock.
    pub(crate) fn advance_durable(&self, to: u64) {
        let (written, durable) = (&self.written.0, &self.durable.0);
        let before = durable.load(Ordering::Relaxed);
        assert!(before <= to, "durable goes back from {before} to {to}");
        let written = written.load(Ordering::Acquire);
        assert!(to <= written, "durable up to {to}, but written up to {written} only");
        durable.store(to, Ordering::Release);
    }
}

/// One thread's slot, from [`crate::Log::add_waiter`].
pub struct PositionWaiter {
    awaits_written: AtomicU64,
    awaits_durable: AtomicU64,
    awaits_committed: AtomicU64,
    awaits_others: AtomicU64,
    awaits_wanted: AtomicU64,
    positions: Arc<Positions>,
    awaited: Arc<AtomicUsize>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl PositionWaiter {
    /// Requests one wake-up when everything up to `lsn` is handed to the operating system, and
    /// replaces an earlier request. Returns true, and requests nothing, if that is already so.
    pub fn await_written(&self, lsn: Lsn) -> bool {
        self.register(&self.awaits_written, lsn, &self.positions.written.0)
    }

    /// Requests one wake-up when everything up to `lsn` is on the disk, and replaces an earlier
    /// request. Returns true if that is already so. The caller must also request the sync itself:
    /// see [`crate::Log::want_durable`].
    pub fn await_durable(&self, lsn: Lsn) -> bool {
        self.register(&self.awaits_durable, lsn, &self.positions.durable.0)
    }

    /// Requests one wake-up when the group has committed everything up to `lsn`, and replaces an
    /// earlier request. Returns true if that is already so. The caller must also ask for it: see
    /// [`crate::Log::want_committed`].
    pub fn await_committed(&self, lsn: Lsn) -> bool {
        self.register(&self.awaits_committed, lsn, &self.positions.committed.0)
    }

    /// Requests one wake-up when what the other members have changes, after `seen` changes (see
    /// [`crate::Log::others_news`]), and replaces an earlier request. Returns true if it has changed
    /// since.
    pub fn await_others(&self, seen: u64) -> bool {
        self.register(&self.awaits_others, Lsn(seen + 1), &self.positions.others_news.0)
    }

    /// Requests one wake-up when somebody waits for others to have everything up to `lsn` or more
    /// ([`crate::Log::want_committed`]), and replaces an earlier request. Returns true if that is
    /// already so.
    pub fn await_wanted(&self, lsn: Lsn) -> bool {
        self.register(&self.awaits_wanted, lsn, &self.positions.wanted.0)
    }

    fn register(&self, awaits: &AtomicU64, lsn: Lsn, position: &AtomicU64) -> bool {
        if position.load(Ordering::Acquire) < lsn.0 {
            self.await_instead(awaits, lsn.0);
            fence(Ordering::SeqCst);
            if position.load(Ordering::Acquire) < lsn.0 {
                return false;
            }
        }
        self.await_instead(awaits, NOTHING);
        true
    }

    /// Replaces the awaited LSN, and updates the count of awaited positions.
    fn await_instead(&self, awaits: &AtomicU64, lsn: u64) {
        if awaits.load(Ordering::Relaxed) == lsn {
            return;
        }
        // Count too early rather than too late: a count that is too high costs only a check.
        if lsn != NOTHING {
            self.awaited.fetch_add(1, Ordering::Relaxed);
        }
        if awaits.swap(lsn, Ordering::Relaxed) != NOTHING {
            self.count_one_less();
        }
    }

    /// A count that is too low would hide waiters.
    fn count_one_less(&self) {
        let before = self.awaited.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "more waits for the log end than began");
    }

    /// Returns true for exactly one of the threads that find the awaited position reached.
    fn take_if_reached(&self, awaits: &AtomicU64, position: u64) -> bool {
        let lsn = awaits.load(Ordering::Relaxed);
        let taken = lsn <= position
            && awaits.compare_exchange(lsn, NOTHING, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if taken {
            self.count_one_less();
        }
        taken
    }
}

/// All waiters of a log.
pub(crate) struct PositionWaiters {
    all: Mutex<Vec<Arc<PositionWaiter>>>,
    /// Number of awaited positions, of all waiters together.
    awaited: Arc<AtomicUsize>,
}

impl PositionWaiters {
    pub(crate) fn new() -> PositionWaiters {
        PositionWaiters { all: Mutex::new(Vec::new()), awaited: Arc::new(AtomicUsize::new(0)) }
    }

    /// Whether any position is awaited. Callers order the read with a fence after publishing: then
    /// either they see the waiter here, or the waiter sees what they published.
    #[inline]
    pub(crate) fn is_anything_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn add(
        &self,
        positions: &Arc<Positions>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Arc<PositionWaiter> {
        let waiter = Arc::new(PositionWaiter {
            awaits_written: AtomicU64::new(NOTHING),
            awaits_durable: AtomicU64::new(NOTHING),
            awaits_committed: AtomicU64::new(NOTHING),
            awaits_others: AtomicU64::new(NOTHING),
            awaits_wanted: AtomicU64::new(NOTHING),
            positions: positions.clone(),
            awaited: self.awaited.clone(),
            wake,
        });
        self.all.lock().push(waiter.clone());
        waiter
    }

    pub(crate) fn remove(&self, waiter: &Arc<PositionWaiter>) {
        waiter.await_instead(&waiter.awaits_written, NOTHING);
        waiter.await_instead(&waiter.awaits_durable, NOTHING);
        waiter.await_instead(&waiter.awaits_committed, NOTHING);
        waiter.await_instead(&waiter.awaits_others, NOTHING);
        waiter.await_instead(&waiter.awaits_wanted, NOTHING);
        self.all.lock().retain(|other| !Arc::ptr_eq(other, waiter));
    }

    pub(crate) fn written_advanced(&self, position: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|waiter| waiter.take_if_reached(&waiter.awaits_written, position));
    }

    pub(crate) fn durable_advanced(&self, position: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|waiter| waiter.take_if_reached(&waiter.awaits_durable, position));
    }

    pub(crate) fn committed_advanced(&self, position: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|waiter| waiter.take_if_reached(&waiter.awaits_committed, position));
    }

    pub(crate) fn others_changed(&self, news: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|waiter| waiter.take_if_reached(&waiter.awaits_others, news));
    }

    pub(crate) fn wanted_advanced(&self, position: u64) {
        fence(Ordering::SeqCst);
        self.wake_where(|waiter| waiter.take_if_reached(&waiter.awaits_wanted, position));
    }

    /// Wakes every waiter, because the state changed.
    pub(crate) fn state_changed(&self) {
        self.wake_where(|_| true);
    }

    fn wake_where(&self, condition: impl Fn(&PositionWaiter) -> bool) {
        for waiter in self.all.lock().iter() {
            if condition(waiter) {
                (waiter.wake)();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn positions_grow() {
        let positions = Positions::new(Lsn(5));
        positions.advance_written(9);
        positions.advance_durable(7);
        positions.advance_durable(9);
        positions.advance_written(9);
    }

    #[test]
    #[should_panic = "durable up to 6, but written up to 5 only"]
    fn nothing_is_durable_before_it_is_written() {
        Positions::new(Lsn(5)).advance_durable(6);
    }

    #[test]
    #[should_panic = "written goes back from 5 to 4"]
    fn written_does_not_go_back() {
        Positions::new(Lsn(5)).advance_written(4);
    }

    #[test]
    #[should_panic = "durable goes back from 5 to 4"]
    fn durable_does_not_go_back() {
        Positions::new(Lsn(5)).advance_durable(4);
    }
}
