//! Whether the IO threads still turn: what a liveness probe and systemd's watchdog ask.

use ladon_kernel::shared::Shared;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// An idle IO thread turns once a second. One that has not turned for this long is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Watches the turns of all IO threads.
pub struct Heartbeat {
    shared: Arc<Shared>,
    /// For each thread: its turns when they last differed, and when that was seen.
    seen: Mutex<Vec<(u64, u64)>>,
}

impl Heartbeat {
    /// Begins to watch.
    pub fn new(shared: Arc<Shared>) -> Heartbeat {
        let now_ns = shared.clock.monotonic_ns();
        let seen = shared.stats.iter().map(|stats| (stats.eventloop_cycles.get(), now_ns));
        let seen = Mutex::new(seen.collect());
        Heartbeat { shared, seen }
    }

    /// The first thread that is stuck, if one is, and for how long. Has to be asked more often than
    /// every [`STUCK_AFTER`], since it knows only what it has seen.
    pub fn stuck(&self) -> Option<(usize, Duration)> {
        let now_ns = self.shared.clock.monotonic_ns();
        // A script may take as long as its user lets it.
        let has_long_script = self.shared.scripts.running.any_long();
        let mut seen = self.seen.lock();
        let mut stuck = None;
        for (thread, stats) in self.shared.stats.iter().enumerate() {
            let (turns, since_ns) = &mut seen[thread];
            let now = stats.eventloop_cycles.get();
            if now != *turns || has_long_script {
                (*turns, *since_ns) = (now, now_ns);
            }
            let still = Duration::from_nanos(now_ns.saturating_sub(*since_ns));
            if still >= STUCK_AFTER && stuck.is_none() {
                stuck = Some((thread, still));
            }
        }
        stuck
    }
}
