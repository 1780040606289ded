//! Connections that speak IPROTO: the greeting, and one packet at a time.
//!
//! The protocol knows replies by their syncs, and many users share one connection. So a request that
//! takes long lets those of other streams pass, and those of none (`set_aside.rs`); and a reply
//! outside of any stream that depends on nothing new overtakes replies that wait at the gate. In a
//! stream, requests and replies keep their order.

use super::requests::Ran;
use super::{Planted, Point, Workbench, Worker};
use crate::batch::{Batch, Item, ItemKind};
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::dialect::iproto::Iproto;
use crate::gate_waits::GateWaits;
use crate::queues::WaitsFor;
use crate::set_aside::{State, Waiting};
use ladon_kernel::blocking;
use ladon_kernel::request::outcome::{Flow, Outcome};
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::{Gate, Lsn};
use ladon_tarantool::{Order, Packet, Session};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// When a packet that is not done runs again; and whether a slice of it is done.
pub(super) type Again = (State, bool);

/// Whether a packet waits that has done nothing, and not in the input.
fn is_left(flow: &Flow, waited: Option<&Waiting>) -> bool {
    match flow {
        Flow::Paused => false,
        Flow::AwaitsLeader => waited.is_some(),
        flow => flow.runs_again(),
    }
}

impl Worker {
    /// Greets a new client, and says why it is refused, if it is.
    pub(super) fn greet_iproto(&mut self, connection: &mut Connection, refusal: Option<&str>) {
        let salt = std::array::from_fn(|_| self.bench.local.rng.next_u64());
        let mut session = Session::new(salt, Arc::clone(&connection.session.info));
        if refusal.is_none() {
            session.connect(&self.node);
        }
        // Rights are a matter of the request.
        connection.session.authenticated = true;
        connection.replies.output = self.buffers.take();
        session.greet(&self.node, &mut connection.replies.output);
        if let Some(refusal) = refusal {
            session.refuse(refusal, &mut connection.replies.output);
        }
        connection.dialect = Dialect::Iproto(Box::new(Iproto::new(session)));
        // No reply may overtake it.
        connection.replies.all_is_sendable();
        self.queues.push(WaitsFor::Release, connection);
    }

    /// Begins to fetch what the batch's packets will need.
    pub(super) fn fetch_packets(&mut self, batch: &Batch) {
        let connections = &self.connections;
        let packets = batch.items.iter().filter(|item| matches!(item.kind, ItemKind::Packet));
        let packets = packets.filter_map(|item| {
            let connection = connections[item.slot as usize].as_ref()?;
            connection.input.get(item.start..item.end)
        });
        self.packets.fetch_ahead(&self.node, packets);
    }

    /// Runs one packet of the input, unless it waits for one that was set aside.
    #[inline]
    pub(super) fn run_packet(&mut self, batch: &Batch, item: &Item) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        let Connection { dialect, input, .. } = &mut **connection;
        if let Some(iproto) = dialect.iproto_mut()
            && let Some(others) = &mut iproto.set_aside
        {
            others.had_turn = false;
            if others.holds_input {
                return;
            }
            let packet = &input[item.start..item.end];
            let order = Order::of(packet, &self.node, &mut self.packets);
            if others.holds(order) && self.planted != Planted::OvertakenStream {
                return self.stands_behind(item, order);
            }
        }
        if let Some(again) = self.run_one(batch, item, None) {
            self.set_aside(item, again);
        }
    }

    /// Runs one packet: of the input, or one that `waited`. Returns when it runs again, unless it
    /// is done or stays in the input.
    pub(super) fn run_one(
        &mut self,
        batch: &Batch,
        item: &Item,
        waited: Option<&Waiting>,
    ) -> Option<Again> {
        let connection = self.connections[item.slot as usize].as_deref_mut()?;
        self.bench.local.leader_read = Self::packet_read(&self.node, connection, item.end, waited);
        let Connection { dialect, input, replies, session: client, .. } = &mut *connection;
        let session = &mut dialect.iproto_mut()?.session;
        let packet = &input[item.start..item.end];
        let packet = waited.map_or(packet, |it| &it.packet[..]);
        let packet = Packet::decode(packet);
        let facts = packet.facts(&self.node, &mut self.packets);
        let is_of_stream = packet.is_of_stream();
        if self.log_is_behind && facts.writes {
            self.log.write_soon();
            return Some((State::AwaitsWrite, false));
        }
        if !facts.is_quick {
            // It may take long. No other thread's records may wait behind this batch's.
            self.published |= self.planted.publish(&mut self.bench.appender);
            if let Some(interrupt) = &mut self.interrupt {
                interrupt(Point::BeforeSlow);
            }
        }
        if replies.output.capacity() == 0 {
            replies.output = self.buffers.take();
        }
        let (gate, before) = (client.gate, replies.output.len());
        session.note_long_reply(replies.long.is_some());
        let mut outcome = if client.info.killed.load(Relaxed) {
            Outcome::new(Lsn::ZERO, Flow::Drop)
        } else {
            let (planted, now_ms) = (self.planted, self.now_ms);
            let Workbench { local, scratch, appender, .. } = &mut *self.bench;
            let mut thread = ThreadParts {
                node: &self.node,
                local,
                scratch,
                now_ms,
                append: &mut |record| planted.append_of_packet(appender, record, now_ms),
                pump: None,
            };
            let (packets, out) = (&mut self.packets, &mut replies.output);
            let outcome = ladon_tarantool::execute(&mut thread, session, packets, packet, out);
            if !thread.scratch.ready.is_empty() {
                // Room was made for it by a key whose loss somebody awaits.
                blocking::serve(&mut thread);
            }
            outcome
        };
        let times_out_ms = session.next_timeout_ms();
        Self::note_timeout(&mut self.deadlines, connection, times_out_ms);
        if self.planted == Planted::EarlyPacket {
            outcome.depends = Lsn::ZERO;
        }
        if let Some(packet_ran) = &mut self.packet_ran {
            let packet = &connection.input[item.start..item.end];
            let packet = waited.map_or(packet, |it| &it.packet[..]);
            let reply = &connection.replies.output[before..];
            packet_ran(item.slot, packet, (!outcome.flow.runs_again()).then_some(reply));
        }
        self.bench.local.ran_other(&self.node, facts.is_quick);
        let is_whole = matches!(outcome.flow, Flow::Continue) && outcome.deferred.is_none();
        let (depends, mut again) = (outcome.depends, None);
        if !is_whole {
            again = self.again_of(item, waited, &mut outcome);
            if is_left(&outcome.flow, waited) {
                return again;
            }
        }
        self.has_replied(batch, item, Ran { outcome, gate, before, lends: None, again: None });
        if is_whole && !is_of_stream {
            self.let_overtake(item.slot, before, depends);
        }
        again
    }

    /// When a packet runs again that has made no whole reply. The rest of a long reply is taken
    /// over.
    #[cold]
    fn again_of(
        &mut self,
        item: &Item,
        waited: Option<&Waiting>,
        outcome: &mut Outcome,
    ) -> Option<Again> {
        match outcome.flow {
            Flow::GoesOn => return Some((State::Ready, true)),
            Flow::AwaitsCommit => return Some((State::AwaitsWrite, false)),
            Flow::AwaitsReply => return Some((State::AwaitsReply, false)),
            Flow::AwaitsProgram => return Some((State::AwaitsProgram, false)),
            // One of the input stays there.
            Flow::Paused => return waited.map(|_| (State::Ready, false)),
            Flow::AwaitsLeader => {
                let waiting = waited?;
                self.hold_for_leader(item, waiting.ticket, None);
                return Some((State::Ready, false));
            }
            _ => {}
        }
        if let Some(long) = Self::take_long_reply(outcome) {
            self.begin_reply_in_slices(item, waited, long);
        }
        None
    }

    /// Lets a reply, the end of the connection's output, leave before those that wait for a sync.
    /// What waits for a write leaves at the turn's end.
    #[inline]
    fn let_overtake(&mut self, slot: u32, start: usize, depends: Lsn) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let gate = self.node.settings.gate().max(self.turn_gate);
        let gate = connection.session.gate.unwrap_or(gate);
        if gate >= Gate::Fsync && self.seen.passed(gate, depends) {
            let mut waits = GateWaits::new(&self.node, &self.bench.local.stats.gate_waits);
            connection.replies.overtake(start, gate, self.seen, |since_ns| waits.count(since_ns));
        }
    }

    /// Notes when a session's next transaction times out.
    #[inline]
    fn note_timeout(
        deadlines: &mut BTreeSet<(u64, u32)>,
        connection: &mut Connection,
        times_out_ms: Option<u64>,
    ) {
        if connection.times_out_ms != times_out_ms {
            let slot = connection.conn.slot;
            let before = std::mem::replace(&mut connection.times_out_ms, times_out_ms);
            before.map(|at_ms| deadlines.remove(&(at_ms, slot)));
            deadlines.extend(times_out_ms.map(|at_ms| (at_ms, slot)));
        }
    }

    /// Frees what transactions of a session hold that have timed out.
    pub(super) fn end_transactions(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        // It is on the list no more.
        connection.times_out_ms = None;
        let Some(iproto) = connection.dialect.iproto_mut() else { return };
        let session = &mut iproto.session;
        session.end_overdue(self.now_ms, &mut self.bench.scratch);
        let times_out_ms = session.next_timeout_ms();
        Self::note_timeout(&mut self.deadlines, connection, times_out_ms);
    }

    /// A connection is about to go.
    pub(super) fn forget_timeout(&mut self, slot: u32) {
        if let Some(connection) = &mut self.connections[slot as usize] {
            Self::note_timeout(&mut self.deadlines, connection, None);
        }
    }
}
