//! A transaction on keys that are tuples of mounted spaces.
//!
//! ```text
//! partitions of the keys --> spaces, all at once --> statements --> one record of both worlds
//! ```
//!
//! The spaces are locked after the partitions. From then on the transaction may lock no more
//! partitions, unless it holds all.

use crate::space::{Catalog, HeldSpaces, event_of, key_of};
use crate::tx::Tx;
use crate::watch::WatchFlag;
use ladon_record::{Lsn, SpaceId};
use ladon_space::{BoxError, Space, Statement, Written};
use std::sync::Arc;

impl Tx<'_> {
    /// Locks mounted spaces of a catalog until the transaction's end. Returns `false`, and locks
    /// none, if the catalog is out of date.
    ///
    /// # Panics
    /// If it holds spaces already.
    pub fn lock_spaces(&mut self, catalog: Arc<Catalog>, ids: &[SpaceId]) -> bool {
        assert!(self.spaces.is_none(), "spaces are locked all at once");
        self.spaces = HeldSpaces::lock(catalog, ids).map(Box::new);
        self.spaces.is_some()
    }

    /// The catalog of the spaces that are locked; `None` if none were.
    pub fn mounts(&self) -> Option<&Arc<Catalog>> {
        self.spaces.as_ref().map(|held| held.catalog())
    }

    /// Whether a mounted space is locked.
    pub fn holds_space(&self, id: SpaceId) -> bool {
        self.spaces.as_ref().is_some_and(|held| held.holds(id))
    }

    /// Releases the spaces, of which nothing has changed, or all was taken back.
    pub(crate) fn release_spaces(&mut self) {
        self.undo_spaces();
        self.spaces = None;
    }

    fn held(&mut self) -> &mut HeldSpaces {
        self.spaces.as_deref_mut().expect("a command without spaces asked for a tuple")
    }

    /// A locked space, for reading: the reply depends on its last change.
    ///
    /// # Panics
    /// If it is not locked.
    pub fn mounted(&mut self, id: SpaceId) -> &Space {
        let (_, changed) = self.held().read(id);
        self.depend_on(changed);
        self.held().read(id).0
    }

    /// Runs a statement on a locked space. An insertion goes on after its key in the space's
    /// sequence.
    ///
    /// # Errors
    /// Those of the statement; nothing has changed then.
    pub fn write_tuple(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Written, BoxError> {
        // What it is refused for shows what is there.
        self.mounted(id);
        let catalog = Arc::clone(self.held().catalog());
        for other in catalog.linked(id).unwrap_or_default() {
            self.mounted(*other);
        }
        let is_wanted = self.keyspace().events.are_wanted();
        let (held, changes) = self.spaces_and_changes();
        let held = held.expect("a space is held");
        let written = held.write(id, statement, changes)?;
        let event = is_wanted.then(|| event_of(held.read(id).0, &written)).flatten();
        if let Some(event) = event {
            self.note_tuple(&event);
        }
        Ok(written)
    }

    /// The key of a tuple of a locked space.
    pub fn key_of_tuple(space: &Space, tuple: &[u8]) -> Vec<u8> {
        key_of(space, tuple).unwrap_or_default()
    }

    /// Watches a key of a locked space for a client.
    pub fn watch_tuple(&mut self, id: SpaceId, key: &[u8], flag: &Arc<WatchFlag>) {
        self.held().watched(id).add(key, flag, false);
    }

    /// Stops watching.
    pub fn unwatch_tuple(&mut self, id: SpaceId, key: &[u8], flag: &Arc<WatchFlag>) {
        self.held().watched(id).remove(key, flag);
    }

    /// Takes back what was done to spaces.
    pub(crate) fn undo_spaces(&mut self) {
        let keyspace = self.keyspace();
        if let Some(held) = &mut self.spaces {
            held.undo();
            held.end(&keyspace.spaces);
        }
    }

    /// The record has got its LSN.
    #[cold]
    pub(crate) fn commit_spaces(&mut self, lsn: Lsn) {
        let keyspace = self.keyspace();
        if let Some(held) = &mut self.spaces {
            held.commit(&keyspace.spaces, lsn);
        }
    }
}
