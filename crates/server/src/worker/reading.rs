//! When a connection is read, and when a held-up connection runs again.
//!
//! Reading pauses while a connection has more complete requests than one turn can run. The bound
//! limits the memory of a client that sends faster than the server runs, or that waits for
//! something; the client's socket fills up instead. A request longer than the bound is read to its
//! end: reading continues as long as no complete request waits. What arrives on a connection that is
//! about to be closed is discarded, up to a bound.

use super::{Net, Worker};
use crate::connection::Connection;

/// Bytes that a connection which is about to be closed may still send, all of which are discarded:
/// with unread ones in the kernel, its last reply might be lost.
const DISCARDED_BYTES_MAX: usize = 1 << 20;

impl Worker {
    /// Queues connections again whose reason to be held up is gone.
    pub(super) fn resume_held(&mut self) {
        let mut slots = std::mem::take(&mut self.next_turn);
        // What they wait for takes more than a turn: beside others, they look once a millisecond.
        let is_due = self.ready.is_empty() || self.now_ms != self.looked_at_ms;
        if is_due && !self.await_write.is_empty() && !self.log.is_backlogged() {
            self.looked_at_ms = self.now_ms;
            slots.append(&mut self.await_write);
        }
        slots.extend(self.replies.let_all_go());
        for &slot in &slots {
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            connection.awaits_write = false;
            connection.input_waits = false;
            if let Some(others) = &mut connection.set_aside {
                others.write_again();
            }
            connection.held_back = false;
            connection.make_ready(&mut self.ready);
        }
        slots.clear();
        self.next_turn = slots;
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
