//! What a load saw in some stretch of time.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Kinds of connections that a workload may tell apart in latency (see `Workload::lane`).
pub const LANES: usize = 2;

/// What was seen in some stretch of time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Right replies.
    pub replies: u64,
    /// How long the stretch was.
    pub elapsed: Duration,
    /// How much of it the load generator had something to do. A sleep that an event ended counts
    /// too, so read this only where the load generator spins.
    pub busy: Duration,
    /// The load generator's longest turn: its own pauses, or its core's, and no server's. A pause
    /// of a server that is not longer than this proves nothing.
    pub longest_turn: Duration,
    /// Nanoseconds from the moment at which a batch was sent (on a paced connection: was due) to
    /// each of its replies, by lane.
    pub latency_ns: [Histogram<u64>; LANES],
}

/// Highest latency told apart; beyond it counts as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

impl Sample {
    /// Nothing seen yet.
    ///
    /// # Errors
    /// Never with the bounds used here; the histogram's constructor may refuse others.
    pub fn empty() -> io::Result<Self> {
        // Three significant digits, from 100 ns.
        let histogram =
            || Histogram::new_with_bounds(100, LATENCY_NS_MAX, 3).map_err(io::Error::other);
        Ok(Self {
            replies: 0,
            elapsed: Duration::ZERO,
            busy: Duration::ZERO,
            longest_turn: Duration::ZERO,
            latency_ns: [histogram()?, histogram()?],
        })
    }

    /// Adds what another stretch showed.
    pub fn add(&mut self, other: &Self) {
        self.replies += other.replies;
        self.elapsed += other.elapsed;
        self.busy += other.busy;
        self.longest_turn = self.longest_turn.max(other.longest_turn);
        for (mine, theirs) in self.latency_ns.iter_mut().zip(&other.latency_ns) {
            *mine += theirs;
        }
    }

    /// Adds what another thread saw in the same stretch.
    pub fn add_beside(&mut self, other: &Self) {
        let elapsed = self.elapsed.max(other.elapsed);
        self.add(other);
        self.elapsed = elapsed;
    }

    /// Replies per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.replies as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Latency in microseconds below which `share` (0 to 1) of the replies of all lanes came.
    #[must_use]
    pub fn latency_us(&self, share: f64) -> f64 {
        let mut all = self.latency_ns[0].clone();
        all += &self.latency_ns[1];
        all.value_at_quantile(share) as f64 / 1000.0
    }

    /// The longest latency of one lane in microseconds.
    #[must_use]
    pub fn lane_max_us(&self, lane: usize) -> f64 {
        self.latency_ns[lane].max() as f64 / 1000.0
    }

    /// How many replies of one lane took longer than `limit`.
    #[must_use]
    pub fn lane_longer_than(&self, lane: usize, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.latency_ns[lane].len() - self.latency_ns[lane].count_between(0, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_stretch_add_up_in_the_same_time() {
        let mut one = Sample::empty().unwrap();
        one.replies = 100;
        one.elapsed = Duration::from_secs(1);
        one.latency_ns[0].saturating_record_n(1_000_000, 100);
        let mut other = one.clone();
        other.elapsed = Duration::from_millis(900);
        one.add_beside(&other);
        assert_eq!((one.replies, one.elapsed), (200, Duration::from_secs(1)));
        assert_eq!(one.latency_ns[0].len(), 200);
    }

    #[test]
    fn stretches_add_up() {
        let mut all = Sample::empty().unwrap();
        for lane in 0..LANES {
            let mut one = Sample::empty().unwrap();
            one.replies = 100;
            one.elapsed = Duration::from_secs(1);
            one.latency_ns[lane].saturating_record_n(1_000_000 * (lane as u64 + 1), 100);
            all.add(&one);
        }
        assert_eq!(all.replies, 200);
        assert!((all.per_second() - 100.0).abs() < 1e-6);
        assert!((all.latency_us(0.25) - 1000.0).abs() < 2.0);
        assert!((all.latency_us(0.99) - 2000.0).abs() < 4.0);
    }
}
