//! Replies that clients have not taken yet, of all of a thread's connections together.
//!
//! A client may send a long pipeline before it reads the first reply, so the replies have to wait in
//! memory: a server that stops such a client while it still sends makes both wait for ever. But a
//! client that never reads must not take all memory either. So there is one limit for all
//! (`client-reply-backlog`): above it, a connection with more than a window of unread replies runs
//! no further requests until it reads.
//!
//! The limit is held to within one turn's replies of the thread: replies are counted when their turn
//! ends, and all that were held back go on together once the others have read enough. They go on in
//! the turn after the one in which that happened, and that is within a second at the latest, as a
//! thread ticks then: what is read makes a turn, a limit that is raised by another thread does not.

use crate::connection::Connection;
use std::collections::BTreeSet;

/// Unread replies that every connection may have, however many others have: enough to keep a socket
/// busy.
const WINDOW_BYTES: usize = 256 << 10;

/// A thread's unread replies.
#[derive(Debug, Default)]
pub(super) struct ReplyBacklog {
    bytes: usize,
    /// This thread's share of `client-reply-backlog`; 0 for no limit.
    pub(super) limit_bytes: usize,
    /// Connections that run nothing until replies are read.
    held_back: BTreeSet<u32>,
}

impl ReplyBacklog {
    /// Counts what the connection has now.
    #[inline]
    pub(super) fn count(&mut self, connection: &mut Connection, bytes: usize) {
        self.bytes = self.bytes + bytes - connection.counted_output;
        connection.counted_output = bytes;
    }

    /// Whether the connection may run no request now.
    #[inline]
    pub(super) fn holds_back(&self, connection: &Connection) -> bool {
        self.is_over() && connection.counted_output > WINDOW_BYTES
    }

    /// All that were held back, once others have read enough.
    #[inline]
    pub(super) fn let_all_go(&mut self) -> BTreeSet<u32> {
        if self.held_back.is_empty() || self.is_over() {
            return BTreeSet::new();
        }
        std::mem::take(&mut self.held_back)
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.limit_bytes != 0 && self.bytes > self.limit_bytes
    }

    /// The connection, which has requests, stays off the line for now.
    #[cold]
    pub(super) fn hold_back(&mut self, connection: &mut Connection) {
        if !connection.held_back {
            tracing::warn!(
                "client id={} is held back: it has {} bytes of replies to read, and those of all \
                 clients are over client-reply-backlog",
                connection.session.info.id,
                connection.counted_output
            );
            connection.held_back = true;
            self.held_back.insert(connection.conn.slot);
        }
    }

    /// Whether a connection that was held back may go on: it has read.
    #[inline]
    pub(super) fn lets_go(&mut self, connection: &mut Connection) -> bool {
        let goes = connection.held_back && !self.holds_back(connection);
        if goes {
            connection.held_back = false;
            self.held_back.remove(&connection.conn.slot);
        }
        goes
    }

    /// The connection is over.
    pub(super) fn forget(&mut self, connection: &mut Connection) {
        self.count(connection, 0);
        self.held_back.remove(&connection.conn.slot);
    }
}
