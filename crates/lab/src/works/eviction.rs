//! Which share of requests a full cache can answer.

use super::figures::{higher, lower};
use crate::load::trace::Pattern;
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "eviction",
    title: "A full cache",
    repeats: "no published test: hits by Zipf's law, as studies of caches count them",
    what: "A client asks for keys by their popularity (1 / n^0.9) and stores what was missing, as one does with a \
           cache; in some parts 30 % of the requests are a scan of keys that never come again. All systems have \
           the same `maxmemory`, so that one that needs less memory for a key holds more of them: what an exact \
           LRU with as many keys would have answered is beside it. The second half of the requests counts.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 6, seconds: 0.5 },
    plan,
};

/// A pattern with a policy, at a size of the cache.
pub(crate) struct Row {
    pub(crate) part: &'static [&'static str; 1],
    pub(crate) pattern: Pattern,
    /// As `maxmemory-policy` names it.
    pub(crate) policy: &'static str,
    large: bool,
}

const fn row(
    part: &'static [&'static str; 1],
    pattern: Pattern,
    policy: &'static str,
    large: bool,
) -> Row {
    Row { part, pattern, policy, large }
}

/// What is measured, in this order.
pub(crate) const ROWS: [Row; 6] = [
    row(&["zipf-lru"], Pattern::Zipf, "allkeys-lru", false),
    row(&["zipf-lfu"], Pattern::Zipf, "allkeys-lfu", false),
    row(&["scanned-lru"], Pattern::Scanned, "allkeys-lru", false),
    row(&["scanned-lfu"], Pattern::Scanned, "allkeys-lfu", false),
    row(&["scanned-lru-large"], Pattern::Scanned, "allkeys-lru", true),
    row(&["scanned-lfu-large"], Pattern::Scanned, "allkeys-lfu", true),
];

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Keys that are asked for again and again.
    pub(crate) keys: u32,
    pub(crate) requests: u32,
    pub(crate) value_bytes: usize,
    pub(crate) maxmemory: u64,
}

impl Row {
    /// How much there is of everything in this row: of 100,000 keys, those of a sixth in 16 MiB, or
    /// of 300,000, those of two fifths in 64 MiB.
    pub(crate) fn sizes(&self, scale: &Scale) -> Sizes {
        let all = scale.keys_or(100_000).max(KEYS_MIN);
        let share = f64::from(all) / 100_000.0;
        let (keys, requests, mib) =
            if self.large { (3 * all, 400_000.0, 64.0) } else { (all, 600_000.0, 16.0) };
        Sizes {
            keys,
            requests: (requests * share) as u32,
            value_bytes: scale.value_bytes_first(500),
            maxmemory: (mib * share * f64::from(1 << 20)) as u64,
        }
    }
}

/// An empty server takes a megabyte or two, and there must be room for keys beside it.
const KEYS_MIN: u32 = 25_000;
/// Requests done in a second, roughly, for the plan of a run.
const ASKED_PER_SECOND: f64 = 150_000.0;

fn plan(scale: &Scale) -> Plan {
    let parts = ROWS.iter().map(|row| {
        let sizes = row.sizes(scale);
        let mib = sizes.maxmemory as f64 / f64::from(1 << 20);
        Part::new(
            row.part[0],
            format!(
                "{}, {}: {} keys with values of {} bytes, maxmemory of {mib:.0} MiB",
                row.policy,
                row.pattern.title(),
                sizes.keys,
                sizes.value_bytes
            ),
            vec![
                higher("hits_percent", "hits", "%"),
                higher("exact_lru_percent", "hits of an exact LRU with as many keys", "%"),
                higher("keys_held", "keys held", ""),
                lower("used_of_limit", "memory used of maxmemory", ""),
                lower("evicted", "keys evicted", ""),
            ],
        )
    });
    let steps = ROWS.iter().map(|row| {
        Step::Custom(Custom {
            beside_seconds: f64::from(row.sizes(scale).requests) / ASKED_PER_SECOND,
            starts: 1,
            ..Custom::in_redis_commands(Own::Eviction, row.part)
        })
    });
    Plan { parts: parts.collect(), steps: steps.collect() }
}
