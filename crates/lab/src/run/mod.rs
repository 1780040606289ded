//! `ladon-lab run`: works against systems, in interleaved rounds, into one `results.json`.
//!
//! ```text
//!   for each work      (kv, counter, ...)
//!     for each round            A B C  A B C  A B C: what disturbs the machine disturbs all alike
//!       for each system, setting
//!         Stage: start it, do the work's steps, stop it      -> rounds of cells
//!         results.json is written anew: what ends the run now loses one pass
//! ```
//!
//! **Architecture invariant:** at every moment after the first pass the results' directory holds a
//! valid `results.json`; it says `partial` until the run has done all.

pub mod attach;
pub mod bench;
pub mod options;
pub mod progress;
pub mod record;
pub mod stage;
pub mod subject;
pub mod tool;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::report::command::{self, CommandError};
use crate::results;
use crate::systems::cleanup;
use crate::works::{Settings, Work};
use bench::Bench;
use options::RunArguments;
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
    let bench = Bench::prepare(arguments, &works, &subjects)?;
    let mut record = Record::begin(arguments, &bench, &works, &subjects, &missing);
    let progress = Progress::new(passes(&works, &subjects, &bench));
    cleanup::end_gently();
    let ended = all_rounds(&works, &subjects, &bench, &mut record, &progress);
    record.finish(ended.is_ok());
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

fn all_rounds(
    works: &[&Work],
    subjects: &[Subject],
    bench: &Bench,
    record: &mut Record,
    progress: &Progress,
) -> Result<(), Ending> {
    for work in works {
        let plan = (work.plan)(&bench.scale);
        let mut last = Duration::ZERO;
        for round in 0..bench.rounds {
            // Whole rounds are left out, so that all systems have as many.
            if round > 0 && !bench.has_time_for(last) {
                break;
            }
            let began = Instant::now();
            for (subject, setting) in pairs(work, subjects, bench) {
                progress.begin(work.name, &subject.label(), &setting.name(), round, bench.rounds);
                let pass = Stage::pass(work, &plan, subject, &setting, bench, round, progress);
                let ended = match &pass {
                    Pass { ended: Some(ended), .. } => Some(ended.clone()),
                    _ => None,
                };
                record.add(work, subject, &setting, pass);
                results::file::write(&bench.out, record.results()).map_err(Ending::Io)?;
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
            last = began.elapsed();
        }
    }
    Ok(())
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

fn passes(works: &[&Work], subjects: &[Subject], bench: &Bench) -> u64 {
    let of_work = |work: &&Work| pairs(work, subjects, bench).len() as u64;
    works.iter().map(of_work).sum::<u64>() * u64::from(bench.rounds)
}
