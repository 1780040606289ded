//! A new space with all that belongs to it, or one that goes with all of that, in one transaction: one
//! record of the log, so that a crash leaves all of it or nothing. Nobody sees it before it is whole.
//!
//! ```text
//! _space, _index.., _sequence, _space_sequence: locked, written
//!   -> the space is built beside the catalog -> logged -> shown
//! ```

use super::definition::{Effect, Hindered};
use super::error::{no_such_sequence, no_such_space};
use super::rights::DefinitionRights;
use super::transaction::SpaceTx;
use crate::keyspace::Keyspace;
use crate::tx::{Garbage, Scratch};
use ladon_record::{Lsn, Record, SpaceId};
use ladon_space::{BoxError, SequenceDef, Space, SpaceDef, SpaceSequence, Tuple, Written};
use ladon_system_spaces as system;

/// A new tuple of a system space; or the key of one.
pub type NewDefinition<'d> = (SpaceId, &'d [u8]);

impl Keyspace {
    /// Inserts the tuples that define a space: the first one, of `_space`, then those of its
    /// indexes, of a sequence, and of what the sequence fills in. `insert` runs the statement.
    /// Returns why nothing has changed, and the LSN that a reply depends on.
    pub fn define_table(
        &self,
        definitions: &[NewDefinition<'_>],
        rights: &dyn DefinitionRights,
        scratch: &mut Scratch,
        insert: impl Fn(&mut Space, &[u8]) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> (Result<(), BoxError>, Lsn) {
        let changing = self.spaces.lock_catalog();
        let catalog = self.spaces.catalog();
        let mut ids: Vec<SpaceId> = definitions.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut tx = match self.begin_on_spaces(&catalog, &ids, scratch) {
            Ok(tx) => tx,
            Err(error) => return (Err(error), Lsn::ZERO),
        };
        let mut tuples: Vec<(SpaceId, Tuple)> = Vec::new();
        for (id, tuple) in definitions {
            match tx.write(*id, |space| insert(space, tuple)) {
                Ok(written) => tuples.extend(written.new.map(|new| (*id, new))),
                Err(error) => return (Err(error), tx.abort()),
            }
        }
        let built = self.built(&mut tx, &tuples, rights);
        let space = match built {
            Ok(space) => space,
            Err(error) => return (Err(error), tx.abort()),
        };
        let lsn = tx.commit_and_show(append, |lsn| {
            self.spaces.change_catalog(&changing, lsn, |catalog| {
                catalog.add(space);
                for (id, tuple) in &tuples {
                    let effect = Effect { id: *id, old: None, new: Some(tuple) };
                    if matches!(*id, system::SEQUENCE | system::SPACE_SEQUENCE) {
                        effect.set_sequences(catalog);
                    }
                }
            });
        });
        (Ok(()), lsn)
    }

    /// Drops a space with all that belongs to it, in one transaction as well. `keys` are those of the
    /// tuples that define it, that of `_space` last; `delete` runs the statement. Returns why
    /// nothing has changed, and the LSN that a reply depends on.
    pub fn drop_table(
        &self,
        keys: &[NewDefinition<'_>],
        rights: &dyn DefinitionRights,
        scratch: &mut Scratch,
        delete: impl Fn(&mut Space, &[u8]) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> (Result<(), BoxError>, Lsn) {
        let mut garbage = Vec::new();
        let changing = self.spaces.lock_catalog();
        let catalog = self.spaces.catalog();
        let mut ids = DROP_LOCKS.to_vec();
        ids.sort_unstable();
        let mut tx = match self.begin_on_spaces(&catalog, &ids, scratch) {
            Ok(tx) => tx,
            Err(error) => return (Err(error), Lsn::ZERO),
        };
        let mut tuples: Vec<(SpaceId, Tuple)> = Vec::new();
        for (id, key) in keys {
            match tx.write(*id, |space| delete(space, key)) {
                Ok(written) => tuples.extend(written.old.map(|old| (*id, old))),
                Err(error) => return (Err(error), tx.abort()),
            }
        }
        if let Err(error) = take_apart(&mut tx, &tuples, rights, &mut garbage) {
            return (Err(error), tx.abort());
        }
        let lsn = tx.commit_and_show(append, |lsn| {
            self.spaces.change_catalog(&changing, lsn, |catalog| {
                for (id, tuple) in &tuples {
                    let effect = Effect { id: *id, old: Some(tuple), new: None };
                    match *id {
                        system::SEQUENCE | system::SPACE_SEQUENCE => effect.set_sequences(catalog),
                        system::SPACE => {
                            let def = SpaceDef::from_tuple(tuple.bytes());
                            catalog.remove(&def.expect("it was read before"));
                        }
                        _ => {}
                    }
                }
            });
        });
        scratch.garbage.append(&mut garbage);
        (Ok(()), lsn)
    }

    /// The space that the tuples define, after all checks.
    fn built(
        &self,
        tx: &mut SpaceTx<'_>,
        tuples: &[(SpaceId, Tuple)],
        rights: &dyn DefinitionRights,
    ) -> Result<Space, BoxError> {
        let mut space = None;
        let mut sequence = None;
        for (id, tuple) in tuples {
            let effect = Effect { id: *id, old: None, new: Some(tuple) };
            let bytes = tuple.bytes();
            match (*id, &mut space) {
                (system::SPACE, None) => {
                    effect.check_permission(tx, rights)?;
                    effect.check_new_space(tx)?;
                    space = Some(self.spaces.new_space(SpaceDef::from_tuple(bytes)?));
                }
                // Who may create the space owns it, and may create what belongs to it.
                (system::INDEX, Some(space)) => {
                    let before = space.bytes();
                    let index = space.new_index_def(bytes)?;
                    space.create_index(index)?;
                    tx.count_bytes(space.bytes() as i64 - before as i64);
                }
                (system::SEQUENCE, Some(_)) => {
                    effect.check_permission(tx, rights)?;
                    sequence = Some(SequenceDef::from_tuple(bytes)?);
                }
                (system::SPACE_SEQUENCE, Some(space)) => {
                    let filler = SpaceSequence::from_tuple(bytes)?;
                    let is_own = sequence.as_ref().is_some_and(|own| own.id == filler.sequence);
                    if !is_own || filler.space != space.def().id {
                        return Err(no_such_sequence(filler.sequence));
                    }
                    filler.check(space.require_index(0)?.def(), &space.def().name)?;
                }
                _ => return Err(super::error::does_not_support("Ladon", "such a definition")),
            }
        }
        space.ok_or_else(|| super::error::does_not_support("Ladon", "a definition of no space"))
    }
}

/// What dropping a table locks.
const DROP_LOCKS: [SpaceId; 7] = [
    system::SPACE,
    system::SEQUENCE,
    system::INDEX,
    system::PRIV,
    system::TRUNCATE,
    system::SPACE_SEQUENCE,
    system::SEQUENCE_DATA,
];

/// Drops the space whose definitions are gone, after all checks. If one fails, it is as it was.
fn take_apart(
    tx: &mut SpaceTx<'_>,
    tuples: &[(SpaceId, Tuple)],
    rights: &dyn DefinitionRights,
    garbage: &mut Vec<Garbage>,
) -> Result<(), BoxError> {
    let Some(((system::SPACE, last), others)) = tuples.split_last() else {
        return Err(super::error::does_not_support("Ladon", "a drop of no space"));
    };
    let effect = Effect { id: system::SPACE, old: Some(last), new: None };
    let Some(id) = effect.described()? else { return Ok(()) };
    let catalog = tx.catalog();
    let cell = catalog.get(id).ok_or_else(|| no_such_space(id))?;
    for (of, tuple) in others {
        let effect = Effect { id: *of, old: Some(tuple), new: None };
        effect.check_permission(tx, rights)?;
    }
    tx.lock_also(cell);
    let whole = tx.space_mut(id).clone();
    let before = whole.bytes();
    let mut indexes: Vec<u32> = whole.indexes().map(|index| index.def().id).collect();
    indexes.sort_unstable();
    let mut dropped =
        indexes.iter().rev().try_for_each(|index| tx.space_mut(id).drop_index(*index));
    if dropped.is_ok() {
        dropped = effect.take(tx, rights, garbage, None).map_err(|hindered| match hindered {
            Hindered::Refused(error) => error,
            Hindered::Unprepared => super::error::does_not_support("Ladon", "such a drop"),
        });
    }
    if let Err(error) = dropped {
        *tx.space_mut(id) = whole;
        return Err(error);
    }
    let after = tx.space_mut(id).bytes();
    tx.count_bytes(after as i64 - before as i64);
    garbage.push(Garbage::of_definition(whole, before));
    Ok(())
}
