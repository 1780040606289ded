//! A transaction on spaces that locks more of them as it goes on, and may take back a part of what it
//! has done.
//!
//! Two-phase locking: everything is held to the end, so such transactions are serializable. A thread
//! waits only for spaces above all that it holds; for the others it tries, for a moment. So no two
//! threads wait for each other.

use super::transaction::SpaceTx;
use crate::locked::{Grown, try_for_a_moment};
use ladon_record::{ChangeMark, SpaceId};
use ladon_space::BoxError;

/// How far a transaction had come.
#[derive(Clone, Copy, Debug)]
pub struct SpaceMark {
    done: usize,
    changes: ChangeMark,
}

impl SpaceTx<'_> {
    /// The spaces that are locked, in order.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> {
        self.guards().iter().map(|(id, _)| *id)
    }

    /// Whether a space is locked.
    #[inline]
    pub fn holds(&self, id: SpaceId) -> bool {
        self.held(id).is_some()
    }

    /// Locks these spaces too, which are in order. Once it is refused, some of them may be held.
    ///
    /// # Errors
    /// If there is no space of one of the numbers.
    pub fn grow(&mut self, ids: &[SpaceId]) -> Result<Grown, BoxError> {
        let catalog = self.catalog();
        for &id in ids {
            let guards = self.guards();
            let Err(at) = guards.binary_search_by_key(&id, |(held, _)| *held) else { continue };
            let guard = match at == guards.len() {
                true => Some(catalog.lock(id)?),
                false => try_for_a_moment(|| catalog.try_lock(id).transpose()).transpose()?,
            };
            match guard {
                Some(guard) => self.guards_mut().insert(at, (id, guard)),
                None => return Ok(Grown::Refused),
            }
        }
        Ok(Grown::Held)
    }

    /// How far it has come.
    pub fn mark(&mut self) -> SpaceMark {
        SpaceMark { done: self.done(), changes: self.changes_mut().mark() }
    }

    /// Takes back what was done since.
    pub fn go_back(&mut self, mark: SpaceMark) {
        self.undo_to(mark.done);
        self.changes_mut().truncate(mark.changes);
    }
}
