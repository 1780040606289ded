//! Replies that clients have not taken yet, of all of a thread's connections together.
//!
//! A client may send a long pipeline before it reads the first reply, so the replies have to wait
//! in memory: a server that stopped such a client while it still sends would deadlock with it. But
//! a client that never reads must not use all memory either. So one limit covers all connections
//! (`client-reply-backlog`): above it, a connection with more than a window of unread replies runs
//! no further requests until it reads.
//!
//! The limit may be exceeded by one turn's replies of the thread, because replies are counted at
//! the end of a turn. What a program has made for a connection and the connection has not taken
//! counts as well (`ladon_kernel::untaken`), but does not hold back the connection itself, which
//! takes it in its turns. Once clients have read enough, all held-back connections continue
//! together, in the next turn. That turn comes within a second, because a thread ticks at least
//! that often: reading causes a turn, but a limit raised by another thread does not.

use crate::connection::Connection;
use std::collections::BTreeSet;

/// Unread replies that every connection may have, however many others have: enough to keep a socket
/// busy.
const WINDOW_BYTES: usize = 256 << 10;

/// The log says at most this often that a thread holds back a client.
const TELLS_EVERY_MS: u64 = 1_000;

/// A thread's unread replies.
#[derive(Debug, Default)]
pub(super) struct ReplyBacklog {
    bytes: usize,
    /// This thread's share of `client-reply-backlog`; 0 for no limit.
    pub(super) limit_bytes: usize,
    /// When the log last said that one is held back, Unix milliseconds.
    told_ms: u64,
    /// Connections that run nothing until replies are read.
    held_back: BTreeSet<u32>,
}

impl ReplyBacklog {
    /// Counts the connection's present unread replies, and what it has not taken.
    #[inline]
    pub(super) fn count(&mut self, connection: &mut Connection) {
        let untaken = connection.dialect.iproto().map_or(0, |it| it.session.untaken_bytes());
        self.set(connection, connection.replies.unsent_bytes(), untaken);
    }

    #[inline]
    fn set(&mut self, connection: &mut Connection, output: usize, untaken: usize) {
        let before = connection.counted_output + connection.counted_untaken;
        self.bytes = self.bytes + output + untaken - before;
        connection.counted_output = output;
        connection.counted_untaken = untaken;
    }

    /// Whether the connection may not run a request now.
    #[inline]
    pub(super) fn holds_back(&self, connection: &Connection) -> bool {
        self.is_over() && connection.counted_output > WINDOW_BYTES
    }

    /// All held-back connections, once others have read enough.
    #[inline]
    pub(super) fn let_all_go(&mut self) -> BTreeSet<u32> {
        if self.held_back.is_empty() || self.is_over() {
            return BTreeSet::new();
        }
        std::mem::take(&mut self.held_back)
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the connection is held back.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.held_back.contains(&slot)
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.limit_bytes != 0 && self.bytes > self.limit_bytes
    }

    /// Holds back a connection that has requests.
    #[cold]
    pub(super) fn hold_back(&mut self, connection: &mut Connection, now_ms: u64) {
        if connection.held_back {
            return;
        }
        connection.held_back = true;
        self.held_back.insert(connection.conn.slot);
        // A client that reads slowly is held back and let go many times a second.
        if now_ms.abs_diff(self.told_ms) >= TELLS_EVERY_MS {
            self.told_ms = now_ms;
            tracing::warn!(
                "client id={} is held back: it has {} bytes of replies to read, and those of all \
                 clients are over client-reply-backlog",
                connection.session.info.id,
                connection.counted_output
            );
        }
    }

    /// Whether a held-back connection has read enough to continue.
    #[inline]
    pub(super) fn lets_go(&mut self, connection: &mut Connection) -> bool {
        let goes = connection.held_back && !self.holds_back(connection);
        if goes {
            connection.held_back = false;
            self.held_back.remove(&connection.conn.slot);
        }
        goes
    }

    /// Removes a closed connection.
    pub(super) fn forget(&mut self, connection: &mut Connection) {
        self.set(connection, 0, 0);
        self.held_back.remove(&connection.conn.slot);
    }
}
