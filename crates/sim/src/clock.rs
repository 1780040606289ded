//! Time that moves when the simulator says so.

use ladon_platform::Clock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Starts at some moment of the year 2023.
pub(crate) struct SimClock(AtomicU64);

const START_US: u64 = 1_700_000_000_000_000;

impl SimClock {
    pub(crate) fn new() -> SimClock {
        SimClock(AtomicU64::new(START_US))
    }

    pub(crate) fn advance_us(&self, by: u64) {
        self.0.fetch_add(by, Relaxed);
    }
}

impl Clock for SimClock {
    fn unix_us(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Advances by a microsecond with every read, so that loops bounded in time end.
    fn monotonic_ns(&self) -> u64 {
        (self.0.fetch_add(1, Relaxed) - START_US) * 1000
    }
}
