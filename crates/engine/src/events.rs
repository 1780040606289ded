//! Keyspace events: what happened to which key, for clients that asked to be notified.
//!
//! A transaction collects its events. Its commit passes them to the keyspace's sink while the locks
//! are held, so that the events of one key have the order of its changes.

use ladon_model::{DbId, Lsn};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A class of events, or a set of classes (Redis: `notify-keyspace-events`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClass(pub u32);

#[allow(missing_docs, reason = "Redis' names")]
impl EventClass {
    pub const NONE: EventClass = EventClass(0);
    pub const GENERIC: EventClass = EventClass(1 << 2);
    pub const STRING: EventClass = EventClass(1 << 3);
    pub const LIST: EventClass = EventClass(1 << 4);
    pub const SET: EventClass = EventClass(1 << 5);
    pub const HASH: EventClass = EventClass(1 << 6);
    pub const SORTED_SET: EventClass = EventClass(1 << 7);
    pub const EXPIRED: EventClass = EventClass(1 << 8);
    pub const EVICTED: EventClass = EventClass(1 << 9);
    pub const STREAM: EventClass = EventClass(1 << 10);
    pub const KEY_MISS: EventClass = EventClass(1 << 11);
    pub const MODULE: EventClass = EventClass(1 << 13);
    pub const NEW: EventClass = EventClass(1 << 14);
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The number by which clients select the key's database.
    pub database: u16,
    /// `set`, `lpush`, `expired`...
    pub name: &'static str,
    /// The key.
    pub key: &'a [u8],
}

/// Receives the events of a transaction, in order, and the LSN that they depend on. Called with
/// partitions locked: it must not wait for anything that may take long.
pub type EventSink = Box<dyn Fn(&Event<'_>, Lsn) + Send + Sync>;

/// Which events are wanted, and who receives them.
#[derive(Default)]
pub(crate) struct Wanted {
    classes: AtomicU32,
    sink: OnceLock<EventSink>,
}

impl Wanted {
    #[inline(always)]
    pub(crate) fn has(&self, class: EventClass) -> bool {
        self.classes.load(Relaxed) & class.0 != 0
    }

    /// Collects events of these classes from now on.
    pub(crate) fn set(&self, classes: EventClass) {
        self.classes.store(classes.0, Relaxed);
    }

    /// # Panics
    /// If there is a sink.
    pub(crate) fn deliver_to(&self, sink: EventSink) {
        assert!(self.sink.set(sink).is_ok(), "one node per keyspace");
    }

    pub(crate) fn sink(&self) -> Option<&EventSink> {
        self.sink.get()
    }
}

/// A transaction's events so far.
#[derive(Default)]
pub(crate) struct Collected {
    events: Vec<Noted>,
    /// Their keys, concatenated.
    keys: Vec<u8>,
}

struct Noted {
    name: &'static str,
    db: DbId,
    /// End of its key.
    key_end: usize,
}

/// Memory that a thread keeps for later transactions.
const KEPT_BYTES_MAX: usize = 64 << 10;

impl Collected {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    #[cold]
    pub(crate) fn push(&mut self, name: &'static str, db: DbId, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.events.push(Noted { name, db, key_end: self.keys.len() });
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.keys.clear();
    }

    /// Visits name, database and key of each, and forgets them.
    #[cold]
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(&'static str, DbId, &[u8])) {
        let mut start = 0;
        for Noted { name, db, key_end } in self.events.drain(..) {
            visit(name, db, &self.keys[std::mem::replace(&mut start, key_end)..key_end]);
        }
        self.keys.clear();
        if self.keys.capacity() > KEPT_BYTES_MAX {
            *self = Collected::default();
        }
    }
}
