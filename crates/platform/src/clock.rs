//! Time, as a trait.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock and monotonic time.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch; may step when the machine's clock is set.
    fn unix_ms(&self) -> u64 {
        self.unix_us() / 1000
    }

    /// Microseconds since the Unix epoch; may step when the machine's clock is set.
    fn unix_us(&self) -> u64;

    /// Nanoseconds since some fixed moment; never steps back.
    fn monotonic_ns(&self) -> u64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_us(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
    }

    fn monotonic_ns(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}
