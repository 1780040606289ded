//! From a push to the client that waits for it.

use super::figures::lower;
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "handover",
    title: "A queue: from a push to the client that waits",
    repeats: "no published test: what job queues over BLPOP do (Celery, Sidekiq, Resque)",
    what: "One connection waits in BLPOP, another pushes an element 200 microseconds later, one step at a time. \
           The time runs from the push until the element is read. Where a server has several threads and \
           tells them apart, the two connections are on different ones.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 9, seconds: 0.5 },
    plan,
};

fn plan(_: &Scale) -> Plan {
    let part = Part::new(
        "handover",
        "LPUSH to BLPOP, two connections",
        vec![
            lower("p50_us", "median", "us"),
            lower("p99_us", "99 %", "us"),
            lower("p999_us", "99.9 %", "us"),
            lower("push_p50_us", "median until the push's own reply", "us"),
            lower("cpu_us", "server CPU per hand-over", "us"),
        ],
    );
    let step = Custom {
        measurements: 1,
        beside_seconds: 0.1,
        ..Custom::in_redis_commands(Own::Handover, &["handover"])
    };
    Plan { parts: vec![part], steps: vec![Step::Custom(step)] }
}
