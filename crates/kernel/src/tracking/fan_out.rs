//! A thread's own trackers, and the delivery of invalidations to them.

use super::batch::{Batch, ForTrackers};
use super::numbers;
use super::prefix_tree::PrefixTree;
use super::state::TrackingState;
use crate::pubsub::fan_out::Delivery;
use crate::pubsub::followers::{Follower, Followers};
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The trackers of one thread.
#[derive(Default)]
pub struct Trackers {
    /// All with tracking on.
    on: Followers,
    /// Client and slot of those whose reads are noted, by the index of their number.
    numbered: Vec<Option<(u64, u32)>>,
    prefixes: PrefixTree<Followers>,
}

impl Trackers {
    pub(super) fn add(&mut self, client: u64, slot: u32, from: u64) {
        self.on.insert(client, Follower { slot, from });
    }

    pub(super) fn remove(&mut self, client: u64) {
        self.on.remove(client);
    }

    pub(super) fn set_number(&mut self, index: usize, tracker: Option<(u64, u32)>) {
        if self.numbered.len() <= index {
            self.numbered.resize(index + 1, None);
        }
        self.numbered[index] = tracker;
    }

    pub(super) fn follow(&mut self, prefix: &[u8], client: u64, slot: u32, from: u64) {
        self.prefixes.get_or_default(prefix).insert(client, Follower { slot, from });
    }

    pub(super) fn unfollow(&mut self, prefix: &[u8], client: u64) {
        let is_empty = self.prefixes.get_mut(prefix).is_some_and(|clients| {
            clients.remove(client);
            clients.is_empty()
        });
        if is_empty {
            self.prefixes.remove(prefix);
        }
    }
}

/// How far a delivery has got.
#[derive(Debug)]
enum At {
    /// Among all trackers, after this client.
    All(u64),
    /// Before this key.
    Key(usize),
    /// Among this key's readers, from this number on.
    Readers(usize, u32),
    /// Before the next prefix of which keys are invalid.
    Prefixes,
    /// Among the followers of this prefix, after this client.
    Followers(Box<[u8]>, u64),
    End,
}

/// A batch that a thread passes to its trackers, some at a time.
pub struct FanOut {
    batch: Arc<Batch>,
    /// What it counts for until it is delivered.
    pub weight: usize,
    /// Its number among the messages to this thread.
    number: u64,
    at: At,
    /// For each prefix, the invalid keys that begin with it.
    by_prefix: BTreeMap<Box<[u8]>, Vec<u32>>,
    /// The keys that those who were found last are told of.
    keys: Vec<u32>,
    /// These, encoded,
    encoded: Vec<u8>,
    /// and for one client without its own changes.
    encoded_for_one: Vec<u8>,
}

impl FanOut {
    /// The delivery of the message with this number.
    pub fn new(message: ForTrackers, number: u64) -> FanOut {
        let ForTrackers { batch, weight } = message;
        let at = if batch.is_all { At::All(0) } else { At::Key(0) };
        FanOut {
            batch,
            weight,
            number,
            at,
            by_prefix: BTreeMap::new(),
            keys: Vec::new(),
            encoded: Vec::new(),
            encoded_for_one: Vec::new(),
        }
    }

    /// Its messages may leave when the receiver's gate has passed this.
    pub fn depends(&self) -> Lsn {
        self.batch.depends
    }

    /// Whether all trackers were found.
    pub fn is_over(&self) -> bool {
        matches!(self.at, At::End)
    }

    /// Bytes of the present message's keys.
    pub fn bytes(&self) -> usize {
        self.encoded.len()
    }

    /// Puts the next trackers, up to `max`, into `found`; they are all told of the same keys. May
    /// find nobody before [`FanOut::is_over`]. `thread` is this thread's number, of `threads`.
    pub fn next(
        &mut self,
        trackers: &Trackers,
        (thread, threads): (usize, usize),
        max: usize,
        found: &mut Vec<Delivery>,
    ) {
        found.clear();
        self.at = match std::mem::replace(&mut self.at, At::End) {
            At::All(after) => match trackers.on.find(after, max, self.number, found) {
                Some(last) => At::All(last),
                None => At::End,
            },
            At::Key(at) => self.begin_key(trackers, at),
            At::Readers(at, mut from) => {
                let readers = self.batch.keys[at].readers.as_ref();
                loop {
                    let next = readers.and_then(|readers| readers.next(from));
                    let Some(number) = next else { break At::Key(at + 1) };
                    from = number.saturating_add(1);
                    let (its_thread, index) = numbers::place(number, threads);
                    if its_thread == thread
                        && let Some(&Some((client, slot))) = trackers.numbered.get(index)
                    {
                        found.push(Delivery { client, slot });
                    }
                    if found.len() == max {
                        break At::Readers(at, from);
                    }
                }
            }
            At::Prefixes => match self.by_prefix.pop_first() {
                None => At::End,
                Some((prefix, keys)) => {
                    self.keys = keys;
                    encode(&self.batch, &self.keys, |_| true, &mut self.encoded);
                    At::Followers(prefix, 0)
                }
            },
            At::Followers(prefix, after) => {
                let clients = trackers.prefixes.get(&prefix);
                match clients.and_then(|places| places.find(after, max, self.number, found)) {
                    Some(last) => At::Followers(prefix, last),
                    None => At::Prefixes,
                }
            }
            At::End => At::End,
        };
    }

    /// Begins with a key: notes who follows it, and makes the message for its readers.
    fn begin_key(&mut self, trackers: &Trackers, at: usize) -> At {
        let Some(key) = self.batch.keys.get(at) else { return At::Prefixes };
        if key.is_followed {
            let bytes = self.batch.key(at);
            let by_prefix = &mut self.by_prefix;
            trackers.prefixes.for_each_prefix_of(bytes, |length, _| {
                by_prefix.entry(bytes[..length].into()).or_default().push(at as u32);
            });
        }
        if key.readers.is_none() {
            return At::Key(at + 1);
        }
        self.keys.clear();
        self.keys.push(at as u32);
        encode(&self.batch, &self.keys, |_| true, &mut self.encoded);
        At::Readers(at, 0)
    }

    /// What one of the found is told: an encoded array of keys, or `Some(None)` for all keys.
    /// `None` if it is told nothing.
    pub fn keys_for(&mut self, client: u64, tracking: &TrackingState) -> Option<Option<&[u8]>> {
        if !tracking.on {
            return None;
        }
        if self.batch.is_all {
            return Some(None);
        }
        let is_broadcast = matches!(self.at, At::Prefixes | At::Followers(..));
        if is_broadcast != tracking.modes.broadcast {
            // It has changed its mode since it read the key.
            return None;
        }
        let batch = &self.batch;
        let is_own = |&at: &u32| batch.keys[at as usize].origin == client;
        if !tracking.modes.no_loop || !self.keys.iter().any(is_own) {
            return Some(Some(&self.encoded));
        }
        if self.keys.iter().all(is_own) {
            return None;
        }
        let is_others = |at: u32| !is_own(&at);
        encode(batch, &self.keys, is_others, &mut self.encoded_for_one);
        Some(Some(&self.encoded_for_one))
    }
}

/// Encodes an array of some of these keys, in order and each once.
fn encode(batch: &Batch, keys: &[u32], which: impl Fn(u32) -> bool, out: &mut Vec<u8>) {
    out.clear();
    let wanted = keys.iter().filter(|&&at| which(at)).map(|&at| batch.key(at as usize));
    let mut wanted: Vec<&[u8]> = wanted.collect();
    wanted.sort_unstable();
    wanted.dedup();
    // Arrays and strings are the same in both protocols.
    let mut reply = Reply::new(out, Proto::Resp2);
    reply.array(wanted.len());
    for key in wanted {
        reply.bulk(key);
    }
}
