//! Whether a command on a large value makes everybody else wait.

use std::time::{Duration, Instant};

use super::figures::lower;
use super::{Custom, Part, Plan, Scale, Settings, Step, Work};
use crate::load::data::Data;
use crate::load::large::{Command, Fill, Sizes, Value};
use crate::load::stall::{Stretch, StretchError};
use crate::load::workload::{LANE_OF_READS, LANE_OF_WRITES, Mix, Strings};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::round::percentiles_of;
use crate::run::stage::{BULK_USERS, CellError, Stage};
use crate::systems::system::{DriverKind, Topology};

/// The work.
pub const WORK: Work = Work {
    name: "stall",
    title: "One long command, and everybody else",
    repeats: "no published test: what operators of single-threaded stores warn of, reading or deleting a \
              large value",
    what: "Ten users each read a small value every millisecond, and what they wait counts from the moment at \
           which the read was due. Meanwhile one connection does one long command after the other: on a hash, \
           a list and a sorted set of a million elements (or 300,000), and on two sets of a third of that.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

/// Stretches that are measured, in this order.
const STRETCHES: [(&str, &str, &[Command]); 5] = [
    ("nothing", "nothing else going on", &[]),
    ("hgetall", "while a whole hash is read", &[Command::Hgetall]),
    ("lrange", "while a whole list is read", &[Command::Lrange]),
    ("sunionstore", "while two sets are united and stored", &[Command::Sunionstore]),
    ("del", "while a sorted set is deleted", &[Command::DelSortedSet]),
];
const NAMES: [&[&str]; STRETCHES.len()] =
    [&["nothing"], &["hgetall"], &["lrange"], &["sunionstore"], &["del"]];

const READERS: usize = 10;
const INTERVAL: Duration = Duration::from_millis(1);
/// Small keys for them to read, and the lengths of key and value.
const KEYS: u32 = 10_000;
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 16;
/// Long enough for some commands, whatever the run's measurements last.
const STRETCH_MIN: Duration = Duration::from_millis(800);
/// For a server that cannot answer ten thousand reads a second beside its commands.
const STRETCH_MAX: Duration = Duration::from_secs(30);
/// From one command to the next: back to back they would show how a server shares its time between
/// connections, not what one command does.
const EVERY: Duration = Duration::from_millis(250);

fn plan(scale: &Scale) -> Plan {
    let parts = STRETCHES.iter().map(|(name, title, _)| Part {
        name: (*name).to_owned(),
        title: format!("waits of small reads {title}"),
        axis: None,
        figures: vec![
            lower("p999_us", "wait, 99.9 %", "us"),
            lower("p99_us", "wait, 99 %", "us"),
            lower("p50_us", "median wait", "us"),
            lower("max_us", "longest wait", "us"),
            lower("longest_command_us", "longest command", "us"),
            lower("generator_us", "the load generator's own longest pause", "us"),
        ],
    });
    let sizes = sizes(scale);
    let loaded = |elements: u32| f64::from(elements) / 700_000.0;
    let mut steps = vec![Step::Load(Custom {
        run: load,
        parts: &[],
        only: Some(DriverKind::Resp),
        measurements: 0,
        beside_seconds: loaded(sizes.hash + sizes.list + 2 * sizes.set),
        starts: 0,
    })];
    steps.extend(NAMES.iter().map(|parts| {
        Step::Custom(Custom {
            run,
            parts,
            only: Some(DriverKind::Resp),
            measurements: 0,
            beside_seconds: STRETCH_MIN.as_secs_f64()
                + if parts == &["del"] { loaded(sizes.sorted_set) } else { 0.0 },
            starts: 0,
        })
    }));
    Plan { parts: parts.collect(), steps }
}

fn sizes(scale: &Scale) -> Sizes {
    let large = scale.keys.unwrap_or(if scale.small { 300_000 } else { 1_000_000 });
    Sizes { sorted_set: large, hash: large, list: large, set: (large / 3).max(2), string: 0 }
}

fn load(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let sizes = sizes(&stage.bench.scale);
    let mut data = Data::new(KEYS, KEY_BYTES, VALUE_BYTES);
    let load = Strings::new(&mut data, Mix::Load { until: KEYS }, BULK_USERS, 0);
    stage.run_resp(BULK_USERS, load)?;
    for value in [Value::Hash, Value::FirstSet, Value::SecondSet] {
        stage.ask_all(BULK_USERS, Fill::new(value, sizes))?;
    }
    // In its order.
    stage.ask_all(1, Fill::new(Value::List, sizes))?;
    stage.kept = Some(Box::new(data));
    Ok(())
}

fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let not_loaded = || CellError::Broken("its data were not loaded".to_owned());
    let sizes = sizes(&stage.bench.scale);
    let (_, _, commands) =
        STRETCHES.iter().find(|(name, ..)| *name == part).ok_or_else(not_loaded)?;
    if commands.contains(&Command::DelSortedSet) {
        // The round before deleted it.
        stage.ask_all(BULK_USERS, Fill::new(Value::SortedSet, sizes))?;
    }
    let kept = stage.kept.take().ok_or_else(not_loaded)?;
    let mut data = kept.downcast::<Data>().map_err(|_| not_loaded())?;
    let round = stretch(stage, &mut data, sizes, commands)?;
    stage.kept = Some(data);
    stage.put(part, None, round);
    Ok(())
}

fn stretch(
    stage: &mut Stage<'_>,
    data: &mut Data,
    sizes: Sizes,
    commands: &[Command],
) -> Result<Round, CellError> {
    let mut dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    let streams = stage.open(READERS + 1, dialect.as_mut())?;
    let stretch = Stretch {
        commands,
        sizes,
        time: stage.bench.measured().max(STRETCH_MIN),
        longest: STRETCH_MAX,
        every: EVERY,
        interval: INTERVAL,
        seed: stage.next_seed(),
        waiting: stage.bench.waiting,
    };
    let until = Instant::now() + stretch.time;
    let stalled = stretch.run(streams, data, || Instant::now() < until);
    let stalled = stalled.map_err(|error| match error {
        StretchError::Load(error) => error.into(),
        StretchError::Behind(_) => CellError::Broken(error.to_string()),
    })?;
    let sample = &stalled.sample;
    let reads = &sample.latency_ns[LANE_OF_READS];
    let extra = [
        ("longest_command_us", sample.lane_max_us(LANE_OF_WRITES)),
        ("commands", stalled.commands as f64),
        ("generator_us", sample.longest_turn.as_secs_f64() * 1e6),
    ];
    Ok(Round {
        seconds: sample.elapsed.as_secs_f64(),
        operations: reads.len(),
        per_second: reads.len() as f64 / sample.elapsed.as_secs_f64(),
        latency_us: Some(percentiles_of(reads)),
        load_busy: f64::NAN,
        server_busy: f64::NAN,
        extra: extra.map(|(key, value)| (key.to_owned(), value)).into(),
        ..Round::default()
    })
}
