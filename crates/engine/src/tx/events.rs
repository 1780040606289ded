//! Events of a transaction.

use super::{Key, Tx};
use crate::events::{CopyEvents, Event, EventClass};
use ladon_model::{DbId, Lsn};

impl Tx<'_> {
    /// Notes an event, if anybody wants this class. Called after the change.
    #[inline(always)]
    pub fn notify(&mut self, class: EventClass, name: &'static str, db: DbId, key: Key<'_>) {
        if self.keyspace.events.has(class) {
            self.scratch.events.push(name, db, key.bytes);
        }
    }

    /// As `notify`, after elements were removed: if the key went with the last one, that is another
    /// event.
    #[inline(always)]
    pub fn notify_removal(
        &mut self,
        class: EventClass,
        name: &'static str,
        db: DbId,
        key: Key<'_>,
    ) {
        if self.keyspace.events.has(EventClass(class.0 | EventClass::GENERIC.0)) {
            self.notify(class, name, db, key);
            self.notify_if_gone(db, key);
        }
    }

    #[cold]
    fn notify_if_gone(&mut self, db: DbId, key: Key<'_>) {
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        if table.get(table.local(key.hash.0), key.bytes).is_none() {
            self.notify(EventClass::GENERIC, "del", db, key);
        }
    }

    /// Copies of this key's value became invalid, if anybody keeps copies. Called after the change.
    #[inline(always)]
    pub(super) fn invalidate(&mut self, key: Key<'_>) {
        if self.keyspace.events.has(EventClass::CHANGED) {
            self.scratch.events.push_changed(key.bytes);
        }
    }

    /// The last change was the server's own, not one that the command was to make.
    #[inline]
    pub(super) fn was_by_server(&mut self) {
        if self.keyspace.events.has(EventClass::CHANGED) {
            self.scratch.events.was_by_server();
        }
    }

    /// Copies of any key's value may have become invalid.
    pub(super) fn invalidate_all(&mut self) {
        if self.keyspace.events.has(EventClass::CHANGED) {
            self.scratch.events.push_flushed();
        }
    }

    /// Notes that a client, which `reader` names, may keep a copy of what it has read of a key.
    /// Passed on in its order among the changes of this transaction.
    pub fn note_read(&mut self, key: Key<'_>, reader: u32) {
        self.scratch.events.push_read(key.bytes, reader);
    }

    /// Says who makes the changes, for those who keep copies. Has no effect if nobody does.
    #[inline(always)]
    pub fn set_origin(&mut self, origin: u64) {
        if !self.scratch.events.is_empty() {
            self.scratch.origin = origin;
        }
    }

    /// Passes the events on, while the locks are held.
    #[cold]
    pub(super) fn deliver_events(&mut self, depends: Lsn) {
        let (keyspace, events) = (self.keyspace, &mut self.scratch.events);
        let origin = std::mem::take(&mut self.scratch.origin);
        if events.are_of_copies()
            && let Some(sink) = keyspace.events.copy_sink()
        {
            let hasher = keyspace.hasher();
            sink(&CopyEvents { collected: events, hasher, origin }, depends);
        }
        let sink = keyspace.events.sink();
        events.drain(|name, db, key| {
            if let Some(sink) = sink {
                sink(&Event { database: keyspace.number_of(db), name, key }, depends);
            }
        });
    }
}
