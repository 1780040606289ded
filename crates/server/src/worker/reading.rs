//! When a connection is read, and when one that was held up runs again.
//!
//! A connection is not read while more requests of its own wait than a turn can run.
//!
//! A client that sends faster than the server runs, or that waits for something, feels that in its
//! own socket and costs no more memory than the bound. A request that is longer than the bound is
//! read to its end: as long as nothing whole waits, reading goes on.

use super::{Net, Worker};
use crate::connection::Connection;

impl Worker {
    /// Puts connections into the line again whose reason to be out of it is gone.
    pub(super) fn resume_held(&mut self) {
        let mut slots = std::mem::take(&mut self.next_turn);
        if !self.await_log_room.is_empty() && !self.log.is_backlogged() {
            slots.append(&mut self.await_log_room);
        }
        slots.extend(self.replies.let_all_go());
        for &slot in &slots {
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            connection.awaits_log_room = false;
            connection.held_back = false;
            connection.make_ready(&mut self.ready);
        }
        slots.clear();
        self.next_turn = slots;
    }

    /// Stops or resumes reading, after the connection's input or state changed.
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
