//! Tuples of spaces, asked in IPROTO: one request at a time, and in pipelines.

use super::figures::{axis, higher, lower};
use super::memory;
use crate::results::schema::Figure;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::iterations::Deed as Once;
use crate::traffic::keyed::Deed;
use crate::work::{Custom, Own, Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "spaces",
    title: "Spaces over IPROTO",
    repeats: "the requests of the comparisons with Tarantool: box.space, with a sequence and secondary indexes",
    what: "Ping, replace, get, get by CALL of `box.space.kv:select` and ranges of 100 tuples of a filled space, new \
           tuples and their deletion, an update of counters by one, insertion with a sequence and a secondary \
           index, selection of ten tuples by it; 50 users who send 1, 16 or 64 requests at once. Then what a \
           tuple of a number and 8 bytes takes in memory.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

const DEPTHS: [usize; 3] = [1, 16, 64];
/// Tuples that a selection by a secondary index returns.
const MEMBERS: u32 = 10;
/// Tuples of a range.
const RANGE: u32 = 100;

/// CPU first: that is what the works of this protocol are compared by.
fn figures() -> Vec<Figure> {
    vec![
        lower("cpu_us", "server CPU per operation", "us"),
        higher("per_second", "throughput", "1/s"),
        lower("p50_us", "median latency", "us"),
        lower("p99_us", "latency, 99 %", "us"),
    ]
}

fn plan(scale: &Scale) -> Plan {
    let users = scale.clients_or(&[50]).first().copied().unwrap_or(50);
    let value_bytes = scale.value_bytes_first(64);
    let distribution = scale.distribution.unwrap_or_default();
    let keyed = |deed| Asked::Keyed { space: "space", mix: vec![(1, deed)], distribution };
    let once = |deed| Asked::Iterations { space: "space-new", deed, value_bytes };
    let sets = |read| Asked::Sets { space: "space-sets", read, members: MEMBERS };
    let range = keyed(Deed::Range { keys: RANGE });
    let each = [
        ("ping", "ping", Asked::Pings),
        ("replace", "replace a tuple", keyed(Deed::Write)),
        ("get", "get a tuple", keyed(Deed::Read)),
        ("call", "CALL box.space.kv:select of a tuple", keyed(Deed::ReadByCall)),
        ("range", "select 100 tuples in order", range),
        ("new", "replace, a new tuple each", once(Once::Set)),
        ("delete", "delete a tuple", once(Once::Delete)),
        (
            "update",
            "update, a counter plus one",
            Asked::Counters { space: "space-count", one: false },
        ),
        ("insert", "insert with a sequence and a secondary index", sets(false)),
        ("select", "select 10 tuples by a secondary index", sets(true)),
    ];
    let fill = Asked::Fill { space: "space", keys: scale.keys_or(1_000_000), value_bytes };
    let (mut parts, mut steps) = (Vec::new(), vec![Step::Prepare(fill)]);
    for (name, title, _) in &each {
        parts.push(Part {
            name: (*name).to_owned(),
            title: format!("{title}, {users} users"),
            axis: axis("requests at once", "requests"),
            figures: figures(),
        });
    }
    for depth in scale.pipeline_or(&DEPTHS) {
        for (name, _, asked) in &each {
            let phase = Phase::new(*name, users, asked.clone()).depth(depth);
            steps.push(Step::Measure(phase.at(depth as f64)));
        }
    }
    parts.push(memory::TUPLE.part());
    steps.push(Step::Custom(Custom {
        beside_seconds: f64::from(memory::things(scale)) / memory::LOADED_PER_SECOND + 1.0,
        starts: 1,
        ..Custom::new(Own::Memory, memory::TUPLE.part)
    }));
    Plan { parts, steps }
}
