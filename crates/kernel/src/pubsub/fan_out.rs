//! A thread's own subscribers, and the delivery of a message to them.

use super::followers::{Follower, Followers};
use super::names::Names;
use super::published::{ForThread, Kind, Published};
use super::registry::PubSub;
use super::subscriptions::Subscriptions;
use ladon_resp::{Proto, Reply};
use ladon_settings::Glob;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// Parts of a thread's tables of channels: a table that grows moves all that it has.
const PARTS: usize = 256;

/// Subscriptions of connections that have left, which are ended in one step; less than a tenth of a
/// millisecond.
const ENDED_PER_STEP: usize = 64;

/// Channels, shard channels.
type Part = [Names<Followers>; 2];

/// The subscribers of one thread.
#[derive(Default)]
pub struct Subscribers {
    /// By the hash of the channel; none before the first subscription.
    channels: Box<[Part]>,
    /// In order, so that a delivery can be continued.
    patterns: BTreeMap<Arc<[u8]>, (Arc<Glob>, Followers)>,
    /// What connections subscribed to that have left.
    leaving: VecDeque<(u64, Box<Subscriptions>)>,
}

impl Subscribers {
    fn channel(&self, kind: Kind, hash: u64, name: &[u8]) -> Option<&Followers> {
        self.channels.get(hash as usize % PARTS)?[kind.index()].get(hash, name)
    }

    pub(super) fn add(
        &mut self,
        registry: &PubSub,
        kind: Kind,
        name: &Arc<[u8]>,
        client: u64,
        its: Follower,
    ) {
        if self.channels.is_empty() {
            self.channels = (0..PARTS).map(|_| Part::default()).collect();
        }
        let followers = match kind {
            Kind::Pattern => {
                let new = || (registry.glob(name), Followers::default());
                &mut self.patterns.entry(Arc::clone(name)).or_insert_with(new).1
            }
            _ => {
                let hash = registry.hash(name);
                let part = &mut self.channels[hash as usize % PARTS];
                part[kind.index()].get_or_insert(hash, name)
            }
        };
        followers.insert(client, its);
    }

    pub(super) fn remove(&mut self, kind: Kind, hash: u64, name: &[u8], client: u64) {
        let is_empty = |followers: &mut Followers| {
            followers.remove(client);
            followers.is_empty()
        };
        match kind {
            Kind::Pattern => {
                let pattern = self.patterns.get_mut(name);
                if pattern.is_some_and(|(_, followers)| is_empty(followers)) {
                    self.patterns.remove(name);
                }
            }
            _ => {
                self.channels[hash as usize % PARTS][kind.index()].remove_if(hash, name, is_empty);
            }
        }
    }

    /// Ends the subscriptions of a connection that has left by and by.
    pub(super) fn leave(&mut self, client: u64, subscriptions: Box<Subscriptions>) {
        self.leaving.push_back((client, subscriptions));
    }

    /// Ends some subscriptions of connections that have left. Returns whether there are more.
    #[inline]
    pub fn tidy(&mut self, registry: &PubSub, thread: usize) -> bool {
        !self.leaving.is_empty() && self.end_some(registry, thread)
    }

    #[cold]
    fn end_some(&mut self, registry: &PubSub, thread: usize) -> bool {
        for _ in 0..ENDED_PER_STEP {
            let Some((client, subscriptions)) = self.leaving.front_mut() else { break };
            let client = *client;
            if let Some((kind, name)) = subscriptions.pop() {
                registry.unsubscribe(kind, &name, thread);
                self.remove(kind, registry.hash(&name), &name, client);
            } else {
                self.leaving.pop_front();
            }
        }
        !self.leaving.is_empty()
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
                let Published { kind, hash, .. } = *self.message;
                let followers = subscribers.channel(kind, hash, self.message.channel());
                let last =
                    followers.and_then(|followers| followers.find(after, max, self.number, found));
                self.leave_out(kind, self.message.channel(), found);
                self.at = match last {
                    Some(last) => At::Channel(last),
                    None if self.message.kind != Kind::Channel => At::End,
                    None if subscribers.patterns.is_empty() => At::End,
                    None => At::Between(None),
                };
                self.message.encoded()
            }
            At::Pattern(pattern, after) => {
                let followers = subscribers.patterns.get(&pattern).map(|(_, followers)| followers);
                let last =
                    followers.and_then(|followers| followers.find(after, max, self.number, found));
                self.leave_out(Kind::Pattern, &pattern, found);
                self.at = match last {
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

    /// Removes those whom the message is not for.
    #[inline]
    fn leave_out(&self, kind: Kind, name: &[u8], found: &mut Vec<Delivery>) {
        if let Some(not_for) = &self.message.not_for {
            found.retain(|delivery| !not_for.has(delivery.client, kind, name));
        }
    }

    /// Whether all subscribers were found.
    pub fn is_over(&self) -> bool {
        matches!(self.at, At::End)
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
        for (pattern, (glob, _)) in later.take(max) {
            if glob.matches(self.message.channel()) {
                return At::Pattern(Arc::clone(pattern), 0);
            }
            last = Some(pattern);
        }
        last.map_or(At::End, |last| At::Between(Some(Arc::clone(last))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ThreadHandle;

    #[test]
    fn subscriptions_of_who_has_left_end_some_at_a_time() {
        let registry = PubSub::new(vec![ThreadHandle::new(|| {})].into(), 1);
        let mut subscribers = Subscribers::default();
        let add = |subscribers: &mut Subscribers, kind, name: &Arc<[u8]>, client| {
            let from = registry.subscribe(kind, name, 0);
            let follower = Follower { slot: client as u32, from };
            subscribers.add(&registry, kind, name, client, follower);
        };
        let mut subscriptions = Box::<Subscriptions>::default();
        for at in 0..500 {
            let kind = Kind::ALL[at % 3];
            let name = Arc::from(format!("{at}*").as_bytes());
            subscriptions.add(kind, &name);
            add(&mut subscribers, kind, &name, 7);
            if at < 30 {
                add(&mut subscribers, kind, &name, 8);
            }
        }
        let names = || Kind::ALL.map(|kind| registry.names(kind)).iter().sum::<usize>();
        subscribers.leave(7, subscriptions);
        let mut before = names();
        assert_eq!(before, 500);
        while subscribers.tidy(&registry, 0) {
            assert!(before - names() <= ENDED_PER_STEP, "{before} names, then {}", names());
            before = names();
        }
        assert_eq!(names(), 30, "those of the other client");
        let left = |name: &str| {
            let hash = registry.hash(name.as_bytes());
            let followers = subscribers.channel(Kind::Channel, hash, name.as_bytes());
            let mut found = Vec::new();
            followers.map(|followers| followers.find(0, 9, u64::MAX, &mut found));
            found.iter().map(|delivery| delivery.client).collect::<Vec<_>>()
        };
        assert_eq!((left("27*"), left("30*")), (vec![8], vec![]));
        assert_eq!(subscribers.patterns.len(), 10);
    }
}
