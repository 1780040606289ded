//! The contract between a server's IO thread and its sockets.

use crate::{ConnInfo, DirectSender, Listener, Outgoing, Waker};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Names a connection within one IO thread's backend.
///
/// `slot` is a dense index, reused after [`Sink::closed`]; `generation` tells the users of one
/// slot apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Dense index from zero: fit to index a table of connections.
    pub slot: u32,
    /// Which user of that slot.
    pub generation: u32,
}

/// Why a connection ended.
#[derive(Debug)]
pub enum CloseReason {
    /// The peer sent its end of stream.
    PeerClosed,
    /// The socket failed: reset, timed out, broken pipe, or it could not be adopted.
    Failed(io::Error),
    /// [`Backend::close`] was called.
    Requested,
}

/// What happens to a connection whose peer will send nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterInput {
    /// Close it now; what is in flight to the peer is abandoned.
    Close,
    /// Keep it for the replies that are still owed; the server calls [`Backend::close`].
    KeepSending,
}

/// Receives a backend's events, only from inside [`Backend::poll`].
///
/// After [`Backend::close`] only [`Sink::closed`] follows for that connection.
pub trait Sink {
    /// A listener accepted a socket. The sink decides which thread's backend adopts it
    /// ([`Backend::adopt`]); dropping the socket closes the connection.
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo);

    /// Bytes arrived, at least one; `bytes` is valid during the call only.
    fn received(&mut self, conn: ConnId, bytes: &[u8]);

    /// The peer's end of stream arrived. By default, the connection is closed.
    fn input_ended(&mut self, _conn: ConnId) -> AfterInput {
        AfterInput::Close
    }

    /// The kernel took the whole buffer, which comes back for reuse with its contents.
    fn sent(&mut self, conn: ConnId, buffer: Outgoing);

    /// A backend around another one holds so much memory for the connection from now on, besides
    /// what it has passed on.
    fn holds(&mut self, _conn: ConnId, _bytes: usize) {}

    /// The connection is over. Reported exactly once for every adopted connection, as its last
    /// event. The slot may be reused from now on.
    fn closed(&mut self, conn: ConnId, reason: CloseReason);
}

/// The sockets of one IO thread.
///
/// Calls that name a closed connection do nothing, so a server need not know of an end before it is
/// reported.
pub trait Backend {
    /// `io_uring` or `mio`.
    fn name(&self) -> &'static str;

    /// Starts what is queued, waits until something completed, `timeout` has passed (`None`: no
    /// limit) or a [`Waker`] was used, then reports everything that is ready.
    ///
    /// A connection gets a bounded share of one call, so that a fast peer cannot keep the others
    /// waiting: some hundred KiB, and 64 KiB at most once its reading was paused. The call may
    /// return early with nothing to report.
    ///
    /// # Errors
    /// The kernel's own, if the backend as a whole cannot continue. Errors of one connection or one
    /// accept are reported or retried, never returned.
    fn poll<S: Sink>(&mut self, sink: &mut S, timeout: Option<Duration>) -> io::Result<()>;

    /// Sends the whole buffer; [`Sink::sent`] follows, and `poll` does not wait if the kernel took
    /// all of it at once.
    ///
    /// # Panics
    /// If a buffer is in flight on this connection already, or if it is empty.
    fn send(&mut self, conn: ConnId, buffer: impl Into<Outgoing>);

    /// As [`Backend::send`], for a server that has nothing more for this connection: [`Sink::sent`]
    /// may come as late as the next event of any connection, timeout or wake-up. This saves a
    /// system call each turn.
    ///
    /// # Panics
    /// As [`Backend::send`].
    fn send_last(&mut self, conn: ConnId, buffer: impl Into<Outgoing>);

    /// Cancels what is in flight and closes the connection; [`Sink::closed`] follows.
    fn close(&mut self, conn: ConnId);

    /// Pauses or resumes reading, which makes the peer's sends block. What the kernel had received
    /// before may still be reported. The peer's end may be noticed only after reading has resumed.
    fn pause_receive(&mut self, conn: ConnId, paused: bool);

    /// Whether the peer has sent its end of stream or a reset, even if bytes before that were not
    /// read. A system call: for connections whose reading is paused.
    fn has_ended(&mut self, conn: ConnId) -> bool;

    /// Takes a connected stream socket, from [`Sink::incoming`] of this or another thread. If the
    /// socket is unusable, [`Sink::closed`] reports it.
    fn adopt(&mut self, socket: OwnedFd) -> ConnId;

    /// A handle with which other threads may send on a connection while the server ensures that
    /// only one thread sends; `None` for a closed connection.
    fn direct_sender(&mut self, conn: ConnId) -> Option<DirectSender>;

    /// A handle with which other threads end this backend's wait.
    fn waker(&self) -> Waker;

    /// Accepts on this thread, reporting [`Sink::incoming`].
    ///
    /// When the process or the system runs out of descriptors, accepting pauses for a tenth of a
    /// second at a time; the waiting peers stay in the listener's backlog.
    ///
    /// # Errors
    /// When the socket cannot be watched.
    fn listen(&mut self, listener: Listener) -> io::Result<()>;

    /// Stops accepting on the listeners that `keep` rejects, and drops them. The others continue
    /// undisturbed.
    fn retain_listeners(&mut self, keep: impl Fn(&Listener) -> bool);

    /// Drops all listeners.
    fn stop_listening(&mut self) {
        self.retain_listeners(|_| false);
    }
}
