//! Requests of IPROTO that are not done yet, while later ones of their connection run.

use super::Worker;
use super::packets::Again;
use crate::batch::{Batch, Item};
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::queues::WaitsFor;
use crate::set_aside::{SetAside, State, Waiting};
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::request::outcome::Outcome;
use ladon_record::Lsn;
use ladon_tarantool::{Order, Unfinished};

/// So many of a connection's run in a row. One of them at most does a slice of something long.
const RUN_MAX: usize = 16;

impl Worker {
    /// Runs packets that were set aside.
    #[cold]
    pub(super) fn run_set_aside(&mut self, batch: &Batch, slot: u32) {
        let mut may_slice = true;
        for _ in 0..RUN_MAX {
            let Some(connection) = &mut self.connections[slot as usize] else { return };
            if !connection.is_runnable() {
                return;
            }
            self.replies.count(connection);
            if self.replies.holds_back(connection) {
                // It is held back when its turn comes.
                self.queues.push(WaitsFor::Turn, connection);
                return;
            }
            let at = connection.consumed;
            let Some(others) = set_aside_of(&mut connection.dialect) else { return };
            others.had_turn = true;
            let Some(mut waiting) = others.take(may_slice) else { return };
            may_slice &= !waiting.is_sliced();
            self.exchange(slot, &mut waiting);
            let again = self.run_one(batch, &Item::packet(slot, at..at), Some(&waiting));
            self.exchange(slot, &mut waiting);
            match again {
                Some(again) => self.put_back_packet(slot, waiting, again),
                None => self.packet_is_done(slot, waiting),
            }
            if self.turn_is_spent(self.bench.local.clock_seen_ns()) {
                return;
            }
        }
    }

    /// What a packet has done of its work is the session's while it runs.
    fn exchange(&mut self, slot: u32, waiting: &mut Waiting) {
        if let Some(connection) = &mut self.connections[slot as usize]
            && let Some(iproto) = connection.dialect.iproto_mut()
        {
            iproto.session.exchange(&mut waiting.unfinished);
        }
    }

    /// A packet of the input waits for one that was set aside.
    #[cold]
    pub(super) fn stands_behind(&mut self, item: &Item, order: Order) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        let ticket = connection.ticket_of(item.end);
        let Connection { dialect, input, .. } = &mut **connection;
        let Some(others) = set_aside_of(dialect) else { return };
        let length = item.end - item.start;
        if order.divides() || !others.has_room(length, self.pace.unread_bytes_max) {
            others.holds_input = true;
            return;
        }
        let packet = &input[item.start..item.end];
        others.push(packet, order, (State::Behind, false), (Unfinished::default(), ticket));
        connection.consumed = item.end;
        self.has_run(item.slot);
    }

    /// A packet of the input runs again, or will run only later; others of its connection need not
    /// wait. If it finds no room, they do.
    #[cold]
    pub(super) fn set_aside(&mut self, item: &Item, again: Again) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        let ticket = connection.ticket_of(item.end);
        let Connection { dialect, input, .. } = &mut **connection;
        let Some(iproto) = dialect.iproto_mut() else { return };
        let others = iproto.set_aside.get_or_insert_default();
        if others.has_room(item.end - item.start, self.pace.unread_bytes_max) {
            let packet = &input[item.start..item.end];
            let order = Order::of(packet, &self.node, &mut self.packets);
            let mut unfinished = Unfinished::default();
            iproto.session.exchange(&mut unfinished);
            others.push(packet, order, again, (unfinished, ticket));
            connection.consumed = item.end;
        } else {
            iproto.tidy_set_aside();
            connection.rewind(item.start);
            connection.input_waits = true;
        }
        self.list_again(item.slot, again);
        self.has_run(item.slot);
    }

    /// A packet that was set aside is not done yet.
    fn put_back_packet(&mut self, slot: u32, mut waiting: Waiting, again: Again) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        if connection.waits.has(WaitsFor::Leader) {
            waiting.ticket = connection.held_read.as_deref().map(|held| held.ticket);
        }
        let Some(iproto) = connection.dialect.iproto_mut() else { return };
        iproto.set_aside.get_or_insert_default().put_back(waiting, again);
        self.list_again(slot, again);
    }

    /// A packet that was set aside is done.
    fn packet_is_done(&mut self, slot: u32, waiting: Waiting) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let Some(iproto) = connection.dialect.iproto_mut() else { return };
        if let Some(others) = &mut iproto.set_aside {
            others.done(&waiting);
        }
        iproto.tidy_set_aside();
        // Perhaps the input waited for this.
        self.list_unfinished(slot);
    }

    /// The program has answered a packet of a connection.
    #[cold]
    pub(super) fn program_answered(&mut self, client: u64, slot: u32) {
        let connection = self.connections.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(connection) = connection.filter(|it| it.session.info.id == client) else { return };
        if let Some(others) = set_aside_of(&mut connection.dialect) {
            others.program_answered();
        }
        // One that found no room waits in the input.
        connection.input_waits = false;
        self.queues.push(WaitsFor::Turn, connection);
    }

    fn list_again(&mut self, slot: u32, (state, _): Again) {
        match state {
            State::Ready => self.list_unfinished(slot),
            State::Behind | State::AwaitsWrite | State::AwaitsReply => self.list_await_write(slot),
            // The answer's message looks after it.
            State::AwaitsProgram => {}
        }
    }

    /// Registers the long reply to a packet, whose bytes may come after those of later ones.
    #[cold]
    pub(super) fn begin_reply_in_slices(
        &mut self,
        item: &Item,
        waited: Option<&Waiting>,
        (long, depends): (Box<LongReply>, Lsn),
    ) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        let packet = waited.map_or(&connection.input[item.start..item.end], |it| &it.packet[..]);
        let order = Order::of(packet, &self.node, &mut self.packets);
        if order.stream() != 0
            && let Some(iproto) = connection.dialect.iproto_mut()
        {
            iproto.set_aside.get_or_insert_default().reply_begins(order);
        }
        connection.replies.long_depends = depends;
        self.begin_long_reply(item.slot, long);
    }

    /// What a packet's outcome leaves to be made in slices.
    pub(super) fn take_long_reply(outcome: &mut Outcome) -> Option<(Box<LongReply>, Lsn)> {
        let long = outcome.deferred.take()?.long_reply?;
        // What comes before its first byte does not depend on this.
        Some((long, std::mem::replace(&mut outcome.depends, Lsn::ZERO)))
    }
}

fn set_aside_of(dialect: &mut Dialect) -> Option<&mut SetAside> {
    dialect.iproto_mut()?.set_aside.as_deref_mut()
}
