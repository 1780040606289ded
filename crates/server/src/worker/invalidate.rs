//! Invalidations: passes them to this thread's trackers, or to the connections that these have
//! chosen.

use super::Worker;
use super::fan_out::slice_of;
use crate::connection::Connection;
use crate::queues::WaitsFor;
use ladon_engine::Garbage;
use ladon_kernel::message::Message;
use ladon_kernel::node::Node;
use ladon_kernel::pubsub::fan_out::Delivery;
use ladon_kernel::tracking::batch::{self, Invalid, Redirected};
use ladon_kernel::tracking::fan_out::FanOut;
use ladon_kernel::tracking::joining;
use ladon_log::Log;
use ladon_record::Lsn;
use ladon_resp::Proto;

impl Worker {
    /// Keeps the table of what clients have read within its limit, and ends subscriptions of
    /// connections that have left.
    pub(super) fn tidy_trackers(&mut self) {
        let tracking = &self.node.tracking;
        let left = self.bench.local.subscribers.tidy(&self.node.pubsub, self.bench.local.thread);
        self.is_tidying = tracking.tidy() || left;
        if let Some(garbage) = tracking.take_garbage() {
            self.bench.scratch.garbage.push(Garbage::of(garbage));
        }
    }

    /// Tells the next trackers of a batch.
    pub(super) fn invalidate_slice(&mut self, fan_out: &mut FanOut, found: &mut Vec<Delivery>) {
        let place = (self.bench.local.thread, self.node.threads.len());
        fan_out.next(&self.bench.local.trackers, place, slice_of(fan_out.bytes()), found);
        let depends = fan_out.depends();
        for &Delivery { client, slot } in found.iter() {
            let connection = self.connections.get_mut(slot as usize).and_then(Option::as_mut);
            let connection = connection.filter(|c| c.session.info.id == client);
            let Some(connection) = connection.filter(|c| !c.closing) else { continue };
            let Some(tracking) = &connection.session.tracking else { continue };
            let Some(keys) = fan_out.keys_for(client, tracking) else { continue };
            if tracking.redirect != 0 {
                let keys = keys.map_or(Invalid::All, |keys| Invalid::Keys(keys.into()));
                self.redirect(slot, keys, depends);
            } else if connection.session.proto == Proto::Resp3 {
                self.turn.output_bytes +=
                    deliver(connection, keys, depends, (&self.node, &self.log));
                self.queues.push(WaitsFor::Release, connection);
            }
        }
    }

    /// Passes an invalidation to the connection that a tracked one has chosen to get it, or tells
    /// the tracked one that there is no such connection any more.
    fn redirect(&mut self, from: u32, keys: Invalid, depends: Lsn) {
        let Some(connection) = &mut self.connections[from as usize] else { return };
        let Some(tracking) = &mut connection.session.tracking else { return };
        let target = self.node.clients.find(tracking.redirect).filter(|info| !info.is_gone());
        if let Some(target) = target {
            let weight = 1;
            let (client, slot) = (target.id, target.slot);
            let invalid = Redirected { client, slot, keys, depends, weight };
            if target.thread == self.bench.local.thread {
                self.deliver_redirected(&invalid);
            } else {
                self.node.pubsub.leave(target.thread, Message::Redirect(invalid), weight);
            }
            return;
        }
        tracking.is_broken = true;
        let redirect = tracking.redirect;
        joining::show(&connection.session);
        if connection.session.proto == Proto::Resp3 {
            batch::write_broken(connection.behind_replies(), redirect);
            connection.message_depends(depends, &self.node, &self.log);
            self.queues.push(WaitsFor::Release, connection);
        }
    }

    /// Delivers an invalidation to the connection that was chosen to get it, if it can take it:
    /// over RESP2 only a subscriber can.
    pub(super) fn deliver_redirected(&mut self, invalid: &Redirected) {
        let connection = self.connections.get_mut(invalid.slot as usize).and_then(Option::as_mut);
        let connection = connection.filter(|c| c.session.info.id == invalid.client && !c.closing);
        let Some(connection) = connection else { return };
        if connection.session.proto == Proto::Resp2 && !connection.session.is_subscribed() {
            return;
        }
        let keys = match &invalid.keys {
            Invalid::Keys(keys) => Some(&**keys),
            Invalid::All => None,
        };
        self.turn.output_bytes +=
            deliver(connection, keys, invalid.depends, (&self.node, &self.log));
        self.queues.push(WaitsFor::Release, connection);
    }
}

/// Appends an invalidation to a connection's output; returns its length.
fn deliver(
    connection: &mut Connection,
    keys: Option<&[u8]>,
    depends: Lsn,
    (node, log): (&Node, &Log),
) -> usize {
    let proto = connection.session.proto;
    let out = connection.behind_replies();
    let before = out.len();
    batch::write(out, proto, keys);
    let length = out.len() - before;
    connection.message_depends(depends, node, log);
    length
}
