//! Connections that wait for a key or for the log.
//!
//! A wait ends when some thread takes its claim: the thread that serves the waiter, this thread at
//! the deadline, `CLIENT UNBLOCK`, or the end of the connection. Connections that wait for a key
//! are on no list that a turn scans.

use super::{Net, Worker};
use crate::connection::Connection;
use crate::queues::WaitsFor;
use crate::waiting;
use ladon_engine::Waiter;
use ladon_kernel::blocking::{self, KeyWait, ROLE_CHANGED, UNBLOCKED};
use ladon_kernel::client::session::{Blocked, ReplyMode, Session};
use ladon_kernel::message::Message;
use ladon_kernel::message::{Answer, Unserved};
use ladon_record::{Gate, Lsn};
use ladon_resp::Reply;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Worker {
    /// Blocks a connection on its current request.
    pub(super) fn block(&mut self, slot: u32, blocked: Blocked) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let info = &connection.session.info;
        info.blocked.store(true, Relaxed);
        *info.claim.lock() = Some(Arc::clone(blocked.claim()));
        let deadline_ms = deadline_of(&blocked);
        info.times_out.store(deadline_ms.is_some(), Relaxed);
        self.deadlines.extend(deadline_ms.map(|deadline_ms| (deadline_ms, slot)));
        self.deadlines.extend(next_look_of(&blocked).map(|look_ms| (look_ms, slot)));
        connection.blocked = Some(blocked);
    }

    /// Ends waits whose deadline had passed in the previous turn already, a limited number per
    /// turn. The sockets were read in between, so that a push which arrived in time serves the wait
    /// even if this thread could not run at that moment.
    pub(super) fn end_overdue(&mut self) {
        /// If more are overdue, the next turn follows at once.
        const OVERDUE_MAX: usize = 256;
        let overdue_ms = std::mem::replace(&mut self.turn_before_ms, self.now_ms);
        for _ in 0..OVERDUE_MAX {
            let Some(&(deadline_ms, slot)) = self.deadlines.first() else { return };
            if deadline_ms >= overdue_ms {
                return;
            }
            self.deadlines.pop_first();
            let connection = self.connections[slot as usize].as_ref();
            if connection.is_some_and(|c| c.times_out_ms == Some(deadline_ms)) {
                self.end_transactions(slot);
                continue;
            }
            let blocked = connection.and_then(|c| c.blocked.as_ref());
            // The connection may wait for something else by now. If its wait was served meanwhile,
            // the answer is on its way.
            let is_it = |blocked: &&Blocked| deadline_of(blocked) == Some(deadline_ms);
            if blocked.filter(is_it).is_some_and(|blocked| blocked.claim().take()) {
                self.end_unserved(slot, Unserved::Timeout);
            } else if let Some(Blocked::Keys(waiter)) = blocked
                && next_look_of_keys(waiter) == Some(deadline_ms)
            {
                // It may take as long as a command: one in a turn.
                return self.look_again(slot, &Arc::clone(waiter));
            }
        }
    }

    /// A waiting client may have something to get because time went by.
    fn look_again(&mut self, slot: u32, waiter: &Arc<Waiter>) {
        if !waiter.claim.is_free() {
            return;
        }
        let mut thread = thread_parts!(self);
        blocking::look_again(&mut thread, waiter);
        if waiter.claim.is_free() {
            self.deadlines.extend(next_look_of_keys(waiter).map(|look_ms| (look_ms, slot)));
        }
    }

    /// Handles a `CLIENT UNBLOCK` that has taken the claim of a connection's wait.
    pub(super) fn end_wait(&mut self, client: u64, slot: u32, how: Unserved) {
        let Some(connection) = &self.connections[slot as usize] else { return };
        if connection.session.info.id == client && connection.blocked.is_some() {
            self.end_unserved(slot, how);
        }
    }

    /// Answers a wait whose claim was taken here without a value to deliver.
    pub(super) fn end_unserved(&mut self, slot: u32, how: Unserved) {
        let positions = self.positions();
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let before = connection.replies.output.len();
        match connection.blocked.clone() {
            None => return,
            Some(Blocked::Keys(waiter)) => {
                let mut thread = thread_parts!(self);
                blocking::leave(&mut thread, &waiter);
                let (session, out) = (&connection.session, &mut connection.replies.output);
                blocking::answer_unserved(
                    &self.node,
                    &mut self.bench.local,
                    session,
                    &waiter,
                    how,
                    out,
                );
                connection.replies.depends =
                    connection.replies.depends.max(connection.blocked_depends);
            }
            Some(Blocked::Log(_)) if matches!(how, Unserved::Error | Unserved::Follows) => {
                let text = if how == Unserved::Error { UNBLOCKED } else { ROLE_CHANGED };
                Reply::new(&mut connection.replies.output, connection.session.proto).error(text);
                self.bench.local.stats.count_error(text.as_bytes());
            }
            Some(Blocked::Log(wait)) => waiting::answer(connection, &wait, positions, &self.log),
        }
        silence(connection, before);
        self.resume(slot);
    }

    /// Delivers the replies to waiters that this thread has served: to its own connections at once,
    /// to others directly if the gate has passed them, else through their threads.
    pub(super) fn deliver_answers(&mut self) {
        for mut answer in std::mem::take(&mut self.bench.local.answers) {
            if answer.thread == self.bench.local.thread {
                self.answer(answer);
                continue;
            }
            let waiter = Arc::clone(&answer.waiter);
            let wait = KeyWait::of(&waiter);
            let gate = wait.gate.unwrap_or(self.node.settings.gate().max(self.turn_gate));
            let passed = self.has_passed(gate, answer.depends);
            let owner = &self.node.threads[answer.thread];
            let Some(send) = (if passed { wait.direct_reply.take() } else { None }) else {
                owner.send(Message::Answer(answer));
                continue;
            };
            Self::note_everysec(&mut self.everysec_lsn, gate, answer.depends);
            let sent = send(&answer.reply).min(answer.reply.len());
            self.bench.local.stats.net_output_bytes.add(sent as u64);
            self.bench.local.stats.writes_processed.add(1);
            answer.reply.drain(..sent);
            let is_whole = answer.reply.is_empty();
            if is_whole {
                wait.show_served();
            }
            owner.leave(Message::Answer(answer));
            if wait.direct_reply.done() || !is_whole {
                owner.wake();
            }
        }
    }

    /// Whether the gate has passed what a reply depends on. Writes the log first if that helps.
    fn has_passed(&self, gate: Gate, depends: Lsn) -> bool {
        if self.early_hand_over_canary {
            return true;
        }
        if matches!(gate, Gate::Write | Gate::EverySec) && self.log.written() < depends {
            // A failure is in the log's state.
            let _ = self.log.write_published();
        }
        self.positions().passed(gate, depends)
    }

    /// Lets a serving thread send the reply directly, if no output precedes it and no work follows
    /// it.
    pub(super) fn open_direct_reply(connection: &Connection, net: &mut impl Net) {
        if let Some(waiter) = connection.waiter()
            && connection.replies.is_drained()
            && connection.unread() == 0
            && matches!(connection.session.reply_mode, ReplyMode::On)
        {
            KeyWait::of(waiter).direct_reply.open(|| net.send_now(connection.conn));
        }
    }

    /// Ends the permission to send directly. Called before something is sent on the connection, and
    /// when the connection has work besides its wait. Returns false if another thread is sending a
    /// reply; nothing may then be sent before the message about that reply is read.
    pub(super) fn close_direct_reply(connection: &Connection) -> bool {
        connection.waiter().is_none_or(|waiter| KeyWait::of(waiter).direct_reply.close())
    }

    /// Delivers the answer to a connection whose wait was served.
    pub(super) fn answer(&mut self, answer: Answer) {
        let Some(connection) = &mut self.connections[answer.slot as usize] else { return };
        // The waiter may be gone.
        let is_for = |waiter| Arc::ptr_eq(waiter, &answer.waiter);
        if !connection.waiter().is_some_and(is_for) {
            return;
        }
        if KeyWait::of(&answer.waiter).direct_reply.was_taken() {
            // The rest of the reply that was sent directly precedes everything in the output.
            connection.replies.go_on_with(&answer.reply);
        } else {
            let before = connection.replies.output.len();
            connection.replies.output.extend_from_slice(&answer.reply);
            silence(connection, before);
        }
        let held = connection.held_read.as_deref();
        if !Self::is_of_follower(&self.node, connection.session.gate, held) {
            connection.replies.depends = connection.replies.depends.max(answer.depends);
        }
        if let Some(lsn) = answer.wrote {
            connection.session.last_write = lsn;
        }
        self.forget_deadline(answer.slot);
        self.resume(answer.slot);
    }

    /// Cancels the wait of a connection that is about to close.
    pub(super) fn withdraw(&mut self, slot: u32) {
        self.forget_deadline(slot);
        self.forget_timeout(slot);
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let Some(blocked) = connection.blocked.take() else { return };
        connection.unblock();
        // It leaves the key's queue in either case; a serving thread has already removed the
        // waiter.
        blocked.claim().take();
        if let Blocked::Keys(waiter) = blocked {
            let mut thread = thread_parts!(self);
            blocking::leave(&mut thread, &waiter);
        }
    }

    pub(super) fn forget_deadline(&mut self, slot: u32) {
        let Some(connection) = &self.connections[slot as usize] else { return };
        let Some(blocked) = &connection.blocked else { return };
        for at_ms in [deadline_of(blocked), next_look_of(blocked)].into_iter().flatten() {
            self.deadlines.remove(&(at_ms, slot));
        }
    }

    /// Continues with a connection's next request.
    fn resume(&mut self, slot: u32) {
        self.forget_deadline(slot);
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        connection.unblock();
        connection.replies.release_held();
        self.queues.push(WaitsFor::Release, connection);
        self.queues.push(WaitsFor::Turn, connection);
    }
}

/// Deadline of a wait in Unix milliseconds.
fn deadline_of(blocked: &Blocked) -> Option<u64> {
    match blocked {
        Blocked::Log(wait) => wait.deadline_ms,
        Blocked::Keys(waiter) => KeyWait::of(waiter).deadline_ms,
    }
}

/// When to look again whether a wait is over, Unix milliseconds.
fn next_look_of(blocked: &Blocked) -> Option<u64> {
    match blocked {
        Blocked::Log(_) => None,
        Blocked::Keys(waiter) => next_look_of_keys(waiter),
    }
}

fn next_look_of_keys(waiter: &Waiter) -> Option<u64> {
    KeyWait::of(waiter).next_look_ms()
}

/// Removes a reply, starting at `before`, that the client does not want (`CLIENT REPLY`).
pub(super) fn silence(connection: &mut Connection, before: usize) {
    let Session { reply_mode, .. } = &mut connection.session;
    match reply_mode {
        ReplyMode::On => return,
        ReplyMode::Skip => *reply_mode = ReplyMode::On,
        ReplyMode::Off | ReplyMode::SkipNext => {}
    }
    connection.replies.output.truncate(before);
}
