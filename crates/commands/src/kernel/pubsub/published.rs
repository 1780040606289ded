//! What is published, and under which kinds of names.

use ladon_model::Lsn;
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
    encoded: Box<[u8]>,
    channel: Range<usize>,
    payload: Range<usize>,
    /// It may leave when the receiver's gate has passed this.
    pub depends: Lsn,
}

impl Published {
    /// A message on a channel.
    pub(super) fn new(
        kind: Kind,
        hash: u64,
        channel: &[u8],
        payload: &[u8],
        depends: Lsn,
    ) -> Published {
        /// More than the message takes besides channel and payload.
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
        let encoded = encoded.into_boxed_slice();
        Published { kind, hash, encoded, channel: at_channel, payload: at_payload, depends }
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
