//! Times, none of which passes during a round.

use super::texts;
use crate::random::rng::Rng;

/// Relative times: so different from each other that the servers' clocks do not decide the result
/// of `GT`, and so long that nothing expires meanwhile.
pub(super) fn seconds(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "0",
                "-1",
                "-100",
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775",
                "9223372036854775808",
                "a",
                "",
                "1.5",
                "99999999999999",
            ],
        ),
        _ => ((100_000 + rng.below(1_000_000) as i64) * unit).to_string().into(),
    }
}

pub(super) fn moment(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(
            rng,
            &[
                "0",
                "-1",
                "1",
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775",
                "a",
                "",
            ],
        ),
        1 => (1_000_000_000 * unit).to_string().into(),
        _ => ((4_102_444_800 + rng.below(8) as i64) * unit).to_string().into(),
    }
}

pub(super) fn later(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(8) {
        0 => texts(rng, &["0", "-1", "9223372036854775807", "-9223372036854775808", "a", ""]),
        _ => ((4_102_444_800 + rng.below(8) as i64) * unit).to_string().into(),
    }
}
