//! Medians and ratios over interleaved rounds.
//!
//! Speed drifts on a shared machine, so a ratio is formed **within** each round, from two samples
//! taken seconds apart, and the median is taken over those; the ratio of two medians would mix rounds.

use serde::Serialize;

/// The middle value, or the mean of the two middle ones; `None` of nothing. NaNs are left out.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| !sample.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Median with the extremes beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
}

impl Spread {
    /// The spread of some samples; `None` of nothing.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(samples)?,
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Ratios round by round of `samples` to `base`; rounds that one of them lacks are left out.
#[must_use]
pub fn ratio(samples: &[f64], base: &[f64]) -> Option<Spread> {
    let ratios: Vec<f64> = samples
        .iter()
        .zip(base)
        .filter(|(_, base)| **base > 0.0)
        .map(|(sample, base)| sample / base)
        .collect();
    Spread::of(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
        assert_eq!(median(&[f64::NAN, 7.0]), Some(7.0));
    }

    #[test]
    fn spreads() {
        assert_eq!(Spread::of(&[2.0, 8.0, 4.0]), Some(Spread { median: 4.0, min: 2.0, max: 8.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    /// A machine that slows down by three between rounds must not show in the ratio.
    #[test]
    fn ratios_are_formed_within_rounds() {
        let base = [1.0, 2.0, 3.0];
        let half = [0.5, 1.0, 1.5];
        assert_eq!(ratio(&half, &base), Some(Spread { median: 0.5, min: 0.5, max: 0.5 }));
        assert_eq!(ratio(&[1.0, 9.0], &[0.0, 3.0]).map(|spread| spread.median), Some(3.0));
        assert_eq!(ratio(&[], &base), None);
    }
}
