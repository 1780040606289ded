//! `redis-benchmark`: one operation on random keys.

use std::net::SocketAddr;

use super::figures::{ToolFigures, latency};
use super::random_keys::Job;
use crate::results::schema::Percentiles;
use crate::work::Phase;

/// Its arguments for `requests` requests.
pub fn arguments(address: SocketAddr, phase: &Phase, job: &Job, requests: u64) -> Vec<String> {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    [
        "-h",
        &host,
        "-p",
        &port,
        "-c",
        &phase.users.to_string(),
        "-P",
        &phase.depth.to_string(),
        "-r",
        &job.keys.to_string(),
        "-d",
        &job.value_bytes.to_string(),
        "-n",
        &requests.to_string(),
        "-t",
        if job.write { "set" } else { "get" },
        "--csv",
    ]
    .map(str::to_owned)
    .into()
}

/// The last line of its CSV: name, requests a second, then latencies in milliseconds: average,
/// least, 50, 95 and 99 %, most.
pub fn parsed(text: &str, requests: u64) -> Option<ToolFigures> {
    let line = text.lines().rfind(|line| line.starts_with('"') && !line.contains("rps"))?;
    let cells: Vec<f64> = line
        .split(',')
        .skip(1)
        .map(|cell| cell.trim().trim_matches('"').parse().ok())
        .collect::<Option<_>>()?;
    let [per_second, _, _, p50, p95, p99, max] = cells.as_slice() else { return None };
    let latency_us = Percentiles {
        curve: vec![(50.0, p50 * 1e3), (95.0, p95 * 1e3), (99.0, p99 * 1e3), (100.0, max * 1e3)],
        ..latency(p50 * 1e3, f64::NAN, p99 * 1e3, f64::NAN, f64::NAN, max * 1e3)
    };
    Some(ToolFigures {
        operations: requests,
        seconds: requests as f64 / per_second.max(1e-9),
        latency_us,
        wrong: 0,
        failed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_table_is_read() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                   \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"SET\",\"120481.93\",\"0.211\",\"0.064\",\"0.207\",\"0.263\",\"0.343\",\"1.007\"\n";
        let told = parsed(csv, 10_000).unwrap();
        assert!((told.operations as f64 / told.seconds - 120_481.93).abs() < 1e-3);
        assert!((told.latency_us.p50 - 207.0).abs() < 1e-6);
        assert!((told.latency_us.max - 1007.0).abs() < 1e-6);
        assert!(super::parsed("ERR", 1).is_none());
    }
}
