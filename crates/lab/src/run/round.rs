//! A sample of the load and what the system used meanwhile, as a [`Round`] of the results.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::sample::Sample;
use crate::measure::usage::Usage;
use crate::results::schema::{Percentiles, Round};

/// A sample as a round; `counts_as` operations to each reply.
#[must_use]
pub fn round_of(
    sample: &Sample,
    usage: Option<(Usage, Usage)>,
    counts_as: u32,
    load_busy: f64,
) -> Round {
    let seconds = sample.elapsed.as_secs_f64();
    let operations = sample.replies * u64::from(counts_as);
    let each_us = |time: Duration| short(time.as_secs_f64() * 1e6 / operations.max(1) as f64);
    let used = usage.map(|(before, after)| {
        (after.user.saturating_sub(before.user), after.system.saturating_sub(before.system))
    });
    Round {
        seconds,
        operations,
        per_second: short(operations as f64 / seconds.max(1e-9)),
        cpu_user_us: used.map(|(user, _)| each_us(user)),
        cpu_system_us: used.map(|(_, system)| each_us(system)),
        rss_bytes: usage.map(|(_, after)| after.resident_bytes),
        disk_written_bytes: usage.map(|(before, after)| {
            after.disk_written_bytes.saturating_sub(before.disk_written_bytes)
        }),
        latency_us: Some(percentiles(sample)),
        load_limited: false,
        load_busy: short(load_busy),
        server_busy: used
            .map_or(f64::NAN, |(user, system)| short((user + system).as_secs_f64() / seconds)),
        extra: Default::default(),
    }
}

/// As [`round_of`], for a load that keeps its own times.
#[must_use]
pub fn round_of_times(
    elapsed: Duration,
    operations: u64,
    times_ns: &Histogram<u64>,
    usage: Option<(Usage, Usage)>,
) -> Round {
    let each_us = |time: Duration| time.as_secs_f64() * 1e6 / operations.max(1) as f64;
    Round {
        cpu_user_us: usage.map(|(before, after)| each_us(after.user.saturating_sub(before.user))),
        cpu_system_us: usage
            .map(|(before, after)| each_us(after.system.saturating_sub(before.system))),
        latency_us: Some(percentiles_of(times_ns)),
        ..Round::new(elapsed.as_secs_f64(), operations)
    }
}

/// Where the curve of latencies is looked at, in percent: closer together towards the tail.
const CURVE: [f64; 21] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 93.0, 95.0, 97.0, 98.0, 99.0,
    99.5, 99.9, 99.95, 99.99, 100.0,
];

fn percentiles(sample: &Sample) -> Percentiles {
    let mut all = sample.latency_ns[0].clone();
    for lane in &sample.latency_ns[1..] {
        all += lane;
    }
    percentiles_of(&all)
}

/// Five significant digits: more than any measurement has, and a run's file stays small.
fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// Of latencies in nanoseconds.
#[must_use]
pub fn percentiles_of(all: &Histogram<u64>) -> Percentiles {
    let at = |percent: f64| short(all.value_at_quantile(percent / 100.0) as f64 / 1e3);
    Percentiles { max: short(all.max() as f64 / 1e3), ..percentiles_at(&CURVE, at) }
}

/// From a function that says which latency so many percent do not exceed, in microseconds.
#[must_use]
pub fn percentiles_at(curve: &[f64], at: impl Fn(f64) -> f64) -> Percentiles {
    Percentiles {
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p999: at(99.9),
        p9999: at(99.99),
        max: at(100.0),
        curve: curve.iter().map(|&percent| (percent, at(percent))).collect(),
    }
}

/// A round in a few words, for the terminal.
#[must_use]
pub fn brief(part: &str, x: Option<f64>, round: &Round) -> String {
    let place = x.map(|x| format!(" at {x}")).unwrap_or_default();
    if let Some(missing) = round.extra.get("missing") {
        return format!("{part}{place} {missing} of {} missing", round.operations);
    }
    format!("{part}{place} {:.0} k/s", round.per_second / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_are_kept() {
        assert_eq!(short(601_882.623), 601_880.0);
        assert_eq!(short(0.140_914_72), 0.140_91);
        assert_eq!(short(99_999.9), 100_000.0);
        assert_eq!(short(0.0), 0.0);
        assert!(short(f64::NAN).is_nan());
    }
}
