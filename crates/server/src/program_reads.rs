//! What a program's fibers read by themselves at the gate `quorum`, while the node follows: each such
//! request has a ticket of its own for the leader's position, and is offered again until that has come.

use ladon_kernel::leader_reads::{LeaderRead, Ticket, TicketState, Unanswered};
use ladon_kernel::node::Node;
use ladon_kernel::request::outcome::Flow;
use std::collections::HashMap;

/// Fibers that may wait at once. Those of fibers that were ended are forgotten when there are more.
const WAITING_MAX: usize = 10_000;

/// The tickets of fibers that wait, and since when, in Unix milliseconds.
#[derive(Default)]
pub(crate) struct ProgramReads(HashMap<u64, (Ticket, u64)>);

impl ProgramReads {
    /// What is known of the leader's position for a request of this fiber.
    pub(crate) fn known(&self, node: &Node, fiber: u64, now_ms: u64) -> LeaderRead {
        if node.role.is_free() {
            return LeaderRead::Unasked;
        }
        let Some((ticket, since_ms)) = self.0.get(&fiber) else { return LeaderRead::Unasked };
        let is_late = now_ms.saturating_sub(*since_ms) >= node.settings.failover_timeout();
        match node.leader_reads.state(*ticket) {
            TicketState::Granted => LeaderRead::Granted(ticket.epoch),
            TicketState::Unknown => LeaderRead::Refused(Unanswered::Unknown),
            TicketState::Waits | TicketState::Stale if is_late => {
                LeaderRead::Refused(Unanswered::Late)
            }
            TicketState::Waits | TicketState::Stale => LeaderRead::Unasked,
        }
    }

    /// Notes what has come of the fiber's request.
    pub(crate) fn has_run(
        &mut self,
        node: &Node,
        (fiber, thread): (u64, usize),
        flow: &Flow,
        now_ms: u64,
    ) {
        if !matches!(flow, Flow::AwaitsLeader) {
            if !self.0.is_empty() && !flow.runs_again() {
                self.0.remove(&fiber);
            }
            return;
        }
        let known = self.0.get(&fiber).copied();
        let waits =
            |(ticket, _): &(Ticket, u64)| node.leader_reads.state(*ticket) == TicketState::Waits;
        if !known.as_ref().is_some_and(waits) {
            if self.0.len() >= WAITING_MAX {
                self.0.clear();
            }
            let since_ms = known.map_or(now_ms, |(_, since_ms)| since_ms);
            self.0.insert(fiber, (node.leader_reads.take_ticket(thread), since_ms));
        }
    }
}
