//! The replies of one connection: what is written, what may leave, what is left to be made.
//!
//! ```text
//! output  [ passed the gate, to be sent | waits at the gate: (end, LSN) ... ]   + one in flight
//!         [ queued: full buffers, parts of long strings ... ][ the buffer being written ]
//! ```
//!
//! **Invariant:** `taken <= sendable <= the ends of the marks <= the output's end`, each only grows.

use crate::positions::Positions;
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::long::slices::Block;
use ladon_net::Outgoing;
use ladon_record::{Gate, Lsn};
use std::collections::VecDeque;

/// Replies up to `end` may leave when `gate` has passed `lsn`.
struct Mark {
    end: u64,
    lsn: Lsn,
    gate: Gate,
    /// When they were made, monotonic nanoseconds.
    since_ns: u64,
}

/// Waiting replies of more bytes than this are not overtaken.
const OVERTAKEN_BYTES_MAX: usize = 16 << 10;

#[derive(Default)]
pub(crate) struct Replies {
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
    pub(crate) long: Option<Box<LongReply>>,
    /// A part of it is in the output. Before that, requests of IPROTO need not wait.
    pub(crate) long_has_begun: bool,
    /// What it depends on, of one that did not begin with its request.
    pub(crate) long_depends: Lsn,
    /// Messages from other threads that arrived in the middle of a reply.
    pub(crate) held: Vec<u8>,
}

impl Replies {
    /// Checks that the counts agree.
    pub(crate) fn assert_sound(&self) {
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

    /// Closes the group of replies written so far. They may leave when `gate` has passed what they
    /// depend on. No later reply overtakes an earlier one but by [`Replies::overtake`].
    #[inline]
    pub(crate) fn mark(&mut self, gate: Gate, positions: Positions, now_ns: u64) {
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
        let lsn = std::mem::take(&mut self.depends);
        self.marks.push_back(Mark { end, lsn, gate, since_ns: now_ns });
    }

    /// Closes the group of replies up to `end` of the output under their own gate, whatever gate
    /// later replies have.
    #[cold]
    pub(crate) fn mark_up_to(&mut self, end: usize, gate: Gate, now_ns: u64) {
        let end = self.output_start + end as u64;
        if end > self.marked() {
            let lsn = std::mem::take(&mut self.depends);
            self.marks.push_back(Mark { end, lsn, gate, since_ns: now_ns });
        }
    }

    /// Releases replies that the gate has passed since the last call. `waited` gets when each group
    /// of them was made.
    pub(crate) fn advance(&mut self, positions: Positions, mut waited: impl FnMut(u64)) {
        while let Some(mark) = self.marks.front() {
            if !positions.passed(mark.gate, mark.lsn) {
                return;
            }
            self.sendable = mark.end;
            waited(mark.since_ns);
            self.marks.pop_front();
        }
    }

    /// Moves a reply, the end of the output from `start` on, in front of all replies that wait at
    /// their gate, if any do; the reply itself depends on nothing that `gate` has not passed. It
    /// stays where it is behind long replies, so that the bytes which move are few.
    #[inline]
    pub(crate) fn overtake(
        &mut self,
        start: usize,
        gate: Gate,
        positions: Positions,
        waited: impl FnMut(u64),
    ) {
        self.advance(positions, waited);
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
        self.long = None;
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

    /// As `deliver`, of a message in RESP2; if `is_push`, its first byte is that of a push.
    pub(crate) fn deliver_push(&mut self, bytes: &[u8], is_push: bool) {
        let out = if self.is_mid_reply() { &mut self.held } else { &mut self.output };
        let start = out.len();
        out.extend_from_slice(bytes);
        if is_push {
            out[start] = b'>';
        }
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
        self.sendable != self.taken || self.long.is_some()
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

    /// Memory of its replies: unsent bytes, and what the rest of a long reply needs.
    pub(crate) fn output_bytes(&self) -> usize {
        self.unsent_bytes() + self.long.as_ref().map_or(0, |long| long.memory())
    }

    /// Unsent reply bytes.
    pub(crate) fn unsent_bytes(&self) -> usize {
        (self.output_end() - self.taken) as usize + self.held.len() + self.in_flight
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_drained(&self) -> bool {
        self.output_bytes() == 0 && self.long.is_none()
    }

    /// Whether bytes of a reply are on their way that is not made to its end.
    pub(crate) fn is_mid_reply(&self) -> bool {
        self.long.is_some() && self.long_has_begun
    }

    /// Where an invalidation goes: after every reply that may show an older value. `is_served`: a
    /// wait was served, and its reply is on its way from another thread.
    pub(crate) fn behind(&mut self, is_served: bool) -> &mut Vec<u8> {
        if self.is_mid_reply() || is_served { &mut self.held } else { &mut self.output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_reply_that_begins_in_a_later_turn_waits_for_what_its_command_has_found() {
        let mut replies = Replies::default();
        let positions = Positions::new(Lsn(4), Lsn(3), Lsn(3));
        replies.depends = Lsn(4);
        replies.mark(Gate::Fsync, positions, 0);
        replies.deliver(b"found ");
        replies.mark(Gate::Fsync, positions, 0);
        assert!(!replies.has_sendable());
        replies.advance(Positions::new(Lsn(4), Lsn(4), Lsn(4)), |_| ());
        assert_eq!(replies.take_sendable(Vec::new).as_deref(), Some(&b"found "[..]));
    }

    #[test]
    fn what_has_not_passed_the_gate_is_replaced_up_to_the_middle_of_a_block() {
        let positions = Positions::new(Lsn(4), Lsn(3), Lsn(3));
        for kept in 0..9u64 {
            let mut replies = Replies::default();
            replies.deliver(b"$5\r\n");
            let whole = Arc::new(b"-12345-".to_vec());
            replies.add_block(Block { whole, range: 1..6 }, Vec::new);
            replies.deliver(b"\r\n");
            replies.depends = Lsn(4);
            replies.mark(Gate::Fsync, positions, 0);
            assert!(!replies.has_sendable());
            replies.sendable = kept;
            replies.replace_waiting().extend_from_slice(b"-ERR");
            replies.all_is_sendable();
            let mut sent = Vec::new();
            while let Some(outgoing) = replies.take_sendable(Vec::new) {
                sent.extend_from_slice(&outgoing);
                replies.in_flight = 0;
            }
            assert_eq!(sent, [&b"$5\r\n12345\r\n"[..kept as usize], b"-ERR"].concat());
        }
    }

    #[test]
    fn the_rest_of_a_reply_comes_before_what_came_meanwhile() {
        let mut replies = Replies::default();
        let positions = Positions::new(Lsn(4), Lsn(3), Lsn(3));
        replies.deliver(b"shown ");
        replies.mark(Gate::Fsync, positions, 0);
        replies.deliver(b"unsafe ");
        replies.depends = Lsn(4);
        replies.mark(Gate::Fsync, positions, 0);
        replies.go_on_with(b"rest ");
        assert_eq!(replies.take_sendable(Vec::new).as_deref(), Some(&b"rest shown "[..]));
        replies.in_flight = 0;
        assert!(!replies.has_sendable());
        replies.advance(Positions::new(Lsn(4), Lsn(4), Lsn(4)), |_| ());
        assert_eq!(replies.take_sendable(Vec::new).as_deref(), Some(&b"unsafe "[..]));
    }

    #[test]
    fn a_reply_overtakes_those_that_wait() {
        let mut replies = Replies::default();
        let positions = Positions::new(Lsn(4), Lsn(3), Lsn(3));
        let reply = |replies: &mut Replies, bytes: &[u8], depends| {
            let start = replies.output.len();
            replies.deliver(bytes);
            replies.depends = replies.depends.max(depends);
            if positions.passed(Gate::Fsync, depends) {
                replies.overtake(start, Gate::Fsync, positions, |_| ());
            }
        };
        reply(&mut replies, b"first ", Lsn(3));
        reply(&mut replies, b"waits ", Lsn(4));
        reply(&mut replies, b"second ", Lsn(2));
        replies.mark(Gate::Fsync, positions, 0);
        reply(&mut replies, b"third ", Lsn::ZERO);
        reply(&mut replies, b"waits too ", Lsn(5));
        reply(&mut replies, b"fourth ", Lsn(3));
        replies.mark(Gate::Fsync, positions, 0);
        replies.assert_sound();
        let sent = |replies: &mut Replies| {
            let sent = replies.take_sendable(Vec::new);
            replies.in_flight = 0;
            sent.map(|sent| String::from_utf8_lossy(&sent).into_owned())
        };
        assert_eq!(sent(&mut replies).as_deref(), Some("second third fourth "));
        assert_eq!(sent(&mut replies), None);
        replies.advance(Positions::new(Lsn(4), Lsn(4), Lsn(4)), |_| ());
        assert_eq!(sent(&mut replies).as_deref(), Some("first waits "));
        assert_eq!(sent(&mut replies), None);
        replies.advance(Positions::new(Lsn(5), Lsn(5), Lsn(5)), |_| ());
        assert_eq!(sent(&mut replies).as_deref(), Some("waits too "));
    }
}
