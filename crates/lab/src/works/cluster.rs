//! A cluster: keys dealt to shards by their slot, each shard with replicas.

use super::figures::usual;
use super::{Custom, Part, Phase, Plan, Scale, Settings, Step, Work};
use crate::dialects::resp::Resp;
use crate::dialects::slots::Sharded;
use crate::load::stream::{Stream, Target};
use crate::run::stage::{CellError, Stage};
use crate::systems::system::{DriverKind, Topology};
use crate::traffic::Asked;
use crate::traffic::iterations::Deed;

const SHARDS: usize = 3;
const REPLICAS: usize = 2;
/// Users, each with a connection to one shard; as many to each.
const USERS: usize = 48;

/// The work.
pub const WORK: Work = Work {
    name: "cluster",
    title: "A cluster of three shards with two replicas each",
    repeats: "Redis Cluster against Dragonfly on memtier in cluster mode: 3 shards, 2 replicas each",
    what: "Every user sets keys of one shard and reads them, on a connection to that shard's master, \
           as a client that knows the slots does; nine nodes' CPU counts. On few cores this is small.",
    settings: Settings::Chosen,
    topology: Topology::Cluster { shards: SHARDS, replicas: REPLICAS },
    rounds_max: u32::MAX,
    plan,
};

fn plan(_: &Scale) -> Plan {
    let part = |name: &str| Part {
        name: name.to_owned(),
        title: format!("{name}, {USERS} users"),
        axis: None,
        figures: usual(),
    };
    Plan { parts: vec![part("set"), part("get")], steps: vec![step(&["set"]), step(&["get"])] }
}

fn step(parts: &'static [&'static str]) -> Step {
    Step::Custom(Custom {
        run: measure,
        parts,
        only: Some(DriverKind::Resp),
        measurements: 1,
        beside_seconds: 0.1,
        starts: 0,
    })
}

fn measure(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let deed = if part == "set" { Deed::Set } else { Deed::Get };
    let Some(instance) = &stage.instance else {
        return Err(CellError::Cannot("attached: its shards are not known".to_owned()));
    };
    if instance.system.driver() != DriverKind::Resp {
        return Err(CellError::Cannot(
            "the lab's driver of slots speaks Redis' protocol".to_owned(),
        ));
    }
    let value_bytes = stage.bench.scale.value_bytes_first(64);
    let masters = instance.addresses()[..SHARDS].to_vec();
    let mut dialect = Box::new(Sharded::new(Resp::new(), SHARDS));
    let streams = (0..USERS).map(|user| {
        let target = Target::plain(masters[user % SHARDS]);
        Stream::open(&target, &mut *dialect)
            .map_err(|error| CellError::Broken(format!("connection {user}: {error}")))
    });
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let asked = Asked::Iterations { space: "few", deed, value_bytes };
    let phase = Phase::new(part, USERS, asked);
    let round = stage.measure_over(&phase, dialect, streams)?;
    stage.put(part, None, round);
    Ok(())
}
