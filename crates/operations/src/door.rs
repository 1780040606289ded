//! How the console reaches the server that it is a part of.

use crate::access::Peer;
use ladon_identity::User;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Opens connections to this server from within. The server provides it.
pub trait Door: Send + Sync {
    /// A connection that speaks Redis' protocol, non-blocking, as if a client at `peer` had opened
    /// it. It is logged in as `user`; without one, it is as any new connection.
    ///
    /// # Errors
    /// When the system has no sockets to give.
    fn open(&self, peer: &Peer, user: Option<Arc<User>>) -> io::Result<UnixStream>;
}
