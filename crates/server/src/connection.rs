//! One connection of an IO thread: its buffers and where its replies stand.
//!
//! ```text
//! input   [ consumed | requests ... | part of a request ]
//! output  [ passed the gate, to be sent | waits at the gate: (end, LSN) ... ]   + one in flight
//!         [ full buffers and parts of long strings, put by ... ][ the one that is written to ]
//! ```

use crate::input;
use ladon_commands::aside::Lent;
use ladon_commands::session::LogWait;
use ladon_commands::{Block, Blocked, LongReply, Session};
use ladon_engine::Waiter;
use ladon_model::{Gate, Lsn};
use ladon_net::{ConnId, Outgoing};
use ladon_resp::Parser;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is known of a connection when it begins.
#[derive(Clone, Debug)]
pub struct ConnectionStart {
    /// The backend's name for it.
    pub conn: ConnId,
    /// The client's address, for `CLIENT LIST`.
    pub addr: String,
    /// Our address.
    pub laddr: String,
    /// The descriptor's number, for display.
    pub fd: i32,
    /// It came through a unix socket.
    pub unix: bool,
}

/// Replies up to `end` may leave when `gate` has passed `lsn`.
struct Mark {
    end: u64,
    lsn: Lsn,
    gate: Gate,
}

/// How far the log has got, as of one look at it.
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

/// A request that is no longer in the input, as the memory of one of its arguments is lent.
pub(crate) struct Again {
    /// The arguments, an empty one for that which is lent.
    pub(crate) args: Vec<Vec<u8>>,
    /// Bytes of all of them.
    pub(crate) bytes: usize,
    /// Which of them is lent.
    pub(crate) at: usize,
    /// What it was; empty until it is given back.
    pub(crate) lent: Arc<Vec<u8>>,
}

impl Again {
    /// All arguments, once that which was lent is given back.
    pub(crate) fn arguments(&self) -> Vec<&[u8]> {
        let own = self.args.iter().map(Vec::as_slice).enumerate();
        own.map(|(at, arg)| if at == self.at { self.lent.as_slice() } else { arg }).collect()
    }
}

pub(crate) struct Connection {
    pub(crate) conn: ConnId,
    pub(crate) session: Session,
    pub(crate) parser: Parser,
    pub(crate) input: Vec<u8>,
    /// Bytes of `input` whose requests have run; they leave when room is needed.
    pub(crate) consumed: usize,
    /// Further bytes for which it is worth to make room, for a request that is not whole yet.
    pub(crate) expected: usize,
    pub(crate) output: Vec<u8>,
    /// Buffers before `output`, of a reply that is longer than its client takes at once.
    put_by: VecDeque<Outgoing>,
    /// Count of all bytes ever written before `output`.
    output_start: u64,
    /// Count of all bytes ever handed to the backend.
    taken: u64,
    marks: VecDeque<Mark>,
    /// Count of all bytes that have passed the gate.
    sendable: u64,
    /// The highest LSN that the replies since the last mark depend on.
    pub(crate) depends: Lsn,
    /// Bytes of the buffer in flight; zero when there is none.
    pub(crate) in_flight: usize,
    /// The reply to its last request, as far as it is not made yet; the next one waits for that.
    pub(crate) long_reply: Option<Box<LongReply>>,
    /// The request that has lent an argument, to be run once it has it back.
    pub(crate) again: Option<Box<Again>>,
    /// Its request's job is not done yet; set once nobody waits for it.
    pub(crate) computing: Option<Arc<AtomicBool>>,
    /// What came for it from others in the middle of a reply.
    pub(crate) held: Vec<u8>,
    /// Waits for something before its next request.
    pub(crate) blocked: Option<Blocked>,
    /// What the reply to a wait for a key depends on if nobody serves it: the key's absence.
    pub(crate) blocked_depends: Lsn,
    /// Clients are paused and this one has asked for something.
    pub(crate) paused: bool,
    /// A pause has held back the request that is to run next.
    pub(crate) postponed: bool,
    /// Its next request writes, and the log is far behind.
    pub(crate) awaits_log_room: bool,
    /// It has too many unread replies.
    pub(crate) held_back: bool,
    /// It is not logged in, and had too many unread replies when its last turn came.
    pub(crate) is_full_stranger: bool,
    /// Unread replies as its thread has counted them.
    pub(crate) counted_output: usize,
    /// The backend was told not to read from it.
    pub(crate) receive_paused: bool,
    /// Close once the output is out.
    pub(crate) closing: bool,
    /// The backend was told to close it.
    pub(crate) closed: bool,
    /// Close now, whatever is left to send.
    pub(crate) aborted: bool,
    /// It stands in the worker's line of connections with something to run.
    pub(crate) in_ready: bool,
    /// It is on the worker's list of connections whose output or state changed.
    pub(crate) in_touched: bool,
    /// It is on the list of connections that wait at the gate.
    pub(crate) waiting: bool,
    /// The peer will send nothing more.
    pub(crate) input_ended: bool,
    /// When the output first went over the soft limit, Unix milliseconds; 0 when it is not.
    pub(crate) over_soft_limit_ms: u64,
    /// Since when it did nothing, when it was last found to be silent for too long.
    pub(crate) seen_idle_since_ms: u64,
}

impl Connection {
    pub(crate) fn new(conn: ConnId, session: Session) -> Connection {
        Connection {
            conn,
            session,
            parser: Parser::new(),
            input: Vec::new(),
            consumed: 0,
            expected: 0,
            output: Vec::new(),
            put_by: VecDeque::new(),
            output_start: 0,
            taken: 0,
            marks: VecDeque::new(),
            sendable: 0,
            depends: Lsn::ZERO,
            in_flight: 0,
            long_reply: None,
            again: None,
            computing: None,
            held: Vec::new(),
            blocked: None,
            blocked_depends: Lsn::ZERO,
            postponed: false,
            awaits_log_room: false,
            held_back: false,
            is_full_stranger: false,
            counted_output: 0,
            receive_paused: false,
            paused: false,
            closing: false,
            closed: false,
            aborted: false,
            in_ready: false,
            in_touched: false,
            waiting: false,
            input_ended: false,
            over_soft_limit_ms: 0,
            seen_idle_since_ms: 0,
        }
    }

    /// Closes off the replies written so far: they may leave when `gate` has passed what they
    /// depend on. A later reply never overtakes an earlier one.
    #[inline]
    pub(crate) fn mark(&mut self, gate: Gate, positions: Positions) {
        let end = self.output_end();
        if self.marks.is_empty() && positions.passed(gate, self.depends) {
            self.depends = Lsn::ZERO;
            self.sendable = end;
            return;
        }
        if end == self.marked() {
            // A reply that is computed aside begins in a later turn, and depends on this still.
            return;
        }
        self.marks.push_back(Mark { end, lsn: std::mem::take(&mut self.depends), gate });
    }

    /// Closes off the replies up to `end` of the output under their own gate, whatever gate the
    /// later ones will have.
    #[cold]
    pub(crate) fn mark_up_to(&mut self, end: usize, gate: Gate) {
        let end = self.output_start + end as u64;
        if end > self.marked() {
            self.marks.push_back(Mark { end, lsn: std::mem::take(&mut self.depends), gate });
        }
    }

    /// Lets replies through that the gate has passed meanwhile.
    pub(crate) fn advance(&mut self, positions: Positions) {
        while let Some(mark) = self.marks.front() {
            if !positions.passed(mark.gate, mark.lsn) {
                return;
            }
            self.sendable = mark.end;
            self.marks.pop_front();
        }
    }

    /// Throws away the replies that have not passed the gate; returns where an error in their
    /// place goes: the connection's last word.
    pub(crate) fn replace_waiting(&mut self) -> &mut Vec<u8> {
        self.marks.clear();
        // Of a long reply nothing has left: all of it depends on what its command has found.
        self.long_reply = None;
        self.held.clear();
        while self.sendable < self.output_start
            && let Some(last) = self.put_by.pop_back()
        {
            self.output_start -= last.len() as u64;
            let kept = self.sendable.saturating_sub(self.output_start) as usize;
            self.output = match last {
                Outgoing::Buffer(buffer) => buffer,
                // Nothing can be written behind a part, so what may leave of it is copied.
                part @ Outgoing::Part { .. } => part[..kept].to_vec(),
            };
        }
        self.output.truncate((self.sendable - self.output_start) as usize);
        self.closing = true;
        &mut self.output
    }

    /// What stands in the output may leave, whatever the gate says.
    pub(crate) fn all_is_sendable(&mut self) {
        self.sendable = self.output_end();
    }

    fn output_end(&self) -> u64 {
        self.output_start + self.output.len() as u64
    }

    /// Up to where a gate is set.
    fn marked(&self) -> u64 {
        self.marks.back().map_or(self.sendable, |mark| mark.end)
    }

    /// Puts the output by, whole, and goes on with an empty buffer.
    pub(crate) fn put_output_by(&mut self, spare: impl FnOnce() -> Vec<u8>) {
        if !self.output.is_empty() {
            self.output_start += self.output.len() as u64;
            self.put_by.push_back(std::mem::replace(&mut self.output, spare()).into());
        }
    }

    /// What was put by and is not to be sent any more: it may hold the last of what is long.
    pub(crate) fn take_put_by(&mut self) -> VecDeque<Outgoing> {
        std::mem::take(&mut self.put_by)
    }

    /// Adds bytes that stand elsewhere.
    pub(crate) fn add_block(&mut self, block: Block, spare: impl FnOnce() -> Vec<u8>) {
        self.put_output_by(spare);
        let Block { whole, range } = block;
        if !range.is_empty() {
            self.output_start += range.len() as u64;
            self.put_by.push_back(Outgoing::Part { whole, range });
        }
    }

    /// Adds bytes that are no reply to a request.
    pub(crate) fn deliver(&mut self, bytes: &[u8]) {
        if self.long_reply.is_some() { &mut self.held } else { &mut self.output }
            .extend_from_slice(bytes);
    }

    /// The rest of a reply whose beginning was sent past this thread, when nothing was left to be
    /// sent; the gate has passed it.
    pub(crate) fn go_on_with(&mut self, rest: &[u8]) {
        debug_assert!(self.taken == self.output_start && self.in_flight == 0);
        self.output.splice(0..0, rest.iter().copied());
        self.sendable += rest.len() as u64;
        for mark in &mut self.marks {
            mark.end += rest.len() as u64;
        }
    }

    /// What the first waiting reply waits for.
    pub(crate) fn awaits(&self) -> Option<(Gate, Lsn)> {
        self.marks.front().map(|mark| (mark.gate, mark.lsn))
    }

    /// Whether there are bytes that may be sent now.
    pub(crate) fn has_sendable(&self) -> bool {
        self.sendable != self.taken && self.in_flight == 0
    }

    /// Whether something waits for what is in flight to be taken.
    pub(crate) fn has_more_to_send(&self) -> bool {
        self.sendable != self.taken || self.long_reply.is_some()
    }

    /// Takes the bytes that may be sent now; `spare` is an empty buffer to go on with.
    pub(crate) fn take_sendable(&mut self, spare: impl FnOnce() -> Vec<u8>) -> Option<Outgoing> {
        if !self.has_sendable() {
            return None;
        }
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

    /// Bytes that arrived and have not run.
    #[inline]
    pub(crate) fn unread(&self) -> usize {
        self.input.len() - self.consumed
    }

    /// Whether whole requests may stand in its input that have to wait; otherwise it is the beginning
    /// of one.
    pub(crate) fn has_requests_waiting(&self) -> bool {
        self.in_ready || self.held_back || !self.is_runnable()
    }

    /// Adds bytes that arrived. What has run makes room once it is at least as much as what has
    /// not, so that each byte is moved once on average, however long the input is.
    #[inline]
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        let is_full = self.input.len() + bytes.len() > self.input.capacity();
        if is_full && self.consumed >= self.unread() {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        input::append(&mut self.input, bytes, &mut self.expected);
    }

    /// Bytes that its replies take: those that have not left yet, and what the rest of a long one
    /// needs.
    pub(crate) fn output_bytes(&self) -> usize {
        self.unsent_bytes() + self.long_reply.as_ref().map_or(0, |long| long.memory())
    }

    /// Bytes of replies that have not left yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        (self.output_end() - self.taken) as usize + self.held.len() + self.in_flight
    }

    /// Nothing is left to send.
    pub(crate) fn is_drained(&self) -> bool {
        self.output_bytes() == 0 && self.long_reply.is_none()
    }

    /// A wait is over.
    pub(crate) fn unblock(&mut self) {
        self.blocked = None;
        self.session.info.blocked.store(false, Relaxed);
        self.session.info.times_out.store(false, Relaxed);
        *self.session.info.claim.lock() = None;
    }

    /// The wait for the log, if that is what it waits for.
    pub(crate) fn log_wait(&self) -> Option<&LogWait> {
        match &self.blocked {
            Some(Blocked::Log(wait)) => Some(wait),
            _ => None,
        }
    }

    /// Who waits for a key in its name.
    pub(crate) fn waiter(&self) -> Option<&Arc<Waiter>> {
        match &self.blocked {
            Some(Blocked::Keys(waiter)) => Some(waiter),
            _ => None,
        }
    }

    /// Lends the bytes at `argument` of the input, which belong to a request that ends at `end`; what
    /// stands behind that is parsed again.
    pub(crate) fn lend(&mut self, argument: Range<usize>, end: usize) -> Lent {
        self.rewind(end);
        if self.input.len() - end > argument.len() {
            // Copying the rest would take longer.
            return Lent::of(self.input[argument].to_vec());
        }
        let rest = self.input.split_off(end);
        self.consumed = 0;
        Lent { bytes: std::mem::replace(&mut self.input, rest), range: argument }
    }

    /// The request at `start` of the input is to be run again, and so to be parsed again, as is what
    /// stands behind it.
    pub(crate) fn rewind(&mut self, start: usize) {
        self.consumed = start;
        self.parser = Parser::new();
    }

    /// May run its next request.
    pub(crate) fn is_runnable(&self) -> bool {
        self.blocked.is_none()
            && self.long_reply.is_none()
            && self.computing.is_none()
            && !self.paused
            && !self.awaits_log_room
            && !self.closing
            && !self.closed
            && !self.aborted
    }

    /// Puts it at the end of the line of connections with something to run.
    #[inline]
    pub(crate) fn make_ready(&mut self, ready: &mut VecDeque<u32>) {
        if !self.in_ready {
            self.in_ready = true;
            ready.push_back(self.conn.slot);
        }
    }

    /// Puts it on the worker's list of connections whose output or state changed.
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
}
