//! `recovery`: how long a server takes to come back, from a checkpoint and from its log.
//!
//! The time is from starting the process to its first PONG; the files are in the page cache, as they
//! are after a restart that is not the machine's. Server and recovery may use all cores.

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common, PATIENCE};
use super::saving;
use crate::load::data::Data;
use crate::measure::cores;
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::find::Program;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `recovery`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct RecoveryArguments {
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

/// What the data set is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Checkpoint,
    Log,
}

/// What one system showed.
#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    source: Source,
    command_line: Vec<String>,
    /// Bytes of all files in the data directory when the server was started again.
    disk_bytes: u64,
    /// How long saving took, where there was a checkpoint.
    save_seconds: Option<f64>,
    restart_seconds: f64,
    restart_cpu_seconds: f64,
    keys_per_second: f64,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a key that did not come back does.
pub fn run(arguments: &RecoveryArguments) -> Result<(), WorkError> {
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    let cores = cores::allowed()?.len();
    let bench = Bench::prepare(&arguments.common, cores)?;
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        for source in [Source::Checkpoint, Source::Log] {
            eprintln!("recovery: {} from its {source:?}", program.label);
            outcomes.push(measure(&bench, arguments, program, source)?);
        }
    }
    let text = render(arguments, &outcomes);
    bench.finish("recovery", arguments, outcomes, &text)
}

fn measure(
    bench: &Bench,
    arguments: &RecoveryArguments,
    program: &Program,
    source: Source,
) -> Result<Outcome, WorkError> {
    let mut server = bench.start(program, &setup(bench, program.kind, source))?;
    let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
    bench.load(&server, &mut data)?;
    let save_seconds = match source {
        Source::Checkpoint => Some(saving::save(&server)?.as_secs_f64()),
        Source::Log => None,
    };
    if !server.stop(PATIENCE) {
        let what = format!("did not stop within {PATIENCE:?} of SIGTERM");
        return Err(WorkError::Unexpected { system: server.label.clone(), what });
    }
    let disk_bytes = directory_bytes(&server.data_directory())?;
    let restart = server.restart(&[], PATIENCE)?;
    let cpu = server.cpu_clock()?.now()?;
    check(bench, &server, &mut data)?;
    Ok(Outcome {
        system: server.label.clone(),
        kind: program.kind,
        source,
        command_line: server.command_line.clone(),
        disk_bytes,
        save_seconds,
        restart_seconds: restart.as_secs_f64(),
        restart_cpu_seconds: cpu.as_secs_f64(),
        keys_per_second: f64::from(arguments.keys) / restart.as_secs_f64(),
    })
}

/// The Redis family reads either its append-only file or its snapshot, by setting; Ladon keeps one
/// log with checkpoints in it, and reads the log after the last of them.
fn setup(bench: &Bench, kind: Kind, source: Source) -> Setup {
    let persistence = match (kind, source) {
        (Kind::Ladon, _) | (_, Source::Log) => Persistence::Everysec,
        (_, Source::Checkpoint) => Persistence::None,
    };
    let io_threads = if kind == Kind::Ladon { bench.cores.server.len() } else { 1 };
    Setup { io_threads, ..Setup::new(persistence) }
}

/// Every key must be there again, and right.
fn check(bench: &Bench, server: &Server, data: &mut Data) -> Result<(), WorkError> {
    let size = server.control()?.integer(&["DBSIZE"])?;
    if size != i64::from(data.keys()) {
        let what = format!("came back with {size} of {} keys", data.keys());
        return Err(WorkError::Unexpected { system: server.label.clone(), what });
    }
    bench.read_all(server, data)
}

fn directory_bytes(directory: &std::path::Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { directory_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn render(arguments: &RecoveryArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\n{} keys of {} bytes, values of {} bytes; from the start of the process to its first PONG\n\n",
        arguments.keys, arguments.key_size, arguments.value_size
    );
    let mut table = Table::new(&[
        "system",
        "from",
        "on disk MiB",
        "save s",
        "restart s",
        "restart CPU s",
        "million keys/s",
    ]);
    for outcome in outcomes {
        table.row(vec![
            outcome.system.clone(),
            format!("{:?}", outcome.source).to_lowercase(),
            number(Some(outcome.disk_bytes as f64 / f64::from(1 << 20)), 0),
            number(outcome.save_seconds, 1),
            number(Some(outcome.restart_seconds), 2),
            number(Some(outcome.restart_cpu_seconds), 2),
            number(Some(outcome.keys_per_second / 1e6), 2),
        ]);
    }
    text += &table.render();
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        let what = format!("million keys a second from the {:?}", outcome.source).to_lowercase();
        text += &verdict(&what, Some(outcome.keys_per_second / 1e6), Limit::AtLeast(3.0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_count() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), [0; 10]).unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::write(directory.path().join("sub/b"), [0; 5]).unwrap();
        assert_eq!(directory_bytes(directory.path()).unwrap(), 15);
    }
}
