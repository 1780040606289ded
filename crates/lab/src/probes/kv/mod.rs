//! `kv`: what a SET and a GET of a small value cost.
//!
//! Per round every system is started afresh and given all keys; then each combination of pipeline
//! depth and operation is measured on one system after the other, seconds apart, so that a machine
//! that slows down for a while slows all of them down. The order of the systems turns by one from
//! round to round.

mod cell;
mod table;

use clap::Args;
use serde::Serialize;

use self::cell::Cell;
use super::WorkError;
use super::common::{Bench, Common, persistences};
use super::measured::{Load, Measured};
use crate::load::data::Data;
use crate::load::workload::Mix;
use crate::systems::Persistence;
use crate::systems::arguments::Setup;
use crate::systems::server::Server;

/// Options of `kv`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct KvArguments {
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
    #[arg(long, default_value_t = 50)]
    pub clients: usize,
    /// Keys, all of them set before anything is measured.
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u32,
    /// Length of each key in bytes.
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// Length of each value in bytes.
    #[arg(long, default_value_t = 64)]
    pub value_size: usize,
    /// Requests that each connection sends at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64])]
    pub pipeline: Vec<usize>,
    /// The promise: none, everysec, fsync. Default: none.
    #[arg(long, value_delimiter = ',')]
    pub persistence: Vec<Persistence>,
}

/// All that one persistence showed.
#[derive(Debug, Serialize)]
pub struct Part {
    /// The promise.
    pub persistence: Persistence,
    /// Command lines of the servers in the last round.
    pub command_lines: Vec<Vec<String>>,
    /// Resident bytes after loading: per system, per round.
    pub resident_bytes: Vec<Vec<f64>>,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &KvArguments) -> Result<(), WorkError> {
    check(arguments)?;
    let bench = Bench::prepare(&arguments.common, 1)?;
    let mut parts = Vec::new();
    let mut text = String::new();
    for persistence in persistences(&arguments.persistence) {
        let part = measure(&bench, arguments, persistence)?;
        text += &table::render(&bench, arguments, &part);
        parts.push(part);
    }
    bench.finish("kv", arguments, parts, &text)
}

fn check(arguments: &KvArguments) -> Result<(), WorkError> {
    let wrong = |what: &str| Err(WorkError::Argument(what.to_owned()));
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    if arguments.rounds == 0 || arguments.clients == 0 {
        return wrong("--rounds and --clients must be above 0");
    }
    if arguments.pipeline.is_empty() || arguments.pipeline.contains(&0) {
        return wrong("--pipeline must be above 0");
    }
    if !(0.01..=3600.0).contains(&arguments.seconds) {
        return wrong("--seconds must be between 0.01 and 3600");
    }
    Ok(())
}

fn measure(
    bench: &Bench,
    arguments: &KvArguments,
    persistence: Persistence,
) -> Result<Part, WorkError> {
    let systems = bench.programs.len();
    let mut cells: Vec<Cell> = arguments
        .pipeline
        .iter()
        .flat_map(|&depth| [Mix::Set, Mix::Get].map(|mix| Cell::new(depth, mix, systems)))
        .collect();
    let mut resident_bytes = vec![Vec::new(); systems];
    let mut command_lines = Vec::new();
    for round in 0..arguments.rounds {
        let mut servers: Vec<(Server, Data)> = Vec::new();
        for (index, program) in bench.programs.iter().enumerate() {
            eprintln!(
                "{}: round {} of {}: loading {}",
                persistence.name(),
                round + 1,
                arguments.rounds,
                program.label
            );
            let server = bench.start(program, &Setup::new(persistence))?;
            let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
            bench.load(&server, &mut data)?;
            resident_bytes[index]
                .push(server.resident().map_or(f64::NAN, |resident| resident.now as f64));
            servers.push((server, data));
        }
        for cell in &mut cells {
            for turn in 0..systems {
                let system = (turn + round) % systems;
                let (server, data) = &mut servers[system];
                let load = Load {
                    mix: cell.mix,
                    depth: cell.pipeline,
                    clients: arguments.clients,
                    seconds: arguments.seconds,
                    seed: arguments.common.seed.wrapping_add(round as u64),
                };
                let measured = Measured::take(bench, server, data, &load)?;
                eprintln!("  {} {}: {}", cell.name(), server.label, measured.brief());
                cell.samples[system].push(measured);
            }
        }
        command_lines = servers.iter().map(|(server, _)| server.command_line.clone()).collect();
    }
    Ok(Part { persistence, command_lines, resident_bytes, cells })
}
