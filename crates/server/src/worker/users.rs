//! What becomes of connections when users change.
//!
//! A request looks for itself whether its user may run it. Connections to which something comes
//! without a request lose it here: those that wait for a key, are subscribed, or are tracked.

use super::Worker;
use crate::queues::WaitsFor;
use ladon_kernel::access::{self, Standing};
use ladon_kernel::blocking;
use ladon_kernel::message::Unserved;
use std::sync::Arc;

impl Worker {
    /// Looks after connections, since users have changed: a limited number in a turn.
    pub(super) fn look_after_users(&mut self) {
        /// If there are more, the next turn follows at once.
        const IN_A_TURN: usize = 16_384;
        let Some(from) = self.unseen_users_from.take() else { return };
        let end = self.connections.len().min(from + IN_A_TURN);
        (from..end).for_each(|slot| self.look_after_user(slot as u32));
        self.unseen_users_from = Some(end).filter(|&end| end < self.connections.len());
    }

    /// Ends the waits of those who would change data, if the node does not lead its cluster.
    pub(super) fn role_changed(&mut self) {
        if self.node.role.is_free() {
            return;
        }
        for slot in 0..self.connections.len() {
            let Some(connection) = &self.connections[slot] else { continue };
            let for_others = connection.log_wait().filter(|wait| wait.replicas > 0);
            if let Some(wait) = for_others.filter(|_| self.node.role.get().is_replica()) {
                if wait.claim.take() {
                    self.end_unserved(slot as u32, Unserved::Follows);
                }
                continue;
            }
            let Some(waiter) = connection.waiter().map(Arc::clone) else { continue };
            if blocking::would_change(&self.node, &waiter) && waiter.claim.take() {
                self.end_unserved(slot as u32, Unserved::Follows);
            }
        }
    }

    /// Closes a connection whose user is gone or has lost what comes to it, and ends its wait if
    /// that is for something that was lost.
    pub(super) fn look_after_user(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let leaves = connection.closed || connection.closing || connection.aborted;
        // Users of IPROTO are others.
        if leaves || connection.dialect.resp().is_none() {
            return;
        }
        if access::stands(&self.node, &mut connection.session) == Standing::Gone {
            let why = "its user was deleted, or lost what the client is subscribed to or tracks";
            Self::tell_of_closing(connection, self.now_ms, why);
            connection.aborted = true;
            self.queues.push(WaitsFor::Release, connection);
            return;
        }
        let Some(waiter) = connection.waiter().map(Arc::clone) else { return };
        let user = &connection.session.access.user;
        if !blocking::may_go_on(&self.node, user, &waiter) && waiter.claim.take() {
            self.end_unserved(slot, Unserved::Denied);
        }
    }
}
