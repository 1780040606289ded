//! What is published, and under which kinds of names.

use ladon_model::Lsn;
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
    /// The channel.
    pub channel: Box<[u8]>,
    /// The message.
    pub payload: Box<[u8]>,
    /// It may leave when the receiver's gate has passed this.
    pub depends: Lsn,
}

/// A message for the subscribers of one thread.
#[derive(Clone, Debug)]
pub struct ForThread {
    /// The message.
    pub message: Arc<Published>,
    /// What it counts for in [`PubSub::is_congested`] until it is delivered.
    pub weight: usize,
}
