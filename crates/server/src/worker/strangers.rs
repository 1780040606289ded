//! Clients that have not logged in, where that is needed: what they may take of the server.
//!
//! One that leaves replies unread runs nothing until it reads them, and is closed if it does not.
//! One that sends on and on is closed after some replies in a row, as in Redis, and is read no
//! further than it is answered (`reading.rs`).

use super::Worker;
use crate::connection::Connection;
use crate::queues::{Queues, WaitsFor};
use ladon_platform::{Seldom, seldom};
use std::time::Duration;

/// With more unread replies than this, such a client runs nothing, and is closed in the next turn.
const UNREAD_REPLY_BYTES_MAX: usize = 1024;

/// After more bytes of replies than this without a break in its requests, such a client is closed:
/// what Redis has room for in a client's first buffer and behind it.
const REPLY_BYTES_IN_A_ROW_MAX: u64 = 17 << 10;

/// Bytes of waiting requests above which such a client is not read.
const UNREAD_BYTES_MAX: usize = 16 << 10;

impl Worker {
    /// Whether a client that has not logged in may run no request now.
    pub(super) fn stops_stranger(
        connection: &mut Connection,
        queues: &mut Queues,
        now_ms: u64,
    ) -> bool {
        let was_full = std::mem::take(&mut connection.is_full_stranger);
        if connection.replies.replies_in_a_row() > REPLY_BYTES_IN_A_ROW_MAX {
            Self::tell_of_closing(
                connection,
                now_ms,
                "it sends on and on without having logged in",
            );
            connection.aborted = true;
            return true;
        }
        if connection.replies.output_bytes() > UNREAD_REPLY_BYTES_MAX {
            // Replies of an earlier turn that the client has read were reported since.
            connection.aborted = was_full;
            connection.is_full_stranger = true;
            queues.push(WaitsFor::NextTurn, connection);
            return true;
        }
        false
    }

    /// Says in the server's log why a client is closed.
    #[cold]
    pub(super) fn tell_of_closing(connection: &Connection, now_ms: u64, why: &str) {
        /// Thousands may be closed for the same.
        static SELDOM: Seldom = Seldom::new(20, Duration::from_secs(10));
        if let Some(left_out) = SELDOM.may_say(now_ms) {
            tracing::warn!(
                "closing client id={} addr={}: {why}{}",
                connection.session.info.id,
                connection.session.info.addr,
                seldom::left_out(left_out)
            );
        }
    }

    /// Bytes of waiting requests above which the connection is not read.
    #[inline]
    pub(super) fn unread_bytes_max(connection: &Connection, of_all: usize) -> usize {
        match connection.session.authenticated {
            true => of_all,
            false => of_all.min(UNREAD_BYTES_MAX),
        }
    }
}
