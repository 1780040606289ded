//! How a replica asks the server that it follows, and how it waits meanwhile.

use super::log_wait::LogWait;
use ladon_peers::{Client, ClientError, Reply};
use ladon_record::Lsn;
use std::io;
use std::time::{Duration, Instant};

/// So much of the log at once has come from a server that is far ahead.
const MUCH_BYTES: usize = 256 << 10;
/// Then it is brought to the disk so often.
const SYNC_EVERY: Duration = Duration::from_millis(20);

/// The server that is followed, as far as a replica sees it.
pub(super) trait Peer {
    /// Sends a request.
    ///
    /// # Errors
    /// The connection is gone.
    fn send(&mut self, words: &[&[u8]]) -> io::Result<()>;

    /// The answer to the first request that has none.
    ///
    /// # Errors
    /// The connection is gone, or what came is none.
    fn reply(&mut self) -> Result<Reply, ClientError>;

    /// The same; if it is a string, its bytes are appended to `into`, and the reply has none.
    ///
    /// # Errors
    /// As [`Peer::reply`].
    fn reply_into(&mut self, into: &mut Vec<u8>) -> Result<Reply, ClientError>;

    /// Whether an answer of so many bytes of the log tells that the other server has more.
    fn has_more(&mut self, came: usize) -> bool;

    /// Waits until this server's own disk has everything up to `lsn`, and asks for that. Returns
    /// whether it has.
    fn own_durable(&mut self, lsn: Lsn, most: Duration) -> bool;

    /// Asks for that now and then, while more and more comes: a log that is always in a sync is written
    /// slowly.
    fn own_durable_soon(&mut self, lsn: Lsn);

    /// Lets time pass.
    fn rest(&mut self, time: Duration);
}

/// Over a connection, on a thread that may wait.
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) own: LogWait,
    /// When a sync was asked for last, while more and more came.
    pub(super) asked: Instant,
}

impl Peer for Connected {
    fn send(&mut self, words: &[&[u8]]) -> io::Result<()> {
        self.client.send(words)?;
        self.client.flush()
    }

    fn reply(&mut self) -> Result<Reply, ClientError> {
        self.client.reply()
    }

    fn reply_into(&mut self, into: &mut Vec<u8>) -> Result<Reply, ClientError> {
        self.client.reply_into(into)
    }

    fn has_more(&mut self, came: usize) -> bool {
        came >= MUCH_BYTES
    }

    fn own_durable(&mut self, lsn: Lsn, most: Duration) -> bool {
        self.own.durable(lsn, most)
    }

    fn own_durable_soon(&mut self, lsn: Lsn) {
        if self.asked.elapsed() >= SYNC_EVERY {
            self.asked = Instant::now();
            self.own.durable(lsn, Duration::ZERO);
        }
    }

    fn rest(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}
