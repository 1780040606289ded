//! What data takes in memory, how long it takes to load and to come back, and what a snapshot costs.

use std::time::{Duration, Instant};

use super::figures::{higher, lower};
use super::{Custom, Part, Phase, Plan, Scale, Settings, Step, Work};
use crate::load::plain::Plain;
use crate::operation::{Answer, Operation, OperationKind};
use crate::results::schema::Round;
use crate::run::stage::{CellError, Stage};
use crate::systems::system::{Capability, Topology};
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::traffic::pick::Distribution;

/// The work.
pub const WORK: Work = Work {
    name: "memory",
    title: "Memory, snapshot, restart",
    repeats: "the memory tables of the comparisons of Redis with Tarantool and with Dragonfly",
    what: "Keys of eleven bytes with values of eight, of sixteen with sixty-four, and sets of a hundred \
           members: resident bytes for each. Then reads and writes while a snapshot is made, and a \
           restart from it.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    plan,
};

const PARTS: [&str; 4] = ["key-11-8", "key-16-64", "member", "snapshot"];

fn plan(scale: &Scale) -> Plan {
    let shape = |name: &str, title: &str, what: &str| Part {
        name: name.to_owned(),
        title: title.to_owned(),
        axis: None,
        figures: vec![lower("bytes_each", what, "bytes"), higher("per_second", "loaded", "1/s")],
    };
    let parts = vec![
        shape(PARTS[0], "a key of 11 bytes, a value of 8", "memory of a key"),
        shape(PARTS[1], "a key of 16 bytes, a value of 64", "memory of a key"),
        shape(PARTS[2], "a member of 8 bytes, a hundred to a set", "memory of a member"),
        Part {
            name: PARTS[3].to_owned(),
            title: "while a snapshot is made".to_owned(),
            axis: None,
            figures: vec![
                lower("p99_us", "latency, 99 %", "us"),
                lower("p99_quiet_us", "latency, 99 %, without a snapshot", "us"),
                lower("memory_growth", "most memory through memory before", ""),
                lower("restart_ms", "restart from the snapshot", "ms"),
            ],
        },
    ];
    let steps = vec![
        Step::Custom(Custom { run: short_keys, parts: &["key-11-8"] }),
        Step::Custom(Custom { run: long_keys, parts: &["key-16-64"] }),
        Step::Custom(Custom { run: members, parts: &["member"] }),
        Step::Prepare(Asked::Fill {
            space: "snapshot",
            keys: scale.keys_or(200_000),
            value_bytes: 64,
        }),
        Step::Custom(Custom { run: snapshot, parts: &["snapshot"] }),
    ];
    Plan { parts, steps }
}

/// Requests sent together while loading.
const TOGETHER: u32 = 64;
/// Members of a set.
const MEMBERS: u32 = 100;

fn short_keys(stage: &mut Stage<'_>) -> Result<(), CellError> {
    let set = |number: u32| Operation::Set {
        key: format!("k{number:010}").into(),
        value: format!("{number:08}").into(),
    };
    load(stage, PARTS[0], OperationKind::Set, set)
}

fn long_keys(stage: &mut Stage<'_>) -> Result<(), CellError> {
    let set = |number: u32| Operation::Set {
        key: format!("l{number:015}").into(),
        value: format!("{number:064}").into(),
    };
    load(stage, PARTS[1], OperationKind::Set, set)
}

fn members(stage: &mut Stage<'_>) -> Result<(), CellError> {
    let add = |number: u32| Operation::AddMember {
        set: format!("set:{:010}", number / MEMBERS).into(),
        member: format!("{number:08}").into(),
    };
    load(stage, PARTS[2], OperationKind::AddMember, add)
}

/// Loads things and puts what each took.
fn load(
    stage: &mut Stage<'_>,
    part: &str,
    kind: OperationKind,
    make: impl Fn(u32) -> Operation,
) -> Result<(), CellError> {
    let broken = |error: std::io::Error| CellError::Broken(error.to_string());
    stage.can_do(kind)?;
    let dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    let usage = stage.usage().ok_or_else(|| {
        CellError::Cannot("attached: the memory of another machine is not seen".to_owned())
    })?;
    let mut plain = Plain::connect(stage.target.address, dialect).map_err(broken)?;
    let things = stage.bench.scale.keys_or(1_000_000) / TOGETHER * TOGETHER;
    let right = match kind {
        OperationKind::AddMember => Answer::Existed(false),
        _ => Answer::Done,
    };
    let began = Instant::now();
    for first in (0..things).step_by(TOGETHER as usize) {
        let operations: Vec<Operation> = (first..first + TOGETHER).map(&make).collect();
        let answers = plain.ask(&operations).map_err(broken)?;
        if let Some(wrong) = answers.iter().find(|answer| **answer != right) {
            return Err(CellError::Wrong(format!("{wrong:?} instead of {right:?}")));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = stage.usage().map_or(0, |usage| usage.resident_bytes);
    let each = after.saturating_sub(usage.resident_bytes) as f64 / f64::from(things);
    let round = Round {
        seconds,
        operations: u64::from(things),
        per_second: f64::from(things) / seconds,
        rss_bytes: Some(after),
        load_busy: f64::NAN,
        server_busy: f64::NAN,
        extra: [("bytes_each".to_owned(), each)].into(),
        ..Round::default()
    };
    stage.put(part, None, round);
    Ok(())
}

/// Longer than any snapshot here.
const SNAPSHOT_MAX: Duration = Duration::from_secs(120);

fn snapshot(stage: &mut Stage<'_>) -> Result<(), CellError> {
    let broken = |error: std::io::Error| CellError::Broken(error.to_string());
    let Some(instance) = &stage.instance else {
        return Err(CellError::Cannot("attached: its snapshots are its owner's".to_owned()));
    };
    let (system, address, pids) = (instance.system, instance.address(), instance.pids());
    system.can(Capability::Snapshot).map_err(CellError::Cannot)?;
    system.can(Capability::Restart).map_err(CellError::Cannot)?;
    let asked = Asked::Keyed {
        space: "snapshot",
        mix: vec![(1, Deed::Write), (1, Deed::Read)],
        distribution: Distribution::Uniform,
    };
    let phase = Phase::new(PARTS[3], 16, asked);
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
    stage.put(PARTS[3], None, round);
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
    let read = Operation::Get { key: b"k0000000000".to_vec() };
    let answers = plain.ask(&[read]).map_err(|error| CellError::Broken(error.to_string()))?;
    if answers != [Answer::Value(Some(b"00000000".to_vec()))] {
        return Err(CellError::Broken("came back without its data".to_owned()));
    }
    Ok(took.as_secs_f64())
}
