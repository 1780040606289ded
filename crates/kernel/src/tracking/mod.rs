//! Client-side caching (`CLIENT TRACKING`): who keeps copies of which values, and how a client
//! learns that its copy is invalid.
//!
//! ```text
//! GET k    notes that the client read k (`remember.rs`); its commit, under k's lock, puts the client
//!          among k's readers in the table (`table.rs`)
//! SET k    its commit, under k's lock, takes k's readers out of the table, and leaves one message in
//!          the inbox of each of their threads (`registry.rs`)
//!          -> each thread passes it to its own readers (`fan_out.rs`)
//! ```
//!
//! A client in broadcasting mode names prefixes of keys instead, and nothing is noted when it
//! reads.
//!
//! **Invariants:** a client's reading is noted, and a change finds it, under the same lock: no
//! change falls between. Within a transaction, reads and changes keep their order. A thread reads
//! its inbox between requests only, so that an invalidation follows every reply that was made
//! before the change. It carries the change's LSN and leaves at the gate of the connection that
//! receives it. More invalidations than necessary are allowed everywhere, fewer nowhere.
//!
//! **Lock order:** partitions, a part of the table or the prefixes, an inbox.

pub mod batch;
pub mod fan_out;
pub mod joining;
mod numbers;
mod prefix_tree;
pub mod registry;
pub(crate) mod remember;
pub mod state;
mod sweep;
mod table;
mod tracker_set;
