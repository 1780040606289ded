//! A thread's own subscribers, and the delivery of a message to them.

use super::published::{ForThread, Kind, Published};
use ladon_resp::{Proto, Reply};
use ladon_settings::glob_match;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// A connection's place in its thread.
#[derive(Clone, Copy, Debug)]
struct Subscriber {
    slot: u32,
    /// Number of the first message to the thread that it gets.
    from: u64,
}

/// The subscribers of one name, by client.
type Clients = BTreeMap<u64, Subscriber>;

/// The subscribers of one thread.
#[derive(Default)]
pub struct Subscribers {
    /// Channels, shard channels.
    channels: [HashMap<Arc<[u8]>, Clients>; 2],
    /// In order, so that a delivery can be continued.
    patterns: BTreeMap<Arc<[u8]>, Clients>,
}

impl Subscribers {
    pub(super) fn add(&mut self, kind: Kind, name: &Arc<[u8]>, client: u64, slot: u32, from: u64) {
        let clients = match kind {
            Kind::Pattern => self.patterns.entry(Arc::clone(name)).or_default(),
            _ => self.channels[kind.index()].entry(Arc::clone(name)).or_default(),
        };
        clients.insert(client, Subscriber { slot, from });
    }

    pub(super) fn remove(&mut self, kind: Kind, name: &[u8], client: u64) {
        let is_empty = |clients: &mut Clients| {
            clients.remove(&client);
            clients.is_empty()
        };
        match kind {
            Kind::Pattern => {
                if self.patterns.get_mut(name).is_some_and(is_empty) {
                    self.patterns.remove(name);
                }
            }
            _ => {
                let channels = &mut self.channels[kind.index()];
                if channels.get_mut(name).is_some_and(is_empty) {
                    channels.remove(name);
                }
            }
        }
    }
}

/// One subscriber that a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The connection.
    pub client: u64,
    /// Its place in the thread.
    pub slot: u32,
}

/// How far a delivery has got.
#[derive(Debug)]
enum At {
    /// Among the channel's subscribers, after this client.
    Channel(u64),
    /// Among this pattern's subscribers, after this client.
    Pattern(Arc<[u8]>, u64),
    /// Before the patterns after this one; all of them for `None`.
    Between(Option<Arc<[u8]>>),
    End,
}

/// A message that a thread passes to its subscribers, some at a time.
pub struct FanOut {
    message: Arc<Published>,
    /// What it counts for until it is delivered.
    pub weight: usize,
    /// Its number among the messages to this thread.
    number: u64,
    at: At,
    /// The message as the subscribers of a pattern get it over RESP2.
    of_pattern: Vec<u8>,
}

impl FanOut {
    /// The delivery of the message with this number.
    pub fn new(message: ForThread, number: u64) -> FanOut {
        let ForThread { message, weight } = message;
        FanOut { message, weight, number, at: At::Channel(0), of_pattern: Vec::new() }
    }

    /// The message.
    pub fn message(&self) -> &Published {
        &self.message
    }

    /// Puts the next subscribers, up to `max`, into `found`; they all get the same bytes, which are
    /// returned as they are over RESP2. Over RESP3 only the first byte differs. Examines at most
    /// `max` patterns, so it may find nobody before [`FanOut::is_over`].
    pub fn next(
        &mut self,
        subscribers: &Subscribers,
        max: usize,
        found: &mut Vec<Delivery>,
    ) -> &[u8] {
        found.clear();
        match std::mem::replace(&mut self.at, At::End) {
            At::Channel(after) => {
                let channels = &subscribers.channels[self.message.kind.index()];
                let clients = channels.get(self.message.channel());
                self.at = match clients.and_then(|clients| self.some(clients, after, max, found)) {
                    Some(last) => At::Channel(last),
                    None if self.message.kind != Kind::Channel => At::End,
                    None if subscribers.patterns.is_empty() => At::End,
                    None => At::Between(None),
                };
                self.message.encoded()
            }
            At::Pattern(pattern, after) => {
                let clients = subscribers.patterns.get(&pattern);
                self.at = match clients.and_then(|clients| self.some(clients, after, max, found)) {
                    Some(last) => At::Pattern(pattern, last),
                    None => At::Between(Some(pattern)),
                };
                &self.of_pattern
            }
            At::Between(pattern) => {
                self.at = self.pattern_after(subscribers, pattern, max);
                if let At::Pattern(pattern, _) = &self.at {
                    self.of_pattern.clear();
                    let mut reply = Reply::new(&mut self.of_pattern, Proto::Resp2);
                    reply.push(4);
                    reply.bulk("pmessage");
                    reply.bulk(pattern);
                    reply.bulk(self.message.channel());
                    reply.bulk(self.message.payload());
                }
                &[]
            }
            At::End => &[],
        }
    }

    /// Whether all subscribers were found.
    pub fn is_over(&self) -> bool {
        matches!(self.at, At::End)
    }

    /// Returns the last client if there may be more.
    fn some(
        &self,
        clients: &Clients,
        after: u64,
        max: usize,
        found: &mut Vec<Delivery>,
    ) -> Option<u64> {
        let (mut last, mut seen) = (after, 0);
        for (&client, subscriber) in clients.range((Excluded(after), Unbounded)).take(max) {
            (last, seen) = (client, seen + 1);
            if subscriber.from <= self.number {
                found.push(Delivery { client, slot: subscriber.slot });
            }
        }
        (seen == max).then_some(last)
    }

    /// Examines up to `max` patterns after `pattern`.
    fn pattern_after(
        &self,
        subscribers: &Subscribers,
        pattern: Option<Arc<[u8]>>,
        max: usize,
    ) -> At {
        let from = pattern.as_deref().map_or(Unbounded, Excluded);
        let mut last = None;
        let later = subscribers.patterns.range::<[u8], _>((from, Unbounded));
        for (pattern, _) in later.take(max) {
            if glob_match(pattern, self.message.channel(), false) {
                return At::Pattern(Arc::clone(pattern), 0);
            }
            last = Some(pattern);
        }
        last.map_or(At::End, |last| At::Between(Some(Arc::clone(last))))
    }
}
