//! The one way in which a tuple of a locked space is written, whoever holds the lock.
//!
//! ```text
//! statement -> actions of foreign keys, which are statements as well
//!           -> foreign keys -> kept: counted, logged, listed to be taken back
//!                           -> refused: taken back at once
//! ```

use super::catalog::{Catalog, Content};
use super::error::has_triggers;
use super::foreign_keys::{DEPTH_MAX, FOLLOWED_MAX, check_written, followed, too_deep};
use ladon_msgpack::write;
use ladon_record::{Change, ChangeBuffer, Lsn, SpaceId};
use ladon_space::{
    Asked, BoxError, SequenceDef, Space, SpaceSequence, Tuple, Written, sequence_data,
    sequence_value,
};
use ladon_system_spaces as system;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::DerefMut;

/// Locked spaces, and what was done to them.
pub(super) struct Writes<G> {
    /// By number.
    pub(super) guards: SmallVec<[(SpaceId, G); 2]>,
    pub(super) done: SmallVec<[(SpaceId, Written); 1]>,
    pub(super) bytes_delta: i64,
    /// The LSN that all depends on that was read and written.
    pub(super) dependency: Lsn,
    /// How many tuples the actions of foreign keys have changed because of a statement, and how deep
    /// they are.
    followed: usize,
    depth: usize,
}

/// A statement that has run.
pub(super) struct Ran {
    pub(super) written: Written,
    bytes_before: usize,
}

impl Content {
    /// Runs a statement.
    ///
    /// # Errors
    /// Those of the statement; `UNSUPPORTED`, if a program's functions would have to be called.
    #[inline]
    pub(super) fn run(
        &mut self,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
    ) -> Result<Ran, BoxError> {
        if self.has_triggers {
            return Err(has_triggers(&self.space));
        }
        let bytes_before = self.space.bytes();
        statement(&mut self.space).map(|written| Ran { written, bytes_before })
    }

    /// Encodes the change that it made. Returns by how many bytes the space has grown.
    #[inline]
    pub(super) fn keep(&mut self, ran: &Ran, changes: &mut ChangeBuffer) -> i64 {
        if !ran.written.is_nothing() {
            self.version += 1;
            log_change(&self.space, &ran.written, changes);
        }
        self.grown_since(ran.bytes_before)
    }

    /// Takes back what was written. Returns by how many bytes the space has grown.
    fn take_back(&mut self, written: &Written, bytes_before: usize) -> i64 {
        self.version += 1;
        self.space.undo(written);
        // The trees' nodes may be divided otherwise than before.
        self.grown_since(bytes_before)
    }

    fn grown_since(&self, bytes_before: usize) -> i64 {
        self.space.bytes() as i64 - bytes_before as i64
    }
}

impl<G: DerefMut<Target = Content>> Writes<G> {
    /// The guards are in the order of the spaces' numbers.
    pub(super) fn new(guards: SmallVec<[(SpaceId, G); 2]>) -> Writes<G> {
        Writes {
            guards,
            done: SmallVec::new(),
            bytes_delta: 0,
            dependency: Lsn::ZERO,
            followed: 0,
            depth: 0,
        }
    }

    fn find(&self, id: SpaceId) -> Option<usize> {
        self.guards.binary_search_by_key(&id, |(held, _)| *held).ok()
    }

    /// # Panics
    /// If the space is not locked.
    #[inline]
    pub(super) fn at(&self, id: SpaceId) -> usize {
        self.find(id).unwrap_or_else(|| panic!("space {id} is not locked"))
    }

    /// A locked space, if it is locked.
    pub(super) fn held(&self, id: SpaceId) -> Option<&Space> {
        Some(&self.guards[self.find(id)?].1.space)
    }

    /// A locked space's content.
    ///
    /// # Panics
    /// If the space is not locked.
    pub(super) fn guard(&mut self, id: SpaceId) -> &mut G {
        let at = self.at(id);
        &mut self.guards[at].1
    }

    /// A locked space, for reading: the reply depends on its last change.
    ///
    /// # Panics
    /// If the space is not locked.
    pub(super) fn read(&mut self, id: SpaceId) -> &Space {
        let at = self.at(id);
        self.dependency = self.dependency.max(self.guards[at].1.changed);
        &self.guards[at].1.space
    }

    /// Runs a statement on a locked space, and notes the change that it made.
    ///
    /// # Errors
    /// Those of the statement and of foreign keys; nothing has changed then.
    pub(super) fn run(
        &mut self,
        catalog: &Catalog,
        id: SpaceId,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        changes: &mut ChangeBuffer,
    ) -> Result<Written, BoxError> {
        let at = self.at(id);
        let content = &mut *self.guards[at].1;
        self.dependency = self.dependency.max(content.changed);
        let ran = content.run(statement)?;
        let (done, mark) = (self.done.len(), changes.mark());
        let is_checked = match catalog.linked(id) {
            None => Ok(()),
            Some(linked) => self
                .follow_foreign_keys(catalog, (id, linked), &ran.written, changes)
                .and_then(|()| self.check_foreign_keys(linked, id, &ran.written)),
        };
        if let Err(error) = is_checked {
            self.undo_to(done);
            changes.truncate(mark);
            let content = &mut *self.guards[at].1;
            self.bytes_delta += content.take_back(&ran.written, ran.bytes_before);
            return Err(error);
        }
        let content = &mut *self.guards[at].1;
        self.bytes_delta += content.keep(&ran, changes);
        if !ran.written.is_nothing() {
            self.done.push((id, ran.written.clone()));
        }
        Ok(ran.written)
    }

    /// Runs a statement that another node has checked, and whose change is in the log.
    pub(super) fn follow(
        &mut self,
        id: SpaceId,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
    ) -> Result<Written, BoxError> {
        let content = &mut **self.guard(id);
        let ran = content.run(statement)?;
        content.version += 1;
        let delta = content.grown_since(ran.bytes_before);
        self.bytes_delta += delta;
        self.done.push((id, ran.written.clone()));
        Ok(ran.written)
    }

    /// Does what the actions of foreign keys ask for, which name tuples of a space that was written.
    fn follow_foreign_keys(
        &mut self,
        catalog: &Catalog,
        (id, linked): (SpaceId, &[SpaceId]),
        written: &Written,
        changes: &mut ChangeBuffer,
    ) -> Result<(), BoxError> {
        let left = FOLLOWED_MAX.saturating_sub(self.followed);
        for followed in followed(linked, id, written, |id| self.held(id), left)? {
            if self.depth >= DEPTH_MAX {
                return Err(too_deep(self.read(id)));
            }
            self.followed += followed.changes.len();
            self.depth += 1;
            let mut all = followed.changes.iter();
            let result = all.try_for_each(|one| {
                let run = |space: &mut Space| one.statement().run(space);
                self.run(catalog, followed.child, run, changes).map(drop)
            });
            self.depth -= 1;
            result?;
        }
        if self.depth == 0 {
            self.followed = 0;
        }
        Ok(())
    }

    /// Checks the foreign keys of a space that was written, and those that name it: the other
    /// spaces are locked as well.
    fn check_foreign_keys(
        &mut self,
        linked: &[SpaceId],
        id: SpaceId,
        written: &Written,
    ) -> Result<(), BoxError> {
        for other in linked {
            let at = self.at(*other);
            self.dependency = self.dependency.max(self.guards[at].1.changed);
        }
        check_written(linked, id, written, |id| self.held(id), |_, _| ())
    }

    /// The tuple of `_sequence_data`, which is locked, about a sequence.
    pub(super) fn sequence_tuple(&mut self, sequence: u32) -> Result<Option<Tuple>, BoxError> {
        let mut key = vec![0x91];
        write::uint(&mut key, sequence.into());
        self.read(system::SEQUENCE_DATA).get(0, &key)
    }

    /// Does what a tuple to be inserted or to replace another asks of its space's sequence;
    /// `_sequence_data` is locked. Returns the tuple with the number.
    ///
    /// # Errors
    /// `SEQUENCE_OVERFLOW`.
    pub(super) fn fill<'t>(
        &mut self,
        catalog: &Catalog,
        (filler, sequence): (SpaceSequence, &SequenceDef),
        tuple: &'t [u8],
        changes: &mut ChangeBuffer,
    ) -> Result<Cow<'t, [u8]>, BoxError> {
        let asked = filler.asked(tuple);
        if asked == Asked::Nothing {
            return Ok(tuple.into());
        }
        let current = self.sequence_tuple(sequence.id)?;
        let current = current.and_then(|tuple| sequence_value(tuple.bytes()));
        let next = match asked {
            Asked::Next => Some(sequence.next(current)?),
            Asked::GoOnAfter(seen) => sequence.after(current, seen),
            Asked::Nothing => None,
        };
        let Some(next) = next else { return Ok(tuple.into()) };
        let data = sequence_data(sequence.id, next);
        self.run(catalog, system::SEQUENCE_DATA, |space| space.replace(&data), changes)?;
        Ok(match asked {
            Asked::Next => filler.filled(tuple, next).into(),
            _ => tuple.into(),
        })
    }

    /// Takes everything back.
    pub(super) fn undo(&mut self) {
        self.undo_to(0);
    }

    /// Takes back all but the first ones.
    pub(super) fn undo_to(&mut self, kept: usize) {
        while self.done.len() > kept
            && let Some((id, written)) = self.done.pop()
        {
            let content = &mut **self.guard(id);
            let before = content.space.bytes();
            let delta = content.take_back(&written, before);
            self.bytes_delta += delta;
        }
    }
}

impl<G> Drop for Writes<G> {
    fn drop(&mut self) {
        // Others would see, and log on top of, what the log never gets.
        assert!(
            self.done.is_empty() || std::thread::panicking(),
            "changes of spaces were neither committed nor taken back"
        );
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
