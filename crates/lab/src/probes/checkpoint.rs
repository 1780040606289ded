//! `checkpoint`: what a save under load costs the others: latency and memory, before and during.
//!
//! Half of the connections write, half read, at a fixed total rate, the same for every system;
//! latency counts from when a request was due. The save (BGSAVE) has to share the server's cores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common, PATIENCE, failed_on, persistences};
use super::saving;
use crate::load::data::Data;
use crate::load::driver::Driver;
use crate::load::sample::Sample;
use crate::load::workload::{LANE_OF_READS, LANE_OF_WRITES, Mix, Strings};
use crate::report::statistics::median;
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `checkpoint`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct CheckpointArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Saves; figures are medians over them.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of quiet before each save.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    pub clients: usize,
    /// Requests per second, all connections together.
    #[arg(long, default_value_t = 40_000)]
    pub rate: u32,
    /// Keys.
    #[arg(long, default_value_t = 5_000_000)]
    pub keys: u32,
    /// Length of each key in bytes.
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// Length of each value in bytes.
    #[arg(long, default_value_t = 64)]
    pub value_size: usize,
    /// The promise: none, everysec, fsync; only the first counts. Default: none.
    #[arg(long)]
    pub persistence: Vec<Persistence>,
}

/// Latency of one stretch in microseconds, by operation.
#[derive(Clone, Debug, Serialize)]
struct Latency {
    get: Quantiles,
    set: Quantiles,
    /// All of them.
    p99_us: f64,
    per_second: f64,
    /// The load generator's own longest turn in microseconds.
    generator_us: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Quantiles {
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

/// One save.
#[derive(Clone, Debug, Serialize)]
struct Round {
    quiet: Latency,
    saving: Latency,
    p99_ratio: f64,
    save_seconds: f64,
    rss_before_bytes: u64,
    /// The most that the server's process had while it saved.
    rss_peak_bytes: u64,
    /// What a forked child copied, as its parent reports it.
    forked_copy_bytes: u64,
    /// All the memory that the save took, through the memory before it.
    extra_memory: f64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    command_line: Vec<String>,
    rounds: Vec<Round>,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer or a failed save does.
pub fn run(arguments: &CheckpointArguments) -> Result<(), WorkError> {
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    if arguments.rounds == 0 || arguments.clients == 0 || arguments.rate == 0 {
        return Err(WorkError::Argument("--rounds, --clients and --rate must be above 0".into()));
    }
    let bench = Bench::prepare(&arguments.common, 1)?;
    let persistence = persistences(&arguments.persistence)[0];
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        eprintln!("checkpoint: loading {}", program.label);
        let server = bench.start(program, &Setup::new(persistence))?;
        let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
        bench.load(&server, &mut data)?;
        outcomes.push(Outcome {
            system: program.label.clone(),
            kind: program.kind,
            command_line: server.command_line.clone(),
            rounds: measure(&bench, arguments, &server, &mut data)?,
        });
    }
    let text = render(&bench, arguments, persistence, &outcomes);
    bench.finish("checkpoint", arguments, outcomes, &text)
}

fn measure(
    bench: &Bench,
    arguments: &CheckpointArguments,
    server: &Server,
    data: &mut Data,
) -> Result<Vec<Round>, WorkError> {
    let failed = failed_on(server);
    let strings = Strings::new(data, Mix::SetAndGet, 1, arguments.common.seed);
    let mut driver = Driver::connect(server.address, arguments.clients, bench.waiting, strings)
        .map_err(&failed)?;
    let step = Duration::from_secs(1) / arguments.rate;
    for number in 0..arguments.clients {
        driver.pace(number, step * arguments.clients as u32, step * number as u32);
    }
    driver.run(Duration::from_secs(1)).map_err(&failed)?;
    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        let quiet = driver.run(Duration::from_secs_f64(arguments.seconds)).map_err(&failed)?;
        let before = server.resident().map_or(0, |resident| resident.now);
        let go_on = AtomicBool::new(true);
        // Beside the load, as asking the server from its thread would hold it up.
        let (saving, watched) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let watched = watch_save(server);
                go_on.store(false, Ordering::Relaxed);
                watched
            });
            let saving = driver.run_while(PATIENCE, &go_on);
            (saving, watch.join())
        });
        let saving = saving.map_err(&failed)?;
        let watched = watched.map_err(|_| WorkError::Unexpected {
            system: server.label.clone(),
            what: "could not be watched while it saved".into(),
        })??;
        let forked = forked_copy_bytes(server);
        let extra = watched.rss_peak_bytes.saturating_sub(before) + forked;
        let (quiet, saving) = (Latency::of(&quiet), Latency::of(&saving));
        eprintln!(
            "  save {}: p99 {:.0} us, quiet {:.0} us",
            round + 1,
            saving.p99_us,
            quiet.p99_us
        );
        rounds.push(Round {
            p99_ratio: saving.p99_us / quiet.p99_us,
            quiet,
            saving,
            save_seconds: watched.elapsed.as_secs_f64(),
            rss_before_bytes: before,
            rss_peak_bytes: watched.rss_peak_bytes,
            forked_copy_bytes: forked,
            extra_memory: extra as f64 / before.max(1) as f64,
        });
        // Let it free what the save took.
        driver.run(Duration::from_secs(1)).map_err(&failed)?;
    }
    driver.drain().map_err(&failed)?;
    Ok(rounds)
}

struct Watched {
    elapsed: Duration,
    rss_peak_bytes: u64,
}

fn watch_save(server: &Server) -> Result<Watched, WorkError> {
    let mut control = server.control()?;
    let began = Instant::now();
    let mut peak = 0;
    saving::start(server, &mut control)?;
    loop {
        peak = peak.max(server.resident().map_or(0, |resident| resident.now));
        if saving::is_done(server, &mut control)? {
            return Ok(Watched { elapsed: began.elapsed(), rss_peak_bytes: peak });
        }
        std::thread::sleep(saving::POLL);
    }
}

/// Zero where the server does not report it, which is right where it does not fork.
fn forked_copy_bytes(server: &Server) -> u64 {
    let reported =
        server.control().and_then(|mut control| control.info("persistence", "rdb_last_cow_size"));
    reported.ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

impl Latency {
    fn of(sample: &Sample) -> Self {
        let lane = |lane| Quantiles {
            p50_us: sample.lane_latency_us(lane, 0.5),
            p99_us: sample.lane_latency_us(lane, 0.99),
            p999_us: sample.lane_latency_us(lane, 0.999),
            max_us: sample.lane_max_us(lane),
        };
        Self {
            get: lane(LANE_OF_READS),
            set: lane(LANE_OF_WRITES),
            p99_us: sample.latency_us(0.99),
            per_second: sample.per_second(),
            generator_us: sample.longest_turn.as_secs_f64() * 1e6,
        }
    }
}

fn render(
    bench: &Bench,
    arguments: &CheckpointArguments,
    persistence: Persistence,
    outcomes: &[Outcome],
) -> String {
    let mut text = format!(
        "\npersistence {}: {} keys of {} bytes, values of {} bytes; {} connections, {} requests a second, half SET, half GET; \
         medians of {} saves\n",
        persistence.name(),
        arguments.keys,
        arguments.key_size,
        arguments.value_size,
        arguments.clients,
        arguments.rate,
        arguments.rounds
    );
    text += &format!(
        "the save shares core {:?} with the server's own work\n\nlatency p50/p99/p99.9/longest, microseconds\n\n",
        bench.cores.server
    );
    let mut table =
        Table::new(&["system", "when", "GET", "SET", "p99 of both", "ratio", "k/s", "generator"]);
    for outcome in outcomes {
        let of = |figure: &dyn Fn(&Round) -> f64| middle(&outcome.rounds, figure);
        type Pick = fn(&Round) -> &Latency;
        let stretches: [(&str, Pick); 2] =
            [("quiet", |round| &round.quiet), ("saving", |round| &round.saving)];
        for (name, pick) in stretches {
            let quantiles = |lane: fn(&Latency) -> Quantiles| {
                let figures: [fn(Quantiles) -> f64; 4] =
                    [|q| q.p50_us, |q| q.p99_us, |q| q.p999_us, |q| q.max_us];
                figures.map(|figure| number(of(&|round| figure(lane(pick(round)))), 0)).join("/")
            };
            let ratio = if name == "saving" {
                number(of(&|round| round.p99_ratio), 2)
            } else {
                String::new()
            };
            table.row(vec![
                outcome.system.clone(),
                name.to_owned(),
                quantiles(|latency| latency.get),
                quantiles(|latency| latency.set),
                number(of(&|round| pick(round).p99_us), 0),
                ratio,
                number(of(&|round| pick(round).per_second / 1000.0), 1),
                number(of(&|round| pick(round).generator_us), 0),
            ]);
        }
    }
    text += &table.render();
    text += "\nmemory, MiB\n\n";
    let mut table = Table::new(&["system", "save s", "before", "peak", "forked copy", "extra %"]);
    for outcome in outcomes {
        let mib = |bytes: &dyn Fn(&Round) -> u64| {
            number(middle(&outcome.rounds, &|round| bytes(round) as f64 / f64::from(1 << 20)), 0)
        };
        table.row(vec![
            outcome.system.clone(),
            number(middle(&outcome.rounds, &|round| round.save_seconds), 1),
            mib(&|round| round.rss_before_bytes),
            mib(&|round| round.rss_peak_bytes),
            mib(&|round| round.forked_copy_bytes),
            number(middle(&outcome.rounds, &|round| round.extra_memory * 100.0), 1),
        ]);
    }
    text += &table.render();
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        let extra = middle(&outcome.rounds, &|round| round.extra_memory * 100.0);
        text += &verdict("percent of extra memory while saving", extra, Limit::AtMost(10.0));
        let ratio = middle(&outcome.rounds, &|round| round.p99_ratio);
        text += &verdict("p99 while saving through quiet p99", ratio, Limit::AtMost(2.0));
    }
    text
}

fn middle(rounds: &[Round], figure: &dyn Fn(&Round) -> f64) -> Option<f64> {
    median(&rounds.iter().map(figure).collect::<Vec<f64>>())
}
