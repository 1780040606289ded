//! `ladon-lab run`: works against systems, in interleaved rounds, into one `results.json`.
//!
//! ```text
//!   for each round       A B C  A B C  A B C: what disturbs the machine disturbs all alike
//!     for each work      (kv, counter, ...)
//!       for each system, setting      another one begins in each round
//!         Stage: start it, do the work's steps, stop it      -> rounds of cells
//!         results.json is written anew: what ends the run now loses one pass
//! ```
//!
//! **Architecture invariant:** at every moment after the first pass the results' directory holds a
//! valid `results.json`; it says `partial` until the run has done all. After the first round every
//! work has its figures: whoever ends a long run early has a smaller whole one.

pub mod attach;
pub mod bench;
pub mod helper;
pub mod options;
pub mod plan;
pub mod progress;
pub mod record;
pub mod stage;
pub mod subject;
pub mod tool;
pub mod watch;

use std::path::PathBuf;
use std::time::Instant;

use crate::report::command::{self, CommandError};
use crate::results;
use crate::systems::cleanup;
use crate::works::{Settings, Work};
use bench::Bench;
use options::RunArguments;
use plan::{Plan, Times};
use progress::Progress;
use record::Record;
use stage::{Pass, Stage};
use subject::{Subject, SubjectSetting};

/// Why a run ended without all its figures.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An argument makes no sense, or names what does not exist.
    #[error("{0}")]
    Argument(String),
    /// A system answered wrongly: no figure of this run is to be trusted before that is explained.
    #[error("{system} ({work}): {what}; what was measured before is in {results}", results = .results.display())]
    Wrong {
        /// The system's label.
        system: String,
        /// What was being done.
        work: String,
        /// What it answered.
        what: String,
        /// What there is.
        results: PathBuf,
    },
    /// The user ended it.
    #[error("ended by a signal; what was measured is in {}", .0.display())]
    Interrupted(PathBuf),
    /// The figures are there, but their report is not.
    #[error("the results are written, but not their report: {0}")]
    Report(#[from] CommandError),
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<nix::Error> for RunError {
    fn from(error: nix::Error) -> Self {
        Self::Io(error.into())
    }
}

/// Does what `ladon-lab run` was told to; returns where the results are.
///
/// # Errors
/// See [`RunError`]; whatever was measured before one is on the disk.
pub fn run(arguments: &RunArguments) -> Result<PathBuf, RunError> {
    let works = arguments.works()?;
    let (subjects, missing) = arguments.subjects()?;
    if subjects.is_empty() {
        let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let text = format!("no system to measure was found:\n{}", reasons.join("\n"));
        return Err(RunError::Argument(text));
    }
    let (mut bench, mut plan) = Bench::prepare(arguments, &works, &subjects)?;
    let times = Times { rounds: bench.rounds, seconds: bench.measured.as_secs_f64() };
    eprint!("{}", plan.describe(times, bench.budget));
    let mut record = Record::begin(arguments, &bench, &works, &subjects, &missing);
    let progress = Progress::new(plan.passes(bench.rounds));
    cleanup::end_gently();
    let mut run =
        Run { works: &works, subjects: &subjects, record: &mut record, progress: &progress };
    let ended = run.all_rounds(&mut bench, &mut plan, arguments.seconds);
    record.finish(bench.rounds, ended.is_ok());
    let written = record.write(&arguments.out)?;
    progress.finish();
    // Also of a run that ended early: what it measured is whole.
    let drawn = command::draw(&arguments.out, vec![record.results().clone()]);
    if let Ok((tables, report)) = &drawn {
        println!("{tables}written: {}", report.display());
    }
    match ended {
        Ok(()) => drawn.map(|_| written).map_err(RunError::from),
        Err(Ending::Interrupted) => Err(RunError::Interrupted(written)),
        Err(Ending::Wrong { system, work, what }) => {
            Err(RunError::Wrong { system, work, what, results: written })
        }
        Err(Ending::Io(error)) => Err(error.into()),
    }
}

/// Why no further pass is made.
enum Ending {
    Interrupted,
    Wrong { system: String, work: String, what: String },
    Io(std::io::Error),
}

/// What goes through all rounds.
struct Run<'a> {
    works: &'a [&'a Work],
    subjects: &'a [Subject],
    record: &'a mut Record,
    progress: &'a Progress,
}

impl Run<'_> {
    fn all_rounds(
        &mut self,
        bench: &mut Bench,
        plan: &mut Plan,
        seconds: Option<f64>,
    ) -> Result<(), Ending> {
        let mut round = 0;
        while round < bench.rounds {
            if let Some(left) = bench.left().filter(|_| round > 0) {
                let times = plan.go_on(round, bench.rounds, left, seconds);
                bench.rounds = times.map_or(round, |times| times.rounds);
                let Some(times) = times else { break };
                bench.set_seconds(times.seconds);
                self.progress.plans(plan, round, times);
            }
            self.record.begin_round(bench);
            let mut took = Vec::new();
            for work in self.works {
                let began = Instant::now();
                if round < work.rounds_max {
                    self.one_round(work, bench, round)?;
                }
                took.push(began.elapsed().as_secs_f64());
            }
            if round == 0 {
                plan.learn(&took, bench.measured.as_secs_f64());
            }
            round += 1;
        }
        Ok(())
    }

    fn one_round(&mut self, work: &Work, bench: &Bench, round: u32) -> Result<(), Ending> {
        let its_plan = (work.plan)(&bench.scale);
        let mut pairs = pairs(work, self.subjects, bench);
        // Who comes first has a cooler machine, or a busier one: everybody in turn.
        let turn = round as usize % pairs.len().max(1);
        pairs.rotate_left(turn);
        for (subject, setting) in pairs {
            let progress = self.progress;
            progress.begin(work.name, &subject.label(), &setting.name(), round, bench.rounds);
            let known_empty = self.record.empty_cells(work, subject, &setting);
            let pass = Stage::pass(
                work,
                &its_plan,
                subject,
                &setting,
                bench,
                round,
                progress,
                &known_empty,
            );
            let ended = match &pass {
                Pass { ended: Some(ended), .. } => Some(ended.clone()),
                _ => None,
            };
            self.record.add(work, subject, &setting, pass);
            results::file::write(&bench.out, self.record.results()).map_err(Ending::Io)?;
            progress.end();
            match ended {
                None => {}
                Some(stage::Ended::Interrupted) => return Err(Ending::Interrupted),
                Some(stage::Ended::Wrong(what)) => {
                    let (system, work) = (subject.label(), work.name.to_owned());
                    return Err(Ending::Wrong { system, work, what });
                }
            }
            if cleanup::is_ending() {
                return Err(Ending::Interrupted);
            }
        }
        Ok(())
    }
}

/// Every system at every setting that `work` goes through.
fn pairs<'a>(
    work: &Work,
    subjects: &'a [Subject],
    bench: &Bench,
) -> Vec<(&'a Subject, SubjectSetting)> {
    let settings = |subject: &'a Subject| match work.settings {
        Settings::All => subject.settings(),
        Settings::Chosen => vec![subject.setting_for(bench.promise)],
    };
    // A web program is measured as one, and nowhere else.
    let takes_part = |subject: &&Subject| match subject {
        Subject::Found(found) => found.system.only_in().is_none_or(|only| only == work.name),
        Subject::Attached(_) => true,
    };
    let all = subjects
        .iter()
        .filter(takes_part)
        .flat_map(|subject| settings(subject).into_iter().map(move |setting| (subject, setting)));
    all.collect()
}
