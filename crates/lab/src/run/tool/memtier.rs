//! `memtier_benchmark`: one operation on random keys, as the Dragonfly test used it.

use std::net::SocketAddr;
use std::time::Duration;

use super::figures::{ToolFigures, latency};
use super::random_keys::Job;
use crate::work::Phase;

/// Its arguments.
pub fn arguments(address: SocketAddr, phase: &Phase, job: &Job, time: Duration) -> Vec<String> {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    [
        "--server",
        &host,
        "--port",
        &port,
        "--protocol",
        "redis",
        "--threads",
        "1",
        "--clients",
        &phase.users.to_string(),
        "--pipeline",
        &phase.depth.to_string(),
        "--key-maximum",
        &job.keys.to_string(),
        "--data-size",
        &job.value_bytes.to_string(),
        "--test-time",
        &time.as_secs().max(1).to_string(),
        "--ratio",
        if job.write { "1:0" } else { "0:1" },
        "--hide-histogram",
        "--json-out-file",
        "/dev/stdout",
    ]
    .map(str::to_owned)
    .into()
}

/// The totals of its JSON, of a run of `time`.
pub fn parsed(text: &str, time: Duration) -> Option<ToolFigures> {
    let start = text.find('{')?;
    let json: serde_json::Value =
        serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok()?;
    let totals = &json["ALL STATS"]["Totals"];
    let per_second = totals["Ops/sec"].as_f64()?;
    let us = |value: &serde_json::Value| value.as_f64().map_or(f64::NAN, |ms| ms * 1e3);
    let at = |name: &str| us(&totals["Percentile Latencies"][name]);
    let seconds = time.as_secs().max(1) as f64;
    let nan = f64::NAN;
    let max = us(&totals["Max Latency"]);
    Some(ToolFigures {
        operations: (per_second * seconds) as u64,
        seconds,
        latency_us: latency(at("p50.00"), nan, at("p99.00"), at("p99.90"), nan, max),
        wrong: 0,
        failed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_totals_are_read() {
        let json = "noise {\"ALL STATS\": {\"Totals\": {\"Ops/sec\": 1000.5, \"Max Latency\": 2.0,
            \"Percentile Latencies\": {\"p50.00\": 0.5, \"p99.00\": 1.0, \"p99.90\": 1.5}}}} tail";
        let told = parsed(json, Duration::from_secs(2)).unwrap();
        assert_eq!(told.operations, 2001);
        assert!((told.latency_us.p99 - 1000.0).abs() < 1e-6);
    }
}
