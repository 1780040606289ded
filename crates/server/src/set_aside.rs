//! Requests of a connection that are not done, and let later ones of it pass: those of other
//! streams, and of none.
//!
//! ```text
//! input       [ consumed | PING | REPLACE in 8 | ... ]               run as they come
//! set aside   [ COMMIT in 7, a slice in each turn ] [ BEGIN in 7 ]   behind the COMMIT
//! ```
//!
//! They have left the input, so that what follows them there can run. There are at most
//! [`REQUESTS_MAX`] of them, and about as many bytes as may wait in the input before its reading
//! pauses. What finds no room stays in the input, and everything waits behind it.
//!
//! **Invariant:** a request that an earlier one holds ([`Order::holds`]) does not run.

use ladon_kernel::leader_reads::Ticket;
use ladon_tarantool::{Order, Unfinished};
use std::collections::VecDeque;

/// So many may be set aside: a search through them is short.
pub(crate) const REQUESTS_MAX: usize = 128;

/// When a request that was set aside runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// At the connection's next turn.
    Ready,
    /// Once no earlier one holds it.
    Behind,
    /// Once the log has room, or a moment after a commit has asked writers to wait.
    AwaitsWrite,
    /// Once the connection's long reply has been made.
    AwaitsReply,
    /// Once the program has answered it.
    AwaitsProgram,
}

/// A request that was set aside.
pub(crate) struct Waiting {
    /// Its place among the connection's.
    number: u64,
    pub(crate) packet: Box<[u8]>,
    order: Order,
    state: State,
    /// It is done in slices.
    is_sliced: bool,
    /// Its ticket for the leader's position, if it has one.
    pub(crate) ticket: Option<Ticket>,
    /// What it has done so far.
    pub(crate) unfinished: Unfinished,
}

/// A connection's.
#[derive(Default)]
pub(crate) struct SetAside {
    /// In the order in which they came.
    requests: VecDeque<Waiting>,
    next_number: u64,
    bytes: usize,
    /// The last one that did a slice: the others have their turns first.
    last_slice: u64,
    /// The stream whose long reply is being made, which its next request waits for; 0 for none.
    reply_stream: u64,
    /// The input's next request waits here until one of these is done.
    pub(crate) holds_input: bool,
    /// The input had no further whole request when it was last looked at.
    pub(crate) input_is_drained: bool,
    /// One of these ran later than the last request of the input.
    pub(crate) had_turn: bool,
}

impl Waiting {
    pub(crate) fn is_sliced(&self) -> bool {
        self.is_sliced
    }

    /// Whether a later request waits for this one.
    fn holds(&self, later: Order) -> bool {
        self.order.holds(later, self.is_prepared())
    }

    fn is_prepared(&self) -> bool {
        self.is_sliced || self.unfinished.is_some()
    }
}

impl SetAside {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a packet of this length finds room.
    pub(crate) fn has_room(&self, length: usize, bytes_max: usize) -> bool {
        self.requests.len() < REQUESTS_MAX && self.bytes + length <= bytes_max
    }

    /// Whether no more is set aside than there is room for.
    pub(crate) fn is_bounded(&self, bytes_max: usize) -> bool {
        let bytes: usize = self.requests.iter().map(|it| it.packet.len()).sum();
        bytes == self.bytes && bytes <= bytes_max && self.requests.len() <= REQUESTS_MAX
    }

    /// Whether a request that comes now waits for one that is set aside.
    pub(crate) fn holds(&self, order: Order) -> bool {
        self.holds_from(self.requests.len(), order)
    }

    /// Whether the first `count` hold a request, or the long reply does.
    fn holds_from(&self, count: usize, order: Order) -> bool {
        self.reply_stream != 0 && self.reply_stream == order.stream()
            || self.requests.iter().take(count).any(|earlier| earlier.holds(order))
    }

    /// Sets a request aside behind all others.
    pub(crate) fn push(
        &mut self,
        packet: &[u8],
        order: Order,
        (state, is_sliced): (State, bool),
        (unfinished, ticket): (Unfinished, Option<Ticket>),
    ) {
        self.bytes += packet.len();
        self.next_number += 1;
        self.requests.push_back(Waiting {
            number: self.next_number,
            packet: packet.into(),
            order,
            state,
            is_sliced,
            ticket,
            unfinished,
        });
    }

    /// Whether one may run.
    pub(crate) fn is_ready(&self) -> bool {
        self.requests.iter().any(|it| it.state == State::Ready)
    }

    /// Takes out one that may run, among those in slices only if `may_slice`. It is put back with
    /// [`SetAside::put_back`] or is [`SetAside::done`].
    pub(crate) fn take(&mut self, may_slice: bool) -> Option<Waiting> {
        let ready = |it: &Waiting| it.state == State::Ready;
        let is_next = |it: &Waiting| ready(it) && it.is_sliced && it.number > self.last_slice;
        let first = |is_it: &dyn Fn(&Waiting) -> bool| self.requests.iter().position(is_it);
        let slice = || first(&is_next).or_else(|| first(&|it| ready(it) && it.is_sliced));
        let at = may_slice.then(slice).flatten();
        // Answers make room for those that were given back, which would be given back again.
        let answered = || first(&|it| ready(it) && it.unfinished.has_answer());
        let at = at.or_else(answered).or_else(|| first(&|it| ready(it) && !it.is_sliced))?;
        let taken = self.requests.remove(at)?;
        if taken.is_sliced {
            self.last_slice = taken.number;
        }
        Some(taken)
    }

    /// One that was taken out is not done yet.
    pub(crate) fn put_back(&mut self, mut request: Waiting, (state, is_slice): (State, bool)) {
        // As far as that can be seen: its work was exchanged meanwhile.
        let (order, is_first) = (request.order, !request.is_sliced);
        request.is_sliced |= is_slice;
        request.state = state;
        let has_begun = request.is_prepared();
        let at = self.requests.partition_point(|it| it.number < request.number);
        self.requests.insert(at, request);
        if has_begun && is_first {
            self.wake(|it| order.holds(it.order, false));
        }
    }

    /// One that was taken out is done: those behind it may run.
    pub(crate) fn done(&mut self, request: &Waiting) {
        self.bytes -= request.packet.len();
        self.holds_input = false;
        self.wake(|it| request.order.holds(it.order, false));
    }

    /// The long reply has been made.
    pub(crate) fn reply_is_made(&mut self) {
        let stream = std::mem::take(&mut self.reply_stream);
        self.holds_input = false;
        for request in &mut self.requests {
            if request.state == State::AwaitsReply {
                request.state = State::Ready;
            }
        }
        self.wake(|it| stream != 0 && it.order.stream() == stream);
    }

    /// Those that waited behind something that is over run, unless they wait behind more.
    fn wake(&mut self, waited_for_it: impl Fn(&Waiting) -> bool) {
        for at in 0..self.requests.len() {
            let request = &self.requests[at];
            let may_run = request.state == State::Behind && waited_for_it(request);
            if may_run && !self.holds_from(at, request.order) {
                self.requests[at].state = State::Ready;
            }
        }
    }

    /// A long reply to a request of this stream is being made.
    pub(crate) fn reply_begins(&mut self, order: Order) {
        self.reply_stream = order.stream();
    }

    /// Who waits to write looks again.
    pub(crate) fn write_again(&mut self) {
        for request in &mut self.requests {
            if request.state == State::AwaitsWrite {
                request.state = State::Ready;
            }
        }
    }

    /// The program has answered some of those that wait for it.
    pub(crate) fn program_answered(&mut self) {
        for request in &mut self.requests {
            if request.state == State::AwaitsProgram && request.unfinished.is_answered() {
                request.state = State::Ready;
            }
        }
    }

    /// Whether nothing is left that later requests may have to wait for.
    pub(crate) fn is_over(&self) -> bool {
        // One that is taken out counts as well.
        self.bytes == 0 && self.reply_stream == 0
    }

    /// Bytes of memory that what they have prepared of definitions takes.
    pub(crate) fn prepared_bytes(&self) -> usize {
        self.requests.iter().map(|it| it.unfinished.prepared_bytes()).sum()
    }

    /// Whether one of them has left something that may take long to drop.
    pub(crate) fn has_unfinished(&self) -> bool {
        self.requests.iter().any(|it| it.unfinished.is_some())
    }
}

#[cfg(test)]
mod tests;
