//! `stall`: does a command on a large value make the others wait?
//!
//! One connection does one long command after the other while some others each GET a small value at
//! fixed times. A GET's wait counts from when it was due, and those that fall due while one waits are
//! made up for: a stop of 100 ms is seen by every GET that falls into it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, CLIENTS, Common, failed_on};
use super::saving;
use crate::load::data::Data;
use crate::load::large::{Command, Fill, Sizes, Value};
use crate::load::stall::{Stretch, StretchError};
use crate::load::stream::Stream;
use crate::load::words::NAMES_MAX;
use crate::load::workload::{LANE_OF_READS, LANE_OF_WRITES};
use crate::measure::cores;
use crate::report::statistics::median;
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `stall`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct StallArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Interleaved rounds; figures are medians over them.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// Seconds for which each command is repeated, at least once.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Milliseconds from one command to the next, where it does not take longer: back to back they
    /// would show how a server shares its time between connections, not what one command does.
    #[arg(long, default_value_t = 1000)]
    pub every: u64,
    /// IO threads of Ladon, each with a core of the server's. Default: 2 where the machine has three
    /// cores, else 1.
    #[arg(long)]
    pub io_threads: Option<usize>,
    /// Connections that read.
    #[arg(long, default_value_t = 10)]
    pub clients: usize,
    /// Microseconds between the requests of each of them.
    #[arg(long, default_value_t = 1000)]
    pub interval: u64,
    /// Small keys for them to read.
    #[arg(long, default_value_t = 10_000)]
    pub keys: u32,
    /// Members of the sorted set that is deleted.
    #[arg(long, default_value_t = 10_000_000)]
    pub sorted_set: u32,
    /// Fields of the hash that is read.
    #[arg(long, default_value_t = 1_000_000)]
    pub hash: u32,
    /// Members of each of the sets that are united.
    #[arg(long, default_value_t = 1_000_000)]
    pub set: u32,
    /// Elements of the list that is read.
    #[arg(long, default_value_t = 1_000_000)]
    pub list: u32,
    /// Bytes of each of the two strings.
    #[arg(long, default_value_t = 100_000_000)]
    pub string: u32,
    /// Only these stretches, by their names in the table; "nothing" always.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

/// Stretches that are measured, in this order.
const STRETCHES: [(&str, &[Command]); 22] = [
    ("nothing", &[]),
    ("HGETALL", &[Command::Hgetall]),
    ("SMEMBERS", &[Command::Smembers]),
    ("LRANGE 0 -1", &[Command::Lrange]),
    ("ZRANGE 0 -1", &[Command::Zrange]),
    ("SUNIONSTORE", &[Command::Sunionstore]),
    ("SINTERSTORE", &[Command::Sinterstore]),
    ("ZUNIONSTORE", &[Command::Zunionstore]),
    ("SORT STORE", &[Command::Sort]),
    ("COPY", &[Command::Copy]),
    ("BITOP", &[Command::Bitop]),
    ("BITCOUNT", &[Command::Bitcount]),
    ("BITPOS", &[Command::Bitpos]),
    ("COPY string", &[Command::CopyString]),
    ("GET string", &[Command::GetString]),
    ("SET string", &[Command::SetString]),
    ("LPOS", &[Command::Lpos]),
    ("LCS", &[Command::Lcs]),
    ("RENAME", &[Command::Rename]),
    ("nothing again", &[]),
    ("DEL sorted set", &[Command::DelSortedSet]),
    (
        "BGSAVE + all",
        &[Command::DelSortedSet, Command::Hgetall, Command::Sunionstore, Command::Lrange],
    ),
];

impl StallArguments {
    fn wants(&self, stretch: &str) -> bool {
        self.only.is_empty() || stretch == "nothing" || self.only.iter().any(|only| only == stretch)
    }
}

/// The longest string that a server takes by default.
const STRING_BYTES_MAX: u32 = 512 << 20;

/// The last stretch, in which the server saves.
const SAVING: usize = STRETCHES.len() - 1;

/// What the readers saw in one stretch.
#[derive(Debug, Serialize)]
struct Seen {
    seconds: f64,
    /// Commands that were done.
    commands: usize,
    longest_command_us: f64,
    gets: u64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    longest_us: f64,
    /// The load generator's own longest turn.
    generator_us: f64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    command_line: Vec<String>,
    /// By stretch, per round.
    stretches: Vec<Vec<Seen>>,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &StallArguments) -> Result<(), WorkError> {
    check(arguments).map_err(WorkError::Argument)?;
    let default_threads = if cores::allowed()?.len() > 2 { 2 } else { 1 };
    let io_threads = arguments.io_threads.unwrap_or(default_threads);
    let bench = Bench::prepare(&arguments.common, io_threads)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for program in &bench.programs {
        outcomes.push(Outcome {
            system: program.label.clone(),
            kind: program.kind,
            command_line: Vec::new(),
            stretches: STRETCHES.iter().map(|_| Vec::new()).collect(),
        });
    }
    for round in 0..arguments.rounds {
        for turn in 0..bench.programs.len() {
            let system = (turn + round) % bench.programs.len();
            let program = &bench.programs[system];
            eprintln!("stall: round {} of {}: {}", round + 1, arguments.rounds, program.label);
            let threads = if program.kind == Kind::Ladon { io_threads } else { 1 };
            let setup = Setup { io_threads: threads, ..Setup::new(Persistence::None) };
            let server = bench.start(program, &setup)?;
            outcomes[system].command_line.clone_from(&server.command_line);
            let seen = measure(&bench, arguments, &server)?;
            for (stretch, seen) in outcomes[system].stretches.iter_mut().zip(seen) {
                stretch.extend(seen);
            }
        }
    }
    let text = render(&bench, arguments, io_threads, &outcomes);
    bench.finish("stall", arguments, outcomes, &text)
}

fn check(arguments: &StallArguments) -> Result<(), String> {
    let sizes = [arguments.keys, arguments.sorted_set, arguments.hash, arguments.set];
    if sizes.iter().chain([&arguments.list]).any(|&size| size == 0 || size > NAMES_MAX / 2) {
        return Err(format!("sizes must be from 1 to {}", NAMES_MAX / 2));
    }
    if arguments.string == 0 || arguments.string > STRING_BYTES_MAX {
        return Err(format!("--string must be from 1 to {STRING_BYTES_MAX}"));
    }
    let known = |name: &&String| STRETCHES.iter().any(|(known, _)| known == name);
    if let Some(unknown) = arguments.only.iter().find(|name| !known(name)) {
        let names = STRETCHES.map(|(name, _)| name).join(", ");
        return Err(format!("no stretch is called '{unknown}'; there are: {names}"));
    }
    if [arguments.rounds, arguments.clients].contains(&0)
        || [arguments.interval, arguments.every].contains(&0)
    {
        return Err("--rounds, --clients, --interval and --every must be above 0".into());
    }
    if arguments.io_threads == Some(0) {
        return Err("--io-threads must be above 0".into());
    }
    if !(0.01..=3600.0).contains(&arguments.seconds) {
        return Err("--seconds must be between 0.01 and 3600".into());
    }
    Ok(())
}

fn measure(
    bench: &Bench,
    arguments: &StallArguments,
    server: &Server,
) -> Result<Vec<Option<Seen>>, WorkError> {
    let sizes = Sizes {
        sorted_set: arguments.sorted_set,
        hash: arguments.hash,
        set: arguments.set,
        list: arguments.list,
        string: arguments.string,
    };
    let mut data = Data::new(arguments.keys, KEY_BYTES, VALUE_BYTES);
    bench.load(server, &mut data)?;
    let mut is_there: Vec<Value> = Vec::new();
    let load = |commands: &[Command], is_there: &mut Vec<Value>| {
        for &value in commands.iter().flat_map(|command| command.values()) {
            if !is_there.contains(&value) {
                let connections = if value.is_in_order() { 1 } else { CLIENTS };
                bench.ask_all(server, connections, Fill::new(value, sizes))?;
                is_there.push(value);
            }
        }
        Ok::<(), WorkError>(())
    };
    // The sorted set, which is deleted, comes when it is wanted.
    let is_early = |command: &&Command| !command.values().contains(&Value::SortedSet);
    for (_, commands) in STRETCHES.iter().filter(|(name, _)| arguments.wants(name)) {
        let early: Vec<Command> = commands.iter().filter(is_early).copied().collect();
        load(&early, &mut is_there)?;
    }
    let mut all = Vec::new();
    for (index, (name, commands)) in STRETCHES.iter().enumerate() {
        if !arguments.wants(name) {
            all.push(None);
            continue;
        }
        load(commands, &mut is_there)?;
        if commands.contains(&Command::DelSortedSet) {
            is_there.retain(|&value| value != Value::SortedSet);
        }
        let seen = if index == SAVING {
            while_saving(bench, arguments, server, &mut data, sizes, commands)?
        } else {
            let until = Instant::now() + Duration::from_secs_f64(arguments.seconds);
            let more = || Instant::now() < until;
            stretch(bench, arguments, server, &mut data, sizes, commands, more)?
        };
        eprintln!("  {name}: p99.9 {:.0} us, longest {:.0} us", seen.p999_us, seen.longest_us);
        all.push(Some(seen));
    }
    Ok(all)
}

/// Length of the small keys and values.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 16;

fn while_saving(
    bench: &Bench,
    arguments: &StallArguments,
    server: &Server,
    data: &mut Data,
    sizes: Sizes,
    commands: &[Command],
) -> Result<Seen, WorkError> {
    let saves = AtomicBool::new(true);
    // Asked for before the load, so that no command comes before the save.
    let mut control = server.control()?;
    saving::start(server, &mut control)?;
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let done = loop {
                match saving::is_done(server, &mut control) {
                    Ok(false) => std::thread::sleep(saving::POLL),
                    Ok(true) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            saves.store(false, Ordering::Relaxed);
            done
        });
        let more = || saves.load(Ordering::Relaxed);
        let seen = stretch(bench, arguments, server, data, sizes, commands, more);
        let watched = watch.join().map_err(|_| WorkError::Unexpected {
            system: server.label.clone(),
            what: "could not be watched while it saved".into(),
        })?;
        watched.and(seen)
    })
}

/// One stretch over connections of its own.
fn stretch(
    bench: &Bench,
    arguments: &StallArguments,
    server: &Server,
    data: &mut Data,
    sizes: Sizes,
    commands: &[Command],
    more: impl Fn() -> bool,
) -> Result<Seen, WorkError> {
    let streams = (0..=arguments.clients).map(|_| Stream::plain(server.address));
    let streams = streams.collect::<std::io::Result<Vec<_>>>()?;
    let stretch = Stretch {
        commands,
        sizes,
        time: Duration::from_secs_f64(arguments.seconds),
        longest: Duration::from_secs(600),
        every: Duration::from_millis(arguments.every),
        interval: Duration::from_micros(arguments.interval),
        seed: arguments.common.seed,
        waiting: bench.waiting,
    };
    let stalled = stretch.run(streams, data, more).map_err(|error| match error {
        StretchError::Load(error) => failed_on(server)(error),
        StretchError::Behind(_) => {
            WorkError::Unexpected { system: server.label.clone(), what: error.to_string() }
        }
    })?;
    let sample = &stalled.sample;
    let latency = |share| sample.lane_latency_us(LANE_OF_READS, share);
    Ok(Seen {
        seconds: sample.elapsed.as_secs_f64(),
        commands: stalled.commands,
        longest_command_us: sample.lane_max_us(LANE_OF_WRITES),
        gets: sample.latency_ns[LANE_OF_READS].len(),
        p50_us: latency(0.5),
        p99_us: latency(0.99),
        p999_us: latency(0.999),
        longest_us: sample.lane_max_us(LANE_OF_READS),
        generator_us: sample.longest_turn.as_secs_f64() * 1e6,
    })
}

fn render(
    bench: &Bench,
    arguments: &StallArguments,
    io_threads: usize,
    outcomes: &[Outcome],
) -> String {
    let mut text = format!(
        "\nLadon with {io_threads} IO thread{} on core {:?}, the others' commands on one thread of the same\n\
         a sorted set of {}, hashes of {}, two sets of {}, a list of {}, two strings of {} bytes; {} connections GET, each every {} us; \
         commands every {} ms for {} s; medians of {} rounds\n\nthe wait of a GET, milliseconds\n\n",
        if io_threads == 1 { "" } else { "s" },
        bench.cores.server,
        arguments.sorted_set,
        arguments.hash,
        arguments.set,
        arguments.list,
        arguments.string,
        arguments.clients,
        arguments.interval,
        arguments.every,
        arguments.seconds,
        arguments.rounds
    );
    let mut table = Table::new(&[
        "meanwhile",
        "system",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "GETs",
        "commands",
        "longest command",
        "generator's longest turn",
    ]);
    let wanted = || STRETCHES.iter().enumerate().filter(|(_, (name, _))| arguments.wants(name));
    for (index, (name, _)) in wanted() {
        for outcome in outcomes {
            let of = |figure: fn(&Seen) -> f64| middle(&outcome.stretches[index], figure);
            let ms = |figure: fn(&Seen) -> f64| number(of(figure).map(|us| us / 1000.0), 2);
            table.row(vec![
                (*name).to_owned(),
                outcome.system.clone(),
                ms(|seen| seen.p50_us),
                ms(|seen| seen.p99_us),
                ms(|seen| seen.p999_us),
                ms(|seen| seen.longest_us),
                number(of(|seen| seen.gets as f64), 0),
                number(of(|seen| seen.commands as f64), 0),
                ms(|seen| seen.longest_command_us),
                ms(|seen| seen.generator_us),
            ]);
        }
    }
    text += &table.render();
    text.push('\n');
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        for (index, (name, _)) in wanted().skip(1) {
            let p999 = middle(&outcome.stretches[index], |seen| seen.p999_us / 1000.0);
            let what = format!("milliseconds of p99.9 of GET, meanwhile {name},");
            text += &verdict(&what, p999, Limit::AtMost(2.0));
        }
    }
    text
}

fn middle(rounds: &[Seen], figure: impl Fn(&Seen) -> f64) -> Option<f64> {
    median(&rounds.iter().map(figure).collect::<Vec<f64>>())
}
