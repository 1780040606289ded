//! Many synchronous users with a connection each.

use super::figures::{axis, usual};
use super::{Part, Phase, Plan, Scale, Settings, Step, Work, idle};
use crate::systems::system::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;

/// The work.
pub const WORK: Work = Work {
    name: "connections",
    title: "Many users, a connection each",
    repeats: "Tarantool against Redis, memcached, Aerospike and VoltDB: the same users, each on its own",
    what: "Each user waits for its answer before it asks again, on a connection of its own. Then as many \
           connections as a large site has do nothing: what they cost in memory, and what the server \
           does meanwhile.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

/// Of the keys.
pub(super) const SPACE: &str = "connection";

fn plan(scale: &Scale) -> Plan {
    let mut plan = curve(SPACE, scale, users(scale), None);
    plan.parts.push(idle::part(scale));
    plan.steps.push(idle::step(scale));
    plan
}

/// The places of the axis; fewer where little time is left.
pub(super) const fn users(scale: &Scale) -> &'static [usize] {
    if scale.small {
        &[1, 10, 100, 1000, 8000]
    } else {
        &[1, 4, 10, 40, 100, 400, 1000, 3000, 8000]
    }
}

/// Throughput over users, writes and reads.
pub(super) fn curve(
    space: &'static str,
    scale: &Scale,
    users: &[usize],
    connections: Option<usize>,
) -> Plan {
    let value_bytes = scale.value_bytes_first(64);
    let distribution = scale.distribution.unwrap_or_default();
    let keys = scale.keys_or(100_000);
    let mut steps = vec![Step::Prepare(Asked::Fill { space, keys, value_bytes })];
    let mut parts = Vec::new();
    for name in ["set", "get"] {
        parts.push(Part {
            name: name.to_owned(),
            title: name.to_owned(),
            axis: axis("users", "users"),
            figures: usual(),
        });
    }
    // Few users first: whoever breaks off at many was measured before.
    for users in scale.clients_or(users) {
        for (deed, name) in [(Deed::Write, "set"), (Deed::Read, "get")] {
            let asked = Asked::Keyed { space, mix: vec![(100, deed)], distribution };
            let mut phase = Phase::new(name, users, asked).at(users as f64);
            phase.connections = connections;
            steps.push(Step::Measure(phase));
        }
    }
    Plan { parts, steps }
}
