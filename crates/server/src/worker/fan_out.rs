//! Published messages: passes them to this thread's subscribers, a bounded number per turn.

use super::Worker;
use ladon_commands::subscriptions::fan_out::{Delivery, FanOut};
use ladon_commands::subscriptions::published::ForThread;

/// Nanoseconds of deliveries in a turn.
const FAN_OUT_NS: u64 = 200_000;

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
        let mut deliveries = 0;
        while let Some(found) = self.fan_out_slice() {
            deliveries += found + 1;
            if deliveries >= SLICE {
                deliveries = 0;
                if self.node.clock.monotonic_ns() >= end_ns {
                    return;
                }
            }
            if self.touched.len() >= touched_max
                || self.turn.output_bytes >= self.pace.turn_output_bytes
            {
                return;
            }
        }
    }

    /// Delivers a message to some of its subscribers, and returns to how many; `None` if nothing is
    /// left to deliver.
    fn fan_out_slice(&mut self) -> Option<usize> {
        let fan_out = self.fan_outs.queue.front_mut()?;
        let found = &mut self.fan_outs.found;
        let (depends, length) = (fan_out.message().depends, fan_out.message().payload().len());
        let most = (SLICE_BYTES / length.max(1)).clamp(1, SLICE);
        let bytes = fan_out.next(&self.local.subscribers, most, found);
        for &Delivery { client, slot } in found.iter() {
            let connection = self.connections.get_mut(slot as usize).and_then(Option::as_mut);
            let connection = connection.filter(|c| c.session.info.id == client);
            let Some(connection) = connection.filter(|c| !c.closing) else { continue };
            self.turn.output_bytes += bytes.len();
            connection.deliver_push(bytes);
            connection.depends = connection.depends.max(depends);
            connection.touch(&mut self.touched);
        }
        let delivered = found.len();
        if fan_out.is_over()
            && let Some(done) = self.fan_outs.queue.pop_front()
        {
            self.node.pubsub.delivered(done.weight);
        }
        Some(delivered)
    }
}
