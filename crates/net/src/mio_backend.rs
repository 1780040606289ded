//! The portable backend: turns readiness (epoll, kqueue) into completions.
//!
//! Sockets are registered once, for both directions, edge triggered. So every path that stops short
//! of `WouldBlock` must remember that the socket may still be ready: `Connection::readable` while
//! paused, and the `unread` queue when its share of a poll is used up.

use crate::direct::{hang_up, has_ended};
use crate::slots::Slots;
use crate::waker::Bell;
use crate::{
    AfterInput, Backend, CloseReason, ConnId, ConnInfo, DirectSender, Listener, Outgoing, Sink,
    Waker,
};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use socket2::Socket;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shared by all connections: a shorter read has emptied the socket. A connection gets one read per
/// poll, so this is also its share.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Connections accepted from one listener in one poll.
const ACCEPTS_PER_POLL: usize = 256;
/// Events fetched by one system call.
const EVENTS_PER_POLL: usize = 1024;
/// How long accepting pauses when descriptors have run out.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Marks tokens that do not belong to a connection: connections use 31 bits of generation and 32 of
/// slot.
const SPECIAL: u64 = 1 << 63;
const WAKER: Token = Token(usize::MAX);

/// A [`Backend`] on `mio`.
pub struct MioBackend {
    poll: Poll,
    events: Events,
    waker: Waker,
    connections: Slots<Connection>,
    listeners: Vec<Accepting>,
    /// The next listener's number.
    next_listener: u32,
    accept_again_at: Option<Instant>,
    /// How many may still be accepted, and when more will be.
    accepts_left: Option<(usize, Instant)>,
    read_buffer: Box<[u8]>,
    /// Buffers that the kernel took, to be reported.
    sent: Vec<ConnId>,
    /// One of them must be reported without a wait.
    report_now: bool,
    /// May have something to read; each once.
    unread: Vec<ConnId>,
    /// Empty between polls; kept for its memory.
    reading: Vec<ConnId>,
    /// Over, to be reported.
    finished: Vec<ConnId>,
}

struct Connection {
    socket: Arc<Socket>,
    output: Option<Output>,
    over: Option<CloseReason>,
    paused: bool,
    readable: bool,
    /// It is in `MioBackend::unread`.
    queued: bool,
    /// A short read does not mean that the socket is empty.
    to_the_end: bool,
    input_ended: bool,
}

struct Output {
    buffer: Outgoing,
    written: usize,
}

struct Accepting {
    listener: Listener,
    token: u64,
    ready: bool,
}

impl MioBackend {
    /// Opens the poller.
    ///
    /// # Errors
    /// The kernel's: no descriptors left, for example.
    pub fn new() -> io::Result<MioBackend> {
        let poll = Poll::new()?;
        let waker = Waker::new(Bell::Mio(mio::Waker::new(poll.registry(), WAKER)?));
        Ok(MioBackend {
            poll,
            events: Events::with_capacity(EVENTS_PER_POLL),
            waker,
            connections: Slots::new(),
            listeners: Vec::new(),
            next_listener: 0,
            accept_again_at: None,
            accepts_left: None,
            read_buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            sent: Vec::new(),
            report_now: false,
            unread: Vec::new(),
            reading: Vec::new(),
            finished: Vec::new(),
        })
    }

    /// Lets polls accept `count` connections in all, and no more before `again_at`, when the caller
    /// is expected to allow more. Until then the others wait in the kernel's queue.
    pub fn limit_accepts(&mut self, count: usize, again_at: Instant) {
        self.accepts_left = Some((count, again_at));
    }

    fn start_send(&mut self, conn: ConnId, buffer: Outgoing, report_now: bool) {
        assert!(!buffer.is_empty(), "an empty buffer is never sent");
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if connection.over.is_some() {
            return;
        }
        assert!(connection.output.is_none(), "one buffer in flight per connection");
        connection.output = Some(Output { buffer, written: 0 });
        match connection.flush() {
            Ok(true) => {
                self.sent.push(conn);
                self.report_now |= report_now;
            }
            Ok(false) => {}
            Err(error) => self.end(conn, CloseReason::Failed(error)),
        }
    }

    /// Gives a connection's socket away, to another thread's backend for example. Nothing more is
    /// reported of the connection. `None` if it is over.
    pub fn release(&mut self, conn: ConnId) -> Option<OwnedFd> {
        if self.connections.get_mut(conn)?.over.is_some() {
            return None;
        }
        let connection = self.connections.remove(conn)?;
        let fd = connection.socket.as_raw_fd();
        // It was registered, so this cannot fail.
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
        // A sender of another thread may hold it for a moment longer.
        Arc::into_inner(connection.socket).map(OwnedFd::from)
    }

    fn end(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(connection) = self.connections.get_mut(conn)
            && connection.over.is_none()
        {
            connection.over = Some(reason);
            self.finished.push(conn);
        }
    }

    fn timeout(&mut self, asked: Option<Duration>) -> Option<Duration> {
        if self.report_now
            || !self.unread.is_empty()
            || !self.finished.is_empty()
            || self.listeners.iter().any(|listener| listener.ready)
                && self.accept_again_at.is_none()
        {
            return Some(Duration::ZERO);
        }
        let Some(at) = self.accept_again_at else { return asked };
        let pause = at.saturating_duration_since(Instant::now());
        Some(asked.map_or(pause, |asked| asked.min(pause)))
    }

    fn report_sent<S: Sink>(&mut self, sink: &mut S) {
        self.report_now = false;
        for conn in self.sent.drain(..) {
            if let Some(connection) = self.connections.get_mut(conn)
                && connection.over.is_none()
                && let Some(output) = connection.output.take()
            {
                sink.sent(conn, output.buffer);
            }
        }
    }

    fn report_finished<S: Sink>(&mut self, sink: &mut S) {
        for conn in self.finished.drain(..) {
            if let Some(connection) = self.connections.remove(conn) {
                // Close the descriptor first: a sink that limits the number of connections may then
                // admit the next one. Closing also removes it from the poller.
                hang_up(connection.socket);
                sink.closed(conn, connection.over.unwrap_or(CloseReason::Requested));
            }
        }
    }

    fn continue_send(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if connection.over.is_some() || !connection.output.as_ref().is_some_and(Output::is_waiting)
        {
            return;
        }
        match connection.flush() {
            Ok(true) => self.sent.push(conn),
            Ok(false) => {}
            Err(error) => self.end(conn, CloseReason::Failed(error)),
        }
    }

    fn queue_to_read(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn)
            && !connection.queued
        {
            connection.queued = true;
            self.unread.push(conn);
        }
    }

    fn receive<S: Sink>(&mut self, conn: ConnId, sink: &mut S) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        connection.queued = false;
        if connection.over.is_some() || connection.input_ended {
            return;
        }
        if connection.paused {
            connection.readable = true;
            return;
        }
        match (&*connection.socket).read(&mut self.read_buffer) {
            Ok(0) => {
                connection.input_ended = true;
                if sink.input_ended(conn) == AfterInput::Close {
                    self.end(conn, CloseReason::PeerClosed);
                }
            }
            Ok(length) => {
                sink.received(conn, &self.read_buffer[..length]);
                if length == self.read_buffer.len() || connection.to_the_end {
                    self.queue_to_read(conn);
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => {}
                ErrorKind::Interrupted => self.queue_to_read(conn),
                _ => self.end(conn, CloseReason::Failed(error)),
            },
        }
    }

    fn accept<S: Sink>(&mut self, sink: &mut S) {
        if let Some(at) = self.accept_again_at {
            if Instant::now() < at {
                return;
            }
            self.accept_again_at = None;
        }
        for accepting in &mut self.listeners {
            if !accepting.ready {
                continue;
            }
            for _ in 0..ACCEPTS_PER_POLL {
                if let Some((0, again_at)) = self.accepts_left {
                    self.accept_again_at = Some(again_at);
                    return;
                }
                match accepting.listener.socket().accept() {
                    Ok((socket, _)) => {
                        if let Some((left, _)) = &mut self.accepts_left {
                            *left -= 1;
                        }
                        let listener = &accepting.listener;
                        if let Some(info) =
                            ConnInfo::of(&socket, listener.local(), listener.index())
                        {
                            sink.incoming(socket.into(), info);
                        }
                    }
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock => {
                            accepting.ready = false;
                            break;
                        }
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                        _ => {
                            self.accept_again_at = Some(Instant::now() + ACCEPT_PAUSE);
                            break;
                        }
                    },
                }
            }
        }
    }
}

impl Backend for MioBackend {
    fn name(&self) -> &'static str {
        "mio"
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, timeout: Option<Duration>) -> io::Result<()> {
        let mut timeout = self.timeout(timeout);
        if timeout != Some(Duration::ZERO) && !self.waker.prepare_to_sleep() {
            timeout = Some(Duration::ZERO);
        }
        let result = self.poll.poll(&mut self.events, timeout);
        self.waker.awake();
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => self.events.clear(),
            Err(error) => return Err(error),
        }
        self.report_sent(sink);

        // Taken out, so that the handlers may borrow the rest.
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            let token = event.token();
            if token == WAKER {
                continue;
            }
            let token = token.0 as u64;
            if token & SPECIAL != 0 {
                if let Some(accepting) = self.listeners.iter_mut().find(|it| it.token == token) {
                    accepting.ready = true;
                }
                continue;
            }
            let Some(conn) = self.connections.find(token as u32, (token >> 32) as u32, 31) else {
                continue;
            };
            if event.is_writable() {
                self.continue_send(conn);
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                if let Some(connection) = self.connections.get_mut(conn) {
                    connection.to_the_end |= event.is_read_closed() || event.is_error();
                }
                self.queue_to_read(conn);
            }
        }
        self.events = events;
        // What is read to the end of its share is queued for the next poll.
        let mut reading = std::mem::replace(&mut self.unread, std::mem::take(&mut self.reading));
        for conn in reading.drain(..) {
            self.receive(conn, sink);
        }
        self.reading = reading;
        self.report_sent(sink);
        self.accept(sink);
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
        if !paused && connection.readable {
            connection.readable = false;
            self.queue_to_read(conn);
        }
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        self.connections.get_mut(conn).is_some_and(|connection| has_ended(&connection.socket))
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        let socket = Arc::new(Socket::from(socket));
        let fd = socket.as_raw_fd();
        let usable = socket.set_nonblocking(true);
        let conn = self.connections.insert(Connection {
            socket,
            output: None,
            over: None,
            paused: false,
            readable: false,
            queued: false,
            to_the_end: false,
            input_ended: false,
        });
        let token = (u64::from(conn.generation) << 32 | u64::from(conn.slot)) & !SPECIAL;
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = usable.and_then(|()| {
            self.poll.registry().register(&mut SourceFd(&fd), Token(token as usize), both)
        });
        if let Err(error) = registered {
            self.end(conn, CloseReason::Failed(error));
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
        listener.socket().set_nonblocking(true)?;
        let token = SPECIAL | u64::from(self.next_listener);
        let (fd, token_of_mio) = (listener.raw(), Token(token as usize));
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&fd), token_of_mio, Interest::READABLE)?;
        self.next_listener = self.next_listener.wrapping_add(1);
        self.listeners.push(Accepting { listener, token, ready: false });
        Ok(())
    }

    fn retain_listeners(&mut self, keep: impl Fn(&Listener) -> bool) {
        for accepting in self.listeners.extract_if(.., |it| !keep(&it.listener)) {
            // Others may hold the socket longer. It was registered, so this cannot fail.
            let fd = accepting.listener.raw();
            let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
        }
        if self.listeners.is_empty() {
            self.accept_again_at = None;
        }
    }
}

impl Connection {
    /// Writes until everything is written (`true`) or the socket is full.
    fn flush(&mut self) -> io::Result<bool> {
        let Some(output) = &mut self.output else { return Ok(false) };
        while output.is_waiting() {
            // `send`, not `write`: no SIGPIPE.
            match self.socket.send(&output.buffer[output.written..]) {
                Ok(written) => output.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl Output {
    fn is_waiting(&self) -> bool {
        self.written < self.buffer.len()
    }
}
