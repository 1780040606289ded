//! memcached's protocols: the text protocol with the meta commands, and the binary one. Bytes to
//! requests, replies to bytes.
//!
//! ```text
//! bytes -> frame: how long the next piece is -> Request: what it asks for
//!            |
//!            +-- the state of the stream: inside a list of keys, or of a value that is not wanted
//! ```
//!
//! **Architecture invariant:** no `unsafe`; a request borrows from the bytes that it arrived in, and
//! nothing is allocated in proportion to a number that a peer has only announced. A list of keys is
//! cut into pieces, so that no request is long. Absent: sockets, items, the meaning of any request.

pub mod binary;
pub mod frame;
pub mod meta;
pub mod request;
mod words;

pub use frame::{Framed, Limits, State, StreamError, frame};
pub use request::{Mode, Request, Store};

/// A longer key is refused (`KEY_MAX_LENGTH` of memcached).
pub const KEY_BYTES_MAX: usize = 250;
