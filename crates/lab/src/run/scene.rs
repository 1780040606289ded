//! One work with all its systems, in interleaved rounds.
//!
//! ```text
//!   one node each:   start A, fill A, freeze A; start B, fill B, freeze B; ...
//!                    round: step 1 of A, of B, of C; step 2 of A, of B, of C; ...     the others are frozen
//!                    round: the same in another order, on the same servers
//!   several nodes:   round: start A, all its steps, end A; start B, ...               they watch each other's time
//! ```
//!
//! Systems that can coexist are started and filled once, so that a run's time goes into rounds, and
//! compared measurements are seconds apart, not minutes. A frozen system (SIGSTOP) has no timers,
//! threads or compilers that would use the core of the measured one.
//!
//! **Invariant:** during a measurement only the measured system runs, unless it is attached.

use std::time::{Duration, Instant};

use super::bench::Bench;
use super::measurement_length::SECONDS_MIN;
use super::own;
use super::plan::{KEPT_FROM_SECONDS, Plan};
use super::progress::Progress;
use super::record::Record;
use super::stage::{About, Brought, Ended, Running, Stage};
use super::subject::{Subject, SubjectSetting, pairs};
use crate::results;
use crate::systems::cleanup;
use crate::topology::Topology;
use crate::work::{self, Step, Times, Work};

/// Why no further work is done.
pub enum Ending {
    /// The user ended it.
    Interrupted,
    /// A wrong answer.
    Wrong {
        /// The system's label.
        system: String,
        /// The work's name.
        work: String,
        /// What it answered.
        what: String,
    },
    /// The results cannot be written.
    Io(std::io::Error),
}

/// Systems that wait, frozen, for the next work.
pub type Waiting = Vec<(String, SubjectSetting, Running)>;

/// How much of a run a work may have.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Rounds, and the seconds of each measurement to begin with.
    pub times: Times,
    /// When it is to be over, if there is a limit.
    pub until: Option<Instant>,
    /// Seconds of each measurement that the user asked for.
    pub asked_seconds: Option<f64>,
}

/// See the module.
pub struct Scene<'a> {
    /// Its place in the plan.
    pub number: usize,
    /// The work.
    pub work: &'static Work,
    /// Who does it.
    pub subjects: &'a [Subject],
    /// The surroundings.
    pub bench: &'a Bench,
    /// The run's plan, which learns how long starts take.
    pub plan: &'a mut Plan,
    /// Where rounds go.
    pub record: &'a mut Record,
    /// Receives the progress.
    pub progress: &'a Progress,
    /// Systems that an earlier work started.
    pub waiting: &'a mut Waiting,
}

/// A system at a setting, and its stage while there is one.
struct Member<'a> {
    subject: &'a Subject,
    setting: SubjectSetting,
    stage: Option<Stage<'a>>,
}

impl<'a> Scene<'a> {
    /// Does the work; returns how many rounds it had.
    ///
    /// # Errors
    /// Why the run must end.
    pub fn play(&mut self, allowed: Allowed) -> Result<u32, Ending> {
        let steps = (self.work.plan)(&self.bench.scale);
        let pairs = pairs(self.work, self.subjects, self.bench.promise);
        let mut cast: Vec<Member<'a>> = pairs
            .into_iter()
            .map(|(subject, setting)| Member { subject, setting, stage: None })
            .collect();
        let afresh = self.work.topology != Topology::Single;
        // What has to warm up is told how long measurements will be.
        self.bench.set_seconds(allowed.times.seconds);
        if !afresh {
            for member in &mut cast {
                self.begin(member, &steps, 0)?;
            }
        }
        let wanted = match allowed.until {
            Some(_) => self.plan.rounds_of(&self.plan.works[self.number], allowed.times.rounds),
            None => allowed.times.rounds,
        };
        let mut pace = self.plan.pace(self.number);
        let mut round = 0;
        while round < wanted {
            if let Some(until) = allowed.until {
                let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
                let least = SECONDS_MIN;
                match pace.next(wanted - round, left, allowed.asked_seconds) {
                    Some(seconds) => self.bench.set_seconds(seconds),
                    // One round is made in any case: a work without figures says nothing.
                    None if round == 0 => {
                        self.bench.set_seconds(allowed.asked_seconds.unwrap_or(least));
                    }
                    None => break,
                }
            }
            self.progress.begin(self.work.name, round, wanted);
            let began = Instant::now();
            let few = if afresh {
                self.round_afresh(&mut cast, &steps, round)?;
                Duration::ZERO
            } else {
                let is_wanted =
                    |step: &Step| allowed.until.is_none() || round < step.rounds_with_budget();
                self.round(&mut cast, &steps, round, is_wanted)?
            };
            let seconds = self.bench.measured().as_secs_f64();
            let took = began.elapsed().saturating_sub(few);
            pace.saw(took.as_secs_f64(), few.as_secs_f64(), seconds);
            round += 1;
            self.record.had_round(round, seconds);
            results::file::write(&self.bench.out, self.record.results()).map_err(Ending::Io)?;
            self.progress.end();
        }
        for member in cast {
            self.keep(member);
        }
        Ok(round)
    }

    /// One round of a work that every member does on a server started for it.
    fn round_afresh(
        &mut self,
        cast: &mut [Member<'a>],
        steps: &work::Plan,
        round: u32,
    ) -> Result<(), Ending> {
        for place in order(cast.len(), round) {
            let member = &mut cast[place];
            self.begin(member, steps, round)?;
            for index in 0..steps.steps.len() {
                self.step(member, steps, index)?;
            }
            member.stage = None;
        }
        Ok(())
    }

    /// One round of the wanted steps; the time that those of few rounds took.
    fn round(
        &mut self,
        cast: &mut [Member<'a>],
        steps: &work::Plan,
        round: u32,
        is_wanted: impl Fn(&Step) -> bool,
    ) -> Result<Duration, Ending> {
        let mut few = Duration::ZERO;
        let order = order(cast.len(), round);
        for (index, step) in steps.steps.iter().enumerate().filter(|(_, step)| is_wanted(step)) {
            let began = Instant::now();
            for &place in &order {
                self.step(&mut cast[place], steps, index)?;
            }
            if step.rounds_with_budget() < u32::MAX {
                few += began.elapsed();
            }
        }
        for member in cast {
            if member.stage.as_ref().is_some_and(Stage::is_broken) {
                member.stage = None;
                self.begin(member, steps, round)?;
            }
        }
        Ok(few)
    }

    /// Starts a member and prepares what it needs; then it waits.
    fn begin(
        &mut self,
        member: &mut Member<'a>,
        steps: &work::Plan,
        start: u32,
    ) -> Result<(), Ending> {
        let (subject, setting, bench) = (member.subject, member.setting, self.bench);
        self.progress.doing(&format!("starts {} ({})", subject.label(), setting.name()));
        let known_empty = self.record.empty_cells(self.work, subject, &setting);
        let label = subject.label();
        let waits =
            self.waiting.iter().position(|(other, at, _)| (other, *at) == (&label, setting));
        let running = waits.map(|place| self.waiting.swap_remove(place).2);
        let (work, progress) = (self.work, self.progress);
        let about = About { work, subject, setting, bench, start, progress, own: own::run };
        let (stage, brought) = Stage::begin(about, steps, running, &known_empty);
        if let Some(stage) = &stage {
            stage.freeze();
            if let Some(seconds) = stage.start_seconds {
                self.plan.saw_start(&label, seconds / self.work.topology.nodes() as f64);
            }
            self.record.note_setting(subject, &setting, &stage.started);
        }
        member.stage = stage;
        self.take(member, brought)
    }

    /// Lets a member do a step, if it is there and can.
    fn step(
        &mut self,
        member: &mut Member<'a>,
        steps: &work::Plan,
        index: usize,
    ) -> Result<(), Ending> {
        let Some(stage) = &mut member.stage else { return Ok(()) };
        if !stage.wants(steps, index) {
            return Ok(());
        }
        stage.thaw();
        stage.step(steps, index);
        stage.freeze();
        let brought = stage.brought();
        self.take(member, brought)
    }

    fn take(&mut self, member: &Member<'a>, brought: Brought) -> Result<(), Ending> {
        let Brought { outcomes, ended } = brought;
        self.record.add(self.work, member.subject, &member.setting, outcomes);
        let (system, work) = (member.subject.label(), self.work.name.to_owned());
        match ended {
            Some(Ended::Wrong(what)) => Err(Ending::Wrong { system, work, what }),
            Some(Ended::Interrupted) => Err(Ending::Interrupted),
            None if cleanup::is_ending() => Err(Ending::Interrupted),
            None => Ok(()),
        }
    }

    /// A system that started slowly waits for the next work; any other goes.
    fn keep(&mut self, member: Member<'a>) {
        let label = member.subject.label();
        let slow = self
            .plan
            .start_seconds
            .get(&label)
            .is_some_and(|&seconds| seconds >= KEPT_FROM_SECONDS);
        if !slow || self.work.topology != Topology::Single {
            return;
        }
        if let Some(running) = member.stage.and_then(Stage::into_running) {
            self.waiting.push((label, member.setting, running));
        }
    }
}

/// The order of a round: another system is first in each, and every other round is reversed, so
/// that no system always follows the same one.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.rotate_left(round as usize % count.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_comes_first_and_after_everybody() {
        let count = 4;
        let mut firsts = std::collections::BTreeSet::new();
        let mut neighbours = std::collections::BTreeSet::new();
        for round in 0..4 {
            let order = order(count, round);
            firsts.insert(order[0]);
            neighbours.extend(order.windows(2).map(|two| (two[0], two[1])));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        assert!(firsts.len() >= 2, "{firsts:?}");
        assert!(neighbours.contains(&(0, 1)) && neighbours.contains(&(1, 0)), "{neighbours:?}");
        assert!(order(0, 3).is_empty());
    }
}
