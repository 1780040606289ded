//! How long a command took, counted in buckets: eight to each power of two, so that a percentile
//! is at most an eighth too high.

use crate::statistics::counter::Counter;
use std::ops::RangeInclusive;

const SUB_BITS: u32 = 3;
const SUBS: usize = 1 << SUB_BITS;
/// Reaches to 2^40 ns, some eighteen minutes; what takes longer counts as that.
const BUCKETS: usize = (40 - SUB_BITS as usize + 2) * SUBS;

/// Counts of durations in nanoseconds; written by one thread, read by any.
#[derive(Debug)]
pub struct Histogram(Box<[Counter]>);

impl Default for Histogram {
    fn default() -> Self {
        Histogram((0..BUCKETS).map(|_| Counter::default()).collect())
    }
}

impl Histogram {
    /// Counts `times` durations of `nanoseconds`.
    #[inline]
    pub fn record(&self, nanoseconds: u64, times: u64) {
        self.0[bucket_of(nanoseconds)].add(times);
    }

    /// Back to nothing.
    pub fn reset(&self) {
        self.0.iter().for_each(Counter::reset);
    }
}

/// Durations with their sum; written by one thread at a time, read by any.
#[derive(Debug, Default)]
pub struct Durations {
    /// How many there were of each length.
    pub counts: Histogram,
    /// Their sum.
    pub nanoseconds: Counter,
}

impl Durations {
    /// Counts a duration.
    #[inline]
    pub fn record(&self, nanoseconds: u64) {
        self.counts.record(nanoseconds, 1);
        self.nanoseconds.add(nanoseconds);
    }

    /// Back to nothing.
    pub fn reset(&self) {
        self.counts.reset();
        self.nanoseconds.reset();
    }
}

/// The sum of several threads' histograms.
#[derive(Debug, Default)]
pub struct HistogramSum(Vec<u64>);

impl HistogramSum {
    /// Adds a thread's counts.
    pub fn add(&mut self, histogram: &Histogram) {
        self.0.resize(BUCKETS, 0);
        for (sum, count) in self.0.iter_mut().zip(&histogram.0) {
            *sum += count.get();
        }
    }

    /// What was counted since an earlier sum. A reset in between leaves nothing.
    pub fn since(&self, before: &HistogramSum) -> HistogramSum {
        let earlier = before.0.iter().copied().chain(std::iter::repeat(0));
        let counts = self.0.iter().zip(earlier).map(|(now, then)| now.saturating_sub(then));
        HistogramSum(counts.collect())
    }

    /// Adds what another sum has counted.
    pub fn add_sum(&mut self, other: &HistogramSum) {
        self.0.resize(BUCKETS, 0);
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The nanoseconds that `percent` of the durations do not exceed; 0 if there are none.
    pub fn percentile(&self, percent: f64) -> u64 {
        let count = self.count();
        let wanted = ((percent / 100.0 * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, &count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return highest_of(bucket);
            }
        }
        0
    }

    /// For each exponent of the range, the number of durations below 2^exponent nanoseconds that are
    /// below no smaller power of the range; last, the number of all longer ones.
    pub fn between_powers_of_two(&self, exponents: RangeInclusive<u32>) -> Vec<u64> {
        let first = *exponents.start();
        let mut found = vec![0; exponents.count() + 1];
        let last = found.len() - 1;
        for (bucket, &count) in self.0.iter().enumerate() {
            // The highest duration of a bucket is the one before the next bucket's lowest.
            let needed = (highest_of(bucket) + 1).next_power_of_two().ilog2();
            let at = needed.saturating_sub(first) as usize;
            // The last bucket also has what is too long for it.
            let at = if bucket == BUCKETS - 1 { last } else { at.min(last) };
            found[at] += count;
        }
        found
    }

    /// (microseconds, number of durations up to that), one for each power of two from 1,024 ns on
    /// that adds to the number: what `LATENCY HISTOGRAM` shows.
    pub fn by_powers_of_two(&self) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let (mut bound, mut seen, mut shown) = (1024, 0, 0);
        for (bucket, &count) in self.0.iter().enumerate() {
            while highest_of(bucket) >= bound {
                if seen > shown {
                    found.push((bound / 1000, seen));
                    shown = seen;
                }
                bound *= 2;
            }
            seen += count;
        }
        if seen > shown {
            found.push((bound / 1000, seen));
        }
        found
    }
}

fn bucket_of(nanoseconds: u64) -> usize {
    if nanoseconds < SUBS as u64 {
        return nanoseconds as usize;
    }
    let exponent = nanoseconds.ilog2();
    let sub = (nanoseconds >> (exponent - SUB_BITS)) as usize & (SUBS - 1);
    ((exponent - SUB_BITS + 1) as usize * SUBS + sub).min(BUCKETS - 1)
}

/// The largest duration that counts in a bucket.
fn highest_of(bucket: usize) -> u64 {
    if bucket < SUBS {
        return bucket as u64;
    }
    let shift = (bucket / SUBS - 1) as u32;
    (((SUBS + bucket % SUBS + 1) as u64) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_it_says() {
        for exponent in 0..40 {
            for offset in [0, 1, 3] {
                let value = (1u64 << exponent) + offset;
                let bucket = bucket_of(value);
                assert!(value <= highest_of(bucket), "{value} in {bucket}");
                assert!(bucket == 0 || value > highest_of(bucket - 1), "{value} in {bucket}");
                assert!(highest_of(bucket) - value <= value / 8, "{value} in {bucket}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_and_powers_of_two() {
        let histogram = Histogram::default();
        histogram.record(1_000, 98);
        histogram.record(1_000_000, 2);
        let mut sum = HistogramSum::default();
        assert_eq!((sum.count(), sum.percentile(50.0)), (0, 0));
        sum.add(&histogram);
        sum.add(&histogram);
        assert_eq!(sum.count(), 200);
        assert_eq!(sum.percentile(50.0), 1023);
        assert_eq!(sum.percentile(98.0), 1023);
        assert!((1_000_000..1_125_000).contains(&sum.percentile(99.0)));
        assert_eq!(sum.by_powers_of_two(), [(1, 196), (1048, 200)]);
        assert_eq!(sum.between_powers_of_two(10..=12), [196, 0, 0, 4]);
        assert_eq!(sum.between_powers_of_two(9..=20), [0, 196, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
        assert_eq!(sum.between_powers_of_two(12..=24).iter().sum::<u64>(), 200);
        let before = std::mem::take(&mut sum);
        histogram.record(1_000_000, 200);
        sum.add(&histogram);
        sum.add(&histogram);
        let since = sum.since(&before);
        assert_eq!((since.count(), since.percentile(1.0)), (400, sum.percentile(100.0)));
        let mut twice = HistogramSum::default();
        twice.add_sum(&since);
        twice.add_sum(&since);
        assert_eq!(twice.count(), 800);
        histogram.reset();
        let mut sum = HistogramSum::default();
        sum.add(&histogram);
        assert_eq!(sum.by_powers_of_two(), []);
        assert_eq!(sum.since(&before).count(), 0);
    }
}
