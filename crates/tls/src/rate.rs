//! How often something may happen: so many times a second, and a few at once after a pause.

use std::time::{Duration, Instant};

/// What may happen at once after a pause, as a part of a second's.
const BURST: f64 = 0.05;

/// How often something may happen now.
pub(crate) struct Rate {
    allowed: f64,
    counted_at: Instant,
}

impl Rate {
    /// Once, to begin with.
    pub(crate) fn new() -> Rate {
        Rate { allowed: 1.0, counted_at: Instant::now() }
    }

    /// Counts the time that has passed.
    pub(crate) fn count(&mut self, per_second: f64) {
        let now = Instant::now();
        let passed = now.duration_since(self.counted_at).as_secs_f64();
        self.counted_at = now;
        self.allowed = (self.allowed + passed * per_second).min((per_second * BURST).max(1.0));
    }

    /// As of the last count.
    pub(crate) fn allowed(&self) -> usize {
        self.allowed.max(0.0) as usize
    }

    /// It has happened once.
    pub(crate) fn take(&mut self) {
        self.allowed -= 1.0;
    }

    /// In how long it may happen again.
    pub(crate) fn next_in(&self, per_second: f64) -> Duration {
        Duration::from_secs_f64((1.0 - self.allowed).max(0.0) / per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_happens_than_a_second_has() {
        let mut rate = Rate::new();
        rate.counted_at -= Duration::from_secs(100);
        rate.count(1000.0);
        assert_eq!(rate.allowed(), 50, "a long pause does not count");
        for _ in 0..50 {
            rate.take();
        }
        assert_eq!(rate.allowed(), 0);
        assert!(rate.next_in(1000.0) <= Duration::from_millis(1));
        rate.counted_at -= Duration::from_millis(20);
        rate.count(1000.0);
        assert!((20..50).contains(&rate.allowed()), "{}", rate.allowed());
    }

    #[test]
    fn a_slow_rate_allows_one() {
        let mut rate = Rate::new();
        rate.take();
        rate.counted_at -= Duration::from_secs(10);
        rate.count(1.0);
        assert_eq!(rate.allowed(), 1);
    }
}
