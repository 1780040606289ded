//! `ladon-sim [COUNT [FIRST]]`: runs seeds until one fails; the soak.
//! `ladon-sim cluster [--seeds COUNT] [--from FIRST] [--canary NAME]`: the same for clusters; with a
//! bug that is put in, until it is found; `--log debug` shows what the nodes and their consensus say.

use ladon_sim::{
    Canary, ClusterCanary, ClusterReport, Report, Trouble, run_cluster_seed, run_seed,
};
use std::process::ExitCode;
use std::time::Instant;

/// A seed makes and drops whole nodes: a tenth of its time is the allocator's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: ladon-sim [COUNT [FIRST SEED]]
       ladon-sim cluster [--seeds COUNT] [--from FIRST SEED] [--canary NAME] [--log LEVEL]";

/// Seeds between two lines of progress.
const TELL_EVERY: u64 = 10_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let told = match words.first().map(String::as_str) {
        Some("cluster") => match Asked::of(&words[1..]) {
            Ok(asked) => asked.run(),
            Err(()) => None,
        },
        _ => run_nodes(&words),
    };
    told.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        ExitCode::from(2)
    })
}

fn run_nodes(words: &[String]) -> Option<ExitCode> {
    let mut numbers = words.iter().map(|text| text.parse::<u64>());
    let (count, first) = match (numbers.next(), numbers.next(), numbers.next()) {
        (None, ..) => (1_000_000, 0),
        (Some(Ok(count)), None, _) => (count, 0),
        (Some(Ok(count)), Some(Ok(first)), None) => (count, first),
        _ => return None,
    };
    let mut total = Report::default();
    let run = |seed| {
        let report = run_seed(seed, Canary::None)?;
        total.add(&report);
        if report.undecided > 0 {
            println!("seed {seed}: undecided");
        }
        Ok(format!("{total:?}"))
    };
    Some(soak(count, first, "", run))
}

/// Runs seeds; `run` returns what all of them did.
fn soak(
    count: u64,
    first: u64,
    command: &str,
    mut run: impl FnMut(u64) -> Result<String, Trouble>,
) -> ExitCode {
    let begin = Instant::now();
    let mut total = String::new();
    for seed in first..first.saturating_add(count) {
        total = match run(seed) {
            Ok(total) => total,
            Err(trouble) => {
                eprintln!("{trouble}");
                match command {
                    "" => eprintln!("repeat it with: ladon-sim 1 {seed}"),
                    _ => eprintln!("repeat it with: ladon-sim {command} --seeds 1 --from {seed}"),
                }
                return ExitCode::FAILURE;
            }
        };
        let done = seed - first + 1;
        if done.is_multiple_of(TELL_EVERY) {
            let seconds = begin.elapsed().as_secs_f64();
            println!("{done} seeds in {seconds:.0} s: {total}");
        }
    }
    let a_second = count as f64 / begin.elapsed().as_secs_f64();
    println!("{count} seeds, no trouble, {a_second:.0} a second: {total}");
    ExitCode::SUCCESS
}

/// Writes what is logged from this level up to the standard error, without the time, which is not the
/// nodes' own.
fn show_log(level: tracing::Level) {
    let subscriber =
        tracing_subscriber::fmt().with_max_level(level).without_time().with_ansi(false);
    subscriber.with_writer(std::io::stderr).init();
}

struct Asked {
    count: u64,
    first: u64,
    canary: ClusterCanary,
}

impl Asked {
    fn of(words: &[String]) -> Result<Asked, ()> {
        let mut asked = Asked { count: 100_000, first: 0, canary: ClusterCanary::None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(())?;
            match word.as_str() {
                "--log" => show_log(value.parse().map_err(|_| ())?),
                "--seeds" => asked.count = value.parse().map_err(|_| ())?,
                "--from" => asked.first = value.parse().map_err(|_| ())?,
                "--canary" => {
                    let named = |canary: &ClusterCanary| format!("{canary:?}") == *value;
                    asked.canary = ClusterCanary::ALL.into_iter().find(named).ok_or(())?;
                }
                _ => return Err(()),
            }
        }
        Ok(asked)
    }

    fn run(self) -> Option<ExitCode> {
        let mut total = ClusterReport::default();
        let command = match self.canary {
            ClusterCanary::None => "cluster".to_owned(),
            canary => format!("cluster --canary {canary:?}"),
        };
        let run = |seed| {
            total.add(&run_cluster_seed(seed, self.canary)?);
            Ok(format!("{total:?}"))
        };
        Some(soak(self.count, self.first, &command, run))
    }
}
