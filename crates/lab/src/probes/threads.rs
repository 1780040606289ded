//! `threads`: what it costs per operation to run on two cores instead of one.
//!
//! Both servers may use the same cores, one with one IO thread, one with as many as there are cores;
//! CPU time per operation is what counts, as the load generator has to live on those cores too where
//! the machine has no others.

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

/// Options of `threads`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct ThreadsArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// IO threads, and cores, to compare with one.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Interleaved rounds; figures are medians over them.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    pub clients: usize,
    /// Requests that each connection sends at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64])]
    pub pipeline: Vec<usize>,
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

/// One system at one depth and operation, per round.
#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    operation: &'static str,
    pipeline: usize,
    one: Vec<Measured>,
    several: Vec<Measured>,
    #[serde(skip)]
    mix: Mix,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &ThreadsArguments) -> Result<(), WorkError> {
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    if arguments.rounds == 0 || arguments.clients == 0 || arguments.pipeline.contains(&0) {
        return Err(WorkError::Argument(
            "--rounds, --clients and --pipeline must be above 0".into(),
        ));
    }
    let bench = Bench::prepare(&arguments.common, arguments.threads)?;
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        for &pipeline in &arguments.pipeline {
            for (operation, mix) in [("SET", Mix::Set), ("GET", Mix::Get)] {
                let (system, kind) = (program.label.clone(), program.kind);
                let (one, several) = (Vec::new(), Vec::new());
                outcomes.push(Outcome { system, kind, operation, pipeline, one, several, mix });
            }
        }
    }
    for round in 0..arguments.rounds {
        measure_round(&bench, arguments, round, &mut outcomes)?;
    }
    let text = render(&bench, arguments, &outcomes);
    bench.finish("threads", arguments, outcomes, &text)
}

fn measure_round(
    bench: &Bench,
    arguments: &ThreadsArguments,
    round: usize,
    outcomes: &mut [Outcome],
) -> Result<(), WorkError> {
    for program in &bench.programs {
        let mut servers = Vec::new();
        for io_threads in [1, arguments.threads] {
            let setup = Setup { io_threads, ..Setup::new(Persistence::None) };
            let server = bench.start(program, &setup)?;
            let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
            bench.load(&server, &mut data)?;
            servers.push((io_threads, server, data));
        }
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.system == program.label) {
            let load = Load {
                mix: outcome.mix,
                depth: outcome.pipeline,
                clients: arguments.clients,
                seconds: arguments.seconds,
                seed: arguments.common.seed.wrapping_add(round as u64),
            };
            for (io_threads, server, data) in &mut servers {
                let measured = Measured::take(bench, server, data, &load)?;
                eprintln!(
                    "round {} {} {} P={}, {io_threads} threads: {}",
                    round + 1,
                    program.label,
                    outcome.operation,
                    outcome.pipeline,
                    measured.brief()
                );
                if *io_threads == 1 {
                    outcome.one.push(measured);
                } else {
                    outcome.several.push(measured);
                }
            }
        }
    }
    Ok(())
}

fn render(bench: &Bench, arguments: &ThreadsArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\nserver on cores {:?}: {} connections, {} keys, values of {} bytes, medians of {} rounds of {} s\n\n",
        bench.cores.server,
        arguments.clients,
        arguments.keys,
        arguments.value_size,
        arguments.rounds,
        arguments.seconds
    );
    let several = format!("{} threads", arguments.threads);
    let mut table = Table::new(&[
        "system",
        "",
        "CPU us, 1 thread",
        &format!("CPU us, {several}"),
        "ratio",
        "k/s, 1 thread",
        &format!("k/s, {several}"),
        &format!("server busy, {several}"),
    ]);
    let of = |samples: &[Measured], figure| median(&figures(samples, figure));
    for outcome in outcomes {
        table.row(vec![
            outcome.system.clone(),
            format!("{} P={}", outcome.operation, outcome.pipeline),
            number(of(&outcome.one, |measured| measured.cpu_us), 2),
            number(of(&outcome.several, |measured| measured.cpu_us), 2),
            number(cost(outcome), 2),
            number(of(&outcome.one, |measured| measured.per_second / 1000.0), 0),
            number(of(&outcome.several, |measured| measured.per_second / 1000.0), 0),
            number(of(&outcome.several, |measured| measured.server_busy), 2),
        ]);
    }
    text += &table.render();
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        let what = format!(
            "CPU per {} at P={}, {several} through one",
            outcome.operation, outcome.pipeline
        );
        text += &verdict(&what, cost(outcome), Limit::AtMost(1.25));
    }
    text
}

fn figures(samples: &[Measured], figure: fn(&Measured) -> f64) -> Vec<f64> {
    samples.iter().map(figure).collect()
}

fn cost(outcome: &Outcome) -> Option<f64> {
    let cpu = |samples| figures(samples, |measured| measured.cpu_us);
    ratio(&cpu(&outcome.several), &cpu(&outcome.one)).map(|spread| spread.median)
}
