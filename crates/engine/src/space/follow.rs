//! Changes of spaces that another node has logged, applied while clients read.
//!
//! Tuples are written as a client's transaction writes them, with all spaces of the record locked;
//! who looks at them as keys hears of it. A definition comes alone in its record, and is defined here
//! as it was there: by the same way, with all of its checks, which it has passed there on the same
//! data. What takes long is prepared in slices, so that readers do not wait.

use super::definition::defines;
use super::error::no_such_space;
use super::held_spaces::HeldSpaces;
use super::mounted::event_of;
use super::rights::AllRights;
use crate::apply::ApplyError;
use crate::keyspace::Keyspace;
use crate::preparation::{Preparation, Progress};
use crate::tx::{Scratch, Tx};
use ladon_record::{Change, Lsn, SpaceId};
use ladon_space::{BoxError, Space, Tuple, Written};

/// Preparations are begun so often. The data changes by records alone, so that nothing breaks them
/// off.
const PREPARATIONS_MAX: usize = 3;

fn fault(id: SpaceId, error: &BoxError) -> ApplyError {
    ApplyError::Space(id, error.to_string())
}

/// Does the change again.
fn written_by(space: &mut Space, change: Change<'_>) -> Result<Written, BoxError> {
    match change {
        Change::SpacePut { tuple, .. } => space.follow_put(tuple),
        Change::SpaceDelete { key, .. } => space.follow_delete(key),
        _ => unreachable!("a change of a key"),
    }
}

/// In slices, between which others may have the spaces.
fn prepare_all(
    prepared: &mut Preparation,
    slice_work: usize,
    now_ms: u64,
) -> Result<Progress, BoxError> {
    loop {
        match prepared.go_on(slice_work, now_ms)? {
            Progress::GoesOn => {}
            done => return Ok(done),
        }
    }
}

impl Keyspace {
    /// Defines what the other node has defined.
    pub(crate) fn follow_definition(
        &self,
        id: SpaceId,
        change: Change<'_>,
        lsn: Lsn,
        scratch: &mut Scratch,
        now_ms: u64,
    ) -> Result<(), ApplyError> {
        debug_assert!(defines(id));
        let limits = scratch.preparation_limits.unwrap_or_default();
        for _ in 0..PREPARATIONS_MAX {
            let expected = self.written_before(id, change).map_err(|error| fault(id, &error))?;
            let prepared = self.prepare((id, &AllRights), &expected, limits);
            let Some(mut prepared) = prepared else { break };
            let progress = prepare_all(&mut prepared, limits.slice_work, now_ms);
            if progress.map_err(|error| fault(id, &error))? == Progress::Broken {
                continue;
            }
            let statement = |space: &mut Space| written_by(space, change);
            let of = (id, &AllRights as _);
            let (done, _) = self.define_prepared(of, scratch, statement, |_| lsn, &mut prepared);
            if let Some(done) = done {
                return done.map(drop).map_err(|error| fault(id, &error));
            }
        }
        let statement = |space: &mut Space| written_by(space, change);
        let (done, _) = self.define((id, &AllRights), scratch, statement, |_| lsn);
        done.map(drop).map_err(|error| fault(id, &error))
    }

    /// What a change of a definition would write.
    fn written_before(&self, id: SpaceId, change: Change<'_>) -> Result<Written, BoxError> {
        let catalog = self.spaces.catalog();
        let held = catalog.lock(id)?;
        Ok(match change {
            Change::SpacePut { tuple, .. } => {
                let key = held.space.primary_key_of(tuple)?;
                Written { old: held.space.get(0, &key)?, new: Some(Tuple::new(tuple)) }
            }
            Change::SpaceDelete { key, .. } => Written { old: held.space.get(0, key)?, new: None },
            _ => Written::default(),
        })
    }
}

impl Tx<'_> {
    /// Locks the spaces of a record, in order, until the transaction's end.
    ///
    /// # Errors
    /// If there is no such space.
    pub(crate) fn lock_followed_spaces(&mut self, ids: &[SpaceId]) -> Result<(), ApplyError> {
        debug_assert!(self.spaces.is_none() && ids.is_sorted_by(|a, b| a < b));
        let catalog = self.keyspace().spaces.catalog_to_keep();
        let held = HeldSpaces::lock_these(catalog, ids);
        self.spaces = Some(Box::new(held.map_err(|id| fault(id, &no_such_space(id)))?));
        Ok(())
    }

    /// Does a change of a locked space again.
    pub(crate) fn follow_tuple(
        &mut self,
        id: SpaceId,
        change: Change<'_>,
    ) -> Result<(), ApplyError> {
        let is_wanted = self.keyspace().events.are_wanted();
        let held = self.spaces.as_deref_mut().expect("the record's spaces are locked");
        let written = held.follow(id, |space| written_by(space, change));
        let written = written.map_err(|error| fault(id, &error))?;
        let event = is_wanted.then(|| event_of(held.read(id).0, &written)).flatten();
        if let Some(event) = event {
            self.note_tuple(&event);
        }
        Ok(())
    }
}
