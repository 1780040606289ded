//! Requests for keys as a cache sees them.

use std::collections::{BTreeMap, HashMap};

use super::random::Random;

/// Which keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Popular keys again and again, as Zipf's law has it.
    Zipf,
    /// The same, and in between somebody reads through keys that are never asked for again.
    Scanned,
}

impl Pattern {
    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Zipf => "popular keys again and again",
            Self::Scanned => "popular keys beside a scan",
        }
    }
}

/// Share of requests, in a hundred, that belong to a scan.
const SCANNED_PERCENT: u32 = 30;

/// An endless stream of key numbers that its seed determines.
#[derive(Debug)]
pub struct Trace {
    random: Random,
    pattern: Pattern,
    /// Cumulated weights of the keys by rank.
    weights: Vec<f64>,
    scanned: u32,
}

impl Trace {
    /// Over `keys` keys, the popularity of the n-th most popular being 1 / n^`exponent`.
    pub fn new(pattern: Pattern, keys: u32, exponent: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let weigh = |rank: u32| {
            sum += f64::from(rank).powf(-exponent);
            sum
        };
        let weights = (1..=keys).map(weigh).collect();
        Self { random: Random::new(seed), pattern, weights, scanned: 0 }
    }

    /// The next key's number; those of a scan come after all others.
    pub fn next_key(&mut self) -> u32 {
        if self.pattern == Pattern::Scanned && self.random.below(100) < SCANNED_PERCENT {
            self.scanned += 1;
            return self.weights.len() as u32 - 1 + self.scanned;
        }
        let sum = self.weights.last().copied().unwrap_or(1.0);
        let draw = (self.random.bits() >> 11) as f64 / (1u64 << 53) as f64 * sum;
        let rank = self.weights.partition_point(|&weight| weight < draw);
        // Popularity must not follow the numbers: a prime spreads them, each to a place of its own.
        const PRIME: u64 = 2_654_435_761;
        (rank as u64 * PRIME % self.weights.len() as u64) as u32
    }
}

/// A cache that always knows which of its keys was used longest ago.
#[derive(Debug)]
pub struct ExactLru {
    capacity: usize,
    clock: u64,
    used_at: HashMap<u32, u64>,
    by_time: BTreeMap<u64, u32>,
}

impl ExactLru {
    /// For so many keys.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, clock: 0, used_at: HashMap::new(), by_time: BTreeMap::new() }
    }

    /// Requests a key, which exists afterwards; returns whether it existed before.
    pub fn ask(&mut self, key: u32) -> bool {
        self.clock += 1;
        let before = self.used_at.insert(key, self.clock);
        if let Some(before) = before {
            self.by_time.remove(&before);
        }
        self.by_time.insert(self.clock, key);
        if self.used_at.len() > self.capacity
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.used_at.remove(&oldest);
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_cache_drops_what_was_used_longest_ago() {
        let mut cache = ExactLru::new(2);
        let asked = [1, 2, 1, 3, 1, 2, 3].map(|key| cache.ask(key));
        assert_eq!(asked, [false, false, true, false, true, false, false]);
    }

    #[test]
    fn popular_keys_are_asked_for_as_often_as_zipf_says() {
        let mut trace = Trace::new(Pattern::Zipf, 1000, 1.0, 1);
        let mut counts = HashMap::new();
        for _ in 0..100_000 {
            *counts.entry(trace.next_key()).or_insert(0u32) += 1;
        }
        let most = counts.values().copied().max().unwrap();
        // The sum of 1/n up to 1000 is 7.485.
        assert!((12_500..14_500).contains(&most), "{most}");
        assert!(counts.keys().all(|&key| key < 1000));
    }

    #[test]
    fn scanned_keys_come_once() {
        let mut trace = Trace::new(Pattern::Scanned, 100, 1.0, 1);
        let mut scanned: Vec<u32> =
            (0..10_000).map(|_| trace.next_key()).filter(|&key| key >= 100).collect();
        assert!((2800..3200).contains(&scanned.len()));
        let all = scanned.len();
        scanned.dedup();
        assert_eq!(scanned.len(), all);
    }
}
