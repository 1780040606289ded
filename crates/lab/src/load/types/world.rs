//! The operations of the data types that are measured, and the data each needs.

use clap::ValueEnum;
use serde::Serialize;

use super::{bitmap, counter, geo, hash, hyperloglog, list, script, set, sorted_set, stream};
use crate::load::question::Question;

/// How many things of each type there are, and how large.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Fields of all hashes.
    pub fields: u32,
    /// Fields of each hash.
    pub fields_per_hash: u32,
    /// Bytes of a field's value.
    pub value_bytes: usize,
    /// Lists that elements go through.
    pub queues: u32,
    /// Lists that are read.
    pub lists: u32,
    /// Elements of each of them.
    pub list_length: u32,
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Members of the sorted set, and of the set.
    pub members: u32,
    /// Members that a ZRANGE asks for.
    pub range_length: u32,
    /// Strings of bits.
    pub bitmaps: u32,
    /// Bytes of each.
    pub bitmap_bytes: u32,
    /// Counters.
    pub counters: u32,
    /// Streams.
    pub streams: u32,
    /// HyperLogLogs.
    pub hyperloglogs: u32,
    /// Elements that each has counted.
    pub hyperloglog_elements: u32,
    /// Places on the map.
    pub places: u32,
}

/// Where questions are put: a server under measurement.
pub trait Ground {
    /// What a measurement brings.
    type Seen;
    /// Why there is none.
    type Error;

    /// Asks about everything once, unmeasured.
    ///
    /// # Errors
    /// A wrong answer, or none at all.
    fn fill(&mut self, question: impl Question) -> Result<(), Self::Error>;

    /// Asks about random things again and again, measured.
    ///
    /// # Errors
    /// A wrong answer, or none at all.
    fn take<Q: Question>(&mut self, question: Q) -> Result<Self::Seen, Self::Error>;
}

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
    /// An entry for a stream that is cut.
    Xadd,
    /// XADD, XREADGROUP and XACK of an entry, as often.
    XaddXreadgroupXack,
    /// An element that was counted before.
    Pfadd,
    /// Places around one.
    Geosearch,
    /// A script about a key that the request declares.
    Evalsha,
    /// A script about a key that it does not.
    EvalshaUndeclared,
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
    logs: Option<stream::Streams>,
    streams: Option<stream::Streams>,
    hyperloglogs: Option<hyperloglog::Counts>,
    street: Option<geo::Street>,
}

impl World {
    /// Gives a server all data that `operations` need.
    ///
    /// # Errors
    /// A wrong answer.
    pub fn load<G: Ground>(
        ground: &mut G,
        sizes: &Sizes,
        operations: &[Operation],
    ) -> Result<Self, G::Error> {
        use Operation as O;
        let any =
            |these: &[Operation]| these.iter().any(|operation| operations.contains(operation));
        let mut world = Self::default();
        if any(&[O::Hset, O::Hget, O::Hgetall]) {
            let count = sizes.fields / sizes.fields_per_hash;
            let mut hashes = hash::Hashes::new(count, sizes.fields_per_hash, sizes.value_bytes);
            ground.fill(hash::fill(&mut hashes))?;
            world.hashes = Some(hashes);
        }
        if any(&[O::LpushRpop]) {
            let queues = list::Queues::new(sizes.queues, sizes.element_bytes);
            ground.fill(list::fill_queues(&queues))?;
            world.queues = Some(queues);
        }
        if any(&[O::Lrange]) {
            let length = sizes.list_length as usize;
            let lists = list::Lists::new(sizes.lists, length, sizes.element_bytes);
            ground.fill(list::fill_lists(&lists))?;
            world.lists = Some(lists);
        }
        if any(&[O::Zadd, O::Zscore, O::Zrank, O::Zrange, O::Zincrby]) {
            let set = sorted_set::SortedSet::new(sizes.members);
            ground.fill(sorted_set::fill(&set))?;
            world.sorted_set = Some(set);
        }
        if any(&[O::Sadd, O::SaddSrem, O::Sismember]) {
            let set = set::Set::new(sizes.members);
            ground.fill(set::fill(&set))?;
            world.set = Some(set);
        }
        if any(&[O::Setbit, O::Bitcount]) {
            let bitmaps = bitmap::Bitmaps::new(sizes.bitmaps, sizes.bitmap_bytes as usize);
            ground.fill(bitmap::fill(&bitmaps))?;
            world.bitmaps = Some(bitmaps);
        }
        if any(&[O::Incr, O::Evalsha, O::EvalshaUndeclared]) {
            let counters = counter::Counters::new(sizes.counters);
            ground.fill(counter::fill(&counters))?;
            world.counters = Some(counters);
        }
        if any(&[O::Evalsha, O::EvalshaUndeclared]) {
            ground.fill(script::fill())?;
        }
        if any(&[O::Xadd]) {
            let logs = stream::Streams::new(b'r', sizes.streams, sizes.element_bytes);
            ground.fill(stream::fill(&logs))?;
            world.logs = Some(logs);
        }
        if any(&[O::XaddXreadgroupXack]) {
            let streams = stream::Streams::new(b'x', sizes.streams, sizes.element_bytes);
            ground.fill(stream::fill(&streams))?;
            world.streams = Some(streams);
        }
        if any(&[O::Pfadd]) {
            let counts = hyperloglog::Counts::new(sizes.hyperloglogs, sizes.hyperloglog_elements);
            ground.fill(hyperloglog::fill(&counts))?;
            world.hyperloglogs = Some(counts);
        }
        if any(&[O::Geosearch]) {
            let street = geo::Street::new(sizes.places);
            ground.fill(geo::fill(&street))?;
            world.street = Some(street);
        }
        Ok(world)
    }

    /// Measures `operation` on the server that holds these data.
    ///
    /// # Errors
    /// A wrong answer, or none at all; [`MeasureError::NotLoaded`] where its data are not there.
    pub fn measure<G: Ground>(
        &mut self,
        operation: Operation,
        sizes: &Sizes,
        on: &mut G,
    ) -> Result<G::Seen, MeasureError<G::Error>> {
        use Operation as O;
        let seen = match operation {
            O::Hset => on.take(hash::hset(loaded(&mut self.hashes)?)),
            O::Hget => on.take(hash::hget(loaded(&mut self.hashes)?)),
            O::Hgetall => on.take(hash::Hgetall::new(loaded(&mut self.hashes)?)),
            O::LpushRpop => on.take(list::lpush_rpop(loaded(&mut self.queues)?)),
            O::Lrange => on.take(list::lrange(loaded(&mut self.lists)?)),
            O::Zadd => on.take(sorted_set::zadd(loaded(&mut self.sorted_set)?)),
            O::Zscore => on.take(sorted_set::zscore(loaded(&mut self.sorted_set)?)),
            O::Zrank => on.take(sorted_set::zrank(loaded(&mut self.sorted_set)?)),
            O::Zrange => {
                let set = loaded(&mut self.sorted_set)?;
                on.take(sorted_set::zrange(set, sizes.range_length))
            }
            O::Zincrby => on.take(sorted_set::zincrby(loaded(&mut self.sorted_set)?)),
            O::Sadd => on.take(set::sadd(loaded(&mut self.set)?)),
            O::SaddSrem => on.take(set::sadd_srem(loaded(&mut self.set)?)),
            O::Sismember => on.take(set::sismember(loaded(&mut self.set)?)),
            O::Setbit => on.take(bitmap::setbit(loaded(&mut self.bitmaps)?)),
            O::Bitcount => on.take(bitmap::bitcount(loaded(&mut self.bitmaps)?)),
            O::Incr => on.take(counter::incr(loaded(&mut self.counters)?)),
            O::Xadd => on.take(stream::xadd(loaded(&mut self.logs)?)),
            O::XaddXreadgroupXack => on.take(stream::work(loaded(&mut self.streams)?)),
            O::Pfadd => on.take(hyperloglog::pfadd(loaded(&mut self.hyperloglogs)?)),
            O::Geosearch => on.take(geo::Geosearch(loaded(&mut self.street)?)),
            O::Evalsha | O::EvalshaUndeclared => {
                let is_declared = operation == O::Evalsha;
                on.take(script::evalsha(loaded(&mut self.counters)?, is_declared))
            }
        };
        seen.map_err(MeasureError::Ground)
    }
}

/// Why an operation was not measured.
#[derive(Debug)]
pub enum MeasureError<E> {
    /// Its data were not loaded before.
    NotLoaded,
    /// The server's fault, or the load's.
    Ground(E),
}

fn loaded<T, E>(data: &mut Option<T>) -> Result<&mut T, MeasureError<E>> {
    data.as_mut().ok_or(MeasureError::NotLoaded)
}
