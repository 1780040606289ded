//! Whether io_uring is usable here, determined by using it.
//!
//! Versions and feature bits say little in a container, where a filter may allow only some calls,
//! or where an emulated kernel claims more than it does. So the backend sends through a socket pair
//! before it is trusted: small and large buffers, with a reader that comes late.

use super::UringBackend;
use crate::{Backend, CloseReason, ConnId, ConnInfo, Outgoing, Sink};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Larger than what a socket pair holds, in pieces that are tried in the quiet form.
const PIECE_BYTES: usize = 32 * 1024;
const PIECES: usize = 64;
const PATIENCE: Duration = Duration::from_secs(2);

/// The result of the trial, which takes place once per process, within about a millisecond.
pub(super) fn passed() -> io::Result<()> {
    static RESULT: OnceLock<Result<(), (ErrorKind, String)>> = OnceLock::new();
    RESULT
        .get_or_init(|| run().map_err(|error| (error.kind(), error.to_string())))
        .clone()
        .map_err(|(kind, text)| io::Error::new(kind, text))
}

/// Explains an error of setting up an io_uring to the operator.
pub(super) fn explain(error: &io::Error) -> io::Error {
    let meaning = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring",
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is forbidden here, by a seccomp filter (as containers have) or by the \
             sysctl kernel.io_uring_disabled"
        }
        Some(libc::EINVAL) => "this kernel's io_uring is too old; Linux 6.1 is needed",
        Some(libc::ENOMEM) => "the limit of locked memory (RLIMIT_MEMLOCK) is too low for io_uring",
        Some(libc::EMFILE | libc::ENFILE) => "no file descriptors are left for io_uring",
        _ => "io_uring cannot be set up",
    };
    io::Error::new(error.kind(), format!("{meaning} ({error})"))
}

fn run() -> io::Result<()> {
    let mut backend = UringBackend::open()?;
    let (ours, mut peer) = UnixStream::pair()?;
    peer.set_nonblocking(true)?;
    let conn = backend.adopt(OwnedFd::from(ours));
    let mut seen = Seen::default();

    peer.write_all(b"ping")?;
    until(&mut backend, &mut seen, "receive", |seen| seen.received == b"ping")?;

    // Because the peer does not read, some send does not fit; from then on the kernel has to
    // continue by itself.
    let mut got = Vec::new();
    for number in 0..PIECES {
        backend.send(conn, vec![number as u8; PIECE_BYTES]);
        for _ in 0..2 {
            backend.poll(&mut seen, Some(Duration::ZERO))?;
        }
        let deadline = Instant::now() + PATIENCE;
        while seen.sent <= number {
            match peer.read_to_end(&mut got) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(_) => return Err(failed("keep a connection open")),
            }
            backend.poll(&mut seen, Some(Duration::from_millis(1)))?;
            if Instant::now() > deadline {
                return Err(failed("send"));
            }
        }
    }
    match peer.read_to_end(&mut got) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        _ => return Err(failed("keep a connection open")),
    }
    let in_order = (0..PIECES).flat_map(|number| [number as u8; PIECE_BYTES]);
    if !got.iter().copied().eq(in_order) {
        return Err(failed("send everything in order"));
    }

    drop(peer);
    until(&mut backend, &mut seen, "notice the peer's end", |seen| seen.closed)
}

fn until(
    backend: &mut UringBackend,
    seen: &mut Seen,
    what: &str,
    done: impl Fn(&Seen) -> bool,
) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !done(seen) {
        if Instant::now() > deadline {
            return Err(failed(what));
        }
        backend.poll(seen, Some(Duration::from_millis(10)))?;
    }
    Ok(())
}

fn failed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, format!("io_uring did not {what} in a trial"))
}

#[derive(Default)]
struct Seen {
    received: Vec<u8>,
    sent: usize,
    closed: bool,
}

impl Sink for Seen {
    fn incoming(&mut self, _socket: OwnedFd, _info: ConnInfo) {}

    fn received(&mut self, _conn: ConnId, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    fn sent(&mut self, _conn: ConnId, _buffer: Outgoing) {
        self.sent += 1;
    }

    fn closed(&mut self, _conn: ConnId, _reason: CloseReason) {
        self.closed = true;
    }
}
