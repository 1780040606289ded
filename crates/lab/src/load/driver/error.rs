//! Why a load ended early.

use std::io;
use std::time::Duration;

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A reply was not the right one.
    #[error(
        "wrong answer on connection {connection} about {about}: expected `{expected}`, got `{got}`"
    )]
    Wrong {
        /// Number of the connection, from 0.
        connection: usize,
        /// What was asked.
        about: String,
        /// The right answer, escaped.
        expected: String,
        /// What came, escaped and cut short.
        got: String,
    },
    /// No reply for a long time.
    #[error("no reply for {0:?}, with {1} requests unanswered")]
    Stalled(Duration, usize),
    /// The server closed a connection.
    #[error("the server closed connection {0}")]
    Closed(usize),
    /// A connection did not open as its protocol says.
    #[error("opening a connection: {0}")]
    Opening(String),
    /// The socket or the poll failed.
    #[error("load generator: {0}")]
    Io(#[from] io::Error),
}
