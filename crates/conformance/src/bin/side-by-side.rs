//! Random requests to Ladon and to a real server, side by side, until something differs.
//!
//! ```text
//! cargo run --release -p ladon-conformance --bin side-by-side -- --commands 1000000 --redis /usr/bin/redis-server
//! ```
//!
//! Prints each difference as a short script, with the seed that repeats it. Exit status: 0 if
//! nothing differed, 1 if something did, 2 if a server could not be started or asked.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ladon_conformance::random::{Duel, Hunt, grammar};
use ladon_conformance::{Server, locate};

/// Compares Ladon's replies to random requests with a real server's.
#[derive(Parser)]
struct Arguments {
    /// The real server's program; one inside a tree with a loader of its own is run by that.
    #[arg(long, default_value = "redis-server")]
    redis: PathBuf,
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
    #[arg(long, default_value_t = 300)]
    length: usize,
    /// Only these families, by the names of grammar's files.
    #[arg(long, value_delimiter = ',')]
    families: Vec<String>,
    /// Ends after so many different differences.
    #[arg(long, default_value_t = 10)]
    differences: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("side-by-side: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing differed.
fn run(arguments: &Arguments) -> std::io::Result<bool> {
    let ladon = locate::ladon_or(arguments.ladon.as_deref())?;
    let redis = match locate::program(&arguments.redis.to_string_lossy(), "redis-server") {
        Ok(path) => path,
        Err(_) => arguments.redis.clone(),
    };
    let reference = Server::redis(&redis)?;
    let subject = Server::ladon(&ladon, "none", &[])?;
    let mut duel = Duel::new(reference.address, subject.address)?;
    let mut families = grammar::families(&duel.peer().name).map_err(std::io::Error::other)?;
    if !arguments.families.is_empty() {
        families.retain(|family| arguments.families.iter().any(|name| name == family.name));
    }
    if families.is_empty() {
        return Err(std::io::Error::other("no such family"));
    }
    let Arguments { seed, commands, length, differences, .. } = *arguments;
    let started = Instant::now();
    let hunt = Hunt { seed, commands, length, differences };
    let sum = hunt.run(&mut duel, &families, |found| println!("{found}\n"));
    let sum = sum.inspect_err(|_| eprintln!("{}", subject.output()))?;
    for (met, why) in duel.known.met() {
        println!("known, {met} times: {why}");
    }
    println!("{}: {}", duel.peer().name, sum.show(seed, started.elapsed()));
    Ok(sum.differences == 0)
}
