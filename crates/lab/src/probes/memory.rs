//! `memory`: how much a key costs.
//!
//! Small keys with small values, many of them: what counts is what the server adds to them.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common};
use crate::load::data::Data;
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `memory`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct MemoryArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Keys.
    #[arg(long, default_value_t = 10_000_000)]
    pub keys: u32,
    /// Length of each key in bytes.
    #[arg(long, default_value_t = 11)]
    pub key_size: usize,
    /// Length of each value in bytes.
    #[arg(long, default_value_t = 8)]
    pub value_size: usize,
}

/// What one system showed.
#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    command_line: Vec<String>,
    /// Resident bytes before the first key.
    empty_bytes: u64,
    /// Resident bytes with all keys, once they no longer changed.
    full_bytes: u64,
    /// The most that were ever resident.
    peak_bytes: u64,
    /// All resident bytes, those of the empty server too, through keys.
    bytes_per_key: f64,
    load_seconds: f64,
    load_cpu_us_per_key: f64,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &MemoryArguments) -> Result<(), WorkError> {
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    let bench = Bench::prepare(&arguments.common, 1)?;
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        eprintln!("memory: loading {}", program.label);
        let server = bench.start(program, &Setup::new(Persistence::None))?;
        outcomes.push(measure(&bench, arguments, &server)?);
    }
    let text = render(&bench, arguments, &outcomes);
    bench.finish("memory", arguments, outcomes, &text)
}

fn measure(
    bench: &Bench,
    arguments: &MemoryArguments,
    server: &Server,
) -> Result<Outcome, WorkError> {
    let gone = || WorkError::Unexpected { system: server.label.clone(), what: "is gone".into() };
    let empty = settled(server).ok_or_else(gone)?;
    let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
    let clock = server.cpu_clock()?;
    let (began, cpu) = (Instant::now(), clock.now()?);
    bench.load(server, &mut data)?;
    let (elapsed, cpu) = (began.elapsed(), clock.now()? - cpu);
    // Some tables grow a step with every request and hold two of themselves until they are through:
    // a read of each key lets them finish.
    bench.read_all(server, &mut data)?;
    let full = settled(server).ok_or_else(gone)?;
    let keys = f64::from(arguments.keys);
    Ok(Outcome {
        system: server.label.clone(),
        command_line: server.command_line.clone(),
        empty_bytes: empty,
        full_bytes: full,
        peak_bytes: server.resident().ok_or_else(gone)?.peak,
        bytes_per_key: full as f64 / keys,
        load_seconds: elapsed.as_secs_f64(),
        load_cpu_us_per_key: cpu.as_secs_f64() * 1e6 / keys,
    })
}

/// Resident bytes once they have not changed by 0.1 % for two seconds, or after a minute.
pub(super) fn settled(server: &Server) -> Option<u64> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut last = server.resident()?.now;
    let mut since = Instant::now();
    while Instant::now() < deadline && since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
        let now = server.resident()?.now;
        if now.abs_diff(last) > last / 1000 {
            last = now;
            since = Instant::now();
        }
    }
    Some(server.resident()?.now)
}

fn render(bench: &Bench, arguments: &MemoryArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\n{} keys of {} bytes, values of {} bytes; resident memory\n\n",
        arguments.keys, arguments.key_size, arguments.value_size
    );
    let mut table = Table::new(&[
        "system",
        "empty MiB",
        "full MiB",
        "peak MiB",
        "bytes a key",
        "load s",
        "load CPU us a key",
    ]);
    let mib = |bytes: u64| number(Some(bytes as f64 / f64::from(1 << 20)), 0);
    for outcome in outcomes {
        table.row(vec![
            outcome.system.clone(),
            mib(outcome.empty_bytes),
            mib(outcome.full_bytes),
            mib(outcome.peak_bytes),
            number(Some(outcome.bytes_per_key), 1),
            number(Some(outcome.load_seconds), 1),
            number(Some(outcome.load_cpu_us_per_key), 2),
        ]);
    }
    text += &table.render();
    for (program, outcome) in bench.programs.iter().zip(outcomes) {
        if program.kind == Kind::Ladon {
            text += &verdict("bytes a key", Some(outcome.bytes_per_key), Limit::AtMost(45.0));
        }
    }
    text
}
