//! Redis' protocol (RESP2 and RESP3): bytes <-> requests and replies.
//!
//! ```text
//! bytes --Parser--> arguments (positions in those bytes) --> ... --> Reply --> bytes
//!                                      client::Decoder reads those bytes on the other side
//! ```
//!
//! **Architecture invariant:** no engine, no socket, no clock and no `unsafe` in here. A parser
//! sees byte slices and gives back positions; a reply is bytes appended to a caller's buffer.
//! Nothing is allocated in proportion to a number that a peer merely announced.

#![forbid(unsafe_code)]

mod big;
pub mod client;
mod double;
mod error;
mod inline;
mod limits;
mod long_double;
mod number;
mod parser;
mod reply;

pub use double::write_double;
pub use error::ProtocolError;
pub use limits::Limits;
pub use long_double::LongDouble;
pub use number::{parse_i64, write_i64};
pub use parser::{Arg, Parser, Partial, Progress};
pub use reply::{Mark, Proto, Reply};
