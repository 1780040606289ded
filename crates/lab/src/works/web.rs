//! A page: write a key, read it back, answer in JSON.

use super::figures::usual;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::iterations::Deed;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "web",
    title: "A web program over a store",
    repeats: "Go with LevelDB against Tarantool on wrk: 10 and 100 connections",
    what: "Over HTTP, connections kept open: a request writes a key, reads it back and answers in \
           JSON; then all keys are read, likewise. A program and the server behind it count together.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 9, seconds: 0.5 },
    plan,
};

fn plan(scale: &Scale) -> Plan {
    let value_bytes = scale.value_bytes_first(64);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for users in scale.clients_or(&[10, 100]) {
        // A space for each number of users: what one wrote is not the other's.
        let space = if users < 50 { "web-few" } else { "web-many" };
        for (deed, name, title) in
            [(Deed::Set, "write", "write and read back"), (Deed::Get, "read", "read")]
        {
            let part = format!("{name}-{users}");
            let asked = Asked::Iterations { space, deed, value_bytes };
            steps.push(Step::Measure(Phase::new(part.clone(), users, asked)));
            parts.push(Part::new(part, format!("{title}, {users} connections"), usual()));
        }
    }
    Plan { parts, steps }
}
