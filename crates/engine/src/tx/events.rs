//! Events of a transaction.

use super::{Scratch, Tx};
use crate::events::{ChangedNames, CopyEvents, Event, EventClass};
use crate::key::Key;
use crate::keyspace::Keyspace;
use crate::space::{MOUNTS_DATABASE, TupleEvent};
use crate::table::entry::EntryRef;
use crate::types;
use ladon_record::{DbId, Lsn, ValueKind};

impl Tx<'_> {
    /// Notes an event, if anybody wants this class. Called after the change.
    #[inline(always)]
    pub fn notify(&mut self, class: EventClass, name: &'static str, db: DbId, key: Key<'_>) {
        if self.keyspace.events.has(class) {
            let number = self.keyspace.number_of(db);
            self.scratch.events.push(name, number, key.bytes, &[]);
        }
    }

    /// For the names of the elements that change, if somebody wants them with events of this class.
    #[inline(always)]
    pub fn changed_names<'n>(&self, class: EventClass) -> ChangedNames<'n> {
        let wanted = |class| self.keyspace.events.has(class);
        ChangedNames::new(wanted(EventClass::SUBKEYS) && wanted(class))
    }

    /// As `notify`, with the names of the elements that changed.
    #[inline(always)]
    pub fn notify_of(
        &mut self,
        class: EventClass,
        name: &'static str,
        db: DbId,
        key: Key<'_>,
        changed: &ChangedNames<'_>,
    ) {
        if self.keyspace.events.has(class) {
            let number = self.keyspace.number_of(db);
            self.scratch.events.push(name, number, key.bytes, changed.names());
        }
    }

    /// Called before a key gets another value as a whole: notes the events of that, if somebody
    /// wants them and the key has a value.
    #[inline(always)]
    pub(super) fn note_overwritten(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) {
        let wanted = EventClass(EventClass::OVERWRITTEN.0 | EventClass::TYPE_CHANGED.0);
        if self.keyspace.events.has(wanted) {
            self.overwritten(db, key, kind);
        }
    }

    #[cold]
    fn overwritten(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) {
        let now_ms = self.now_ms;
        let is_alive = |entry: &EntryRef<'_>| entry.expire_at() == 0 || entry.expire_at() > now_ms;
        let old = self.peek(db, key).filter(is_alive).map(|entry| types::kind_of(entry.value()));
        let Some(old) = old else { return };
        self.notify(EventClass::OVERWRITTEN, "overwritten", db, key);
        if old != kind {
            self.notify(EventClass::TYPE_CHANGED, "type_changed", db, key);
        }
    }

    /// Whether the event `new` is due for a key that is about to be replaced as if it were deleted
    /// and made anew.
    pub fn will_be_new(&mut self, db: DbId, key: Key<'_>) -> bool {
        self.keyspace.events.has(EventClass::NEW) && self.exists(db, key)
    }

    /// As `notify_of`, after elements were removed: if the key went with the last one, that is
    /// another event.
    #[inline(always)]
    pub fn notify_removal_of(
        &mut self,
        class: EventClass,
        name: &'static str,
        db: DbId,
        key: Key<'_>,
        changed: &ChangedNames<'_>,
    ) {
        if self.keyspace.events.has(EventClass(class.0 | EventClass::GENERIC.0)) {
            self.notify_of(class, name, db, key, changed);
            self.notify_if_gone(db, key);
        }
    }

    /// As `notify_removal_of`, without names.
    #[inline(always)]
    pub fn notify_removal(
        &mut self,
        class: EventClass,
        name: &'static str,
        db: DbId,
        key: Key<'_>,
    ) {
        self.notify_removal_of(class, name, db, key, &ChangedNames::new(false));
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
        self.scratch.deliver_events(self.keyspace, depends);
    }
}

impl Scratch {
    /// Notes that a tuple was written or deleted, which is a key of a mounted space. As the engine
    /// sees it: which command or request did so makes no difference.
    #[cold]
    pub(crate) fn note_tuple(&mut self, keyspace: &Keyspace, event: &TupleEvent) {
        let (wanted, key) = (&keyspace.events, &event.key[..]);
        if event.is_new && wanted.has(EventClass::NEW) {
            self.events.push("new", MOUNTS_DATABASE, key, &[]);
        }
        let class = if event.name == "del" { EventClass::GENERIC } else { EventClass::HASH };
        if wanted.has(class) {
            self.events.push(event.name, MOUNTS_DATABASE, key, &[]);
        }
        if wanted.has(EventClass::CHANGED) {
            self.events.push_changed(key);
        }
    }

    /// Notes that copies of any tuple may be invalid.
    pub(crate) fn note_all_tuples(&mut self, keyspace: &Keyspace) {
        if keyspace.events.has(EventClass::CHANGED) {
            self.events.push_flushed();
        }
    }

    /// Passes the events on, while the locks are held.
    #[cold]
    pub(crate) fn deliver_events(&mut self, keyspace: &Keyspace, depends: Lsn) {
        let events = &mut self.events;
        let origin = std::mem::take(&mut self.origin);
        if events.are_of_copies()
            && let Some(sink) = keyspace.events.copy_sink()
        {
            let hasher = keyspace.hasher();
            sink(&CopyEvents { collected: events, hasher, origin }, depends);
        }
        let sink = keyspace.events.sink();
        events.drain(|name, database, key, subkeys| {
            if let Some(sink) = sink {
                sink(&Event { database, name, key, subkeys }, depends);
            }
        });
    }
}
