//! What data takes in memory, how long it takes to load and to come back, and what a snapshot
//! costs.

use super::figures::{higher, lower};
use crate::load::words::NAMES_MAX;
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "memory",
    title: "Memory, snapshot, restart",
    repeats: "the memory tables of the comparisons of Redis with Tarantool and with Dragonfly",
    what: "Strings of three sizes, sets, a sorted set, hashes and lists, each into a server of its own that \
           holds a few keys already: by how much its resident memory grew, and how fast they came in. Then reads \
           and writes while a snapshot is made of strings, and a restart from it.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 6, seconds: 0.5 },
    plan,
};

/// A tuple of a space, loaded by the work `spaces`.
pub(crate) const TUPLE: Shape = Shape {
    part: &["tuple"],
    title: "tuples: an unsigned number, a string of 8 bytes",
    each: "memory of a tuple",
    data: Data::Tuples,
};

/// A shape of data: its part, its title, its unit, and its content.
pub(crate) struct Shape {
    pub(crate) part: &'static [&'static str; 1],
    title: &'static str,
    each: &'static str,
    pub(crate) data: Data,
}

/// The content of a shape.
#[derive(Clone, Copy)]
pub(crate) enum Data {
    /// Keys with a value each.
    Strings {
        /// Bytes of a key.
        key_bytes: usize,
        /// Bytes of a value.
        value_bytes: usize,
    },
    /// Sets of [`MEMBERS`].
    Sets,
    /// One sorted set.
    SortedSet,
    /// Hashes of [`FIELDS`].
    Hashes,
    /// Lists of [`ELEMENTS`].
    Lists,
    /// Tuples of a number and 8 bytes.
    Tuples,
}

impl Shape {
    /// The part of its figures.
    pub(crate) fn part(&self) -> Part {
        Part::new(
            self.part[0],
            self.title.to_owned(),
            vec![
                lower("bytes_each", self.each, "bytes"),
                higher("per_second", "loaded, of keys, members, fields or elements", "1/s"),
            ],
        )
    }
}

impl Data {
    /// Whether only Redis and its like have it.
    const fn is_of_redis(self) -> bool {
        matches!(self, Self::SortedSet | Self::Hashes | Self::Lists)
    }
}

/// Members of a set.
pub(crate) const MEMBERS: u32 = 100;
/// Fields of a hash.
pub(crate) const FIELDS: u32 = 20;
/// Elements of a list.
pub(crate) const ELEMENTS: u32 = 100;

pub(crate) const SHAPES: [Shape; 7] = [
    Shape {
        part: &["key-11-8"],
        title: "strings: a key of 11 bytes, a value of 8",
        each: "memory of a key",
        data: Data::Strings { key_bytes: 11, value_bytes: 8 },
    },
    Shape {
        part: &["key-16-64"],
        title: "strings: a key of 16 bytes, a value of 64",
        each: "memory of a key",
        data: Data::Strings { key_bytes: 16, value_bytes: 64 },
    },
    Shape {
        part: &["key-20-1000"],
        title: "strings: a key of 20 bytes, a value of 1,000",
        each: "memory of a key",
        data: Data::Strings { key_bytes: 20, value_bytes: 1_000 },
    },
    Shape {
        part: &["set-member"],
        title: "sets of 100 members of 8 bytes",
        each: "memory of a member",
        data: Data::Sets,
    },
    Shape {
        part: &["zset-member"],
        title: "one sorted set of members of 10 bytes",
        each: "memory of a member",
        data: Data::SortedSet,
    },
    Shape {
        part: &["hash"],
        title: "hashes of 20 fields of 8 bytes, values of 16",
        each: "memory of a hash",
        data: Data::Hashes,
    },
    Shape {
        part: &["list"],
        title: "lists of 100 elements of 10 bytes",
        each: "memory of a list",
        data: Data::Lists,
    },
];

/// The part of the snapshot.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Roughly, for the plan of a run.
pub(crate) const LOADED_PER_SECOND: f64 = 300_000.0;
const ELEMENTS_LOADED_PER_SECOND: f64 = 1_000_000.0;

/// Requests sent together while loading.
pub(crate) const TOGETHER: u32 = 128;

/// Things of a shape: keys, members, fields, elements.
pub(crate) fn things(scale: &Scale) -> u32 {
    scale.keys.unwrap_or(if scale.small { 500_000 } else { 1_000_000 }).max(TOGETHER)
}

/// The same of shapes of many elements: memory comes in huge pages, and there must be enough of
/// them.
pub(crate) fn elements(scale: &Scale) -> u32 {
    things(scale).saturating_mul(4).min(NAMES_MAX)
}

fn plan(scale: &Scale) -> Plan {
    let mut parts: Vec<Part> = SHAPES.iter().map(Shape::part).collect();
    parts.push(Part::new(
        SNAPSHOT,
        "while a snapshot is made",
        vec![
            lower("p99_us", "latency, 99 %", "us"),
            lower("p99_quiet_us", "latency, 99 %, without a snapshot", "us"),
            lower("memory_growth", "most memory through memory before", ""),
            lower("restart_ms", "restart from the snapshot", "ms"),
        ],
    ));
    let steps = SHAPES.iter().map(|shape| {
        let of_redis = shape.data.is_of_redis();
        let speed = if of_redis { ELEMENTS_LOADED_PER_SECOND } else { LOADED_PER_SECOND };
        Step::Custom(Custom {
            redis_commands: of_redis,
            beside_seconds: f64::from(things(scale)) / speed + 1.0,
            starts: 1,
            ..Custom::new(Own::Memory, shape.part)
        })
    });
    let mut steps: Vec<Step> = steps.collect();
    steps.push(Step::Custom(Custom {
        measurements: 2,
        beside_seconds: 2.0,
        starts: 1,
        ..Custom::new(Own::Snapshot, &[SNAPSHOT])
    }));
    Plan { parts, steps }
}
