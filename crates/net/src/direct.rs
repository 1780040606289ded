//! Sending on a connection from other threads.
//!
//! Two threads that send on one connection at once would mix their bytes; the server decides which
//! one sends. This file ensures that a sender never reaches another connection: it holds the
//! socket, so that the descriptor's number stays in use.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::Socket;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Sends on a connection from any thread, without blocking.
#[derive(Clone, Debug)]
pub struct DirectSender(Arc<Socket>);

impl DirectSender {
    pub(crate) fn new(socket: &Arc<Socket>) -> DirectSender {
        DirectSender(Arc::clone(socket))
    }

    /// Passes as many of the bytes as the kernel takes at once; returns how many. Zero for a
    /// connection that failed or is closed: its own backend detects that by itself.
    pub fn send(&self, bytes: &[u8]) -> usize {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // Sockets are non-blocking there, and ask for no signal.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let flags = 0;
        self.0.send_with_flags(bytes, flags).unwrap_or(0)
    }
}

/// Whether the peer has sent its end of stream or a reset, even if bytes before that were not read.
pub(crate) fn has_ended(socket: &Socket) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let ends = PollFlags::from_bits_retain(libc::POLLRDHUP);
    // Elsewhere only a reset can be seen.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let ends = PollFlags::empty();
    let mut polled = [PollFd::new(socket.as_fd(), ends)];
    // A flag that nix has no name for is that of the end.
    let is_set = |polled: &PollFd<'_>| polled.revents().is_none_or(|flags| !flags.is_empty());
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0 && is_set(&polled[0]))
}

/// Closes a connection's socket. A thread with a sender keeps the descriptor open for a moment; the
/// peer must not wait for that.
pub(crate) fn hang_up(socket: Arc<Socket>) {
    if Arc::strong_count(&socket) > 1 {
        // Fails only if the peer is gone.
        let _ = socket.shutdown(Shutdown::Both);
    }
}
