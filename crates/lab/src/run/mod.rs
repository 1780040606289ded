//! `ladon-lab run`: works against systems, in interleaved rounds, into one `results.json`.
//!
//! ```text
//!   for each work        (kv, counter, ...)
//!     Scene: starts all systems, fills them
//!       for each round     A B C, B C A, ...: what disturbs the machine disturbs all alike
//!         Stage: one system through a step     -> a round of a cell
//!         results.json is written anew: what ends the run now loses one round
//! ```
//!
//! **Architecture invariant:** at every moment after the first round the results' directory holds a
//! valid `results.json`; it says `partial` until the run has done all.

pub mod attach;
pub mod bench;
pub mod cell;
pub mod error;
pub mod helper;
pub mod ineffective_options;
pub mod load_tool;
pub mod measurement_length;
pub mod options;
pub mod own;
pub mod plan;
pub mod progress;
pub mod record;
pub mod round;
pub mod scene;
pub mod server_facts;
pub mod stage;
pub mod subject;
pub mod tool;
pub mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::report::command;
use crate::systems::cleanup;
use crate::work::{Times, Work};
use bench::Bench;
pub use error::RunError;
use options::RunArguments;
use plan::Plan;
use progress::Progress;
use record::Record;
use scene::{Allowed, Ending, Scene, Waiting};
use subject::Subject;

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
    // Who was asked for by name and is not here would otherwise be missed only in the report.
    for one in missing.iter().filter(|_| !arguments.systems.is_empty()) {
        eprintln!("not measured: {one}");
    }
    let bench = Bench::prepare(arguments)?;
    let mut plan = Plan::guess(&works, &subjects, &bench);
    let times = plan.times(&works, bench.left(), arguments.rounds, arguments.seconds);
    for note in ineffective_options::notes(arguments, &works, &bench.scale)? {
        eprintln!("note: {note}");
    }
    eprint!("{}", plan.describe(&times, bench.budget));
    let mut record = Record::begin(arguments, &bench, &works, &subjects, &missing);
    let progress = Progress::new(plan.rounds(0, &times, bench.budget));
    cleanup::end_gently();
    let asked = Asked { arguments, works: &works, subjects: &subjects, times: &times };
    let ended = all_works(asked, &bench, &mut plan, &mut record, &progress);
    record.finish(ended.is_ok());
    let written = record.write(&arguments.out)?;
    progress.finish();
    // Also of a run that ended early: what it measured is whole.
    let drawn = command::draw(&arguments.out, vec![record.results().clone()]);
    if let Ok((tables, report)) = &drawn {
        println!("{tables}written: {}", report.display());
    }
    match ended {
        Ok(()) => {
            drawn?;
            if record.has_figures() { Ok(written) } else { Err(RunError::Nothing(written)) }
        }
        Err(Ending::Interrupted) => Err(RunError::Interrupted(written)),
        Err(Ending::Wrong { system, work, what }) => {
            Err(RunError::Wrong { system, work, what, results: written })
        }
        Err(Ending::Io(error)) => Err(error.into()),
    }
}

/// What is to be done.
#[derive(Clone, Copy)]
struct Asked<'a> {
    arguments: &'a RunArguments,
    works: &'a [&'static Work],
    subjects: &'a [Subject],
    /// The times of each work, as long as no budget deals them out anew.
    times: &'a [Times],
}

fn all_works(
    asked: Asked<'_>,
    bench: &Bench,
    plan: &mut Plan,
    record: &mut Record,
    progress: &Progress,
) -> Result<(), Ending> {
    let Asked { arguments, works, subjects, times: planned } = asked;
    let mut waiting = Waiting::new();
    for (number, work) in works.iter().enumerate() {
        let asked_seconds = arguments.seconds;
        let (times, until) = match bench.left() {
            // What was learnt of starts, and what earlier works took, is in it.
            Some(left) => {
                let times = plan.fit(number, left, arguments.rounds, asked_seconds);
                let share = plan.share(number, times, left).max(0.0);
                (times, Some(Instant::now() + Duration::from_secs_f64(share)))
            }
            None => (planned[number], None),
        };
        // What a budget allows now, it allows the others as well.
        let mut to_come = planned.to_vec();
        if until.is_some() {
            to_come.fill(times);
        }
        progress.work(work.name, times, plan.rounds(number, &to_come, bench.budget));
        let allowed = Allowed { times, until, asked_seconds };
        let mut scene = Scene {
            number,
            work,
            subjects,
            bench,
            plan: &mut *plan,
            record: &mut *record,
            progress,
            waiting: &mut waiting,
        };
        let rounds = scene.play(allowed)?;
        record.had_work(rounds);
    }
    Ok(())
}
