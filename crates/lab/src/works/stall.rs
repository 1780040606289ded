//! Whether a command on a large value makes everybody else wait.

use std::time::Duration;

use super::figures::lower;
use crate::load::large::{Command, Sizes, Value};
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The commands that operators warn of.
pub const WORK: Work = Work {
    name: "stall",
    title: "One long command, and everybody else",
    repeats: "no published test: what operators of single-threaded stores warn of, reading or deleting a \
              large value",
    what: "Ten users each read a small value every millisecond, and what they wait counts from the moment at \
           which the read was due. Meanwhile one connection does one long command after the other: on a hash, \
           a list and a sorted set of a million elements (or 300,000), and on two sets of a third of that.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 1.0 },
    plan: |scale| plan(scale, &STRETCHES),
};

/// All others that take long.
pub const MORE: Work = Work {
    name: "stall-more",
    title: "More long commands, and everybody else",
    repeats: "no published test: every other command that takes long on a large value",
    what: "As `stall`, with the other commands that read, compute or store much, also on strings of 100 bytes \
           for each of a list's elements, and with some of them while a snapshot is made.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 1.0 },
    plan: |scale| plan(scale, &MORE_STRETCHES),
};

/// A stretch of time, and what is done in it.
pub(crate) struct Stretch {
    pub(crate) part: &'static [&'static str; 1],
    title: &'static str,
    /// Done in turn.
    pub(crate) commands: &'static [Command],
    /// Whether it lasts as long as a snapshot, which begins with it.
    pub(crate) saves: bool,
}

const fn stretch(
    part: &'static [&'static str; 1],
    title: &'static str,
    commands: &'static [Command],
) -> Stretch {
    Stretch { part, title, commands, saves: false }
}

/// What `stall` measures, in this order.
const STRETCHES: [Stretch; 5] = [
    stretch(&["nothing"], "nothing else going on", &[]),
    stretch(&["hgetall"], "while a whole hash is read", &[Command::Hgetall]),
    stretch(&["lrange"], "while a whole list is read", &[Command::Lrange]),
    stretch(&["sunionstore"], "while two sets are united and stored", &[Command::Sunionstore]),
    stretch(&["del"], "while a sorted set is deleted", &[Command::DelSortedSet]),
];

/// What `stall-more` measures, in this order.
const MORE_STRETCHES: [Stretch; 17] = [
    stretch(&["nothing"], "nothing else going on", &[]),
    stretch(&["smembers"], "while a whole set is read", &[Command::Smembers]),
    stretch(&["zrange"], "while a whole sorted set is read", &[Command::Zrange]),
    stretch(&["sinterstore"], "while two sets are intersected", &[Command::Sinterstore]),
    stretch(&["zunionstore"], "while two sets make a sorted set", &[Command::Zunionstore]),
    stretch(&["sort"], "while a list is sorted and stored", &[Command::Sort]),
    stretch(&["copy"], "while a set is copied", &[Command::Copy]),
    stretch(&["bitop"], "while BITOP joins two long strings", &[Command::Bitop]),
    stretch(&["bitcount"], "while BITCOUNT reads a long string", &[Command::Bitcount]),
    stretch(&["bitpos"], "while BITPOS reads a long string", &[Command::Bitpos]),
    stretch(&["copy-string"], "while a long string is copied", &[Command::CopyString]),
    stretch(&["get-string"], "while a long string is read", &[Command::GetString]),
    stretch(&["set-string"], "while a long string is set", &[Command::SetString]),
    stretch(&["lpos"], "while LPOS looks for a list's last element", &[Command::Lpos]),
    stretch(&["lcs"], "while LCS compares two strings of 5,000 bytes", &[Command::Lcs]),
    stretch(&["rename"], "while a hash is renamed", &[Command::Rename]),
    Stretch {
        saves: true,
        ..stretch(
            &["snapshot"],
            "while a snapshot is made, a sorted set deleted, a hash and a list read, and sets united",
            &[Command::DelSortedSet, Command::Hgetall, Command::Sunionstore, Command::Lrange],
        )
    },
];

/// The stretch of this name, in the work of that name.
#[must_use]
pub(crate) fn stretch_of(work: &str, part: &str) -> Option<&'static Stretch> {
    of_work(work).iter().find(|stretch| stretch.part[0] == part)
}

/// Values that the stretches of a work need before it begins: sorted sets are deleted, and come
/// when they are wanted.
#[must_use]
pub(crate) fn values_of(work: &str) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for command in of_work(work).iter().flat_map(|stretch| stretch.commands) {
        for &value in command.values() {
            if value != Value::SortedSet && !values.contains(&value) {
                values.push(value);
            }
        }
    }
    values
}

fn of_work(work: &str) -> &'static [Stretch] {
    if work == MORE.name { &MORE_STRETCHES } else { &STRETCHES }
}

/// Long enough for some commands, whatever the run's measurements last.
pub(crate) const STRETCH_MIN: Duration = Duration::from_millis(800);
/// Elements loaded in a second, roughly, for the plan of a run.
const LOADED_PER_SECOND: f64 = 700_000.0;

fn plan(scale: &Scale, stretches: &'static [Stretch]) -> Plan {
    let parts = stretches.iter().map(|stretch| {
        Part::new(
            stretch.part[0],
            format!("waits of small reads {}", stretch.title),
            vec![
                lower("p999_us", "wait, 99.9 %", "us"),
                lower("p99_us", "wait, 99 %", "us"),
                lower("p50_us", "median wait", "us"),
                lower("max_us", "longest wait", "us"),
                lower("longest_command_us", "longest command", "us"),
                lower("generator_us", "the load generator's own longest pause", "us"),
            ],
        )
    });
    let sizes = sizes(scale);
    let loaded = |elements: u32| f64::from(elements) / LOADED_PER_SECOND;
    let mut steps = vec![Step::Load(Custom {
        beside_seconds: loaded(sizes.hash + sizes.list + 2 * sizes.set),
        ..Custom::in_redis_commands(Own::LoadLarge, &[])
    })];
    steps.extend(stretches.iter().map(|stretch| {
        let reloads = stretch.commands.iter().any(|command| command.values() == [Value::SortedSet]);
        Step::Custom(Custom {
            beside_seconds: STRETCH_MIN.as_secs_f64()
                + if reloads { loaded(sizes.sorted_set) } else { 0.0 },
            ..Custom::in_redis_commands(Own::Stall, stretch.part)
        })
    }));
    Plan { parts: parts.collect(), steps }
}

/// How large the values are.
pub(crate) fn sizes(scale: &Scale) -> Sizes {
    let large = scale.keys.unwrap_or(if scale.small { 300_000 } else { 1_000_000 });
    Sizes {
        sorted_set: large,
        hash: large,
        list: large,
        set: (large / 3).max(2),
        string: large.saturating_mul(100).min(STRING_BYTES_MAX),
    }
}

/// The longest string that a server takes by default.
const STRING_BYTES_MAX: u32 = 512 << 20;
