//! `fsync`: what it costs to have every write on the disk before its reply, when many clients wait
//! at once: throughput of SET at that promise beside the same server's without any.

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common};
use super::measured::{Load, Measured};
use crate::load::data::Data;
use crate::load::workload::Mix;
use crate::report::statistics::{median, ratio};
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::{Kind, Persistence};

/// Options of `fsync`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct FsyncArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Interleaved rounds; figures are medians over them.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Connections.
    #[arg(long, default_value_t = 256)]
    pub clients: usize,
    /// Requests that each connection sends at once.
    #[arg(long, default_value_t = 1)]
    pub pipeline: usize,
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u32,
    /// Length of each key in bytes.
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// Length of each value in bytes.
    #[arg(long, default_value_t = 64)]
    pub value_size: usize,
}

/// What one system showed: per round, without and with the promise.
#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    none: Vec<Measured>,
    fsync: Vec<Measured>,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &FsyncArguments) -> Result<(), WorkError> {
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    if arguments.rounds == 0 || arguments.clients == 0 || arguments.pipeline == 0 {
        return Err(WorkError::Argument(
            "--rounds, --clients and --pipeline must be above 0".into(),
        ));
    }
    let bench = Bench::prepare(&arguments.common, 1)?;
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        outcomes.push(Outcome {
            system: program.label.clone(),
            kind: program.kind,
            none: Vec::new(),
            fsync: Vec::new(),
        });
    }
    for round in 0..arguments.rounds {
        for (program, outcome) in bench.programs.iter().zip(&mut outcomes) {
            for persistence in [Persistence::None, Persistence::Fsync] {
                let server = bench.start(program, &Setup::new(persistence))?;
                let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
                bench.load(&server, &mut data)?;
                let load = Load {
                    mix: Mix::Set,
                    depth: arguments.pipeline,
                    clients: arguments.clients,
                    seconds: arguments.seconds,
                    seed: arguments.common.seed.wrapping_add(round as u64),
                };
                let measured = Measured::take(&bench, &server, &mut data, &load)?;
                eprintln!(
                    "round {} {} {}: {}",
                    round + 1,
                    program.label,
                    persistence.name(),
                    measured.brief()
                );
                match persistence {
                    Persistence::Fsync => outcome.fsync.push(measured),
                    _ => outcome.none.push(measured),
                }
            }
        }
    }
    let text = render(arguments, &outcomes);
    bench.finish("fsync", arguments, outcomes, &text)
}

fn figures(samples: &[Measured], figure: fn(&Measured) -> f64) -> Vec<f64> {
    samples.iter().map(figure).collect()
}

fn render(arguments: &FsyncArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\nSET: {} connections, pipeline {}, {} keys of {} bytes, values of {} bytes, medians of {} rounds of {} s\n\n",
        arguments.clients,
        arguments.pipeline,
        arguments.keys,
        arguments.key_size,
        arguments.value_size,
        arguments.rounds,
        arguments.seconds
    );
    let mut table = Table::new(&[
        "system",
        "none k/s",
        "fsync k/s",
        "fsync / none",
        "none p50/p99 us",
        "fsync p50/p99 us",
        "none CPU us",
        "fsync CPU us",
    ]);
    let of = |samples: &[Measured], figure| median(&figures(samples, figure));
    let latency = |samples: &[Measured]| {
        format!(
            "{}/{}",
            number(of(samples, |measured| measured.p50_us), 0),
            number(of(samples, |measured| measured.p99_us), 0)
        )
    };
    for outcome in outcomes {
        table.row(vec![
            outcome.system.clone(),
            number(of(&outcome.none, |measured| measured.per_second / 1000.0), 0),
            number(of(&outcome.fsync, |measured| measured.per_second / 1000.0), 0),
            number(fsync_through_none(outcome), 2),
            latency(&outcome.none),
            latency(&outcome.fsync),
            number(of(&outcome.none, |measured| measured.cpu_us), 2),
            number(of(&outcome.fsync, |measured| measured.cpu_us), 2),
        ]);
    }
    text += &table.render();
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        let what = "throughput at fsync through that at none";
        text += &verdict(what, fsync_through_none(outcome), Limit::AtLeast(0.8));
    }
    text
}

fn fsync_through_none(outcome: &Outcome) -> Option<f64> {
    let per_second = |samples| figures(samples, |measured| measured.per_second);
    ratio(&per_second(&outcome.fsync), &per_second(&outcome.none)).map(|spread| spread.median)
}
