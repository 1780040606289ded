//! Tarantool's protocol (IPROTO of Tarantool 2.11, with the names of 3.x): bytes <-> requests and
//! replies.
//!
//! ```text
//! greeting (128 bytes)                                   once, from the server
//! bytes --frame--> packet --header--> Header, body --Request::decode--> ... --reply--> bytes
//!                                                client::decode reads those bytes on the other side
//! ```
//!
//! Source: Tarantool's documentation, "Binary protocol"; codes and messages are those of
//! `iproto_constants.h` and `errcode.h`. Fixtures recorded from a real server are in
//! `tests/fixtures`.
//!
//! **Architecture invariant:** no engine, no socket, no clock and no `unsafe` in here. A request
//! borrows from the bytes that it arrived in; a reply is appended to a caller's buffer. Nothing is
//! allocated in proportion to a number that a peer merely announced.

#![forbid(unsafe_code)]

pub mod auth;
mod base64;
pub mod client;
mod error;
mod fields;
pub mod frame;
pub mod greeting;
pub mod header;
pub mod key;
pub mod reply;
pub mod request;
pub mod request_type;

pub use error::RequestError;
pub use frame::Progress;
pub use header::Header;
pub use request::Request;
