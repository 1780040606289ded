//! A transaction on spaces: their locks, the changes made, and how to take them back.

use super::catalog::{Catalog, SpaceCell, SpaceGuard};
use super::mounted::{event_of, touch_watchers};
use super::write::Writes;
use crate::keyspace::Keyspace;
use crate::tx::Scratch;
use ladon_record::{ChangeBuffer, Lsn, Record, SpaceId};
use ladon_space::{BoxError, SequenceDef, Space, SpaceSequence, Tuple, Written};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Locked spaces and what was done to them.
///
/// A statement that fails leaves everything as it was. A transaction of several statements that is
/// to be given up is taken back by [`SpaceTx::abort`]; one that is dropped without either, after it
/// changed something, ends the process.
pub struct SpaceTx<'a> {
    keyspace: &'a Keyspace,
    catalog: &'a Catalog,
    writes: Writes<SpaceGuard<'a>>,
    scratch: &'a mut Scratch,
    /// A space whose definition has changed.
    redefined: Option<SpaceId>,
}

impl Keyspace {
    /// Begins a transaction that writes spaces of `catalog`, waiting for their locks and those of
    /// spaces that foreign keys bind to them. `None` if a foreign key is newer than the catalog.
    ///
    /// # Errors
    /// As [`Keyspace::begin_on_spaces`].
    pub fn begin_writing_spaces<'a>(
        &'a self,
        catalog: &'a Catalog,
        ids: &[SpaceId],
        scratch: &'a mut Scratch,
    ) -> Result<Option<SpaceTx<'a>>, BoxError> {
        let tx = self.begin_on_spaces(catalog, &catalog.changed_with(ids), scratch)?;
        Ok((!tx.is_out_of_date()).then_some(tx))
    }

    /// Begins a transaction that reads spaces of `catalog`, or writes those without foreign keys,
    /// waiting for their locks.
    ///
    /// # Errors
    /// If there is no space of one of the numbers.
    pub fn begin_on_spaces<'a>(
        &'a self,
        catalog: &'a Catalog,
        ids: &[SpaceId],
        scratch: &'a mut Scratch,
    ) -> Result<SpaceTx<'a>, BoxError> {
        debug_assert!(ids.is_sorted_by(|a, b| a < b), "spaces are locked in order");
        let mut guards = SmallVec::new();
        for &id in ids {
            guards.push((id, catalog.lock(id)?));
        }
        Ok(SpaceTx::new(self, catalog, guards, scratch))
    }

    /// Runs a statement on a space of `catalog` as a transaction of its own. Returns what was
    /// written, and the LSN that a reply depends on, an error's as well.
    pub fn write_alone(
        &self,
        catalog: &Catalog,
        id: SpaceId,
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> (Result<Written, BoxError>, Lsn) {
        if catalog.linked(id).is_some() || self.spaces.has_mounts() {
            match self.begin_writing_spaces(catalog, &[id], scratch) {
                Ok(Some(mut tx)) => {
                    let written = tx.write(id, statement);
                    return (written, tx.commit(append));
                }
                Ok(None) => {}
                Err(error) => return (Err(error), Lsn::ZERO),
            }
            let catalog = self.spaces.catalog();
            return self.write_alone(&catalog, id, scratch, statement, append);
        }
        let mut guard = match catalog.lock(id) {
            Ok(guard) => guard,
            Err(error) => return (Err(error), Lsn::ZERO),
        };
        if guard.bound_at > catalog.version {
            drop(guard);
            let catalog = self.spaces.catalog();
            return self.write_alone(&catalog, id, scratch, statement, append);
        }
        let content = &mut *guard;
        let ran = match content.run(statement) {
            Ok(ran) => ran,
            Err(error) => return (Err(error), content.changed),
        };
        if !ran.written.is_nothing() {
            scratch.begin_changes();
            let changes = scratch.changes_mut();
            self.spaces.add_bytes(content.keep(&ran, changes));
            content.noting.note(&ran.written);
            if !changes.is_empty() {
                content.changed = append(Record::Changes(changes.as_bytes()));
            }
        }
        (Ok(ran.written), content.changed)
    }
}

impl<'a> SpaceTx<'a> {
    pub(super) fn new(
        keyspace: &'a Keyspace,
        catalog: &'a Catalog,
        guards: SmallVec<[(SpaceId, SpaceGuard<'a>); 2]>,
        scratch: &'a mut Scratch,
    ) -> SpaceTx<'a> {
        scratch.begin_changes();
        SpaceTx { keyspace, catalog, writes: Writes::new(guards), scratch, redefined: None }
    }

    /// The catalog that its spaces are from.
    pub fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    pub(super) fn guards(&self) -> &[(SpaceId, SpaceGuard<'a>)] {
        &self.writes.guards
    }

    pub(super) fn guards_mut(&mut self) -> &mut SmallVec<[(SpaceId, SpaceGuard<'a>); 2]> {
        &mut self.writes.guards
    }

    /// How many changes of tuples it has made.
    pub(super) fn done(&self) -> usize {
        self.writes.done.len()
    }

    pub(super) fn undo_to(&mut self, kept: usize) {
        self.writes.undo_to(kept);
    }

    pub(super) fn changes_mut(&mut self) -> &mut ChangeBuffer {
        self.scratch.changes_mut()
    }

    /// Whether a foreign key binds one of its spaces that its catalog does not know.
    pub fn is_out_of_date(&self) -> bool {
        self.writes.guards.iter().any(|(_, guard)| guard.bound_at > self.catalog.version)
    }

    /// A locked space, for reading: the reply depends on its last change.
    ///
    /// # Panics
    /// If it is not locked.
    pub fn space(&mut self, id: SpaceId) -> &Space {
        self.writes.read(id)
    }

    /// Locks one more space, which has a higher number than those that are held.
    pub(super) fn lock_also(&mut self, cell: &'a SpaceCell) {
        debug_assert!(
            self.writes.guards.iter().all(|(held, _)| *held < cell.id()),
            "locks in order"
        );
        self.writes.guards.push((cell.id(), cell.lock()));
    }

    /// Runs a statement on a locked space, and notes the change that it made.
    pub fn write(
        &mut self,
        id: SpaceId,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
    ) -> Result<Written, BoxError> {
        self.writes.run(self.catalog, id, statement, self.scratch.changes_mut())
    }

    /// A held space, if it is held.
    pub(super) fn held(&self, id: SpaceId) -> Option<&Space> {
        self.writes.held(id)
    }

    /// The tuple of `_sequence_data`, which is locked, about a sequence.
    pub(super) fn sequence_tuple(&mut self, sequence: u32) -> Result<Option<Tuple>, BoxError> {
        self.writes.sequence_tuple(sequence)
    }

    /// Does what a tuple to be inserted or to replace another asks of its space's sequence;
    /// `_sequence_data` is locked. The number stays used when the statement fails. Returns the
    /// tuple with the number.
    ///
    /// # Errors
    /// `SEQUENCE_OVERFLOW`.
    pub fn fill<'t>(
        &mut self,
        filler: (SpaceSequence, &SequenceDef),
        tuple: &'t [u8],
    ) -> Result<Cow<'t, [u8]>, BoxError> {
        self.writes.fill(self.catalog, filler, tuple, self.scratch.changes_mut())
    }

    /// A held space, to change what is no tuple: its definition and indexes.
    pub(super) fn space_mut(&mut self, id: SpaceId) -> &mut Space {
        let guard = self.guard(id);
        guard.version += 1;
        &mut guard.space
    }

    /// A held space's content.
    pub(crate) fn guard(&mut self, id: SpaceId) -> &mut SpaceGuard<'a> {
        self.writes.guard(id)
    }

    /// Exchanges a held space for one that statements have changed elsewhere. What they did has to
    /// be noted if [`SpaceTx::is_followed`].
    pub(crate) fn adopt(&mut self, id: SpaceId, space: &mut Space) {
        let guard = self.guard(id);
        guard.version += 1;
        let delta = space.bytes() as i64 - guard.space.bytes() as i64;
        std::mem::swap(&mut guard.space, space);
        self.count_bytes(delta);
    }

    /// Whether somebody follows the changes of a held space: looks at its tuples as keys, or builds
    /// an index of it.
    pub(crate) fn is_followed(&mut self, id: SpaceId) -> bool {
        let guard = self.guard(id);
        guard.noting.is_on() || guard.space.def().resp_prefix.is_some()
    }

    /// Notes what a statement did to a space that was adopted.
    pub(crate) fn note(&mut self, id: SpaceId, written: Written) {
        self.writes.done.push((id, written));
    }

    /// Those who look at the tuples of a held space as keys have to look again, once this has
    /// committed.
    pub(super) fn redefined(&mut self, id: SpaceId) {
        self.redefined = Some(id);
    }

    pub(super) fn mark_gone(&mut self, id: SpaceId) {
        self.guard(id).gone = true;
    }

    /// Counts memory that a definition's effect took or freed.
    pub(super) fn count_bytes(&mut self, delta: i64) {
        self.writes.bytes_delta += delta;
    }

    /// Takes back everything. Returns the LSN that a reply about it depends on: whatever was locked
    /// may have been the reason.
    pub fn abort(mut self) -> Lsn {
        let changed = self.writes.guards.iter().map(|(_, guard)| guard.changed).max();
        let dependency = self.writes.dependency.max(changed.unwrap_or(Lsn::ZERO));
        self.writes.undo();
        self.keyspace.spaces.add_bytes(self.writes.bytes_delta);
        self.scratch.begin_changes();
        dependency
    }

    /// Ends the transaction. If anything changed, `append` logs the encoded changes and returns
    /// their LSN. Returns the LSN that a reply depends on.
    pub fn commit(mut self, append: impl FnOnce(Record<'_>) -> Lsn) -> Lsn {
        let lsn = self.log(append);
        self.end(lsn);
        lsn
    }

    fn log(&mut self, append: impl FnOnce(Record<'_>) -> Lsn) -> Lsn {
        self.keyspace.spaces.add_bytes(self.writes.bytes_delta);
        if self.scratch.changes_mut().is_empty() {
            return self.writes.dependency;
        }
        let lsn = append(Record::Changes(self.scratch.changes_mut().as_bytes()));
        self.mark_changed(lsn);
        lsn
    }

    /// As `commit`; `show` is called with the LSN while the spaces are still locked.
    pub(super) fn commit_and_show(
        mut self,
        append: impl FnOnce(Record<'_>) -> Lsn,
        show: impl FnOnce(Lsn),
    ) -> Lsn {
        let lsn = self.log(append);
        show(lsn);
        self.end(lsn);
        lsn
    }

    /// As `commit`, of a transaction that only adopted spaces; `record` says what changed in them.
    pub(crate) fn commit_adopted(
        mut self,
        record: Option<Record<'_>>,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> Lsn {
        self.keyspace.spaces.add_bytes(self.writes.bytes_delta);
        let mut lsn = self.writes.dependency;
        if let Some(record) = record {
            // One of reads alone may have no changes, and an LSN below theirs.
            lsn = lsn.max(append(record));
            self.mark_changed(lsn);
        }
        self.end(lsn);
        lsn
    }

    fn mark_changed(&mut self, lsn: Lsn) {
        // Those that were only read as well: who read them may have decided what was written.
        for (_, guard) in &mut self.writes.guards {
            // The record may be one of reads alone.
            guard.changed = guard.changed.max(lsn);
        }
    }

    fn end(&mut self, lsn: Lsn) {
        if self.writes.guards.iter().any(|(_, guard)| guard.noting.is_on()) {
            self.note_for_indexes();
        }
        if self.keyspace.spaces.has_mounts() || self.redefined.is_some() {
            self.tell(lsn);
        }
        self.writes.done.clear();
    }

    /// Notes what indexes that are being built have to follow.
    #[cold]
    fn note_for_indexes(&mut self) {
        for (id, written) in &self.writes.done {
            if let Ok(at) = self.writes.guards.binary_search_by_key(id, |(held, _)| *held) {
                self.writes.guards[at].1.noting.note(written);
            }
        }
    }

    /// Tells those who look at tuples as keys.
    #[cold]
    fn tell(&mut self, lsn: Lsn) {
        let keyspace = self.keyspace;
        let done = std::mem::take(&mut self.writes.done);
        for (id, written) in &done {
            let content = self.guard(*id);
            touch_watchers(content, written);
            if keyspace.events.are_wanted()
                && let Some(event) = event_of(&content.space, written)
            {
                self.scratch.note_tuple(keyspace, &event);
            }
        }
        if let Some(id) = self.redefined {
            self.guard(id).watched.touch_all();
            self.scratch.note_all_tuples(keyspace);
        }
        self.scratch.deliver_events(keyspace, lsn);
    }

    /// The tuple that a statement stored, or removed.
    pub fn result(written: &Written) -> Option<&Tuple> {
        written.new.as_ref().or(written.old.as_ref())
    }
}
