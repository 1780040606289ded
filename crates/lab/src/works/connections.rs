//! Many synchronous users with a connection each.

use std::time::Duration;

use super::figures::{axis, lower, usual};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::work::{Custom, Own, Part, Phase, Plan, Scale, Settings, Step, Times, Work};

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
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

/// The space of the keys.
pub(crate) const SPACE: &str = "connection";

fn plan(scale: &Scale) -> Plan {
    let mut plan = curve(SPACE, scale, users(scale), None);
    plan.parts.push(idle_part(scale));
    plan.steps.push(idle_step(scale));
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
    // Few users first: a system that breaks off at many was measured before.
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

const IDLE: &[&str] = &["idle"];
/// As many as a pool of pools of a large site makes; fewer where little time is left.
const CONNECTIONS: usize = 10_000;
const CONNECTIONS_SMALL: usize = 2_000;
/// Timers of servers run every 100 ms, or slower: some of each must be seen.
pub(crate) const IDLE_MIN: Duration = Duration::from_millis(600);

/// How many connections do nothing.
pub(crate) fn idle_connections(scale: &Scale) -> usize {
    let of_the_work = if scale.small { CONNECTIONS_SMALL } else { CONNECTIONS };
    let wanted = scale.clients.iter().copied().max().unwrap_or(of_the_work);
    if scale.connections_max == 0 { wanted } else { wanted.min(scale.connections_max) }
}

fn idle_part(scale: &Scale) -> Part {
    Part::new(
        IDLE[0],
        format!("{} connections that were used once and do nothing", idle_connections(scale)),
        vec![
            lower("idle_cpu_ms", "server CPU in a second", "ms"),
            lower("bytes_each", "memory of a connection", "bytes"),
        ],
    )
}

fn idle_step(scale: &Scale) -> Step {
    Step::Custom(Custom {
        beside_seconds: IDLE_MIN.as_secs_f64() + idle_connections(scale) as f64 * 0.000_25,
        ..Custom::new(Own::Idle, IDLE)
    })
}
