//! Clusters of real processes under real faults; what clients saw is judged.
//!
//! ```text
//! clients --gate quorum--> node 0   node 1   node 2      kill -9, SIGSTOP, SIGTERM, cut links,
//!    |                       \________|________/         full disks, lost directories
//!    +--> histories: one order of all operations must explain each of them, those of unknown
//!         outcome done or not; at the end all members have equal data
//! ```
//! The clients use few keys at once, follow the leader, and ask other nodes too. A round's keys are its
//! own. Histories are judged by `ladon-history`.
//!
//! Without rights for namespaces, all nodes are on 127.0.0.1: no link is cut, and no disk is filled.

mod canary;
mod clients;
mod failovers;
mod faults;
mod inside;
mod named;
mod network;
mod nodes;
mod rounds;
mod table;
mod things;
mod wire;

pub use canary::canary;
pub use clients::Tally;
pub use failovers::{Failovers, failovers};
pub use named::{story, story_names};
pub use nodes::Shape;
pub use rounds::{ClusterPlan, ClusterSummary, fault_names, run_cluster};
pub use table::{Table, table};

use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Clusters of real processes under real faults, their histories checked.
#[derive(Args, Debug)]
pub struct ClusterArguments {
    #[command(subcommand)]
    command: Option<ClusterCommand>,
    /// How many rounds.
    // The command above has one of the same name, whose default would be taken.
    #[arg(long = "rounds", id = "cluster-rounds", global = true)]
    rounds: Option<u64>,
    /// No round begins after so many seconds; without it and --rounds, 20 rounds are run.
    #[arg(long)]
    seconds: Option<u64>,
    /// Only these faults or stories, one with each --only (--list names them).
    #[arg(long, global = true)]
    only: Vec<String>,
    /// Names the run; without it, the time does.
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// Members.
    #[arg(long, default_value_t = 3, global = true)]
    nodes: usize,
    /// So many members have the data besides the leader. With one node more than that needs, the last
    /// one is a witness, as `ladon cluster create --replicas` makes it.
    #[arg(long)]
    replicas: Option<usize>,
    /// Clients at once.
    #[arg(long, default_value_t = 6)]
    clients: u64,
    /// Milliseconds: the nodes' setting of that name.
    #[arg(long, default_value_t = 300, global = true)]
    failover_timeout: u64,
    /// The server's binary; without it, LADON_BIN, or the one that `cargo build --release` makes.
    #[arg(long, global = true)]
    ladon: Option<PathBuf>,
    /// All nodes on 127.0.0.1, where links cannot be cut.
    #[arg(long, global = true)]
    loopback: bool,
    /// Say what each round does.
    #[arg(long, short)]
    verbose: bool,
    /// Print what clients see of each failure, as a table.
    #[arg(long)]
    table: bool,
    /// Name all faults and stories.
    #[arg(long)]
    list: bool,
    /// Keep the nodes' files of a failed run on loopback, and all nodes' logs, here.
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Run every story once, or --rounds times.
    Stories,
    /// Kill leaders, and measure the time without one.
    Failovers {
        /// How many.
        #[arg(long, default_value_t = 300)]
        kills: u64,
    },
}

/// Runs the command. `build` makes the server where none is named.
///
/// # Errors
/// What is wrong with the cluster, or why there is none.
pub fn command(
    arguments: &ClusterArguments,
    build: impl FnOnce() -> Result<PathBuf, String>,
) -> Result<ExitCode, String> {
    let program =
        match arguments.ladon.clone().or_else(|| std::env::var_os("LADON_BIN").map(Into::into)) {
            Some(program) => program,
            None => build()?,
        };
    let program =
        program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?;
    if !arguments.loopback && !inside::is_inside() {
        match inside::again() {
            Some(code) => return Ok(code),
            None => println!(
                "No namespaces here (unshare, ip and the right to use them): all nodes are on \
                 127.0.0.1, so no link is cut or slowed, and no disk is filled."
            ),
        }
    }
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = arguments.dir.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let done = run(arguments, &program, &dir);
    println!("{}", done?);
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &ClusterArguments, program: &Path, dir: &Path) -> Result<String, String> {
    let in_namespaces = inside::is_inside() && !arguments.loopback;
    if arguments.list {
        let (faults, stories) = (fault_names(in_namespaces), story_names());
        return Ok(format!("faults:\n{}\nstories:\n{}", faults.join("\n"), stories.join("\n")));
    }
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |time| time.as_secs())
    });
    let shape = Shape {
        program: program.to_owned(),
        dir: dir.to_owned(),
        count: arguments.nodes,
        has_witness: has_witness(arguments)?,
        failover_ms: arguments.failover_timeout,
        in_namespaces,
    };
    let takes_only =
        !arguments.table && !matches!(arguments.command, Some(ClusterCommand::Failovers { .. }));
    if !takes_only && !arguments.only.is_empty() {
        return Err("--only is for rounds and stories".to_owned());
    }
    if let Some(ClusterCommand::Failovers { kills }) = arguments.command {
        return failovers(&shape, kills).map(|found| found.to_string());
    }
    if arguments.table {
        return table(&shape).map(|table| table.to_string());
    }
    if let Some(named) = named_stories(arguments)? {
        return stories(&shape, &named, arguments.rounds.unwrap_or(1));
    }
    let plan = ClusterPlan {
        shape,
        rounds: arguments.rounds.unwrap_or(if arguments.seconds.is_some() { u64::MAX } else { 20 }),
        time: Duration::from_secs(arguments.seconds.unwrap_or(u64::MAX / 4)),
        seed,
        clients: arguments.clients,
        only: arguments.only.clone(),
        verbose: arguments.verbose,
    };
    let began = std::time::Instant::now();
    let summary = run_cluster(&plan)?;
    let ClusterSummary { rounds, tally } = summary;
    Ok(format!(
        "seed {seed}: {rounds} rounds with {} nodes{} in {:.0} s: {} operations acknowledged at quorum, {} \
         of them reads that followers answered, {} of unknown outcome, longest time without an answer {} ms; every history linearizable ({} \
         undecided), data of all members equal. Clocks were not stepped: that needs a clock of its own \
         for each process.\nreplies other than answers: {:?}",
        arguments.nodes,
        if plan.shape.has_witness { ", one of them a witness," } else { "" },
        began.elapsed().as_secs_f64(),
        tally.known,
        tally.by_followers,
        tally.unknown,
        tally.pause.as_millis(),
        tally.undecided,
        tally.refusals
    ))
}

/// The stories to run, if it is stories.
///
/// # Errors
/// Names of stories beside those of something else.
fn named_stories(arguments: &ClusterArguments) -> Result<Option<Vec<&'static str>>, String> {
    let all = story_names();
    let is_story = |only: &String| all.contains(&only.as_str());
    let by_command = matches!(arguments.command, Some(ClusterCommand::Stories));
    match (&arguments.only[..], by_command) {
        ([], true) => Ok(Some(all)),
        ([], false) => Ok(None),
        (only, false) if !only.iter().any(is_story) => Ok(None),
        (only, _) => match only.iter().find(|name| !is_story(name)) {
            Some(other) => Err(format!("{other} is no story (--list names them)")),
            None => Ok(Some(
                all.iter().copied().filter(|name| only.iter().any(|it| it == name)).collect(),
            )),
        },
    }
}

/// Whether the last node is a witness.
fn has_witness(arguments: &ClusterArguments) -> Result<bool, String> {
    let Some(replicas) = arguments.replicas else { return Ok(false) };
    if arguments.command.is_some() || arguments.table || named_stories(arguments)?.is_some() {
        return Err("--replicas is for rounds: all else is of members with data".to_owned());
    }
    match arguments.nodes.checked_sub(replicas + 1) {
        Some(0) => Ok(false),
        Some(1) if replicas > 0 => Ok(true),
        _ => Err(format!(
            "--replicas {replicas} needs {} nodes, or one more for a witness",
            replicas + 1
        )),
    }
}

/// Runs these so many times.
fn stories(shape: &Shape, names: &[&str], rounds: u64) -> Result<String, String> {
    for _ in 0..rounds {
        for name in names {
            println!("{name}: {}", story(shape, name)?);
        }
    }
    Ok(format!("{} stories, {rounds} times each: all ended well", names.len()))
}
