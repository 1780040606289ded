//! Changes to streams, and their form in the log.
//!
//! ```text
//! op    := step*
//! step  := 1 id words                                     an entry added
//!        | 2 ids                                          entries removed
//!        | 3 count                                        the first ones trimmed
//!        | 4 id added id                                  last id, entries added, largest removed
//!        | 5 group id read                                a group created
//!        | 6 group id read                                how far a group has read
//!        | 7 group                                        a group removed
//!        | 8 group consumer time                          a consumer seen, and created if missing
//!        | 9 group consumer                               a consumer removed
//!        | 10 group consumer time id read                 what follows the group's last id, up to
//!                                                         this one, delivered and now pending
//!        | 11 group consumer time id count                so many of a consumer's pending entries
//!                                                         from this id on delivered again
//!        | 12 group ids                                   acknowledged
//!        | 13 group consumer time count (id time count)*  claimed: delivered when, how often
//!        | 14 group count (id count)*                     released: pending with no consumer,
//!                                                         how often delivered
//!        | 15 seconds ids                                 how much is remembered of each producer;
//!                                                         all is forgotten
//!        | 16 producer id                                 who sent the last entry, under which
//!                                                         idempotent id
//!        | 17                                             an entry not added, as it had been
//!        | 18 count                                       the first ones remembered forgotten
//! ids   := count id*
//! words := count word*
//! read  := 0 if it is not known, else the number of entries read + 1
//! ```
//! An id is two numbers. Groups, consumers, producers,
//! idempotent ids and words are length and bytes. Numbers are varints,
//! times Unix milliseconds. A step holds what was decided: no clock is read to apply it.

use super::{Memory, StreamId};
use ladon_record::varint;

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const TRIM: u8 = 3;
const SET_ID: u8 = 4;
const CREATE_GROUP: u8 = 5;
const SET_GROUP: u8 = 6;
const REMOVE_GROUP: u8 = 7;
const SEE: u8 = 8;
const REMOVE_CONSUMER: u8 = 9;
const DELIVER: u8 = 10;
const REDELIVER: u8 = 11;
const ACKNOWLEDGE: u8 = 12;
const CLAIM: u8 = 13;
const RELEASE: u8 = 14;
const SET_MEMORY: u8 = 15;
const REMEMBER: u8 = 16;
const DUPLICATE: u8 = 17;
const FORGET: u8 = 18;

/// An entry that a consumer claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which.
    pub id: StreamId,
    /// When it counts as delivered, Unix milliseconds.
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub count: u64,
}

/// One thing done to a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named as in the encoding above")]
pub enum Step<'a> {
    /// An entry added.
    Add { id: StreamId, words: Vec<&'a [u8]> },
    /// Entries removed.
    Remove { ids: Vec<StreamId> },
    /// So many entries removed from the beginning.
    Trim { count: usize },
    /// The last id, the number of entries ever added, and the largest id removed.
    SetId { last: StreamId, added: u64, deleted: StreamId },
    /// A group created.
    CreateGroup { group: &'a [u8], last: StreamId, read: Option<u64> },
    /// How far a group has read.
    SetGroup { group: &'a [u8], last: StreamId, read: Option<u64> },
    /// A group removed.
    RemoveGroup { group: &'a [u8] },
    /// A consumer tries to read; created if it is missing.
    See { group: &'a [u8], consumer: &'a [u8], at_ms: u64 },
    /// A consumer removed, with what was pending.
    RemoveConsumer { group: &'a [u8], consumer: &'a [u8] },
    /// The entries after the group's last id, up to `last`, delivered to a consumer.
    Deliver { group: &'a [u8], consumer: &'a [u8], at_ms: u64, last: StreamId, read: Option<u64> },
    /// Up to `count` of a consumer's pending entries from `first` on delivered again.
    Redeliver { group: &'a [u8], consumer: &'a [u8], at_ms: u64, first: StreamId, count: u64 },
    /// Entries that are no longer pending.
    Acknowledge { group: &'a [u8], ids: Vec<StreamId> },
    /// Entries that are now pending with a consumer.
    Claim { group: &'a [u8], consumer: &'a [u8], at_ms: u64, claimed: Vec<Claimed> },
    /// Entries that are now pending with no consumer, and how often they count as delivered.
    Release { group: &'a [u8], released: Vec<(StreamId, u64)> },
    /// How much is remembered of each producer. What is remembered already is forgotten.
    SetMemory(Memory),
    /// Who sent the last entry, and its idempotent id.
    Remember { producer: &'a [u8], id: &'a [u8] },
    /// An entry was not added, because it had been before.
    Duplicate,
    /// So many of the oldest entries that are remembered forgotten.
    Forget { count: usize },
}

/// Appends the encoding of a [`Step::Add`] of borrowed words.
#[inline]
pub(crate) fn encode_add(id: StreamId, words: &[&[u8]], op: &mut Vec<u8>) {
    op.push(ADD);
    id.put(op);
    varint::put(op, words.len() as u64);
    words.iter().for_each(|word| varint::put_bytes(op, word));
}

impl<'a> Step<'a> {
    /// Appends the encoding.
    pub(crate) fn encode(&self, op: &mut Vec<u8>) {
        match self {
            Step::Add { id, words } => encode_add(*id, words, op),
            Step::Remove { ids } => {
                op.push(REMOVE);
                put_ids(ids, op);
            }
            Step::Trim { count } => {
                op.push(TRIM);
                varint::put(op, *count as u64);
            }
            Step::SetId { last, added, deleted } => {
                op.push(SET_ID);
                last.put(op);
                varint::put(op, *added);
                deleted.put(op);
            }
            Step::SetMemory(memory) => {
                op.push(SET_MEMORY);
                varint::put(op, memory.duration_s);
                varint::put(op, memory.ids_max as u64);
            }
            Step::Remember { producer, id } => put_member(REMEMBER, producer, id, op),
            Step::Duplicate => op.push(DUPLICATE),
            Step::Forget { count } => {
                op.push(FORGET);
                varint::put(op, *count as u64);
            }
            _ => self.encode_of_group(op),
        }
    }

    fn encode_of_group(&self, op: &mut Vec<u8>) {
        match self {
            Step::CreateGroup { group, last, read } | Step::SetGroup { group, last, read } => {
                let is_new = matches!(self, Step::CreateGroup { .. });
                op.push(if is_new { CREATE_GROUP } else { SET_GROUP });
                varint::put_bytes(op, group);
                last.put(op);
                put_optional(*read, op);
            }
            Step::RemoveGroup { group } => put_group(REMOVE_GROUP, group, op),
            Step::See { group, consumer, at_ms } => {
                put_member(SEE, group, consumer, op);
                varint::put(op, *at_ms);
            }
            Step::RemoveConsumer { group, consumer } => {
                put_member(REMOVE_CONSUMER, group, consumer, op);
            }
            Step::Deliver { group, consumer, at_ms, last, read } => {
                put_member(DELIVER, group, consumer, op);
                varint::put(op, *at_ms);
                last.put(op);
                put_optional(*read, op);
            }
            Step::Redeliver { group, consumer, at_ms, first, count } => {
                put_member(REDELIVER, group, consumer, op);
                varint::put(op, *at_ms);
                first.put(op);
                varint::put(op, *count);
            }
            Step::Acknowledge { group, ids } => {
                put_group(ACKNOWLEDGE, group, op);
                put_ids(ids, op);
            }
            Step::Claim { group, consumer, at_ms, claimed } => {
                put_member(CLAIM, group, consumer, op);
                varint::put(op, *at_ms);
                varint::put(op, claimed.len() as u64);
                for Claimed { id, delivered_ms, count } in claimed {
                    id.put(op);
                    varint::put(op, *delivered_ms);
                    varint::put(op, *count);
                }
            }
            Step::Release { group, released } => {
                put_group(RELEASE, group, op);
                varint::put(op, released.len() as u64);
                for (id, count) in released {
                    id.put(op);
                    varint::put(op, *count);
                }
            }
            _ => unreachable!("a step of the stream itself"),
        }
    }

    /// Takes the next step off an operation; `None` if it is malformed.
    pub(crate) fn take(op: &mut &'a [u8]) -> Option<Step<'a>> {
        let (&tag, rest) = op.split_first()?;
        *op = rest;
        let bytes = varint::take_bytes;
        Some(match tag {
            ADD => {
                let id = StreamId::take(op)?;
                let count = usize::try_from(varint::take(op)?).ok()?;
                // Every word has at least one byte, so a wrong count cannot request much memory.
                if count < 2 || !count.is_multiple_of(2) || count > op.len() {
                    return None;
                }
                let words: Option<Vec<&[u8]>> = (0..count).map(|_| bytes(op)).collect();
                Step::Add { id, words: words? }
            }
            REMOVE => Step::Remove { ids: take_ids(op)? },
            TRIM => Step::Trim { count: usize::try_from(varint::take(op)?).ok()? },
            SET_ID => {
                let (last, added) = (StreamId::take(op)?, varint::take(op)?);
                Step::SetId { last, added, deleted: StreamId::take(op)? }
            }
            CREATE_GROUP | SET_GROUP => {
                let (group, last, read) = (bytes(op)?, StreamId::take(op)?, take_optional(op)?);
                match tag {
                    CREATE_GROUP => Step::CreateGroup { group, last, read },
                    _ => Step::SetGroup { group, last, read },
                }
            }
            REMOVE_GROUP => Step::RemoveGroup { group: bytes(op)? },
            SEE => {
                let (group, consumer) = (bytes(op)?, bytes(op)?);
                Step::See { group, consumer, at_ms: varint::take(op)? }
            }
            REMOVE_CONSUMER => Step::RemoveConsumer { group: bytes(op)?, consumer: bytes(op)? },
            DELIVER => {
                let (group, consumer, at_ms) = (bytes(op)?, bytes(op)?, varint::take(op)?);
                let (last, read) = (StreamId::take(op)?, take_optional(op)?);
                Step::Deliver { group, consumer, at_ms, last, read }
            }
            REDELIVER => {
                let (group, consumer, at_ms) = (bytes(op)?, bytes(op)?, varint::take(op)?);
                let (first, count) = (StreamId::take(op)?, varint::take(op)?);
                Step::Redeliver { group, consumer, at_ms, first, count }
            }
            ACKNOWLEDGE => Step::Acknowledge { group: bytes(op)?, ids: take_ids(op)? },
            CLAIM => {
                let (group, consumer, at_ms) = (bytes(op)?, bytes(op)?, varint::take(op)?);
                let take = |op: &mut &'a [u8]| {
                    let (id, delivered_ms) = (StreamId::take(op)?, varint::take(op)?);
                    Some(Claimed { id, delivered_ms, count: varint::take(op)? })
                };
                Step::Claim { group, consumer, at_ms, claimed: take_list(op, take)? }
            }
            RELEASE => {
                let group = bytes(op)?;
                let take = |op: &mut &'a [u8]| Some((StreamId::take(op)?, varint::take(op)?));
                Step::Release { group, released: take_list(op, take)? }
            }
            SET_MEMORY => {
                let (duration_s, ids_max) = (varint::take(op)?, varint::take(op)?);
                Step::SetMemory(Memory { duration_s, ids_max: usize::try_from(ids_max).ok()? })
            }
            REMEMBER => {
                let producer = bytes(op)?;
                Step::Remember { producer, id: bytes(op)? }
            }
            DUPLICATE => Step::Duplicate,
            FORGET => Step::Forget { count: usize::try_from(varint::take(op)?).ok()? },
            _ => return None,
        })
    }

    /// Whether those who watch the key see a change. As in Redis, what groups do is none.
    pub(crate) fn touches_watchers(&self) -> bool {
        matches!(self, Step::Add { .. } | Step::Remove { .. } | Step::Trim { .. })
    }

    /// Whether those who wait for the key may have to be served.
    pub(crate) fn serves_waiters(&self) -> bool {
        matches!(self, Step::Add { .. } | Step::RemoveGroup { .. } | Step::Release { .. })
    }
}

fn put_group(tag: u8, group: &[u8], op: &mut Vec<u8>) {
    op.push(tag);
    varint::put_bytes(op, group);
}

fn put_member(tag: u8, group: &[u8], consumer: &[u8], op: &mut Vec<u8>) {
    put_group(tag, group, op);
    varint::put_bytes(op, consumer);
}

fn put_ids(ids: &[StreamId], op: &mut Vec<u8>) {
    varint::put(op, ids.len() as u64);
    ids.iter().for_each(|id| id.put(op));
}

fn take_ids(op: &mut &[u8]) -> Option<Vec<StreamId>> {
    take_list(op, StreamId::take)
}

fn take_list<'a, T>(
    op: &mut &'a [u8],
    take: impl Fn(&mut &'a [u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let count = usize::try_from(varint::take(op)?).ok()?;
    // Every item has at least two bytes, so a wrong count cannot request much memory.
    if count > op.len() / 2 {
        return None;
    }
    (0..count).map(|_| take(op)).collect()
}

/// Appends a number that may be missing.
pub(super) fn put_optional(value: Option<u64>, op: &mut Vec<u8>) {
    varint::put(op, value.map_or(0, |value| value.saturating_add(1)));
}

pub(super) fn take_optional(op: &mut &[u8]) -> Option<Option<u64>> {
    Some(varint::take(op)?.checked_sub(1))
}
