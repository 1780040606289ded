//! What a transaction made invalid, on its way to the threads of those that it concerns.

use super::tracker_set::TrackerSet;
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use std::sync::Arc;

/// A batch ends after so many keys, so that a thread takes one within a turn,
const KEYS_MAX: usize = 256;

/// or once its keys have so many bytes.
const BYTES_MAX: usize = 64 << 10;

/// What became invalid, in order: all keys, or some.
#[derive(Debug)]
pub(crate) struct Batch {
    /// They may leave when the receiver's gate has passed this.
    pub(crate) depends: Lsn,
    /// All keys are meant; then there are none here.
    pub(crate) is_all: bool,
    /// The keys, concatenated.
    bytes: Vec<u8>,
    pub(crate) keys: Vec<InvalidKey>,
}

/// A key whose copies are invalid.
#[derive(Debug)]
pub(crate) struct InvalidKey {
    /// End of its bytes.
    end: usize,
    /// The client that changed it; 0 for the server.
    pub(crate) origin: u64,
    /// Who has read it.
    pub(crate) readers: Option<TrackerSet>,
    /// It has a prefix that somebody follows.
    pub(crate) is_followed: bool,
}

impl Batch {
    pub(crate) fn new(depends: Lsn) -> Batch {
        Batch { depends, is_all: false, bytes: Vec::new(), keys: Vec::new() }
    }

    pub(crate) fn all(depends: Lsn) -> Batch {
        Batch { is_all: true, ..Batch::new(depends) }
    }

    pub(crate) fn push(
        &mut self,
        key: &[u8],
        origin: u64,
        readers: Option<TrackerSet>,
        is_followed: bool,
    ) {
        self.bytes.extend_from_slice(key);
        self.keys.push(InvalidKey { end: self.bytes.len(), origin, readers, is_followed });
    }

    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() >= KEYS_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Bytes of the keys.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn key(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.keys[before].end);
        &self.bytes[start..self.keys[at].end]
    }
}

/// A batch for the clients of one thread.
#[derive(Clone, Debug)]
pub struct ForTrackers {
    pub(crate) batch: Arc<Batch>,
    /// What it counts for until it is delivered.
    pub weight: usize,
}

/// An invalidation for a connection that another one chose to get it.
#[derive(Clone, Debug)]
pub struct Redirected {
    /// The connection.
    pub client: u64,
    /// Its place in its thread.
    pub slot: u32,
    /// The invalid keys.
    pub keys: Invalid,
    /// It may leave when the receiver's gate has passed this.
    pub depends: Lsn,
    /// What it counts for until it is delivered.
    pub weight: usize,
}

/// Invalid keys as clients get them.
#[derive(Clone, Debug)]
pub enum Invalid {
    /// An array of keys, encoded; the same in every protocol.
    Keys(Arc<[u8]>),
    /// All: a null.
    All,
}

/// The channel over which a subscriber in RESP2 gets invalidations.
const CHANNEL: &str = "__redis__:invalidate";

/// Appends an invalidation. A connection in RESP2 gets it only as a subscriber.
pub fn write(out: &mut Vec<u8>, proto: Proto, keys: Option<&[u8]>) {
    let mut reply = Reply::new(out, proto);
    if proto == Proto::Resp3 {
        reply.push(2);
        reply.bulk("invalidate");
    } else {
        reply.push(3);
        reply.bulk("message");
        reply.bulk(CHANNEL);
    }
    match keys {
        Some(keys) => out.extend_from_slice(keys),
        None => reply.null(),
    }
}

/// Appends the notice that the connection `redirect` is gone; only over RESP3.
pub fn write_broken(out: &mut Vec<u8>, redirect: u64) {
    let mut reply = Reply::new(out, Proto::Resp3);
    reply.push(2);
    reply.bulk("tracking-redir-broken");
    reply.integer(redirect as i64);
}
