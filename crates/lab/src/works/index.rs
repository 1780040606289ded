//! Rows with a secondary index: inserted, and looked up by it.

use super::figures::usual;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "index",
    title: "A secondary index",
    repeats: "the indexes of the comparisons of Redis with Tarantool: a unique primary key, a \
              secondary key that is not unique",
    what: "Every user inserts rows of a number, a group and a value, ten rows to a group, and then all \
           look up whole groups by the secondary index.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

/// Rows of a group: what a lookup returns.
const MEMBERS: u32 = 10;

fn plan(scale: &Scale) -> Plan {
    let users = scale.clients_or(&[100]).first().copied().unwrap_or(100);
    let value_bytes = scale.value_bytes_first(64);
    let depth = scale.pipeline.first().copied().unwrap_or(1);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for (read, name, title) in [(false, "insert", "insert a row"), (true, "find", "read a group")] {
        let asked = Asked::Rows { read, members: MEMBERS, value_bytes };
        steps.push(Step::Measure(Phase::new(name, users, asked).depth(depth)));
        parts.push(Part::new(name, format!("{title}, {users} users"), usual()));
    }
    Plan { parts, steps }
}
