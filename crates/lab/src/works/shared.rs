//! Many synchronous users over one connection.

use super::connections::{curve, users};
use crate::topology::Topology;
use crate::work::{Plan, Scale, Settings, Work};

/// The work.
pub const WORK: Work = Work {
    name: "shared",
    title: "Many users, one connection",
    repeats: "Tarantool against Redis, memcached, Aerospike and VoltDB by a synchronous-asynchronous client: \
              1 to 8,000 users over one connection",
    what: "Each user waits for its answer before it asks again; all share one connection, as threads \
           of a program share an asynchronous client.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

fn plan(scale: &Scale) -> Plan {
    // Users here are no connections, so as many as wanted.
    let scale = Scale { connections_max: 0, ..scale.clone() };
    curve("shared", &scale, users(&scale), Some(1))
}
