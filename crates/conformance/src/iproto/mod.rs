//! Random requests to Ladon's spaces and to a real `tarantool`, side by side.
//!
//! ```text
//! seed --setup, generate--> Round --duel--> both servers
//!                             ^                 |
//!                             |     request::Check, grammar/iproto_known.txt
//!                             +--- shrink <--- Difference
//! ```
//!
//! A *round* makes one or two spaces by inserts into `_space` and `_index`, and then sends some
//! hundred statements, calls of `box.space.NAME:METHOD` and malformed bodies. At its end all tuples
//! of all indexes are read and compared. A difference is shrunk to the requests that it needs.
//!
//! **Invariant:** a round depends only on its seed. What a server may choose (the order of a HASH
//! index) is compared as far as it is defined.

pub mod client;
pub mod duel;
pub mod generate;
pub mod operations;
mod paths;
pub mod request;
pub mod rights;
pub mod setup;
pub mod value;
pub mod values;

pub use client::{Client, Reply};
pub use duel::{Difference, Duel, Found, Start, hunt};
pub use generate::round;
pub use request::Request;
pub use rights::rights_round;
pub use value::Value;
