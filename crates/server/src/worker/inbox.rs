//! Messages from other threads, and changed settings.

use super::Worker;
use crate::queues::WaitsFor;
use ladon_kernel::message::Message;
use ladon_record::Lsn;
use std::sync::atomic::Ordering::Relaxed;

impl Worker {
    pub(super) fn refresh_limits(&mut self) {
        let generation = self.node.settings.generation();
        if generation != self.limits_generation {
            self.limits_generation = generation;
            self.limits.bulk_bytes_max = self.node.settings.proto_max_bulk_len();
            let backlog = usize::try_from(self.node.settings.client_reply_backlog());
            let threads = self.node.threads.len().max(1);
            self.replies.limit_bytes = backlog.unwrap_or(usize::MAX).div_ceil(threads);
        }
    }

    pub(super) fn read_inbox(&mut self) {
        for message in self.node.threads[self.bench.local.thread].take() {
            match message {
                Message::Deliver { client, slot, bytes, depends } => {
                    self.deliver(client, slot, &bytes, depends);
                }
                Message::Publish(message) => self.fan_outs.add(message, self.planted),
                Message::Invalidate(invalid) => self.fan_outs.add_invalid(invalid),
                Message::Redirect(invalid) => self.fan_outs.add_redirected(invalid),
                Message::Answer(answer) => self.answer(answer),
                Message::Unblock { client, slot, how } => self.end_wait(client, slot, how),
                Message::Computed { client, slot, computed } => {
                    self.computed(client, slot, computed);
                }
                Message::Pushed { client, slot, bytes, depends, counted } => {
                    self.deliver(client, slot, &bytes, depends);
                    drop(counted);
                }
                Message::ProgramAnswered { client, slot } => self.program_answered(client, slot),
                Message::Kill => self.close_killed(),
                Message::Evict { client, slot } => self.close_evicted(client, slot),
                Message::Pause => self.unpaused = true,
                Message::Ready(keys) => self.bench.scratch.ready.extend(keys),
                Message::RoleChanged => self.role_changed(),
                Message::UsersChanged => self.unseen_users_from = Some(0),
            }
        }
        self.look_after_users();
    }

    fn deliver(&mut self, client: u64, slot: u32, bytes: &[u8], depends: Lsn) {
        let connection = self.connections.get_mut(slot as usize).and_then(Option::as_mut);
        // Another connection may have the slot by now.
        let Some(connection) = connection.filter(|c| c.session.info.id == client) else { return };
        if connection.closing {
            return;
        }
        connection.replies.deliver(bytes);
        connection.message_depends(depends, &self.node, &self.log);
        self.queues.push(WaitsFor::Release, connection);
    }

    fn close_evicted(&mut self, client: u64, slot: u32) {
        if let Some(connection) = &mut self.connections[slot as usize]
            && connection.session.info.id == client
            && !connection.closed
        {
            connection.aborted = true;
            self.queues.push(WaitsFor::Release, connection);
        }
    }

    fn close_killed(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            if connection.session.info.killed.load(Relaxed) && !connection.closed {
                connection.aborted = true;
                self.queues.push(WaitsFor::Release, connection);
            }
        }
    }
}
