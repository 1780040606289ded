//! The console's way in: connections that the server makes to itself.
//!
//! One end of a pair of sockets goes to an IO thread like any accepted socket, so that rights, limits,
//! the gate and `MONITOR` are those of every client; the other end is the console's.

use crate::io_thread::{Arriving, Handover};
use crate::protocol::{ListenerKind, Protocol};
use ladon_identity::User;
use ladon_net::{ConnInfo, PeerAddr};
use ladon_operations::{Door, Peer};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// What `CLIENT LIST` shows as the server's end of such a connection.
const LOCAL: &str = "http-admin";

/// Gives sockets to the IO threads.
pub(crate) struct ConsoleDoor(pub(crate) Arc<[Handover]>);

impl Door for ConsoleDoor {
    fn open(&self, peer: &Peer, user: Option<Arc<User>>) -> io::Result<UnixStream> {
        let (theirs, ours) = UnixStream::pair()?;
        let local = PeerAddr::Unix(Path::new(LOCAL).into());
        // Protected mode has to see where the browser is.
        let peer = match peer {
            Peer::Unix => local.clone(),
            Peer::Tcp(address) => PeerAddr::Tcp(SocketAddr::new(*address, 0)),
        };
        let fd = theirs.as_raw_fd();
        let listener = ListenerKind { protocol: Protocol::Resp, tls: false }.listener_index();
        let info = ConnInfo { peer, local, fd, listener };
        let Some((_, handover)) = Handover::choose(&self.0) else {
            return Err(io::Error::other("the server has no IO threads"));
        };
        handover.give(Arriving { socket: OwnedFd::from(theirs), info, session: None, user });
        ours.set_nonblocking(true)?;
        Ok(ours)
    }
}
