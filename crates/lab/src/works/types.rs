//! What the operations of each data type cost.

use super::figures::usual;
use super::{Custom, Part, Plan, Scale, Settings, Step, Work};
use crate::load::question::{Asking, Question};
use crate::load::types::world::{Ground, MeasureError, Operation, Sizes, World};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::stage::{BULK_USERS, CellError, Stage};
use crate::systems::system::{DriverKind, Topology};

/// The work.
pub const WORK: Work = Work {
    name: "types",
    title: "Data types",
    repeats: "no published test: the operations of redis-benchmark's list, with data of the usual sizes",
    what: "Hashes of 20 fields, lists of 100 elements, a set and a sorted set (of a million members each, or a \
           tenth of it), bitmaps of 4 KiB, counters. 50 users ask about random ones of them, 16 requests \
           at once; every answer is compared with the one right answer.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

/// Users, and requests that each sends at once.
const USERS: usize = 50;
const DEPTH: usize = 16;

/// What is measured, under which name.
const PARTS: [(&[&str; 1], Operation, &str); 16] = [
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
];

/// Elements that a load takes in, roughly, for the plan of a run.
const LOADED_PER_SECOND: f64 = 1_500_000.0;

fn plan(scale: &Scale) -> Plan {
    let parts = PARTS.iter().map(|(name, _, title)| Part {
        name: name[0].to_owned(),
        title: format!("{title}; {USERS} users, {DEPTH} requests at once"),
        axis: None,
        figures: usual(),
    });
    // Fields, members twice, counters; lists and bitmaps are few.
    let beside_seconds = 4.0 * f64::from(scale.keys_or(1_000_000)) / LOADED_PER_SECOND + 1.0;
    let mut steps = vec![Step::Load(Custom {
        run: load,
        parts: &[],
        only: Some(DriverKind::Resp),
        measurements: 0,
        beside_seconds,
        starts: 0,
    })];
    steps.extend(PARTS.iter().map(|(parts, ..)| {
        Step::Custom(Custom {
            run,
            parts: *parts,
            only: Some(DriverKind::Resp),
            measurements: 1,
            beside_seconds: 0.0,
            starts: 0,
        })
    }));
    Plan { parts: parts.collect(), steps }
}

fn sizes(scale: &Scale) -> Sizes {
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
    }
}

fn load(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    let sizes = sizes(&stage.bench.scale);
    let operations: Vec<Operation> = PARTS.iter().map(|(_, operation, _)| *operation).collect();
    let world = World::load(&mut OnStage { stage }, &sizes, &operations)?;
    stage.kept = Some(Box::new(world));
    Ok(())
}

fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let not_loaded = || CellError::Broken("its data were not loaded".to_owned());
    let sizes = sizes(&stage.bench.scale);
    let (_, operation, _) =
        PARTS.iter().find(|(name, ..)| name[0] == part).ok_or_else(not_loaded)?;
    let kept = stage.kept.take().ok_or_else(not_loaded)?;
    let mut world = kept.downcast::<World>().map_err(|_| not_loaded())?;
    let round = world.measure(*operation, &sizes, &mut OnStage { stage });
    let round = round.map_err(|error| match error {
        MeasureError::NotLoaded => not_loaded(),
        MeasureError::Ground(error) => error,
    })?;
    stage.kept = Some(world);
    stage.put(part, None, round);
    Ok(())
}

/// A server on a stage, for the questions of the types.
struct OnStage<'a, 'b> {
    stage: &'a mut Stage<'b>,
}

impl Ground for OnStage<'_, '_> {
    type Seen = Round;
    type Error = CellError;

    fn fill(&mut self, question: impl Question) -> Result<(), CellError> {
        self.stage.ask_all(BULK_USERS, question)
    }

    fn take<Q: Question>(&mut self, question: Q) -> Result<Round, CellError> {
        let seed = self.stage.next_seed();
        let asking = Asking::at_random(question, DEPTH, USERS, seed);
        self.stage.measure_resp(USERS, asking)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_operation_has_its_part() {
        for operation in Operation::value_variants() {
            let parts = PARTS.iter().filter(|(_, other, _)| other == operation);
            assert_eq!(parts.count(), 1, "{operation:?}");
        }
    }
}
