//! A backend around a backend: on connections that speak HTTP, the server sees RESP.
//!
//! ```text
//! poll:  inner --bytes of HTTP--> Connection::step --requests of RESP--> sink
//! send:  replies --> Connection::replied --responses--> inner --sent--> the next ones ... --> sink.sent
//! ```
//!
//! Replies stay here until the kernel has the responses made of them, so that limits on what a client
//! leaves unread count them.

use crate::connection::{Connection, Now, Rules, Step};
use crate::date::Date;
use arc_swap::ArcSwap;
use ladon_net::{
    AfterInput, Backend, CloseReason, ConnId, ConnInfo, DirectSender, Listener, Outgoing, Sink,
    Waker,
};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory of an idle connection here.
pub const HTTP_BYTES: usize = size_of::<Http>();

/// Bytes of requests that wait here; above it the socket is not read.
const INPUT_BYTES: usize = 64 << 10;

/// How long a client may take for a request, and for each further kilobyte of it.
const REQUEST_SECONDS: u64 = 20;
const BYTES_PER_SECOND: u64 = 1 << 10;

/// How long the end of a connection may take: for the client to take the last response, and to see
/// that nothing more is read.
const ENDING_SECONDS: u64 = 5;

/// Buffers that are kept for the next responses.
const SPARES_MAX: usize = 32;
const SPARE_BYTES_MAX: usize = 64 << 10;

/// The rules, which settings may change while connections use them.
#[derive(Clone, Debug)]
pub struct SharedRules(Arc<ArcSwap<Rules>>);

impl SharedRules {
    /// These, for now.
    pub fn new(rules: Rules) -> SharedRules {
        SharedRules(Arc::new(ArcSwap::from_pointee(rules)))
    }

    /// Others from now on.
    pub fn replace(&self, rules: Rules) {
        self.0.store(Arc::new(rules));
    }
}

/// A connection that speaks HTTP.
struct Http {
    conn: ConnId,
    connection: Connection,
    /// What the connection has not taken yet.
    input: Vec<u8>,
    /// What the server sends, and how much of it has become responses.
    outgoing: Option<(Outgoing, usize)>,
    /// Responses are on their way.
    in_flight: bool,
    /// In `State::to_do`, `State::to_report`.
    is_to_do: bool,
    is_to_report: bool,
    /// Requests wait to be passed on.
    has_more: bool,
    /// Reading is paused by the server; at the inner backend.
    paused: bool,
    inner_paused: bool,
    /// The client will send nothing more; the server knows.
    input_ended: bool,
    is_end_known: bool,
    /// The server has closed it.
    is_over: bool,
    /// When it is closed at last, in seconds.
    ends_at: Option<u64>,
    /// As the sink knows it, without what the inner backend holds.
    held_bytes: usize,
    inner_bytes: usize,
}

/// A [`Backend`] that speaks HTTP on the connections that it is told of.
pub struct HttpBackend<B> {
    inner: B,
    state: State,
    rules: SharedRules,
}

/// Connections by slot, and what is to be done for them.
struct State {
    connections: Vec<Option<Box<Http>>>,
    count: usize,
    /// To be stepped or flushed.
    to_do: Vec<ConnId>,
    /// The server's buffer is done with, and nothing of it is on its way.
    to_report: Vec<ConnId>,
    /// Requests of RESP in the making.
    requests: Vec<u8>,
    spares: Vec<Vec<u8>>,
    date: Date,
    start: Instant,
    swept: u64,
}

impl State {
    #[inline]
    fn get(&mut self, conn: ConnId) -> Option<&mut Http> {
        let http = self.connections.get_mut(conn.slot as usize)?.as_deref_mut()?;
        // The slot may have another user by now.
        if http.conn == conn { Some(http) } else { None }
    }

    fn do_later(to_do: &mut Vec<ConnId>, http: &mut Http) {
        if !std::mem::replace(&mut http.is_to_do, true) {
            to_do.push(http.conn);
        }
    }

    /// Passes on what the client sent, after what is left of before.
    fn take_in<S: Sink>(&mut self, conn: ConnId, bytes: &[u8], rules: &Rules, sink: &mut S) {
        let State { connections, to_do, requests, date, start, .. } = self;
        let Some(Some(http)) = connections.get_mut(conn.slot as usize) else { return };
        if http.is_over || http.ends_at.is_some() {
            return;
        }
        let now = Now { rules, date: date.text(), seconds: start.elapsed().as_secs() };
        let may_step = !http.paused && (!http.has_more || bytes.is_empty());
        if !may_step {
            http.input.extend_from_slice(bytes);
        } else if http.input.is_empty() {
            let (taken, step) = http.connection.step(bytes, requests, &now);
            http.input.extend_from_slice(&bytes[taken..]);
            http.has_more = step == Step::More;
        } else {
            http.input.extend_from_slice(bytes);
            let (taken, step) = http.connection.step(&http.input, requests, &now);
            http.input.drain(..taken);
            http.has_more = step == Step::More;
        }
        if http.input.is_empty() {
            http.input = Vec::new();
        }
        if !requests.is_empty() {
            sink.received(conn, requests);
            requests.clear();
            requests.shrink_to(SPARE_BYTES_MAX);
        }
        if http.input_ended && !http.is_end_known && !http.has_more && http.connection.input_ended()
        {
            http.is_end_known = true;
            if sink.input_ended(conn) == AfterInput::Close {
                http.is_over = true;
            }
        }
        let held = HTTP_BYTES + http.connection.bytes() + http.input.capacity();
        if held != http.held_bytes {
            http.held_bytes = held;
            sink.holds(conn, held + http.inner_bytes);
        }
        let may_send = !http.in_flight
            && (http.is_over || http.connection.has_out() || http.connection.ends());
        let has_to_do = http.has_more || may_send || http.inner_paused != http.wants_pause();
        if has_to_do {
            State::do_later(to_do, http);
        }
    }
}

impl Http {
    fn wants_pause(&self) -> bool {
        self.paused || self.input.len() > INPUT_BYTES
    }

    /// Whether the server's buffer, if there is one, has become responses.
    fn is_taken(&self) -> bool {
        self.outgoing.as_ref().is_none_or(|(outgoing, taken)| *taken == outgoing.len())
    }
}

/// Between the inner backend and the server's sink.
struct Translator<'a, S> {
    state: &'a mut State,
    rules: &'a Rules,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Translator<'_, S> {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        self.sink.incoming(socket, info);
    }

    #[inline]
    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        if self.state.get(conn).is_none() {
            self.sink.received(conn, bytes);
        } else {
            self.state.take_in(conn, bytes, self.rules, self.sink);
        }
    }

    fn input_ended(&mut self, conn: ConnId) -> AfterInput {
        let Some(http) = self.state.get(conn) else { return self.sink.input_ended(conn) };
        http.input_ended = true;
        if http.is_over || http.ends_at.is_some() {
            let is_done = !http.in_flight && !http.connection.has_out();
            return if is_done { AfterInput::Close } else { AfterInput::KeepSending };
        }
        self.state.take_in(conn, &[], self.rules, self.sink);
        AfterInput::KeepSending
    }

    #[inline]
    fn sent(&mut self, conn: ConnId, buffer: Outgoing) {
        let Some(http) = self.state.get(conn) else { return self.sink.sent(conn, buffer) };
        http.in_flight = false;
        if !http.is_over
            && http.is_taken()
            && !http.connection.has_out()
            && let Some((outgoing, _)) = http.outgoing.take()
        {
            self.sink.sent(conn, outgoing);
        }
        let State { connections, to_do, spares, .. } = &mut *self.state;
        if let Outgoing::Buffer(mut buffer) = buffer
            && spares.len() < SPARES_MAX
            && buffer.capacity() <= SPARE_BYTES_MAX
        {
            buffer.clear();
            spares.push(buffer);
        }
        if let Some(Some(http)) = connections.get_mut(conn.slot as usize) {
            let has_to_do = http.outgoing.is_some()
                || http.is_over
                || http.connection.has_out()
                || http.connection.ends();
            if has_to_do {
                State::do_later(to_do, http);
            }
        }
    }

    fn holds(&mut self, conn: ConnId, bytes: usize) {
        let own = self.state.get(conn).map_or(0, |http| {
            http.inner_bytes = bytes;
            http.held_bytes
        });
        self.sink.holds(conn, own + bytes);
    }

    fn closed(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(slot) = self.state.connections.get_mut(conn.slot as usize)
            && slot.take().is_some()
        {
            self.state.count -= 1;
        }
        self.sink.closed(conn, reason);
    }
}

impl<B: Backend> HttpBackend<B> {
    /// Around `inner`.
    pub fn new(inner: B, rules: SharedRules) -> HttpBackend<B> {
        let state = State {
            connections: Vec::new(),
            count: 0,
            to_do: Vec::new(),
            to_report: Vec::new(),
            requests: Vec::new(),
            spares: Vec::new(),
            date: Date::default(),
            start: Instant::now(),
            swept: 0,
        };
        HttpBackend { inner, state, rules }
    }

    /// The backend inside.
    pub fn inner(&mut self) -> &mut B {
        &mut self.inner
    }

    /// The connection, which was just adopted, speaks HTTP. The inner backend holds so many bytes
    /// for it.
    pub fn speak_http(&mut self, conn: ConnId, inner_bytes: usize) {
        let slot = conn.slot as usize;
        if self.state.connections.len() <= slot {
            self.state.connections.resize_with(slot + 1, || None);
        }
        debug_assert!(self.state.connections[slot].is_none(), "the backend reuses a live slot");
        self.state.count += 1;
        self.state.connections[slot] = Some(Box::new(Http {
            conn,
            connection: Connection::default(),
            input: Vec::new(),
            outgoing: None,
            in_flight: false,
            is_to_do: false,
            is_to_report: false,
            has_more: false,
            paused: false,
            inner_paused: false,
            input_ended: false,
            is_end_known: false,
            is_over: false,
            ends_at: None,
            held_bytes: HTTP_BYTES,
            inner_bytes,
        }));
    }

    fn start_send(&mut self, conn: ConnId, outgoing: Outgoing, is_last: bool) {
        match self.state.get(conn) {
            None if is_last => self.inner.send_last(conn, outgoing),
            None => self.inner.send(conn, outgoing),
            Some(http) => {
                assert!(!outgoing.is_empty(), "an empty buffer is never sent");
                assert!(http.outgoing.is_none(), "one buffer in flight per connection");
                if !http.is_over {
                    http.outgoing = Some((outgoing, 0));
                    self.flush(conn, is_last);
                }
            }
        }
    }

    /// Makes responses of what the server sends, and sends them, unless others are on their way.
    fn flush(&mut self, conn: ConnId, is_last: bool) {
        let rules = self.rules.0.load();
        let State { connections, to_do, to_report, spares, date, start, .. } = &mut self.state;
        let Some(Some(http)) = connections.get_mut(conn.slot as usize) else { return };
        if http.in_flight {
            return;
        }
        let now = Now { rules: &rules, date: date.text(), seconds: start.elapsed().as_secs() };
        if let Some((outgoing, taken)) = &mut http.outgoing
            && *taken < outgoing.len()
        {
            if !http.connection.has_out() {
                // It has no room of its own.
                http.connection.take_out(spares.pop().unwrap_or_default());
            }
            *taken += http.connection.replied(&outgoing[*taken..], &now);
            // Requests that waited for these replies can go on.
            if !http.input.is_empty() || http.connection.wants_step() || http.input_ended {
                State::do_later(to_do, http);
            }
        }
        let is_taken = http.is_taken();
        if http.connection.has_out() {
            http.in_flight = true;
            let out = http.connection.take_out(Vec::new());
            if is_last && is_taken {
                self.inner.send_last(conn, out);
            } else {
                self.inner.send(conn, out);
            }
            return;
        }
        let unused = http.connection.take_out(Vec::new());
        if unused.capacity() > 0 && spares.len() < SPARES_MAX {
            spares.push(unused);
        }
        if is_taken && http.outgoing.is_some() && !std::mem::replace(&mut http.is_to_report, true) {
            to_report.push(conn);
        }
        if http.is_over {
            self.inner.close(conn);
        } else if http.connection.ends() && http.ends_at.is_none() {
            // The client may be sending still; a close now could take the response from it.
            let patience =
                if http.connection.was_refused() && !http.input_ended { ENDING_SECONDS } else { 0 };
            http.ends_at = Some(now.seconds + patience);
            if patience == 0 {
                self.inner.close(conn);
            }
        }
    }

    /// Does what a poll has left to do, but for requests that wait to be passed on.
    fn follow_up(&mut self, conn: ConnId) {
        self.flush(conn, false);
        let Some(http) = self.state.get(conn) else { return };
        let pause = http.wants_pause() && !http.is_over && http.ends_at.is_none();
        if http.inner_paused != pause {
            http.inner_paused = pause;
            self.inner.pause_receive(conn, pause);
        }
    }

    /// Ends requests that take too long, and connections that should have ended.
    fn sweep(&mut self) {
        let seconds = self.state.start.elapsed().as_secs();
        if self.state.count == 0 || seconds == self.state.swept {
            return;
        }
        self.state.swept = seconds;
        let rules = self.rules.0.load();
        let now = Now { rules: &rules, date: self.state.date.text(), seconds };
        let mut overdue = Vec::new();
        for http in self.state.connections.iter_mut().flatten() {
            if http.ends_at.is_some_and(|ends_at| ends_at <= seconds) {
                overdue.push(http.conn);
            } else if let Some((began, came)) = http.connection.incomplete_since()
                && !http.paused
                && !http.is_over
                && seconds > began + REQUEST_SECONDS + came / BYTES_PER_SECOND
            {
                http.connection.is_too_slow(&now);
                State::do_later(&mut self.state.to_do, http);
            }
        }
        for conn in overdue {
            self.inner.close(conn);
        }
    }
}

impl<B: Backend> Backend for HttpBackend<B> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, timeout: Option<Duration>) -> io::Result<()> {
        if self.state.count == 0 {
            return self.inner.poll(sink, timeout);
        }
        self.state.date.update();
        let rules = self.rules.0.load_full();
        let has_work = !self.state.to_do.is_empty() || !self.state.to_report.is_empty();
        for conn in std::mem::take(&mut self.state.to_do) {
            if let Some(http) = self.state.get(conn) {
                http.is_to_do = false;
                // One that the server does not read waits until it does.
                if !http.paused {
                    self.state.take_in(conn, &[], &rules, sink);
                }
                self.follow_up(conn);
            }
        }
        for conn in std::mem::take(&mut self.state.to_report) {
            let Some(http) = self.state.get(conn) else { continue };
            http.is_to_report = false;
            if !http.is_over
                && !http.in_flight
                && http.is_taken()
                && let Some((outgoing, _)) = http.outgoing.take()
            {
                sink.sent(conn, outgoing);
            }
        }
        self.sweep();
        let timeout = if has_work { Some(Duration::ZERO) } else { timeout };
        let mut translator = Translator { state: &mut self.state, rules: &rules, sink };
        self.inner.poll(&mut translator, timeout)?;
        for conn in self.state.to_do.clone() {
            self.follow_up(conn);
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, conn: ConnId, buffer: impl Into<Outgoing>) {
        self.start_send(conn, buffer.into(), false);
    }

    #[inline]
    fn send_last(&mut self, conn: ConnId, buffer: impl Into<Outgoing>) {
        self.start_send(conn, buffer.into(), true);
    }

    fn close(&mut self, conn: ConnId) {
        let ends_at = self.state.start.elapsed().as_secs() + ENDING_SECONDS;
        let Some(http) = self.state.get(conn) else { return self.inner.close(conn) };
        http.is_over = true;
        if http.in_flight || http.connection.has_out() {
            http.ends_at.get_or_insert(ends_at);
        } else {
            self.inner.close(conn);
        }
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        let State { connections, to_do, .. } = &mut self.state;
        let http = connections.get_mut(conn.slot as usize).and_then(Option::as_deref_mut);
        let Some(http) = http.filter(|http| http.conn == conn) else {
            return self.inner.pause_receive(conn, paused);
        };
        http.paused = paused;
        let pause = http.wants_pause();
        let is_changed = std::mem::replace(&mut http.inner_paused, pause) != pause;
        if !paused {
            State::do_later(to_do, http);
        }
        if is_changed {
            self.inner.pause_receive(conn, pause);
        }
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        self.inner.has_ended(conn)
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        self.inner.adopt(socket)
    }

    /// Only this thread can make responses.
    fn direct_sender(&mut self, conn: ConnId) -> Option<DirectSender> {
        match self.state.get(conn) {
            None => self.inner.direct_sender(conn),
            Some(_) => None,
        }
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn listen(&mut self, listener: Listener) -> io::Result<()> {
        self.inner.listen(listener)
    }

    fn retain_listeners(&mut self, keep: impl Fn(&Listener) -> bool) {
        self.inner.retain_listeners(keep);
    }
}
