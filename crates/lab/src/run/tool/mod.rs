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

pub mod figures;
pub mod k6;
pub mod keys_of_users;
pub mod memtier;
pub mod random_keys;
pub mod redis_benchmark;
pub mod wrk;

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use super::cell::CellError;
use super::load_tool::Tool;
use super::stage::Stage;
use crate::measure::cores;
use crate::measure::usage::Usage;
use crate::results::schema::Round;
use crate::run::subject::Subject;
use crate::systems::instance::Instance;
use crate::systems::system::DriverKind;
use crate::work::Phase;
use figures::ToolFigures;

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
    let job = keys_of_users::job(phase)?;
    let prepared = match tool {
        Tool::K6 => k6::prepare(stage, phase, &job)?,
        _ => wrk::prepare(stage, phase, &job)?,
    };
    let folder = tempfile::Builder::new().prefix("ladon-lab-").tempdir()?;
    let (name, text) = prepared.script;
    let script = folder.path().join(name);
    std::fs::write(&script, text)?;
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
