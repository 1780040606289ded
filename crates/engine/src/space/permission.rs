//! Whether a user may make a definition, and whether what it takes away is still needed.
//!
//! | of | who may | what hinders |
//! |---|---|---|
//! | `_space`, `_sequence`, `_func` | who owns it, or was granted `create`, `alter`, `drop` | grants of it |
//! | `_index`, `_space_sequence` | as the space | |
//! | `_truncate` | who may write the space | |
//! | `_user` | as the first line; itself, its password | what it owns, has or has granted |
//! | `_priv` | who owns the object, in its own name | |
//!
//! Rights come before all that the definition itself may be refused for, as in Tarantool; what
//! hinders it is looked at under the locks of the system spaces that tell it.
//!
//! Source: the triggers of Tarantool's `alter.cc`. Two checks are stricter. An alteration asks for the
//! right to what the owner had before, not only to what the new tuple says. And a user is not dropped
//! while others have rights to it, which another user of its number would come under.

use super::catalog::described_space;
use super::definition::Effect;
use super::error::{
    cannot_drop, cannot_drop_function, cannot_drop_sequence, cannot_drop_user, cannot_truncate,
    does_not_support, no_such_sequence, no_such_space,
};
use super::function::FunctionDef;
use super::rights::{DefinitionRights, ObjectKind, Privilege, RightsObject};
use super::transaction::SpaceTx;
use super::users::{ADMIN, PUBLIC, SUPER, UserDef, number};
use ladon_msgpack::write;
use ladon_record::SpaceId;
use ladon_space::{
    BoxError, IteratorType, SequenceDef, SpaceDef, SpaceSequence, Tuple, check_identifier,
    function_of_index,
};
use ladon_system_spaces as system;

/// The system spaces that a definition looks at, its own among them, in order. What has a higher
/// number than its own may be locked later.
pub(super) fn looks_at(id: SpaceId) -> &'static [SpaceId] {
    match id {
        system::USER => {
            &[system::SPACE, system::SEQUENCE, system::FUNC, system::USER, system::PRIV]
        }
        system::PRIV => {
            &[system::SPACE, system::SEQUENCE, system::FUNC, system::USER, system::PRIV]
        }
        system::FUNC => &[system::INDEX, system::FUNC],
        _ => &[],
    }
}

impl Effect<'_> {
    /// Checks that the user may make the definition, and that nothing needs what it takes away.
    ///
    /// # Errors
    /// Tarantool's.
    pub(super) fn check_permission(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        match self.id {
            system::SPACE => self.check_space_permission(tx, rights),
            system::INDEX => self.check_index_permission(tx, rights),
            system::TRUNCATE => self.check_truncation(tx, rights),
            system::SEQUENCE => self.check_sequence_permission(tx, rights),
            system::SEQUENCE_DATA => self.check_counter(tx),
            system::SPACE_SEQUENCE => self.check_filler_permission(tx, rights),
            system::USER => self.check_user(tx, rights),
            system::FUNC => self.check_function(tx, rights),
            system::PRIV => self.check_grant(tx, rights),
            system::COLLATION => Err(does_not_support("Ladon", "other collations than there are")),
            system::TRIGGER => Err(does_not_support("Ladon", "SQL triggers")),
            system::FK_CONSTRAINT | system::CK_CONSTRAINT => {
                Err(does_not_support("Ladon", "SQL constraints"))
            }
            system::FUNC_INDEX => Err(does_not_support(
                "Ladon",
                "`_func_index`: the option `func` of `_index` says it",
            )),
            system::CLUSTER => Err(does_not_support("Ladon", "replication")),
            _ => Ok(()),
        }
    }

    fn check_space_permission(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let def = |tuple: &Tuple| SpaceDef::from_tuple(tuple.bytes());
        let object = |def: &SpaceDef, owner, privilege| {
            rights.check_definition(&RightsObject::space(def.id, &def.name, owner), privilege)
        };
        match (self.old, self.new) {
            (None, Some(new)) => {
                let new = def(new)?;
                object(&new, new.owner, Privilege::CREATE)
            }
            (Some(old), Some(new)) => {
                let (old, new) = (def(old)?, SpaceDef::from_new_tuple(new.bytes())?);
                object(&new, new.owner, Privilege::ALTER)?;
                object(&old, old.owner, Privilege::ALTER)
            }
            (Some(old), None) => {
                let old = def(old)?;
                object(&old, old.owner, Privilege::DROP)?;
                check_droppable(tx, &old)
            }
            (None, None) => Ok(()),
        }
    }

    fn check_index_permission(
        &self,
        tx: &SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let privilege = match (self.old, self.new) {
            (None, _) => Privilege::CREATE,
            (_, None) => Privilege::DROP,
            _ => Privilege::ALTER,
        };
        let Some(tuple) = self.new.or(self.old) else { return Ok(()) };
        of_space(tx, described_space(tuple.bytes())?, |space| {
            rights.check_definition(space, privilege)
        })
    }

    fn check_truncation(
        &self,
        tx: &SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let Some(new) = self.new else { return Ok(()) };
        let id = described_space(new.bytes())?;
        of_space(tx, id, |space| {
            rights.check_write(space)?;
            if system::is_system(id) { Err(cannot_truncate(space.name)) } else { Ok(()) }
        })
    }

    fn check_sequence_permission(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let def = |tuple: &Tuple| SequenceDef::from_tuple(tuple.bytes());
        let (old, new) = (self.old.map(def).transpose()?, self.new.map(def).transpose()?);
        if let Some(new) = &new {
            check_identifier(&new.name)?;
        }
        // Of an alteration, the owner that it had.
        let Some(def) = old.as_ref().or(new.as_ref()) else { return Ok(()) };
        let privilege = match (&old, &new) {
            (None, _) => Privilege::CREATE,
            (_, None) => Privilege::DROP,
            _ => Privilege::ALTER,
        };
        rights.check_definition(&of_sequence(def), privilege)?;
        if new.is_some() {
            return Ok(());
        }
        let catalog = tx.catalog();
        lock_system(tx, system::SEQUENCE_DATA)?;
        if tx.sequence_tuple(def.id)?.is_some() {
            return Err(cannot_drop_sequence(&def.name, "the sequence has data"));
        }
        // Where a table goes as a whole, what its sequence filled in has left before.
        const SEQUENCE_INDEX: u32 = 1;
        let is_in_use = match tx.held(system::SPACE_SEQUENCE) {
            Some(_) => has(tx, system::SPACE_SEQUENCE, SEQUENCE_INDEX, &key_of_number(def.id))?,
            None => catalog.is_filler(def.id),
        };
        if is_in_use {
            return Err(cannot_drop_sequence(&def.name, "the sequence is in use"));
        }
        lock_system(tx, system::PRIV)?;
        if has_grants(tx, ObjectKind::Sequence, def.id)? {
            return Err(cannot_drop_sequence(&def.name, "the sequence has grants"));
        }
        Ok(())
    }

    /// Who writes `_sequence_data` has the right to the whole space. Numbers are of sequences that
    /// there are.
    fn check_counter(&self, tx: &SpaceTx<'_>) -> Result<(), BoxError> {
        let Some(tuple) = self.old.or(self.new) else { return Ok(()) };
        let id = number(tuple.bytes(), 0)?;
        tx.catalog().sequence(id).map_or_else(|| Err(no_such_sequence(id)), |_| Ok(()))
    }

    fn check_filler_permission(
        &self,
        tx: &SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let Some(tuple) = self.new.or(self.old) else { return Ok(()) };
        let filler = SpaceSequence::from_tuple(tuple.bytes())?;
        let catalog = tx.catalog();
        of_space(tx, filler.space, |_| Ok(()))?;
        let sequence =
            catalog.sequence(filler.sequence).ok_or_else(|| no_such_sequence(filler.sequence))?;
        if self.old.is_some() && self.new.is_some() {
            return Err(does_not_support("space \"_space_sequence\"", "update"));
        }
        let asked: &[Privilege] = match self.new {
            None => &[Privilege::DROP],
            Some(_) if filler.is_generated => &[Privilege::CREATE],
            // One that was there before is read and written.
            Some(_) => &[Privilege::READ, Privilege::WRITE],
        };
        let object = of_sequence(sequence);
        asked.iter().try_for_each(|privilege| rights.check_definition(&object, *privilege))?;
        of_space(tx, filler.space, |space| rights.check_definition(space, Privilege::ALTER))
    }

    fn check_user(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let def = |tuple: &Tuple| UserDef::from_tuple(tuple.bytes());
        let check = |def: &UserDef, (kind, owner), privilege| {
            let object = RightsObject { kind, id: Some(def.id), name: &def.name, owner };
            rights.check_definition(&object, privilege)
        };
        let (old, new) = (self.old.map(def).transpose()?, self.new.map(def).transpose()?);
        if let (Some(def), Some(tuple)) = (&new, self.new) {
            def.check_passwords(tuple.bytes(), |method, value| {
                rights.check_password(def.id, method, value)
            })?;
        }
        match (old, new) {
            (None, Some(new)) => check(&new, (new.kind(), new.owner), Privilege::CREATE),
            // A user may change itself.
            (Some(old), Some(new)) => check(&new, (old.kind(), new.id), Privilege::ALTER),
            (Some(old), None) => {
                check(&old, (old.kind(), old.owner), Privilege::DROP)?;
                check_user_droppable(tx, &old)
            }
            (None, None) => Ok(()),
        }
    }

    fn check_function(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let check = |def: &FunctionDef, privilege| {
            let (kind, id) = (ObjectKind::Function, Some(def.id));
            let object = RightsObject { kind, id, name: &def.name, owner: def.owner };
            rights.check_definition(&object, privilege)
        };
        match (self.old, self.new) {
            (None, Some(new)) => check(&FunctionDef::from_tuple(new.bytes())?, Privilege::CREATE),
            (Some(old), Some(new)) => {
                FunctionDef::from_tuple(new.bytes())?;
                match FunctionDef::is_same(old.bytes(), new.bytes()) {
                    true => Ok(()),
                    false => Err(does_not_support("function", "alter")),
                }
            }
            (Some(old), None) => {
                let old = FunctionDef::of_checked(old.bytes())?;
                check(&old, Privilege::DROP)?;
                let mut indexes = tx.space(system::INDEX).require_index(0)?.tuples();
                if indexes.any(|index| function_of_index(index.bytes()) == Ok(Some(old.id))) {
                    return Err(cannot_drop_function(old.owner, "function has references"));
                }
                drop(indexes);
                lock_system(tx, system::PRIV)?;
                match has_grants(tx, ObjectKind::Function, old.id)? {
                    true => Err(cannot_drop_function(old.owner, "function has grants")),
                    false => Ok(()),
                }
            }
            (None, None) => Ok(()),
        }
    }
}

fn of_sequence(def: &SequenceDef) -> RightsObject<'_> {
    let (kind, id) = (ObjectKind::Sequence, Some(def.id));
    RightsObject { kind, id, name: &def.name, owner: def.owner }
}

/// What is granted of a space that is not locked. Its name and owner change only under the
/// catalog's lock, which a definition holds.
fn of_space<T>(
    tx: &SpaceTx<'_>,
    id: SpaceId,
    look: impl FnOnce(&RightsObject<'_>) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let cell = tx.catalog().get(id).ok_or_else(|| no_such_space(id))?;
    if id < system::USER_ID_MIN {
        // It may have a lower number than those that are held. Its definition is fixed.
        let named = system::ALL.iter().find(|(of, _)| *of == id);
        let name = named.map_or("", |(_, name)| name);
        return look(&RightsObject::space(id, name, ADMIN));
    }
    let held = cell.lock();
    let def = held.space.def();
    look(&RightsObject::space(id, &def.name, def.owner))
}

/// Locks one more system space, which has a higher number than those that are held.
fn lock_system<'a>(tx: &mut SpaceTx<'a>, id: SpaceId) -> Result<(), BoxError> {
    if tx.held(id).is_some() {
        return Ok(());
    }
    let cell = tx.catalog().get(id).ok_or_else(|| no_such_space(id))?;
    tx.lock_also(cell);
    Ok(())
}

/// Whether an index of a space that is held has tuples with this key.
pub(super) fn has(
    tx: &mut SpaceTx<'_>,
    space: SpaceId,
    index: u32,
    key: &[u8],
) -> Result<bool, BoxError> {
    let space = tx.space(space);
    Ok(space.select(index, IteratorType::Eq, key, 0, 1, None)?.next().is_some())
}

pub(super) fn key_of_number(number: u32) -> Vec<u8> {
    let mut key = Vec::new();
    write::array(&mut key, 1);
    write::uint(&mut key, number.into());
    key
}

/// Whether anything of an object was granted; `_priv` is held.
fn has_grants(tx: &mut SpaceTx<'_>, kind: ObjectKind, id: u32) -> Result<bool, BoxError> {
    const OBJECT_INDEX: u32 = 2;
    let mut key = Vec::new();
    write::array(&mut key, 2);
    write::str(&mut key, kind.name().as_bytes());
    write::uint(&mut key, id.into());
    has(tx, system::PRIV, OBJECT_INDEX, &key)
}

fn check_droppable(tx: &mut SpaceTx<'_>, space: &SpaceDef) -> Result<(), BoxError> {
    // As of everything of a system space, which its definition is refused for later.
    if space.id < system::USER_ID_MIN {
        return Ok(());
    }
    let key = key_of_number(space.id);
    lock_system(tx, system::INDEX)?;
    if has(tx, system::INDEX, 0, &key)? {
        return Err(cannot_drop(&space.name, "the space has indexes"));
    }
    lock_system(tx, system::PRIV)?;
    if has_grants(tx, ObjectKind::Space, space.id)? {
        return Err(cannot_drop(&space.name, "the space has grants"));
    }
    lock_system(tx, system::TRUNCATE)?;
    if has(tx, system::TRUNCATE, 0, &key)? {
        return Err(cannot_drop(&space.name, "the space has truncate record"));
    }
    Ok(())
}

/// Checks that a user owns nothing, has nothing and has given nothing away.
fn check_user_droppable(tx: &mut SpaceTx<'_>, user: &UserDef) -> Result<(), BoxError> {
    const OWNER_INDEX: u32 = 1;
    if user.id <= PUBLIC || user.id == SUPER {
        return Err(cannot_drop_user(&user.name, "the user or the role is a system"));
    }
    let key = key_of_number(user.id);
    let mut has_data = false;
    for (space, index) in [
        (system::SPACE, OWNER_INDEX),
        (system::FUNC, OWNER_INDEX),
        (system::SEQUENCE, OWNER_INDEX),
        (system::PRIV, OWNER_INDEX),
        (system::PRIV, 0),
    ] {
        has_data |= has(tx, space, index, &key)?;
    }
    // Somebody has the role, or rights to the user: another one of its number would come into them.
    has_data |= has_grants(tx, user.kind(), user.id)?;
    match has_data {
        true => Err(cannot_drop_user(&user.name, "the user has objects")),
        false => Ok(()),
    }
}
