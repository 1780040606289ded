//! Publish and subscribe: which threads have subscribers, and how a message reaches them.
//!
//! ```text
//! PUBLISH c m   finds c's threads in the registry -> leaves one message in each one's inbox
//!               -> each thread passes it to its own subscribers of c and of patterns that match c
//! ```
//!
//! A message is left under the lock of its channel's part of the registry: all subscribers of a
//! channel see one order. `SUBSCRIBE` registers under the same lock before it replies, so every
//! publisher sees the subscription once it is acknowledged. A message carries the LSN that it
//! depends on, and leaves at the gate of the connection that receives it.
//!
//! **Lock order:** partitions, a part of the registry, the patterns, an inbox. Nobody waits for
//! anything else under one of the last three.

mod fan_out;
mod registry;
mod subscriptions;

pub use fan_out::{Delivery, FanOut, Subscribers};
pub use registry::PubSub;
pub(crate) use subscriptions::renew;
pub use subscriptions::{Subscriptions, abandon};

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
    const fn index(self) -> usize {
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
