//! One connection of an IO thread: its buffers, and the state of its replies.
//!
//! ```text
//! input   [ consumed | requests ... | part of a request ]
//! replies [ passed the gate | waits at the gate ... ]     (`replies.rs`)
//! ```

mod replies;

use crate::dialect::Dialect;
use crate::input;

use crate::protocol::Protocol;
use crate::queues::{WaitSet, WaitsFor};

use ladon_engine::Waiter;
use ladon_identity::User;
use ladon_kernel::client::clients::CertificateNames;
use ladon_kernel::client::session::{Blocked, LogWait, Session};
use ladon_kernel::leader_reads::{Ticket, Unanswered};
use ladon_kernel::long::aside_job::Lent;
use ladon_kernel::node::Node;
use ladon_log::Log;
use ladon_net::ConnId;
use ladon_record::{Gate, Lsn};
use ladon_resp::Proto;
pub(crate) use replies::Replies;
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
    /// The names in the certificate that the client has shown, if it has; it was verified.
    pub certificate: Option<Box<CertificateNames>>,
    /// Who it is, if another part of the server has let somebody in and speaks for that user.
    pub user: Option<Arc<User>>,
    /// Memory that its transport holds.
    pub transport_bytes: usize,
}

/// How often it is asked whether a client has left that is not read.
const LOOK_EVERY_MS: u64 = 10;

pub(crate) struct Connection {
    pub(crate) conn: ConnId,
    pub(crate) session: Session,
    /// What it speaks.
    pub(crate) dialect: Dialect,
    pub(crate) replies: Replies,
    /// The queues that it is in.
    pub(crate) waits: WaitSet,
    pub(crate) input: Vec<u8>,
    /// Bytes of `input` whose requests have run; they are removed when room is needed.
    pub(crate) consumed: usize,
    /// Further bytes expected of an incomplete request, for which to make room.
    pub(crate) expected: usize,
    /// Present while a job for the connection's request runs. Set to true once no client waits for
    /// the result.
    pub(crate) computing: Option<Arc<AtomicBool>>,
    /// What the next request waits for.
    pub(crate) blocked: Option<Blocked>,
    /// What the reply to a timed-out wait for a key depends on: the key's absence.
    pub(crate) blocked_depends: Lsn,
    /// Other requests of it ran just before.
    pub(crate) had_turn: bool,
    /// `CLIENT PAUSE` has held back the next request.
    pub(crate) postponed: bool,
    /// The last wait for the leader's position.
    pub(crate) held_read: Option<Box<HeldRead>>,
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
    /// Bytes that a program has made for it and it has not taken, as last counted by its thread.
    pub(crate) counted_untaken: usize,
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
    /// The peer will send nothing more.
    pub(crate) input_ended: bool,
    /// When it was last asked whether that is so, while reading was paused. Unix milliseconds.
    pub(crate) looked_for_end_ms: u64,
    /// When the output first exceeded the soft limit, Unix milliseconds; 0 while it does not.
    pub(crate) over_soft_limit_ms: u64,
    /// Start of the idle time that the last check found to be too long.
    pub(crate) seen_idle_since_ms: u64,
}

/// A wait for the leader's position.
pub(crate) struct HeldRead {
    pub(crate) ticket: Ticket,
    /// When it began, monotonic nanoseconds.
    pub(crate) since_ns: u64,
    /// Bytes that arrived after the ticket was taken: it is not one for them.
    pub(crate) later_bytes: usize,
    /// The position has not come.
    pub(crate) refused: Option<Unanswered>,
}

impl Connection {
    pub(crate) fn new(conn: ConnId, session: Session, dialect: Dialect) -> Connection {
        Connection {
            conn,
            session,
            dialect,
            replies: Replies::default(),
            waits: WaitSet::default(),
            input: Vec::new(),
            consumed: 0,
            expected: 0,
            computing: None,
            blocked: None,
            blocked_depends: Lsn::ZERO,
            postponed: false,
            held_read: None,
            input_waits: false,
            times_out_ms: None,
            held_back: false,
            is_full_stranger: false,
            counted_output: 0,
            counted_untaken: 0,
            discarded: 0,
            receive_paused: false,
            had_turn: false,
            closing: false,
            closed: false,
            aborted: false,
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
            self.replies.assert_sound();
        }
    }

    /// Where an invalidation goes: after every reply that may show an older value.
    pub(crate) fn behind_replies(&mut self) -> &mut Vec<u8> {
        // A wait that was served: the reply is on its way from another thread.
        let is_served = self.waiter().is_some_and(|waiter| !waiter.claim.is_free());
        self.replies.behind(is_served)
    }

    /// Notes what a message depends on that was appended. At a node that follows, at the gate quorum,
    /// what its group has committed by now does not wait for the word of the leader alone: a message
    /// is no answer, and comes when it comes.
    pub(crate) fn message_depends(&mut self, depends: Lsn, node: &Node, log: &Log) {
        let is_quorum =
            || self.session.gate.unwrap_or_else(|| node.settings.gate()) == Gate::Quorum;
        if log.is_led_elsewhere() && depends <= log.committed() && is_quorum() {
            return;
        }
        self.replies.depends = self.replies.depends.max(depends);
    }

    /// Appends a message in RESP2; over RESP3 its first byte is that of a push.
    pub(crate) fn deliver_push(&mut self, bytes: &[u8]) {
        self.replies.deliver_push(bytes, self.session.proto == Proto::Resp3);
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
        if let Some(held) = &mut self.held_read {
            held.later_bytes += bytes.len();
        }
        let is_full = self.input.len() + bytes.len() > self.input.capacity();
        if is_full && self.consumed >= self.unread() {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        input::append(&mut self.input, bytes, &mut self.expected);
    }

    /// The ticket of a request of the input that ends at `end`, if it has one.
    pub(crate) fn ticket_of(&self, end: usize) -> Option<Ticket> {
        let held = self.held_read.as_deref()?;
        (self.input.len().saturating_sub(end) >= held.later_bytes).then_some(held.ticket)
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
        self.dialect.read_again();
    }

    /// Whether the next request may run.
    pub(crate) fn is_runnable(&self) -> bool {
        self.blocked.is_none()
            && !self.replies.is_mid_reply()
            && self.computing.is_none()
            && !self.waits.holds_back()
            && !self.input_waits
            && !self.closing
            && !self.closed
            && !self.aborted
    }

    /// Whether the input may contain complete requests that wait; otherwise it holds the beginning
    /// of one.
    pub(crate) fn has_requests_waiting(&self) -> bool {
        let is_queued = match self.dialect.iproto().and_then(|it| it.set_aside.as_deref()) {
            None => self.waits.has(WaitsFor::Turn),
            Some(others) => {
                others.holds_input || self.waits.has(WaitsFor::Turn) && !others.input_is_drained
            }
        };
        is_queued || self.held_back || self.is_full_stranger || !self.is_runnable()
    }

    /// Whether to ask now whether the client has left, which nothing reports while it is not read:
    /// one of its requests would not be done then.
    pub(crate) fn may_have_left(&mut self, now_ms: u64) -> bool {
        let cares = self.dialect.iproto().is_some_and(|iproto| iproto.is_unfinished());
        let asks = cares && now_ms.abs_diff(self.looked_for_end_ms) >= LOOK_EVERY_MS;
        if asks {
            self.looked_for_end_ms = now_ms;
        }
        asks
    }
}
