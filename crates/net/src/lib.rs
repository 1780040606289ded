//! Sockets as completions: bytes arrived on a connection; a buffer was taken by the kernel.
//!
//! One [`Backend`] belongs to one IO thread and owns that thread's sockets. It is driven by
//! [`Backend::poll`], which reports to a [`Sink`]:
//!
//! ```text
//!            poll(sink, timeout)
//!   server ───────────────────────▶ backend ──▶ kernel
//!     ▲   send, close, adopt, ...      │
//!     └── incoming, received, sent, ◀──┘
//!         closed          (the sink)
//! ```
//!
//! Two backends behave alike and pass the same tests: [`UringBackend`] on Linux, where the kernel
//! and the container allow io_uring, and [`MioBackend`] everywhere else. [`AnyBackend`] is one of
//! the two, chosen at start.
//!
//! **Architecture invariant:** this crate knows no protocol, no request and no engine; bytes go
//! through it unread.
//!
//! **Architecture invariant:** a connection without traffic holds no buffer here.

mod address;
mod any;
mod backend;
mod direct;
#[cfg(target_os = "linux")]
mod eventfd;
mod listener;
mod mio_backend;
mod outgoing;
mod slots;
#[cfg(target_os = "linux")]
mod uring;
mod waker;

pub use address::{ConnInfo, PeerAddr, set_keepalive};
pub use any::{AnyBackend, BackendChoice};
pub use backend::{AfterInput, Backend, CloseReason, ConnId, Sink};
pub use direct::DirectSender;
pub use listener::{ListenAddress, ListenError, ListenOptions, Listener};
pub use mio_backend::MioBackend;
pub use outgoing::Outgoing;
#[cfg(target_os = "linux")]
pub use uring::UringBackend;
pub use waker::Waker;
