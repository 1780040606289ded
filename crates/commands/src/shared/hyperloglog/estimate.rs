//! The estimate from how often each count occurs: Otmar Ertl, "New cardinality estimation
//! algorithms for HyperLogLog sketches", arXiv:1702.01284.

use super::{PATTERN_BITS, REGISTERS};

/// 1 / (2 ln 2)
const ALPHA_INFINITY: f64 = 0.721_347_520_444_481_7;

/// How many registers have each count. Counts beyond the highest possible, which only damaged
/// values have, are not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Histogram(pub(super) [u32; 64]);

impl Histogram {
    /// Counts eight registers at a time. Those that follow each other are counted apart: a counter
    /// that is raised twice in a row waits for memory.
    #[inline]
    pub(super) fn of_groups(groups: impl Iterator<Item = [u8; 8]>) -> Histogram {
        let mut counters = [[0u32; 64]; 4];
        for group in groups {
            for (at, count) in group.into_iter().enumerate() {
                counters[at % 4][usize::from(count & 63)] += 1;
            }
        }
        Histogram(std::array::from_fn(|count| counters.iter().map(|counts| counts[count]).sum()))
    }
}

/// The number of distinct elements.
pub(crate) fn estimate(histogram: &Histogram) -> u64 {
    let registers = REGISTERS as f64;
    let with = |count: usize| f64::from(histogram.0[count]);
    let patterns = PATTERN_BITS as usize;
    let mut z = registers * tau((registers - with(patterns + 1)) / registers);
    for count in (1..=patterns).rev() {
        z = (z + with(count)) * 0.5;
    }
    z += registers * sigma(with(0) / registers);
    let estimate = (ALPHA_INFINITY * registers * registers / z).round();
    // Only damaged registers lead here; Redis' processors answer the lowest integer.
    if estimate.is_finite() { estimate as u64 } else { 1 << 63 }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}
