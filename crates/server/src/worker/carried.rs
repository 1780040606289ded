//! Connections that were served by the loading thread before.

use super::Worker;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::queues::WaitsFor;
use ladon_kernel::client::session::Session;
use ladon_kernel::pubsub::joining;
use ladon_kernel::tracking;
use ladon_net::ConnId;
use std::sync::Arc;

/// State that a connection brings from the loading thread. All of its owed replies have been sent.
pub(crate) struct Carried {
    pub(crate) session: Session,
    /// Requests that have not run, from the beginning of the first.
    pub(crate) input: Vec<u8>,
}

impl Worker {
    /// Adds a connection that was served by the loading thread.
    pub(crate) fn opened_before(&mut self, conn: ConnId, carried: Carried) {
        let Carried { mut session, input } = carried;
        let slot = conn.slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || None);
        }
        let info = Arc::new(session.info.moved(self.bench.local.thread, conn.slot));
        session.move_to(Arc::clone(&info), &self.node.clients);
        joining::renew(&self.node, &mut self.bench.local, &mut session);
        tracking::joining::renew(&self.node, &mut self.bench.local, &mut session);
        let mut connection = Box::new(Connection::new(conn, session, Dialect::default()));
        connection.input = input;
        self.queues.push(WaitsFor::Turn, &mut connection);
        self.node.clients.add(info);
        self.bench.local.stats.connections_received.add(1);
        debug_assert!(self.connections[slot].is_none(), "the backend reuses a live slot");
        self.connections[slot] = Some(connection);
        self.open += 1;
    }
}
