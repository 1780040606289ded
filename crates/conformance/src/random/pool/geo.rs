//! Places on Earth, and distances.

use super::texts;
use crate::random::rng::Rng;

/// Mostly of one region, so that something is near.
pub(super) fn degrees(rng: &mut Rng, most: f64, odd: &[&str]) -> Vec<u8> {
    let part = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0;
    match rng.below(30) {
        0 => texts(rng, odd),
        1..=9 => format!("{:.9}", part * most).into(),
        10 => format!("{:.7}", most.copysign(part) - part.abs() / 1000.0 * part.signum()).into(),
        11..=20 => format!("{:.8}", 40.0 + part).into(),
        _ => format!("{:.6}", 40.0 + part * 10.0).into(),
    }
}

pub(super) fn distance(rng: &mut Rng) -> Vec<u8> {
    let part = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
    match rng.below(16) {
        0 => texts(rng, &["0", "-1", "x", "", "inf", "1e10", "0.0001", "40000000"]),
        1..=4 => format!("{:.3}", part * 10_000_000.0).into(),
        5..=8 => format!("{:.3}", part * 1000.0).into(),
        _ => format!("{:.1}", part * 100_000.0).into(),
    }
}
