//! What must hold between two turns, checked where debug assertions are on: every flag of a
//! connection says on which of the worker's lists it is, and a connection with a whole request
//! that may run is in the line, as nobody would ever run it otherwise.

use super::Worker;
use crate::connection::Connection;
use crate::queues::WaitsFor;
use crate::set_aside::SetAside;
use ladon_platform::lock_order;
use ladon_resp::Limits;

/// With more connections, only every so many turns are looked at.
const CONNECTIONS_PER_TURN: u32 = 64;
/// Longer input is not parsed once more.
const PARSED_BYTES_MAX: usize = 1024;

impl Worker {
    /// After the second half of a turn, but not in the middle of a script.
    pub(super) fn debug_assert_sound(&mut self) {
        if !cfg!(debug_assertions) || self.away.is_some() {
            return;
        }
        // A thread that holds data never waits for the network.
        lock_order::check(lock_order::Place::LOG_SYNC);
        self.turns = self.turns.wrapping_add(1);
        let every = (self.connections.len() as u32).div_ceil(CONNECTIONS_PER_TURN).max(1);
        if self.turns.is_multiple_of(every) {
            let all = self.connections.iter().flatten();
            let (count, unread_replies) = all.fold((0, 0), |(count, bytes), connection| {
                self.assert_listed(connection);
                (count + 1, bytes + connection.counted_output + connection.counted_untaken)
            });
            assert_eq!(self.open, count, "open connections");
            assert_eq!(self.replies.bytes(), unread_replies, "unread replies of all connections");
        }
    }

    fn assert_listed(&self, connection: &Connection) {
        connection.debug_assert_sound();
        let slot = connection.conn.slot;
        self.queues.assert_sound(connection);
        let is_bounded = |others: &SetAside| others.is_bounded(self.pace.unread_bytes_max);
        assert!(set_aside(connection).is_none_or(is_bounded), "too much was set aside");
        // One that is about to go gets no more slices, and keeps what is left of its reply until
        // then.
        let goes = connection.closed || connection.aborted;
        let has_slices = connection.replies.long.is_none() || self.long_replies.contains(&slot);
        assert!(has_slices || goes, "a long reply without slices");
        assert_eq!(self.replies.has(slot), connection.held_back, "client {slot} held back");
        let has_request = || has_request(connection, &self.limits);
        if !self.stopping && (may_run_set_aside(connection) || may_run(connection) && has_request())
        {
            assert!(
                connection.waits.has_either(WaitsFor::Turn, WaitsFor::NextTurn)
                    || connection.held_back,
                "client {slot} has a request that nobody will run"
            );
        }
    }
}

/// Whether it is known from the connection alone that its next request may run.
fn may_run(connection: &Connection) -> bool {
    let is_held = set_aside(connection).is_some_and(|others| others.holds_input);
    let again = connection.dialect.resp().is_some_and(|resp| resp.again.is_some());
    connection.is_runnable() && !again && !is_held
}

fn may_run_set_aside(connection: &Connection) -> bool {
    connection.is_runnable() && set_aside(connection).is_some_and(|others| others.is_ready())
}

fn has_request(connection: &Connection, limits: &Limits) -> bool {
    let unread = &connection.input[connection.consumed..];
    if unread.is_empty() || unread.len() > PARSED_BYTES_MAX {
        return false;
    }
    let limits = limits.with_authenticated(connection.session.authenticated);
    connection.dialect.begins_with_request(unread, &limits)
}

fn set_aside(connection: &Connection) -> Option<&SetAside> {
    connection.dialect.iproto()?.set_aside.as_deref()
}
