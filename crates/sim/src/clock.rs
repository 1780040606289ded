//! Time that moves when the simulator says so. Who operates a machine may set its clock back, when
//! no node runs.

use ladon_platform::Clock;
use openraft_rt_sim::SimInstant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Starts at some moment of the year 2023.
pub(crate) struct SimClock {
    us: AtomicU64,
    /// How far it advances with every read of the monotonic clock.
    step_us: AtomicU64,
    /// How much the clock was set back in all.
    back_us: AtomicU64,
    /// When the runtime of the node's group began, if it has one.
    runtime_began_us: AtomicU64,
    /// The runtime runs, and lets others of the node go on meanwhile.
    is_outside: AtomicBool,
}

const START_US: u64 = 1_700_000_000_000_000;

impl SimClock {
    pub(crate) fn new() -> SimClock {
        SimClock {
            us: AtomicU64::new(START_US),
            step_us: AtomicU64::new(1),
            back_us: AtomicU64::new(0),
            runtime_began_us: AtomicU64::new(0),
            is_outside: AtomicBool::new(false),
        }
    }

    /// The runtime of a node's group begins now: while that runs, its time is the time.
    pub(crate) fn begin_runtime(&self) {
        self.runtime_began_us.store(self.us.load(Relaxed), Relaxed);
    }

    /// How long the runtime should have run.
    pub(crate) fn runtime_us(&self) -> u64 {
        self.us.load(Relaxed) - self.runtime_began_us.load(Relaxed)
    }

    /// The runtime has come so far.
    pub(crate) fn runtime_is_at(&self, us: u64) {
        self.us.fetch_max(self.runtime_began_us.load(Relaxed) + us, Relaxed);
    }

    /// Others of the node go on while the runtime runs, or do not any more.
    pub(crate) fn set_outside(&self, is_outside: bool) {
        self.is_outside.store(is_outside, Relaxed);
    }

    /// The time of the runtime that runs. It may be behind: it comes to what happened meanwhile one
    /// after the other.
    fn us_of_runtime(&self) -> Option<u64> {
        let now = SimInstant::try_now().filter(|_| !self.is_outside.load(Relaxed))?;
        let us = now.elapsed_since_start().as_micros() as u64;
        Some(self.runtime_began_us.load(Relaxed) + us)
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
        if let Some(us) = self.us_of_runtime() {
            return (us - START_US) * 1000;
        }
        (self.us.fetch_add(self.step_us.load(Relaxed), Relaxed) - START_US) * 1000
    }
}
