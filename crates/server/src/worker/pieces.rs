//! Connections that speak memcached's protocols: one piece of the input at a time, a request or a part
//! of one. Replies leave in the order of the requests.

use super::requests::Ran;
use super::{Point, Worker};
use crate::batch::{Batch, Item};
use crate::connection::Connection;

impl Worker {
    /// Runs one piece of the input.
    pub(super) fn run_piece(&mut self, batch: &Batch, item: &Item) {
        let Some(connection) = self.connections[item.slot as usize].as_deref_mut() else { return };
        let piece = &connection.input[item.start..item.end];
        if self.log_is_behind && ladon_memcached::may_write(piece) {
            return self.waits_for_log_room(item);
        }
        if !ladon_memcached::is_quick(piece) {
            // No other thread's records may wait behind this batch's.
            self.published |= self.planted.publish(&mut self.bench.appender);
            if let Some(interrupt) = &mut self.interrupt {
                interrupt(Point::BeforeSlow);
            }
        }
        if connection.replies.output.capacity() == 0 {
            connection.replies.output = self.buffers.take();
        }
        self.bench.local.leader_read = Self::leader_read(&self.node, connection, item.end);
        let Connection { dialect, input, replies, session: client, .. } = connection;
        let Some(memcached) = dialect.memcached_mut() else { return };
        let piece = &input[item.start..item.end];
        let (gate, before) = (client.gate, replies.output.len());
        let mut thread = thread_parts!(self);
        let session = &mut memcached.session;
        let outcome =
            ladon_memcached::execute(&mut thread, client, session, piece, &mut replies.output);
        self.has_replied(batch, item, Ran { outcome, gate, before, lends: None, again: None });
    }
}
