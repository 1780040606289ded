//! The same changes, sent one by one and in ever larger batches.

use super::figures::{axis, usual};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Work};

/// The work.
pub const WORK: Work = Work {
    name: "batch",
    title: "Batches",
    repeats: "what a reader asked of the Hazelcast test: the same change in batches of 10 to 10,000",
    what: "Four users write keys, so many with each request, which is one change: MSET, a transaction, \
           a procedure. Throughput and CPU are those of single keys; latency is the request's.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

fn plan(scale: &Scale) -> Plan {
    let users = scale.clients_or(&[4]).first().copied().unwrap_or(4);
    let value_bytes = scale.value_bytes_first(64);
    let distribution = scale.distribution.unwrap_or_default();
    // Each load thread's keys make the largest batch.
    let threads = u32::try_from(scale.load_threads.max(1)).unwrap_or(u32::MAX);
    let keys = scale.keys_or(1_000_000).max(threads.saturating_mul(10_000));
    let mut steps = vec![Step::Prepare(Asked::Fill { space: "batch", keys, value_bytes })];
    let sizes: &[u32] = if scale.small { &[1, 100, 10_000] } else { &[1, 10, 100, 1_000, 10_000] };
    for &keys in sizes {
        let mix = vec![(100, Deed::WriteMany { keys })];
        let asked = Asked::Keyed { space: "batch", mix, distribution };
        let mut phase = Phase::new("set-many", users, asked).at(f64::from(keys));
        phase.counts_as = keys;
        steps.push(Step::Measure(phase));
    }
    let part = Part {
        name: "set-many".to_owned(),
        title: format!("keys written in batches, {users} users"),
        axis: axis("keys with each request", "keys"),
        figures: usual(),
    };
    Plan { parts: vec![part], steps }
}
