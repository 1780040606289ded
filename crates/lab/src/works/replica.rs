//! A master and its replica, and two masters: what copying costs, and how long a copy takes.

use super::figures::{lower, usual};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::iterations::Deed;
use crate::work::{Custom, Own, Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// One master and one replica.
pub const WORK: Work = Work {
    name: "replica",
    title: "A master and a replica",
    repeats: "the comparisons of Redis with Tarantool in replication: kv with one replica",
    what: "Keys are set, read and deleted on the master while a replica copies it; both nodes' CPU counts. \
           Then keys are set one by one, and the replica is asked until it has each.",
    settings: Settings::All,
    topology: Topology::Replica,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

/// Two masters.
pub const BOTH_WAYS: Work = Work {
    name: "replica-both",
    title: "Two masters",
    repeats: "the comparisons of Redis with Tarantool in replication: master-master",
    what: "As with one replica, but both nodes take writes and copy each other.",
    settings: Settings::All,
    topology: Topology::MasterMaster,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

fn plan(scale: &Scale) -> Plan {
    let users = scale.clients_or(&[100]).first().copied().unwrap_or(100);
    let value_bytes = scale.value_bytes_first(64);
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    for (deed, name) in [(Deed::Set, "set"), (Deed::Get, "get"), (Deed::Delete, "delete")] {
        let asked = Asked::Iterations { space: "few", deed, value_bytes };
        steps.push(Step::Measure(Phase::new(name, users, asked)));
        parts.push(Part::new(name, format!("{name} on the first node, {users} users"), usual()));
    }
    steps.push(Step::Custom(Custom { measurements: 1, ..Custom::new(Own::Lag, &["lag"]) }));
    parts.push(Part::new(
        "lag",
        "from a write's answer to its copy",
        vec![
            lower("p50_us", "median", "us"),
            lower("p99_us", "99 %", "us"),
            lower("p999_us", "99.9 %", "us"),
        ],
    ));
    Plan { parts, steps }
}
