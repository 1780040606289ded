//! One of the two backends, chosen at start.

#[cfg(target_os = "linux")]
use crate::UringBackend;
use crate::{Backend, ConnId, DirectSender, Listener, MioBackend, Outgoing, Sink, Waker};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Which backend to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring where the system allows it, mio otherwise.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// mio.
    Mio,
}

/// One of the two backends.
#[allow(clippy::large_enum_variant, reason = "one per thread, and it stays where it is")]
pub enum AnyBackend {
    /// io_uring.
    #[cfg(target_os = "linux")]
    Uring(UringBackend),
    /// epoll or kqueue.
    Mio(MioBackend),
}

impl AnyBackend {
    /// Opens a backend for one IO thread; it may be moved to that thread before its first poll.
    /// With it comes the reason, fit for a log line, why `Auto` had to take mio.
    ///
    /// # Errors
    /// `IoUring` was asked for and the system does not allow it, or the process is out of
    /// descriptors or memory.
    pub fn new(choice: BackendChoice) -> io::Result<(AnyBackend, Option<String>)> {
        let mio = || Ok::<_, io::Error>(AnyBackend::Mio(MioBackend::new()?));
        #[cfg(target_os = "linux")]
        match choice {
            BackendChoice::IoUring => {
                let backend = UringBackend::new().map_err(|error| {
                    io::Error::new(error.kind(), format!("io_uring cannot be used: {error}"))
                })?;
                Ok((AnyBackend::Uring(backend), None))
            }
            BackendChoice::Auto => match UringBackend::new() {
                Ok(backend) => Ok((AnyBackend::Uring(backend), None)),
                Err(error) => Ok((mio()?, Some(error.to_string()))),
            },
            BackendChoice::Mio => Ok((mio()?, None)),
        }
        #[cfg(not(target_os = "linux"))]
        match choice {
            BackendChoice::IoUring => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring exists on Linux only"))
            }
            BackendChoice::Auto | BackendChoice::Mio => Ok((mio()?, None)),
        }
    }
}

macro_rules! either {
    ($self:ident, $backend:ident => $call:expr) => {
        match $self {
            #[cfg(target_os = "linux")]
            AnyBackend::Uring($backend) => $call,
            AnyBackend::Mio($backend) => $call,
        }
    };
}

impl Backend for AnyBackend {
    fn name(&self) -> &'static str {
        either!(self, backend => backend.name())
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, timeout: Option<Duration>) -> io::Result<()> {
        either!(self, backend => backend.poll(sink, timeout))
    }

    fn send(&mut self, conn: ConnId, buffer: impl Into<Outgoing>) {
        either!(self, backend => backend.send(conn, buffer));
    }

    fn send_last(&mut self, conn: ConnId, buffer: impl Into<Outgoing>) {
        either!(self, backend => backend.send_last(conn, buffer));
    }

    fn close(&mut self, conn: ConnId) {
        either!(self, backend => backend.close(conn));
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        either!(self, backend => backend.pause_receive(conn, paused));
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        either!(self, backend => backend.has_ended(conn))
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        either!(self, backend => backend.adopt(socket))
    }

    fn direct_sender(&mut self, conn: ConnId) -> Option<DirectSender> {
        either!(self, backend => backend.direct_sender(conn))
    }

    fn waker(&self) -> Waker {
        either!(self, backend => backend.waker())
    }

    fn listen(&mut self, listener: Listener) -> io::Result<()> {
        either!(self, backend => backend.listen(listener))
    }

    fn retain_listeners(&mut self, keep: impl Fn(&Listener) -> bool) {
        either!(self, backend => backend.retain_listeners(keep));
    }
}
