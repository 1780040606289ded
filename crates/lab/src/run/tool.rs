//! Other load generators in the place of the lab's own: what a published test used, with its options.
//!
//! Such a tool counts replies and does not check them, which the cells' part says nothing of; its
//! figures are for comparison with what was published, never with the lab's own.

use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;
use serde::Serialize;

use super::stage::{CellError, Stage};
use crate::measure::cores;
use crate::results::schema::{Percentiles, Round};
use crate::run::subject::Subject;
use crate::systems::instance::Instance;
use crate::systems::places::on_path;
use crate::systems::system::DriverKind;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::works::Phase;

/// A load generator that may be on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `redis-benchmark`.
    RedisBenchmark,
    /// `memtier_benchmark`, as the Dragonfly test used it.
    Memtier,
}

impl Tool {
    /// The program.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::RedisBenchmark => "redis-benchmark",
            Self::Memtier => "memtier_benchmark",
        }
    }

    /// How to get it.
    #[must_use]
    pub const fn install(self) -> &'static str {
        match self {
            Self::RedisBenchmark => "apt-get install redis-tools",
            Self::Memtier => "apt-get install memtier-benchmark",
        }
    }

    /// Where it is.
    #[must_use]
    pub fn find(self) -> Option<PathBuf> {
        on_path(self.program()).into_iter().find(|path| path.is_file())
    }
}

/// What of a phase a tool can do.
struct Job {
    write: bool,
    keys: u32,
    value_bytes: usize,
}

fn job(stage: &Stage<'_>, phase: &Phase) -> Result<Job, CellError> {
    let cannot = |text: &str| CellError::Cannot(format!("the tool cannot do that: {text}"));
    let Asked::Keyed { space, mix, .. } = &phase.asked else {
        return Err(cannot("it only sets and gets random keys"));
    };
    let write = match mix.as_slice() {
        [(_, Deed::Write)] => true,
        [(_, Deed::Read)] => false,
        _ => return Err(cannot("it only sets or only gets")),
    };
    if phase.connections.is_some() {
        return Err(cannot("each of its users has a connection"));
    }
    let ledger = stage.ledger(space)?.ok_or_else(|| cannot("nothing was filled in"))?;
    Ok(Job { write, keys: ledger.keys(), value_bytes: ledger.value_bytes() })
}

/// Lets the tool do a phase.
///
/// # Errors
/// [`CellError::Cannot`] where it is not here, or cannot; [`CellError::Broken`] where it fails.
pub fn measure(tool: Tool, stage: &Stage<'_>, phase: &Phase) -> Result<Round, CellError> {
    let cannot = CellError::Cannot;
    let program = tool
        .find()
        .ok_or_else(|| cannot(format!("{} not found; {}", tool.program(), tool.install())))?;
    let speaks = match stage.subject {
        Subject::Found(found) => found.system.driver() == DriverKind::Resp,
        Subject::Attached(attached) => {
            if attached.target.tls.is_some() || attached.has_login() {
                return Err(cannot("the tool is used without TLS and password".to_owned()));
            }
            true
        }
    };
    if !speaks {
        return Err(cannot(format!("{} speaks Redis' protocol only", tool.program())));
    }
    let job = job(stage, phase)?;
    let address = stage.target.address;
    let mut words = vec![program.display().to_string()];
    // Long enough for the time that was asked for, at a guess that the first run corrects.
    let mut requests = 20_000u64;
    loop {
        words.truncate(1);
        words.extend(arguments(tool, address, phase, &job, requests, stage.bench.measured));
        let before = stage.instance.as_ref().map(Instance::usage);
        let began = std::time::Instant::now();
        let output = cores::pinned_to(&stage.bench.cores.load, || {
            Command::new(&words[0]).args(&words[1..]).output()
        });
        let output = match output {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(CellError::Broken(format!("{}: {error}", words[0]))),
            Err(error) => return Err(CellError::Broken(format!("{}: {error}", words[0]))),
        };
        let elapsed = began.elapsed();
        let after = stage.instance.as_ref().map(Instance::usage);
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(CellError::Broken(format!("{}: {}: {text}", words[0], output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        if tool == Tool::RedisBenchmark && elapsed < stage.bench.measured && requests < 1 << 40 {
            let share = stage.bench.measured.as_secs_f64() / elapsed.as_secs_f64().max(1e-3);
            requests = (requests as f64 * (share * 1.1).clamp(1.5, 50.0)) as u64;
            continue;
        }
        let told = match tool {
            Tool::RedisBenchmark => redis_benchmark(&text),
            Tool::Memtier => memtier(&text),
        };
        let (per_second, latency_us) = told.ok_or_else(|| {
            CellError::Broken(format!("{} said what the lab cannot read: {text}", words[0]))
        })?;
        let seconds = elapsed.as_secs_f64();
        let operations = match tool {
            Tool::RedisBenchmark => requests,
            Tool::Memtier => (per_second * stage.bench.measured.as_secs_f64()) as u64,
        };
        let used = before.zip(after).map(|(before, after)| {
            let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / operations as f64;
            (
                each(after.user.saturating_sub(before.user)),
                each(after.system.saturating_sub(before.system)),
            )
        });
        return Ok(Round {
            seconds,
            operations,
            per_second,
            cpu_user_us: used.map(|(user, _)| user),
            cpu_system_us: used.map(|(_, system)| system),
            rss_bytes: after.map(|after| after.resident_bytes),
            disk_written_bytes: before.zip(after).map(|(before, after)| {
                after.disk_written_bytes.saturating_sub(before.disk_written_bytes)
            }),
            latency_us: Some(latency_us),
            load_limited: false,
            // The tool does not tell how busy it was.
            load_busy: f64::NAN,
            server_busy: used.map_or(f64::NAN, |(user, system)| {
                (user + system) * operations as f64 / 1e6 / seconds
            }),
            extra: Default::default(),
        });
    }
}

fn arguments(
    tool: Tool,
    address: std::net::SocketAddr,
    phase: &Phase,
    job: &Job,
    requests: u64,
    time: std::time::Duration,
) -> Vec<String> {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let (users, depth) = (phase.users.to_string(), phase.depth.to_string());
    let (keys, bytes) = (job.keys.to_string(), job.value_bytes.to_string());
    let words: Vec<String> = match tool {
        Tool::RedisBenchmark => [
            "-h",
            &host,
            "-p",
            &port,
            "-c",
            &users,
            "-P",
            &depth,
            "-r",
            &keys,
            "-d",
            &bytes,
            "-n",
            &requests.to_string(),
            "-t",
            if job.write { "set" } else { "get" },
            "--csv",
        ]
        .map(str::to_owned)
        .into(),
        Tool::Memtier => [
            "--server",
            &host,
            "--port",
            &port,
            "--protocol",
            "redis",
            "--threads",
            "1",
            "--clients",
            &users,
            "--pipeline",
            &depth,
            "--key-maximum",
            &keys,
            "--data-size",
            &bytes,
            "--test-time",
            &time.as_secs().max(1).to_string(),
            "--ratio",
            if job.write { "1:0" } else { "0:1" },
            "--hide-histogram",
            "--json-out-file",
            "/dev/stdout",
        ]
        .map(str::to_owned)
        .into(),
    };
    words
}

/// The last line of its CSV: name, requests a second, then latencies in milliseconds: average, least,
/// 50, 95 and 99 %, most.
fn redis_benchmark(text: &str) -> Option<(f64, Percentiles)> {
    let line = text.lines().rfind(|line| line.starts_with('"') && !line.contains("rps"))?;
    let cells: Vec<f64> = line
        .split(',')
        .skip(1)
        .map(|cell| cell.trim().trim_matches('"').parse().ok())
        .collect::<Option<_>>()?;
    let [per_second, _, _, p50, p95, p99, max] = cells.as_slice() else { return None };
    let nan = f64::NAN;
    let latency = Percentiles {
        p50: p50 * 1e3,
        p90: nan,
        p99: p99 * 1e3,
        p999: nan,
        p9999: nan,
        max: max * 1e3,
        curve: vec![(50.0, p50 * 1e3), (95.0, p95 * 1e3), (99.0, p99 * 1e3), (100.0, max * 1e3)],
    };
    Some((*per_second, latency))
}

/// The totals of its JSON.
fn memtier(text: &str) -> Option<(f64, Percentiles)> {
    let start = text.find('{')?;
    let json: serde_json::Value =
        serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok()?;
    let totals = &json["ALL STATS"]["Totals"];
    let per_second = totals["Ops/sec"].as_f64()?;
    let at =
        |name: &str| totals["Percentile Latencies"][name].as_f64().map_or(f64::NAN, |ms| ms * 1e3);
    let latency = Percentiles {
        p50: at("p50.00"),
        p90: f64::NAN,
        p99: at("p99.00"),
        p999: at("p99.90"),
        p9999: f64::NAN,
        max: totals["Max Latency"].as_f64().map_or(f64::NAN, |ms| ms * 1e3),
        curve: vec![(50.0, at("p50.00")), (99.0, at("p99.00")), (99.9, at("p99.90"))],
    };
    Some((per_second, latency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                   \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"SET\",\"120481.93\",\"0.211\",\"0.064\",\"0.207\",\"0.263\",\"0.343\",\"1.007\"\n";
        let (per_second, latency) = redis_benchmark(csv).unwrap();
        assert!((per_second - 120_481.93).abs() < 1e-6);
        assert!((latency.p50 - 207.0).abs() < 1e-6 && (latency.max - 1007.0).abs() < 1e-6);
        assert!(redis_benchmark("ERR").is_none());
        let json = "noise {\"ALL STATS\": {\"Totals\": {\"Ops/sec\": 1000.5, \"Max Latency\": 2.0,
            \"Percentile Latencies\": {\"p50.00\": 0.5, \"p99.00\": 1.0, \"p99.90\": 1.5}}}} tail";
        let (per_second, latency) = memtier(json).unwrap();
        assert!((per_second - 1000.5).abs() < 1e-6 && (latency.p99 - 1000.0).abs() < 1e-6);
    }
}
