//! Counters: each user its own, and all on one.

use super::figures::usual;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "counter",
    title: "Counters",
    repeats: "Redis against Tarantool on k6: increments and decrements at once",
    what: "Users add one and take one away in turn, each on a counter of its own, then all on the same \
           one. Every answer must be a value that the counter can have had.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 12, seconds: 0.5 },
    plan,
};

fn plan(scale: &Scale) -> Plan {
    let depth = scale.pipeline.first().copied().unwrap_or(1);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for users in scale.clients_or(&[100]) {
        for (one, name, title) in
            [(false, "own", "each user its own counter"), (true, "one", "all on one counter")]
        {
            let part = format!("{name}-{users}");
            parts.push(Part::new(part.clone(), format!("{title}, {users} users"), usual()));
            let asked = Asked::Counters { space: "counter", one };
            steps.push(Step::Measure(Phase::new(part, users, asked).depth(depth)));
        }
    }
    Plan { parts, steps }
}
