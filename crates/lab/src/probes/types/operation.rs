//! The operations that `types` measures, and the data each needs.

use clap::ValueEnum;
use serde::Serialize;

use super::TypesArguments;
use crate::load::question::{Asking, Question, things_min};
use crate::load::types::{bitmap, counter, hash, list, set, sorted_set};
use crate::probes::WorkError;
use crate::probes::common::{Bench, CLIENTS};
use crate::probes::measured::Measured;
use crate::systems::server::Server;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A new value for a field that is there.
    Hset,
    /// One field.
    Hget,
    /// A whole hash.
    Hgetall,
    /// LPUSH and RPOP, as often, on the same short lists.
    LpushRpop,
    /// A whole list.
    Lrange,
    /// A new score for a member that is there.
    Zadd,
    /// One score.
    Zscore,
    /// One rank.
    Zrank,
    /// Members by rank.
    Zrange,
    /// An increment of a member's score.
    Zincrby,
    /// A member that is there already.
    Sadd,
    /// SADD of a member that is missing and SREM of one that is there, as often.
    SaddSrem,
    /// Members and others.
    Sismember,
    /// A bit turned over.
    Setbit,
    /// All bits of a string.
    Bitcount,
    /// A counter's next value.
    Incr,
}

impl Operation {
    /// For the tables.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().replace('-', "+").to_uppercase())
    }
}

/// The models of one server's data; of types that no operation needs there is none.
#[derive(Debug, Default)]
pub struct World {
    hashes: Option<hash::Hashes>,
    queues: Option<list::Queues>,
    lists: Option<list::Lists>,
    sorted_set: Option<sorted_set::SortedSet>,
    set: Option<set::Set>,
    bitmaps: Option<bitmap::Bitmaps>,
    counters: Option<counter::Counters>,
}

impl World {
    /// Gives `server` all data that `operations` need.
    ///
    /// # Errors
    /// A wrong answer.
    pub fn load(
        bench: &Bench,
        server: &Server,
        arguments: &TypesArguments,
        operations: &[Operation],
    ) -> Result<Self, WorkError> {
        use Operation as O;
        let any =
            |these: &[Operation]| these.iter().any(|operation| operations.contains(operation));
        let mut world = Self::default();
        if any(&[O::Hset, O::Hget, O::Hgetall]) {
            let count = arguments.fields / arguments.fields_per_hash;
            let mut hashes =
                hash::Hashes::new(count, arguments.fields_per_hash, arguments.value_size);
            bench.ask_all(server, CLIENTS, hash::Fill(&mut hashes))?;
            world.hashes = Some(hashes);
        }
        if any(&[O::LpushRpop]) {
            let queues = list::Queues::new(arguments.queues(), arguments.element_size);
            bench.ask_all(server, CLIENTS, list::FillQueues(&queues))?;
            world.queues = Some(queues);
        }
        if any(&[O::Lrange]) {
            let length = arguments.list_length as usize;
            let lists = list::Lists::new(arguments.lists, length, arguments.element_size);
            bench.ask_all(server, CLIENTS, list::FillLists(&lists))?;
            world.lists = Some(lists);
        }
        if any(&[O::Zadd, O::Zscore, O::Zrank, O::Zrange, O::Zincrby]) {
            let set = sorted_set::SortedSet::new(arguments.members);
            bench.ask_all(server, CLIENTS, sorted_set::Fill(&set))?;
            world.sorted_set = Some(set);
        }
        if any(&[O::Sadd, O::SaddSrem, O::Sismember]) {
            let set = set::Set::new(arguments.members);
            bench.ask_all(server, CLIENTS, set::Fill(&set))?;
            world.set = Some(set);
        }
        if any(&[O::Setbit, O::Bitcount]) {
            let bitmaps = bitmap::Bitmaps::new(arguments.bitmaps, arguments.bitmap_bytes as usize);
            bench.ask_all(server, CLIENTS, bitmap::Fill(&bitmaps))?;
            world.bitmaps = Some(bitmaps);
        }
        if any(&[O::Incr]) {
            let counters = counter::Counters::new(arguments.counters);
            bench.ask_all(server, CLIENTS, counter::Fill(&counters))?;
            world.counters = Some(counters);
        }
        Ok(world)
    }

    /// Measures `operation` on the server that holds these data.
    ///
    /// # Errors
    /// A wrong answer, or none at all.
    pub fn measure(&mut self, operation: Operation, on: &Load<'_>) -> Result<Measured, WorkError> {
        use Operation as O;
        match operation {
            O::Hset => on.take(hash::Hset::new(loaded(&mut self.hashes)?)),
            O::Hget => on.take(hash::Hget::new(loaded(&mut self.hashes)?)),
            O::Hgetall => on.take(hash::Hgetall::new(loaded(&mut self.hashes)?)),
            O::LpushRpop => on.take(list::LpushRpop::new(loaded(&mut self.queues)?)),
            O::Lrange => on.take(list::Lrange::new(loaded(&mut self.lists)?)),
            O::Zadd => on.take(sorted_set::Zadd::new(loaded(&mut self.sorted_set)?)),
            O::Zscore => on.take(sorted_set::Zscore::new(loaded(&mut self.sorted_set)?)),
            O::Zrank => on.take(sorted_set::Zrank::new(loaded(&mut self.sorted_set)?)),
            O::Zrange => {
                on.take(sorted_set::Zrange::new(loaded(&mut self.sorted_set)?, on.range_length))
            }
            O::Zincrby => on.take(sorted_set::Zincrby::new(loaded(&mut self.sorted_set)?)),
            O::Sadd => on.take(set::Sadd::new(loaded(&mut self.set)?)),
            O::SaddSrem => on.take(set::SaddSrem::new(loaded(&mut self.set)?)),
            O::Sismember => on.take(set::Sismember::new(loaded(&mut self.set)?)),
            O::Setbit => on.take(bitmap::Setbit(loaded(&mut self.bitmaps)?)),
            O::Bitcount => on.take(bitmap::Bitcount::new(loaded(&mut self.bitmaps)?)),
            O::Incr => on.take(counter::Incr::new(loaded(&mut self.counters)?)),
        }
    }
}

fn loaded<T>(data: &mut Option<T>) -> Result<&mut T, WorkError> {
    data.as_mut().ok_or_else(|| WorkError::Argument("its data were not loaded".into()))
}

/// How an operation is put on a server.
pub struct Load<'a> {
    /// Where.
    pub bench: &'a Bench,
    /// On whom.
    pub server: &'a Server,
    /// Connections.
    pub clients: usize,
    /// Requests that each sends at once.
    pub depth: usize,
    /// How long to measure.
    pub seconds: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Members that a ZRANGE asks for.
    pub range_length: u32,
}

impl Load<'_> {
    fn take<Q: Question>(&self, question: Q) -> Result<Measured, WorkError> {
        if Q::ORDERED && question.count() < things_min(self.clients, self.depth) {
            return Err(WorkError::Argument(format!(
                "{} things are too few for {} connections that send {} requests at once",
                question.count(),
                self.clients,
                self.depth
            )));
        }
        let asking = Asking::at_random(question, self.depth, self.clients, self.seed);
        Measured::of(self.bench, self.server, self.clients, self.seconds, asking)
    }
}
