//! When a connection is read, and when a held-up connection runs again.
//!
//! Reading pauses while a connection has more complete requests than one turn can run. The bound
//! limits the memory of a client that sends faster than the server runs, or that waits for
//! something; the client's socket fills up instead. A request longer than the bound is read to its
//! end: reading continues as long as no complete request waits. What arrives on a connection that is
//! about to be closed is discarded, up to a bound.

use super::{Net, Worker};
use crate::connection::Connection;
use crate::queues::WaitsFor;

/// Bytes that a connection which is about to be closed may still send, all of which are discarded:
/// with unread ones in the kernel, its last reply might be lost. More than this is a flood, which
/// would have every receive buffer of the thread in use.
const DISCARDED_BYTES_MAX: usize = 64 << 10;

impl Worker {
    /// Queues connections again whose reason to be held up is gone.
    pub(super) fn resume_held(&mut self) {
        for slot in self.queues.take(WaitsFor::NextTurn) {
            self.queue_again(slot, WaitsFor::NextTurn);
        }
        // What they wait for takes more than a turn: beside others, they look once a millisecond.
        let is_due = self.queues.is_empty(WaitsFor::Turn) || self.now_ms != self.looked_at_ms;
        if is_due && !self.queues.is_empty(WaitsFor::WriteRoom) && !self.log.is_backlogged() {
            self.looked_at_ms = self.now_ms;
            for slot in self.queues.take(WaitsFor::WriteRoom) {
                if let Some(connection) = &mut self.connections[slot as usize] {
                    connection.input_waits = false;
                    if let Some(iproto) = connection.dialect.iproto_mut()
                        && let Some(others) = &mut iproto.set_aside
                    {
                        others.write_again();
                    }
                }
                self.queue_again(slot, WaitsFor::WriteRoom);
            }
        }
        for slot in self.replies.let_all_go() {
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            connection.held_back = false;
            self.queues.push(WaitsFor::Turn, connection);
        }
    }

    /// A connection that was taken out of a queue joins those that wait for their turn.
    pub(super) fn queue_again(&mut self, slot: u32, left: WaitsFor) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        connection.waits.remove(left);
        self.queues.push(WaitsFor::Turn, connection);
    }

    /// Pauses or resumes reading, after the connection's input or state changed.
    #[inline]
    pub(super) fn regulate_reading(
        connection: &mut Connection,
        unread_bytes_max: usize,
        net: &mut impl Net,
    ) {
        if connection.discarded > DISCARDED_BYTES_MAX {
            if !std::mem::replace(&mut connection.receive_paused, true) {
                net.pause_receive(connection.conn, true);
            }
            return;
        }
        let unread_bytes_max = Self::unread_bytes_max(connection, unread_bytes_max);
        let unread = connection.unread();
        if !connection.receive_paused && unread <= unread_bytes_max {
            return;
        }
        let waits = connection.has_requests_waiting();
        let pause =
            if connection.receive_paused { waits && unread > unread_bytes_max / 4 } else { waits };
        if pause != connection.receive_paused {
            connection.receive_paused = pause;
            net.pause_receive(connection.conn, pause);
        }
    }
}
