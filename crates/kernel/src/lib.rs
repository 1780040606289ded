//! What every command runs on: the table of commands, the checks, locks and call of a request, and
//! the state of a node, a thread and a connection as commands see it.
//!
//! ```text
//! node.rs, local.rs   what a node is, and what a thread has for itself
//! dataset.rs          a node's data, which can be exchanged
//! ctx.rs              what a handler gets
//! command/            a command as data: its facts, its flags, its place in the table
//! request/            a request's way: checks, locks, call, outcome
//! client/             a connection's session, and the list of all clients
//! long/               replies and results that outlast a turn
//! memory/             eviction, and what is freed in the background
//! statistics/         what is counted and timed
//! access/             users, and who may run what
//! blocking/ pubsub/ scripts/ tracking/
//! ```
//!
//! **Architecture invariant:** nothing here knows a family of commands, a protocol's bytes, a socket
//! or a file. [`node::Node`]'s traits provide what a handler needs of the node.

pub mod access;
pub mod background;
pub mod blocking;
pub mod client;
pub mod cluster;
pub mod command;
pub mod ctx;
pub mod dataset;
pub mod durability;
pub mod leader_reads;
pub mod limits;
pub mod loading;
pub mod local;
pub mod long;
pub mod memory;
pub mod message;
pub mod node;
pub mod notifications;
pub mod persistent;
pub mod place;
pub mod program;
pub mod pubsub;
pub mod replication;
pub mod request;
pub mod rng;
pub mod role;
pub mod scan_positions;
pub mod scripts;
pub mod shared;
pub mod statistics;
pub mod thread_parts;
pub mod tracking;
pub mod untaken;
pub mod upstream;
