//! A backend around a backend: established sessions are opened and sealed on the way.
//!
//! ```text
//! poll:  inner --records--> open --plain bytes--> sink      (a share of the records at a time)
//! send:  plain buffer --> seal a chunk --> inner --sent--> the next chunk ... --> sink.sent
//! ```
//!
//! The buffer that is sent stays here until the kernel has its last record, so that limits on what
//! a client leaves unread count it. Records are opened in one buffer of the thread; only an
//! incomplete record is kept with its connection.

use crate::session::{Opened, Session};
use ladon_net::{
    AfterInput, Backend, CloseReason, ConnId, ConnInfo, DirectSender, Listener, Outgoing, Sink,
    Waker,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Records of a connection that are opened in one poll. Tiny ones cost the more, and a peer may
/// send nothing else.
const RECORDS_PER_POLL: usize = 256;

/// Plain bytes that are sealed at once; with what sealing adds, a socket's buffer usually takes
/// them whole.
const CHUNK_BYTES: usize = 3 << 14;

/// Memory of an idle connection here, with what rustls has of it (docs/decisions/tls.md).
pub const SEALED_BYTES: usize = 3_900;

/// A connection that is sealed.
struct Sealed {
    conn: ConnId,
    session: Session,
    /// What the server sends, and how much of it is sealed.
    outgoing: Option<(Outgoing, usize)>,
    /// Records are on their way.
    in_flight: bool,
    /// In `TlsBackend::to_do`, `TlsBackend::to_open`.
    is_to_do: bool,
    is_to_open: bool,
    /// Records wait to be opened.
    has_more: bool,
    /// Reading is paused by the server; at the inner backend.
    paused: bool,
    inner_paused: bool,
    input_ended: bool,
    /// As the sink knows it.
    held_bytes: usize,
    /// It ends; nothing is opened any more.
    is_over: bool,
    /// Why, if the peer broke the protocol.
    failure: Option<String>,
    /// The sink wants it closed.
    close: bool,
}

/// A [`Backend`] that speaks TLS on the connections that were adopted with a session.
pub struct TlsBackend<B> {
    inner: B,
    state: State,
}

/// Connections by slot, and what is to be done for them between two polls.
#[derive(Default)]
struct State {
    sealed: Vec<Option<Box<Sealed>>>,
    to_do: Vec<ConnId>,
    to_open: Vec<ConnId>,
    /// Where records are opened in place.
    opening: Vec<u8>,
}

impl State {
    #[inline]
    fn get(&mut self, conn: ConnId) -> Option<&mut Sealed> {
        let sealed = self.sealed.get_mut(conn.slot as usize)?.as_deref_mut()?;
        // The slot may have another user by now.
        if sealed.conn == conn { Some(sealed) } else { None }
    }

    fn do_later(to_do: &mut Vec<ConnId>, sealed: &mut Sealed) {
        if !std::mem::replace(&mut sealed.is_to_do, true) {
            to_do.push(sealed.conn);
        }
    }

    /// Opens what arrived on a connection, and what is left of before.
    fn open<S: Sink>(&mut self, conn: ConnId, bytes: &[u8], sink: &mut S) {
        let State { sealed, to_do, to_open, opening, .. } = self;
        let Some(Some(sealed)) = sealed.get_mut(conn.slot as usize) else { return };
        if sealed.is_over || sealed.input_ended {
            return;
        }
        let is_first = sealed.session.incoming.is_empty();
        let mut buffer = if is_first {
            opening.clear();
            opening.extend_from_slice(bytes);
            std::mem::take(opening)
        } else {
            sealed.session.incoming.extend_from_slice(bytes);
            if sealed.has_more && !bytes.is_empty() {
                // It has had its share.
                return;
            }
            std::mem::take(&mut sealed.session.incoming)
        };
        let (opened, outcome) = sealed.session.open(&mut buffer, RECORDS_PER_POLL, |content| {
            if !content.is_empty() {
                sink.received(conn, content);
            }
        });
        if is_first {
            sealed.session.incoming.extend_from_slice(&buffer[opened..]);
            *opening = buffer;
        } else if opened < buffer.len() {
            buffer.drain(..opened);
            sealed.session.incoming = buffer;
        }
        sealed.has_more = outcome == Opened::Some;
        let held = SEALED_BYTES + sealed.session.incoming.capacity();
        if held != sealed.held_bytes {
            sealed.held_bytes = held;
            sink.holds(conn, held);
        }
        match outcome {
            Opened::All => {}
            Opened::Some => {
                if !std::mem::replace(&mut sealed.is_to_open, true) {
                    to_open.push(conn);
                }
            }
            Opened::Ended => {
                sealed.input_ended = true;
                sealed.close = sink.input_ended(conn) == AfterInput::Close;
            }
            Opened::Failed(why) => {
                sealed.is_over = true;
                sealed.failure = Some(why);
                sealed.close = true;
            }
        }
        let is_stuck = sealed.has_more || sealed.inner_paused != sealed.paused;
        if is_stuck || sealed.close || !sealed.session.owed.is_empty() {
            State::do_later(to_do, sealed);
        }
    }
}

/// Between the inner backend and the server's sink.
struct Opener<'a, S> {
    state: &'a mut State,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Opener<'_, S> {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        self.sink.incoming(socket, info);
    }

    #[inline]
    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        if self.state.get(conn).is_none() {
            self.sink.received(conn, bytes);
        } else {
            self.state.open(conn, bytes, self.sink);
        }
    }

    fn input_ended(&mut self, conn: ConnId) -> AfterInput {
        match self.state.get(conn) {
            Some(sealed) if sealed.is_over || sealed.input_ended => AfterInput::KeepSending,
            Some(sealed) => {
                sealed.input_ended = true;
                self.sink.input_ended(conn)
            }
            None => self.sink.input_ended(conn),
        }
    }

    #[inline]
    fn sent(&mut self, conn: ConnId, buffer: Outgoing) {
        let Some(sealed) = self.state.get(conn) else { return self.sink.sent(conn, buffer) };
        sealed.in_flight = false;
        let whole = match sealed.outgoing.take() {
            Some((outgoing, sent)) if sent == outgoing.len() => Some(outgoing),
            rest => {
                sealed.outgoing = rest;
                None
            }
        };
        let is_more = sealed.outgoing.is_some() || !sealed.session.owed.is_empty();
        if is_more && !std::mem::replace(&mut sealed.is_to_do, true) {
            self.state.to_do.push(conn);
        }
        if let Some(outgoing) = whole {
            self.sink.sent(conn, outgoing);
        }
    }

    fn closed(&mut self, conn: ConnId, reason: CloseReason) {
        let sealed = self.state.sealed.get_mut(conn.slot as usize).and_then(Option::take);
        let reason = match sealed.and_then(|sealed| sealed.failure) {
            Some(why) => CloseReason::Failed(io::Error::new(io::ErrorKind::InvalidData, why)),
            None => reason,
        };
        self.sink.closed(conn, reason);
    }
}

impl<B: Backend> TlsBackend<B> {
    /// Around `inner`.
    pub fn new(inner: B) -> TlsBackend<B> {
        TlsBackend { inner, state: State::default() }
    }

    /// As [`Backend::adopt`], of a socket whose handshake is done.
    pub fn adopt_session(&mut self, socket: OwnedFd, session: Session) -> ConnId {
        let conn = self.inner.adopt(socket);
        let slot = conn.slot as usize;
        if self.state.sealed.len() <= slot {
            self.state.sealed.resize_with(slot + 1, || None);
        }
        debug_assert!(self.state.sealed[slot].is_none(), "the backend reuses a live slot");
        // What came behind the handshake is opened in the next poll: the server knows of the
        // connection then.
        let has_more = !session.incoming.is_empty();
        self.state.sealed[slot] = Some(Box::new(Sealed {
            conn,
            session,
            outgoing: None,
            in_flight: false,
            is_to_do: false,
            is_to_open: has_more,
            has_more,
            paused: false,
            inner_paused: false,
            input_ended: false,
            held_bytes: SEALED_BYTES,
            is_over: false,
            failure: None,
            close: false,
        }));
        if has_more {
            self.state.to_open.push(conn);
        }
        conn
    }

    fn start_send(&mut self, conn: ConnId, outgoing: Outgoing, is_last: bool) {
        match self.state.get(conn) {
            None if is_last => self.inner.send_last(conn, outgoing),
            None => self.inner.send(conn, outgoing),
            Some(sealed) => {
                assert!(!outgoing.is_empty(), "an empty buffer is never sent");
                assert!(sealed.outgoing.is_none(), "one buffer in flight per connection");
                if !sealed.is_over {
                    sealed.outgoing = Some((outgoing, 0));
                    self.send_records(conn, is_last);
                }
            }
        }
    }

    /// Seals the next chunk and sends it, unless records are on their way.
    fn send_records(&mut self, conn: ConnId, is_last: bool) {
        let mut records = Vec::new();
        let Some(sealed) = self.state.get(conn) else { return };
        if sealed.in_flight {
            return;
        }
        let mut is_whole = true;
        if let Some((outgoing, done)) = &mut sealed.outgoing {
            let end = outgoing.len().min(*done + CHUNK_BYTES);
            if let Err(why) = sealed.session.seal(&outgoing[*done..end], &mut records) {
                sealed.is_over = true;
                sealed.failure = Some(why);
                self.inner.close(conn);
                return;
            }
            *done = end;
            is_whole = end == outgoing.len();
        } else {
            records.append(&mut sealed.session.owed);
        }
        if records.is_empty() {
            return;
        }
        sealed.in_flight = true;
        if is_last && is_whole {
            self.inner.send_last(conn, records);
        } else {
            self.inner.send(conn, records);
        }
    }

    /// Does what events of a poll have left to do.
    fn follow_up(&mut self, conn: ConnId) {
        let Some(sealed) = self.state.get(conn) else { return };
        sealed.is_to_do = false;
        if sealed.close {
            return self.end(conn);
        }
        let pause = sealed.paused || sealed.has_more;
        if sealed.inner_paused != pause {
            sealed.inner_paused = pause;
            self.inner.pause_receive(conn, pause);
        }
        self.send_records(conn, false);
    }

    /// Closes a connection. If nothing is on its way, the peer is told of the end.
    fn end(&mut self, conn: ConnId) {
        if let Some(sealed) = self.state.get(conn)
            && !sealed.in_flight
        {
            let mut records = Vec::new();
            match sealed.failure {
                Some(_) => records.append(&mut sealed.session.owed),
                None if sealed.is_over => {}
                None => sealed.session.seal_end(&mut records),
            }
            sealed.is_over = true;
            if !records.is_empty()
                && let Some(sender) = self.inner.direct_sender(conn)
            {
                // A peer that reads nothing does not wait for the end either.
                sender.send(&records);
            }
        }
        self.inner.close(conn);
    }
}

impl<B: Backend> Backend for TlsBackend<B> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, timeout: Option<Duration>) -> io::Result<()> {
        let has_more = !self.state.to_open.is_empty();
        for conn in std::mem::take(&mut self.state.to_open) {
            if let Some(sealed) = self.state.get(conn) {
                sealed.is_to_open = false;
                // One that the server does not read waits until it does.
                if !sealed.paused {
                    self.state.open(conn, &[], sink);
                }
            }
        }
        let timeout = if has_more { Some(Duration::ZERO) } else { timeout };
        self.inner.poll(&mut Opener { state: &mut self.state, sink }, timeout)?;
        if !self.state.to_do.is_empty() {
            for conn in std::mem::take(&mut self.state.to_do) {
                self.follow_up(conn);
            }
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
        match self.state.get(conn) {
            None => self.inner.close(conn),
            Some(_) => self.end(conn),
        }
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        let Some(sealed) = self.state.get(conn) else {
            return self.inner.pause_receive(conn, paused);
        };
        sealed.paused = paused;
        if !paused && sealed.has_more {
            if !std::mem::replace(&mut sealed.is_to_open, true) {
                self.state.to_open.push(conn);
            }
        } else if sealed.inner_paused != paused {
            sealed.inner_paused = paused;
            self.inner.pause_receive(conn, paused);
        }
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        self.inner.has_ended(conn)
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        self.inner.adopt(socket)
    }

    /// Only this thread can seal.
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
