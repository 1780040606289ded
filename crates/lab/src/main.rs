//! The `ladon-lab` program: one subcommand per question, see `ladon-lab --help`.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use ladon_lab::systems::cleanup;
use ladon_lab::works::{self, WorkError};

/// Measures Ladon beside real peers on this machine.
#[derive(Parser)]
#[command(name = "ladon-lab", version)]
struct Arguments {
    #[command(subcommand)]
    work: Work,
}

#[derive(Subcommand)]
enum Work {
    /// SET and GET of small values: CPU per operation, throughput, latency, memory.
    Kv(works::kv::KvArguments),
    /// Resident memory of many small keys.
    Memory(works::memory::MemoryArguments),
    /// Restart with many small keys, from a checkpoint and from the log.
    Recovery(works::recovery::RecoveryArguments),
    /// Latency and memory while a server saves under load.
    Checkpoint(works::checkpoint::CheckpointArguments),
    /// Throughput with every write on the disk before its reply, beside none.
    Fsync(works::fsync::FsyncArguments),
    /// Operations of hashes, lists, sets, sorted sets, bitmaps and counters: CPU, or memory.
    Types(works::types::TypesArguments),
    /// CPU per operation with several IO threads, beside one.
    Threads(works::threads::ThreadsArguments),
    /// The longest wait of a reader while the table grows.
    Growth(works::growth::GrowthArguments),
    /// Share of requests that a full cache answers.
    Eviction(works::eviction::EvictionArguments),
    /// Waits of small GETs while a command works on a large value.
    Stall(works::stall::StallArguments),
    /// Memory and CPU of connections that do nothing.
    Idle(works::idle::IdleArguments),
}

fn main() -> std::process::ExitCode {
    if let Err(error) = cleanup::on_signals() {
        eprintln!("ladon-lab: cannot watch for signals: {error}");
        return std::process::ExitCode::FAILURE;
    }
    match run(Arguments::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ladon-lab: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), WorkError> {
    match arguments.work {
        Work::Kv(arguments) => works::kv::run(&arguments),
        Work::Memory(arguments) => works::memory::run(&arguments),
        Work::Recovery(arguments) => works::recovery::run(&arguments),
        Work::Checkpoint(arguments) => works::checkpoint::run(&arguments),
        Work::Fsync(arguments) => works::fsync::run(&arguments),
        Work::Types(arguments) => works::types::run(&arguments),
        Work::Threads(arguments) => works::threads::run(&arguments),
        Work::Growth(arguments) => works::growth::run(&arguments),
        Work::Eviction(arguments) => works::eviction::run(&arguments),
        Work::Stall(arguments) => works::stall::run(&arguments),
        Work::Idle(arguments) => works::idle::run(&arguments),
    }
}
