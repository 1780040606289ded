//! What every command runs on: the table of commands, the checks, locks and call of a request, and
//! the state of a node, a thread and a connection as commands see it.
//!
//! **Architecture invariant:** nothing here knows a family of commands; a test reads the imports.

pub mod args;
pub mod aside;
pub mod aside_job;
pub(crate) mod batch_time;
pub mod blocking;
pub mod clients;
pub mod command_id;
pub mod command_logs;
pub mod counter;
pub mod ctx;
pub(crate) mod disconnect;
pub mod error;
pub mod eviction;
pub mod eviction_state;
pub mod execute;
pub(crate) mod flags;
pub mod histogram;
pub mod hot_keys;
pub(crate) mod invoke;
pub mod large;
pub mod latency_events;
pub mod lazy_free;
pub mod limits;
pub mod loading;
pub mod local;
pub(crate) mod long_replies;
pub mod long_reply;
pub mod message;
pub(crate) mod monitored;
pub(crate) mod mounted;
pub mod node;
pub(crate) mod notifications;
pub mod outcome;
pub(crate) mod overdue;
pub mod pubsub;
pub(crate) mod rates;
pub mod rng;
pub mod scan_positions;
pub mod schema_watchers;
pub mod scripts;
pub(crate) mod secrets;
pub mod session;
pub mod slices;
pub mod spec;
pub mod stats;
pub mod table;
pub(crate) mod thread_parts;
pub(crate) mod timing;
pub mod tracking;
pub(crate) mod undo;
pub(crate) mod undoable_counts;
pub(crate) mod watched;
