//! What happens per second: differences of counters over the last samples.

use crate::node::Node;
use std::collections::VecDeque;

/// Samples that are kept: over a second and a half at ten per second.
const SAMPLES: usize = 16;
/// Who asks for rates gets a fresh sample if the last one is older.
const OLD_MS: u64 = 100;

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
    /// What these turns took.
    pub cycle_nanoseconds: u64,
}

/// The last samples.
#[derive(Debug, Default)]
pub(crate) struct Sampler(VecDeque<(u64, Counters)>);

/// In the order of [`Rates`].
type Counters = [u64; 5];

impl Sampler {
    pub(crate) fn sample(&mut self, node: &Node) {
        let counters = [
            node.total(|stats| stats.commands_processed.get()),
            node.total(|stats| stats.net_input_bytes.get()),
            node.total(|stats| stats.net_output_bytes.get()),
            node.total(|stats| stats.eventloop_cycles.get()),
            node.total(|stats| stats.eventloop_nanoseconds.get()),
        ];
        self.push(node.clock.monotonic_ns() / 1_000_000, counters);
    }

    pub(crate) fn sample_if_old(&mut self, node: &Node) {
        let now_ms = node.clock.monotonic_ns() / 1_000_000;
        if self.0.back().is_none_or(|&(at_ms, _)| now_ms.saturating_sub(at_ms) >= OLD_MS) {
            self.sample(node);
        }
    }

    fn push(&mut self, at_ms: u64, counters: Counters) {
        self.0.push_back((at_ms, counters));
        if self.0.len() > SAMPLES {
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
    }
}
