//! The `ladon-lab` program: see `ladon-lab --help`.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use ladon_lab::doctor::{self, DoctorArguments};
use ladon_lab::probes::{self, WorkError};
use ladon_lab::report::command::{self, CompareArguments, ReportArguments};
use ladon_lab::run::options::RunArguments;
use ladon_lab::run::{self, RunError};
use ladon_lab::systems::cleanup;

/// Measures Ladon beside real peers on this machine.
#[derive(Parser)]
#[command(name = "ladon-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What can be measured here, what is missing and how to get it, what disturbs figures.
    Doctor(DoctorArguments),
    /// The field's comparisons: every system found here, side by side, in one run.
    Run(Box<RunArguments>),
    /// Draws report.html, and prints the tables, of one or more runs.
    Report(ReportArguments),
    /// What became slower between two runs; exit code 1 if anything did, 2 if they cannot be compared.
    Compare(CompareArguments),
    /// One of our own engineering questions about Ladon beside the servers that speak its protocol.
    #[command(subcommand)]
    Probe(Box<Probe>),
}

#[derive(Subcommand)]
enum Probe {
    /// SET and GET of small values: CPU per operation, throughput, latency, memory.
    Kv(probes::kv::KvArguments),
    /// Resident memory of many small keys.
    Memory(probes::memory::MemoryArguments),
    /// Operations of hashes, lists, sets, sorted sets, bitmaps and counters: CPU, or memory.
    Types(probes::types::TypesArguments),
    /// The longest wait of a reader while the table grows.
    Growth(probes::growth::GrowthArguments),
    /// Resident memory while data changes: deletions, shifting sizes, huge values, floods.
    Churn(probes::churn::ChurnArguments),
    /// Share of requests that a full cache answers.
    Eviction(probes::eviction::EvictionArguments),
    /// Waits of small GETs while a command works on a large value.
    Stall(probes::stall::StallArguments),
    /// From a push to the client that waits for it, on another IO thread.
    Handover(probes::handover::HandoverArguments),
}

fn main() -> std::process::ExitCode {
    if let Err(error) = cleanup::on_signals() {
        eprintln!("ladon-lab: cannot watch for signals: {error}");
        return std::process::ExitCode::FAILURE;
    }
    match Arguments::parse().command {
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Run(arguments) => match run::run(&arguments) {
            Ok(written) => {
                println!("written: {}", written.display());
                std::process::ExitCode::SUCCESS
            }
            Err(error) => {
                failed(&error, if matches!(error, RunError::Interrupted(_)) { 130 } else { 1 })
            }
        },
        Command::Report(arguments) => match command::report(&arguments) {
            Ok((tables, written)) => {
                print!("{tables}");
                for path in written {
                    println!("written: {}", path.display());
                }
                std::process::ExitCode::SUCCESS
            }
            Err(error) => failed(&error, 1),
        },
        Command::Compare(arguments) => match command::compare_runs(&arguments) {
            Ok((text, worse)) => {
                print!("{text}");
                std::process::ExitCode::from(u8::from(worse))
            }
            // 1 says that something regressed, which nobody knows here.
            Err(error) => failed(&error, 2),
        },
        Command::Probe(probe) => match run_probe(*probe) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(error) => failed(&error, 1),
        },
    }
}

fn failed(error: &dyn std::error::Error, code: u8) -> std::process::ExitCode {
    eprintln!("ladon-lab: {error}");
    std::process::ExitCode::from(code)
}

fn run_probe(probe: Probe) -> Result<(), WorkError> {
    match probe {
        Probe::Kv(arguments) => probes::kv::run(&arguments),
        Probe::Memory(arguments) => probes::memory::run(&arguments),
        Probe::Types(arguments) => probes::types::run(&arguments),
        Probe::Growth(arguments) => probes::growth::run(&arguments),
        Probe::Churn(arguments) => probes::churn::run(&arguments),
        Probe::Eviction(arguments) => probes::eviction::run(&arguments),
        Probe::Stall(arguments) => probes::stall::run(&arguments),
        Probe::Handover(arguments) => probes::handover::run(&arguments),
    }
}
