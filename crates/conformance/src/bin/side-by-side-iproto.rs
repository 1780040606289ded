//! Random requests to Ladon's spaces and to a real `tarantool`, side by side, until something
//! differs.
//!
//! ```text
//! cargo run --release -p ladon-conformance --bin side-by-side-iproto -- --commands 1000000
//! cargo run --release -p ladon-conformance --bin side-by-side-iproto -- --rights
//! ```
//!
//! Prints each difference with the requests that it needs, and the seed that repeats it. If the
//! real server crashes or hangs, both are started again, and the round's seed is shown. Exit status:
//! 0 if nothing differed, 1 if something did, 2 if a server could not be started or asked.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ladon_conformance::iproto::{Duel, hunt, rights_round, round};
use ladon_conformance::random::Hunt;
use ladon_conformance::{Server, locate};

/// Compares Ladon's replies to random requests of IPROTO with a real Tarantool's.
#[derive(Parser)]
struct Arguments {
    /// The real server's program.
    #[arg(long, default_value = "tarantool")]
    tarantool: PathBuf,
    /// Ladon's program; without it cargo builds one.
    #[arg(long)]
    ladon: Option<PathBuf>,
    /// The first round's seed; the others have those that follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many requests to send, at least.
    #[arg(long, default_value_t = 100_000)]
    commands: usize,
    /// How many requests a round has.
    #[arg(long, default_value_t = 200)]
    length: usize,
    /// About users, grants and logins, in place of spaces.
    #[arg(long)]
    rights: bool,
    /// Ends after so many different differences.
    #[arg(long, default_value_t = 10)]
    differences: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("side-by-side-iproto: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing differed.
fn run(arguments: &Arguments) -> std::io::Result<bool> {
    let ladon = locate::ladon_or(arguments.ladon.as_deref())?;
    let tarantool = match locate::program(&arguments.tarantool.to_string_lossy(), "tarantool") {
        Ok(path) => path,
        Err(_) => arguments.tarantool.clone(),
    };
    let mut duel = Duel::new(
        Box::new(move || Server::tarantool(&tarantool)),
        Box::new(move || Server::ladon_with_iproto(&ladon, &[])),
    )?;
    let Arguments { seed, commands, length, differences, .. } = *arguments;
    let started = Instant::now();
    let sum = Hunt { seed, commands, length, differences };
    let make = if arguments.rights { rights_round } else { round };
    let sum = hunt(sum, &mut duel, make, |found| println!("{found}\n"));
    let (reference, subject) = duel.servers();
    let sum = sum.inspect_err(|_| eprintln!("{}\n{}", reference.output(), subject.output()))?;
    if !duel.crashes.is_empty() {
        println!("the real server crashed or hung in the rounds of the seeds {:?}", duel.crashes);
    }
    for (met, why) in duel.known.met() {
        println!("known, {met} times: {why}");
    }
    let crashes = duel.crashes.len();
    println!("{}, {crashes} crashes of the real server", sum.show(seed, started.elapsed()));
    Ok(sum.differences == 0)
}
