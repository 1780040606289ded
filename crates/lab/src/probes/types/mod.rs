//! `types`: what the operations of each data type cost, and what their values take in memory.
//!
//! Per round every system is started afresh and given all data; then each operation is measured on
//! one system after the other, seconds apart, in an order that turns by one from round to round (as
//! in `kv`).

pub mod memory;
pub mod operation;
mod table;

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::operation::{Load, Operation, World};
use super::WorkError;
use super::common::{Bench, Common};
use super::measured::Measured;
use crate::load::question::things_min;
use crate::load::types::{hash::FIELDS_MAX, list::ELEMENT_BYTES_MAX, world::Sizes};
use crate::load::words::NAMES_MAX;
use crate::systems::Persistence;
use crate::systems::arguments::Setup;
use crate::systems::server::Server;

/// Options of `types`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct TypesArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Measure resident memory instead: of a sorted set's member, a hash, a list.
    #[arg(long)]
    pub memory: bool,
    /// Operations to measure. Default: all.
    #[arg(long, value_delimiter = ',')]
    pub operations: Vec<Operation>,
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
    #[arg(long, value_delimiter = ',', default_values_t = [16])]
    pub pipeline: Vec<usize>,
    /// The promise: none, everysec, fsync.
    #[arg(long, default_value = "none")]
    pub persistence: Persistence,
    /// Fields of all hashes.
    #[arg(long, default_value_t = 1_000_000)]
    pub fields: u32,
    /// Fields of each hash.
    #[arg(long, default_value_t = 20)]
    pub fields_per_hash: u32,
    /// Length of a field's value in bytes.
    #[arg(long, default_value_t = 16)]
    pub value_size: usize,
    /// Lists that are read, and at least as many that elements go through.
    #[arg(long, default_value_t = 1000)]
    pub lists: u32,
    /// Elements of each list that is read.
    #[arg(long, default_value_t = 100)]
    pub list_length: u32,
    /// Length of a list's element in bytes.
    #[arg(long, default_value_t = 10)]
    pub element_size: usize,
    /// Members of the sorted set, and of the set; each is 10 bytes long.
    #[arg(long, default_value_t = 1_000_000)]
    pub members: u32,
    /// Members that a ZRANGE asks for.
    #[arg(long, default_value_t = 100)]
    pub range_length: u32,
    /// Strings of bits.
    #[arg(long, default_value_t = 1000)]
    pub bitmaps: u32,
    /// Length of each in bytes.
    #[arg(long, default_value_t = 4096)]
    pub bitmap_bytes: u32,
    /// Counters.
    #[arg(long, default_value_t = 1_000_000)]
    pub counters: u32,
    /// With --memory: members of the sorted set.
    #[arg(long, default_value_t = 4_000_000)]
    pub memory_members: u32,
    /// With --memory: hashes.
    #[arg(long, default_value_t = 200_000)]
    pub memory_hashes: u32,
    /// With --memory: lists.
    #[arg(long, default_value_t = 100_000)]
    pub memory_lists: u32,
}

impl TypesArguments {
    fn load<'a>(
        &self,
        bench: &'a Bench,
        server: &'a Server,
        depth: usize,
        round: usize,
    ) -> Load<'a> {
        Load {
            bench,
            server,
            clients: self.clients,
            depth,
            seconds: self.seconds,
            seed: self.common.seed.wrapping_add(round as u64),
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            fields: self.fields,
            fields_per_hash: self.fields_per_hash,
            value_bytes: self.value_size,
            queues: self.queues(),
            lists: self.lists,
            list_length: self.list_length,
            element_bytes: self.element_size,
            members: self.members,
            range_length: self.range_length,
            bitmaps: self.bitmaps,
            bitmap_bytes: self.bitmap_bytes,
            counters: self.counters,
        }
    }

    /// Lists that elements go through: enough for each connection to have some of its own.
    fn queues(&self) -> u32 {
        let depth = self.pipeline.iter().copied().max().unwrap_or(1);
        self.lists.max(things_min(self.clients, depth))
    }
}

/// One operation at one pipeline depth, with what every round showed.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// What was measured.
    pub operation: Operation,
    /// Requests that a connection sends at once.
    pub pipeline: usize,
    /// Per system, per round.
    pub samples: Vec<Vec<Measured>>,
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Command lines of the servers in the last round.
    command_lines: Vec<Vec<String>>,
    cells: Vec<Cell>,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &TypesArguments) -> Result<(), WorkError> {
    check(arguments).map_err(WorkError::Argument)?;
    let bench = Bench::prepare(&arguments.common, 1)?;
    if arguments.memory {
        return memory::run(&bench, arguments);
    }
    let outcome = measure(&bench, arguments)?;
    let text = table::render(&bench, arguments, &outcome.cells);
    bench.finish("types", arguments, outcome, &text)
}

fn check(arguments: &TypesArguments) -> Result<(), String> {
    let positive = [
        ("--rounds", arguments.rounds),
        ("--clients", arguments.clients),
        ("--value-size", arguments.value_size),
        ("--fields-per-hash", arguments.fields_per_hash as usize),
        ("--lists", arguments.lists as usize),
        ("--list-length", arguments.list_length as usize),
        ("--element-size", arguments.element_size),
        ("--members", arguments.members as usize),
        ("--range-length", arguments.range_length as usize),
        ("--bitmaps", arguments.bitmaps as usize),
        ("--bitmap-bytes", arguments.bitmap_bytes as usize),
        ("--counters", arguments.counters as usize),
        ("--memory-members", arguments.memory_members as usize),
        ("--memory-hashes", arguments.memory_hashes as usize),
        ("--memory-lists", arguments.memory_lists as usize),
    ];
    if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
        return Err(format!("{name} must be above 0"));
    }
    if arguments.pipeline.is_empty() || arguments.pipeline.contains(&0) {
        return Err("--pipeline must be above 0".into());
    }
    if !(0.01..=3600.0).contains(&arguments.seconds) {
        return Err("--seconds must be between 0.01 and 3600".into());
    }
    if arguments.fields_per_hash > FIELDS_MAX || arguments.fields < arguments.fields_per_hash {
        return Err(format!("--fields-per-hash must be at most {FIELDS_MAX} and --fields"));
    }
    if arguments.element_size > ELEMENT_BYTES_MAX {
        return Err(format!("--element-size must be at most {ELEMENT_BYTES_MAX}"));
    }
    // Names have eight digits, and everything is numbered in 32 bits.
    let products = [
        ("--members", u64::from(arguments.members) * 2),
        ("--memory-members", u64::from(arguments.memory_members)),
        ("--fields", u64::from(arguments.fields)),
        (
            "--memory-hashes",
            u64::from(arguments.memory_hashes) * u64::from(arguments.fields_per_hash),
        ),
        ("--lists", u64::from(arguments.lists) * u64::from(arguments.list_length)),
        ("--memory-lists", u64::from(arguments.memory_lists) * u64::from(arguments.list_length)),
        ("--counters", u64::from(arguments.counters)),
        ("--bitmaps", u64::from(arguments.bitmaps) * u64::from(arguments.bitmap_bytes) / 4),
    ];
    match products.iter().find(|(_, product)| *product > u64::from(NAMES_MAX)) {
        Some((name, _)) => Err(format!("{name} is too large: {NAMES_MAX} things at most")),
        None => Ok(()),
    }
}

fn measure(bench: &Bench, arguments: &TypesArguments) -> Result<Outcome, WorkError> {
    let systems = bench.programs.len();
    let operations = if arguments.operations.is_empty() {
        Operation::value_variants().to_vec()
    } else {
        arguments.operations.clone()
    };
    let mut cells = Vec::new();
    for &pipeline in &arguments.pipeline {
        for &operation in &operations {
            cells.push(Cell { operation, pipeline, samples: vec![Vec::new(); systems] });
        }
    }
    let mut command_lines = Vec::new();
    for round in 0..arguments.rounds {
        let mut servers: Vec<(Server, World)> = Vec::new();
        for program in &bench.programs {
            let label = &program.label;
            eprintln!("types: round {} of {}: loading {label}", round + 1, arguments.rounds);
            let server = bench.start(program, &Setup::new(arguments.persistence))?;
            let mut load = arguments.load(bench, &server, 1, round);
            let world = World::load(&mut load, &arguments.sizes(), &operations)?;
            servers.push((server, world));
        }
        for cell in &mut cells {
            for turn in 0..systems {
                let system = (turn + round) % systems;
                let (server, world) = &mut servers[system];
                let mut load = arguments.load(bench, server, cell.pipeline, round);
                let measured = world.measure(cell.operation, &arguments.sizes(), &mut load)?;
                let (name, label) = (cell.operation.name(), &server.label);
                eprintln!("  {name} P={} {label}: {}", cell.pipeline, measured.brief());
                cell.samples[system].push(measured);
            }
        }
        command_lines = servers.iter().map(|(server, _)| server.command_line.clone()).collect();
    }
    Ok(Outcome { command_lines, cells })
}
