//! Ladon's commands: requests in, engine operations, replies out.
//!
//! ```text
//! request -> table (name -> CommandSpec) -> execute (checks, locks) -> call -> handler -> reply
//!
//! families.rs    lists the families and makes the table
//! string/ ...    a family: its commands' handlers and locks
//! shared/        what several families use
//! kernel/        the table's type, execute, call, and what a node and a connection are
//! ```
//!
//! **Architecture invariant:** a command is data first ([`CommandSpec`]: facts and code); dispatch,
//! arity errors, `COMMAND`, key extraction and the compatibility page all come from the one table.
//! Handlers know no socket, no thread and no file: [`Node`] has what they need of the node,
//! [`Session`] what they need of the connection. Imports lead down only, which a test checks.

mod admin;
mod bitmap;
pub mod compat;
mod connection;
pub mod families;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod kernel;
mod list;
mod pubsub;
mod scripting;
mod set;
mod shared;
mod sort;
mod sorted_set;
mod stream;
mod string;
mod transactions;

pub use kernel::{
    args, aside_job, blocking, clients, counter, ctx, error, eviction, eviction_state, execute,
    histogram, large, latency_events, lazy_free, limits, loading, local, long_reply, message, node,
    pubsub as subscriptions, rng, session, slices, spec, stats, table, tracking,
};

pub use clients::{ClientInfo, Clients};
pub use ctx::Ctx;
pub use error::{CommandError, CommandResult};
pub use execute::{Request, execute};
pub use kernel::command_id::CommandId;
pub use kernel::disconnect::disconnect;
pub use kernel::flags::Flags;
pub use kernel::outcome::{Deferred, Flow, Outcome};
pub use kernel::pubsub::registry::CONGESTED_WEIGHT;
pub use kernel::schema_watchers::WatchingClient;
pub use kernel::thread_parts::ThreadParts;
pub use kernel::timing::is_quick;
pub use long_reply::LongReply;
pub use message::{Message, ThreadHandle};
pub use node::{Durability, Node, NodeParts, Paused};
pub use session::{Blocked, Session};
pub use slices::Block;
pub use spec::{Code, CommandSpec, Handler, KeyPositions, LockNeed, Part};
pub use stats::ThreadStats;
pub use stream::automatic_id;
pub use table::CommandTable;
