//! Latency by percentile: each nine of the percentile takes the same width, so that the tail shows.

use super::backend::Paint;
use super::lines::{Curve, Look, Point, lines};
use super::{ChartError, palette::Mark};
use crate::report::view::number::with_unit;

/// A system's distribution.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Percentile (0 to 100) and microseconds, both ascending.
    pub curve: Vec<(f64, f64)>,
    /// Whose colour it has.
    pub paint: Paint,
    /// Its mark.
    pub mark: Mark,
}

/// The last percentile shown is 99.999: beyond it a round has too few operations to tell.
const NINES_MAX: f64 = 5.0;

/// Draws the distributions.
///
/// # Errors
/// What `plotters` says.
pub fn latency(label: &str, distributions: &[Distribution]) -> Result<String, ChartError> {
    let curves: Vec<Curve> = distributions
        .iter()
        .map(|distribution| Curve {
            points: distribution
                .curve
                .iter()
                .map(|&(percentile, y)| Point { x: nines(percentile), y, interval: None })
                .filter(|point| point.x <= NINES_MAX + 1e-9 && point.y > 0.0)
                .collect(),
            paint: distribution.paint,
            mark: Some(distribution.mark),
        })
        .collect();
    let look = Look {
        x_words: &words,
        y_words: &|us| with_unit(us, "us"),
        y_logarithmic: true,
        x_even: true,
        x_labels: 6,
    };
    lines(label, &curves, look)
}

/// How many nines a percentile has: 1 of 90, 2 of 99, 3 of 99.9.
fn nines(percentile: f64) -> f64 {
    // Rounded, so that 99 is at the mark of two nines and not beside it.
    (-(1.0 - percentile / 100.0).max(1e-12).log10() * 1e6).round() / 1e6
}

/// Words at whole nines.
fn words(nines: f64) -> String {
    match nines {
        nines if (nines - nines.round()).abs() > 0.01 => String::new(),
        nines => ["0", "p90", "p99", "p99.9", "p99.99", "p99.999"]
            .get(nines.round() as usize)
            .map_or_else(String::new, |&words| words.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_nines() {
        for (percentile, expected) in [(0.0, 0.0), (90.0, 1.0), (99.0, 2.0), (99.9, 3.0)] {
            assert!((nines(percentile) - expected).abs() < 1e-9);
        }
        assert!(nines(100.0) > NINES_MAX);
        assert_eq!(words(2.0), "p99");
        assert_eq!(words(1.5), "");
    }

    #[test]
    fn a_distribution_is_drawn() {
        let distribution = Distribution {
            curve: vec![(50.0, 100.0), (99.0, 900.0), (100.0, 5000.0)],
            paint: Paint::System(5, 0),
            mark: Mark::Square,
        };
        let svg = latency("latency", &[distribution]).unwrap();
        assert!(svg.contains("p99<") && svg.contains("ms<"), "{svg}");
        assert_eq!(svg.matches("<polygon").count(), 2 * 2, "the longest is left to the table");
    }
}
