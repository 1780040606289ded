//! A cluster: keys dealt to shards by their slot, each shard with replicas.

use super::figures::usual;
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// Parts that the keys are dealt to.
pub(crate) const SHARDS: usize = 3;
const REPLICAS: usize = 2;
/// Users, each with a connection to one shard; as many to each.
pub(crate) const USERS: usize = 48;

/// The work.
pub const WORK: Work = Work {
    name: "cluster",
    title: "A cluster of three shards with two replicas each",
    repeats: "Redis Cluster against Dragonfly on memtier in cluster mode: 3 shards, 2 replicas each",
    what: "Every user sets keys of one shard and reads them, on a connection to that shard's master, \
           as a client that knows the slots does; nine nodes' CPU counts. On few cores this is small.",
    settings: Settings::Chosen,
    topology: Topology::Cluster { shards: SHARDS, replicas: REPLICAS },
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

fn plan(_: &Scale) -> Plan {
    let part = |name: &str| Part::new(name, format!("{name}, {USERS} users"), usual());
    Plan { parts: vec![part("set"), part("get")], steps: vec![step(&["set"]), step(&["get"])] }
}

fn step(parts: &'static [&'static str]) -> Step {
    Step::Custom(Custom {
        measurements: 1,
        beside_seconds: 0.1,
        ..Custom::in_redis_commands(Own::Slots, parts)
    })
}
