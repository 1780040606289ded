//! Pipelines of several depths, small and larger values.

use super::figures::{axis, higher, lower, usual};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::work::{Custom, Own, Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "pipeline",
    title: "Pipelines",
    repeats: "Redis Cluster against Dragonfly on memtier: GET and SET, pipelines of 1 and 30, 256 bytes",
    what: "PING, beside a loop that answers nothing else. \
           GET and SET of random keys by 50 users who send 1, 16, 30 or 64 requests at once. Then one server on \
           all of the servers' cores against shards: as many servers as cores of those that run commands on \
           one core, the keys dealt to them by the client, their CPU and memory added up. Each batch is one \
           shard's, which is the best that can happen to shards.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

/// The published depths for the published size; with little time left, only enough to show the
/// shape.
const fn depths(scale: &Scale, value_bytes: usize) -> &'static [usize] {
    match (scale.small, value_bytes > 100) {
        (false, _) => &[1, 16, 30, 64],
        (true, false) => &[1, 16, 64],
        (true, true) => &[1, 30],
    }
}

fn plan(scale: &Scale) -> Plan {
    let users = scale.clients_or(&[50]).first().copied().unwrap_or(50);
    let distribution = scale.distribution.unwrap_or_default();
    // First, as a system that can do no more ends here.
    let (mut parts, mut steps) = (vec![ping_part()], vec![ping_step()]);
    for value_bytes in scale.value_bytes_or(&[64, 256]) {
        let space = if value_bytes <= 100 { "pipe-short" } else { "pipe-long" };
        steps.push(Step::Prepare(Asked::Fill {
            space,
            keys: scale.keys_or(1_000_000),
            value_bytes,
        }));
        for (deed, name) in [(Deed::Write, "set"), (Deed::Read, "get")] {
            let part = format!("{name}-{value_bytes}");
            parts.push(Part {
                name: part.clone(),
                title: format!("{name}, values of {value_bytes} bytes, {users} users"),
                axis: axis("requests at once", "requests"),
                figures: usual(),
            });
            for depth in scale.pipeline_or(depths(scale, value_bytes)) {
                let asked = Asked::Keyed { space, mix: vec![(100, deed)], distribution };
                let phase = Phase::new(part.clone(), users, asked).depth(depth);
                steps.push(Step::Measure(phase.at(depth as f64)));
            }
        }
    }
    // On one core a server and a shard are the same, and were measured above.
    if !scale.small || scale.server_cores > 1 {
        parts.extend(shard_parts(scale));
        steps.push(shard_step(scale));
    }
    Plan { parts, steps }
}

/// Users who send `PING`.
pub(crate) const PING_USERS: usize = 50;
const PING: &[&str] = &["ping"];
const PING_DEPTHS: [usize; 3] = [1, 16, 64];

/// How many `PING`s a user sends at once.
pub(crate) fn ping_depths(scale: &Scale) -> Vec<usize> {
    scale.pipeline_or(&PING_DEPTHS)
}

fn ping_part() -> Part {
    Part {
        name: PING[0].to_owned(),
        title: format!(
            "PING, {PING_USERS} users; the bare loop is no store: what any costs at least"
        ),
        axis: axis("requests at once", "requests"),
        figures: vec![
            lower("cpu_us", "server CPU per operation", "us"),
            higher("per_second", "throughput", "1/s"),
            lower("p50_us", "median latency", "us"),
            lower("p99_us", "latency, 99 %", "us"),
        ],
    }
}

fn ping_step() -> Step {
    Step::Custom(Custom {
        measurements: PING_DEPTHS.len(),
        beside_seconds: 0.1,
        ..Custom::in_redis_commands(Own::Ping, PING)
    })
}

/// Writes to shards, and reads of them.
pub(crate) const SHARDS: [&str; 2] = ["set-shards", "get-shards"];
/// Requests that each user of a shard sends at once.
pub(crate) const SHARD_DEPTHS: [usize; 2] = [1, 30];

/// One server on all cores against as many servers on one core each.
fn shard_parts(scale: &Scale) -> Vec<Part> {
    let cores = scale.server_cores.max(1);
    let against = match cores {
        1 => "one server each, as there is one core for it".to_owned(),
        _ => format!(
            "servers of several threads on {cores} cores, {cores} shards of those that run commands on one"
        ),
    };
    let part = |(name, title): (&str, &str)| Part {
        name: name.to_owned(),
        title: format!("{title}: {against}"),
        axis: axis("requests at once", "requests"),
        figures: usual(),
    };
    SHARDS.into_iter().zip(["set", "get"]).map(part).collect()
}

fn shard_step(scale: &Scale) -> Step {
    Step::Custom(Custom {
        measurements: SHARDS.len() * SHARD_DEPTHS.len(),
        beside_seconds: 0.5 + f64::from(scale.keys_or(1_000_000)) / 400_000.0,
        starts: 1,
        ..Custom::in_redis_commands(Own::Shards, &SHARDS)
    })
}
