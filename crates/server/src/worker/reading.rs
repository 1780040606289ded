//! When a connection is read, and when a held-up connection runs again.
//!
//! Reading pauses while a connection has more complete requests than one turn can run. The bound
//! limits the memory of a client that sends faster than the server runs, or that waits for
//! something; the client's socket fills up instead. A request longer than the bound is read to its
//! end: reading continues as long as no complete request waits.

use super::{Net, Worker};
use crate::connection::Connection;

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
