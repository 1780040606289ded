//! One system at one setting, started afresh, through all steps of one work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::bench::Bench;
use super::helper::Helper;
use super::progress::Progress;
use super::record::StartedRecord;
use super::subject::{Subject, SubjectSetting};
use super::{tool, watch};
use crate::dialects::Dialect;
use crate::load::driver::{Driver, LoadError};
use crate::load::question::{Asking, Question};
use crate::load::sample::Sample;
use crate::load::stream::{Stream, Target};
use crate::load::workload::Workload;
use crate::measure::usage::Usage;
use crate::operation::OperationKind;
use crate::results::schema::{Percentiles, Round};
use crate::systems::cleanup;
use crate::systems::instance::{Instance, Want};
use crate::systems::system::{Capability, DriverKind, Topology};
use crate::traffic::keyed::Survivors;
use crate::traffic::ledger::Ledger;
use crate::traffic::speaking::Speaking;
use crate::traffic::{Asked, World};
use crate::works::{self, Phase, Plan, Step, Work};

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
    /// What it was told, by each load thread.
    worlds: Vec<World>,
    seed: u64,
    work: &'a Work,
    progress: &'a Progress,
    pass: Pass,
    /// The system's own client, once it is needed; gone before the system is.
    helper: Option<Helper>,
}

/// Servers that recover a data set or wait for a slow disk need long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a reply is waited for where the run's time is limited.
const PATIENCE_WITH_BUDGET: Duration = Duration::from_secs(8);
/// How long a server that is to be killed under load is waited for.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long new keys are written before the kill.
const BEFORE_KILL: Duration = Duration::from_millis(400);
/// Connections to fill a store, or to read all of it.
pub const BULK_USERS: usize = 16;
/// Requests of each of them.
pub const BULK_DEPTH: usize = 64;
/// Requests of each where one carries many elements.
const QUESTIONS_DEPTH: usize = 16;

impl<'a> Stage<'a> {
    /// Starts the subject, does the plan's steps but those of `known_empty` cells and those that it says
    /// it cannot do, and stops it.
    #[must_use]
    #[allow(clippy::too_many_arguments, reason = "all of a pass, named by its one caller")]
    pub fn pass(
        work: &'a Work,
        plan: &Plan,
        subject: &'a Subject,
        setting: &SubjectSetting,
        bench: &'a Bench,
        round: u32,
        progress: &'a Progress,
        known_empty: &[(String, Option<f64>)],
    ) -> Pass {
        let mut outcomes = Vec::new();
        let plan = &without_hopeless(work, plan, subject, known_empty, &mut outcomes);
        if !plan.steps.iter().any(Step::fills_cells) {
            // Nothing to be learnt from it: it need not even start.
            return Pass { started: None, outcomes, ended: None };
        }
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
            worlds: World::shared_by(
                bench.load_threads,
                bench.seed.wrapping_add(u64::from(round) * 1_000_003),
            ),
            seed: bench.seed.wrapping_add(u64::from(round) * 1_000_003),
            work,
            progress,
            pass: Pass { started: Some(record), outcomes, ended: None },
            helper: None,
        };
        stage.do_all(plan);
        drop(stage.helper.take());
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
            self.can_do(kind)?;
        }
        Ok(dialect)
    }

    /// Whether the subject can do operations of this kind.
    ///
    /// # Errors
    /// [`CellError::Cannot`], with why not.
    pub fn can_do(&self, kind: OperationKind) -> Result<(), CellError> {
        self.subject.can_do(kind).map_err(CellError::Cannot)
    }

    /// Does all of `asked`, which ends by itself, unmeasured.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn prepare(&mut self, asked: &Asked) -> Result<(), CellError> {
        if self.has_helper() {
            self.can_all(asked)?;
            return self.helper()?.prepare(asked, BULK_USERS, BULK_DEPTH);
        }
        // Requests that must not be under way together on one connection are sent one by one.
        let depth = if self.subject.can_pipeline().is_ok() { BULK_DEPTH } else { 1 };
        for number in 0..self.worlds.len() {
            let mut dialect = self.dialect_for(asked)?;
            let streams = self.open(BULK_USERS, dialect.as_mut())?;
            let traffic = self.worlds[number].traffic(asked, BULK_USERS, depth);
            let speaking = Speaking::new(dialect, traffic, BULK_USERS, depth);
            let mut driver = Driver::over(streams, BULK_USERS, self.bench.waiting, speaking)?;
            let day = Duration::from_secs(86_400);
            driver.run_while(day, cleanup::go_on())?;
            if cleanup::is_ending() {
                return Err(CellError::Interrupted);
            }
        }
        Ok(())
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
        if self.has_helper() {
            return self.measure_by_helper(phase);
        }
        let mut dialect = self.dialect_for(&phase.asked)?;
        let connections = phase.connections.unwrap_or(phase.users).min(phase.users);
        if phase.depth > 1 || phase.users > connections {
            self.subject.can_pipeline().map_err(CellError::Cannot)?;
        }
        // One connection is one thread's, and a scan must know all keys that it passes.
        if self.worlds.len() > 1 && connections >= self.worlds.len() && !phase.asked.scans() {
            return self.measure_by_threads(phase, connections);
        }
        let streams = self.open(connections, dialect.as_mut())?;
        self.measure_over(phase, dialect, streams)
    }

    /// Whether a client of the system's own puts the load on it.
    fn has_helper(&self) -> bool {
        matches!(self.subject, Subject::Found(found) if found.system.driver() == DriverKind::Helper)
    }

    fn can_all(&self, asked: &Asked) -> Result<(), CellError> {
        asked.kinds().into_iter().try_for_each(|kind| self.can_do(kind))
    }

    /// The running client, started if it is not.
    fn helper(&mut self) -> Result<&mut Helper, CellError> {
        if self.helper.is_none() {
            let Subject::Found(found) = self.subject else {
                return Err(CellError::Cannot("attached: no client of its own".to_owned()));
            };
            let (address, seed) = (self.target.address, self.bench.seed);
            let process = found.system.helper(&found.program, address, seed);
            self.helper = Some(Helper::start(&process.map_err(CellError::Cannot)?, self.bench)?);
        }
        let none = || CellError::Broken("the client's helper is gone".to_owned());
        self.helper.as_mut().ok_or_else(none)
    }

    fn measure_by_helper(&mut self, phase: &Phase) -> Result<Round, CellError> {
        self.can_all(&phase.asked)?;
        // Where a connection takes one request at a time, a client has as many as there are users.
        let shares = self.subject.can_pipeline();
        if phase.connections.is_some() {
            shares.map_err(CellError::Cannot)?;
        } else if self.work.name == works::connections::WORK.name && shares.is_ok() {
            let text = "all users of its client share a connection: that is the work `shared`";
            return Err(CellError::Cannot(text.to_owned()));
        }
        self.helper()?;
        let (instance, bench) = (&self.instance, self.bench);
        let Some(helper) = &mut self.helper else {
            return Err(CellError::Broken("the client's helper is gone".to_owned()));
        };
        let usage = || instance.as_ref().map(Instance::usage);
        let measured = helper.measure(phase, bench, usage)?;
        if measured.sample.replies == 0 {
            let text = format!("answered nothing in {:?}", measured.sample.elapsed);
            return Err(CellError::Broken(text));
        }
        let own = measured.own.as_secs_f64() / measured.sample.elapsed.as_secs_f64();
        let load_busy = own / bench.cores.load.len().max(1) as f64;
        let mut round = round_of(&measured.sample, measured.usage, phase.counts_as, load_busy);
        let cores = bench.cores.server.len().max(1) as f64;
        round.load_limited = load_busy > 0.9 && round.server_busy < 0.9 * cores;
        if bench.rate.is_some() {
            round.extra.insert("behind_ms".to_owned(), measured.behind.as_secs_f64() * 1e3);
        }
        Ok(round)
    }

    /// As [`Self::measure`], in this dialect and over these connections, which may lead to different
    /// nodes: user `number` speaks on connection `number` modulo their count. On one thread.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure_over(
        &mut self,
        phase: &Phase,
        dialect: Box<dyn Dialect>,
        streams: Vec<Stream>,
    ) -> Result<Round, CellError> {
        // No keys come after the last one's: a scan that runs off its end finds what it should.
        let (last, pids) = (self.worlds.len() - 1, self.pids());
        let warm_up = self.warm_up(phase);
        let world = &mut self.worlds[last];
        let traffic = world.traffic(&phase.asked, phase.users, phase.depth);
        let speaking = Speaking::new(dialect, traffic, phase.users, phase.depth);
        let users = 0..phase.users;
        let driver = paced(self.bench, phase, users, streams, speaking)?;
        watch::watch(self.bench, warm_up, &pids, phase.counts_as, driver)
    }

    /// Several threads, each with its part of the users and of the keys.
    fn measure_by_threads(
        &mut self,
        phase: &Phase,
        connections: usize,
    ) -> Result<Round, CellError> {
        let threads = self.worlds.len();
        let mut parts: Vec<watch::LoadThread<'_>> = Vec::new();
        let mut opened = Vec::new();
        for number in 0..threads {
            let mut dialect = self.dialect_for(&phase.asked)?;
            let streams =
                self.open(part_of(connections, number, threads).len(), dialect.as_mut())?;
            opened.push((dialect, streams));
        }
        let (bench, asked, pids) = (self.bench, &phase.asked, self.pids());
        let warm_up = self.warm_up(phase);
        for (number, (world, (dialect, streams))) in self.worlds.iter_mut().zip(opened).enumerate()
        {
            let users = part_of(phase.users, number, threads);
            parts.push(Box::new(move |share| {
                let traffic = world.traffic(asked, users.len(), phase.depth);
                let speaking = Speaking::new(dialect, traffic, users.len(), phase.depth);
                share.run(paced(bench, phase, users, streams, speaking))
            }));
        }
        watch::watch_threads(bench, warm_up, &pids, phase.counts_as, parts)
    }

    /// What goes before a phase's measurement.
    const fn warm_up(&self, phase: &Phase) -> Duration {
        if phase.asked.ends() { Duration::ZERO } else { self.bench.warm_up }
    }

    /// The system's processes; none are known of one that is attached.
    fn pids(&self) -> Vec<u32> {
        self.instance.as_ref().map(Instance::pids).unwrap_or_default()
    }

    /// Another server like the stage's own, empty; `None` where the lab started none.
    ///
    /// # Errors
    /// [`CellError::Broken`] when it does not come up.
    pub fn another(&self) -> Result<Option<Instance>, CellError> {
        let (Subject::Found(found), Some(own)) = (self.subject, &self.instance) else {
            return Ok(None);
        };
        let cores = &self.bench.cores.server;
        Instance::start(found, &own.want, &self.bench.data_root, cores, PATIENCE)
            .map(Some)
            .map_err(|error| CellError::Broken(error.to_string()))
    }

    /// What is being done, for whoever watches.
    pub fn doing(&self, what: &str) {
        self.progress.doing(what);
    }

    /// Another seed for another stretch of chance, the same for all systems of a round.
    pub fn next_seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(1);
        self.seed
    }

    /// Lets a workload in RESP run to its end, unmeasured: `users` users with a connection each.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn run_resp<W: Workload>(&self, users: usize, workload: W) -> Result<(), CellError> {
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = self.open(users, dialect.as_mut())?;
        let mut driver = Driver::over(streams, users, self.bench.waiting, workload)?;
        driver.run_while(Duration::from_secs(86_400), cleanup::go_on())?;
        if cleanup::is_ending() { Err(CellError::Interrupted) } else { Ok(()) }
    }

    /// Measures any workload in RESP: `users` users with a connection each.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure_resp<W: Workload>(
        &mut self,
        users: usize,
        workload: W,
    ) -> Result<Round, CellError> {
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = self.open(users, dialect.as_mut())?;
        let driver = Driver::over(streams, users, self.bench.waiting, workload)?;
        watch::watch(self.bench, self.bench.warm_up, &self.pids(), 1, driver)
    }

    /// Asks `question` about everything that it can be about, once, in RESP, unmeasured.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn ask_all(&self, users: usize, question: impl Question) -> Result<(), CellError> {
        self.run_resp(users, Asking::all_in_order(question, QUESTIONS_DEPTH))
    }

    /// Writes new keys until a `kill -9`, starts the system again, and counts the acknowledged keys
    /// that it lost.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn crash(&mut self, users: usize, value_bytes: usize) -> Result<Round, CellError> {
        const SPACE: &str = "crash";
        if let Some(instance) = &self.instance {
            instance.system.can(Capability::Restart).map_err(CellError::Cannot)?;
        }
        let asked = Asked::Insert { space: SPACE, value_bytes };
        let mut dialect = self.dialect_for(&asked)?;
        let streams = self.open(users, dialect.as_mut())?;
        let Some(instance) = &mut self.instance else {
            return Err(CellError::Cannot("attached: not ours to kill".to_owned()));
        };
        let began = Instant::now();
        {
            let traffic = self.worlds[0].traffic(&asked, users, 1);
            let speaking = Speaking::new(dialect, traffic, users, 1);
            let mut driver = Driver::over(streams, users, self.bench.waiting, speaking)?;
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
                Err(error) => return Err(error.into()),
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let restart = instance.restart().map_err(|error| CellError::Broken(error.to_string()))?;
        let Some(ledger) = self.worlds[0].ledger(SPACE) else {
            return Err(CellError::Broken("nothing was written before the kill".to_owned()));
        };
        let acknowledged = ledger.acknowledged_keys();
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = self.open(BULK_USERS, dialect.as_mut())?;
        let mut survivors = Survivors::new(ledger, BULK_USERS * BULK_DEPTH);
        let speaking = Speaking::new(dialect, Box::new(&mut survivors), BULK_USERS, BULK_DEPTH);
        let mut driver = Driver::over(streams, BULK_USERS, self.bench.waiting, speaking)?;
        driver.run_to_end()?;
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

    /// The keys of a space, where any were written and one thread knows them all.
    ///
    /// # Errors
    /// [`CellError::Cannot`] where there are several load threads.
    pub fn ledger(&self, space: &str) -> Result<Option<&Ledger>, CellError> {
        match self.worlds.as_slice() {
            [world] => Ok(world.ledger(space)),
            _ => Err(CellError::Cannot("not with several load threads".to_owned())),
        }
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
            attached.begin_pass().map_err(CellError::Broken)?;
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

/// A driver for the users `users` of a phase, who keep to the run's rate, if there is one.
fn paced<W: Workload>(
    bench: &Bench,
    phase: &Phase,
    users: std::ops::Range<usize>,
    streams: Vec<Stream>,
    workload: W,
) -> Result<Driver<W>, CellError> {
    let mut driver = Driver::over(streams, users.len(), bench.waiting, workload)?;
    if bench.budget.is_some() {
        driver.set_patience(PATIENCE_WITH_BUDGET);
    }
    if let Some(rate) = bench.rate {
        let interval = Duration::from_secs_f64((phase.users * phase.depth) as f64 / rate);
        for (place, user) in users.enumerate() {
            let offset = interval.mul_f64(user as f64 / phase.users as f64);
            driver.pace(place, interval, offset);
        }
    }
    Ok(driver)
}

/// The part `number` of `parts` of `count` things, as even as it can be.
fn part_of(count: usize, number: usize, parts: usize) -> std::ops::Range<usize> {
    count * number / parts..count * (number + 1) / parts
}

impl From<LoadError> for CellError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Wrong { .. } => Self::Wrong(error.to_string()),
            LoadError::Stalled(..) | LoadError::Closed(_) => {
                Self::Broken(format!("broke off: {error}"))
            }
            LoadError::Opening(_) | LoadError::Io(_) => Self::Broken(error.to_string()),
        }
    }
}

/// The plan without the steps that leave their cells empty whatever happens: cells that stayed empty in
/// an earlier round, and what the subject says that it cannot do, with the reason.
fn without_hopeless(
    work: &Work,
    plan: &Plan,
    subject: &Subject,
    known_empty: &[(String, Option<f64>)],
    outcomes: &mut Vec<CellOutcome>,
) -> Plan {
    let cannot =
        |asked: &Asked| asked.kinds().into_iter().find_map(|kind| subject.can_do(kind).err());
    let is_known = |part: &str, x: Option<f64>| {
        known_empty.iter().any(|known| (known.0.as_str(), known.1) == (part, x))
    };
    let mut steps = Vec::new();
    let mut reason_for_all = match subject {
        Subject::Found(found) => found.system.can(Capability::Nodes(work.topology)).err(),
        Subject::Attached(_) => None,
    };
    if work.name == "web" && !subject.speaks(DriverKind::Http) {
        reason_for_all = Some("it speaks no HTTP".to_owned());
    }
    for step in &plan.steps {
        let reason = reason_for_all.clone().or_else(|| match step {
            Step::Prepare(asked) => cannot(asked),
            Step::Measure(phase) => cannot(&phase.asked),
            Step::Crash { .. } => None,
            Step::Custom(custom) => {
                let other = custom.only.is_some_and(|driver| !subject.speaks(driver));
                other.then(|| "only driven in Redis' protocol".to_owned())
            }
        });
        if let Some(reason) = reason {
            empty_cells(std::slice::from_ref(step), &reason, outcomes);
            if matches!(step, Step::Prepare(_)) {
                // What prepares the others is theirs as well.
                reason_for_all = Some(reason);
            }
            continue;
        }
        let known = match step {
            Step::Prepare(_) => false,
            Step::Measure(phase) => is_known(&phase.part, phase.x),
            Step::Crash { part, .. } => is_known(part, None),
            Step::Custom(custom) => custom.parts.iter().all(|part| is_known(part, None)),
        };
        if !known {
            steps.push(step.clone());
        }
    }
    Plan { parts: plan.parts.clone(), steps }
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
    Percentiles {
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p999: at(99.9),
        p9999: at(99.99),
        max: short(all.max() as f64 / 1e3),
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

    #[test]
    fn parts_of_threads_are_all_of_it_and_even() {
        for (count, parts) in [(5, 2), (100, 7), (3, 3)] {
            let ranges: Vec<_> = (0..parts).map(|number| part_of(count, number, parts)).collect();
            assert_eq!(ranges.iter().map(ExactSizeIterator::len).sum::<usize>(), count);
            assert!(ranges.iter().all(|range| range.len().abs_diff(count / parts) <= 1));
        }
    }
}
