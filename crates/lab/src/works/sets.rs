//! Sets: add a member, read all members.

use super::figures::usual;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "sets",
    title: "Sets",
    repeats: "Redis against Tarantool and Tarantool against Hazelcast, both on k6: Redis' sets beside \
              Tarantool's space with a sequence and a non-unique index, and Hazelcast's multimap",
    what: "Users fill sets of ten members, one member at a time; then they read whole sets.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 9, seconds: 0.5 },
    plan,
};

const MEMBERS: u32 = 10;

fn plan(scale: &Scale) -> Plan {
    let depth = scale.pipeline.first().copied().unwrap_or(1);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for users in scale.clients_or(&[100]) {
        for (read, name, title) in
            [(false, "add", "add a member"), (true, "members", "read all ten members")]
        {
            let part = format!("{name}-{users}");
            parts.push(Part::new(part.clone(), format!("{title}, {users} users"), usual()));
            let asked = Asked::Sets { space: "set", read, members: MEMBERS };
            steps.push(Step::Measure(Phase::new(part, users, asked).depth(depth)));
        }
    }
    Plan { parts, steps }
}
