//! Spaces that a transaction on keys holds beside its partitions: mounted ones, whose tuples are
//! also keys.
//!
//! They are locked after all partitions, all at once, and stay locked to the transaction's end.
//! What was done to them is taken back or committed with it.

use super::catalog::{Catalog, LongSpaceGuard, Spaces};
use super::foreign_keys::check_written;
use super::mounted::touch_watchers;
use crate::watch::Watched;
use ladon_msgpack::write;
use ladon_record::{Change, ChangeBuffer, Lsn, SpaceId};
use ladon_space::{
    Asked, BoxError, Space, Statement, Tuple, Written, sequence_data, sequence_value,
};
use ladon_system_spaces as system;
use std::borrow::Cow;
use std::sync::Arc;

/// Locked spaces, and what was done to them.
pub(crate) struct HeldSpaces {
    catalog: Arc<Catalog>,
    /// By number.
    guards: Vec<(SpaceId, LongSpaceGuard)>,
    done: Vec<(SpaceId, Written)>,
    bytes_delta: i64,
}

impl HeldSpaces {
    /// Locks spaces of a catalog, and what their sequences and foreign keys need. `None` if one of
    /// them is gone, or is mounted elsewhere or bound by another foreign key by now: the catalog is
    /// out of date.
    pub(crate) fn lock(catalog: Arc<Catalog>, ids: &[SpaceId]) -> Option<HeldSpaces> {
        let linked = ids.iter().filter_map(|id| catalog.linked(*id)).flatten();
        let mut ids: Vec<SpaceId> = linked.chain(ids).copied().collect();
        if ids.iter().any(|&id| catalog.filler(id).is_some()) {
            ids.push(system::SEQUENCE_DATA);
        }
        ids.sort_unstable();
        ids.dedup();
        let mut guards = Vec::with_capacity(ids.len());
        for id in ids {
            let guard = catalog.get(id)?.lock_for_long();
            let mount = catalog.mounts().iter().find(|mount| mount.space == id);
            let is_there = guard.space.def().resp_prefix == mount.map(|mount| mount.prefix.clone());
            if guard.gone || !is_there || guard.bound_at > catalog.version {
                return None;
            }
            guards.push((id, guard));
        }
        Some(HeldSpaces { catalog, guards, done: Vec::new(), bytes_delta: 0 })
    }

    /// The catalog that they are from.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn at(&self, id: SpaceId) -> Option<usize> {
        self.guards.binary_search_by_key(&id, |(held, _)| *held).ok()
    }

    pub(crate) fn holds(&self, id: SpaceId) -> bool {
        self.at(id).is_some()
    }

    pub(super) fn guard(&mut self, id: SpaceId) -> &mut LongSpaceGuard {
        let at = self.at(id).unwrap_or_else(|| panic!("space {id} is not locked"));
        &mut self.guards[at].1
    }

    /// The content's space, and the LSN of its last change.
    pub(crate) fn read(&self, id: SpaceId) -> (&Space, Lsn) {
        let at = self.at(id).unwrap_or_else(|| panic!("space {id} is not locked"));
        (&self.guards[at].1.space, self.guards[at].1.changed)
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
        match statement {
            Statement::Insert(tuple) => {
                let tuple = self.fill(id, tuple, changes)?;
                self.run(id, Statement::Insert(&tuple), changes)
            }
            other => self.run(id, other, changes),
        }
    }

    fn run(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
        changes: &mut ChangeBuffer,
    ) -> Result<Written, BoxError> {
        let guard = self.guard(id);
        let before = guard.space.bytes();
        let written = statement.run(&mut guard.space)?;
        let is_checked = self.check_foreign_keys(id, &written);
        let guard = self.guard(id);
        if is_checked.is_err() {
            guard.space.undo(&written);
            guard.version += 1;
        }
        let delta = guard.space.bytes() as i64 - before as i64;
        if is_checked.is_ok() && !written.is_nothing() {
            guard.version += 1;
            log_change(&guard.space, &written, changes);
            self.done.push((id, written.clone()));
        }
        self.bytes_delta += delta;
        is_checked.map(|()| written)
    }

    fn check_foreign_keys(&self, id: SpaceId, written: &Written) -> Result<(), BoxError> {
        let Some(linked) = self.catalog.linked(id) else { return Ok(()) };
        let held = |id| Some(&self.guards[self.at(id)?].1.space);
        check_written(linked, id, written, held, |_, _| ())
    }

    /// Does what a tuple to be inserted asks of its space's sequence, if it has one.
    fn fill<'t>(
        &mut self,
        id: SpaceId,
        tuple: &'t [u8],
        changes: &mut ChangeBuffer,
    ) -> Result<Cow<'t, [u8]>, BoxError> {
        let catalog = Arc::clone(&self.catalog);
        let Some((filler, sequence)) = catalog.filler(id) else { return Ok(tuple.into()) };
        let asked = filler.asked(tuple);
        let mut key = vec![0x91];
        write::uint(&mut key, sequence.id.into());
        let current = self.read(system::SEQUENCE_DATA).0.get(0, &key)?;
        let current = current.and_then(|tuple: Tuple| sequence_value(tuple.bytes()));
        let next = match asked {
            Asked::Nothing => None,
            Asked::Next => Some(sequence.next(current)?),
            Asked::GoOnAfter(seen) => sequence.after(current, seen),
        };
        let Some(next) = next else { return Ok(tuple.into()) };
        let data = sequence_data(sequence.id, next);
        self.run(system::SEQUENCE_DATA, Statement::Replace(&data), changes)?;
        Ok(match asked {
            Asked::Next => filler.filled(tuple, next).into(),
            _ => tuple.into(),
        })
    }

    /// Takes everything back.
    pub(crate) fn undo(&mut self) {
        while let Some((id, written)) = self.done.pop() {
            let guard = self.guard(id);
            guard.version += 1;
            let before = guard.space.bytes();
            guard.space.undo(&written);
            let delta = guard.space.bytes() as i64 - before as i64;
            self.bytes_delta += delta;
        }
    }

    /// The transaction has got its LSN.
    pub(crate) fn commit(&mut self, spaces: &Spaces, lsn: Lsn) {
        spaces.add_bytes(std::mem::take(&mut self.bytes_delta));
        if self.done.is_empty() {
            return;
        }
        for (id, written) in std::mem::take(&mut self.done) {
            let guard = self.guard(id);
            guard.noting.note(&written);
            touch_watchers(guard, &written);
        }
        // Those that were only read as well: who read them may have decided what was written.
        for (_, guard) in &mut self.guards {
            guard.changed = guard.changed.max(lsn);
        }
    }

    /// Counts the bytes of what was taken back.
    pub(crate) fn end(&mut self, spaces: &Spaces) {
        debug_assert!(self.done.is_empty(), "changes of spaces were not committed");
        spaces.add_bytes(std::mem::take(&mut self.bytes_delta));
    }
}

/// Encodes the change that a statement made. Nothing of a temporary space is kept.
pub(crate) fn log_change(space: &Space, written: &Written, changes: &mut ChangeBuffer) {
    let def = space.def();
    match (&written.old, &written.new) {
        _ if def.is_temporary => {}
        (_, Some(new)) => changes.push(Change::SpacePut { space: def.id, tuple: new.bytes() }),
        (Some(old), None) => {
            let key = space.primary_key_of_own(old);
            changes.push(Change::SpaceDelete { space: def.id, key: &key });
        }
        (None, None) => {}
    }
}

impl Drop for HeldSpaces {
    fn drop(&mut self) {
        // Others would see, and log on top of, what the log never gets.
        assert!(
            self.done.is_empty() || std::thread::panicking(),
            "changes of mounted spaces were neither committed nor taken back"
        );
    }
}
