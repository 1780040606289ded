//! Rebuilds the spaces from a checkpoint's blocks and the log's records.
//!
//! Blocks arrive in any order, from several threads, and are kept until all are there. The system
//! spaces come first, because they define the others. Secondary indexes are built at the very end:
//! blocks are of different moments, so uniqueness may not hold in between.

use super::catalog::{Catalog, Spaces, define_index, described_space};
use super::definition::{Effect, defines};
use super::error::no_such_space;
use crate::keyspace::Keyspace;
use crate::save::SavedBlock;
use ladon_record::{Change, ChangeError, Changes, Lsn, SpaceId};
use ladon_space::{BoxError, Space, SpaceDef, Tuple, Written};
use ladon_system_spaces as system;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Spaces being rebuilt.
#[derive(Default)]
pub(crate) struct RecoveringSpaces {
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// Of the newest generation so far.
    generation: Lsn,
    /// Blocks by space, encoded.
    blocks: BTreeMap<SpaceId, Vec<Vec<u8>>>,
    /// The blocks were loaded.
    is_done: bool,
}

/// Why spaces cannot be rebuilt.
#[derive(Debug)]
pub(crate) enum SpaceFault {
    Change(ChangeError),
    /// A space, and what is wrong with a tuple of it.
    Tuple(SpaceId, BoxError),
}

impl RecoveringSpaces {
    /// Takes in a block of the space `id`.
    pub(crate) fn block(&self, block: &SavedBlock, id: SpaceId, changes: &[u8]) {
        let generation = Lsn(block.hash_first);
        let mut loaded = self.loaded.lock();
        if generation > loaded.generation {
            loaded.generation = generation;
            loaded.blocks.clear();
        }
        if generation == loaded.generation {
            loaded.blocks.entry(id).or_default().push(changes.to_vec());
        }
    }

    /// Applies a change of a record. Called by one thread, in the log's order.
    pub(crate) fn change(
        &self,
        keyspace: &Keyspace,
        lsn: Lsn,
        change: Change<'_>,
    ) -> Result<(), SpaceFault> {
        let generation = self.load(keyspace)?;
        if lsn <= generation {
            return Ok(());
        }
        let (Change::SpacePut { space: id, .. } | Change::SpaceDelete { space: id, .. }) = change
        else {
            return Ok(());
        };
        let fault = |error| SpaceFault::Tuple(id, error);
        let catalog = keyspace.spaces.catalog();
        let none = || fault(no_such_space(id));
        let cell = catalog.get(id).ok_or_else(none)?;
        let written = {
            let mut held = cell.lock();
            redo(&mut held.space, id, change).map_err(fault)?
        };
        if defines(id) {
            let effect = Effect { id, old: written.old.as_ref(), new: written.new.as_ref() };
            take_effect(keyspace, &catalog, effect).map_err(fault)?;
        }
        Ok(())
    }

    /// Ends recovery: builds the secondary indexes.
    pub(crate) fn finish(&self, keyspace: &Keyspace) -> Result<(), SpaceFault> {
        self.load(keyspace)?;
        if !keyspace.spaces.are_in_use() {
            return Ok(());
        }
        let catalog = keyspace.spaces.catalog();
        let mut bytes = 0;
        for cell in catalog.cells() {
            let mut held = cell.lock();
            held.space.finish_loading().map_err(|error| SpaceFault::Tuple(cell.id(), error))?;
            bytes += held.space.bytes() as i64;
        }
        keyspace.spaces.add_bytes(bytes - keyspace.spaces.bytes() as i64);
        Ok(())
    }

    /// Loads the blocks, the first time. Returns their generation.
    fn load(&self, keyspace: &Keyspace) -> Result<Lsn, SpaceFault> {
        let mut loaded = self.loaded.lock();
        if !std::mem::replace(&mut loaded.is_done, true) && loaded.generation > Lsn::ZERO {
            load_definitions(keyspace, &mut loaded.blocks)?;
            let catalog = keyspace.spaces.catalog();
            for (id, blocks) in std::mem::take(&mut loaded.blocks) {
                let none = || SpaceFault::Tuple(id, no_such_space(id));
                let mut held = catalog.get(id).ok_or_else(none)?.lock();
                tuples(&blocks, |tuple| {
                    held.space.load(Tuple::new(tuple));
                    Ok(())
                })?;
            }
        }
        Ok(loaded.generation)
    }
}

/// Loads the system spaces, and creates what they define.
fn load_definitions(
    keyspace: &Keyspace,
    blocks: &mut BTreeMap<SpaceId, Vec<Vec<u8>>>,
) -> Result<(), SpaceFault> {
    let changing = keyspace.spaces.lock_catalog();
    let users = blocks.split_off(&system::USER_ID_MIN);
    let system_blocks = std::mem::replace(blocks, users);
    for cell in keyspace.spaces.catalog().cells() {
        cell.lock().space.truncate();
    }
    for (id, blocks) in &system_blocks {
        let catalog = keyspace.spaces.catalog();
        let none = || SpaceFault::Tuple(*id, no_such_space(*id));
        let mut held = catalog.get(*id).ok_or_else(none)?.lock();
        tuples(blocks, |tuple| held.space.apply_put(tuple))?;
    }
    let of = |id| system_blocks.get(&id).map_or(&[][..], Vec::as_slice);
    let mut defs = Vec::new();
    tuples(of(system::SPACE), |tuple| {
        if !system::is_system(described_space(tuple)?) {
            defs.push(SpaceDef::from_tuple(tuple)?);
        }
        Ok(())
    })?;
    keyspace.spaces.change_catalog(&changing, Lsn::ZERO, |catalog| {
        for def in defs {
            catalog.add(loading_space(&keyspace.spaces, def));
        }
    });
    for id in [system::SEQUENCE, system::SPACE_SEQUENCE] {
        tuples(of(id), |tuple| {
            let tuple = Tuple::new(tuple);
            let effect = Effect { id, old: None, new: Some(&tuple) };
            effect.described()?;
            effect.publish(&keyspace.spaces, (&changing, Lsn::ZERO), |def| {
                loading_space(&keyspace.spaces, def)
            });
            Ok(())
        })?;
    }
    let catalog = keyspace.spaces.catalog();
    tuples(of(system::INDEX), |tuple| {
        let id = described_space(tuple)?;
        if system::is_system(id) { Ok(()) } else { define_index(&catalog, tuple) }
    })
}

fn loading_space(spaces: &Spaces, def: SpaceDef) -> Space {
    let mut space = spaces.new_space(def);
    space.begin_loading();
    space
}

/// Does a change again. Returns what it did, if that defines something.
fn redo(space: &mut Space, id: SpaceId, change: Change<'_>) -> Result<Written, BoxError> {
    let mut written = Written::default();
    match change {
        Change::SpacePut { tuple, .. } => {
            if defines(id) {
                written.old = space.get(0, &space.primary_key_of(tuple)?)?;
                written.new = Some(Tuple::new(tuple));
            }
            space.apply_put(tuple)?;
        }
        Change::SpaceDelete { key, .. } => {
            if defines(id) {
                written.old = space.get(0, key)?;
            }
            space.apply_delete(key)?;
        }
        _ => {}
    }
    Ok(written)
}

/// The effect of a definition that is replayed.
fn take_effect(keyspace: &Keyspace, catalog: &Catalog, effect: Effect<'_>) -> Result<(), BoxError> {
    let changing = keyspace.spaces.lock_catalog();
    if let Some(described) = effect.described()?
        && let Some(cell) = catalog.get(described)
        && !system::is_system(described)
    {
        effect.apply(&mut cell.lock().space)?;
    }
    effect.publish(&keyspace.spaces, (&changing, Lsn::ZERO), |def| {
        loading_space(&keyspace.spaces, def)
    });
    Ok(())
}

/// Visits the tuples of blocks.
fn tuples(
    blocks: &[Vec<u8>],
    mut visit: impl FnMut(&[u8]) -> Result<(), BoxError>,
) -> Result<(), SpaceFault> {
    for block in blocks {
        for change in Changes::new(block) {
            match change.map_err(SpaceFault::Change)? {
                Change::SpacePut { space, tuple } => {
                    visit(tuple).map_err(|error| SpaceFault::Tuple(space, error))?;
                }
                _ => return Err(SpaceFault::Change(ChangeError::UnknownTag(0))),
            }
        }
    }
    Ok(())
}
