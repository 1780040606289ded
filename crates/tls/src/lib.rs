//! TLS for Ladon's listeners: handshakes on a thread of their own, then records on the IO threads.
//!
//! ```text
//! listener --socket--> Handshakes (one thread, bounded) --Established--> IO thread
//!                                                                          |
//!                          server <--plain bytes-- TlsBackend <--records-- net backend
//! ```
//!
//! [`TlsBackend`] is a [`ladon_net::Backend`] around another one. Connections that came through a
//! plain listener pass it for one look into a table. rustls does the cryptography.
//!
//! **Architecture invariant:** no protocol and no request is known here, and no handshake runs on a
//! thread that serves requests.
//!
//! **Architecture invariant:** an idle connection holds its keys and no buffer.

mod backend;
mod ciphers;
mod client;
mod config;
mod files;
mod half_open;
mod handshake;
mod handshakes;
mod nodes;
mod peer;
mod rate;
mod records;
mod session;
mod sources;
mod tickets;

#[cfg(test)]
mod tests;

pub use backend::{SEALED_BYTES, TlsBackend};
pub use client::{Client, ClientOptions, ConnectError, TlsStream, Trust};
pub use config::{AuthClients, Config, TlsError, TlsOptions};
pub use handshakes::{Control, Established, HALF_OPEN_MAX, Handshakes};
pub use nodes::NodeTls;
pub use peer::PeerCertificate;
pub use session::Session;
