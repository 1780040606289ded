//! Foreign keys: fields of a space's tuples name a tuple of another space, or of the same one.
//! `foreign_key_check.rs` checks tuples.
//!
//! Source: Tarantool's documentation, "Foreign keys".

use crate::definition::{SpaceDef, pairs};
use crate::error::{BoxError, ErrorCode};
use crate::field_type::peek;
use crate::fields::Fields;
use ladon_msgpack::{self as msgpack, Value};

/// A field, by its name or its number from 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldRef {
    Number(u32),
    Name(Box<[u8]>),
}

/// What happens to tuples that name one which leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAction {
    /// The statement fails.
    #[default]
    NoAction,
    /// As [`KeyAction::NoAction`]: keys are checked at once.
    Restrict,
    /// They leave as well, or name the new tuple.
    Cascade,
    /// They name nothing any more.
    SetNull,
    /// They name what the key's defaults name.
    SetDefault,
}

impl KeyAction {
    const ALL: [(&'static str, KeyAction); 5] = [
        ("no_action", KeyAction::NoAction),
        ("restrict", KeyAction::Restrict),
        ("cascade", KeyAction::Cascade),
        ("set_null", KeyAction::SetNull),
        ("set_default", KeyAction::SetDefault),
    ];

    fn read(value: &[u8]) -> Option<KeyAction> {
        let Some(Value::Str(name)) = peek(value) else { return None };
        KeyAction::ALL.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, it)| *it)
    }

    /// Whether tuples are changed.
    pub(crate) fn changes(self) -> bool {
        !matches!(self, KeyAction::NoAction | KeyAction::Restrict)
    }
}

/// A foreign key as a space or a field of its format defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    name: String,
    /// The space whose tuples are named; none for the same one.
    space: Option<u32>,
    /// The fields, and those that they name.
    pairs: Vec<(FieldRef, FieldRef)>,
    /// The number of the field that defines it, if no space does.
    field: Option<u32>,
    on_delete: KeyAction,
    on_update: KeyAction,
    /// What [`KeyAction::SetDefault`] sets, in the order of `pairs`; null where there is nothing.
    defaults: Vec<Box<[u8]>>,
}

impl ForeignKey {
    /// Reads the option `foreign_key`: `{NAME: {space: .., field: ..}, ..}`; of a field, or of a
    /// space, where `field` is a map. Beside what Tarantool has, there may be `on_delete` and
    /// `on_update`: `no_action`, `restrict`, `cascade`, `set_null` or `set_default`, which sets the
    /// values of `default`, a list of one for each field.
    ///
    /// # Errors
    /// What is wrong with it, in Tarantool's words.
    pub(crate) fn read_all(value: &[u8], of: Option<u32>) -> Result<Vec<ForeignKey>, String> {
        if !matches!(peek(value), Some(Value::Map(_))) {
            return Err("foreign key field is expected to be a MAP".to_owned());
        }
        let not_strings = |_| "foreign key name is expected to be a string".to_owned();
        let all = pairs(value).map_err(not_strings)?;
        all.into_iter().map(|(name, definition)| ForeignKey::read(name, definition, of)).collect()
    }

    fn read(name: String, definition: &[u8], of: Option<u32>) -> Result<ForeignKey, String> {
        const FORM: &str = "foreign key definition is expected to be {[space=..,] field=..}";
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err("foreign key name isn't a valid identifier".to_owned());
        }
        if !matches!(peek(definition), Some(Value::Map(_))) {
            return Err("foreign key definition is expected to be a map".to_owned());
        }
        let not_strings = |_| "foreign key definition key is expected to be a string".to_owned();
        let mut key = ForeignKey {
            name,
            space: None,
            pairs: Vec::new(),
            field: of,
            on_delete: KeyAction::NoAction,
            on_update: KeyAction::NoAction,
            defaults: Vec::new(),
        };
        let action = |value: &[u8]| {
            let why = || "foreign key: unknown action".to_owned();
            KeyAction::read(value).ok_or_else(why)
        };
        for (option, value) in pairs(definition).map_err(not_strings)? {
            match (&option[..], peek(value)) {
                ("space", Some(Value::Uint(0))) => key.space = None,
                ("space", Some(Value::Uint(id))) => {
                    key.space = Some(u32::try_from(id).unwrap_or(u32::MAX));
                }
                ("space", _) => return Err("foreign key: space must be a number".to_owned()),
                ("field", _) => key.pairs = read_fields(value, of)?,
                ("on_delete", _) => key.on_delete = action(value)?,
                ("on_update", _) => key.on_update = action(value)?,
                ("default", Some(Value::Array(_))) => {
                    key.defaults = Fields::of(value).map(Box::from).collect();
                }
                _ => return Err(FORM.to_owned()),
            }
        }
        if !key.defaults.is_empty() && key.defaults.len() != key.pairs.len() {
            return Err("foreign key: default must have a value for each field".to_owned());
        }
        if key.pairs.is_empty() { Err(FORM.to_owned()) } else { Ok(key) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it changes tuples when one that they name leaves.
    pub fn acts(&self) -> bool {
        self.on_delete.changes() || self.on_update.changes()
    }

    /// What it does when a tuple that is named leaves, or is replaced.
    pub(crate) fn action(&self, is_replaced: bool) -> KeyAction {
        if is_replaced { self.on_update } else { self.on_delete }
    }

    /// What happens to tuples that name one which is deleted.
    pub fn on_delete(&self) -> KeyAction {
        self.on_delete
    }

    /// What [`KeyAction::SetDefault`] sets in so many fields.
    pub(crate) fn defaults(&self, fields: usize) -> Vec<&[u8]> {
        let given = self.defaults.iter().map(|value| &**value);
        given.chain(std::iter::repeat(&[0xc0][..])).take(fields).collect()
    }

    /// The number of the space whose tuples it names, for a key of the space `own`.
    pub fn parent(&self, own: u32) -> u32 {
        self.space.unwrap_or(own)
    }

    /// The fields of a space with this key; `None` if one has no such name.
    pub(crate) fn local_fields(&self, child: &SpaceDef) -> Option<Vec<u32>> {
        self.fields(child, |(local, _)| local)
    }

    /// The fields that it names; `None` if one has no such name.
    pub(crate) fn foreign_fields(&self, parent: &SpaceDef) -> Option<Vec<u32>> {
        self.fields(parent, |(_, foreign)| foreign)
    }

    fn fields(
        &self,
        space: &SpaceDef,
        of: impl Fn(&(FieldRef, FieldRef)) -> &FieldRef,
    ) -> Option<Vec<u32>> {
        let number = |field: &FieldRef| match field {
            FieldRef::Number(number) => Some(*number),
            FieldRef::Name(name) => space.format.number_of(name),
        };
        self.pairs.iter().map(|pair| number(of(pair))).collect()
    }

    /// Whether a space's new definition has this key, of its old one, on the same fields: tuples
    /// that were checked before need not be checked again, unless the space that it names changes.
    pub fn is_kept(&self, old: &SpaceDef, new: &SpaceDef) -> bool {
        let is_same = |field: &FieldRef| match field {
            FieldRef::Number(_) => true,
            FieldRef::Name(name) => old.format.number_of(name) == new.format.number_of(name),
        };
        let is_of_itself = self.parent(old.id) == old.id;
        new.foreign_keys.contains(self)
            && self
                .pairs
                .iter()
                .all(|(local, foreign)| is_same(local) && (!is_of_itself || is_same(foreign)))
    }

    pub(crate) fn failed(&self, child: &SpaceDef, why: &str) -> BoxError {
        let name = &self.name;
        let Some(field) = self.field else {
            let message = format!("Foreign key constraint '{name}' failed: {why}");
            return BoxError::new(ErrorCode::COMPLEX_FOREIGN_KEY_FAILED, message);
        };
        let named = child.format.fields.get(field as usize);
        let label = named.map_or(String::new(), |named| format!(" ({})", named.name));
        let message = format!(
            "Foreign key constraint '{name}' failed for field '{}{label}': {why}",
            u64::from(field) + 1
        );
        BoxError::new(ErrorCode::FIELD_FOREIGN_KEY_FAILED, message)
    }

    pub(crate) fn broken(&self, why: &str) -> BoxError {
        let message = format!("Foreign key '{}' integrity check failed: {why}", self.name);
        BoxError::new(ErrorCode::FOREIGN_KEY_INTEGRITY, message)
    }

    /// Checks that the spaces can be bound to one another.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_spaces(&self, child: &SpaceDef, parent: &SpaceDef) -> Result<(), BoxError> {
        let why = if parent.is_temporary && !child.is_temporary {
            "foreign key from non-temporary space can't refer to temporary space"
        } else if parent.is_local && !child.is_local {
            "foreign key from non-local space can't refer to local space"
        } else {
            return Ok(());
        };
        Err(self.refused(&child.name, why))
    }

    /// The error of a key that cannot be created in a space.
    pub fn refused(&self, space: &str, why: &str) -> BoxError {
        let message =
            format!("Failed to create foreign key '{}' in space '{space}': {why}", self.name);
        BoxError::new(ErrorCode::CREATE_FOREIGN_KEY, message)
    }
}

fn read_fields(value: &[u8], of: Option<u32>) -> Result<Vec<(FieldRef, FieldRef)>, String> {
    if let Some(local) = of {
        return Ok(vec![(FieldRef::Number(local), read_field(value)?)]);
    }
    let not_map = || "field mapping is expected to be a map".to_owned();
    let mut rest = value;
    let count = msgpack::read_map(&mut rest).map_err(|_| not_map())?;
    if count == 0 {
        return Err(not_map());
    }
    let mut all = Vec::new();
    for _ in 0..count {
        let mut next = || msgpack::take(&mut rest).map_err(|_| not_map());
        let (local, foreign) = (next()?, next()?);
        all.push((read_field(local)?, read_field(foreign)?));
    }
    Ok(all)
}

fn read_field(value: &[u8]) -> Result<FieldRef, String> {
    match peek(value) {
        Some(Value::Uint(number)) => {
            Ok(FieldRef::Number(u32::try_from(number).unwrap_or(u32::MAX)))
        }
        Some(Value::Str(name)) => Ok(FieldRef::Name(name.into())),
        _ => Err("foreign key: field must be number or string".to_owned()),
    }
}
