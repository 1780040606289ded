//! The addresses of a connection.

use socket2::{SockRef, TcpKeepalive};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddr {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// The path of the listener's unix socket: a unix client has no name of its own.
    Unix(Arc<Path>),
}

impl fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddr::Tcp(address) => address.fmt(f),
            PeerAddr::Unix(path) => path.display().fmt(f),
        }
    }
}

/// What is known of a connection when it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnInfo {
    /// The client's end.
    pub peer: PeerAddr,
    /// The server's end.
    pub local: PeerAddr,
    /// The descriptor's number, for display; it stays the same when another thread adopts it.
    pub fd: RawFd,
    /// The index that the listener was given when it was bound.
    pub listener: usize,
}

impl ConnInfo {
    /// Asks the kernel for both ends. `None` when the peer is gone already.
    pub(crate) fn of(socket: &impl AsFd, local: &PeerAddr, listener: usize) -> Option<ConnInfo> {
        let fd = socket.as_fd().as_raw_fd();
        let socket = SockRef::from(socket);
        let (peer, local) = match local {
            PeerAddr::Unix(_) => (local.clone(), local.clone()),
            PeerAddr::Tcp(_) => (
                PeerAddr::Tcp(socket.peer_addr().ok()?.as_socket()?),
                PeerAddr::Tcp(socket.local_addr().ok()?.as_socket()?),
            ),
        };
        Some(ConnInfo { peer, local, fd, listener })
    }
}

/// Turns keepalive probes on (first probe after `idle`, then three, a third of that apart) or
/// off, on a connection or, for what it will accept, on a listener.
///
/// # Errors
/// The kernel's; on a unix socket there is nothing to set.
pub fn set_keepalive(socket: &impl AsFd, idle: Option<Duration>) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let Some(idle) = idle else { return socket.set_keepalive(false) };
    let interval = (idle / 3).max(Duration::from_secs(1));
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(3),
    )
}
