//! Applies what another node has logged, while clients read.
//!
//! A record is a whole transaction of that node. All of its partitions are locked before the first
//! change, and the spaces after them, so readers see all of it or nothing. Watchers, waiters and those who keep copies hear of
//! it as they do of a client's change. No clock is asked: what has expired is removed when the other
//! node says so.

mod events;

use super::{Scratch, Tx};
use crate::apply::{ApplyError, library_of, readable, update_entry};
use crate::item::ItemHead;
use crate::key::Key;
use crate::keyspace::{Keyspace, Locks};
use crate::object::Object;
use crate::space::defines;
use crate::table::entry::ValueInit;
use crate::types::string;
use ladon_record::{Change, Changes, DbId, KeyHash, Lsn, SpaceId, ValueKind};
use smallvec::SmallVec;
use std::sync::Arc;

/// A change, and its value if that was made of its body before the locks were taken.
struct Prepared<'r>(Change<'r>, Option<Box<Object>>);

/// A record's changes, and what they lock.
#[derive(Default)]
struct Plan<'r> {
    /// Most records have one.
    changes: SmallVec<[Prepared<'r>; 1]>,
    hashes: SmallVec<[KeyHash; 1]>,
    locks_all: bool,
    /// In order.
    spaces: Vec<SpaceId>,
    /// The space of a definition: then all of the record's changes are definitions.
    definition: Option<SpaceId>,
}

/// What a record was that was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Definitions of spaces may have changed, and their version: who watches it is to hear so.
    pub defines: bool,
}

impl Keyspace {
    /// Applies a record of the log of the node that this one follows; it is in this node's log as
    /// well, at `lsn`, on which replies to readers will depend. Records come in order, from one
    /// thread at a time. What is left in `scratch` is for its owner, as after a commit.
    ///
    /// # Errors
    /// If the record contradicts the data, of which the part in front of the fault is applied then:
    /// this node's data is not the other's, and must not be used any more.
    pub fn follow(
        &self,
        lsn: Lsn,
        record: &[u8],
        scratch: &mut Scratch,
        now_ms: u64,
    ) -> Result<Followed, ApplyError> {
        let Plan { changes, hashes, locks_all, spaces, definition } = self.plan(record)?;
        if definition.is_some() {
            for Prepared(change, _) in &changes {
                if let Change::SpacePut { space, .. } | Change::SpaceDelete { space, .. } = *change
                {
                    self.follow_definition(space, *change, lsn, scratch, now_ms)?;
                }
            }
            return Ok(Followed { defines: true });
        }
        let locks = match &hashes[..] {
            _ if locks_all => Locks::All,
            [] => Locks::None,
            &[hash] => Locks::One(hash),
            hashes => Locks::Keys(hashes),
        };
        let mut tx = self.begin(locks, scratch, now_ms);
        let locked = if spaces.is_empty() { Ok(()) } else { tx.lock_followed_spaces(&spaces) };
        let followed =
            locked.and_then(|()| changes.into_iter().try_for_each(|change| tx.follow(change)));
        tx.end_following(lsn);
        followed.map(|()| Followed { defines: false })
    }

    /// Reads a record as far as that needs no lock.
    fn plan<'r>(&self, record: &'r [u8]) -> Result<Plan<'r>, ApplyError> {
        let mut plan = Plan::default();
        for change in Changes::new(record) {
            let change = change?;
            match change {
                Change::SpacePut { space, .. } | Change::SpaceDelete { space, .. } => {
                    plan.spaces.push(space);
                    if defines(space) {
                        plan.definition = Some(space);
                    }
                    plan.changes.push(Prepared(change, None));
                    continue;
                }
                Change::SwapDb { first, second } => self.check_db(first.max(second))?,
                Change::FlushDb { db } => self.check_db(db)?,
                _ => {}
            }
            let mut object = None;
            match change.key() {
                None => plan.locks_all = true,
                Some((db, key)) => {
                    self.check_db(db)?;
                    plan.hashes.push(self.hash(key));
                }
            }
            if let Change::Put { key, kind, body, .. } = change
                && kind != ValueKind::String
            {
                let decoded = Object::decode(kind, body, self.env());
                let malformed = || ApplyError::Malformed { what: "value", key: readable(key) };
                object = Some(Box::new(decoded.ok_or_else(malformed)?));
            }
            plan.changes.push(Prepared(change, object));
        }
        if let Some(space) = plan.definition
            && !plan.spaces.iter().all(|space| defines(*space))
        {
            let text = "a definition beside changes of data in one record".to_owned();
            return Err(ApplyError::Space(space, text));
        }
        plan.spaces.sort_unstable();
        plan.spaces.dedup();
        Ok(plan)
    }

    pub(crate) fn check_db(&self, db: DbId) -> Result<(), ApplyError> {
        if db < self.databases() { Ok(()) } else { Err(ApplyError::NoSuchDb(db)) }
    }
}

impl Tx<'_> {
    fn follow(&mut self, Prepared(change, object): Prepared<'_>) -> Result<(), ApplyError> {
        match change {
            Change::Put { db, key, expire_at, kind, body } => {
                let key = self.key(key);
                let value = match object {
                    Some(object) => ValueInit::Object(object),
                    None => string::init(body, string::Form::Shortest),
                };
                let before = self.look_before(db, key);
                self.note_overwritten(db, key, kind);
                self.put(db, key, value, expire_at);
                self.noted(db, key, true, Some(kind));
                self.notify_put((db, key), kind, expire_at, before);
            }
            Change::PutItem { db, key, expire_at, marks, body } => {
                let (key, kind) = (self.key(key), ValueKind::String);
                let head = ItemHead::of_marks(marks);
                let before = self.look_before(db, key);
                self.note_overwritten(db, key, kind);
                let value = string::init_item(body, string::Form::Shortest, head);
                self.put(db, key, value, expire_at);
                self.noted(db, key, true, Some(kind));
                self.notify_put((db, key), kind, expire_at, before);
            }
            Change::Delete { db, key } => {
                let key = self.key(key);
                let before = self.look_before(db, key);
                if let Some(removed) = self.remove(db, key) {
                    self.scratch.discard(removed.object);
                }
                self.noted(db, key, false, None);
                self.notify_delete(db, key, before);
            }
            Change::Expire { db, key, expire_at } => {
                let key = self.key(key);
                self.follow_expiry(db, key, expire_at)?;
                self.noted(db, key, true, None);
                self.notify_expiry(db, key, expire_at);
            }
            Change::Update { db, key, kind, op } => {
                let key = self.key(key);
                let before = self.look_before(db, key);
                self.follow_update(db, key, kind, op)?;
                self.noted(db, key, true, Some(kind));
                self.notify_update((db, key), kind, op, before);
            }
            Change::FlushDb { db } => self.flush(db),
            Change::SwapDb { first, second } => self.swap(first, second),
            Change::Library { name, body } => self.put_library(Arc::new(library_of(name, body)?)),
            Change::DeleteLibrary { name } => drop(self.delete_library(name)),
            Change::FlushLibraries => self.flush_libraries(),
            Change::SpacePut { space, .. } | Change::SpaceDelete { space, .. } => {
                self.follow_tuple(space, change)?;
            }
        }
        Ok(())
    }

    /// A time that has passed is still a time: the other node says when the key goes.
    fn follow_expiry(&mut self, db: DbId, key: Key<'_>, expire_at: u64) -> Result<(), ApplyError> {
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let local = database.table.local(key.hash.0);
        let none = || ApplyError::NoSuchValue(readable(key.bytes));
        let mut slot = database.table.get_mut(local, key.bytes).ok_or_else(none)?;
        let (old, before) = (slot.get().expire_at(), slot.get().bytes());
        slot.set_expire(expire_at);
        let mut delta = slot.get().bytes() as i64 - before as i64;
        delta += database.expires.change(key.hash.0, old, expire_at);
        self.scratch.counters.bytes_delta += delta;
        self.keyspace.note_expiry(key.hash, expire_at);
        Ok(())
    }

    fn follow_update(
        &mut self,
        db: DbId,
        key: Key<'_>,
        kind: ValueKind,
        op: &[u8],
    ) -> Result<(), ApplyError> {
        let partition = self.locked.partition(key.hash);
        let delta = &mut self.scratch.counters.bytes_delta;
        let replaced = update_entry(self.keyspace, partition, db, key, (kind, op), delta)?;
        if let Some((bytes, expire_at, head)) = replaced {
            let value = string::init_item(&bytes, string::Form::Grown, head);
            self.put(db, key, value, expire_at);
        }
        Ok(())
    }

    /// As a commit, of changes that are in the log already.
    fn end_following(&mut self, lsn: Lsn) {
        #[cfg(debug_assertions)]
        self.audit.is_logged();
        self.mark_touched(lsn);
        if self.spaces.is_some() {
            self.commit_spaces(lsn);
        }
        if !self.scratch.events.is_empty() {
            self.deliver_events(lsn);
        }
    }
}

#[cfg(test)]
mod tests;
