//! What is published, and under which kinds of names.

use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use std::ops::Range;
use std::sync::Arc;

/// What a name in a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A channel (`SUBSCRIBE`).
    Channel,
    /// A channel that belongs to a slot of a cluster (`SSUBSCRIBE`).
    Shard,
    /// A pattern of channels (`PSUBSCRIBE`).
    Pattern,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Channel, Kind::Shard, Kind::Pattern];

    /// Index of its tables.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A message on its way to the subscribers.
#[derive(Debug)]
pub struct Published {
    /// `Kind::Channel` or `Kind::Shard`.
    pub kind: Kind,
    /// Hash of the channel, as the registry computes it.
    pub(super) hash: u64,
    /// As the subscribers of the channel get it over RESP2.
    encoded: Vec<u8>,
    channel: Range<usize>,
    payload: Range<usize>,
    /// It may leave when the receiver's gate has passed this.
    pub depends: Lsn,
    /// Subscriptions that its sender began after it, in the same transaction.
    pub(super) not_for: Option<Box<NotFor>>,
}

/// Subscriptions of one client that began after a message was said, and before it was published.
#[derive(Debug)]
pub(crate) struct NotFor {
    /// The client.
    pub(crate) client: u64,
    /// To what.
    pub(crate) names: Vec<(Kind, Arc<[u8]>)>,
}

impl NotFor {
    pub(super) fn has(&self, client: u64, kind: Kind, name: &[u8]) -> bool {
        self.client == client && self.names.iter().any(|(k, n)| *k == kind && **n == *name)
    }
}

impl Published {
    /// A message on a channel.
    pub(super) fn new(
        kind: Kind,
        hash: u64,
        channel: &[u8],
        payload: &[u8],
        depends: Lsn,
        not_for: Option<Box<NotFor>>,
    ) -> Published {
        /// More than `Reply` makes room for besides channel and payload.
        const FRAME_BYTES: usize = 64;
        let mut encoded = Vec::with_capacity(FRAME_BYTES + channel.len() + payload.len());
        let mut reply = Reply::new(&mut encoded, Proto::Resp2);
        let line_end = 2;
        let before = |end: usize, length: usize| end - line_end - length..end - line_end;
        reply.push(3);
        reply.bulk(if kind == Kind::Shard { "smessage" } else { "message" });
        reply.bulk(channel);
        let at_channel = before(reply.position(), channel.len());
        reply.bulk(payload);
        let at_payload = before(reply.position(), payload.len());
        Published {
            kind,
            hash,
            encoded,
            channel: at_channel,
            payload: at_payload,
            depends,
            not_for,
        }
    }

    /// As the subscribers of the channel get it over RESP2; over RESP3 only the first byte differs.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// The channel.
    pub fn channel(&self) -> &[u8] {
        &self.encoded[self.channel.clone()]
    }

    /// The message.
    pub fn payload(&self) -> &[u8] {
        &self.encoded[self.payload.clone()]
    }
}

/// A message for the subscribers of one thread.
#[derive(Clone, Debug)]
pub struct ForThread {
    /// The message.
    pub message: Arc<Published>,
    /// What it counts for in the registry's `is_congested` until it is delivered.
    pub weight: usize,
}
