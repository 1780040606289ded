//! The `ladon-lab` program: see `ladon-lab --help`.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use ladon_lab::doctor::{self, DoctorArguments};
use ladon_lab::report::command::{self, CompareArguments, ReportArguments};
use ladon_lab::run::options::RunArguments;
use ladon_lab::run::{self, RunError};
use ladon_lab::systems::{cleanup, sqlite_server};

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
    /// What became slower between two runs; exit code 1 if anything did, 2 if they cannot be
    /// compared.
    Compare(CompareArguments),
    /// Serves SQLite in memory over IPROTO: the system `sqlite` of the work `sql`.
    #[command(hide = true)]
    Sqlite {
        /// The port of 127.0.0.1.
        port: u16,
    },
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
        Command::Sqlite { port } => match sqlite_server::serve(port) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(error) => failed(&error, 1),
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
    }
}

fn failed(error: &dyn std::error::Error, code: u8) -> std::process::ExitCode {
    eprintln!("ladon-lab: {error}");
    std::process::ExitCode::from(code)
}
