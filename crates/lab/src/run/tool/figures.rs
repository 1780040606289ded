//! What a tool reports.

use crate::results::schema::Percentiles;

/// What a tool said of its run.
#[derive(Debug)]
pub struct ToolFigures {
    /// Requests that were answered.
    pub operations: u64,
    /// How long that took.
    pub seconds: f64,
    /// Latencies, as far as it reports them.
    pub latency_us: Percentiles,
    /// Answers that were not right.
    pub wrong: u64,
    /// Requests without an answer.
    pub failed: u64,
}

/// Percentiles with what of the curve they are.
#[must_use]
pub fn latency(p50: f64, p90: f64, p99: f64, p999: f64, p9999: f64, max: f64) -> Percentiles {
    let all = [(50.0, p50), (90.0, p90), (99.0, p99), (99.9, p999), (99.99, p9999), (100.0, max)];
    let curve = all.into_iter().filter(|(_, us)| us.is_finite()).collect();
    Percentiles { p50, p90, p99, p999, p9999, max, curve }
}
