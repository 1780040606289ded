//! The io_uring backend: one multishot receive per connection, one multishot accept per listener,
//! a turn's sends in one system call.
//!
//! A connection's life:
//!
//! ```text
//!   adopt ──▶ receiving ⇄ paused ──▶ over (a reason is known) ──▶ finished ──▶ closed()
//!                                    requests are cancelled       none is in flight,
//!                                                                 the slot is free
//! ```
//!
//! A slot, and with it the descriptor's number, is free only when the kernel has completed every
//! request of its connection; so no late completion can be taken for a successor's.

mod buffers;
mod ring;
mod token;
mod trial;

use crate::direct::{hang_up, has_ended};
use crate::eventfd::EventFd;
use crate::mio_backend::ACCEPT_PAUSE;
use crate::slots::Slots;
use crate::waker::Bell;
use crate::{
    AfterInput, Backend, CloseReason, ConnId, ConnInfo, DirectSender, Listener, Outgoing, Sink,
    Waker,
};
use ring::{Event, Received, Ring};
use socket2::Socket;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use token::Kind;

/// A [`Backend`] on io_uring; needs Linux 6.1.
pub struct UringBackend {
    // The ring first: it releases the sockets before they are closed.
    ring: Ring,
    waker: Waker,
    bell: i32,
    connections: Slots<Connection>,
    listeners: Vec<Accepting>,
    /// The next listener's number.
    next_listener: u32,
    accept_again_at: Option<Instant>,
    /// A send must be reported without a wait.
    report_now: bool,
    /// Over, with nothing in flight: to be reported.
    finished: Vec<ConnId>,
    /// Empty between polls; kept for its memory.
    done: Vec<(ConnId, Outgoing)>,
}

/// Consecutive receives that do not fill their buffer before a connection that was paused gets a
/// multishot receive again.
const SHORT_RECEIVES: u8 = 64;

/// Receives of a new connection that take only one buffer each: nobody knows yet who it is. One that
/// sends on and on is paused after the second; the next receive was asked for before.
const FIRST_RECEIVES: u8 = 8;

struct Connection {
    socket: Arc<Socket>,
    over: Option<CloseReason>,
    receive: Receive,
    /// Remaining receives that take only one buffer, because the peer sends faster than it is
    /// served.
    ///
    /// A multishot receive takes up to 32 buffers at once, half a megabyte, and cannot be stopped:
    /// that costs 0.7 ms of a turn, and holds 50 turns' work of requests.
    single_buffers: u8,
    /// The same, of a new connection, whether they fill their buffer or not.
    first_receives: u8,
    paused: bool,
    input_ended: bool,
}

/// The receive in flight on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receive {
    None,
    /// Until it is cancelled.
    Multishot,
    /// A receive into one buffer.
    Single,
    Cancelled,
}

struct Accepting {
    listener: Listener,
    token: u64,
    armed: bool,
}

impl UringBackend {
    /// Opens an io_uring and, once per process, verifies on a socket pair that it does what this
    /// backend relies on.
    ///
    /// # Errors
    /// With a text that says why it is not usable: the kernel is too old or has none, a sandbox
    /// forbids it, or a limit is too low.
    pub fn new() -> io::Result<UringBackend> {
        trial::passed()?;
        UringBackend::open()
    }

    fn open() -> io::Result<UringBackend> {
        let mut ring = Ring::new().map_err(|error| trial::explain(&error))?;
        let event = EventFd::new()?;
        let bell = event.raw();
        ring.watch(bell);
        Ok(UringBackend {
            ring,
            waker: Waker::new(Bell::Event(event)),
            bell,
            connections: Slots::new(),
            listeners: Vec::new(),
            next_listener: 0,
            accept_again_at: None,
            report_now: false,
            finished: Vec::new(),
            done: Vec::new(),
        })
    }

    fn timeout(&mut self, asked: Option<Duration>) -> Option<Duration> {
        if self.report_now || !self.finished.is_empty() || self.ring.overflowed() {
            return Some(Duration::ZERO);
        }
        let Some(at) = self.accept_again_at else { return asked };
        let pause = at.saturating_duration_since(Instant::now());
        if pause.is_zero() {
            self.accept_again();
            return asked;
        }
        Some(asked.map_or(pause, |asked| asked.min(pause)))
    }

    fn accept_again(&mut self) {
        self.accept_again_at = None;
        for accepting in &mut self.listeners {
            if !accepting.armed {
                accepting.armed = true;
                self.ring.accept(accepting.token, accepting.listener.raw());
            }
        }
    }

    fn accepted<S: Sink>(
        &mut self,
        token: u64,
        result: io::Result<OwnedFd>,
        more: bool,
        sink: &mut S,
    ) {
        let Some(accepting) = self.listeners.iter_mut().find(|it| it.token == token) else {
            // Accepted after its listener was removed: close it.
            return;
        };
        accepting.armed &= more;
        let listener = &accepting.listener;
        match result {
            Ok(socket) => {
                if let Some(info) = ConnInfo::of(&socket, listener.local(), listener.index()) {
                    sink.incoming(socket, info);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => self.accept_again_at = Some(Instant::now() + ACCEPT_PAUSE),
        }
        if !accepting.armed && self.accept_again_at.is_none() {
            accepting.armed = true;
            self.ring.accept(accepting.token, accepting.listener.raw());
        }
    }

    fn received<S: Sink>(
        &mut self,
        token: u64,
        result: io::Result<Received>,
        more: bool,
        sink: &mut S,
    ) {
        // A connection outlives its receive, so it is there.
        let Some(conn) = self.find(token) else { return };
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if !more {
            connection.receive = Receive::None;
        }
        let is_over = connection.over.is_some();
        match result {
            Ok(received) if received.is_end() => {
                connection.input_ended = true;
                if !is_over && sink.input_ended(conn) == AfterInput::Close {
                    self.end(conn, CloseReason::PeerClosed);
                    return;
                }
            }
            Ok(received) => {
                let is_new = connection.first_receives != 0;
                connection.first_receives = connection.first_receives.saturating_sub(1);
                if received.fills_its_buffer() {
                    // A new one that fills its buffer is a fast sender already.
                    if is_new || connection.single_buffers != 0 {
                        connection.single_buffers = SHORT_RECEIVES;
                    }
                } else {
                    connection.single_buffers = connection.single_buffers.saturating_sub(1);
                }
                self.ring.take(received, |bytes| {
                    if !is_over {
                        sink.received(conn, bytes);
                    }
                });
            }
            Err(error) => match error.raw_os_error() {
                // No buffer was free, or reading was paused.
                Some(libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN) => {}
                _ if is_over => {}
                _ => {
                    self.end(conn, CloseReason::Failed(error));
                    return;
                }
            },
        }
        if is_over {
            self.finish_if_idle(conn);
        } else {
            self.receive_if_wanted(conn);
        }
    }

    fn receive_if_wanted(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn)
            && connection.receive == Receive::None
            && !(connection.paused || connection.input_ended)
            && connection.over.is_none()
        {
            let fd = connection.socket.as_raw_fd();
            if connection.single_buffers == 0 && connection.first_receives == 0 {
                connection.receive = Receive::Multishot;
                self.ring.receive(conn, fd);
            } else {
                connection.receive = Receive::Single;
                self.ring.receive_buffer(conn, fd);
            }
        }
    }

    fn find(&self, token: u64) -> Option<ConnId> {
        self.connections.find(token::slot(token), token::generation(token), token::GENERATION_BITS)
    }

    fn end(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(connection) = self.connections.get_mut(conn)
            && connection.over.is_none()
        {
            connection.over = Some(reason);
            self.cancel_receive(conn);
            self.ring.cancel_send(conn);
            self.finish_if_idle(conn);
        }
    }

    fn cancel_receive(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn)
            && !matches!(connection.receive, Receive::None | Receive::Cancelled)
        {
            connection.receive = Receive::Cancelled;
            self.ring.cancel(token::of_connection(Kind::Receive, conn));
        }
    }

    /// Called when a connection is over and when a request of such a connection has completed: the
    /// last of these calls finds nothing in flight.
    fn finish_if_idle(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn)
            && connection.receive == Receive::None
            && !self.ring.is_sending(conn)
        {
            self.finished.push(conn);
        }
    }

    fn report_finished<S: Sink>(&mut self, sink: &mut S) {
        for conn in self.finished.drain(..) {
            if let Some(connection) = self.connections.remove(conn) {
                // Close the descriptor first: a sink that limits the number of connections may then
                // admit the next one.
                hang_up(connection.socket);
                sink.closed(conn, connection.over.unwrap_or(CloseReason::Requested));
            }
        }
    }

    fn start_send(&mut self, conn: ConnId, buffer: Outgoing, report_now: bool) {
        assert!(!buffer.is_empty(), "an empty buffer is never sent");
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if connection.over.is_none() {
            self.ring.send(conn, connection.socket.as_raw_fd(), buffer);
            self.report_now |= report_now;
        }
    }

    fn sent<S: Sink>(&mut self, conn: ConnId, buffer: Outgoing, sink: &mut S) {
        match self.connections.get_mut(conn) {
            Some(connection) if connection.over.is_none() => sink.sent(conn, buffer),
            Some(_) => self.finish_if_idle(conn),
            None => {}
        }
    }

    fn send_failed(&mut self, conn: ConnId, error: io::Error) {
        match self.connections.get_mut(conn) {
            Some(connection) if connection.over.is_none() => {
                self.end(conn, CloseReason::Failed(error));
            }
            Some(_) => self.finish_if_idle(conn),
            None => {}
        }
    }
}

impl Backend for UringBackend {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, timeout: Option<Duration>) -> io::Result<()> {
        self.ring.start()?;
        let mut timeout = self.timeout(timeout);
        if timeout != Some(Duration::ZERO) && !self.waker.prepare_to_sleep() {
            timeout = Some(Duration::ZERO);
        }
        let result = self.ring.enter(timeout);
        self.waker.awake();
        result?;

        while let Some(event) = self.ring.next_event() {
            match event {
                Event::Received { token, result, more } => self.received(token, result, more, sink),
                Event::Sent { token, buffer } => {
                    if let Some(conn) = self.find(token) {
                        self.sent(conn, buffer, sink);
                    }
                }
                Event::SendFailed { token, error } => {
                    if let Some(conn) = self.find(token) {
                        self.send_failed(conn, error);
                    }
                }
                Event::Accepted { token, result, more } => self.accepted(token, result, more, sink),
                Event::Woken { more: true } => {}
                Event::Woken { more: false } => self.ring.watch(self.bell),
            }
        }
        let mut done = mem::take(&mut self.done);
        self.report_now = !self.ring.settle_quiet_sends(|conn, buffer| done.push((conn, buffer)));
        for (conn, buffer) in done.drain(..) {
            self.sent(conn, buffer, sink);
        }
        self.done = done;
        self.report_finished(sink);
        Ok(())
    }

    fn send(&mut self, conn: ConnId, buffer: impl Into<Outgoing>) {
        self.start_send(conn, buffer.into(), true);
    }

    fn send_last(&mut self, conn: ConnId, buffer: impl Into<Outgoing>) {
        self.start_send(conn, buffer.into(), false);
    }

    fn close(&mut self, conn: ConnId) {
        self.end(conn, CloseReason::Requested);
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        connection.paused = paused;
        if !paused {
            self.receive_if_wanted(conn);
        } else if connection.receive != Receive::Single {
            connection.single_buffers = SHORT_RECEIVES;
            self.cancel_receive(conn);
        } // else what is in flight brings one buffer, and is the last
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        self.connections.get_mut(conn).is_some_and(|connection| has_ended(&connection.socket))
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        let socket = Arc::new(Socket::from(socket));
        // io_uring does the waiting; it would treat O_NONBLOCK as "fail rather than wait".
        let usable = socket.set_nonblocking(false);
        let conn = self.connections.insert(Connection {
            socket,
            over: None,
            receive: Receive::None,
            single_buffers: 0,
            first_receives: FIRST_RECEIVES,
            paused: false,
            input_ended: false,
        });
        match usable {
            Ok(()) => self.receive_if_wanted(conn),
            Err(error) => self.end(conn, CloseReason::Failed(error)),
        }
        conn
    }

    fn direct_sender(&mut self, conn: ConnId) -> Option<DirectSender> {
        let connection = self.connections.get_mut(conn)?;
        connection.over.is_none().then(|| DirectSender::new(&connection.socket))
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn listen(&mut self, listener: Listener) -> io::Result<()> {
        listener.socket().set_nonblocking(false)?;
        let token = token::of_listener(self.next_listener);
        self.next_listener = self.next_listener.wrapping_add(1);
        self.ring.accept(token, listener.raw());
        self.listeners.push(Accepting { listener, token, armed: true });
        Ok(())
    }

    fn retain_listeners(&mut self, keep: impl Fn(&Listener) -> bool) {
        for accepting in self.listeners.extract_if(.., |it| !keep(&it.listener)) {
            self.ring.cancel(accepting.token);
        }
        if self.listeners.is_empty() {
            self.accept_again_at = None;
        }
    }
}
