//! Every log setting of every system, and what it is worth after a crash.

use super::figures::{higher, lower, usual};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Work};

/// The work.
pub const WORK: Work = Work {
    name: "durability",
    title: "Durability",
    repeats: "Redis against Tarantool: appendfsync no, everysec, always beside wal_mode none, write, fsync",
    what: "Writes, then reads, at every log setting. Then new keys are written until kill -9 ends the \
           server; it is started again, and every key that it had acknowledged is asked for. A killed \
           process loses what it had not handed to the operating system; what only a power cut \
           would lose, this does not show.",
    settings: Settings::All,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

fn plan(scale: &Scale) -> Plan {
    let value_bytes = scale.value_bytes_first(64);
    let users = scale.clients_or(&[100]).first().copied().unwrap_or(100);
    let depth = scale.pipeline.first().copied().unwrap_or(1);
    let keys = scale.keys_or(100_000);
    let distribution = scale.distribution.unwrap_or_default();
    let part = |name: &str, title: String, figures| Part {
        name: name.to_owned(),
        title,
        axis: None,
        figures,
    };
    let mixed = |deed| Asked::Keyed { space: "log", mix: vec![(100, deed)], distribution };
    Plan {
        parts: vec![
            part("set", format!("set, {users} users"), usual()),
            part("get", format!("get, {users} users"), usual()),
            part(
                "crash",
                "after kill -9".to_owned(),
                vec![
                    lower("missing", "acknowledged writes that are missing", ""),
                    higher("acknowledged", "acknowledged writes before the kill", ""),
                    lower("restart_ms", "restart", "ms"),
                ],
            ),
        ],
        steps: vec![
            Step::Prepare(Asked::Fill { space: "log", keys, value_bytes }),
            Step::Measure(Phase::new("set", users, mixed(Deed::Write)).depth(depth)),
            Step::Measure(Phase::new("get", users, mixed(Deed::Read)).depth(depth)),
            Step::Crash { part: "crash".to_owned(), users, keys, value_bytes },
        ],
    }
}
