//! Rebuilds the spaces from a checkpoint's blocks and the log's records.
//!
//! Blocks arrive in any order, from several threads, and are kept until all are there. The system
//! spaces come first, because they define the others. Secondary indexes are built at the very end:
//! blocks are of different moments, so uniqueness may not hold in between.

use super::catalog::{Catalog, SpaceCell, Spaces, define_index, described_space};
use super::definition::{Effect, defines};
use super::error::no_such_space;
use crate::keyspace::Keyspace;
use crate::save::SavedBlock;
use ladon_record::{Change, ChangeError, Changes, Lsn, SpaceId};
use ladon_space::{BoxError, Rules, Space, SpaceDef, Tuple, Written};
use ladon_system_spaces as system;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Spaces being rebuilt.
#[derive(Default)]
pub(crate) struct RecoveringSpaces {
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// Of the newest generation so far.
    generation: Lsn,
    /// Blocks of system spaces, encoded.
    definitions: BTreeMap<SpaceId, Vec<Vec<u8>>>,
    /// The tuples of other spaces, each block's by itself: in the order of a primary index that has
    /// one.
    tuples: BTreeMap<SpaceId, Vec<Vec<Tuple>>>,
    /// The blocks were loaded.
    is_done: bool,
    /// What records put into user's spaces, by space.
    puts: BTreeMap<SpaceId, Puts>,
}

/// Tuples that are put in together: so, those beside each other take one way down the index, and
/// the others wait for memory together.
struct Puts {
    /// What they are checked by, before they are taken.
    rules: Arc<Rules>,
    /// In the log's order.
    run: Vec<Tuple>,
}

/// So many tuples are put in together.
const RUN_TUPLES: usize = 1024;

/// Why spaces cannot be rebuilt.
#[derive(Debug)]
pub(crate) enum SpaceFault {
    Change(ChangeError),
    /// A space, and what is wrong with a tuple of it.
    Tuple(SpaceId, BoxError),
}

impl RecoveringSpaces {
    /// Takes in a block of the space `id`.
    pub(crate) fn block(
        &self,
        block: &SavedBlock,
        id: SpaceId,
        changes: &[u8],
    ) -> Result<(), SpaceFault> {
        let mut run = Vec::new();
        if !system::is_system(id) {
            // Outside the lock: most of loading is this, and several threads do it.
            run.reserve_exact((block.keys as usize).min(changes.len()));
            tuples(changes, |tuple| {
                run.push(Tuple::new(tuple));
                Ok(())
            })?;
        }
        let generation = Lsn(block.hash_first);
        let mut loaded = self.loaded.lock();
        if generation > loaded.generation {
            *loaded = Loaded { generation, ..Loaded::default() };
        }
        if generation < loaded.generation {
            return Ok(());
        }
        if system::is_system(id) {
            loaded.definitions.entry(id).or_default().push(changes.to_vec());
        } else {
            loaded.tuples.entry(id).or_default().push(run);
        }
        Ok(())
    }

    /// What applies changes of records: by one thread, in the log's order.
    pub(crate) fn replay(&self) -> SpaceReplay<'_> {
        SpaceReplay { loaded: self.loaded.lock() }
    }

    /// Ends recovery: builds the secondary indexes.
    pub(crate) fn finish(&self, keyspace: &Keyspace) -> Result<(), SpaceFault> {
        let mut loaded = self.loaded.lock();
        loaded.load(keyspace)?;
        loaded.end_puts(keyspace)?;
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
}

/// Applies changes, see [`RecoveringSpaces::replay`].
pub(crate) struct SpaceReplay<'a> {
    loaded: MutexGuard<'a, Loaded>,
}

impl SpaceReplay<'_> {
    pub(crate) fn change(
        &mut self,
        keyspace: &Keyspace,
        lsn: Lsn,
        change: Change<'_>,
    ) -> Result<(), SpaceFault> {
        let loaded = &mut *self.loaded;
        loaded.load(keyspace)?;
        if lsn <= loaded.generation {
            return Ok(());
        }
        match change {
            Change::SpacePut { space: id, tuple } if !system::is_system(id) => {
                loaded.put(keyspace, id, tuple)
            }
            Change::SpaceDelete { space: system::PRIV, .. }
                if keyspace.spaces.lost_revokes_canary.load(Relaxed) =>
            {
                Ok(())
            }
            Change::SpacePut { space: id, .. } | Change::SpaceDelete { space: id, .. } => {
                loaded.redo(keyspace, id, change)
            }
            _ => Ok(()),
        }
    }
}

impl Loaded {
    /// Loads the blocks, the first time.
    fn load(&mut self, keyspace: &Keyspace) -> Result<(), SpaceFault> {
        if std::mem::replace(&mut self.is_done, true) || self.generation == Lsn::ZERO {
            return Ok(());
        }
        load_definitions(keyspace, &std::mem::take(&mut self.definitions))?;
        let catalog = keyspace.spaces.catalog();
        for (id, runs) in std::mem::take(&mut self.tuples) {
            cell(&catalog, id)?.lock().space.load_runs(runs);
        }
        Ok(())
    }

    /// Puts a tuple into a user's space, soon.
    fn put(&mut self, keyspace: &Keyspace, id: SpaceId, tuple: &[u8]) -> Result<(), SpaceFault> {
        let fault = |error| SpaceFault::Tuple(id, error);
        let puts = match self.puts.entry(id) {
            Entry::Occupied(puts) => puts.into_mut(),
            Entry::Vacant(place) => {
                let catalog = keyspace.spaces.catalog();
                let rules = cell(&catalog, id)?.lock().space.rules_of_puts().map_err(fault)?;
                place.insert(Puts { rules, run: Vec::new() })
            }
        };
        puts.rules.check(tuple).map_err(fault)?;
        puts.run.push(Tuple::new(tuple));
        if puts.run.len() >= RUN_TUPLES { self.end_puts_into(keyspace, id) } else { Ok(()) }
    }

    fn end_puts_into(&mut self, keyspace: &Keyspace, id: SpaceId) -> Result<(), SpaceFault> {
        if let Some(puts) = self.puts.get_mut(&id)
            && !puts.run.is_empty()
        {
            let catalog = keyspace.spaces.catalog();
            cell(&catalog, id)?.lock().space.put_run(&mut puts.run);
        }
        Ok(())
    }

    fn end_puts(&mut self, keyspace: &Keyspace) -> Result<(), SpaceFault> {
        let ids: Vec<SpaceId> = self.puts.keys().copied().collect();
        ids.into_iter().try_for_each(|id| self.end_puts_into(keyspace, id))
    }

    /// Does a change of a space again.
    fn redo(
        &mut self,
        keyspace: &Keyspace,
        id: SpaceId,
        change: Change<'_>,
    ) -> Result<(), SpaceFault> {
        if defines(id) {
            self.end_puts(keyspace)?;
            // Rules may be others afterwards.
            self.puts.clear();
        } else {
            self.end_puts_into(keyspace, id)?;
        }
        let fault = |error| SpaceFault::Tuple(id, error);
        let catalog = keyspace.spaces.catalog();
        let written = {
            let mut held = cell(&catalog, id)?.lock();
            redo(&mut held.space, id, change).map_err(fault)?
        };
        if defines(id) {
            let effect = Effect { id, old: written.old.as_ref(), new: written.new.as_ref() };
            take_effect(keyspace, &catalog, effect).map_err(fault)?;
        }
        Ok(())
    }
}

fn cell(catalog: &Catalog, id: SpaceId) -> Result<&SpaceCell, SpaceFault> {
    catalog.get(id).ok_or_else(|| SpaceFault::Tuple(id, no_such_space(id)))
}

/// Loads the system spaces, and creates what they define.
fn load_definitions(
    keyspace: &Keyspace,
    definitions: &BTreeMap<SpaceId, Vec<Vec<u8>>>,
) -> Result<(), SpaceFault> {
    let changing = keyspace.spaces.lock_catalog();
    for cell in keyspace.spaces.catalog().cells() {
        cell.lock().space.truncate();
    }
    for (id, blocks) in definitions {
        let catalog = keyspace.spaces.catalog();
        let mut held = cell(&catalog, *id)?.lock();
        in_all(blocks, |tuple| held.space.apply_put(tuple))?;
    }
    let of = |id| definitions.get(&id).map_or(&[][..], Vec::as_slice);
    let mut defs = Vec::new();
    in_all(of(system::SPACE), |tuple| {
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
        in_all(of(id), |tuple| {
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
    in_all(of(system::INDEX), |tuple| {
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
    let function = effect.index_function(catalog)?;
    if let Some(described) = effect.described()?
        && let Some(cell) = catalog.get(described)
        && !system::is_system(described)
    {
        let mut held = cell.lock();
        if let Some((id, function)) = function {
            held.space.set_function(id, function);
        }
        effect.apply(&mut held.space)?;
        let is_altered = effect.id == system::INDEX && effect.old.is_some();
        if is_altered && keyspace.spaces.lost_tuples_canary.load(Relaxed) {
            held.space.truncate();
        }
    }
    effect.publish(&keyspace.spaces, (&changing, Lsn::ZERO), |def| {
        loading_space(&keyspace.spaces, def)
    });
    Ok(())
}

/// Visits the tuples of a block.
fn tuples(
    block: &[u8],
    mut visit: impl FnMut(&[u8]) -> Result<(), BoxError>,
) -> Result<(), SpaceFault> {
    for change in Changes::new(block) {
        match change.map_err(SpaceFault::Change)? {
            Change::SpacePut { space, tuple } => {
                visit(tuple).map_err(|error| SpaceFault::Tuple(space, error))?;
            }
            _ => return Err(SpaceFault::Change(ChangeError::UnknownTag(0))),
        }
    }
    Ok(())
}

/// Visits the tuples of blocks.
fn in_all(
    blocks: &[Vec<u8>],
    mut visit: impl FnMut(&[u8]) -> Result<(), BoxError>,
) -> Result<(), SpaceFault> {
    blocks.iter().try_for_each(|block| tuples(block, &mut visit))
}
