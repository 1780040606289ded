//! Values for another server (`MIGRATE`), and what became of them there.
//!
//! ```text
//! MIGRATE h 1 k 0 9   freezes k, watches it, releases the locks; the connection waits
//!                     -> an errand, on a thread of its own, sends the value and reads the answer
//!                     -> the request runs again: k is as it was sent? it is deleted
//! ```
//!
//! **Invariant:** an errand holds no lock, and nothing that others wait for.

use crate::ctx::Ctx;
use crate::long::aside_job::{Aside, Product};
use crate::request::outcome::Flow;
use ladon_engine::{Object, ValueRef, WatchFlag};
use std::sync::Arc;
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

impl Ctx<'_> {
    /// Whether the handler may wait for another server.
    pub fn may_wait_for_peers(&self) -> bool {
        self.local.replies_later && !self.must_answer()
    }

    /// Runs an errand, whose result another run of the handler gets ([`Ctx::take_delivery`]); the
    /// handler ends with this. The `watched` keys are locked.
    pub fn run_errand(&mut self, errand: Errand, watched: Vec<Vec<u8>>) {
        let db = self.db();
        let watch = |name: Vec<u8>| {
            let (key, flag) = (self.key(&name), Arc::<WatchFlag>::default());
            self.tx().watch(db, key, &flag);
            (name, flag)
        };
        let watchers = watched.into_iter().map(watch).collect();
        let job = self.job(move |_, _| (Product::Delivery(errand()), None));
        let deferred = self.deferred();
        (deferred.job, deferred.is_errand) = (Some(job), true);
        let db = self.session.db;
        let aside = self.session.aside.get_or_insert_with(|| Box::new(Aside::new(db)));
        aside.watched = watchers;
        self.flow = Flow::Compute;
    }

    /// In a request's second run: what became of its errand, and of the watched keys.
    pub fn take_delivery(&mut self) -> Option<(Delivery, Vec<Watched>)> {
        let aside = self.session.aside.as_mut()?;
        let delivery = aside.delivery.take()?;
        let (watched, depends) = (std::mem::take(&mut aside.watched), aside.depends);
        let db = self.node.keyspace.select(aside.db);
        self.depends = self.depends.max(depends);
        let unwatch = |(name, flag): (Vec<u8>, Arc<WatchFlag>)| {
            let key = self.key(&name);
            // Removes the key if it has expired, which touches it.
            self.tx().exists(db, key);
            self.tx().unwatch(db, key, &flag);
            Watched { is_unchanged: !flag.is_touched(), key: name }
        };
        Some((delivery, watched.into_iter().map(unwatch).collect()))
    }
}
