//! `cargo run --release -p ladon-crash -- --rounds 100`: kills a server under load and checks what
//! it still knows, in as many rounds. `cluster --rounds 100` does so to a cluster.

use clap::{Parser, Subcommand};
use ladon_crash::cluster::{self, ClusterArguments};
use ladon_crash::{GATES, Plan, run};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Kills a real Ladon under load repeatedly, and checks its data after each restart.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<What>,
    /// How many rounds.
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Names the run; without it, the time does.
    #[arg(long)]
    seed: Option<u64>,
    /// Connections with their own keys.
    #[arg(long, default_value_t = 4)]
    lanes: u64,
    /// Keys that make checkpoints and recoveries last.
    #[arg(long, default_value_t = 50_000)]
    filler_keys: u64,
    /// The server's binary; without it, `cargo build --release -p ladon-bin` makes one.
    #[arg(long)]
    ladon: Option<PathBuf>,
    /// IO backends to take turns with.
    #[arg(long, value_delimiter = ',', default_value = "auto,mio")]
    backends: Vec<String>,
    /// Gates to take turns with.
    #[arg(long, value_delimiter = ',', default_values = GATES)]
    gates: Vec<String>,
    /// Keep the data directory of a failed run here.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Say what each round does.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    Cluster(ClusterArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Some(What::Cluster(arguments)) => cluster::command(arguments, build),
        None => outcome(arguments).map(|text| {
            println!("{text}");
            ExitCode::SUCCESS
        }),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ladon-crash: {error}");
            ExitCode::FAILURE
        }
    }
}

fn outcome(arguments: Arguments) -> Result<String, String> {
    let program = match arguments.ladon {
        Some(program) => program,
        None => build()?,
    };
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = arguments.dir.unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |time| time.as_secs())
    });
    let plan = Plan {
        program,
        dir,
        rounds: arguments.rounds,
        seed,
        lanes: arguments.lanes,
        filler_keys: arguments.filler_keys,
        backends: arguments.backends,
        gates: arguments.gates,
        trust_none: false,
        verbose: arguments.verbose,
    };
    let start = Instant::now();
    let summary = run(&plan)?;
    Ok(format!(
        "seed {seed}: {} rounds in {:.1} s, {} kills, {} orderly stops, {} acknowledged operations, \
         {} elements handed over, {} transfers between accounts ({} met another or a definition), \
         {} definitions, {} increments by memcached's protocol, {} by HTTP: none lost, none half there",
        summary.rounds,
        start.elapsed().as_secs_f64(),
        summary.kills,
        summary.stops,
        summary.operations,
        summary.handed_over,
        summary.transfers,
        summary.conflicts,
        summary.definitions,
        summary.memcached,
        summary.http
    ))
}

/// Builds the server that this program belongs to.
fn build() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "-p", "ladon-bin", "--bin", "ladon"])
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cargo build ends with {status}"));
    }
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let profiles = me.parent().and_then(|dir| dir.parent()).ok_or("no target directory")?;
    Ok(profiles.join("release/ladon"))
}
