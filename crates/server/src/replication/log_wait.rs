//! Waiting for the log's positions, on a thread that may sleep.

use ladon_log::{Log, PositionWaiter};
use ladon_record::Lsn;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One thread's place among those who wait for a log.
pub(super) struct LogWait {
    log: Arc<Log>,
    waiter: Arc<PositionWaiter>,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

impl LogWait {
    pub(super) fn new(log: &Arc<Log>) -> LogWait {
        let bell = Arc::<Bell>::default();
        let ring = Arc::clone(&bell);
        let waiter = log.add_waiter(Arc::new(move || {
            *ring.has_rung.lock() = true;
            ring.rings.notify_all();
        }));
        LogWait { log: Arc::clone(log), waiter, bell }
    }

    /// Waits until everything up to `lsn` is written, or somebody waits for others to have everything
    /// up to `wanted`. Returns whether it is written.
    pub(super) fn written_or_wanted(&self, lsn: Lsn, wanted: Lsn, most: Duration) -> bool {
        // Both are to be registered.
        self.wait(|waiter| waiter.await_written(lsn) | waiter.await_wanted(wanted), most);
        self.log.written() >= lsn
    }

    /// Waits until somebody's sync has brought everything up to `lsn` to the disk. Returns whether it
    /// has.
    pub(super) fn synced(&self, lsn: Lsn, most: Duration) -> bool {
        self.wait(|waiter| waiter.await_durable(lsn), most)
    }

    /// Waits until everything up to `lsn` is on the disk, and asks for that. Returns whether it is.
    pub(super) fn durable(&self, lsn: Lsn, most: Duration) -> bool {
        self.log.want_durable(lsn);
        self.wait(|waiter| waiter.await_durable(lsn), most)
    }

    fn wait(&self, is_reached: impl Fn(&PositionWaiter) -> bool, most: Duration) -> bool {
        let deadline = Instant::now() + most;
        loop {
            *self.bell.has_rung.lock() = false;
            if is_reached(&self.waiter) {
                return true;
            }
            let mut has_rung = self.bell.has_rung.lock();
            while !*has_rung {
                if self.bell.rings.wait_until(&mut has_rung, deadline).timed_out() {
                    return is_reached(&self.waiter);
                }
            }
        }
    }
}

impl Drop for LogWait {
    fn drop(&mut self) {
        self.log.remove_waiter(&self.waiter);
    }
}
