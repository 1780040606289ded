//! Small reads at fixed times, and one long command after the other beside them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::load::data::Data;
use crate::load::large::{Command, Fill, Sizes, Value};
use crate::load::stall::{Stretch, StretchError};
use crate::load::workload::{LANE_OF_READS, LANE_OF_WRITES, Mix, Strings};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::round::percentiles_of;
use crate::run::stage::{BULK_USERS, Stage};
use crate::systems::system::Capability;
use crate::works::stall::{self, STRETCH_MIN, sizes};

const READERS: usize = 10;
const INTERVAL: Duration = Duration::from_millis(1);
/// Small keys for them to read, and the lengths of key and value.
const KEYS: u32 = 10_000;
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 16;
/// For a server that cannot answer ten thousand reads a second beside its commands.
const STRETCH_MAX: Duration = Duration::from_secs(30);
/// From one command to the next: back to back they would show how a server shares its time between
/// connections, not what one command does.
const EVERY: Duration = Duration::from_millis(250);
/// From one look at a snapshot to the next.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Gives the server the small keys, and the large values of the work.
pub(super) fn load(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let mut data = Data::new(KEYS, KEY_BYTES, VALUE_BYTES);
    let load = Strings::new(&mut data, Mix::Load { until: KEYS }, BULK_USERS, 0);
    stage.run_resp(BULK_USERS, load)?;
    for value in stall::values_of(stage.work().name) {
        fill(stage, value)?;
    }
    stage.kept = Some(Box::new(Kept { data, has_sorted_set: false }));
    Ok(())
}

/// What the server holds.
struct Kept {
    data: Data,
    /// Whether no stretch has deleted the sorted set since it was loaded.
    has_sorted_set: bool,
}

fn fill(stage: &Stage<'_>, value: Value) -> Result<(), CellError> {
    let users = if value.is_in_order() { 1 } else { BULK_USERS };
    stage.ask_all(users, Fill::new(value, sizes(&stage.bench.scale)))
}

/// Measures the stretch of `part`.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let not_loaded = || CellError::Broken("its data were not loaded".to_owned());
    let sizes = sizes(&stage.bench.scale);
    let stretch = stall::stretch_of(stage.work().name, part).ok_or_else(not_loaded)?;
    let kept = stage.kept.take().ok_or_else(not_loaded)?;
    let mut kept = kept.downcast::<Kept>().map_err(|_| not_loaded())?;
    let mut needs = stretch.commands.iter().flat_map(|command| command.values());
    if needs.any(|&value| value == Value::SortedSet) && !kept.has_sorted_set {
        fill(stage, Value::SortedSet)?;
        kept.has_sorted_set = true;
    }
    let data = &mut kept.data;
    let round = if stretch.saves {
        while_saving(stage, data, sizes, stretch.commands)?
    } else {
        let until = Instant::now() + stage.bench.measured().max(STRETCH_MIN);
        beside(stage, data, sizes, stretch.commands, || Instant::now() < until)?
    };
    kept.has_sorted_set &= !stretch.commands.contains(&Command::DelSortedSet);
    stage.kept = Some(kept);
    stage.put(part, None, round);
    Ok(())
}

/// A stretch that lasts until the snapshot that begins with it is made.
fn while_saving(
    stage: &mut Stage<'_>,
    data: &mut Data,
    sizes: Sizes,
    commands: &[Command],
) -> Result<Round, CellError> {
    let Some(instance) = &stage.instance else {
        return Err(CellError::Cannot("attached: its snapshots are not ours to make".to_owned()));
    };
    let (system, address) = (instance.system, instance.address());
    system.can(Capability::Snapshot).map_err(CellError::Cannot)?;
    system.begin_snapshot(address)?;
    let looked = Cell::new((Instant::now(), true));
    let saves = || {
        let (when, saves) = looked.get();
        if when.elapsed() < LOOK_EVERY {
            return saves;
        }
        // A server that does not tell is not waited for; the work's next step finds out why.
        let saves = system.snapshot_under_way(address).unwrap_or(false);
        looked.set((Instant::now(), saves));
        saves
    };
    beside(stage, data, sizes, commands, saves)
}

fn beside(
    stage: &mut Stage<'_>,
    data: &mut Data,
    sizes: Sizes,
    commands: &[Command],
    more: impl Fn() -> bool,
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
    let stalled = stretch.run(streams, data, more);
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
    let round = Round::new(sample.elapsed.as_secs_f64(), reads.len()).with_extra(extra);
    Ok(Round { latency_us: Some(percentiles_of(reads)), ..round })
}
