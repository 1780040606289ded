//! What every command runs on: the table of commands, a request's way through its checks, locks and
//! handler, and what a node, a thread and a connection are to commands.
//!
//! **Architecture invariant:** nothing here knows a family of commands; a test reads the imports.

pub mod args;
pub mod aside;
pub mod blocking;
pub mod clients;
pub mod command_id;
pub mod counter;
pub mod ctx;
pub(crate) mod disconnect;
pub mod error;
pub mod eviction;
pub mod execute;
pub mod histogram;
pub(crate) mod invoke;
pub mod latency_events;
pub mod lazy_free;
pub mod limits;
pub mod loading;
pub(crate) mod long_replies;
pub mod long_reply;
pub(crate) mod monitored;
pub mod node;
pub mod outcome;
pub(crate) mod rates;
pub mod rng;
pub(crate) mod secrets;
pub mod session;
pub mod slow_log;
pub mod spec;
pub mod stats;
pub mod table;
pub(crate) mod timing;
pub(crate) mod watched;
