//! memcached's requests, run on the engine's strings.
//!
//! ```text
//! piece of the input -> memcache (what is asked) -> item.rs: one item, as a command of Redis
//!                                                     |
//!                                 text.rs, meta.rs, binary.rs: the reply, in the words of each
//! ```
//!
//! Items are the strings of database 0: what one protocol stores, the others read.
//!
//! **Architecture invariant:** as the commands of Redis' protocol, no sockets, files or threads of its
//! own. Every request runs as a command of Redis that means the same
//! ([`ladon_kernel::request::on_behalf`]): rights, admission, events and statistics are that command's.

mod binary;
mod delayed_flush;
mod dump;
mod expiry;
mod item;
mod meta;
mod noting;
mod output;
mod piece;
mod requests;
mod running;
mod session;
mod stats;
mod text;

pub use delayed_flush::flush_if_due;
pub use piece::{first_key, is_quick, may_write};
pub use session::{Piece, Session, execute, gives_up};

/// The version that clients are told: that of the memcached whose replies these are.
pub const MEMCACHED_VERSION: &str = "1.6.18";
