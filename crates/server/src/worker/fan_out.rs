//! Published messages: passes them to this thread's subscribers, a bounded number per turn.

use super::Worker;
use ladon_commands::subscriptions::fan_out::{Delivery, FanOut};
use ladon_commands::subscriptions::published::ForThread;

/// Nanoseconds of deliveries in a turn.
const FAN_OUT_NS: u64 = 100_000;

/// Connections that deliveries of one turn may give something to send: each costs a system call.
const CONNECTIONS_MAX: usize = 256;

/// Deliveries between two looks at the clock.
const SLICE: usize = 64;

/// Bytes between two looks at the clock.
const SLICE_BYTES: usize = 1 << 20;

/// Messages on their way to this thread's subscribers.
#[derive(Default)]
pub(super) struct FanOuts {
    queue: std::collections::VecDeque<FanOut>,
    /// Published messages that came out of the inbox so far.
    read: u64,
    /// Memory for the subscribers of one slice.
    found: Vec<Delivery>,
}

impl FanOuts {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn add(&mut self, message: ForThread) {
        self.queue.push_back(FanOut::new(message, self.read));
        self.read += 1;
    }
}

impl Worker {
    /// Whether published messages wait for the next turn.
    pub(super) fn has_messages(&self) -> bool {
        !self.fan_outs.is_empty() || self.node.threads[self.local.thread].has_mail()
    }

    /// Passes messages to the thread's subscribers, in order, within the limits of a turn. Wakes
    /// the threads for which this one has left messages.
    pub(super) fn fan_out(&mut self) {
        if self.node.pubsub.is_quiet() {
            return;
        }
        self.node.pubsub.wake(self.local.thread);
        if self.node.threads[self.local.thread].has_mail() {
            self.read_inbox();
        }
        if self.fan_outs.is_empty() {
            return;
        }
        let end_ns = self.node.clock.monotonic_ns() + FAN_OUT_NS;
        let touched_max = self.touched.len() + CONNECTIONS_MAX;
        while self.fan_out_slice() {
            let is_over = self.touched.len() >= touched_max
                || self.turn.output_bytes >= self.pace.turn_output_bytes
                || self.node.clock.monotonic_ns() >= end_ns;
            if is_over {
                return;
            }
        }
    }

    /// Returns false if nothing is left to deliver.
    fn fan_out_slice(&mut self) -> bool {
        let Some(fan_out) = self.fan_outs.queue.front_mut() else { return false };
        let found = &mut self.fan_outs.found;
        let most = SLICE_BYTES / fan_out.message().payload.len().max(1);
        let goes_on = fan_out.next(&self.local.subscribers, most.clamp(1, SLICE), found);
        for &Delivery { client, slot } in found.iter() {
            let connection = self.connections.get_mut(slot as usize).and_then(Option::as_mut);
            let connection = connection.filter(|c| c.session.info.id == client);
            let Some(connection) = connection.filter(|c| !c.closing) else { continue };
            let bytes = fan_out.encoded(connection.session.proto);
            self.turn.output_bytes += bytes.len();
            connection.deliver(bytes);
            connection.depends = connection.depends.max(fan_out.message().depends);
            connection.touch(&mut self.touched);
        }
        if !goes_on && let Some(done) = self.fan_outs.queue.pop_front() {
            self.node.pubsub.delivered(done.weight);
        }
        true
    }
}
