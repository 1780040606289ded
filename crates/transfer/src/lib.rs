//! Redis' values to the engine's, and the engine's to Redis'.
//!
//! ```text
//! elements of a file or payload  --Builder-->  a value of the engine
//! a value of the engine          --write-->    a file or payload, element by element
//! ```
//!
//! **Architecture invariant:** one element at a time: beside the engine's value there is never a
//! second form of it (in a stream, of one node). What the reader of the bytes does not compare is
//! compared here: no member, field, group, consumer or pending entry is there twice, and each
//! pending entry is that of one consumer. Absent: keys, transactions, files, commands.

mod builder;
mod stream_builder;
mod stream_write;
mod write;

pub use builder::{Builder, Built, Refused};
pub use write::{head_of, oldest_version, payload, write};
