//! The cost of a snapshot for concurrent readers and writers, and a restart from it.

use std::time::{Duration, Instant};

use super::memory::{ask, connect, on_a_fresh_server};
use crate::load::plain::Plain;
use crate::operation::{Answer, Operation};
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::systems::system::Capability;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::traffic::pick::Distribution;
use crate::work::Phase;
use crate::works::memory::SNAPSHOT;

/// A key that a snapshot must have, and its value.
const KEPT: (&[u8], &[u8]) = (b"kept", b"over the restart");

/// Longer than any snapshot here.
const SNAPSHOT_MAX: Duration = Duration::from_secs(120);

/// Reads and writes while a snapshot is made, and a restart from it.
pub(super) fn run(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    if let Some(instance) = &stage.instance {
        instance.system.can(Capability::Snapshot).map_err(CellError::Cannot)?;
        instance.system.can(Capability::Restart).map_err(CellError::Cannot)?;
    }
    // No other step may use what it comes back without.
    on_a_fresh_server(stage, |stage, _| {
        let keys = stage.bench.scale.keys_or(200_000);
        stage.prepare(&Asked::Fill { space: "snapshot", keys, value_bytes: 64 })?;
        snapshot_of_it(stage)
    })
}

fn snapshot_of_it(stage: &mut Stage<'_>) -> Result<(), CellError> {
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
    system.begin_snapshot(address)?;
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
    while system.snapshot_under_way(address)? {
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
    let took = instance.restart()?;
    let mut plain = Plain::connect(instance.address(), dialect)?;
    let read = Operation::Get { key: KEPT.0.to_vec() };
    let answers = plain.ask(&[read])?;
    if answers != [Answer::Value(Some(KEPT.1.to_vec()))] {
        return Err(CellError::Broken("came back without its data".to_owned()));
    }
    Ok(took.as_secs_f64())
}
