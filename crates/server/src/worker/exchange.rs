//! Takes other data at the begin of a turn, when the node's was exchanged.
//!
//! Connections keep their sockets, sessions, subscriptions and output. What the thread keeps for the
//! data before is made anew: its handles of the log, and what it has learnt of the data.
//!
//! What stands in for the data while that is loaded is exchanged under the clients that have connected
//! meanwhile. Data that a cluster has taken back goes with all clients that may have seen it.

use super::Worker;
use crate::positions::Positions;
use crate::queues::WaitsFor;
use crate::waiting::Awaited;
use ladon_record::Lsn;
use std::sync::Arc;

impl Worker {
    /// Whether requests may run: on the newest data, once all threads have taken that.
    #[inline]
    pub(super) fn has_data(&mut self) -> bool {
        if self.node.is_outdated() {
            if self.node.loading.is_none() && !self.are_clients_gone() {
                return false;
            }
            self.take_data();
        }
        if self.awaits_others {
            self.awaits_others = !self.node.is_taken_by_all();
        }
        !self.awaits_others
    }

    /// Closes the connections that are left, and returns whether none is.
    #[cold]
    fn are_clients_gone(&mut self) -> bool {
        let mut is_any = false;
        for connection in self.connections.iter_mut().flatten() {
            is_any = true;
            if !connection.aborted {
                connection.aborted = true;
                let why = "the data that it may have seen was taken back by its cluster";
                Self::tell_of_closing(connection, self.now_ms, why);
                self.queues.push(WaitsFor::Release, connection);
            }
        }
        !is_any
    }

    #[cold]
    fn take_data(&mut self) {
        // Closed connections may have left something to do on the data before.
        self.catch_up();
        self.publish();
        self.settle_counters();
        let node = Arc::new(self.node.renewed());
        self.log.remove_waiter(&self.position_waiter);
        self.log = Arc::clone(&node.log);
        self.position_waiter = self.log.add_waiter(Arc::clone(&self.wake));
        self.seen = Positions::of(&self.log);
        (self.awaited, self.registered) = (Awaited::default(), Awaited::default());
        self.everysec_lsn = Lsn::ZERO;
        self.packets.end();
        // It is made when the first script runs long.
        self.spare = None;
        self.bench.appender = self.log.appender();
        self.bench.local.data_changed();
        self.bench.node = Arc::clone(&node);
        for connection in self.connections.iter_mut().flatten() {
            debug_assert!(connection.blocked.is_none(), "it waits for the data before");
            debug_assert!(connection.replies.awaits().is_none(), "it waits for the log before");
            connection.session.data_changed();
            if let Some(iproto) = connection.dialect.iproto_mut() {
                iproto.session.data_changed();
            }
        }
        self.node = node;
        self.node.note_taken(self.bench.local.thread);
        self.awaits_others = true;
    }
}

#[cfg(test)]
mod tests;
