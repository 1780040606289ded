//! Events of a transaction.

use super::{Key, Tx};
use crate::events::{Event, EventClass};
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

    /// Passes the events on, while the locks are held.
    #[cold]
    pub(super) fn deliver_events(&mut self, depends: Lsn) {
        let (keyspace, events) = (self.keyspace, &mut self.scratch.events);
        let sink = keyspace.events.sink();
        events.drain(|name, db, key| {
            if let Some(sink) = sink {
                sink(&Event { database: keyspace.number_of(db), name, key }, depends);
            }
        });
    }
}
