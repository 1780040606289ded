//! Requests that read at the gate `quorum` while the node follows: held back before they run, until the
//! leader has named its position and the data has that much ([`ladon_kernel::leader_reads`]).
//!
//! A connection waits as a whole, with one ticket for what had arrived of it. What arrives meanwhile
//! gets another one, since the leader may have committed more before it was sent.

use super::Worker;
use crate::batch::Item;
use crate::connection::{Connection, HeldRead};
use crate::dialect::resp::Again;
use crate::queues::WaitsFor;
use crate::set_aside::Waiting;
use ladon_kernel::leader_reads::{LeaderRead, Ticket, TicketState, Unanswered};
use ladon_kernel::node::Node;
use ladon_kernel::role::Role;
use ladon_record::Gate;
use std::sync::Arc;
use std::time::Duration;

impl Worker {
    /// What is known of the leader's position for a request of the input that ends at `end`.
    #[inline]
    pub(super) fn leader_read(node: &Node, connection: &Connection, end: usize) -> LeaderRead {
        match node.role.is_free() {
            true => LeaderRead::Unasked,
            false => of_ticket(node, connection, connection.ticket_of(end)),
        }
    }

    /// The same for a packet of the input, or one that was set aside.
    #[inline]
    pub(super) fn packet_read(
        node: &Node,
        connection: &Connection,
        end: usize,
        waited: Option<&Waiting>,
    ) -> LeaderRead {
        match waited {
            None => Self::leader_read(node, connection, end),
            Some(_) if node.role.is_free() => LeaderRead::Unasked,
            Some(waiting) => of_ticket(node, connection, waiting.ticket),
        }
    }

    /// A request waits, and its connection with it. `ticket`: the one that it has.
    #[cold]
    pub(super) fn hold_for_leader(
        &mut self,
        item: &Item,
        ticket: Option<Ticket>,
        again: Option<Box<Again>>,
    ) {
        let (thread, now_ns) = (self.bench.local.thread, self.turn.began_ns);
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        connection.rewind(item.start);
        if let Some(resp) = connection.dialect.resp_mut() {
            resp.again = again;
        }
        let reads = &self.node.leader_reads;
        let known = connection.held_read.as_deref().filter(|held| Some(held.ticket) == ticket);
        if known.is_none_or(|held| reads.state(held.ticket) != TicketState::Waits) {
            let since_ns = known.map_or(now_ns, |held| held.since_ns);
            let ticket = reads.take_ticket(thread);
            let held = HeldRead { ticket, since_ns, later_bytes: 0, refused: None };
            connection.held_read = Some(Box::new(held));
        }
        self.queues.push(WaitsFor::Leader, connection);
    }

    /// Queues connections again whose tickets have come to something, or have waited for too long.
    pub(super) fn resume_readers(&mut self) {
        if !self.queues.is_empty(WaitsFor::Leader) {
            self.resume_some_readers();
        }
    }

    #[cold]
    fn resume_some_readers(&mut self) {
        let node = Arc::clone(&self.node);
        let reads = &node.leader_reads;
        reads.waits(self.bench.local.thread);
        let follows = node.role.get() == Role::Follows;
        let limit_ns = limit_ns(&node);
        // Their tickets are in this order too, but for those of an epoch that is over.
        while let Some(slot) = self.queues.first(WaitsFor::Leader) {
            let connection = self.connections[slot as usize].as_deref_mut();
            if let Some(connection) = connection
                && let Some(held) = &mut connection.held_read
            {
                let is_late = self.turn.began_ns.saturating_sub(held.since_ns) >= limit_ns;
                match reads.state(held.ticket) {
                    TicketState::Unknown => held.refused = Some(Unanswered::Unknown),
                    TicketState::Granted => {}
                    // If it has led meanwhile, and follows again, the time goes on.
                    TicketState::Waits | TicketState::Stale if follows && is_late => {
                        held.refused = Some(Unanswered::Late);
                    }
                    TicketState::Waits if follows => return,
                    TicketState::Waits | TicketState::Stale => {}
                }
            }
            self.queues.pop(WaitsFor::Leader);
            self.queue_again(slot, WaitsFor::Leader);
        }
    }

    /// When the first of those that wait has waited for too long.
    pub(super) fn until_reader_is_late(&self) -> Option<Duration> {
        let slot = self.queues.first(WaitsFor::Leader)?;
        let held = self.connections[slot as usize].as_deref()?.held_read.as_deref()?;
        let due_ns = held.since_ns.saturating_add(limit_ns(&self.node));
        Some(Duration::from_nanos(due_ns.saturating_sub(self.node.clock.monotonic_ns())))
    }

    /// Whether what is told of data to a connection that began to wait for it at the gate `quorum`,
    /// once the leader had named its position, is all committed.
    pub(super) fn is_of_follower(node: &Node, gate: Option<Gate>, held: Option<&HeldRead>) -> bool {
        let gate = gate.unwrap_or_else(|| node.settings.gate());
        let epoch = held.map(|held| held.ticket.epoch);
        gate == Gate::Quorum && epoch == Some(node.leader_reads.epoch())
    }
}

#[cold]
fn of_ticket(node: &Node, connection: &Connection, ticket: Option<Ticket>) -> LeaderRead {
    let Some(ticket) = ticket else { return LeaderRead::Unasked };
    let held = connection.held_read.as_deref().filter(|held| held.ticket == ticket);
    if let Some(why) = held.and_then(|held| held.refused) {
        return LeaderRead::Refused(why);
    }
    match node.leader_reads.state(ticket) {
        TicketState::Granted => LeaderRead::Granted(ticket.epoch),
        TicketState::Unknown => LeaderRead::Refused(Unanswered::Unknown),
        TicketState::Waits | TicketState::Stale => LeaderRead::Unasked,
    }
}

fn limit_ns(node: &Node) -> u64 {
    node.settings.failover_timeout().saturating_mul(1_000_000)
}
