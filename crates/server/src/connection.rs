//! One connection of an IO thread: its buffers, and the state of its replies.
//!
//! ```text
//! input   [ consumed | requests ... | part of a request ]
//! output  [ passed the gate, to be sent | waits at the gate: (end, LSN) ... ]   + one in flight
//!         [ queued: full buffers, parts of long strings ... ][ the buffer being written ]
//! ```

use crate::input;
use crate::protocol::Protocol;
use crate::set_aside::SetAside;
use ladon_engine::Waiter;
use ladon_kernel::client::session::{Blocked, LogWait, Session};
use ladon_kernel::long::aside_job::Lent;
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::long::slices::Block;
use ladon_net::{ConnId, Outgoing};
use ladon_record::{Gate, Lsn};
use ladon_resp::{Parser, Proto};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What the worker is told about a new connection.
#[derive(Clone, Debug)]
pub struct ConnectionStart {
    /// The backend's identifier.
    pub conn: ConnId,
    /// The client's address, for `CLIENT LIST`.
    pub addr: String,
    /// The server's address.
    pub laddr: String,
    /// The descriptor's number, for display.
    pub fd: i32,
    /// The client connected through a unix socket.
    pub unix: bool,
    /// What it speaks.
    pub protocol: Protocol,
}

/// Replies up to `end` may leave when `gate` has passed `lsn`.
struct Mark {
    end: u64,
    lsn: Lsn,
    gate: Gate,
}

/// The log's positions at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Positions {
    pub(crate) written: Lsn,
    pub(crate) durable: Lsn,
}

impl Positions {
    #[inline]
    pub(crate) fn passed(self, gate: Gate, lsn: Lsn) -> bool {
        match gate {
            Gate::None => true,
            Gate::Write | Gate::EverySec => self.written >= lsn,
            Gate::Fsync => self.durable >= lsn,
        }
    }
}

/// A request that was removed from the input because the memory of one of its arguments is lent.
pub(crate) struct Again {
    /// The arguments, with an empty one in place of the lent one.
    pub(crate) args: Vec<Vec<u8>>,
    /// Size of all arguments in bytes.
    pub(crate) bytes: usize,
    /// Index of the lent argument.
    pub(crate) at: usize,
    /// The lent argument; empty until it is given back.
    pub(crate) lent: Arc<Vec<u8>>,
}

impl Again {
    /// Copies of the arguments, except for the one at `at`, which is lent.
    pub(crate) fn keeping(args: &[&[u8]], at: usize) -> Again {
        let short = |(other, arg): (usize, &&[u8])| {
            if other == at { Vec::new() } else { arg.to_vec() }
        };
        let bytes = args.iter().map(|arg| arg.len()).sum();
        Again {
            args: args.iter().enumerate().map(short).collect(),
            bytes,
            at,
            lent: Arc::default(),
        }
    }

    /// All arguments, once the lent one is given back.
    pub(crate) fn arguments(&self) -> Vec<&[u8]> {
        let own = self.args.iter().map(Vec::as_slice).enumerate();
        own.map(|(at, arg)| if at == self.at { self.lent.as_slice() } else { arg }).collect()
    }
}

/// Waiting replies of more bytes than this are not overtaken.
const OVERTAKEN_BYTES_MAX: usize = 16 << 10;

pub(crate) struct Connection {
    pub(crate) conn: ConnId,
    pub(crate) session: Session,
    /// What it speaks instead of RESP, if it does.
    pub(crate) tarantool: Option<Box<ladon_tarantool::Session>>,
    /// Its requests that are not done while later ones run.
    pub(crate) set_aside: Option<Box<SetAside>>,
    pub(crate) parser: Parser,
    pub(crate) input: Vec<u8>,
    /// Bytes of `input` whose requests have run; they are removed when room is needed.
    pub(crate) consumed: usize,
    /// Further bytes expected of an incomplete request, for which to make room.
    pub(crate) expected: usize,
    pub(crate) output: Vec<u8>,
    /// Buffers queued before `output`, for replies longer than the client takes at once.
    put_by: VecDeque<Outgoing>,
    /// Number of bytes written before `output` in the connection's lifetime.
    output_start: u64,
    /// Number of bytes handed to the backend in the connection's lifetime.
    taken: u64,
    marks: VecDeque<Mark>,
    /// End of the output when the last of its requests had run, in bytes of its lifetime.
    drained_at: u64,
    /// Number of bytes that have passed the gate in the connection's lifetime.
    sendable: u64,
    /// End of the last long reply, in bytes of the connection's lifetime: a part of it may have
    /// passed the gate before the rest.
    long_reply_end: u64,
    /// The highest LSN that the replies since the last mark depend on.
    pub(crate) depends: Lsn,
    /// Size of the buffer in flight; zero if there is none.
    pub(crate) in_flight: usize,
    /// The unfinished part of the reply to a request; the next request waits for it.
    pub(crate) long_reply: Option<Box<LongReply>>,
    /// A part of it is in the output. Before that, requests of IPROTO need not wait.
    pub(crate) long_reply_has_begun: bool,
    /// What it depends on, of one that did not begin with its request.
    pub(crate) long_reply_depends: Lsn,
    /// The request that lent an argument, to be run again once it has the argument back.
    pub(crate) again: Option<Box<Again>>,
    /// Present while a job for the connection's request runs. Set to true once no client waits for
    /// the result.
    pub(crate) computing: Option<Arc<AtomicBool>>,
    /// Messages from other threads that arrived in the middle of a reply.
    pub(crate) held: Vec<u8>,
    /// What the next request waits for.
    pub(crate) blocked: Option<Blocked>,
    /// What the reply to a timed-out wait for a key depends on: the key's absence.
    pub(crate) blocked_depends: Lsn,
    /// `CLIENT PAUSE` is in force, and this connection has sent a request.
    pub(crate) paused: bool,
    /// The next request publishes, while messages come faster than they are delivered.
    pub(crate) awaits_delivery: bool,
    /// Other requests of it ran just before.
    pub(crate) had_turn: bool,
    /// `CLIENT PAUSE` has held back the next request.
    pub(crate) postponed: bool,
    /// A request writes, and the log is far behind, or a commit has asked writers to wait.
    pub(crate) awaits_write: bool,
    /// A request has done a part of its work in this batch.
    pub(crate) is_unfinished: bool,
    /// One of these is the input's next request.
    pub(crate) input_waits: bool,
    /// When the session's next transaction times out, as the worker has noted it.
    pub(crate) times_out_ms: Option<u64>,
    /// The connection has too many unread replies.
    pub(crate) held_back: bool,
    /// The connection is not authenticated, and had too many unread replies at its last turn.
    pub(crate) is_full_stranger: bool,
    /// Unread reply bytes, as last counted by its thread.
    pub(crate) counted_output: usize,
    /// Bytes that arrived and were discarded, because none of its requests runs any more.
    pub(crate) discarded: usize,
    /// The backend was asked to pause reading.
    pub(crate) receive_paused: bool,
    /// Close the connection once the output is sent.
    pub(crate) closing: bool,
    /// The backend was asked to close the connection.
    pub(crate) closed: bool,
    /// Close the connection now and discard unsent output.
    pub(crate) aborted: bool,
    /// The connection is in the worker's queue of connections with requests to run.
    pub(crate) in_ready: bool,
    /// The connection is on the worker's list of connections whose output or state changed.
    pub(crate) in_touched: bool,
    /// The connection is on the list of connections that wait at the gate.
    pub(crate) waiting: bool,
    /// The peer will send nothing more.
    pub(crate) input_ended: bool,
    /// When it was last asked whether that is so, while reading was paused. Unix milliseconds.
    pub(crate) looked_for_end_ms: u64,
    /// When the output first exceeded the soft limit, Unix milliseconds; 0 while it does not.
    pub(crate) over_soft_limit_ms: u64,
    /// Start of the idle time that the last check found to be too long.
    pub(crate) seen_idle_since_ms: u64,
}

impl Connection {
    pub(crate) fn new(conn: ConnId, session: Session) -> Connection {
        Connection {
            conn,
            session,
            tarantool: None,
            set_aside: None,
            parser: Parser::new(),
            input: Vec::new(),
            consumed: 0,
            expected: 0,
            output: Vec::new(),
            put_by: VecDeque::new(),
            output_start: 0,
            taken: 0,
            marks: VecDeque::new(),
            drained_at: 0,
            sendable: 0,
            long_reply_end: 0,
            depends: Lsn::ZERO,
            in_flight: 0,
            long_reply: None,
            long_reply_has_begun: false,
            long_reply_depends: Lsn::ZERO,
            again: None,
            computing: None,
            held: Vec::new(),
            blocked: None,
            blocked_depends: Lsn::ZERO,
            postponed: false,
            awaits_write: false,
            is_unfinished: false,
            input_waits: false,
            times_out_ms: None,
            held_back: false,
            is_full_stranger: false,
            counted_output: 0,
            discarded: 0,
            receive_paused: false,
            paused: false,
            awaits_delivery: false,
            had_turn: false,
            closing: false,
            closed: false,
            aborted: false,
            in_ready: false,
            in_touched: false,
            waiting: false,
            input_ended: false,
            looked_for_end_ms: 0,
            over_soft_limit_ms: 0,
            seen_idle_since_ms: 0,
        }
    }

    /// Checks that the counts of output and input agree.
    #[inline]
    pub(crate) fn debug_assert_sound(&self) {
        if cfg!(debug_assertions) {
            assert!(self.consumed <= self.input.len(), "more requests have run than arrived");
            let put_by: usize = self.put_by.iter().map(|outgoing| outgoing.len()).sum();
            assert_eq!(self.taken + put_by as u64, self.output_start, "bytes that were put by");
            let mut end = self.sendable;
            assert!(self.taken <= end, "more was sent than the gate has passed");
            for mark in &self.marks {
                assert!(end < mark.end, "marks of a connection go on");
                end = mark.end;
            }
            assert!(end <= self.output_end(), "a mark beyond the output");
        }
    }

    /// Closes the group of replies written so far. They may leave when `gate` has passed what they
    /// depend on. No later reply overtakes an earlier one but by [`Connection::overtake`].
    #[inline]
    pub(crate) fn mark(&mut self, gate: Gate, positions: Positions) {
        let end = self.output_end();
        if self.marks.is_empty() && positions.passed(gate, self.depends) {
            self.depends = Lsn::ZERO;
            self.sendable = end;
            return;
        }
        if end == self.marked() {
            // The reply to a job begins in a later turn and still depends on this LSN.
            return;
        }
        self.marks.push_back(Mark { end, lsn: std::mem::take(&mut self.depends), gate });
    }

    /// Closes the group of replies up to `end` of the output under their own gate, whatever gate
    /// later replies have.
    #[cold]
    pub(crate) fn mark_up_to(&mut self, end: usize, gate: Gate) {
        let end = self.output_start + end as u64;
        if end > self.marked() {
            self.marks.push_back(Mark { end, lsn: std::mem::take(&mut self.depends), gate });
        }
    }

    /// Releases replies that the gate has passed since the last call.
    pub(crate) fn advance(&mut self, positions: Positions) {
        while let Some(mark) = self.marks.front() {
            if !positions.passed(mark.gate, mark.lsn) {
                return;
            }
            self.sendable = mark.end;
            self.marks.pop_front();
        }
    }

    /// Moves a reply, the end of the output from `start` on, in front of all replies that wait at
    /// their gate, if any do; the reply itself depends on nothing that `gate` has not passed. It
    /// stays where it is behind long replies, so that the bytes which move are few.
    #[inline]
    pub(crate) fn overtake(&mut self, start: usize, gate: Gate, positions: Positions) {
        self.advance(positions);
        let waits = !self.marks.is_empty() || !positions.passed(gate, self.depends);
        if !waits || self.sendable < self.long_reply_end.max(self.output_start) {
            return;
        }
        let front = (self.sendable - self.output_start) as usize;
        if start - front > OVERTAKEN_BYTES_MAX {
            return;
        }
        let length = self.output.len() - start;
        self.output[front..].rotate_right(length);
        self.sendable += length as u64;
        for mark in &mut self.marks {
            mark.end += length as u64;
        }
    }

    /// Notes that a long reply ends here.
    pub(crate) fn end_long_reply(&mut self) {
        self.long_reply_end = self.output_end();
    }

    /// Discards the replies that have not passed the gate. Returns the buffer for an error in their
    /// place, which ends the connection.
    pub(crate) fn replace_waiting(&mut self) -> &mut Vec<u8> {
        self.marks.clear();
        // No part of a long reply was sent yet, because all of it depends on what its command read.
        self.long_reply = None;
        self.held.clear();
        while self.sendable < self.output_start
            && let Some(last) = self.put_by.pop_back()
        {
            self.output_start -= last.len() as u64;
            let kept = self.sendable.saturating_sub(self.output_start) as usize;
            self.output = match last {
                Outgoing::Buffer(buffer) => buffer,
                // Nothing can be appended to a part, so copy the bytes that may leave.
                part @ Outgoing::Part { .. } => part[..kept].to_vec(),
            };
        }
        self.output.truncate((self.sendable - self.output_start) as usize);
        self.closing = true;
        &mut self.output
    }

    /// Releases the whole output, whatever its gate says.
    pub(crate) fn all_is_sendable(&mut self) {
        self.sendable = self.output_end();
    }

    /// Notes that no whole request is left.
    #[inline]
    pub(crate) fn note_drained(&mut self) {
        self.drained_at = self.output_end();
    }

    /// Bytes of replies since there was last no request left.
    pub(crate) fn replies_in_a_row(&self) -> u64 {
        // Replies that were taken back shorten the output.
        self.output_end().saturating_sub(self.drained_at)
    }

    fn output_end(&self) -> u64 {
        self.output_start + self.output.len() as u64
    }

    /// End of the output that has a gate.
    fn marked(&self) -> u64 {
        self.marks.back().map_or(self.sendable, |mark| mark.end)
    }

    /// Queues the whole output buffer and continues with an empty one.
    pub(crate) fn put_output_by(&mut self, spare: impl FnOnce() -> Vec<u8>) {
        if !self.output.is_empty() {
            self.output_start += self.output.len() as u64;
            self.put_by.push_back(std::mem::replace(&mut self.output, spare()).into());
        }
    }

    /// Takes the queued buffers, which will not be sent. They may hold the last reference to a long
    /// value.
    pub(crate) fn take_put_by(&mut self) -> VecDeque<Outgoing> {
        std::mem::take(&mut self.put_by)
    }

    /// Appends a block of memory that is owned elsewhere.
    pub(crate) fn add_block(&mut self, block: Block, spare: impl FnOnce() -> Vec<u8>) {
        self.put_output_by(spare);
        let Block { whole, range } = block;
        if !range.is_empty() {
            self.output_start += range.len() as u64;
            self.put_by.push_back(Outgoing::Part { whole, range });
        }
    }

    /// Appends bytes that are not a reply to a request.
    pub(crate) fn deliver(&mut self, bytes: &[u8]) {
        if self.is_mid_reply() { &mut self.held } else { &mut self.output }
            .extend_from_slice(bytes);
    }

    /// As `deliver`, of a message in RESP2; over RESP3 its first byte is that of a push.
    pub(crate) fn deliver_push(&mut self, bytes: &[u8]) {
        let is_push = self.session.proto == Proto::Resp3;
        let out = if self.is_mid_reply() { &mut self.held } else { &mut self.output };
        let start = out.len();
        out.extend_from_slice(bytes);
        if is_push {
            out[start] = b'>';
        }
    }

    /// Where an invalidation goes: after every reply that may show an older value.
    pub(crate) fn behind_replies(&mut self) -> &mut Vec<u8> {
        // A wait that was served: the reply is on its way from another thread.
        let is_served = self.waiter().is_some_and(|waiter| !waiter.claim.is_free());
        if self.is_mid_reply() || is_served { &mut self.held } else { &mut self.output }
    }

    /// Appends what was held back behind a reply, which is complete now.
    pub(crate) fn release_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.output.extend_from_slice(&held);
    }

    /// Appends the rest of a reply whose beginning another thread sent while nothing else was left
    /// to send. The reply has passed the gate.
    pub(crate) fn go_on_with(&mut self, rest: &[u8]) {
        debug_assert!(self.taken == self.output_start && self.in_flight == 0);
        self.output.splice(0..0, rest.iter().copied());
        self.sendable += rest.len() as u64;
        for mark in &mut self.marks {
            mark.end += rest.len() as u64;
        }
    }

    /// What the first reply that has not passed its gate waits for.
    pub(crate) fn awaits(&self) -> Option<(Gate, Lsn)> {
        self.marks.front().map(|mark| (mark.gate, mark.lsn))
    }

    /// Whether there are bytes that may be sent now.
    pub(crate) fn has_sendable(&self) -> bool {
        self.sendable != self.taken && self.in_flight == 0
    }

    /// Whether more output waits for the buffer in flight.
    pub(crate) fn has_more_to_send(&self) -> bool {
        self.sendable != self.taken || self.long_reply.is_some()
    }

    /// Takes the bytes that may be sent now; `spare` supplies an empty buffer to continue with.
    pub(crate) fn take_sendable(&mut self, spare: impl FnOnce() -> Vec<u8>) -> Option<Outgoing> {
        if !self.has_sendable() {
            return None;
        }
        // What is sent cannot be called back.
        assert!(
            self.taken <= self.sendable && self.sendable <= self.output_end(),
            "{} bytes were sent, up to {} may be, of {} in all",
            self.taken,
            self.sendable,
            self.output_end()
        );
        let sendable = (self.sendable - self.taken) as usize;
        let buffer = if let Some(mut first) = self.put_by.pop_front() {
            if sendable < first.len() {
                self.put_by.push_front(first.split_off(sendable));
            }
            first
        } else if sendable == self.output.len() {
            self.output_start = self.sendable;
            std::mem::replace(&mut self.output, spare()).into()
        } else {
            let mut rest = spare();
            rest.extend_from_slice(&self.output[sendable..]);
            let mut sent = std::mem::replace(&mut self.output, rest);
            sent.truncate(sendable);
            self.output_start = self.sendable;
            sent.into()
        };
        self.taken += buffer.len() as u64;
        self.in_flight = buffer.len();
        Some(buffer)
    }

    /// Received bytes whose requests have not run.
    #[inline]
    pub(crate) fn unread(&self) -> usize {
        self.input.len() - self.consumed
    }

    /// Appends received bytes. Consumed input is removed once it is at least as long as the rest,
    /// so that each byte moves once on average, however long the input is.
    #[inline]
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        let is_full = self.input.len() + bytes.len() > self.input.capacity();
        if is_full && self.consumed >= self.unread() {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        input::append(&mut self.input, bytes, &mut self.expected);
    }

    /// Memory of its replies: unsent bytes, and what the rest of a long reply needs.
    pub(crate) fn output_bytes(&self) -> usize {
        self.unsent_bytes() + self.long_reply.as_ref().map_or(0, |long| long.memory())
    }

    /// Unsent reply bytes.
    pub(crate) fn unsent_bytes(&self) -> usize {
        (self.output_end() - self.taken) as usize + self.held.len() + self.in_flight
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_drained(&self) -> bool {
        self.output_bytes() == 0 && self.long_reply.is_none()
    }

    /// Ends a wait.
    pub(crate) fn unblock(&mut self) {
        self.blocked = None;
        self.session.info.blocked.store(false, Relaxed);
        self.session.info.times_out.store(false, Relaxed);
        *self.session.info.claim.lock() = None;
    }

    /// The wait for the log, if the connection waits for the log.
    pub(crate) fn log_wait(&self) -> Option<&LogWait> {
        match &self.blocked {
            Some(Blocked::Log(wait)) => Some(wait),
            _ => None,
        }
    }

    /// The waiter in the queue of a key, if the connection waits for a key.
    pub(crate) fn waiter(&self) -> Option<&Arc<Waiter>> {
        match &self.blocked {
            Some(Blocked::Keys(waiter)) => Some(waiter),
            _ => None,
        }
    }

    /// Lends the bytes at `argument` of the input. They belong to a request that ends at `end`; the
    /// parser starts again after it.
    pub(crate) fn lend(&mut self, argument: Range<usize>, end: usize) -> Lent {
        self.rewind(end);
        if self.input.len() - end > argument.len() {
            // Copying the argument is cheaper than copying the rest of the input.
            return Lent::of(self.input[argument].to_vec());
        }
        let rest = self.input.split_off(end);
        self.consumed = 0;
        Lent { bytes: std::mem::replace(&mut self.input, rest), range: argument }
    }

    /// Resets the parser to `start`, where the request that runs again begins.
    pub(crate) fn rewind(&mut self, start: usize) {
        debug_assert!(start <= self.input.len(), "a request begins in the input");
        self.consumed = start;
        self.parser = Parser::new();
    }

    /// Appends the connection to the queue of connections with requests to run.
    #[inline]
    pub(crate) fn make_ready(&mut self, ready: &mut VecDeque<u32>) {
        if !self.in_ready {
            self.in_ready = true;
            ready.push_back(self.conn.slot);
        }
    }

    /// Puts the connection on the worker's list of connections whose output or state changed.
    #[inline]
    pub(crate) fn touch(&mut self, touched: &mut Vec<u32>) {
        if !self.in_touched {
            self.in_touched = true;
            touched.push(self.conn.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_begins_in_a_later_turn_waits_for_what_its_command_has_found() {
        let mut connection =
            Connection::new(ConnId { slot: 0, generation: 0 }, Session::new(Arc::default(), true));
        let positions = Positions { written: Lsn(4), durable: Lsn(3) };
        connection.depends = Lsn(4);
        connection.mark(Gate::Fsync, positions);
        connection.deliver(b"found ");
        connection.mark(Gate::Fsync, positions);
        assert!(!connection.has_sendable());
        connection.advance(Positions { durable: Lsn(4), ..positions });
        assert_eq!(connection.take_sendable(Vec::new).as_deref(), Some(&b"found "[..]));
    }

    #[test]
    fn what_has_not_passed_the_gate_is_replaced_up_to_the_middle_of_a_block() {
        let positions = Positions { written: Lsn(4), durable: Lsn(3) };
        for kept in 0..9u64 {
            let mut connection = Connection::new(
                ConnId { slot: 0, generation: 0 },
                Session::new(Arc::default(), true),
            );
            connection.deliver(b"$5\r\n");
            let whole = Arc::new(b"-12345-".to_vec());
            connection.add_block(Block { whole, range: 1..6 }, Vec::new);
            connection.deliver(b"\r\n");
            connection.depends = Lsn(4);
            connection.mark(Gate::Fsync, positions);
            assert!(!connection.has_sendable());
            connection.sendable = kept;
            connection.replace_waiting().extend_from_slice(b"-ERR");
            connection.all_is_sendable();
            let mut sent = Vec::new();
            while let Some(outgoing) = connection.take_sendable(Vec::new) {
                sent.extend_from_slice(&outgoing);
                connection.in_flight = 0;
            }
            assert_eq!(sent, [&b"$5\r\n12345\r\n"[..kept as usize], b"-ERR"].concat());
        }
    }

    #[test]
    fn the_rest_of_a_reply_comes_before_what_came_meanwhile() {
        let mut connection =
            Connection::new(ConnId { slot: 0, generation: 0 }, Session::new(Arc::default(), true));
        let positions = Positions { written: Lsn(4), durable: Lsn(3) };
        connection.deliver(b"shown ");
        connection.mark(Gate::Fsync, positions);
        connection.deliver(b"unsafe ");
        connection.depends = Lsn(4);
        connection.mark(Gate::Fsync, positions);
        connection.go_on_with(b"rest ");
        assert_eq!(connection.take_sendable(Vec::new).as_deref(), Some(&b"rest shown "[..]));
        connection.in_flight = 0;
        assert!(!connection.has_sendable());
        connection.advance(Positions { durable: Lsn(4), ..positions });
        assert_eq!(connection.take_sendable(Vec::new).as_deref(), Some(&b"unsafe "[..]));
    }

    #[test]
    fn a_reply_overtakes_those_that_wait() {
        let mut connection =
            Connection::new(ConnId { slot: 0, generation: 0 }, Session::new(Arc::default(), true));
        let positions = Positions { written: Lsn(4), durable: Lsn(3) };
        let reply = |connection: &mut Connection, bytes: &[u8], depends| {
            let start = connection.output.len();
            connection.deliver(bytes);
            connection.depends = connection.depends.max(depends);
            if positions.passed(Gate::Fsync, depends) {
                connection.overtake(start, Gate::Fsync, positions);
            }
        };
        reply(&mut connection, b"first ", Lsn(3));
        reply(&mut connection, b"waits ", Lsn(4));
        reply(&mut connection, b"second ", Lsn(2));
        connection.mark(Gate::Fsync, positions);
        reply(&mut connection, b"third ", Lsn::ZERO);
        reply(&mut connection, b"waits too ", Lsn(5));
        reply(&mut connection, b"fourth ", Lsn(3));
        connection.mark(Gate::Fsync, positions);
        connection.debug_assert_sound();
        let sent = |connection: &mut Connection| {
            let sent = connection.take_sendable(Vec::new);
            connection.in_flight = 0;
            sent.map(|sent| String::from_utf8_lossy(&sent).into_owned())
        };
        assert_eq!(sent(&mut connection).as_deref(), Some("second third fourth "));
        assert_eq!(sent(&mut connection), None);
        connection.advance(Positions { durable: Lsn(4), ..positions });
        assert_eq!(sent(&mut connection).as_deref(), Some("first waits "));
        assert_eq!(sent(&mut connection), None);
        connection.advance(Positions { written: Lsn(5), durable: Lsn(5) });
        assert_eq!(sent(&mut connection).as_deref(), Some("waits too "));
    }
}
