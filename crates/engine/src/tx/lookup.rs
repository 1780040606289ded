//! Looking up a key: the ways differ in what they count and whether the key counts as used.
//!
//! | | hits and misses | access time | Redis |
//! |---|---|---|---|
//! | `peek` | | | |
//! | `get` | | now, as changed | `lookupKeyWrite` |
//! | `inspect` | counted | | `lookupKeyRead`, `LOOKUP_NOTOUCH` |
//! | `inspect_quietly` | counted, no event | | `lookupKeyRead`, `LOOKUP_NOTOUCH`, `LOOKUP_NONOTIFY` |
//! | `read` | counted | now | `lookupKeyRead` |
//! | `touch` | counted | now, even under `no_touch` | |
//!
//! All of them remove or hide an expired key and expired elements (`expiry.rs`), and make the reply
//! depend on the key's last change.
//!
//! # Soundness
//! A [`Found`] is valid until its table changes. It lives only within one of the functions here,
//! and none of them changes the table between the `find` that made it and its use: the changes in
//! between, removing what has expired, precede it or return no `Found`.

use super::{Tx, is_due, is_over};
use crate::access::Use;
use crate::events::EventClass;
use crate::key::Key;
use crate::object::Object;
use crate::table::entry::{EntryRef, ValueRef};
use crate::table::{Found, SlotMut};
use ladon_record::{DbId, UnixMillis};

impl Tx<'_> {
    /// The entry of a key that exists and has not expired; nothing is counted.
    #[inline]
    pub fn peek(&mut self, db: DbId, key: Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(db, key)?;
        Some(self.entry(db, key, found, Use::None))
    }

    /// As `peek`, for a command that uses the key: its access time is now.
    #[inline]
    pub fn get(&mut self, db: DbId, key: Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(db, key)?;
        Some(self.entry(db, key, found, self.use_as(Use::Change)))
    }

    /// As `get`, for a reading command: counts a hit or a miss.
    #[inline]
    pub fn read(&mut self, db: DbId, key: Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find_counted(db, key)?;
        Some(self.entry(db, key, found, self.use_as(Use::Read)))
    }

    /// As `read`, for a command that only inspects the key: its access time stays.
    #[inline]
    pub fn inspect(&mut self, db: DbId, key: Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find_counted(db, key)?;
        Some(self.entry(db, key, found, Use::None))
    }

    /// As `inspect`, without the event about a key that is missing.
    #[inline]
    pub fn inspect_quietly(&mut self, db: DbId, key: Key<'_>) -> Option<EntryRef<'_>> {
        let found = self.find(db, key);
        self.count_lookup(found.is_some());
        Some(self.entry(db, key, found?, Use::None))
    }

    /// Marks the key as used now, whatever the client's `no_touch` says; whether it exists.
    #[inline]
    pub fn touch(&mut self, db: DbId, key: Key<'_>) -> bool {
        let Some(found) = self.find_counted(db, key) else { return false };
        self.entry(db, key, found, Use::Read);
        true
    }

    /// Says of a key that was just stored when it was used before that, or how often, where the
    /// server keeps that.
    pub fn set_use(
        &mut self,
        db: DbId,
        key: Key<'_>,
        idle_s: Option<u64>,
        frequency: Option<u8>,
        now_ms: UnixMillis,
    ) {
        let Some(word) = self.keyspace.access_rules().at(now_ms).of_use(idle_s, frequency) else {
            return;
        };
        let table = &mut self.locked.partition(key.hash).dbs[usize::from(db)].table;
        if let Some(mut slot) = table.get_mut(table.local(key.hash.0), key.bytes) {
            slot.set_access(word);
        }
    }

    /// Whether the key exists; nothing is counted.
    #[inline]
    pub fn exists(&mut self, db: DbId, key: Key<'_>) -> bool {
        self.find(db, key).is_some()
    }

    /// A live entry's place, for changing it; its access time is now. The caller accounts for bytes
    /// when replacing the value there.
    #[inline]
    pub(super) fn slot(&mut self, db: DbId, key: Key<'_>) -> Option<SlotMut<'_>> {
        let found = self.find(db, key)?;
        Some(self.slot_of(db, key, found))
    }

    /// As `slot`, for a caller that changes the value only if it is an integer in its entry: if this
    /// is to be taken back, it is noted here, where the entry is known.
    #[inline]
    pub(super) fn slot_of_int(&mut self, db: DbId, key: Key<'_>) -> Option<SlotMut<'_>> {
        let found = self.find(db, key)?;
        if self.scratch.undoable {
            // SAFETY: the table has not changed since `find`.
            let entry = unsafe { found.entry() };
            if let ValueRef::Int(int) = entry.value() {
                let (expire_at, access) = (entry.expire_at(), entry.access());
                self.scratch.undo().save_int(db, key, (expire_at, access), int);
            }
        }
        Some(self.slot_of(db, key, found))
    }

    /// The place that `find` has just found.
    #[inline(always)]
    fn slot_of(&mut self, db: DbId, key: Key<'_>, found: Found) -> SlotMut<'_> {
        if !self.scratch.no_touch {
            self.entry(db, key, found, Use::Change);
        }
        let table = &mut self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let local = table.local(key.hash.0);
        // SAFETY: the table has not changed since `find`, see the head of the file.
        unsafe { table.slot_at(local, found) }
    }

    // Inlined everywhere, because a call, and a place returned through memory, cost a quarter of a
    // lookup.
    #[inline(always)]
    fn find(&mut self, db: DbId, key: Key<'_>) -> Option<Found> {
        let partition = self.locked.partition(key.hash);
        self.dependency = self.dependency.max(partition.dependency(key.hash));
        let table = &partition.dbs[usize::from(db)].table;
        let found = table.find(table.local(key.hash.0), key.bytes)?;
        // SAFETY: the table has not changed since `find`.
        if is_due(unsafe { found.entry() }, self.now_ms) {
            self.expire(db, key);
            return None;
        }
        // SAFETY: as above.
        let object = unsafe { found.entry() }.object();
        if object.is_some_and(|object| is_over(object.next_expiry(), self.now_ms)) {
            return self.find_without_due_elements(db, key);
        }
        Some(found)
    }

    #[cold]
    fn find_without_due_elements(&mut self, db: DbId, key: Key<'_>) -> Option<Found> {
        if self.only_hides() {
            self.hide_elements(db, key, usize::MAX);
        } else {
            self.expire_elements(db, key, usize::MAX);
        }
        let table = &self.locked.partition(key.hash).dbs[usize::from(db)].table;
        let found = table.find(table.local(key.hash.0), key.bytes)?;
        // SAFETY: the table has not changed since `find`.
        let object = unsafe { found.entry() }.object();
        let shows_nothing = object.is_some_and(Object::shows_nothing);
        (!shows_nothing).then_some(found)
    }

    #[inline]
    fn find_counted(&mut self, db: DbId, key: Key<'_>) -> Option<Found> {
        let found = self.find(db, key);
        self.count_lookup(found.is_some());
        if found.is_none() {
            self.notify(EventClass::KEY_MISS, "keymiss", db, key);
        }
        found
    }

    /// The entry that `find` has just found.
    #[inline]
    fn entry(&mut self, db: DbId, key: Key<'_>, found: Found, how: Use) -> EntryRef<'_> {
        let rules = self.keyspace.access_rules();
        // SAFETY: the table has not changed since `find`, see the head of the file; its lock is
        // held, and stays so while the entry is borrowed from `self`.
        unsafe {
            if how != Use::None {
                let old = found.entry().access();
                let word = rules.after(self.now_ms, old, how, &mut self.scratch.random);
                if word != old {
                    if self.scratch.undoable {
                        // Only looks the key up.
                        self.save_head(db, key);
                    }
                    found.set_access(word);
                }
            }
            found.entry()
        }
    }

    #[inline]
    fn use_as(&self, how: Use) -> Use {
        if self.scratch.no_touch { Use::None } else { how }
    }
}
