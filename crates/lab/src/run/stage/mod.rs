//! One system at one setting, started afresh, through the steps of one work.
//!
//! ```text
//!   begin ──> Stage: started, all that prepares done ── step, step, ... (a round), again ──> end
//!     start.rs           skipped_steps.rs (what it cannot do)   measure.rs, crash.rs
//! ```

mod crash;
mod measure;
mod skipped_steps;
mod start;

use std::any::Any;
use std::time::Instant;

use super::bench::Bench;
use super::cell::{CellError, CellOutcome};
use super::helper::Helper;
use super::progress::Progress;
use super::record::StartedRecord;
use super::round::brief;
use super::subject::{Subject, SubjectSetting};
use crate::dialects::Dialect;
use crate::load::stream::Target;
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::systems::cleanup;
use crate::systems::instance::{Instance, Want};
use crate::traffic::ledger::Ledger;
use crate::traffic::{Asked, World};
use crate::work::{Own, Plan, Step, Work};
use skipped_steps::{empty_cells, worth_doing};
use start::PATIENCE;

/// Why a pass must be the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user ended it.
    Interrupted,
    /// A wrong answer.
    Wrong(String),
}

/// What a stage brought since it was last asked.
#[derive(Debug, Default)]
pub struct Brought {
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
    /// State that a work's own steps keep: models of what they loaded.
    pub kept: Option<Box<dyn Any>>,
    /// How it was started.
    pub started: StartedRecord,
    /// How long that took, its own client included; `None` of one that ran already.
    pub start_seconds: Option<f64>,
    /// What it was told, by each load thread.
    worlds: Vec<World>,
    seed: u64,
    work: &'a Work,
    progress: &'a Progress,
    own: OwnSteps,
    /// Which of the plan's steps are still to be done in each round.
    worth: Vec<bool>,
    /// Whether it answers no more, so that only another start goes on.
    broken: bool,
    brought: Brought,
    /// The system's own client, once it is needed; gone before the system is.
    helper: Option<Helper>,
}

/// A system that outlives a stage, for the next work.
pub struct Running {
    /// Where it is.
    pub instance: Instance,
    /// Its client, if it has one of its own.
    pub helper: Option<Helper>,
}

/// Connections to fill a store, or to read all of it.
pub const BULK_USERS: usize = 16;
/// Requests of each of them.
pub const BULK_DEPTH: usize = 64;
/// Requests of each where one carries many elements.
const QUESTIONS_DEPTH: usize = 16;

/// What a stage is about.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// The work.
    pub work: &'a Work,
    /// Who does it.
    pub subject: &'a Subject,
    /// How.
    pub setting: SubjectSetting,
    /// The surroundings.
    pub bench: &'a Bench,
    /// Which start of this work's it is: each has another chance, and all systems the same.
    pub start: u32,
    /// Receives the progress.
    pub progress: &'a Progress,
    /// What does the steps that are more than traffic.
    pub own: OwnSteps,
}

/// Does an [`Own`] step and puts its rounds into cells by [`Stage::put`]; it is told its first
/// part.
pub type OwnSteps = fn(Own, &mut Stage<'_>, &str) -> Result<(), CellError>;

impl<'a> Stage<'a> {
    /// Starts the subject, or takes one that is `running`, and does all steps that prepare; cells
    /// of `known_empty` are left out, and what it says that it cannot do. `None`, with the reasons
    /// as outcomes, where nothing is left to do, or it does not come up.
    pub fn begin(
        about: About<'a>,
        plan: &Plan,
        running: Option<Running>,
        known_empty: &[(String, Option<f64>)],
    ) -> (Option<Self>, Brought) {
        let About { work, subject, setting, bench, start: number, progress, own } = about;
        let mut brought = Brought::default();
        let worth =
            worth_doing(work, plan, subject, bench.tool, known_empty, &mut brought.outcomes);
        let left = |step: &(&Step, &bool)| *step.1 && step.0.fills_cells();
        if !plan.steps.iter().zip(&worth).any(|step| left(&step)) {
            // Nothing to be learnt from it: it need not even start.
            return (None, brought);
        }
        let began = Instant::now();
        let ran = running.is_some();
        let started = match running {
            Some(Running { instance, helper }) => {
                instance.thaw();
                if let Some(helper) = &helper {
                    helper.thaw();
                }
                Ok((Target::plain(instance.address()), Some(instance), helper))
            }
            None => start::start(work, subject, &setting, bench)
                .map(|(target, instance)| (target, instance, None)),
        };
        let (target, instance, helper) = match started {
            Ok(started) => started,
            Err(error) => {
                if cleanup::is_ending() {
                    brought.ended = Some(Ended::Interrupted);
                    return (None, brought);
                }
                let steps = plan.steps.iter().zip(&worth).filter(|(_, worth)| **worth);
                let steps: Vec<Step> = steps.map(|(step, _)| step.clone()).collect();
                empty_cells(&steps, &error.to_string(), &mut brought.outcomes);
                return (None, brought);
            }
        };
        let seed = bench.seed.wrapping_add(u64::from(number) * 1_000_003);
        let started = start::started_record(subject, instance.as_ref());
        let mut stage = Self {
            bench,
            subject,
            target,
            instance,
            kept: None,
            started,
            start_seconds: None,
            worlds: World::shared_by(bench.load_threads, seed),
            seed,
            work,
            progress,
            own,
            worth,
            broken: false,
            brought,
            helper,
        };
        if stage.has_helper()
            && let Err(error) = stage.helper()
        {
            stage.broken = true;
            stage.give_up(plan, 0..plan.steps.len(), &error.to_string());
        }
        if !ran && stage.instance.is_some() {
            stage.start_seconds = Some(began.elapsed().as_secs_f64());
        }
        for index in 0..plan.steps.len() {
            if !plan.steps[index].fills_cells() {
                stage.step(plan, index);
            }
        }
        let brought = stage.brought();
        (Some(stage), brought)
    }

    /// Whether a step of a round is worth doing.
    #[must_use]
    pub fn wants(&self, plan: &Plan, index: usize) -> bool {
        self.worth[index] && plan.steps[index].fills_cells() && !self.broken
    }

    /// What came out since this was last asked.
    pub fn brought(&mut self) -> Brought {
        std::mem::take(&mut self.brought)
    }

    /// Whether it answers no more. Steps before the one that it broke at may still be worth another
    /// start.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Does one step of the plan, if it is worth it. What cannot be done is not tried again.
    pub fn step(&mut self, plan: &Plan, index: usize) {
        if !self.worth[index] || self.broken || self.brought.ended.is_some() {
            return;
        }
        let Err(error) = self.do_step(&plan.steps[index]) else { return };
        let error = if cleanup::is_ending() { CellError::Interrupted } else { error };
        match error {
            CellError::Cannot(reason) => {
                // What prepares the others is theirs as well.
                let alone = plan.steps[index].fills_cells();
                let until = if alone { index + 1 } else { plan.steps.len() };
                self.give_up(plan, index..until, &reason);
            }
            CellError::Broken(reason) => {
                self.broken = true;
                // What prepares is done before everything else: nothing is left without it.
                let from = if plan.steps[index].fills_cells() { index } else { 0 };
                self.give_up(plan, from..plan.steps.len(), &reason);
            }
            CellError::Wrong(what) => {
                self.give_up(plan, index..plan.steps.len(), &format!("wrong answer: {what}"));
                self.brought.ended = Some(Ended::Wrong(what));
            }
            CellError::Interrupted => self.brought.ended = Some(Ended::Interrupted),
        }
    }

    /// Leaves the cells of these steps empty from now on.
    fn give_up(&mut self, plan: &Plan, steps: std::ops::Range<usize>, reason: &str) {
        for index in steps {
            if std::mem::take(&mut self.worth[index]) {
                let step = std::slice::from_ref(&plan.steps[index]);
                empty_cells(step, reason, &mut self.brought.outcomes);
            }
        }
    }

    /// Stops its processes where they are, so that they disturb no other system that is measured.
    pub fn freeze(&self) {
        if let Some(instance) = &self.instance {
            instance.freeze();
        }
        if let Some(helper) = &self.helper {
            helper.freeze();
        }
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        if let Some(helper) = &self.helper {
            helper.thaw();
        }
        if let Some(instance) = &self.instance {
            instance.thaw();
        }
    }

    /// The system, for the next work, if it still answers as it should.
    #[must_use]
    pub fn into_running(self) -> Option<Running> {
        let Self { broken, instance, helper, .. } = self;
        instance.filter(|_| !broken).map(|instance| Running { instance, helper })
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
            Step::Crash { part, users, keys, value_bytes } => {
                self.progress.doing("kill -9");
                let round = self.crash(*users, *keys, *value_bytes)?;
                self.put(part, None, round);
                Ok(())
            }
            Step::Load(custom) => {
                self.progress.doing("loads");
                (self.own)(custom.own, self, "")
            }
            Step::Custom(custom) => {
                let part = custom.parts.first().copied().unwrap_or_default();
                self.progress.doing(part);
                (self.own)(custom.own, self, part)
            }
        }
    }

    /// Puts a round into a cell of this system.
    pub fn put(&mut self, part: &str, x: Option<f64>, round: Round) {
        self.progress.saw(format!("{} {}", self.subject.label(), brief(part, x, &round)));
        self.brought.outcomes.push((part.to_owned(), x, Ok(Box::new(round))));
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

    /// Another server like the stage's own, empty; `None` where the lab started none.
    ///
    /// # Errors
    /// [`CellError::Broken`] when it does not come up.
    pub fn another(&self) -> Result<Option<Instance>, CellError> {
        let threads = self.instance.as_ref().map_or(1, |own| own.want.io_threads);
        self.another_on(&self.bench.cores.server, threads)
    }

    /// Does `what` on another server like the stage's own, empty, which is killed at the end. The
    /// stage's own is frozen meanwhile.
    ///
    /// # Errors
    /// [`CellError::Cannot`] where the lab started none; else those of `what` and
    /// [`Self::another`].
    pub fn on_another<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, CellError>,
    ) -> Result<T, CellError> {
        let none = "attached: only a server that the lab started is treated like that";
        let another = self.another()?.ok_or_else(|| CellError::Cannot(none.to_owned()))?;
        self.freeze();
        let target = std::mem::replace(&mut self.target, Target::plain(another.address()));
        let own = self.instance.replace(another);
        let result = what(self);
        self.instance = own;
        self.target = target;
        self.thaw();
        result
    }

    /// As [`Self::another`], on these cores and with so many threads.
    ///
    /// # Errors
    /// As there.
    pub fn another_on(
        &self,
        cores: &[usize],
        io_threads: usize,
    ) -> Result<Option<Instance>, CellError> {
        let (Subject::Found(found), Some(own)) = (self.subject, &self.instance) else {
            return Ok(None);
        };
        let want = Want { io_threads, ..own.want.clone() };
        Ok(Some(Instance::start(found, &want, &self.bench.data_root, cores, PATIENCE)?))
    }

    /// Reports the present activity.
    pub fn doing(&self, what: &str) {
        self.progress.doing(what);
    }

    /// Another seed for another stretch of chance, the same for all systems of a round.
    pub fn next_seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(1);
        self.seed
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
