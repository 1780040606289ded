//! Pipelines of several depths, small and larger values.

use super::figures::{axis, usual};
use super::{Part, Phase, Plan, Scale, Settings, Step, Work};
use super::{ping, shards};
use crate::systems::system::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;

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
    rounds_max: u32::MAX,
    plan,
};

/// The published depths for the published size; where little time is left, no more than tell a shape.
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
    // First, as whoever can do no more is done then.
    let (mut parts, mut steps) = (vec![ping::part()], vec![ping::step()]);
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
        parts.extend(shards::parts(scale));
        steps.push(shards::step(scale));
    }
    Plan { parts, steps }
}
