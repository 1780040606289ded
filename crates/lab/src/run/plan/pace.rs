//! How a work's rounds go, and how long the next one's measurements may be.

use crate::run::measurement_length::{SECONDS_MAX, SECONDS_MIN, seconds_of_stretch, stretch};

/// How a work's rounds go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Measurements of a round.
    pub measurements: usize,
    /// Seconds of everything else in it.
    pub beside_seconds: f64,
    /// In how many rounds, from now on, what is done in a few only is still to be done.
    pub few_rounds: u32,
    /// Seconds of that.
    pub few_seconds: f64,
}

impl Pace {
    /// The last round took `took` seconds, with measurements of `seconds`, and `few` seconds more
    /// for what is done in a few only.
    pub fn saw(&mut self, took: f64, few: f64, seconds: f64) {
        if self.few_rounds > 0 {
            self.few_rounds -= 1;
            self.few_seconds = few;
        }
        // Where systems failed, fewer measurements were made than planned, and the rest is zero.
        let measured = (self.measurements as f64 * stretch(seconds)).min(took);
        self.beside_seconds = took - measured;
    }

    /// How long the measurements of the next round are to be when `left` seconds are left for it
    /// and all after it, of which `rounds` are wanted: as many as fit, as long as fits. `None` when
    /// not even one does.
    #[must_use]
    pub fn next(&self, rounds: u32, left: f64, asked: Option<f64>) -> Option<f64> {
        (1..=rounds).rev().find_map(|rounds| {
            let few = f64::from(rounds.min(self.few_rounds)) * self.few_seconds;
            let each = (left - few) / f64::from(rounds) - self.beside_seconds;
            let longest = seconds_of_stretch(each / self.measurements.max(1) as f64);
            match asked {
                Some(seconds) => (longest >= seconds).then_some(seconds),
                None => (longest >= SECONDS_MIN).then_some(longest.min(SECONDS_MAX)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_that_falls_behind_shortens_its_measurements_and_then_leaves_rounds_out() {
        let mut pace =
            Pace { measurements: 10, beside_seconds: 1.0, few_rounds: 0, few_seconds: 0.0 };
        // Five rounds of 1 + 10 * 1.2 * 0.5 seconds.
        assert!((pace.next(5, 35.0, None).unwrap() - 0.5).abs() < 1e-9);
        // The first took twice as long as planned.
        pace.saw(14.0, 0.0, 0.5);
        assert!((pace.beside_seconds - 8.0).abs() < 1e-9);
        let shorter = pace.next(4, 38.0, None).unwrap();
        assert!((shorter - 0.125).abs() < 1e-9, "{shorter}");
        let mut left = 21.0;
        let mut rounds = 0;
        while let Some(seconds) = pace.next(4 - rounds, left, None) {
            left -= pace.beside_seconds + 10.0 * 1.2 * seconds;
            rounds += 1;
        }
        assert_eq!(rounds, 2, "four do not fit, nor do three");
        assert!(left > -1e-9, "{left}");
        assert_eq!(pace.next(3, 5.0, None), None);
        assert_eq!(pace.next(3, 100.0, Some(1.0)), Some(1.0));
        assert_eq!(pace.next(3, 10.0, Some(1.0)), None);
    }
}
