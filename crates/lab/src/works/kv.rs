//! Single keys: set, read, delete, one after the other, and a mix.

use super::figures::usual;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::iterations::Deed as Once;
use crate::traffic::keyed::Deed;
use crate::traffic::pick::Distribution;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "kv",
    title: "Keys and values",
    repeats: "Redis against Tarantool and Tarantool against Hazelcast, both on k6: 3,500 and 100 users",
    what: "Every user sets keys made of its number and its iteration, then all read them, then all \
           delete them. Then one write to ten reads on keys by Zipf's law.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 9, seconds: 0.5 },
    plan,
};

fn plan(scale: &Scale) -> Plan {
    let value_bytes = scale.value_bytes_first(64);
    let depth = scale.pipeline.first().copied().unwrap_or(1);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for users in scale.clients_or(&[100, 3500]) {
        for (deed, name) in [(Once::Set, "set"), (Once::Get, "get"), (Once::Delete, "delete")] {
            let part = format!("{name}-{users}");
            parts.push(Part::new(part.clone(), format!("{name}, {users} users"), usual()));
            // Each number of users has its own space, so that what one left is not the other's.
            let space = space_of(users);
            let asked = Asked::Iterations { space, deed, value_bytes };
            steps.push(Step::Measure(Phase::new(part, users, asked).depth(depth)));
        }
    }
    let users = scale.clients_or(&[100]).first().copied().unwrap_or(100);
    let distribution = scale.distribution.unwrap_or(Distribution::Zipf);
    steps.push(Step::Prepare(Asked::Fill {
        space: "kv-mix",
        keys: scale.keys_or(1_000_000),
        value_bytes,
    }));
    // Eleven shares: one write to ten reads.
    let mix = vec![(1, Deed::Write), (10, Deed::Read)];
    let asked = Asked::Keyed { space: "kv-mix", mix, distribution };
    steps.push(Step::Measure(Phase::new("mix", users, asked).depth(depth)));
    parts.push(Part::new("mix", format!("one write to ten reads, {users} users"), usual()));
    Plan { parts, steps }
}

/// Names must be static; only two sizes are usual.
const fn space_of(users: usize) -> &'static str {
    match users {
        0..=999 => "kv-few",
        _ => "kv-many",
    }
}
