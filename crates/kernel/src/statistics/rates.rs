//! Rates per second: differences of counters over the last samples.

use crate::statistics::stats::ThreadStats;
use ladon_platform::Clock;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of samples kept.
const SAMPLES: usize = 16;
/// Time span of a rate, if there are samples for it; an idle server takes few.
const WINDOW_MS: u64 = 1600;
/// A query takes a fresh sample if the last one is older than this.
const OLD_MS: u64 = 100;
/// Housekeeping takes a sample if the last one is older than this; every thread does it.
const DUE_MS: u64 = 60;

/// Per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Commands executed.
    pub commands: u64,
    /// Bytes received.
    pub input_bytes: u64,
    /// Bytes sent.
    pub output_bytes: u64,
    /// Turns of the threads' loops.
    pub cycles: u64,
    /// Duration of these turns.
    pub cycle_nanoseconds: u64,
}

/// The last samples.
#[derive(Debug, Default)]
pub(crate) struct Sampler(VecDeque<(u64, Counters)>);

/// In the order of [`Rates`].
type Counters = [u64; 5];

impl Sampler {
    fn sample(&mut self, threads: &[Arc<ThreadStats>], clock: &dyn Clock) {
        let total = |counter: fn(&ThreadStats) -> u64| threads.iter().map(|it| counter(it)).sum();
        let counters = [
            total(|stats| stats.commands_processed.get()),
            total(|stats| stats.net_input_bytes.get()),
            total(|stats| stats.net_output_bytes.get()),
            total(|stats| stats.eventloop_cycles.get()),
            total(|stats| stats.eventloop_nanoseconds.get()),
        ];
        self.push(clock.monotonic_ns() / 1_000_000, counters);
    }

    /// Called for a query of rates.
    pub(crate) fn sample_if_old(&mut self, threads: &[Arc<ThreadStats>], clock: &dyn Clock) {
        self.sample_if_older(threads, clock, OLD_MS);
    }

    /// For housekeeping.
    pub(crate) fn sample_if_due(&mut self, threads: &[Arc<ThreadStats>], clock: &dyn Clock) {
        self.sample_if_older(threads, clock, DUE_MS);
    }

    fn sample_if_older(&mut self, threads: &[Arc<ThreadStats>], clock: &dyn Clock, old_ms: u64) {
        let now_ms = clock.monotonic_ns() / 1_000_000;
        if self.0.back().is_none_or(|&(at_ms, _)| now_ms.saturating_sub(at_ms) >= old_ms) {
            self.sample(threads, clock);
        }
    }

    fn push(&mut self, at_ms: u64, counters: Counters) {
        self.0.push_back((at_ms, counters));
        let is_beyond = |samples: &VecDeque<(u64, Counters)>| {
            let second = samples.get(1).filter(|_| samples.len() > 2);
            second.is_some_and(|&(then_ms, _)| then_ms + WINDOW_MS <= at_ms)
        };
        while self.0.len() > SAMPLES || is_beyond(&self.0) {
            self.0.pop_front();
        }
    }

    pub(crate) fn rates(&self) -> Rates {
        let (Some((from_ms, from)), Some((to_ms, to))) = (self.0.front(), self.0.back()) else {
            return Rates::default();
        };
        let per_second = |at: usize| {
            let difference = to[at].saturating_sub(from[at]);
            (difference * 1000).checked_div(to_ms - from_ms).unwrap_or(0)
        };
        Rates {
            commands: per_second(0),
            input_bytes: per_second(1),
            output_bytes: per_second(2),
            cycles: per_second(3),
            cycle_nanoseconds: per_second(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_samples() {
        let mut sampler = Sampler::default();
        assert_eq!(sampler.rates(), Rates::default());
        sampler.push(1000, [5, 0, 0, 0, 0]);
        assert_eq!(sampler.rates(), Rates::default());
        for sample in 1..=100 {
            // Ten samples a second; 10 commands in each interval at first, 20 later.
            let commands = if sample <= 50 { sample * 10 } else { 500 + (sample - 50) * 20 };
            sampler.push(1000 + sample * 100, [5 + commands, sample * 1024, 0, 0, 0]);
        }
        let rates = sampler.rates();
        assert_eq!((rates.commands, rates.input_bytes), (200, 10_240));
        // Nothing happens for long, and few samples are taken; then much does.
        let quiet = [1505, 102_400, 0, 0, 0];
        (12..40).for_each(|second| sampler.push(second * 1000, quiet));
        assert_eq!(sampler.rates().commands, 0);
        (1..=10)
            .for_each(|tenth| sampler.push(39_000 + tenth * 100, [1505 + tenth * 300, 0, 0, 0, 0]));
        assert_eq!(sampler.rates().commands, 1500, "over this second and the one before");
    }
}
