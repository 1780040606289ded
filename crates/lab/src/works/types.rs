//! What the operations of each data type cost.

use super::figures::usual;
use crate::load::types::world::{Operation, Sizes};
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "types",
    title: "Data types",
    repeats: "no published test: the operations of redis-benchmark's list, with data of the usual sizes",
    what: "Hashes of 20 fields, lists of 100 elements, a set and a sorted set (of a million members each, or a \
           tenth of it), bitmaps of 4 KiB, counters, streams of 1,000 entries, HyperLogLogs of 5,000 \
           elements, places along a street. 50 users ask about random ones of them, 16 requests \
           at once; every answer is compared with the one right answer.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

/// Users, and requests that each sends at once.
pub(crate) const USERS: usize = 50;
pub(crate) const DEPTH: usize = 16;

/// What is measured, under which name.
pub(crate) const PARTS: [(&[&str; 1], Operation, &str); 20] = [
    (&["hset"], Operation::Hset, "HSET of a field that is there"),
    (&["hget"], Operation::Hget, "HGET of a field"),
    (&["hgetall"], Operation::Hgetall, "HGETALL of 20 fields"),
    (&["lpush-rpop"], Operation::LpushRpop, "LPUSH and RPOP, as often"),
    (&["lrange"], Operation::Lrange, "LRANGE of 100 elements"),
    (&["zadd"], Operation::Zadd, "ZADD of a member that is there"),
    (&["zscore"], Operation::Zscore, "ZSCORE of a member"),
    (&["zrank"], Operation::Zrank, "ZRANK of a member"),
    (&["zrange"], Operation::Zrange, "ZRANGE of 100 members"),
    (&["zincrby"], Operation::Zincrby, "ZINCRBY of a member"),
    (&["sadd"], Operation::Sadd, "SADD of a member that is there"),
    (&["sadd-srem"], Operation::SaddSrem, "SADD of a new member and SREM, as often"),
    (&["sismember"], Operation::Sismember, "SISMEMBER of members and others"),
    (&["setbit"], Operation::Setbit, "SETBIT"),
    (&["bitcount"], Operation::Bitcount, "BITCOUNT of 4 KiB"),
    (&["incr"], Operation::Incr, "INCR of a counter"),
    (&["xadd"], Operation::Xadd, "XADD, MAXLEN ~ 1000"),
    (&["xadd-xreadgroup"], Operation::XaddXreadgroupXack, "XADD, XREADGROUP and XACK, as often"),
    (&["pfadd"], Operation::Pfadd, "PFADD of an element that was counted"),
    (&["geosearch"], Operation::Geosearch, "GEOSEARCH of 41 places around one"),
];

/// Elements that a load takes in, roughly, for the plan of a run.
const LOADED_PER_SECOND: f64 = 1_500_000.0;

fn plan(scale: &Scale) -> Plan {
    let parts = PARTS.iter().map(|(name, _, title)| {
        Part::new(name[0], format!("{title}; {USERS} users, {DEPTH} requests at once"), usual())
    });
    // Fields, members twice, counters; lists and bitmaps are few. Elements that are counted.
    let beside_seconds = 5.0 + 4.0 * f64::from(scale.keys_or(1_000_000)) / LOADED_PER_SECOND + 1.0;
    let load = Custom::in_redis_commands(Own::LoadTypes, &[]);
    let mut steps = vec![Step::Load(Custom { beside_seconds, ..load })];
    steps.extend(PARTS.iter().map(|(parts, ..)| {
        Step::Custom(Custom { measurements: 1, ..Custom::in_redis_commands(Own::Type, *parts) })
    }));
    Plan { parts: parts.collect(), steps }
}

/// How much there is of each type.
pub(crate) fn sizes(scale: &Scale) -> Sizes {
    // Enough that each user has some of its own, where the order of requests matters.
    let things = scale.keys_or(1_000_000).max(20_000);
    Sizes {
        fields: things,
        fields_per_hash: 20,
        value_bytes: 16,
        queues: 1_000,
        lists: 1_000,
        list_length: 100,
        element_bytes: 10,
        members: things,
        range_length: 100,
        bitmaps: 1_000,
        bitmap_bytes: 4096,
        counters: things,
        streams: 1_000,
        hyperloglogs: 1_000,
        hyperloglog_elements: 5_000,
        places: things.min(200_000),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_operation_has_its_part() {
        let scripts = [Operation::Evalsha, Operation::EvalshaUndeclared];
        for operation in Operation::value_variants().iter().filter(|it| !scripts.contains(it)) {
            let parts = PARTS.iter().filter(|(_, other, _)| other == operation);
            assert_eq!(parts.count(), 1, "{operation:?}");
        }
    }
}
