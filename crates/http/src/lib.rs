//! HTTP/1.1 on the data: requests become commands of Redis' protocol, replies become responses.
//!
//! ```text
//! net (TLS) --bytes--> HttpBackend: Connection --requests of RESP--> the server, as from any client
//!           <--bytes--                         <--replies---------
//! ```
//!
//! The server knows nothing of it: rights, limits, the gate, blocking and long replies are those of a
//! client of RESP. What a request means is a route (`route/`): Upstash's REST API (commands as JSON or
//! as a path), keys and spaces as resources, functions as handlers.
//!
//! **Architecture invariant:** no `unsafe`; whatever a client sends, its part of a turn and what is
//! kept of it are bounded: bodies are read as they come, and replies leave as they come. Absent: the
//! engine, the meaning of any command, threads, sockets.

mod backend;
pub mod command;
pub mod connection;
mod date;
mod render;
pub mod reply;
pub mod request;
pub mod route;

pub use backend::{HTTP_BYTES, HttpBackend, SharedRules};
pub use connection::Rules;
pub use request::sites::Sites;
