//! How much memory a server keeps while its data change.

use super::figures::{higher, lower};
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "churn",
    title: "Memory while data change",
    repeats: "no published test: what operators see of fragmentation",
    what: "Keys with values of random sizes, of which nine of ten are deleted; a cache with a limit, filled with \
           values of one size and then of others, and with values of random sizes; one huge value that is \
           deleted; a client that asks for much, reads nothing and hangs up. Each on a server of its own, whose \
           resident memory is looked at afterwards, while nothing happens.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 6, seconds: 2.0 },
    plan,
};

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nine keys of ten are deleted at random.
    Tenth,
    /// A full cache, values of one size after the other.
    Shifting,
    /// A full cache, values of random sizes.
    Random,
    /// A huge value is deleted.
    Huge,
    /// A client asks for much and reads nothing.
    Flooder,
}

/// What is measured, in this order.
pub(crate) const ROWS: [(&[&str; 1], Change, &str); 5] = [
    (&["tenth"], Change::Tenth, "nine keys of ten are deleted at random"),
    (&["shifting"], Change::Shifting, "a full cache, values of one size after the other"),
    (&["random"], Change::Random, "a full cache, values of 20 to 8,000 bytes"),
    (&["huge"], Change::Huge, "one huge value is deleted"),
    (&["flooder"], Change::Flooder, "a client asks for much, reads nothing and hangs up"),
];

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Keys of `tenth`; a full cache is set three times as many.
    pub(crate) keys: u32,
    pub(crate) maxmemory: u64,
    pub(crate) huge_bytes: usize,
    /// Requests for 100,000 bytes each of the client that reads nothing.
    pub(crate) unread: usize,
}

/// How much there is of everything: half a gigabyte of most things, or a tenth of that.
pub(crate) fn sizes(scale: &Scale) -> Sizes {
    let keys = scale.keys_or(100_000).max(1_000);
    let share = f64::from(keys) / 100_000.0;
    Sizes {
        keys,
        maxmemory: (share * 200.0 * f64::from(1 << 20)).max(MAXMEMORY_MIN) as u64,
        huge_bytes: (share * f64::from(512 << 20)).min(f64::from(512 << 20)) as usize,
        unread: (share * 4_000.0) as usize,
    }
}

/// An empty server takes a megabyte or two.
const MAXMEMORY_MIN: f64 = 8e6;

fn plan(scale: &Scale) -> Plan {
    let parts = ROWS.iter().map(|(name, change, title)| {
        let mut figures = vec![
            lower("settled_bytes", "memory in the end", "bytes"),
            lower("peak_bytes", "most memory", "bytes"),
            lower("soon_bytes", "memory 1.5 s after the last change", "bytes"),
            lower("used_bytes", "memory that the server says it uses", "bytes"),
            lower("empty_bytes", "memory before", "bytes"),
            lower("seconds", "took", "s"),
        ];
        if matches!(change, Change::Shifting | Change::Random) {
            figures.push(lower("peak_of_limit", "most memory of maxmemory", ""));
            figures.push(higher("keys_held", "keys held", ""));
        }
        Part { name: name[0].to_owned(), title: (*title).to_owned(), axis: None, figures }
    });
    let keys = f64::from(sizes(scale).keys);
    let steps = ROWS.iter().map(|(name, change, _)| {
        // A second of settling before, one and a half after; what is left follows the measurements'
        // length.
        let changing = match change {
            Change::Shifting => 20.0 * keys / 100_000.0,
            Change::Random => 6.0 * keys / 100_000.0,
            _ => 3.0 * keys / 100_000.0,
        };
        Step::Custom(Custom {
            measurements: 3,
            beside_seconds: 2.0 + changing,
            starts: 1,
            ..Custom::in_redis_commands(Own::Churn, *name)
        })
    });
    Plan { parts: parts.collect(), steps: steps.collect() }
}
