//! Foreign keys: fields of a space's tuples name a tuple of another space, or of the same one.
//!
//! A key is checked after a statement, and the statement is taken back if the check fails. The
//! check judges what was there before the statement, as Tarantool does: a new tuple does not
//! satisfy its own foreign key.
//!
//! Source: Tarantool's documentation, "Foreign keys", and `tuple_constraint_fkey.c` for what is
//! checked when.

use crate::compare;
use crate::definition::{IndexKind, SpaceDef, pairs};
use crate::error::{BoxError, ErrorCode};
use crate::field_type::peek;
use crate::fields;
use crate::index::Index;
use crate::key::Key;
use crate::select::{IteratorType, Selected};
use crate::space::Space;
use crate::statement::Written;
use crate::tuple::Tuple;
use ladon_msgpack::{self as msgpack, Value, write};

/// A field, by its name or its number from 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldRef {
    Number(u32),
    Name(Box<[u8]>),
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
}

impl ForeignKey {
    /// Reads the option `foreign_key`: `{NAME: {space: .., field: ..}, ..}`; of a field, or of a
    /// space, where `field` is a map.
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
        let mut key = ForeignKey { name, space: None, pairs: Vec::new(), field: of };
        for (option, value) in pairs(definition).map_err(not_strings)? {
            match (&option[..], peek(value)) {
                ("space", Some(Value::Uint(0))) => key.space = None,
                ("space", Some(Value::Uint(id))) => {
                    key.space = Some(u32::try_from(id).unwrap_or(u32::MAX));
                }
                ("space", _) => return Err("foreign key: space must be a number".to_owned()),
                ("field", _) => key.pairs = read_fields(value, of)?,
                _ => return Err(FORM.to_owned()),
            }
        }
        if key.pairs.is_empty() { Err(FORM.to_owned()) } else { Ok(key) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
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

    fn failed(&self, child: &SpaceDef, why: &str) -> BoxError {
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

    fn broken(&self, why: &str) -> BoxError {
        let message = format!("Foreign key '{}' integrity check failed: {why}", self.name);
        BoxError::new(ErrorCode::FOREIGN_KEY_INTEGRITY, message)
    }

    /// Checks that there is the tuple that a written one names. Returns what it read of the parent.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_child(
        &self,
        child: &SpaceDef,
        parent: &Space,
        written: &Written,
    ) -> Result<Option<Selected>, BoxError> {
        let Some(new) = &written.new else { return Ok(None) };
        let Some(local) = self.local_fields(child) else {
            return Err(self.failed(child, "wrong local field name"));
        };
        let values = values_of(new.bytes(), &local);
        if values.iter().all(|value| is_nil(value)) {
            return Ok(None);
        }
        let foreign = self.foreign_fields(parent.def());
        let Some((index, order)) = foreign.and_then(|fields| index_over(parent, &fields, true))
        else {
            return Err(self.failed(child, "foreign index was not found"));
        };
        let bytes = key_of(&values, &order);
        let key = Key::parse(&bytes)?;
        if index.key.check_exact(&key).is_err() {
            return Err(self.failed(child, "wrong key type"));
        }
        // Of its own space, the tuple was not there before, unless in another form.
        let was_there = |found: &Tuple| {
            !found.is_same(new) || written.old.as_ref().is_some_and(|old| index.has_key(old, &key))
        };
        match index.find_key(&key) {
            Some((_, found)) if was_there(found) => Ok(Some(exactly(index, bytes))),
            _ => Err(self.failed(child, "foreign tuple was not found")),
        }
    }

    /// Checks that no tuple names one that was replaced or deleted. Returns what it read of the
    /// child.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_parent(
        &self,
        child: &Space,
        parent: &Space,
        written: &Written,
    ) -> Result<Option<Selected>, BoxError> {
        let Some(old) = &written.old else { return Ok(None) };
        let Some(foreign) = self.foreign_fields(parent.def()) else {
            return Err(self.broken("wrong foreign field name"));
        };
        if let Some(new) = &written.new
            && let Some((index, _)) = index_over(parent, &foreign, true)
        {
            let is_same = index.key.extract(old.bytes(), 0, false);
            if index.has_key(new, &Key::parse(&is_same)?) {
                return Ok(None);
            }
        }
        let local = self.local_fields(child.def());
        let found = local.as_ref().and_then(|fields| index_over(child, fields, false));
        let (Some(local), Some((index, order))) = (&local, found) else {
            return Err(self.broken("index was not found"));
        };
        let values = values_of(old.bytes(), &foreign);
        if values.iter().any(|value| is_nil(value)) {
            return Ok(None);
        }
        let bytes = key_of(&values, &order);
        let key = Key::parse(&bytes)?;
        if index.key.check_exact(&key).is_err() {
            return Err(self.broken("wrong key type"));
        }
        let (everything, name) = ((0, u64::MAX), &child.def().name);
        let mut naming = index.select(name, IteratorType::Eq, &bytes, everything, None)?;
        let is_new = |found: &Tuple| written.new.as_ref().is_some_and(|new| found.is_same(new));
        let names_itself = self.parent(child.def().id) == child.def().id
            && values_of(old.bytes(), local)
                .iter()
                .zip(&values)
                .all(|(local, foreign)| compare::values(local, foreign).is_eq());
        if names_itself || naming.any(|found| !is_new(found)) {
            return Err(self.broken("tuple is referenced"));
        }
        Ok(Some(exactly(index, bytes)))
    }

    /// Checks that a tuple of a space, with this definition, which was there before the key, names a
    /// tuple.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check_there(
        &self,
        child: &SpaceDef,
        parent: &Space,
        tuple: &Tuple,
    ) -> Result<(), BoxError> {
        let there = Written { old: Some(tuple.clone()), new: Some(tuple.clone()) };
        self.check_child(child, parent, &there).map(drop)
    }

    /// Checks that no tuple of a space, which is to get the definition `def` with this key, names one
    /// that has left its parent. Returns whether that could be found out: only by an index over the
    /// key's fields that compares as the parent's does.
    ///
    /// # Errors
    /// Tarantool's of a tuple that names it.
    pub(crate) fn check_left(
        &self,
        def: &SpaceDef,
        child: &Space,
        parent: &Space,
        written: &Written,
    ) -> Result<bool, BoxError> {
        let Some(old) = &written.old else { return Ok(true) };
        let foreign = self.foreign_fields(parent.def());
        let local = self.local_fields(def);
        // Without one of them, every tuple that names anything was refused.
        let (Some(foreign), Some(local)) = (foreign, local) else { return Ok(true) };
        let Some((named, order)) = index_over(parent, &foreign, true) else { return Ok(true) };
        let values = values_of(old.bytes(), &foreign);
        if values.iter().all(|value| is_nil(value)) {
            return Ok(true);
        }
        let bytes = key_of(&values, &order);
        let key = Key::parse(&bytes)?;
        if named.key.check_exact(&key).is_err() || named.find_key(&key).is_some() {
            return Ok(true);
        }
        let Some((naming, order_there)) = index_over(child, &local, false) else {
            return Ok(false);
        };
        let part_of = |order: &[usize], at| order.iter().position(|of| *of == at);
        let compares_alike = (0..values.len()).all(|at| {
            let pair = part_of(&order, at).zip(part_of(&order_there, at));
            pair.is_some_and(|(of_named, of_naming)| {
                let part = &naming.key.own()[of_naming];
                part.collation == named.key.own()[of_named].collation && !part.exclude_null
            })
        });
        let bytes = key_of(&values, &order_there);
        if !compares_alike || naming.key.check_exact(&Key::parse(&bytes)?).is_err() {
            return Ok(false);
        }
        let first = (0, 1);
        let mut found = naming.select(&def.name, IteratorType::Eq, &bytes, first, None)?;
        found.next().map_or(Ok(true), |tuple| self.check_there(def, parent, tuple).map(|()| true))
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

/// All tuples with a key, which has all parts of the index's.
fn exactly(index: &Index, key: Vec<u8>) -> Selected {
    let (index, iterator, key) = (index.def().id, IteratorType::Eq, key.into());
    Selected { index, iterator, key, offset: 0, limit: u64::MAX, after: None }
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

const NIL: [u8; 1] = [0xc0];

fn is_nil(value: &[u8]) -> bool {
    value == NIL
}

/// The values of fields; an absent one is nil.
fn values_of<'t>(tuple: &'t [u8], fields: &[u32]) -> Vec<&'t [u8]> {
    fields.iter().map(|field| fields::field(tuple, *field).unwrap_or(&NIL)).collect()
}

/// A key of values in the order of an index's parts.
fn key_of(values: &[&[u8]], order: &[usize]) -> Vec<u8> {
    let mut key = Vec::new();
    write::array(&mut key, order.len() as u32);
    order.iter().for_each(|at| key.extend_from_slice(values[*at]));
    key
}

/// The first index over just these fields, and which field each of its parts is.
fn index_over<'s>(
    space: &'s Space,
    fields: &[u32],
    is_unique: bool,
) -> Option<(&'s Index, Vec<usize>)> {
    space.indexes().find_map(|index| {
        let def = index.def();
        let is_fit = matches!(def.kind, IndexKind::Tree | IndexKind::Hash)
            && (def.is_unique || !is_unique)
            && def.parts.len() == fields.len()
            && def.parts.iter().all(|part| part.path.is_empty());
        let place = |part: &crate::Part| fields.iter().position(|field| *field == part.field);
        let order: Option<Vec<usize>> = def.parts.iter().map(place).collect();
        let covers = |order: &Vec<usize>| (0..fields.len()).all(|at| order.contains(&at));
        Some((index, order.filter(|order| is_fit && covers(order))?))
    })
}
