//! Scripts that run next to the data.

use super::figures::{axis, usual};
use crate::load::types::world::Operation;
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "scripts",
    title: "Scripts",
    repeats: "no published test: what job queues, locks and rate limiters do (BullMQ, Sidekiq, Redlock)",
    what: "EVALSHA of three lines of Lua, which count up a counter by INCRBY and look whether it is too high, \
           by 50 users who send 1 or 16 requests at once: of a key that the request declares, and of one \
           that it only has among its arguments. Every answer is compared with the one right answer.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

/// Users.
pub(crate) const USERS: usize = 50;
const DEPTHS: [usize; 2] = [1, 16];

/// How many requests a user sends at once.
pub(crate) fn depths(scale: &Scale) -> Vec<usize> {
    scale.pipeline_or(&DEPTHS)
}

/// What is measured, under which name.
pub(crate) const PARTS: [(&[&str; 1], Operation, &str); 2] = [
    (&["evalsha"], Operation::Evalsha, "EVALSHA about a declared key"),
    (&["undeclared"], Operation::EvalshaUndeclared, "EVALSHA about a key that is not declared"),
];

fn plan(_: &Scale) -> Plan {
    let parts = PARTS.iter().map(|(name, _, title)| Part {
        name: name[0].to_owned(),
        title: format!("{title}; {USERS} users"),
        axis: axis("requests at once", "requests"),
        figures: usual(),
    });
    let steps = PARTS.iter().map(|(parts, ..)| {
        Step::Custom(Custom {
            measurements: DEPTHS.len(),
            beside_seconds: 0.5,
            ..Custom::in_redis_commands(Own::Script, *parts)
        })
    });
    Plan { parts: parts.collect(), steps: steps.collect() }
}
