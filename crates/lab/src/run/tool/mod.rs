//! Other load generators in place of the lab's own: what a published test used, with its options.
//!
//! | tool | what it can do | checks answers |
//! |---|---|---|
//! | redis-benchmark, memtier | set or get random keys, RESP ([`random_keys`]) | no |
//! | k6 | set, get, delete by user and iteration, RESP ([`keys_of_users`]) | yes |
//! | wrk | write or read over HTTP ([`keys_of_users`]) | yes |
//!
//! Their figures are for comparison with published ones, never with the lab's own. The tool's own
//! CPU use is shown with each: the published k6 tests measured k6.

pub mod k6;
pub mod keys_of_users;
pub mod memtier;
pub mod random_keys;
pub mod redis_benchmark;
pub mod wrk;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

use super::cell::CellError;
use super::stage::Stage;
use crate::measure::cores;
use crate::measure::usage::Usage;
use crate::results::schema::{Percentiles, Round};
use crate::run::subject::Subject;
use crate::systems::instance::Instance;
use crate::systems::program_paths::on_path;
use crate::systems::system::DriverKind;
use crate::work::Phase;

/// A load generator that may be on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `redis-benchmark`.
    RedisBenchmark,
    /// `memtier_benchmark`, as the Dragonfly test used it.
    Memtier,
    /// `k6`, as the tests of Redis, Tarantool and Hazelcast used it.
    K6,
    /// `wrk`, as the test of Go with LevelDB used it.
    Wrk,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::RedisBenchmark, Self::Memtier, Self::K6, Self::Wrk];

    /// The program.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::RedisBenchmark => "redis-benchmark",
            Self::Memtier => "memtier_benchmark",
            Self::K6 => "k6",
            Self::Wrk => "wrk",
        }
    }

    /// What it says when it is asked for its version: the first line. wrk says it and then fails,
    /// as it was given nothing to do.
    #[must_use]
    pub fn version(self) -> Option<String> {
        let question = match self {
            Self::K6 => "version",
            Self::RedisBenchmark | Self::Memtier | Self::Wrk => "--version",
        };
        let output = Command::new(self.find()?).arg(question).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    /// How to get it.
    #[must_use]
    pub const fn install(self) -> &'static str {
        match self {
            Self::RedisBenchmark => "apt-get install redis-tools",
            Self::Memtier => {
                "curl -fsSL https://packages.redis.io/gpg | gpg --dearmor -o \
                 /usr/share/keyrings/redis.gpg && echo \"deb [signed-by=/usr/share/keyrings/redis.gpg] \
                 https://packages.redis.io/deb $(lsb_release -cs) main\" \
                 >/etc/apt/sources.list.d/redis.list && apt-get update && apt-get install \
                 memtier-benchmark"
            }
            Self::K6 => {
                "GOBIN=/usr/local/bin go install go.k6.io/k6@latest (Go from https://go.dev/dl)"
            }
            Self::Wrk => "apt-get install wrk",
        }
    }

    /// Where it is.
    #[must_use]
    pub fn find(self) -> Option<PathBuf> {
        on_path(self.program()).into_iter().find(|path| path.is_file())
    }

    /// The protocol that it speaks.
    const fn speaks(self) -> DriverKind {
        match self {
            Self::RedisBenchmark | Self::Memtier | Self::K6 => DriverKind::Resp,
            Self::Wrk => DriverKind::Http,
        }
    }
}

/// A script of the lab's and how the tool is started with it: `before SCRIPT after`.
pub struct Prepared {
    /// Its file's name and text.
    pub script: (&'static str, &'static str),
    /// Arguments before the script's path.
    pub before: Vec<String>,
    /// Arguments after it.
    pub after: Vec<String>,
    /// What else it is told.
    pub environment: Vec<(String, String)>,
}

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
fn latency(p50: f64, p90: f64, p99: f64, p999: f64, p9999: f64, max: f64) -> Percentiles {
    let all = [(50.0, p50), (90.0, p90), (99.0, p99), (99.9, p999), (99.99, p9999), (100.0, max)];
    let curve = all.into_iter().filter(|(_, us)| us.is_finite()).collect();
    Percentiles { p50, p90, p99, p999, p9999, max, curve }
}

/// Lets the tool do a phase.
///
/// # Errors
/// [`CellError::Cannot`] where it is not here, or cannot; [`CellError::Wrong`] where its script saw
/// a wrong answer; [`CellError::Broken`] where it fails.
pub fn measure(tool: Tool, stage: &Stage<'_>, phase: &Phase) -> Result<Round, CellError> {
    let cannot = CellError::Cannot;
    let program = tool
        .find()
        .ok_or_else(|| cannot(format!("{} not found; {}", tool.program(), tool.install())))?;
    let spoken = match stage.subject {
        Subject::Found(found) => found.system.driver(),
        Subject::Attached(attached) => {
            if attached.target.tls.is_some() || attached.has_login() {
                return Err(cannot("the tool is used without TLS and password".to_owned()));
            }
            attached.driver()
        }
    };
    if spoken != tool.speaks() {
        let protocol = if tool.speaks() == DriverKind::Http { "HTTP" } else { "Redis' protocol" };
        return Err(cannot(format!("{} speaks {protocol} only", tool.program())));
    }
    match tool {
        Tool::RedisBenchmark | Tool::Memtier => with_random_keys(tool, &program, stage, phase),
        Tool::K6 | Tool::Wrk => with_a_script(tool, &program, stage, phase),
    }
}

fn with_random_keys(
    tool: Tool,
    program: &Path,
    stage: &Stage<'_>,
    phase: &Phase,
) -> Result<Round, CellError> {
    let job = random_keys::job(stage, phase)?;
    let (address, time) = (stage.target.address, stage.bench.measured());
    // Long enough for the time that was asked for, at a guess that the first run corrects.
    let mut requests = 20_000u64;
    loop {
        let mut command = Command::new(program);
        command.args(match tool {
            Tool::RedisBenchmark => redis_benchmark::arguments(address, phase, &job, requests),
            _ => memtier::arguments(address, phase, &job, time),
        });
        let done = Done::by(command, stage)?;
        if tool == Tool::RedisBenchmark && done.elapsed < time && requests < 1 << 40 {
            let share = time.as_secs_f64() / done.elapsed.as_secs_f64().max(1e-3);
            requests = (requests as f64 * (share * 1.1).clamp(1.5, 50.0)) as u64;
            continue;
        }
        return done.round(stage, |text| match tool {
            Tool::RedisBenchmark => redis_benchmark::parsed(text, requests),
            _ => memtier::parsed(text, time),
        });
    }
}

fn with_a_script(
    tool: Tool,
    program: &Path,
    stage: &Stage<'_>,
    phase: &Phase,
) -> Result<Round, CellError> {
    let broken = |error: std::io::Error| CellError::Broken(error.to_string());
    let job = keys_of_users::job(phase)?;
    let prepared = match tool {
        Tool::K6 => k6::prepare(stage, phase, &job)?,
        _ => wrk::prepare(stage, phase, &job)?,
    };
    let folder = tempfile::Builder::new().prefix("ladon-lab-").tempdir().map_err(broken)?;
    let (name, text) = prepared.script;
    let script = folder.path().join(name);
    std::fs::write(&script, text).map_err(broken)?;
    let mut command = Command::new(program);
    command.args(prepared.before).arg(script).args(prepared.after).envs(prepared.environment);
    Done::by(command, stage)?.round(stage, if tool == Tool::K6 { k6::parsed } else { wrk::parsed })
}

/// A tool's run that went well.
struct Done {
    program: String,
    text: String,
    elapsed: Duration,
    /// CPU time of the tool.
    own: Duration,
    /// The system before and after.
    usage: Option<(Usage, Usage)>,
}

impl Done {
    fn by(mut command: Command, stage: &Stage<'_>) -> Result<Self, CellError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let broken = |what: &dyn std::fmt::Display| CellError::Broken(format!("{program}: {what}"));
        let usage = || stage.instance.as_ref().map(Instance::usage);
        let (before, own) = (usage(), children_cpu());
        let began = Instant::now();
        let output = cores::pinned_to(&stage.bench.cores.load, || command.output());
        let output: Output =
            output.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
        let elapsed = began.elapsed();
        let (after, own) = (usage(), children_cpu().saturating_sub(own));
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(broken(&format!("{}: {text}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Self { program, text, elapsed, own, usage: before.zip(after) })
    }

    fn round(
        self,
        stage: &Stage<'_>,
        read: impl Fn(&str) -> Option<ToolFigures>,
    ) -> Result<Round, CellError> {
        let Self { program, text, elapsed, own, usage } = self;
        let told = read(&text).ok_or_else(|| {
            CellError::Broken(format!("{program} said what the lab cannot read: {text}"))
        })?;
        if told.wrong > 0 {
            let text = format!("{program} saw {} wrong of {}", told.wrong, told.operations);
            return Err(CellError::Wrong(text));
        }
        if told.failed > 0 || told.operations == 0 {
            let (failed, all) = (told.failed, told.operations);
            return Err(CellError::Broken(format!("{program}: {failed} of {all} failed")));
        }
        let operations = told.operations as f64;
        let used = usage.map(|(before, after)| {
            let each = |time: Duration| time.as_secs_f64() * 1e6 / operations;
            (
                each(after.user.saturating_sub(before.user)),
                each(after.system.saturating_sub(before.system)),
            )
        });
        let wall = elapsed.as_secs_f64();
        let load_busy = own.as_secs_f64() / wall / stage.bench.cores.load.len().max(1) as f64;
        let server_busy =
            used.map_or(f64::NAN, |(user, system)| (user + system) * operations / 1e6 / wall);
        let cores = stage.bench.cores.server.len().max(1) as f64;
        Ok(Round {
            seconds: told.seconds,
            operations: told.operations,
            per_second: operations / told.seconds.max(1e-9),
            cpu_user_us: used.map(|(user, _)| user),
            cpu_system_us: used.map(|(_, system)| system),
            rss_bytes: usage.map(|(_, after)| after.resident_bytes),
            disk_written_bytes: usage.map(|(before, after)| {
                after.disk_written_bytes.saturating_sub(before.disk_written_bytes)
            }),
            latency_us: Some(told.latency_us),
            load_limited: load_busy > 0.9 && server_busy < 0.9 * cores,
            load_busy,
            server_busy,
            extra: Default::default(),
        })
    }
}

/// CPU time of all children that ended: the tool's, as no other ends meanwhile.
fn children_cpu() -> Duration {
    let time = |value: nix::sys::time::TimeVal| {
        Duration::new(value.tv_sec() as u64, value.tv_usec() as u32 * 1000)
    };
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}
