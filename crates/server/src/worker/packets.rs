//! Connections that speak IPROTO: the greeting, and one packet at a time.
//!
//! Replies leave in the order of the requests, which the protocol allows and does not ask for.

use super::requests::Ran;
use super::{Planted, Point, Workbench, Worker};
use crate::batch::{Batch, Item};
use crate::connection::Connection;
use ladon_commands::{Flow, Outcome, ThreadParts};
use ladon_model::Lsn;
use ladon_tarantool::Session;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Worker {
    /// Greets a new client, and says why it is refused, if it is.
    pub(super) fn greet(&mut self, connection: &mut Connection, refusal: Option<&str>) {
        let salt = std::array::from_fn(|_| self.bench.local.rng.next_u64());
        let session = Session::new(salt, Arc::clone(&connection.session.info));
        // Rights are a matter of the request.
        connection.session.authenticated = true;
        connection.output = self.buffers.take();
        session.greet(&self.node, &mut connection.output);
        if let Some(refusal) = refusal {
            session.refuse(refusal, &mut connection.output);
        }
        connection.tarantool = Some(Box::new(session));
        connection.touch(&mut self.touched);
    }

    /// Runs one packet.
    pub(super) fn run_packet(&mut self, batch: &Batch, item: &Item) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        let Some(mut session) = connection.tarantool.take() else { return };
        let packet = &connection.input[item.start..item.end];
        let facts = ladon_tarantool::facts_of_packet(&self.node, packet);
        if self.log_is_behind && facts.writes {
            connection.tarantool = Some(session);
            return self.waits_for_log_room(item);
        }
        if !facts.is_quick {
            // It may take long. No other thread's records may wait behind this batch's.
            self.published |= self.planted.publish(&mut self.bench.appender);
            if let Some(interrupt) = &mut self.interrupt {
                interrupt(Point::BeforeSlow);
            }
        }
        if connection.output.capacity() == 0 {
            connection.output = self.buffers.take();
        }
        let (gate, before) = (connection.session.gate, connection.output.len());
        let mut outcome = if connection.session.info.killed.load(Relaxed) {
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
            ladon_tarantool::execute(&mut thread, &mut session, packet, &mut connection.output)
        };
        if self.planted == Planted::EarlyPacket {
            outcome.depends = Lsn::ZERO;
        }
        if let Some(packet_ran) = &mut self.packet_ran {
            packet_ran(item.slot, &connection.output[before..]);
        }
        connection.tarantool = Some(session);
        self.has_replied(batch, item, Ran { outcome, gate, before, lends: None, again: None });
    }
}
