//! Ladon's commands: requests in, engine operations, replies out.
//!
//! ```text
//! request -> table (name -> CommandSpec) -> execute and call (ladon-kernel) -> handler -> reply
//!
//! families.rs    lists the families and makes the table
//! string/ ...    a family: its commands' handlers and locks
//! shared/        what several families use
//! ```
//!
//! **Architecture invariant:** a command is data first: a
//! [`CommandSpec`](ladon_kernel::command::spec::CommandSpec) joins its facts and its code. Dispatch,
//! arity errors, `COMMAND`, key extraction and the compatibility page all come from the one table.
//! Handlers know no socket, no thread and no file: [`Node`](ladon_kernel::node::Node) has what they
//! need of the node, [`Session`](ladon_kernel::client::session::Session) what they need of the
//! connection. Imports lead down only, which a test checks.

mod admin;
mod bitmap;
pub mod compat;
mod connection;
pub mod families;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod pubsub;
mod replication;
mod scripting;
mod set;
mod shared;
mod sort;
mod sorted_set;
mod space;
mod stream;
mod string;
mod transactions;

pub use stream::automatic_id;
