//! Spaces that a transaction on keys holds beside its partitions: mounted ones, whose tuples are
//! also keys.
//!
//! They are locked after all partitions, all at once, and stay locked to the transaction's end.
//! What was done to them is taken back or committed with it.

use super::catalog::{Catalog, LongSpaceGuard, SpaceCell, Spaces};
use super::mounted::touch_watchers;
use super::write::Writes;
use crate::watch::Watched;
use ladon_record::{ChangeBuffer, Lsn, SpaceId};
use ladon_space::{BoxError, Space, Statement, Written};
use smallvec::SmallVec;
use std::sync::Arc;

/// Locked spaces, and what was done to them.
pub(crate) struct HeldSpaces {
    catalog: Arc<Catalog>,
    writes: Writes<LongSpaceGuard>,
}

impl HeldSpaces {
    /// Locks spaces of a catalog, and what their sequences and foreign keys need. `None` if one of
    /// them is gone, or is mounted elsewhere or bound by another foreign key by now: the catalog is
    /// out of date.
    pub(crate) fn lock(catalog: Arc<Catalog>, ids: &[SpaceId]) -> Option<HeldSpaces> {
        let ids = catalog.put_with(ids);
        let mut guards = SmallVec::with_capacity(ids.len());
        for id in ids {
            let guard = catalog.get(id)?.lock_for_long();
            let mount = catalog.mounts().iter().find(|mount| mount.space == id);
            let is_there = guard.space.def().resp_prefix == mount.map(|mount| mount.prefix.clone());
            if guard.gone || !is_there || guard.bound_at > catalog.version {
                return None;
            }
            guards.push((id, guard));
        }
        Some(HeldSpaces { catalog, writes: Writes::new(guards) })
    }

    /// Locks spaces of the present catalog, in order, to write what others have checked.
    ///
    /// # Errors
    /// The number of a space that is not there.
    pub(crate) fn lock_these(
        catalog: Arc<Catalog>,
        ids: &[SpaceId],
    ) -> Result<HeldSpaces, SpaceId> {
        let mut guards = SmallVec::with_capacity(ids.len());
        for &id in ids {
            let guard = catalog.get(id).map(SpaceCell::lock_for_long);
            guards.push((id, guard.filter(|guard| !guard.gone).ok_or(id)?));
        }
        Ok(HeldSpaces { catalog, writes: Writes::new(guards) })
    }

    /// Runs a statement whose change is in the log.
    pub(crate) fn follow(
        &mut self,
        id: SpaceId,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
    ) -> Result<Written, BoxError> {
        self.writes.follow(id, statement)
    }

    /// The catalog that they are from.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn holds(&self, id: SpaceId) -> bool {
        self.writes.held(id).is_some()
    }

    pub(super) fn guard(&mut self, id: SpaceId) -> &mut LongSpaceGuard {
        self.writes.guard(id)
    }

    /// The content's space, and the LSN of its last change.
    pub(crate) fn read(&self, id: SpaceId) -> (&Space, Lsn) {
        let content = &self.writes.guards[self.writes.at(id)].1;
        (&content.space, content.changed)
    }

    /// Who watches which keys.
    pub(crate) fn watched(&mut self, id: SpaceId) -> &mut Watched {
        &mut self.guard(id).watched
    }

    /// Runs a statement, and notes the change that it made.
    pub(crate) fn write(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
        changes: &mut ChangeBuffer,
    ) -> Result<Written, BoxError> {
        let HeldSpaces { catalog, writes } = self;
        match (statement, catalog.filler(id)) {
            (Statement::Insert(tuple), Some(filler)) => {
                let tuple = writes.fill(catalog, filler, tuple, changes)?;
                writes.run(catalog, id, |space| space.insert(&tuple), changes)
            }
            _ => writes.run(catalog, id, |space| statement.run(space), changes),
        }
    }

    /// Takes everything back.
    pub(crate) fn undo(&mut self) {
        self.writes.undo();
    }

    /// The transaction has got its LSN.
    pub(crate) fn commit(&mut self, spaces: &Spaces, lsn: Lsn) {
        spaces.add_bytes(std::mem::take(&mut self.writes.bytes_delta));
        if self.writes.done.is_empty() {
            return;
        }
        for (id, written) in std::mem::take(&mut self.writes.done) {
            let guard = self.guard(id);
            guard.noting.note(&written);
            touch_watchers(guard, &written);
        }
        // Those that were only read as well: who read them may have decided what was written.
        for (_, guard) in &mut self.writes.guards {
            guard.changed = guard.changed.max(lsn);
        }
    }

    /// Counts the bytes of what was taken back.
    pub(crate) fn end(&mut self, spaces: &Spaces) {
        debug_assert!(self.writes.done.is_empty(), "changes of spaces were not committed");
        spaces.add_bytes(std::mem::take(&mut self.writes.bytes_delta));
    }
}
