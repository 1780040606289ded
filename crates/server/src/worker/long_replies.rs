//! Replies that are made in slices, one slice per turn, while other connections are served.
//!
//! A slice is made when the client has taken the previous ones, so that a long reply never occupies
//! memory as a whole. But while a value is frozen, other commands have to copy what they change of
//! it. A slow client therefore has only one second. After that, the rest is made whether the client
//! takes it or not, or the part of the value that it needs is copied. Both count as the client's
//! output.

use super::Worker;
use super::buffers::BUFFER_BYTES_MAX;
use crate::connection::Connection;
use crate::dialect::ReplyOrder;
use crate::queues::WaitsFor;
use ladon_engine::Garbage;
use ladon_kernel::long::long_reply::LongReply;
use ladon_record::Lsn;
use std::sync::atomic::Ordering::Relaxed;

/// A connection with less output than this gets another slice: enough to keep a socket busy.
const WINDOW_BYTES: usize = 512 << 10;

/// A buffer is sent or queued at this size, about a slice, so that buffers keep the size that is
/// reused.
const BUFFER_FULL_BYTES: usize = BUFFER_BYTES_MAX / 2;

impl Worker {
    /// Registers the long reply of the request that has just run.
    pub(super) fn begin_long_reply(&mut self, slot: u32, long: Box<LongReply>) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        debug_assert!(connection.replies.long.is_none(), "one at a time");
        connection.replies.long = Some(long);
        // The others begin with their requests.
        connection.replies.long_has_begun =
            connection.dialect.reply_order() == ReplyOrder::Requests;
        self.long_replies.push_back(slot);
    }

    /// Makes one slice of the next long reply in turn.
    pub(super) fn go_on_with_long_replies(&mut self) {
        for _ in 0..self.long_replies.len() {
            let Some(slot) = self.long_replies.pop_front() else { return };
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            if connection.closed || connection.aborted || connection.replies.long.is_none() {
                continue;
            }
            if !may_go_on(connection, self.now_ms) {
                self.long_replies.push_back(slot);
                continue;
            }
            self.queues.push(WaitsFor::Release, connection);
            let Some(long) = &mut connection.replies.long else { continue };
            let elements = self.node.slicing.slice_elements.load(Relaxed);
            if long.is_overdue(self.now_ms) {
                let (is_to_be_written, unused) = long.keep(&*self.node.clock, elements);
                self.bench.scratch.garbage.extend(unused);
                if !is_to_be_written {
                    self.long_replies.push_back(slot);
                    return;
                }
            }
            let before = connection.replies.output.len();
            let slice = long.write(&*self.node.clock, elements, &mut connection.replies.output);
            if connection.replies.output.len() > before {
                connection.replies.long_has_begun = true;
                connection.replies.depends =
                    connection.replies.depends.max(connection.replies.long_depends);
            }
            // Looked at once the slice has been read.
            let held = connection.held_read.as_deref();
            if !Self::is_of_follower(&self.node, connection.session.gate, held) {
                let depends = long.depends();
                connection.replies.depends = connection.replies.depends.max(depends);
            }
            if let Some(block) = slice.block {
                connection.replies.add_block(block, || self.buffers.take());
            }
            if slice.more {
                if connection.replies.output.len() >= BUFFER_FULL_BYTES {
                    connection.replies.put_output_by(|| self.buffers.take());
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

    /// Ends a connection's long reply, which is complete or no longer wanted.
    pub(super) fn end_long_reply(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let Some(long) = connection.replies.long.take() else { return };
        self.bench.local.finish_long_reply(&self.node, &connection.session, &long);
        // The reply may hold the last reference to a deleted value.
        self.bench.scratch.garbage.push(Garbage::of(long));
        // Later replies may wait longer, or forever, while part of this one was sent.
        let gate = connection.session.gate.unwrap_or(self.turn_gate);
        Self::note_everysec(&mut self.everysec_lsn, gate, connection.replies.depends);
        let made_ns = self.turn.made_ns();
        connection.replies.mark_up_to(connection.replies.output.len(), gate, made_ns);
        connection.replies.end_long_reply();
        connection.replies.release_held();
        if let Some(iproto) = connection.dialect.iproto_mut() {
            if let Some(others) = &mut iproto.set_aside {
                others.reply_is_made();
            }
            iproto.tidy_set_aside();
        }
        connection.replies.long_depends = Lsn::ZERO;
        self.queues.push(WaitsFor::Turn, connection);
    }
}

fn may_go_on(connection: &Connection, now_ms: u64) -> bool {
    let Some(long) = &connection.replies.long else { return false };
    long.is_ready() && (connection.replies.unsent_bytes() < WINDOW_BYTES || long.is_overdue(now_ms))
}
