//! What data takes in memory, how long it takes to load and to come back, and what a snapshot costs.

use std::time::{Duration, Instant};

use super::figures::{higher, lower};
use super::{Custom, Part, Phase, Plan, Scale, Settings, Step, Work};
use crate::load::plain::Plain;
use crate::load::question::Question;
use crate::load::stream::Target;
use crate::load::types::{hash, list, sorted_set};
use crate::load::words::NAMES_MAX;
use crate::operation::{Answer, Operation, OperationKind};
use crate::results::schema::Round;
use crate::run::stage::{BULK_USERS, CellError, Stage};
use crate::systems::cleanup;
use crate::systems::system::{Capability, DriverKind, Topology};
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::traffic::pick::Distribution;

/// The work.
pub const WORK: Work = Work {
    name: "memory",
    title: "Memory, snapshot, restart",
    repeats: "the memory tables of the comparisons of Redis with Tarantool and with Dragonfly",
    what: "Strings of three sizes, sets, a sorted set, hashes and lists, each into a server of its own that \
           holds a few keys already: by how much its resident memory grew, and how fast they came in. Then reads \
           and writes while a snapshot is made of strings, and a restart from it.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

/// A shape of data: its part, its title, one of what, and how it is loaded.
struct Shape {
    part: &'static [&'static str; 1],
    title: &'static str,
    each: &'static str,
    load: fn(&mut Stage<'_>, &str) -> Result<(), CellError>,
    only: Option<DriverKind>,
}

const SHAPES: [Shape; 7] = [
    Shape {
        part: &["key-11-8"],
        title: "strings: a key of 11 bytes, a value of 8",
        each: "memory of a key",
        load: |stage, part| load_strings(stage, part, 11, 8),
        only: None,
    },
    Shape {
        part: &["key-16-64"],
        title: "strings: a key of 16 bytes, a value of 64",
        each: "memory of a key",
        load: |stage, part| load_strings(stage, part, 16, 64),
        only: None,
    },
    Shape {
        part: &["key-20-1000"],
        title: "strings: a key of 20 bytes, a value of 1,000",
        each: "memory of a key",
        load: |stage, part| load_strings(stage, part, 20, 1_000),
        only: None,
    },
    Shape {
        part: &["set-member"],
        title: "sets of 100 members of 8 bytes",
        each: "memory of a member",
        load: load_members,
        only: None,
    },
    Shape {
        part: &["zset-member"],
        title: "one sorted set of members of 10 bytes",
        each: "memory of a member",
        load: load_sorted_set,
        only: Some(DriverKind::Resp),
    },
    Shape {
        part: &["hash"],
        title: "hashes of 20 fields of 8 bytes, values of 16",
        each: "memory of a hash",
        load: load_hashes,
        only: Some(DriverKind::Resp),
    },
    Shape {
        part: &["list"],
        title: "lists of 100 elements of 10 bytes",
        each: "memory of a list",
        load: load_lists,
        only: Some(DriverKind::Resp),
    },
];

const SNAPSHOT: &str = "snapshot";

/// Roughly, for the plan of a run.
const LOADED_PER_SECOND: f64 = 300_000.0;
const ELEMENTS_LOADED_PER_SECOND: f64 = 1_000_000.0;
/// However slow a store is, no shape is loaded for longer.
const LOAD_MAX: Duration = Duration::from_secs(60);
const LOAD_MAX_SMALL: Duration = Duration::from_secs(3);

/// Things of a shape: keys, members, fields, elements.
fn things(scale: &Scale) -> u32 {
    scale.keys.unwrap_or(if scale.small { 500_000 } else { 1_000_000 }).max(TOGETHER)
}

/// The same of shapes of many elements: memory comes in huge pages, and there must be enough of them.
fn elements(scale: &Scale) -> u32 {
    things(scale).saturating_mul(4).min(NAMES_MAX)
}

fn plan(scale: &Scale) -> Plan {
    let parts = SHAPES.iter().map(|shape| Part {
        name: shape.part[0].to_owned(),
        title: shape.title.to_owned(),
        axis: None,
        figures: vec![
            lower("bytes_each", shape.each, "bytes"),
            higher("per_second", "loaded, of keys, members, fields or elements", "1/s"),
        ],
    });
    let mut parts: Vec<Part> = parts.collect();
    parts.push(Part {
        name: SNAPSHOT.to_owned(),
        title: "while a snapshot is made".to_owned(),
        axis: None,
        figures: vec![
            lower("p99_us", "latency, 99 %", "us"),
            lower("p99_quiet_us", "latency, 99 %, without a snapshot", "us"),
            lower("memory_growth", "most memory through memory before", ""),
            lower("restart_ms", "restart from the snapshot", "ms"),
        ],
    });
    let steps = SHAPES.iter().map(|shape| {
        let speed =
            if shape.only.is_some() { ELEMENTS_LOADED_PER_SECOND } else { LOADED_PER_SECOND };
        Step::Custom(Custom {
            run: shape.load,
            parts: shape.part,
            only: shape.only,
            measurements: 0,
            beside_seconds: f64::from(things(scale)) / speed + 1.0,
            starts: 1,
        })
    });
    let mut steps: Vec<Step> = steps.collect();
    steps.push(Step::Custom(Custom {
        run: snapshot,
        parts: &[SNAPSHOT],
        only: None,
        measurements: 2,
        beside_seconds: 2.0,
        starts: 1,
    }));
    Plan { parts, steps }
}

/// Requests sent together while loading.
const TOGETHER: u32 = 128;
/// Members of a set.
const MEMBERS: u32 = 100;

fn load_strings(
    stage: &mut Stage<'_>,
    part: &str,
    key_bytes: usize,
    value_bytes: usize,
) -> Result<(), CellError> {
    // The first letter tells the shapes apart, and the number of digits is what is left.
    let letter = char::from(b'a' + (key_bytes % 26) as u8);
    let set = move |number: u32| Operation::Set {
        key: format!("{letter}{number:0width$}", width = key_bytes - 1).into(),
        value: format!("{number:0value_bytes$}").into(),
    };
    load(stage, part, OperationKind::Set, set)
}

fn load_members(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let add = |number: u32| Operation::AddMember {
        set: format!("set:{:010}", number / MEMBERS).into(),
        member: format!("{number:08}").into(),
    };
    load(stage, part, OperationKind::AddMember, add)
}

fn load_sorted_set(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = things(&stage.bench.scale);
    let set = sorted_set::SortedSet::new(count);
    load_all(stage, part, count, count, sorted_set::Fill(&set))
}

const FIELDS: u32 = 20;
const FIELD_VALUE_BYTES: usize = 16;

fn load_hashes(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = (elements(&stage.bench.scale) / FIELDS).max(1);
    let mut hashes = hash::Hashes::new(count, FIELDS, FIELD_VALUE_BYTES);
    load_all(stage, part, count, count * FIELDS, hash::Fill(&mut hashes))
}

const ELEMENTS: u32 = 100;
const ELEMENT_BYTES: usize = 10;

fn load_lists(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = (elements(&stage.bench.scale) / ELEMENTS).max(1);
    let lists = list::Lists::new(count, ELEMENTS as usize, ELEMENT_BYTES);
    load_all(stage, part, count, count * ELEMENTS, list::FillLists(&lists))
}

/// Loads things one by one and puts what each took.
fn load(
    stage: &mut Stage<'_>,
    part: &str,
    kind: OperationKind,
    make: impl Fn(u32) -> Operation,
) -> Result<(), CellError> {
    stage.can_do(kind)?;
    on_a_fresh_server(stage, |stage, plain| {
        let before = settled(stage)?;
        let most = things(&stage.bench.scale) / TOGETHER * TOGETHER;
        let right = match kind {
            OperationKind::AddMember => Answer::Existed(false),
            _ => Answer::Done,
        };
        let longest = if stage.bench.scale.small { LOAD_MAX_SMALL } else { LOAD_MAX };
        let began = Instant::now();
        let mut loaded = 0;
        while loaded < most && (loaded == 0 || began.elapsed() < longest) {
            ask(plain, loaded..loaded + TOGETHER, &make, &right)?;
            loaded += TOGETHER;
        }
        put(stage, part, loaded, loaded, before, began.elapsed())
    })
}

/// Asks a whole question, which loads `count` things of `elements` elements in all, and puts what each
/// thing took.
fn load_all(
    stage: &mut Stage<'_>,
    part: &str,
    count: u32,
    elements: u32,
    question: impl Question,
) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    on_a_fresh_server(stage, |stage, _| {
        let before = settled(stage)?;
        let began = Instant::now();
        stage.ask_all(BULK_USERS, question)?;
        put(stage, part, count, elements, before, began.elapsed())
    })
}

/// Keys that a server holds before it is looked at: its buffers are there then, and are nobody's.
const FIRST_KEYS: u32 = 20_000;

/// Does `what` on a server of its own: what another shape left free would be counted for nothing.
fn on_a_fresh_server(
    stage: &mut Stage<'_>,
    what: impl FnOnce(&mut Stage<'_>, &mut Plain) -> Result<(), CellError>,
) -> Result<(), CellError> {
    // Who cannot be asked need not start.
    stage.subject.dialect().map_err(CellError::Cannot)?;
    let none = "attached: the memory of another machine is not seen";
    let fresh = stage.another()?.ok_or_else(|| CellError::Cannot(none.to_owned()))?;
    let target = std::mem::replace(&mut stage.target, Target::plain(fresh.address()));
    let own = stage.instance.replace(fresh);
    let result = connect(stage).and_then(|mut plain| {
        let first = |number: u32| Operation::Set {
            key: format!("first:{number:010}").into(),
            value: vec![b'f'; 16],
        };
        for from in (0..FIRST_KEYS).step_by(TOGETHER as usize) {
            ask(&mut plain, from..from + TOGETHER, &first, &Answer::Done)?;
        }
        what(stage, &mut plain)
    });
    stage.instance = own;
    stage.target = target;
    result
}

fn connect(stage: &Stage<'_>) -> Result<Plain, CellError> {
    let dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    Plain::connect(stage.target.address, dialect)
        .map_err(|error| CellError::Broken(error.to_string()))
}

/// Sends the requests of these numbers together, and compares each answer with the right one.
fn ask(
    plain: &mut Plain,
    numbers: std::ops::Range<u32>,
    make: &impl Fn(u32) -> Operation,
    right: &Answer,
) -> Result<(), CellError> {
    if cleanup::is_ending() {
        return Err(CellError::Interrupted);
    }
    let operations: Vec<Operation> = numbers.map(make).collect();
    let answers = plain.ask(&operations).map_err(|error| CellError::Broken(error.to_string()))?;
    match answers.iter().find(|answer| *answer != right) {
        Some(wrong) => Err(CellError::Wrong(format!("{wrong:?} instead of {right:?}"))),
        None => Ok(()),
    }
}

fn put(
    stage: &mut Stage<'_>,
    part: &str,
    count: u32,
    elements: u32,
    before: u64,
    took: Duration,
) -> Result<(), CellError> {
    let after = settled(stage)?;
    let each = after.saturating_sub(before) as f64 / f64::from(count.max(1));
    let seconds = took.as_secs_f64();
    let round = Round {
        seconds,
        operations: u64::from(elements),
        per_second: f64::from(elements) / seconds,
        rss_bytes: Some(after),
        load_busy: f64::NAN,
        server_busy: f64::NAN,
        extra: [("bytes_each".to_owned(), each), ("count".to_owned(), f64::from(count))].into(),
        ..Round::default()
    };
    stage.put(part, None, round);
    Ok(())
}

/// Resident bytes once they hardly change any more: logs are written and tables grow behind the answers.
fn settled(stage: &Stage<'_>) -> Result<u64, CellError> {
    let resident = || {
        stage.usage().map(|usage| usage.resident_bytes).ok_or_else(|| {
            CellError::Cannot("attached: the memory of another machine is not seen".to_owned())
        })
    };
    let mut last = resident()?;
    for _ in 0..SETTLING_LOOKS {
        std::thread::sleep(SETTLING);
        let now = resident()?;
        let same = now.abs_diff(last) <= last / 1_000;
        last = now;
        if same {
            break;
        }
    }
    Ok(last)
}

/// How long memory must not have changed, and how often that is tried.
const SETTLING: Duration = Duration::from_millis(50);
const SETTLING_LOOKS: usize = 20;

/// A key that a snapshot must have, and its value.
const KEPT: (&[u8], &[u8]) = (b"kept", b"over the restart");

/// Longer than any snapshot here.
const SNAPSHOT_MAX: Duration = Duration::from_secs(120);

fn snapshot(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    if let Some(instance) = &stage.instance {
        instance.system.can(Capability::Snapshot).map_err(CellError::Cannot)?;
        instance.system.can(Capability::Restart).map_err(CellError::Cannot)?;
    }
    // What it comes back without is nobody else's.
    on_a_fresh_server(stage, |stage, _| {
        let keys = stage.bench.scale.keys_or(200_000);
        stage.prepare(&Asked::Fill { space: "snapshot", keys, value_bytes: 64 })?;
        snapshot_of_it(stage)
    })
}

fn snapshot_of_it(stage: &mut Stage<'_>) -> Result<(), CellError> {
    let broken = |error: std::io::Error| CellError::Broken(error.to_string());
    let Some(instance) = &stage.instance else {
        return Err(CellError::Cannot("attached: not ours to restart".to_owned()));
    };
    let (system, address, pids) = (instance.system, instance.address(), instance.pids());
    let asked = Asked::Keyed {
        space: "snapshot",
        mix: vec![(1, Deed::Write), (1, Deed::Read)],
        distribution: Distribution::Uniform,
    };
    let phase = Phase::new(SNAPSHOT, 16, asked);
    // What the restart is asked for.
    let set = |_: u32| Operation::Set { key: KEPT.0.to_vec(), value: KEPT.1.to_vec() };
    ask(&mut connect(stage)?, 0..1, &set, &Answer::Done)?;
    let quiet = stage.measure(&phase)?;
    let before = stage.usage().map_or(1, |usage| usage.resident_bytes);
    system.begin_snapshot(address).map_err(broken)?;
    let done = std::sync::atomic::AtomicBool::new(false);
    let (round, most) = std::thread::scope(|scope| {
        use crate::measure::usage::Usage;
        use std::sync::atomic::Ordering::Relaxed;
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Relaxed) {
                most = most.max(Usage::of_processes(&pids).resident_bytes);
                std::thread::sleep(Duration::from_millis(20));
            }
            most
        });
        let round = stage.measure(&phase);
        done.store(true, Relaxed);
        (round, watcher.join().unwrap_or(0))
    });
    let mut round = round?;
    let began = Instant::now();
    while system.snapshot_under_way(address).map_err(broken)? {
        if began.elapsed() > SNAPSHOT_MAX {
            return Err(CellError::Broken(format!("no end of the snapshot in {SNAPSHOT_MAX:?}")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let p99 = quiet.latency_us.map_or(f64::NAN, |latency| latency.p99);
    round.extra.insert("p99_quiet_us".to_owned(), p99);
    round.extra.insert("memory_growth".to_owned(), most as f64 / before as f64);
    round.extra.insert("restart_ms".to_owned(), restart(stage)? * 1e3);
    stage.put(SNAPSHOT, None, round);
    Ok(())
}

/// Stops the system, starts it again, and reads a key of before; seconds until all answered.
fn restart(stage: &mut Stage<'_>) -> Result<f64, CellError> {
    let dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    let Some(instance) = &mut stage.instance else {
        return Err(CellError::Cannot("attached: not ours to restart".to_owned()));
    };
    instance.stop(Duration::from_secs(60));
    let took = instance.restart().map_err(|error| CellError::Broken(error.to_string()))?;
    let mut plain = Plain::connect(instance.address(), dialect)
        .map_err(|error| CellError::Broken(error.to_string()))?;
    let read = Operation::Get { key: KEPT.0.to_vec() };
    let answers = plain.ask(&[read]).map_err(|error| CellError::Broken(error.to_string()))?;
    if answers != [Answer::Value(Some(KEPT.1.to_vec()))] {
        return Err(CellError::Broken("came back without its data".to_owned()));
    }
    Ok(took.as_secs_f64())
}
