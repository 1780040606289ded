//! What is sent to another server, and what it said of it.

use ladon_engine::{Object, ValueRef};
use std::time::Duration;

/// Values for another server.
#[derive(Debug)]
pub struct Parcel {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// As whom to log in there, if at all.
    pub login: Option<Login>,
    /// The number of a database there.
    pub database: i64,
    /// The longest wait for the server's next step.
    pub patience: Duration,
    /// Whether keys that are there are replaced.
    pub replaces: bool,
    /// What to send, in this order.
    pub values: Vec<ParcelValue>,
}

/// A user of another server, and the password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Login {
    /// The default one if there is none.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Vec<u8>,
}

/// Without the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

/// A key of a [`Parcel`].
#[derive(Debug)]
pub struct ParcelValue {
    /// Its name.
    pub key: Vec<u8>,
    /// When it expires, Unix milliseconds; 0 for never.
    pub expire_at: u64,
    /// Its value.
    pub value: Frozen,
}

/// A value that can be read without locks.
#[derive(Debug)]
pub enum Frozen {
    /// A short string.
    Bytes(Vec<u8>),
    /// Any other value.
    Object(Object),
}

impl Frozen {
    /// The value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Frozen::Bytes(bytes) => ValueRef::Bytes { bytes, grown: false },
            Frozen::Object(object) => ValueRef::Object(object),
        }
    }
}

/// What became of a [`Parcel`].
#[derive(Debug, Default)]
pub struct Delivery {
    /// What the target said of each value, from the first one on. What is missing was not answered.
    pub answers: Vec<Answered>,
    /// The first thing that went wrong.
    pub failure: Option<Undelivered>,
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The target has it.
    pub is_taken: bool,
    /// When it expires, there as here; 0 for never.
    pub expire_at: u64,
}

/// A key that was watched.
#[derive(Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its name.
    pub key: Vec<u8>,
    /// Whether it is as it was.
    pub is_unchanged: bool,
}

/// Why a value was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// There is no connection.
    Connecting,
    /// The target does not take what is sent.
    Writing,
    /// The target does not answer, or not as a server of Redis' protocol does.
    Reading,
    /// The target's error, without its leading `-`.
    Refused(Vec<u8>),
    /// No version of RDB has the value.
    Unwritable(String),
}

/// Delivers a parcel: takes as long as the target lets it, and ends when the target does nothing for
/// as long as the parcel's patience.
pub type Errand = Box<dyn FnOnce() -> Delivery + Send>;

/// The way to other servers.
pub trait Peers: Send + Sync {
    /// Takes a parcel; `None` if too many are under way, to its target or at all. Waits for nothing.
    fn take(&self, parcel: Parcel) -> Option<Errand>;

    /// Number of connections that are kept for the next parcel.
    fn idle_connections(&self) -> usize;

    /// Closes the connections that were not used for long.
    fn tidy(&self);
}
