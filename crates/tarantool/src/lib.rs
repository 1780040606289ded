//! Tarantool's requests, run on the engine's spaces.
//!
//! ```text
//! packet -> iproto (what is asked) -> execute: rights, checks -> statements on spaces -> reply
//!                                        |
//!                                        +-- CALL "box.space.NAME:METHOD": call.rs, then the same
//! ```
//!
//! **Architecture invariant:** sockets and threads are unknown here, as in the commands of Redis'
//! protocol. Both meet in the engine and in the node ([`ladon_kernel::node::Node`]).

mod access;
mod batch;
mod call;
mod error;
mod execute;
mod long_count;
mod long_select;
mod lookahead;
mod lua_value;
mod order;
mod packet;
mod persistent;
mod preparation;
mod procedures;
mod program;
mod quick;
mod requests;
mod savepoint_names;
mod savepoints;
mod server_info;
mod session;
mod session_settings;
mod sql;
mod statements;
mod streams;
mod transactions;
mod watch;

pub use batch::Batch;
pub use execute::execute;
pub use order::Order;
pub use packet::Packet;
pub use requests::{RequestFacts, compat_document};
pub use savepoints::TupleBytes;
pub use session::{GUEST_PACKET_BYTES_MAX, Session, Unfinished};
pub use watch::{broadcast, schema_changed};
