//! Whether a table that grows makes the others wait.

use super::figures::{higher, lower};
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Work};

/// The work.
pub const WORK: Work = Work {
    name: "growth",
    title: "A table that grows, and a reader",
    repeats: "no published test: what operators of large stores fear of a table that doubles",
    what: "Many users fill an empty server with keys of 11 bytes and values of 8, some requests at once, while \
           one more reads a key every millisecond: its longest wait counts, from when the read was due. Then \
           the same users overwrite what is there: waits of that stretch are the load's, not the growth's.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

/// What is measured: the table grows, and it stays as it is.
pub(crate) const PARTS: &[&str] = &["grows", "stays"];

/// Keys written in a second, roughly, for the plan of a run.
const WRITTEN_PER_SECOND: f64 = 700_000.0;

/// How many keys there are in the end.
pub(crate) fn keys(scale: &Scale) -> u32 {
    let all = scale.keys.unwrap_or(if scale.small { 1_000_000 } else { 10_000_000 });
    all.max(10 * KNOWN)
}

/// Keys that are there before the growth is measured, for the reader.
pub(crate) const KNOWN: u32 = 1000;

/// Users who write.
pub(crate) fn users(scale: &Scale) -> usize {
    scale.clients_or(&[50]).first().copied().unwrap_or(50)
}

/// Requests that each of them sends at once.
pub(crate) fn depth(scale: &Scale) -> usize {
    scale.pipeline.first().copied().unwrap_or(16)
}

fn plan(scale: &Scale) -> Plan {
    let title = |what: &str| {
        let (keys, users, depth) = (keys(scale), users(scale), depth(scale));
        format!(
            "waits of a reader {what} {keys} keys; {users} users write, {depth} requests at once"
        )
    };
    let titles = [title("while a table grows to"), title("while a table keeps its")];
    let parts = PARTS.iter().zip(titles).map(|(name, title)| Part {
        name: (*name).to_owned(),
        title,
        axis: None,
        figures: vec![
            lower("max_us", "longest wait", "us"),
            lower("p999_us", "wait, 99.9 %", "us"),
            lower("p99_us", "wait, 99 %", "us"),
            lower("p50_us", "median wait", "us"),
            lower("over_5_ms", "waits above 5 ms", ""),
            higher("writes_per_second", "writes", "1/s"),
            lower("generator_us", "the load generator's own longest pause", "us"),
        ],
    });
    let step = Custom {
        measurements: 1,
        beside_seconds: f64::from(keys(scale)) / WRITTEN_PER_SECOND,
        starts: 1,
        ..Custom::in_redis_commands(Own::Growth, PARTS)
    };
    Plan { parts: parts.collect(), steps: vec![Step::Custom(step)] }
}
