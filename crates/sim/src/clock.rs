//! Time that moves when the simulator says so. Who operates a machine may set its clock back, when
//! no node runs.

use ladon_platform::Clock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Starts at some moment of the year 2023.
pub(crate) struct SimClock {
    us: AtomicU64,
    /// How far it advances with every read of the monotonic clock.
    step_us: AtomicU64,
    /// How much the clock was set back in all.
    back_us: AtomicU64,
}

const START_US: u64 = 1_700_000_000_000_000;

impl SimClock {
    pub(crate) fn new() -> SimClock {
        SimClock {
            us: AtomicU64::new(START_US),
            step_us: AtomicU64::new(1),
            back_us: AtomicU64::new(0),
        }
    }

    pub(crate) fn advance_us(&self, by: u64) {
        self.us.fetch_add(by, Relaxed);
    }

    /// Has everything that looks at the clock take longer, or no longer.
    pub(crate) fn set_step_us(&self, us: u64) {
        self.step_us.store(us, Relaxed);
    }

    pub(crate) fn set_back_us(&self, by: u64) {
        self.back_us.fetch_add(by, Relaxed);
    }
}

impl Clock for SimClock {
    fn unix_us(&self) -> u64 {
        self.us.load(Relaxed) - self.back_us.load(Relaxed)
    }

    /// Advances with every read, by a microsecond as a rule, so that loops bounded in time end.
    fn monotonic_ns(&self) -> u64 {
        (self.us.fetch_add(self.step_us.load(Relaxed), Relaxed) - START_US) * 1000
    }
}
