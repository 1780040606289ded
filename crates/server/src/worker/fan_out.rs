//! Published messages and invalidations: passes them to this thread's subscribers and trackers, a
//! bounded number per turn.

use super::{Planted, Worker};
use crate::queues::WaitsFor;
use ladon_kernel::pubsub::fan_out::{Delivery, FanOut};
use ladon_kernel::pubsub::published::ForThread;
use ladon_kernel::tracking::batch::{ForTrackers, Redirected};
use ladon_kernel::tracking::fan_out as invalidation;

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
    queue: std::collections::VecDeque<Pending>,
    /// Messages that came out of the inbox so far.
    read: u64,
    /// Memory for the receivers of one slice.
    pub(super) found: Vec<Delivery>,
}

/// A message that is being delivered.
enum Pending {
    Published(FanOut),
    Invalid(invalidation::FanOut),
    Redirected(Redirected),
}

impl FanOuts {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn add(&mut self, message: ForThread, planted: Planted) {
        let message = Pending::Published(FanOut::new(message, self.read));
        if planted == Planted::MessageOvertakes {
            self.queue.push_front(message);
        } else {
            self.queue.push_back(message);
        }
        self.read += 1;
    }

    pub(super) fn add_invalid(&mut self, invalid: ForTrackers) {
        let fan_out = invalidation::FanOut::new(invalid, self.read);
        self.queue.push_back(Pending::Invalid(fan_out));
        self.read += 1;
    }

    pub(super) fn add_redirected(&mut self, invalid: Redirected) {
        self.queue.push_back(Pending::Redirected(invalid));
        self.read += 1;
    }
}

impl Worker {
    /// Whether published messages wait for the next turn.
    pub(super) fn has_messages(&self) -> bool {
        !self.fan_outs.is_empty() || self.node.threads[self.bench.local.thread].has_mail()
    }

    /// Passes messages to the thread's subscribers, in order, within the limits of a turn. Wakes
    /// the threads for which this one has left messages.
    pub(super) fn fan_out(&mut self) {
        if self.node.pubsub.is_quiet() {
            return;
        }
        self.node.pubsub.wake(self.bench.local.thread);
        if self.node.threads[self.bench.local.thread].has_mail() {
            self.read_inbox();
        }
        if self.fan_outs.is_empty() {
            return;
        }
        let end_ns = self.node.clock.monotonic_ns() + FAN_OUT_NS;
        let touched_max = self.queues.len(WaitsFor::Release) + CONNECTIONS_MAX;
        let mut deliveries = 0;
        while let Some(found) = self.fan_out_slice() {
            deliveries += found + 1;
            if deliveries >= SLICE {
                deliveries = 0;
                if self.node.clock.monotonic_ns() >= end_ns {
                    return;
                }
            }
            if self.queues.len(WaitsFor::Release) >= touched_max
                || self.turn.output_bytes >= self.pace.turn_output_bytes
            {
                return;
            }
        }
    }

    /// Lets publishers go on once enough messages are delivered: before the requests that came
    /// since, in the order in which they had to wait, but first those that had no turn. Otherwise
    /// who was served would be served again.
    pub(super) fn resume_publishers(&mut self) {
        if self.queues.is_empty(WaitsFor::Delivery) || self.node.pubsub.is_congested() {
            return;
        }
        let mut slots = self.queues.take(WaitsFor::Delivery);
        if self.planted == Planted::ForgottenPublisher
            && let Some(slot) = slots.pop_front()
            && let Some(connection) = &mut self.connections[slot as usize]
        {
            connection.waits.remove(WaitsFor::Delivery);
            self.queues.push(WaitsFor::Delivery, connection);
        }
        for had_turn in [true, false] {
            for &slot in slots.iter().rev() {
                let Some(connection) = &mut self.connections[slot as usize] else { continue };
                if connection.had_turn == had_turn && connection.waits.remove(WaitsFor::Delivery) {
                    match self.planted {
                        Planted::NewerFirst => self.queues.push(WaitsFor::Turn, connection),
                        _ => self.queues.push_front(WaitsFor::Turn, connection),
                    }
                }
            }
        }
    }

    /// Whether a connection waits until messages are delivered.
    pub fn has_waiting_publishers(&self) -> bool {
        !self.queues.is_empty(WaitsFor::Delivery)
    }

    /// Delivers the next message to some of its receivers, and returns to how many; `None` if
    /// nothing is left to deliver.
    fn fan_out_slice(&mut self) -> Option<usize> {
        let mut pending = self.fan_outs.queue.pop_front()?;
        let mut found = std::mem::take(&mut self.fan_outs.found);
        let done = match &mut pending {
            Pending::Published(fan_out) => {
                self.publish_slice(fan_out, &mut found);
                fan_out.is_over().then_some(fan_out.weight)
            }
            Pending::Invalid(fan_out) => {
                self.invalidate_slice(fan_out, &mut found);
                fan_out.is_over().then_some(fan_out.weight)
            }
            Pending::Redirected(invalid) => {
                self.deliver_redirected(invalid);
                Some(invalid.weight)
            }
        };
        match done {
            Some(weight) => self.node.pubsub.delivered(weight),
            None => self.fan_outs.queue.push_front(pending),
        }
        let delivered = found.len();
        self.fan_outs.found = found;
        Some(delivered)
    }

    fn publish_slice(&mut self, fan_out: &mut FanOut, found: &mut Vec<Delivery>) {
        let (depends, length) = (fan_out.message().depends, fan_out.message().payload().len());
        let bytes = fan_out.next(&self.bench.local.subscribers, slice_of(length), found);
        for &Delivery { client, slot } in found.iter() {
            let connection = self.connections.get_mut(slot as usize).and_then(Option::as_mut);
            let connection = connection.filter(|c| c.session.info.id == client);
            let Some(connection) = connection.filter(|c| !c.closing) else { continue };
            self.turn.output_bytes += bytes.len();
            connection.deliver_push(bytes);
            if self.planted != Planted::EarlyMessage {
                connection.message_depends(depends, &self.node, &self.log);
            }
            self.queues.push(WaitsFor::Release, connection);
        }
    }
}

/// How many receivers get a message of this length between two looks at the clock.
pub(super) fn slice_of(bytes: usize) -> usize {
    (SLICE_BYTES / bytes.max(1)).clamp(1, SLICE)
}
