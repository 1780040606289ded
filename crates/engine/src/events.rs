//! Keyspace events: what happened to which key, for clients that asked to be notified.
//!
//! A transaction collects its events. Its commit passes them to the keyspace's sink while the locks
//! are held, so that the events of one key have the order of its changes.
//!
//! Beside the events that have names, it collects what concerns copies of values outside the
//! server: which keys changed, in whatever way, and who has read which. That is all one batch for a
//! transaction, in its order.

use crate::key::Key;
use ladon_record::{KeyHasher, Lsn, varint};
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
    pub const OVERWRITTEN: EventClass = EventClass(1 << 15);
    pub const TYPE_CHANGED: EventClass = EventClass(1 << 16);
    /// No class: with it, events also have the names of the elements that changed, where a command
    /// says them.
    pub const SUBKEYS: EventClass = EventClass(1 << 30);
    /// Every change of a key: see [`CopyEvent`]. Not one of Redis'.
    pub const CHANGED: EventClass = EventClass(1 << 31);
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
    /// The elements that changed, as far as they were wanted and are known.
    pub subkeys: Subkeys<'a>,
}

/// Names of elements of a value: fields of a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subkeys<'a>(&'a [u8]);

impl<'a> Subkeys<'a> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || varint::take_bytes(&mut rest))
    }
}

/// Collects the names of elements that a command changes, if somebody wants them.
pub struct ChangedNames<'n>(Option<Vec<&'n [u8]>>);

impl<'n> ChangedNames<'n> {
    pub(crate) fn new(wanted: bool) -> ChangedNames<'n> {
        ChangedNames(wanted.then(Vec::new))
    }

    /// Whether somebody wants them.
    #[inline]
    pub fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a name.
    #[inline]
    pub fn push(&mut self, name: &'n [u8]) {
        if let Some(names) = &mut self.0 {
            names.push(name);
        }
    }

    /// Adds names.
    #[inline]
    pub fn extend(&mut self, names: impl IntoIterator<Item = &'n [u8]>) {
        if let Some(all) = &mut self.0 {
            all.extend(names);
        }
    }

    pub(crate) fn names(&self) -> &[&'n [u8]] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Receives the events of a transaction, in order, and the LSN that they depend on. Called with
/// partitions locked: it must not wait for anything that may take long.
pub type EventSink = Box<dyn Fn(&Event<'_>, Lsn) + Send + Sync>;

/// What happened to copies of values that clients keep.
#[derive(Clone, Copy, Debug)]
pub enum CopyEvent<'a> {
    /// A client has read a key, in some database, and may keep a copy.
    Made {
        /// The key.
        key: Key<'a>,
        /// The client, as the reader has named it ([`Tx::note_read`]).
        ///
        /// [`Tx::note_read`]: crate::Tx::note_read
        reader: u32,
    },
    /// Copies of a key's value became invalid, in whichever database.
    Invalid {
        /// The key.
        key: Key<'a>,
        /// The server changed it (the key expired or was evicted), and not the caller's command.
        by_server: bool,
    },
    /// Those of all keys did.
    AllInvalid,
}

/// Receives what a transaction did to copies, and the LSN that it depends on. Called as an
/// [`EventSink`].
pub type CopySink = Box<dyn Fn(&CopyEvents<'_>, Lsn) + Send + Sync>;

/// Which events are wanted, and who receives them.
#[derive(Default)]
pub(crate) struct Wanted {
    classes: AtomicU32,
    sink: OnceLock<EventSink>,
    copy_sink: OnceLock<CopySink>,
}

impl Wanted {
    #[inline(always)]
    pub(crate) fn has(&self, class: EventClass) -> bool {
        self.classes.load(Relaxed) & class.0 != 0
    }

    /// Whether any are.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.classes.load(Relaxed) != 0
    }

    /// Collects events of these classes from now on, `CHANGED` as before.
    pub(crate) fn set(&self, classes: EventClass) {
        let changed = EventClass::CHANGED.0;
        let keep = |before| Some(classes.0 & !changed | before & changed);
        let _ = self.classes.fetch_update(Relaxed, Relaxed, keep);
    }

    /// Collects changes from now on, or no longer.
    pub(crate) fn set_changes(&self, wanted: bool) {
        let changed = EventClass::CHANGED.0;
        if wanted {
            self.classes.fetch_or(changed, Relaxed);
        } else {
            self.classes.fetch_and(!changed, Relaxed);
        }
    }

    /// # Panics
    /// If there is a sink.
    pub(crate) fn deliver_to(&self, sink: EventSink) {
        assert!(self.sink.set(sink).is_ok(), "one node per keyspace");
    }

    pub(crate) fn sink(&self) -> Option<&EventSink> {
        self.sink.get()
    }

    /// # Panics
    /// If there is a sink.
    pub(crate) fn deliver_copies_to(&self, sink: CopySink) {
        assert!(self.copy_sink.set(sink).is_ok(), "one node per keyspace");
    }

    pub(crate) fn copy_sink(&self) -> Option<&CopySink> {
        self.copy_sink.get()
    }
}

/// A transaction's events so far.
#[derive(Default)]
pub(crate) struct Collected {
    events: Vec<Noted>,
    /// Their keys, concatenated, each followed by the length and the bytes of its changed elements.
    keys: Vec<u8>,
    /// Some concern copies.
    of_copies: bool,
}

struct Noted {
    what: What,
    /// End of its key.
    key_end: usize,
    /// End of the names of its elements.
    end: usize,
}

enum What {
    /// Its name, and the number of its database when it happened.
    Event(&'static str, u16),
    Read(u32),
    Changed {
        by_server: bool,
    },
    Flushed,
}

/// Memory that a thread keeps for later transactions.
const KEPT_BYTES_MAX: usize = 64 << 10;

impl Collected {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether some concern copies of values.
    pub(crate) fn are_of_copies(&self) -> bool {
        self.of_copies
    }

    #[cold]
    pub(crate) fn push(&mut self, name: &'static str, number: u16, key: &[u8], subkeys: &[&[u8]]) {
        self.keys.extend_from_slice(key);
        let key_end = self.keys.len();
        subkeys.iter().for_each(|subkey| varint::put_bytes(&mut self.keys, subkey));
        self.events.push(Noted { what: What::Event(name, number), key_end, end: self.keys.len() });
    }

    /// A client has read a key.
    #[cold]
    pub(crate) fn push_read(&mut self, key: &[u8], reader: u32) {
        self.of_copies = true;
        self.keys.extend_from_slice(key);
        self.note(What::Read(reader));
    }

    /// A key changed.
    #[cold]
    pub(crate) fn push_changed(&mut self, key: &[u8]) {
        self.of_copies = true;
        self.keys.extend_from_slice(key);
        self.note(What::Changed { by_server: false });
    }

    /// The last change of a key was the server's own.
    #[cold]
    pub(crate) fn was_by_server(&mut self) {
        let last = self.events.iter_mut().rev();
        for Noted { what, .. } in last {
            if let What::Changed { by_server } = what {
                *by_server = true;
                return;
            }
        }
    }

    /// All keys of a database changed. Two databases in a row count as one.
    #[cold]
    pub(crate) fn push_flushed(&mut self) {
        if !matches!(self.events.last(), Some(Noted { what: What::Flushed, .. })) {
            self.of_copies = true;
            self.note(What::Flushed);
        }
    }

    fn note(&mut self, what: What) {
        let end = self.keys.len();
        self.events.push(Noted { what, key_end: end, end });
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.keys.clear();
        self.of_copies = false;
    }

    /// Visits name, database number, key and changed elements of each event, and forgets all that
    /// was collected.
    #[cold]
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(&'static str, u16, &[u8], Subkeys<'_>)) {
        let mut start = 0;
        for Noted { what, key_end, end } in self.events.drain(..) {
            let key = &self.keys[std::mem::replace(&mut start, end)..key_end];
            if let What::Event(name, number) = what {
                visit(name, number, key, Subkeys(&self.keys[key_end..end]));
            }
        }
        self.keys.clear();
        self.of_copies = false;
        if self.keys.capacity() > KEPT_BYTES_MAX {
            *self = Collected::default();
        }
    }
}

/// What a transaction did to copies of values.
pub struct CopyEvents<'a> {
    pub(crate) collected: &'a Collected,
    pub(crate) hasher: &'a KeyHasher,
    /// Who made the changes, as the committer has said by [`Tx::set_origin`]; 0 if it has not.
    ///
    /// [`Tx::set_origin`]: crate::Tx::set_origin
    pub origin: u64,
}

impl CopyEvents<'_> {
    /// Each of them, in order. A key that changed twice comes twice.
    pub fn iter(&self) -> impl Iterator<Item = CopyEvent<'_>> {
        let mut start = 0;
        self.collected.events.iter().filter_map(move |&Noted { ref what, key_end, end }| {
            let bytes = &self.collected.keys[std::mem::replace(&mut start, end)..key_end];
            let key = || Key { bytes, hash: self.hasher.hash(bytes) };
            match *what {
                What::Event(..) => None,
                What::Read(reader) => Some(CopyEvent::Made { key: key(), reader }),
                What::Changed { by_server } => Some(CopyEvent::Invalid { key: key(), by_server }),
                What::Flushed => Some(CopyEvent::AllInvalid),
            }
        })
    }
}
