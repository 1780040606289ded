//! Replies that are made in slices, one slice a turn, while other connections are served.
//!
//! A slice is made when the client has taken what came before, so that a long reply never stands in
//! memory as a whole. But a frozen value makes others keep what they change, so a client that is slow
//! has a second only; then the rest is made whether it takes it or not, or what it needs is copied, and
//! counts as its output.

use super::Worker;
use super::buffers::BUFFER_BYTES_MAX;
use crate::connection::Connection;
use ladon_commands::LongReply;
use ladon_engine::Garbage;

/// Output of a connection up to which it gets another slice: enough to keep a socket busy.
const WINDOW_BYTES: usize = 512 << 10;

/// A buffer is sent, or put by, as soon as it has this many bytes: about a slice, so that buffers stay
/// of the size that is used again.
const BUFFER_FULL_BYTES: usize = BUFFER_BYTES_MAX / 2;

impl Worker {
    /// The request that has just run has a reply that goes on.
    pub(super) fn begin_long_reply(&mut self, slot: u32, long: Box<LongReply>) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        debug_assert!(connection.long_reply.is_none(), "one at a time");
        connection.long_reply = Some(long);
        self.long_replies.push_back(slot);
    }

    /// Makes one slice, of the reply whose turn it is.
    pub(super) fn go_on_with_long_replies(&mut self) {
        for _ in 0..self.long_replies.len() {
            let Some(slot) = self.long_replies.pop_front() else { return };
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            if connection.closed || connection.aborted || connection.long_reply.is_none() {
                continue;
            }
            if !may_go_on(connection, self.now_ms) {
                self.long_replies.push_back(slot);
                continue;
            }
            connection.touch(&mut self.touched);
            let Some(long) = &mut connection.long_reply else { continue };
            if long.is_overdue(self.now_ms) {
                let (is_to_be_written, unused) = long.keep(&self.node);
                self.scratch.garbage.extend(unused);
                if !is_to_be_written {
                    self.long_replies.push_back(slot);
                    return;
                }
            }
            let slice = long.write(&self.node, &mut connection.output);
            if let Some(block) = slice.block {
                connection.add_block(block, || self.buffers.take());
            }
            if slice.more {
                if connection.output.len() >= BUFFER_FULL_BYTES {
                    connection.put_output_by(|| self.buffers.take());
                }
                self.long_replies.push_back(slot);
            } else {
                self.end_long_reply(slot);
            }
            return;
        }
    }

    /// Whether a slice can be made now.
    pub(super) fn has_slice_to_make(&self) -> bool {
        self.long_replies.iter().any(|&slot| {
            let connection = self.connections[slot as usize].as_ref();
            connection.is_some_and(|connection| may_go_on(connection, self.now_ms))
        })
    }

    /// A connection's long reply is made, or nobody wants it any more.
    pub(super) fn end_long_reply(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let Some(long) = connection.long_reply.take() else { return };
        long.finish(&self.node, &mut self.local, &connection.session);
        // It may be the last to know of a value that is gone.
        self.scratch.garbage.push(Garbage::of(long));
        // What follows may wait for more, or for ever, and part of this has left.
        let gate = connection.session.gate.unwrap_or(self.turn_gate);
        Self::note_everysec(&mut self.everysec_lsn, gate, connection.depends);
        connection.mark_up_to(connection.output.len(), gate);
        let held = std::mem::take(&mut connection.held);
        connection.output.extend_from_slice(&held);
        connection.make_ready(&mut self.ready);
    }
}

fn may_go_on(connection: &Connection, now_ms: u64) -> bool {
    let Some(long) = &connection.long_reply else { return false };
    long.is_computed() && (connection.unsent_bytes() < WINDOW_BYTES || long.is_overdue(now_ms))
}
