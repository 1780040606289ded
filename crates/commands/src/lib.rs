//! Ladon's commands: requests in, engine operations, replies out.
//!
//! ```text
//! request -> table (name -> CommandSpec) -> execute (checks, locks) -> handler -> Tx -> reply
//! ```
//!
//! **Architecture invariant:** a command is data first ([`CommandSpec`]); dispatch, arity errors,
//! `COMMAND`, key extraction and the compatibility page all come from the one table. Handlers
//! know no socket, no thread and no file: what they need of the node stands in [`Node`], what
//! they need of the connection in [`Session`].

pub mod args;
pub mod aside;
mod auth;
mod bitmap;
pub mod blocking;
mod client;
pub mod clients;
mod command;
pub mod compat;
mod config;
pub mod connection;
pub mod ctx;
mod debug;
mod element_random;
mod element_scan;
mod error;
pub mod eviction;
pub mod execute;
mod float;
mod generic;
mod hash;
mod hello;
mod help;
pub mod histogram;
mod info;
mod latency;
pub mod latency_events;
mod latency_graph;
pub mod lazy_free;
pub mod limits;
mod list;
pub mod loading;
mod long_replies;
pub mod long_reply;
mod long_string;
mod memory;
mod monitor;
pub mod node;
mod persistence;
mod rates;
pub mod rng;
mod scan_options;
mod scripting;
mod secrets;
mod server;
pub mod session;
mod set;
mod set_algebra;
mod set_random;
pub mod slow_log;
mod sort;
mod sorted_set;
pub mod spec;
pub mod stats;
mod string;
pub mod table;
mod timing;
mod transaction;
pub mod version;
mod wait;

pub use clients::{ClientInfo, Clients, Message, ThreadHandle};
pub use ctx::Ctx;
pub use error::{CommandError, CommandResult};
pub use execute::{Flow, Outcome, Request, execute};
pub use long_reply::{Block, LongReply};
pub use node::{Durability, Node, NodeParts, Paused};
pub use session::{Blocked, Session};
pub use spec::{CommandSpec, Flags, Handler, KeySpec, LockNeed, Part};
pub use stats::ThreadStats;
pub use table::{CommandId, CommandTable};
pub use timing::is_quick;
