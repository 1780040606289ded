//! Sends replies when the gate has passed what they depend on, and enforces the limits on a
//! connection's buffers.

use super::blocked::silence;
use super::buffers::Buffers;
use super::{Net, Planted, Worker};
use crate::connection::Connection;
use crate::gate_waits::GateWaits;
use crate::input;
use crate::positions::Positions;
use crate::queues::WaitsFor;
use crate::waiting::{self, Awaited};
use ladon_kernel::node::Node;
use ladon_record::Gate;
use ladon_settings::OutputClass;
use std::sync::atomic::Ordering::Relaxed;

/// Output behind a buffer in flight is queued as a separate buffer at this size.
const PUT_BY_BYTES: usize = 256 << 10;

impl Worker {
    /// Second half of a turn: sends what the gate has passed, and registers the rest with the log.
    pub fn release(&mut self, net: &mut impl Net) {
        let mut positions = self.positions();
        // The default gate, for connections without their own. If it changed during the turn, the
        // stricter one counts for requests from both sides of the change.
        let default_gate = self.node.settings.gate().max(self.turn_gate);
        let touched = self.queues.take(WaitsFor::Release);
        let published = std::mem::take(&mut self.published);
        if self.away.is_some() {
            // A thread that holds partitions must not wait for the disk.
            self.log.write_soon();
        } else if touched.iter().any(|&slot| self.needs_write(slot, default_gate, positions)) {
            // One write for the turn, by the first thread that comes; a failure is in the log's
            // state.
            let _ = self.log.write_published();
            positions = self.positions();
        } else if published && self.planted != Planted::SkippedWakeUp {
            // No reply waits for it here, but it has to be written, and synced where that is
            // promised.
            self.log.write_soon();
        }
        let moved =
            positions.have_moved_since(self.seen) || self.awaited.have_others_moved(positions);
        self.seen = positions;
        for &slot in &touched {
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            let gate = connection.session.gate.unwrap_or(default_gate);
            let gate = if self.early_reply_canary { Gate::None } else { gate };
            let is_lax = self.planted == Planted::LaxFollower && self.log.is_led_elsewhere();
            let gate = if is_lax { gate.min(Gate::Fsync) } else { gate };
            Self::note_everysec(&mut self.everysec_lsn, gate, connection.replies.depends);
            connection.replies.mark(gate, positions, self.turn.made_ns());
            connection.waits.remove(WaitsFor::Release);
            self.settle(slot, net);
        }
        self.queues.reuse(WaitsFor::Release, touched);
        self.promise_everysec();
        // A failed sync moves no position, so waiting for one is useless.
        let is_failing = !self.queues.is_empty(WaitsFor::Gate)
            && (!self.log.accepts_writes() || self.log.is_led_elsewhere());
        if moved || self.some_wait_is_over || is_failing {
            self.look_through_waiting(net);
        } else if self.awaited != self.registered {
            self.register_awaited(net);
        }
        self.client_memory.enforce(&self.node);
        self.debug_assert_sound();
    }

    /// Whether a connection's new replies wait for a write that this thread can make itself.
    fn needs_write(&self, slot: u32, default_gate: Gate, positions: Positions) -> bool {
        let Some(connection) = &self.connections[slot as usize] else { return false };
        let gate = connection.session.gate.unwrap_or(default_gate);
        matches!(gate, Gate::Write | Gate::EverySec)
            && !positions.passed(gate, connection.replies.depends)
    }

    /// Registers with the log what the waiting connections need.
    fn register_awaited(&mut self, net: &mut impl Net) {
        self.registered = self.awaited;
        if self.awaited.register(&self.log, &self.position_waiter) {
            self.look_through_waiting(net);
        }
    }

    /// Sends what the gate has passed, until everything that still waits is registered.
    fn look_through_waiting(&mut self, net: &mut impl Net) {
        loop {
            // Read before the positions: a failed sync is final, so they do not move after it.
            let hopeless = waiting::hopeless(&self.log);
            let positions = self.positions();
            self.seen = positions;
            self.awaited = Awaited::default();
            self.some_wait_is_over = false;
            for slot in self.queues.take(WaitsFor::Gate) {
                let mut waits = GateWaits::new(&self.node, &self.bench.local.stats.gate_waits);
                let Some(connection) = &mut self.connections[slot as usize] else { continue };
                connection.waits.remove(WaitsFor::Gate);
                connection.replies.advance(positions, |since_ns| waits.count(since_ns));
                if let Some(why) = &hopeless {
                    waiting::give_up(connection, positions, why);
                }
                let for_waits = self.planted.positions_for_waits(positions);
                if let Some(wait) = connection.log_wait()
                    && waiting::is_reached(wait, for_waits, &self.log)
                    && wait.claim.take()
                {
                    let wait = wait.clone();
                    self.forget_deadline(slot);
                    let Some(connection) = &mut self.connections[slot as usize] else { continue };
                    let before = connection.replies.output.len();
                    waiting::answer(connection, &wait, for_waits, &self.log);
                    silence(connection, before);
                    connection.unblock();
                    connection.replies.mark(Gate::None, positions, self.turn.made_ns());
                    self.queues.push(WaitsFor::Turn, connection);
                }
                self.settle(slot, net);
            }
            self.registered = self.awaited;
            if !self.awaited.register(&self.log, &self.position_waiter) {
                return;
            }
        }
    }

    /// Sends what may be sent, and updates the lists that the connection is on.
    fn settle(&mut self, slot: u32, net: &mut impl Net) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        if connection.closed {
            return;
        }
        // A gate position recorded in the middle of the turn may have been passed since.
        let mut waits = GateWaits::new(&self.node, &self.bench.local.stats.gate_waits);
        connection.replies.advance(self.seen, |since_ns| waits.count(since_ns));
        let buffers = &mut self.buffers;
        if connection.replies.has_sendable() && !Self::close_direct_reply(connection) {
            // After the reply that another thread is sending; the message about it may be in the
            // inbox already.
            self.node.threads[self.bench.local.thread].wake();
        } else if let Some(buffer) = connection.replies.take_sendable(|| buffers.take()) {
            net.send(connection.conn, buffer, connection.replies.has_more_to_send());
        }
        if connection.replies.in_flight != 0 && connection.replies.output.len() >= PUT_BY_BYTES {
            // A queued buffer does not move in memory when more output follows, whatever the client
            // takes.
            connection.replies.put_output_by(|| buffers.take());
        }
        self.replies.count(connection);
        if self.replies.lets_go(connection) {
            self.queues.push(WaitsFor::Turn, connection);
        }
        let (reply, wait) = (connection.replies.awaits(), connection.log_wait());
        if let Some((gate, lsn)) = reply {
            self.awaited.add(gate, lsn);
        }
        if let Some(wait) = wait {
            // A position that was reached, but whose connection waits for something else, must not
            // be registered again: the log would answer "reached" forever.
            if wait.durable > self.seen.durable() && self.planted != Planted::UnaskedWait {
                self.awaited.add(Gate::Fsync, wait.durable);
            }
            if wait.replicas > 0 && self.log.is_of_group() {
                self.awaited.add_others(wait.written, self.seen);
            }
            self.some_wait_is_over |=
                waiting::is_reached(wait, self.planted.positions_for_waits(self.seen), &self.log);
        }
        if reply.is_some() || wait.is_some() {
            self.queues.push(WaitsFor::Gate, connection);
        }
        Self::compact(connection, &mut self.buffers);
        let is_over_limit =
            !connection.aborted && Self::is_over_limit(&self.node, connection, self.now_ms);
        let ended = connection.input_ended
            && connection.is_runnable()
            && !connection.waits.has(WaitsFor::Turn)
            && !connection.dialect.has_set_aside();
        let done = (connection.closing || ended) && connection.replies.is_drained();
        Self::look_for_end(connection, self.now_ms, net);
        // The client is gone and can receive no value.
        let is_endless = connection.replies.long.as_ref().is_some_and(|long| long.is_endless());
        let gone = connection.input_ended && (connection.waiter().is_some() || is_endless);
        // The last reply was sent; no value may be delivered after it.
        let waits_in_vain = connection.closing && connection.waiter().is_some();
        let ends = is_over_limit || connection.aborted || done || gone;
        if ends {
            connection.closed = true;
            net.close(connection.conn);
        }
        if !ends {
            Self::open_direct_reply(connection, net);
            if self.planted != Planted::ReadsOn {
                Self::regulate_reading(connection, self.pace.unread_bytes_max, net);
            }
        }
        Self::publish_info(connection, self.now_ms);
        self.client_memory.count(&self.node, &connection.session.info);
        if ends || waits_in_vain {
            self.withdraw(slot);
        }
    }

    /// Asks whether the peer has closed, which nothing reports while reading is paused.
    fn look_for_end(connection: &mut Connection, now_ms: u64, net: &mut impl Net) {
        if !connection.receive_paused {
            return;
        }
        // A wait looks once a second.
        if connection.waiter().is_some() && net.has_ended(connection.conn) {
            connection.input_ended = true;
        }
        if connection.may_have_left(now_ms) && net.has_ended(connection.conn) {
            connection.dialect.input_ended();
        }
    }

    /// An idle connection keeps no buffer.
    #[inline]
    fn compact(connection: &mut Connection, buffers: &mut Buffers) {
        if connection.replies.output.is_empty() && connection.replies.output.capacity() != 0 {
            buffers.give(std::mem::take(&mut connection.replies.output));
        }
        if connection.consumed != 0 && connection.unread() == 0 {
            buffers.give(std::mem::take(&mut connection.input));
            connection.consumed = 0;
        }
    }

    /// Whether a client's unread requests or replies exceed a limit.
    pub(super) fn is_over_limit(node: &Node, connection: &mut Connection, now_ms: u64) -> bool {
        let query_limit = node.settings.client_query_buffer_limit();
        // Several complete requests are not one that is too long: the connection is not read then.
        let is_over = query_limit != 0 && connection.unread() as u64 > query_limit;
        if is_over && !connection.has_requests_waiting() {
            let why = "its query buffer is over client-query-buffer-limit";
            Self::tell_of_closing(connection, now_ms, why);
            return true;
        }
        let output = connection.replies.output_bytes() as u64;
        if output < 16 * 1024 {
            connection.over_soft_limit_ms = 0;
            return false;
        }
        let class = match &connection.session {
            session if session.monitor => OutputClass::Replica,
            session if session.is_subscribed() => OutputClass::PubSub,
            _ => OutputClass::Normal,
        };
        let limit = node.settings.output_limit(class);
        if limit.soft_bytes == 0 || output <= limit.soft_bytes {
            connection.over_soft_limit_ms = 0;
        } else if connection.over_soft_limit_ms == 0 {
            connection.over_soft_limit_ms = now_ms;
        }
        let soft_since = connection.over_soft_limit_ms;
        let over_soft =
            soft_since != 0 && now_ms.saturating_sub(soft_since) >= limit.soft_seconds * 1000;
        let over_hard = limit.hard_bytes != 0 && output > limit.hard_bytes;
        if over_hard || over_soft {
            let why = "its output buffer is over client-output-buffer-limit";
            Self::tell_of_closing(connection, now_ms, why);
        }
        over_hard || over_soft
    }

    /// Publishes the connection's state to other threads.
    #[inline]
    fn publish_info(connection: &Connection, now_ms: u64) {
        let (session, info) = (&connection.session, &*connection.session.info);
        info.last_active_ms.store(now_ms, Relaxed);
        info.db.store(session.db, Relaxed);
        Self::publish_output(connection);
        input::publish(connection);
        info.resp.store(session.proto.number(), Relaxed);
        let multi = session.multi.as_ref();
        info.multi.store(multi.map_or(-1, |multi| multi.queued.len() as i64), Relaxed);
        info.multi_bytes.store(multi.map_or(0, |multi| multi.bytes), Relaxed);
        info.watched.store(session.watched.len() as u32, Relaxed);
    }

    #[inline]
    pub(super) fn publish_output(connection: &Connection) {
        let (info, bytes) = (&*connection.session.info, connection.replies.output_bytes());
        info.output_bytes.store(bytes, Relaxed);
        info.output_capacity.store(connection.replies.output.capacity(), Relaxed);
        if bytes > info.output_peak.load(Relaxed) {
            info.output_peak.store(bytes, Relaxed);
        }
        info.writing.store(bytes != 0, Relaxed);
    }
}
