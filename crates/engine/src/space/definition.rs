//! Definitions: a change of a system space's tuple takes effect in the same transaction.
//!
//! | space | effect |
//! |---|---|
//! | `_space` | a space is created, altered, renamed or dropped |
//! | `_index` | an index is built, rebuilt, renamed or dropped |
//! | `_truncate` | a space is emptied |
//! | `_sequence` | a sequence is created, altered or dropped |
//! | `_space_sequence` | a sequence begins or ends to fill in a field of a space |
//! | `_user`, `_priv`, `_func` | rights are read anew |
//!
//! The effect comes after the system space's own statement and all its checks, those of the user's
//! rights (`permission.rs`) among them. If the effect is refused, the statement is taken back.

use super::catalog::{Catalog, Changing, Content, Spaces, described_space};
use super::error::{cannot_alter, cannot_drop, cannot_mount, no_such_sequence, no_such_space};
use super::function::{Numbered, index_function};
use super::permission::looks_at;
use super::rights::DefinitionRights;
use super::transaction::SpaceTx;
use super::users::number;
use crate::keyspace::Keyspace;
use crate::noting::Prepares;
use crate::tx::{Garbage, Scratch};
use ladon_record::{Lsn, Record, SpaceId};
use ladon_space::{
    BoxError, ForeignKey, Index, IndexDef, Live, SequenceDef, Space, SpaceDef, SpaceSequence,
    Tuple, Written,
};
use ladon_system_spaces as system;
use std::collections::BTreeSet;

/// What a definition takes long for, done before it comes.
pub(crate) trait Prepared: Send + Sync {
    /// Follows the last changes of its spaces, which are locked. Returns whether the definition,
    /// this tuple, can take effect now: not if there is more to be done.
    ///
    /// # Errors
    /// A tuple does not fit the definition, or this does not go with others.
    fn catch_up(&mut self, definition: &[u8], live: Live<'_, '_>) -> Result<bool, BoxError>;

    /// Whether all tuples have been checked to have what this foreign key names.
    fn has_checked(&self, key: &ForeignKey) -> bool;

    /// Changes its space, which is locked, after it has caught up with it. Returns what may take
    /// long to drop.
    ///
    /// # Errors
    /// As [`Prepared::catch_up`].
    fn take_effect(&mut self, space: &mut Space) -> Result<Option<Space>, BoxError>;
}

/// Anything prepared.
type Planned = dyn Prepared + 'static;

/// Why a definition has no effect.
pub(super) enum Hindered {
    Refused(BoxError),
    /// What was prepared has to go on, or to begin again.
    Unprepared,
}

impl From<BoxError> for Hindered {
    fn from(error: BoxError) -> Hindered {
        Hindered::Refused(error)
    }
}

/// Whether a change of this space's tuples is more than that: it has an effect, or not everybody may
/// make it who may write the space.
pub fn is_defined_with(id: SpaceId) -> bool {
    system::is_system(id) && !matches!(id, system::SCHEMA | system::SESSION_SETTINGS)
}

/// Whether a change of this space's tuples has an effect beyond them.
pub fn defines(id: SpaceId) -> bool {
    matches!(
        id,
        system::SPACE
            | system::INDEX
            | system::TRUNCATE
            | system::USER
            | system::PRIV
            | system::FUNC
            | system::SEQUENCE
            | system::SPACE_SEQUENCE
    )
}

impl Keyspace {
    /// Runs a statement on a system space together with its effect, as a transaction of its own.
    /// Returns what was written, or why nothing has changed, and the LSN that a reply depends on:
    /// an error shows something of the definitions as well.
    pub fn define(
        &self,
        of: (SpaceId, &dyn DefinitionRights),
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
    ) -> (Result<Written, BoxError>, Lsn) {
        let (done, lsn) = self.define_with(of, scratch, statement, append, None);
        (done.expect("nothing was prepared"), lsn)
    }

    /// As [`Keyspace::define`]; what takes long may have been prepared. `None` of the result:
    /// nothing has changed, and there is more to prepare.
    pub(crate) fn define_with(
        &self,
        (id, rights): (SpaceId, &dyn DefinitionRights),
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
        prepared: Option<&mut Planned>,
    ) -> (Option<Result<Written, BoxError>>, Lsn) {
        let mut garbage = Vec::new();
        let (done, lsn) = self.define_or_leave(
            (id, rights),
            scratch,
            statement,
            append,
            (prepared, &mut garbage),
        );
        scratch.garbage.append(&mut garbage);
        match done {
            Ok(written) => (Some(Ok(written)), lsn),
            Err(Hindered::Refused(error)) => (Some(Err(error)), lsn),
            Err(Hindered::Unprepared) => (None, lsn),
        }
    }

    /// As `define_with`. Leaves what may take long to drop.
    fn define_or_leave(
        &self,
        (id, rights): (SpaceId, &dyn DefinitionRights),
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
        (prepared, garbage): (Option<&mut Planned>, &mut Vec<Garbage>),
    ) -> (Result<Written, Hindered>, Lsn) {
        let changing = self.spaces.lock_catalog();
        let catalog = self.spaces.catalog();
        let looked = looks_at(id);
        let ids = if looked.is_empty() { &[id][..] } else { looked };
        let mut tx = match self.begin_on_spaces(&catalog, ids, scratch) {
            Ok(tx) => tx,
            Err(error) => return (Err(error.into()), Lsn::ZERO),
        };
        let written = match tx.write(id, statement) {
            Ok(written) => written,
            Err(error) => return (Err(error.into()), tx.abort()),
        };
        if written == Written::default() {
            // What was to be deleted was not there: nothing is logged, and the definitions are what
            // they were. A checkpoint's generations differ by what is logged.
            return (Ok(written), tx.commit(append));
        }
        let effect = Effect { id, old: written.old.as_ref(), new: written.new.as_ref() };
        if let Err(hindered) = effect.take(&mut tx, rights, garbage, prepared) {
            return (Err(hindered), tx.abort());
        }
        // Whoever locks one of its spaces next finds the new catalog.
        let lsn = tx.commit_and_show(append, |lsn| {
            effect.publish(&self.spaces, (&changing, lsn), |def| self.spaces.new_space(def));
        });
        (Ok(written), lsn)
    }
}

/// What a statement did to a tuple of a system space.
#[derive(Clone, Copy)]
pub(super) struct Effect<'a> {
    pub(super) id: SpaceId,
    pub(super) old: Option<&'a Tuple>,
    pub(super) new: Option<&'a Tuple>,
}

impl Effect<'_> {
    /// Changes the spaces that the tuple describes; they are locked until the transaction ends.
    pub(super) fn take(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
        garbage: &mut Vec<Garbage>,
        mut prepared: Option<&mut Planned>,
    ) -> Result<(), Hindered> {
        let described = self.described()?;
        self.check_permission(tx, rights)?;
        let Some(described) = described else { return Ok(()) };
        // `_func` comes before the spaces of users.
        let function = self.index_function(tx.catalog())?;
        if self.id == system::TRUNCATE && self.new.is_none() {
            return Ok(());
        }
        // Also of numbers that no system space has: a user's space is locked after those that
        // define it.
        if described < system::USER_ID_MIN {
            let why = "numbers below 512 are of system spaces, whose definitions are fixed";
            return Err(cannot_alter(described, why).into());
        }
        let catalog = tx.catalog();
        self.check_mount(catalog)?;
        let parents = self.parents(catalog)?;
        let mut others = parents.clone();
        others.insert(described);
        for cell in others.iter().filter_map(|id| catalog.get(*id)) {
            // A table that is dropped as a whole is held already.
            if tx.held(cell.id()).is_none() {
                tx.lock_also(cell);
            }
        }
        if catalog.get(described).is_none() {
            self.check_checks(None)?;
            return match (self.id, self.old) {
                // It is created when the catalog is changed.
                (system::SPACE, None) => {
                    self.check_foreign_keys(tx, None)?;
                    self.bind(tx, &others);
                    Ok(())
                }
                _ => Err(no_such_space(described).into()),
            };
        }
        if let Some((id, function)) = function {
            tx.space_mut(described).set_function(id, function);
        }
        self.check_filler(tx, described)?;
        self.check_named(catalog, tx.space_mut(described))?;
        self.check_checks(Some(tx.space_mut(described)))?;
        let whole = tx.space_mut(described).clone();
        let before = whole.bytes();
        let was_mounted = whole.def().resp_prefix.is_some();
        let out = self.apply_prepared(tx, described, prepared.as_deref_mut())?;
        if self.id == system::SPACE {
            let space = tx.space_mut(described);
            let check = ladon_sql::tuple_checks(space.def());
            space.set_tuple_check(check);
        }
        self.break_off_preparations(tx.guard(described));
        if let Err(error) = self.check_foreign_keys(tx, prepared.as_deref()) {
            *tx.space_mut(described) = whole;
            return Err(error.into());
        }
        self.bind(tx, &others);
        let after = tx.space_mut(described).bytes();
        tx.count_bytes(after as i64 - before as i64);
        if was_mounted || tx.space_mut(described).def().resp_prefix.is_some() {
            tx.redefined(described);
        }
        if self.id == system::SPACE && self.new.is_none() {
            tx.mark_gone(described);
        }
        garbage.extend(out.map(Garbage::of));
        garbage.push(Garbage::of_definition(whole, before));
        Ok(())
    }

    /// Checks a tuple of `_space` that is to create a space, whose foreign keys' parents are locked
    /// until the transaction ends.
    pub(super) fn check_new_space(&self, tx: &mut SpaceTx<'_>) -> Result<(), BoxError> {
        let Some(described) = self.described()? else { return Ok(()) };
        if described < system::USER_ID_MIN {
            let why = "numbers below 512 are of system spaces, whose definitions are fixed";
            return Err(cannot_alter(described, why));
        }
        let catalog = tx.catalog();
        self.check_mount(catalog)?;
        self.check_checks(None)?;
        let parents = self.parents(catalog)?;
        for cell in parents.iter().filter_map(|id| catalog.get(*id)) {
            tx.lock_also(cell);
        }
        self.check_foreign_keys(tx, None)?;
        self.bind(tx, &parents);
        Ok(())
    }

    /// Writers of the spaces that foreign keys bind look at the catalog again.
    fn bind(&self, tx: &mut SpaceTx<'_>, spaces: &BTreeSet<SpaceId>) {
        let version = tx.catalog().version + 1;
        let is_bound = self.new.is_some_and(|new| {
            SpaceDef::from_tuple(new.bytes()).is_ok_and(|def| !def.foreign_keys.is_empty())
        });
        if self.id == system::SPACE && is_bound {
            let catalog = tx.catalog();
            for id in spaces.iter().filter(|id| catalog.get(**id).is_some()) {
                tx.guard(*id).bound_at = version;
            }
        }
    }

    /// Breaks off what is being prepared and is not as it has to be any more.
    fn break_off_preparations(&self, content: &mut Content) {
        let Content { noting, space, .. } = content;
        if !noting.is_on() {
            return;
        }
        if self.id == system::SPACE {
            let def = |tuple: Option<&Tuple>| SpaceDef::from_tuple(tuple?.bytes()).ok();
            let (old, new) = (def(self.old), def(self.new));
            let format = |def: &SpaceDef| (def.format.clone(), def.field_count);
            // Indexes are checked with the format that there is. A new one does not depend on it,
            // but on the foreign keys that there were.
            let is_kept = old.as_ref().map(format) == new.as_ref().map(format);
            let are_keys_kept = old
                .iter()
                .zip(&new)
                .all(|(old, new)| old.foreign_keys.iter().all(|key| key.is_kept(old, new)));
            noting.break_off(|it| match it {
                _ if new.is_none() => true,
                Prepares::Format => !are_keys_kept,
                _ => !is_kept,
            });
            return;
        }
        let def = |tuple: Option<&Tuple>| {
            let tuple = tuple.filter(|_| self.id == system::INDEX)?;
            IndexDef::from_tuple(tuple.bytes(), space.def()).ok()
        };
        let (old, new) = (def(self.old), def(self.new));
        if let (Some(old), Some(new)) = (&old, &new)
            && old.has_same_order(new)
        {
            return;
        }
        let defs = [old, new];
        let Some(id) = defs.iter().flatten().map(|def| def.id).next().filter(|id| *id != 0) else {
            return noting.break_off(|_| true);
        };
        let mut parts = defs.iter().flatten().flat_map(IndexDef::field_parts);
        let reaches_into_fields = parts.any(|part| !part.path.steps().is_empty());
        let is_multikey = space.index(id).is_some_and(Index::is_multikey);
        noting.break_off(|it| match it {
            // Tuples have a number of keys at most in all multikey indexes together.
            Prepares::Index(other) => other == id || is_multikey,
            // Where an index reaches into a field, the format does not demand that it is there.
            Prepares::Format => reaches_into_fields,
            Prepares::AllIndexes | Prepares::KeysOfOthers => true,
        });
    }

    /// Checks that a space is not mounted where another one is.
    fn check_mount(&self, catalog: &Catalog) -> Result<(), BoxError> {
        let (system::SPACE, Some(new)) = (self.id, self.new) else { return Ok(()) };
        let def = SpaceDef::from_tuple(new.bytes())?;
        let Some(prefix) = def.resp_prefix.as_deref() else { return Ok(()) };
        if def.is_view {
            return Err(cannot_mount("a view cannot be mounted"));
        }
        match catalog.overlapping(def.id, prefix) {
            Some(other) => Err(cannot_mount(&format!(
                "keys with '{}' and '{}', where space {} is mounted, cannot be told apart",
                String::from_utf8_lossy(prefix),
                String::from_utf8_lossy(&other.prefix),
                other.space
            ))),
            None => Ok(()),
        }
    }

    /// The space that the tuple describes, if the system space is one that describes spaces. A
    /// definition that cannot be read is refused here.
    pub(super) fn described(&self) -> Result<Option<SpaceId>, BoxError> {
        let Some(tuple) = self.new.or(self.old) else { return Ok(None) };
        Ok(match self.id {
            system::SPACE if self.old.is_some() && self.new.is_some() => {
                Some(SpaceDef::from_new_tuple(tuple.bytes())?.id)
            }
            system::SPACE => Some(SpaceDef::from_tuple(tuple.bytes())?.id),
            system::INDEX | system::TRUNCATE => Some(described_space(tuple.bytes())?),
            system::SEQUENCE => SequenceDef::from_tuple(tuple.bytes()).map(|_| None)?,
            system::SPACE_SEQUENCE => Some(SpaceSequence::from_tuple(tuple.bytes())?.space),
            _ => None,
        })
    }

    /// Changes the space that the tuple describes; its foreign keys' spaces are locked too. Returns
    /// what it no longer needs.
    fn apply_prepared(
        &self,
        tx: &mut SpaceTx<'_>,
        described: SpaceId,
        prepared: Option<&mut Planned>,
    ) -> Result<Option<Space>, Hindered> {
        let (Some(prepared), Some(new)) = (prepared, self.new) else {
            return Ok(self.apply(tx.space_mut(described))?);
        };
        match prepared.catch_up(new.bytes(), &|id| tx.held(id))? {
            true => Ok(prepared.take_effect(tx.space_mut(described))?),
            false => Err(Hindered::Unprepared),
        }
    }

    /// The function that makes the keys of a new index, and its number.
    pub(super) fn index_function(&self, catalog: &Catalog) -> Result<Option<Numbered>, BoxError> {
        match (self.id, self.new) {
            (system::INDEX, Some(new)) => index_function(catalog, new.bytes()),
            _ => Ok(None),
        }
    }

    /// As `apply_prepared`, all at once.
    pub(super) fn apply(&self, space: &mut Space) -> Result<Option<Space>, BoxError> {
        match (self.id, self.old, self.new) {
            (system::SPACE, Some(_), Some(new)) => {
                space.alter(SpaceDef::from_tuple(new.bytes())?)?;
                let check = ladon_sql::tuple_checks(space.def());
                space.set_tuple_check(check);
            }
            (system::SPACE, Some(_), None) if space.indexes().next().is_some() => {
                return Err(cannot_drop(&space.def().name, "the space has indexes"));
            }
            (system::INDEX, old, Some(new)) => {
                let def = match old {
                    None => space.new_index_def(new.bytes())?,
                    Some(_) => IndexDef::from_tuple(new.bytes(), space.def())?,
                };
                match old {
                    None => space.create_index(def)?,
                    Some(_) => space.replace_index(def)?,
                }
            }
            (system::INDEX, Some(old), None) => {
                let def = IndexDef::from_tuple(old.bytes(), space.def())?;
                let before = space.clone();
                space.drop_index(def.id)?;
                return Ok(Some(before));
            }
            (system::TRUNCATE, _, Some(_)) => return Ok(Some(space.truncate())),
            _ => {}
        }
        Ok(None)
    }

    /// Checks that the field that a sequence fills in is one of the primary key.
    fn check_filler(&self, tx: &mut SpaceTx<'_>, described: SpaceId) -> Result<(), BoxError> {
        let catalog = tx.catalog();
        let filler = match (self.id, self.new) {
            (system::SPACE_SEQUENCE, Some(new)) => {
                let filler = SpaceSequence::from_tuple(new.bytes())?;
                if catalog.sequence(filler.sequence).is_none() {
                    return Err(no_such_sequence(filler.sequence));
                }
                Some(filler)
            }
            (system::INDEX, _) => catalog.filler(described).map(|(filler, _)| filler),
            _ => None,
        };
        let Some(filler) = filler else { return Ok(()) };
        let space = tx.space_mut(described);
        let name = space.def().name.clone();
        if self.id == system::SPACE_SEQUENCE {
            filler.check(space.require_index(0)?.def(), &name)?;
            return match catalog.is_generated(filler.sequence) {
                true => Err(cannot_alter(&name, "can not attach generated sequence")),
                false => Ok(()),
            };
        }
        match (self.old, self.new) {
            (_, Some(new)) => {
                let def = IndexDef::from_tuple(new.bytes(), space.def())?;
                if def.id == 0 { filler.check(&def, &name) } else { Ok(()) }
            }
            (Some(old), None) if IndexDef::from_tuple(old.bytes(), space.def())?.id == 0 => {
                space.check_drop(0)?;
                let why = "can not drop primary key while space sequence exists";
                Err(cannot_alter(&name, why))
            }
            _ => Ok(()),
        }
    }

    /// Notes a sequence, or which one fills in a space's field.
    pub(super) fn set_sequences(&self, catalog: &mut Catalog) {
        let read = "it was read before";
        if self.id == system::SEQUENCE {
            let def = |tuple: &Tuple| SequenceDef::from_tuple(tuple.bytes()).expect(read);
            let (old, new) = (self.old.map(def), self.new.map(def));
            if let Some(id) = new.as_ref().or(old.as_ref()).map(|def| def.id) {
                catalog.set_sequence(id, new);
            }
            return;
        }
        let filler = |tuple: &Tuple| SpaceSequence::from_tuple(tuple.bytes()).expect(read);
        let (old, new) = (self.old.map(filler), self.new.map(filler));
        if let Some(space) = new.or(old).map(|filler| filler.space) {
            catalog.set_filler(space, new);
        }
    }

    /// Shows everybody what has changed, in the log at `lsn`.
    pub(super) fn publish(
        &self,
        spaces: &Spaces,
        (changing, lsn): (&Changing<'_>, Lsn),
        create: impl FnOnce(SpaceDef) -> Space,
    ) {
        match self.id {
            system::SPACE => {
                let of = |tuple: Option<&Tuple>| {
                    let def = tuple.map(|tuple| SpaceDef::from_tuple(tuple.bytes()));
                    def.map(|def| def.expect("it was read before"))
                };
                let (old, new) = (of(self.old), of(self.new));
                spaces.change_catalog(changing, lsn, |catalog| change(catalog, old, new, create));
            }
            system::INDEX => spaces.change_catalog(changing, lsn, |_| {}),
            system::SEQUENCE | system::SPACE_SEQUENCE => {
                spaces.change_catalog(changing, lsn, |catalog| self.set_sequences(catalog));
            }
            system::USER | system::PRIV | system::FUNC => {
                let is_drop = self.id == system::USER && self.new.is_none();
                let dropped = self.old.filter(|_| is_drop);
                let dropped = dropped.and_then(|old| number(old.bytes(), 0).ok());
                spaces.count_access_change(dropped);
            }
            _ => {}
        }
    }
}

impl Effect<'_> {
    /// The spaces that the foreign keys of a definition name, checked to be there, without itself.
    fn parents(&self, catalog: &Catalog) -> Result<BTreeSet<SpaceId>, BoxError> {
        let (system::SPACE, Some(new)) = (self.id, self.new) else { return Ok(BTreeSet::new()) };
        let def = SpaceDef::from_tuple(new.bytes())?;
        let mut parents = BTreeSet::new();
        for key in &def.foreign_keys {
            let parent = key.parent(def.id);
            if parent == def.id {
                continue;
            }
            if parent < system::USER_ID_MIN {
                return Err(key.refused(&def.name, "Ladon does not bind to system spaces"));
            }
            if catalog.get(parent).is_none() {
                let why = format!("foreign space '{parent}' was not found by id");
                return Err(key.refused(&def.name, &why));
            }
            parents.insert(parent);
        }
        Ok(parents)
    }

    /// Checks what SQL's CHECKs of a definition are.
    fn check_checks(&self, space: Option<&Space>) -> Result<(), BoxError> {
        let (system::SPACE, Some(new)) = (self.id, self.new) else { return Ok(()) };
        let def = SpaceDef::from_tuple(new.bytes())?;
        let is_empty = space.is_none_or(Space::is_empty);
        ladon_sql::check_definition(space.map(Space::def), &def, is_empty)
    }

    /// Checks that a space whose tuples foreign keys of others name keeps them.
    fn check_named(&self, catalog: &Catalog, space: &Space) -> Result<(), BoxError> {
        let def = space.def();
        if !catalog.links.is_named(def.id) {
            return Ok(());
        }
        let why = "space is referenced by foreign key";
        match (self.id, self.new) {
            (system::SPACE, None) => Err(cannot_drop(&def.name, why)),
            (system::TRUNCATE, Some(_)) => Err(cannot_alter(&def.name, why)),
            _ => Ok(()),
        }
    }

    /// Checks a new definition's foreign keys, with the tuples that there are: not those that were
    /// there before and are of the same fields, and not those that `prepared` has checked. The
    /// spaces are locked.
    fn check_foreign_keys(
        &self,
        tx: &SpaceTx<'_>,
        prepared: Option<&Planned>,
    ) -> Result<(), BoxError> {
        let (system::SPACE, Some(new)) = (self.id, self.new) else { return Ok(()) };
        let def = SpaceDef::from_tuple(new.bytes())?;
        let old = self.old.map(|old| SpaceDef::from_tuple(old.bytes())).transpose()?;
        let is_kept = |key: &ForeignKey| {
            old.as_ref().is_some_and(|old| old.foreign_keys.contains(key) && key.is_kept(old, &def))
        };
        let child = tx.held(def.id);
        for key in &def.foreign_keys {
            let parent = key.parent(def.id);
            let Some(parent) = tx.held(parent) else { continue };
            key.check_spaces(&def, parent.def())?;
            let is_checked = prepared.is_some_and(|prepared| prepared.has_checked(key));
            let Some(child) = child.filter(|_| !is_checked && !is_kept(key)) else { continue };
            let primary = child.indexes().next();
            let mut tuples = primary.into_iter().flat_map(|primary| primary.tuples());
            tuples.try_for_each(|tuple| key.check_there(&def, parent, tuple))?;
        }
        Ok(())
    }
}

fn change(
    catalog: &mut Catalog,
    old: Option<SpaceDef>,
    new: Option<SpaceDef>,
    create: impl FnOnce(SpaceDef) -> Space,
) {
    match (old, new) {
        (None, Some(new)) => catalog.add(create(new)),
        (Some(old), Some(new)) => {
            catalog.alter(&old, &new);
            catalog.links.set(new.id, Some(&new));
        }
        (Some(old), None) => catalog.remove(&old),
        (None, None) => {}
    }
}
