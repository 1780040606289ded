//! One system at one setting, started afresh, through all steps of one work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::bench::Bench;
use super::progress::Progress;
use super::record::StartedRecord;
use super::subject::{Subject, SubjectSetting};
use super::tool;
use crate::dialects::Dialect;
use crate::load::driver::{Driver, LoadError, Waiting};
use crate::load::sample::Sample;
use crate::load::stream::{Stream, Target};
use crate::measure::cpu::waited_for_core;
use crate::measure::usage::Usage;
use crate::operation::OperationKind;
use crate::results::schema::{Percentiles, Round};
use crate::systems::cleanup;
use crate::systems::instance::{Instance, Want};
use crate::systems::system::{Capability, DriverKind, Topology};
use crate::traffic::keyed::Survivors;
use crate::traffic::speaking::Speaking;
use crate::traffic::{Asked, World};
use crate::works::{Phase, Plan, Step, Work};

/// Why a cell has no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The system cannot do that; it goes on with the next step.
    #[error("{0}")]
    Cannot(String),
    /// The system is not usable any more: what comes after stays empty too.
    #[error("{0}")]
    Broken(String),
    /// It answered wrongly: the run ends.
    #[error("{0}")]
    Wrong(String),
    /// The user ended the run.
    #[error("ended by a signal")]
    Interrupted,
}

/// Why a pass must be the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user ended it.
    Interrupted,
    /// A wrong answer.
    Wrong(String),
}

/// Part, place on its axis, and a round or the reason for none.
pub type CellOutcome = (String, Option<f64>, Result<Box<Round>, String>);

/// What one pass brought.
#[derive(Debug, Default)]
pub struct Pass {
    /// How the system was started, if it was.
    pub started: Option<StartedRecord>,
    /// What came out of each cell.
    pub outcomes: Vec<CellOutcome>,
    /// Set when the run must end.
    pub ended: Option<Ended>,
}

/// See the module.
pub struct Stage<'a> {
    /// The surroundings.
    pub bench: &'a Bench,
    /// What is measured.
    pub subject: &'a Subject,
    /// Where it is.
    pub target: Target,
    /// The started system; `None` where the subject runs by itself.
    pub instance: Option<Instance>,
    /// What it was told.
    pub world: World,
    work: &'a Work,
    progress: &'a Progress,
    pass: Pass,
}

/// Servers that recover a data set or wait for a slow disk need long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server that answers nothing at all is waited for.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long new keys are written before the kill.
const BEFORE_KILL: Duration = Duration::from_millis(400);
/// Connections and requests of each to fill a store, or to read all of it.
const BULK_USERS: usize = 16;
const BULK_DEPTH: usize = 64;

impl<'a> Stage<'a> {
    /// Starts the subject, does the plan's steps, and stops it.
    #[must_use]
    pub fn pass(
        work: &'a Work,
        plan: &Plan,
        subject: &'a Subject,
        setting: &SubjectSetting,
        bench: &'a Bench,
        round: u32,
        progress: &'a Progress,
    ) -> Pass {
        let mut outcomes = Vec::new();
        let started = match start(work, subject, setting, bench) {
            Ok(started) => started,
            Err(error) => {
                let reason = error.to_string();
                fill_empty(plan, 0, &reason, &mut outcomes);
                let interrupted = cleanup::is_ending().then_some(Ended::Interrupted);
                return Pass { started: None, outcomes, ended: interrupted };
            }
        };
        let (target, instance) = started;
        let record = started_record(subject, instance.as_ref());
        let mut stage = Self {
            bench,
            subject,
            target,
            instance,
            // Each round another chance, each system of a round the same.
            world: World::new(bench.seed.wrapping_add(u64::from(round) * 1_000_003)),
            work,
            progress,
            pass: Pass { started: Some(record), outcomes, ended: None },
        };
        stage.do_all(plan);
        stage.pass
    }

    fn do_all(&mut self, plan: &Plan) {
        for (index, step) in plan.steps.iter().enumerate() {
            let result = self.do_step(step);
            let Err(error) = result else { continue };
            let error = if cleanup::is_ending() { CellError::Interrupted } else { error };
            match &error {
                CellError::Cannot(reason) => {
                    let reason = reason.clone();
                    // What prepares the others is theirs as well.
                    let until =
                        if matches!(step, Step::Prepare(_)) { plan.steps.len() } else { index + 1 };
                    empty_cells(&plan.steps[index..until], &reason, &mut self.pass.outcomes);
                    if until == plan.steps.len() {
                        return;
                    }
                }
                CellError::Broken(reason) => {
                    fill_empty(plan, index, reason, &mut self.pass.outcomes);
                    return;
                }
                CellError::Wrong(what) => {
                    self.pass.ended = Some(Ended::Wrong(what.clone()));
                    let reason = format!("wrong answer: {what}");
                    fill_empty(plan, index, &reason, &mut self.pass.outcomes);
                    return;
                }
                CellError::Interrupted => {
                    self.pass.ended = Some(Ended::Interrupted);
                    return;
                }
            }
        }
    }

    fn do_step(&mut self, step: &Step) -> Result<(), CellError> {
        if cleanup::is_ending() {
            return Err(CellError::Interrupted);
        }
        match step {
            Step::Prepare(asked) => {
                self.progress.doing("prepares");
                self.prepare(asked)
            }
            Step::Measure(phase) => {
                self.progress.doing(&phase.part);
                let round = self.measure(phase)?;
                self.put(&phase.part, phase.x, round);
                Ok(())
            }
            Step::Crash { part, users, value_bytes } => {
                self.progress.doing("kill -9");
                let round = self.crash(*users, *value_bytes)?;
                self.put(part, None, round);
                Ok(())
            }
            Step::Custom(custom) => {
                self.progress.doing(custom.parts.first().copied().unwrap_or_default());
                (custom.run)(self)
            }
        }
    }

    /// Puts a round into a cell of this system.
    pub fn put(&mut self, part: &str, x: Option<f64>, round: Round) {
        self.progress.saw(brief(part, x, &round));
        self.pass.outcomes.push((part.to_owned(), x, Ok(Box::new(round))));
    }

    /// Leaves a cell of this system empty, with the reason.
    pub fn leave_empty(&mut self, part: &str, x: Option<f64>, reason: &str) {
        self.pass.outcomes.push((part.to_owned(), x, Err(reason.to_owned())));
    }

    /// What speaks to the subject, if it can do all of `asked`.
    ///
    /// # Errors
    /// [`CellError::Cannot`], with what it cannot do.
    pub fn dialect_for(&self, asked: &Asked) -> Result<Box<dyn Dialect>, CellError> {
        let dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        for kind in asked.kinds() {
            dialect.can(kind).map_err(CellError::Cannot)?;
            self.can_do(kind)?;
        }
        Ok(dialect)
    }

    /// Whether the subject can do operations of this kind.
    ///
    /// # Errors
    /// [`CellError::Cannot`], with why not.
    pub fn can_do(&self, kind: OperationKind) -> Result<(), CellError> {
        match self.subject {
            Subject::Found(found) => found.system.can_do(kind).map_err(CellError::Cannot),
            Subject::Attached(attached) => attached.dialect().can(kind).map_err(CellError::Cannot),
        }
    }

    /// Whether the subject takes several requests of one connection at a time.
    ///
    /// # Errors
    /// [`CellError::Cannot`], with why not.
    fn can_pipeline(&self) -> Result<(), CellError> {
        match self.subject {
            Subject::Found(found) => found.system.can_pipeline().map_err(CellError::Cannot),
            Subject::Attached(_) => Ok(()),
        }
    }

    /// Does all of `asked`, which ends by itself, unmeasured.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn prepare(&mut self, asked: &Asked) -> Result<(), CellError> {
        let mut dialect = self.dialect_for(asked)?;
        let streams = self.open(BULK_USERS, dialect.as_mut())?;
        let mut traffic = self.world.traffic(asked, BULK_USERS, BULK_DEPTH);
        let speaking = Speaking::new(dialect, traffic.as_mut(), BULK_USERS, BULK_DEPTH);
        let mut driver =
            Driver::over(streams, BULK_USERS, self.bench.waiting, speaking).map_err(failed)?;
        let day = Duration::from_secs(86_400);
        driver.run_while(day, cleanup::go_on()).map_err(failed)?;
        if cleanup::is_ending() { Err(CellError::Interrupted) } else { Ok(()) }
    }

    /// Connects `connections` times and says what `dialect` says first.
    ///
    /// # Errors
    /// [`CellError::Broken`] when that fails.
    pub fn open(
        &self,
        connections: usize,
        dialect: &mut dyn Dialect,
    ) -> Result<Vec<Stream>, CellError> {
        let open = |number| {
            Stream::open(&self.target, dialect).map_err(|error| {
                CellError::Broken(format!("connection {number} of {connections}: {error}"))
            })
        };
        (0..connections).map(open).collect()
    }

    /// What all processes of the system have used so far; nothing is known of one that is attached.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.instance.as_ref().map(Instance::usage)
    }

    /// Puts a phase on the system and looks at clock, CPU and replies at the same moments.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure(&mut self, phase: &Phase) -> Result<Round, CellError> {
        if let Some(tool) = self.bench.tool {
            return tool::measure(tool, self, phase);
        }
        let mut dialect = self.dialect_for(&phase.asked)?;
        let connections = phase.connections.unwrap_or(phase.users).min(phase.users);
        if phase.depth > 1 || phase.users > connections {
            self.can_pipeline()?;
        }
        let streams = self.open(connections, dialect.as_mut())?;
        self.measure_over(phase, dialect, streams)
    }

    /// As [`Self::measure`], in this dialect and over these connections, which may lead to different
    /// nodes: user `number` speaks on connection `number` modulo their count.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure_over(
        &mut self,
        phase: &Phase,
        dialect: Box<dyn Dialect>,
        streams: Vec<Stream>,
    ) -> Result<Round, CellError> {
        let mut traffic = self.world.traffic(&phase.asked, phase.users, phase.depth);
        let speaking = Speaking::new(dialect, traffic.as_mut(), phase.users, phase.depth);
        let mut driver =
            Driver::over(streams, phase.users, self.bench.waiting, speaking).map_err(failed)?;
        if let Some(rate) = self.bench.rate {
            let interval = Duration::from_secs_f64((phase.users * phase.depth) as f64 / rate);
            for user in 0..phase.users {
                driver.pace(user, interval, interval.mul_f64(user as f64 / phase.users as f64));
            }
        }
        let go_on = cleanup::go_on();
        driver.run_while(self.bench.warm_up, go_on).map_err(failed)?;
        let pids = self.instance.as_ref().map(Instance::pids).unwrap_or_default();
        let waited = || pids.iter().map(|&pid| waited_for_core(pid)).sum::<Duration>();
        let usage = || self.instance.as_ref().map(Instance::usage);
        let (waited_before, before, own_before) = (waited(), usage(), own_cpu());
        let mut sample = driver.run_while(self.bench.measured, go_on).map_err(failed)?;
        // On a machine that others keep busy a short stretch may see no reply at all.
        while sample.replies == 0 && sample.elapsed < SILENCE_MAX && driver.is_under_way() {
            sample.add(&driver.run_while(self.bench.measured, go_on).map_err(failed)?);
            if cleanup::is_ending() {
                return Err(CellError::Interrupted);
            }
        }
        let own = own_cpu().saturating_sub(own_before);
        let (after, waited) = (usage(), waited().saturating_sub(waited_before));
        let behind = driver.behind();
        if cleanup::is_ending() {
            return Err(CellError::Interrupted);
        }
        driver.drain().map_err(failed)?;
        if sample.replies == 0 {
            let text = format!("answered nothing in {:?}", sample.elapsed);
            return Err(CellError::Broken(text));
        }
        let load_busy = match self.bench.waiting {
            Waiting::Spin => sample.busy.as_secs_f64(),
            Waiting::Sleep => own.as_secs_f64(),
        } / sample.elapsed.as_secs_f64();
        let mut round = round_of(&sample, before.zip(after), phase.counts_as, load_busy);
        let waited = waited.as_secs_f64() / round.seconds;
        let cores = self.bench.cores.server.len().max(1) as f64;
        round.load_limited = load_busy > 0.9 && round.server_busy + waited < 0.9 * cores;
        if self.bench.rate.is_some() {
            round.extra.insert("behind_ms".to_owned(), behind.as_secs_f64() * 1e3);
        }
        Ok(round)
    }

    /// Writes new keys until a `kill -9`, starts the system again, and counts the acknowledged keys
    /// that it lost.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn crash(&mut self, users: usize, value_bytes: usize) -> Result<Round, CellError> {
        const SPACE: &str = "crash";
        let asked = Asked::Insert { space: SPACE, value_bytes };
        let mut dialect = self.dialect_for(&asked)?;
        let streams = self.open(users, dialect.as_mut())?;
        let Some(instance) = &mut self.instance else {
            return Err(CellError::Cannot("attached: not ours to kill".to_owned()));
        };
        instance.system.can(Capability::Restart).map_err(CellError::Cannot)?;
        let began = Instant::now();
        {
            let mut traffic = self.world.traffic(&asked, users, 1);
            let speaking = Speaking::new(dialect, traffic.as_mut(), users, 1);
            let mut driver =
                Driver::over(streams, users, self.bench.waiting, speaking).map_err(failed)?;
            let alive = AtomicBool::new(true);
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(BEFORE_KILL);
                    instance.kill();
                    alive.store(false, Ordering::Relaxed);
                });
                driver.run_while(SILENCE_MAX, &alive)
            });
            match ended {
                // That the connections break is what was wanted.
                Ok(_) | Err(LoadError::Closed(_) | LoadError::Io(_)) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let restart = instance.restart().map_err(|error| CellError::Broken(error.to_string()))?;
        let Some(ledger) = self.world.ledger(SPACE) else {
            return Err(CellError::Broken("nothing was written before the kill".to_owned()));
        };
        let acknowledged = ledger.acknowledged_keys();
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = self.open(BULK_USERS, dialect.as_mut())?;
        let mut survivors = Survivors::new(ledger, BULK_USERS * BULK_DEPTH);
        let speaking = Speaking::new(dialect, &mut survivors, BULK_USERS, BULK_DEPTH);
        let mut driver =
            Driver::over(streams, BULK_USERS, self.bench.waiting, speaking).map_err(failed)?;
        driver.run_to_end().map_err(failed)?;
        drop(driver);
        let missing = survivors.missing;
        let extra = [
            ("missing", missing as f64),
            ("acknowledged", acknowledged as f64),
            ("restart_ms", restart.as_secs_f64() * 1e3),
        ];
        Ok(Round {
            seconds,
            operations: acknowledged,
            per_second: acknowledged as f64 / seconds,
            load_busy: f64::NAN,
            server_busy: f64::NAN,
            extra: extra.map(|(key, value)| (key.to_owned(), value)).into(),
            ..Round::default()
        })
    }

    /// The work whose steps these are.
    #[must_use]
    pub const fn work(&self) -> &Work {
        self.work
    }
}

fn start(
    work: &Work,
    subject: &Subject,
    setting: &SubjectSetting,
    bench: &Bench,
) -> Result<(Target, Option<Instance>), CellError> {
    match (subject, setting) {
        (Subject::Found(found), SubjectSetting::Started(setting)) => {
            if work.name == "web" && found.system.driver() != DriverKind::Http {
                return Err(CellError::Cannot("it speaks no HTTP".to_owned()));
            }
            let want = Want {
                topology: work.topology,
                io_threads: bench.cores.server.len(),
                ..Want::new(*setting)
            };
            let instance =
                Instance::start(found, &want, &bench.data_root, &bench.cores.server, PATIENCE)
                    .map_err(|error| CellError::Broken(error.to_string()))?;
            Ok((Target::plain(instance.address()), Some(instance)))
        }
        (Subject::Attached(attached), _) if work.topology == Topology::Single => {
            Ok((attached.target.clone(), None))
        }
        (Subject::Attached(_), _) => {
            let text = "attached: the lab cannot arrange several nodes of it".to_owned();
            Err(CellError::Broken(text))
        }
        (Subject::Found(_), SubjectSetting::AsAttached) => {
            Err(CellError::Broken("a system is started at one of its settings".to_owned()))
        }
    }
}

fn started_record(subject: &Subject, instance: Option<&Instance>) -> StartedRecord {
    let Some(instance) = instance else { return StartedRecord::default() };
    let command_line = instance.command_lines().into_iter().next().unwrap_or_default();
    let values = match subject {
        Subject::Found(found) => found.system.effective_settings(instance.address()),
        Subject::Attached(_) => Ok(Default::default()),
    };
    // A system that does not tell its settings is still measured; the record says why.
    let values =
        values.unwrap_or_else(|error| [("(not told)".to_owned(), error.to_string())].into());
    StartedRecord { command_line, values }
}

/// What ended a load, as a cell's reason.
fn failed(error: LoadError) -> CellError {
    match error {
        LoadError::Wrong { .. } => CellError::Wrong(error.to_string()),
        LoadError::Stalled(..) | LoadError::Closed(_) => {
            CellError::Broken(format!("broke off: {error}"))
        }
        LoadError::Opening(_) | LoadError::Io(_) => CellError::Broken(error.to_string()),
    }
}

fn fill_empty(plan: &Plan, from: usize, reason: &str, outcomes: &mut Vec<CellOutcome>) {
    empty_cells(&plan.steps[from..], reason, outcomes);
}

fn empty_cells(steps: &[Step], reason: &str, outcomes: &mut Vec<CellOutcome>) {
    for step in steps {
        match step {
            Step::Prepare(_) => {}
            Step::Measure(phase) => {
                outcomes.push((phase.part.clone(), phase.x, Err(reason.to_owned())));
            }
            Step::Crash { part, .. } => outcomes.push((part.clone(), None, Err(reason.to_owned()))),
            Step::Custom(custom) => {
                for part in custom.parts {
                    outcomes.push(((*part).to_owned(), None, Err(reason.to_owned())));
                }
            }
        }
    }
}

/// CPU time of the calling thread, which is the load generator.
fn own_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

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
    let each_us = |time: Duration| time.as_secs_f64() * 1e6 / operations.max(1) as f64;
    let used = usage.map(|(before, after)| {
        (after.user.saturating_sub(before.user), after.system.saturating_sub(before.system))
    });
    Round {
        seconds,
        operations,
        per_second: operations as f64 / seconds.max(1e-9),
        cpu_user_us: used.map(|(user, _)| each_us(user)),
        cpu_system_us: used.map(|(_, system)| each_us(system)),
        rss_bytes: usage.map(|(_, after)| after.resident_bytes),
        disk_written_bytes: usage.map(|(before, after)| {
            after.disk_written_bytes.saturating_sub(before.disk_written_bytes)
        }),
        latency_us: Some(percentiles(sample)),
        load_limited: false,
        load_busy,
        server_busy: used
            .map_or(f64::NAN, |(user, system)| (user + system).as_secs_f64() / seconds),
        extra: Default::default(),
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
    let at = |percent: f64| all.value_at_quantile(percent / 100.0) as f64 / 1e3;
    Percentiles {
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p999: at(99.9),
        p9999: at(99.99),
        max: all.max() as f64 / 1e3,
        curve: CURVE.map(|percent| (percent, at(percent))).into(),
    }
}

fn brief(part: &str, x: Option<f64>, round: &Round) -> String {
    let place = x.map(|x| format!(" at {x}")).unwrap_or_default();
    if let Some(missing) = round.extra.get("missing") {
        return format!("{part}{place} {missing} of {} missing", round.operations);
    }
    format!("{part}{place} {:.0} k/s", round.per_second / 1e3)
}
