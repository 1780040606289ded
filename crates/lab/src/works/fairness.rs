//! Whether one client can hold up another.
//!
//! Every row has its own fresh server, which is killed at the end. What an impolite client leaves
//! behind, unread input or memory, affects no other row.

use std::time::Duration;

use super::figures::{higher, lower};
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "fairness",
    title: "A polite client beside impolite ones",
    repeats: "no published test: what users of a shared server fear of the others",
    what: "One client sends PING, GET or SET every half millisecond, one request at a time, over a connection \
           of its own; a wait counts for everybody who would have asked in it. Beside it: pipelines without \
           end, a bulk load, a thousand clients that do not read, keys that expire or are deleted, a snapshot. \
           Each server has one thread, but where Ladon's other one is named; each row has a server of its own.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 9, seconds: 1.0 },
    plan,
};

/// The load beside the polite client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    Nobody,
    /// `SET k v` without end on one connection.
    Pipeline {
        reads: bool,
    },
    Bulk,
    /// Slow commands, five hundred of them under way on one connection.
    Slow {
        /// On the other of two IO threads.
        apart: bool,
    },
    Unread,
    Expiry,
    Delete,
    Snapshot,
}

/// What is measured, in this order.
pub(crate) const ROWS: [(&[&str; 1], &str, Other); 10] = [
    (&["nothing"], "nothing else going on", Other::Nobody),
    (
        &["pipeline"],
        "while a connection pipelines SETs without end",
        Other::Pipeline { reads: true },
    ),
    (&["pipeline-unread"], "the same, replies left unread", Other::Pipeline { reads: false }),
    (&["bulk"], "while keys are loaded in bulk", Other::Bulk),
    (&["slow"], "while a connection pipelines slow commands", Other::Slow { apart: false }),
    (
        &["slow-apart"],
        "the same, on the other one of Ladon's two IO threads",
        Other::Slow { apart: true },
    ),
    (&["unread"], "while 1,000 connections send GETs of 1 kB and read nothing", Other::Unread),
    (&["expiry"], "while 10,000 keys a second expire", Other::Expiry),
    (&["delete"], "while keys are deleted in a pipeline", Other::Delete),
    (&["snapshot"], "while a snapshot is made", Other::Snapshot),
];

/// Long enough for a thousand requests, whatever the run's measurements last.
pub(crate) const STRETCH_MIN: Duration = Duration::from_millis(500);
/// Keys of a bulk load, 86 bytes each.
pub(crate) const LOADED: u32 = 700_000;
/// Keys that are deleted, and how many by each request.
pub(crate) const DELETED: u32 = 500_000;
pub(crate) const DELETED_TOGETHER: u32 = 100;
/// Keys of the snapshot.
pub(crate) const SAVED: u32 = 500_000;

/// `all`, or fewer where the user or the time wants fewer.
pub(crate) fn keys(scale: &Scale, all: u32) -> u32 {
    all.min(scale.keys.unwrap_or(if scale.small { all / 5 } else { all })).max(DELETED_TOGETHER)
}

fn plan(scale: &Scale) -> Plan {
    let parts = ROWS.iter().map(|(name, title, other)| {
        let mut figures = vec![
            lower("p999_us", "wait, 99.9 %", "us"),
            lower("p99_us", "wait, 99 %", "us"),
            lower("p50_us", "median wait", "us"),
            lower("max_us", "longest wait", "us"),
            lower("peak_bytes", "most memory of the server", "bytes"),
        ];
        if !matches!(other, Other::Nobody | Other::Snapshot | Other::Unread) {
            figures.push(higher("others_per_second", "what the others got done", "1/s"));
        }
        figures.push(lower("generator_us", "the load generator's own longest pause", "us"));
        figures.push(lower("stolen_ms", "taken by the hypervisor", "ms"));
        Part::new(name[0], format!("waits of a polite client {title}"), figures)
    });
    let steps = ROWS.iter().map(|(name, _, other)| {
        let loaded = match other {
            Other::Bulk => keys(scale, LOADED),
            Other::Delete => keys(scale, DELETED),
            Other::Snapshot => 2 * keys(scale, SAVED),
            _ => 0,
        };
        Step::Custom(Custom {
            beside_seconds: STRETCH_MIN.as_secs_f64() + f64::from(loaded) / 400_000.0,
            starts: 1,
            ..Custom::in_redis_commands(Own::Fairness, *name)
        })
    });
    Plan { parts: parts.collect(), steps: steps.collect() }
}
