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

pub mod fan_out;
pub(crate) mod followers;
pub mod joining;
mod names;
pub mod published;
pub mod registry;
pub mod subscriptions;
