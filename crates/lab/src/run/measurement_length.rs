//! How long a measurement may be, and its warm-up.

use std::time::Duration;

/// Below this a measurement says little; rather fewer rounds then.
pub const SECONDS_MIN: f64 = 0.1;
/// Above this a measurement says no more.
pub const SECONDS_MAX: f64 = 2.0;
const WARM_UP_SHARE: f64 = 0.2;
const WARM_UP_SECONDS_MAX: f64 = 0.5;

/// The warm-up before a measurement of `seconds`.
#[must_use]
pub fn warm_up(seconds: f64) -> Duration {
    Duration::from_secs_f64((seconds * WARM_UP_SHARE).min(WARM_UP_SECONDS_MAX))
}

/// A measurement with its warm-up.
#[must_use]
pub fn stretch(seconds: f64) -> f64 {
    seconds + warm_up(seconds).as_secs_f64()
}

/// The measurement that takes so long with its warm-up, which is a fifth, but no longer than half a
/// second.
#[must_use]
pub fn seconds_of_stretch(stretch: f64) -> f64 {
    (stretch / (1.0 + WARM_UP_SHARE)).max(stretch - WARM_UP_SECONDS_MAX)
}
