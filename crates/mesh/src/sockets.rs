//! Options of a link's socket.
//!
//! The one `unsafe` block is in the macro of `nix` that makes an option of a number: it gives
//! `setsockopt` an open descriptor, a pointer to a `u32` and its length.

use nix::sys::socket::setsockopt;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// Bytes that the kernel takes before the network can have them. What it has taken goes out before
/// anything else: with its own limit of megabytes, a heartbeat would wait for all of them.
const UNSENT_BYTES: u32 = 128 << 10;
/// A machine that acknowledges nothing for so long is gone.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// After so long without traffic the kernel asks the other machine whether it is there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// It asks again so often.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct NotSentLowat;

nix::setsockopt_impl!(
    NotSentLowat,
    libc::IPPROTO_TCP,
    libc::TCP_NOTSENT_LOWAT,
    u32,
    nix::sys::socket::sockopt::SetStruct<'_, u32>
);

/// Small messages go at once, large ones do not fill the kernel's buffers, and a machine that
/// vanished is noticed.
pub(crate) fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    setsockopt(stream, NotSentLowat, &UNSENT_BYTES)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER);
    socket.set_tcp_keepalive(&keepalive.with_interval(KEEPALIVE_INTERVAL))
}
