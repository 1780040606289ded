//! Tuples with other fields.

use super::TupleKey;
use crate::shared::tuple::refused;
use ladon_kernel::command::error::{CommandError, shown};
use ladon_kernel::ctx::Ctx;
use ladon_space::as_text::{self, TextError};
use ladon_space::{Field, Space, Statement, Tuple, fields};
use std::borrow::Cow;
use std::collections::HashMap;

const NIL: &[u8] = &[0xc0];
/// From this many changes on, fields are looked up in a map.
const FEW_CHANGES_MAX: usize = 8;

/// A field with a value, MessagePack.
pub(crate) struct FieldChange {
    pub(crate) number: u32,
    pub(crate) value: Vec<u8>,
}

/// The fields of a space that commands may change, by name.
pub(crate) struct Fields<'s> {
    space: &'s Space,
    by_name: Option<HashMap<&'s [u8], u32>>,
}

impl<'s> Fields<'s> {
    /// To look up so many of them.
    pub(crate) fn of(space: &'s Space, count: usize) -> Fields<'s> {
        let format = &space.def().format.fields;
        let by_name = (count > FEW_CHANGES_MAX).then(|| {
            let names = format.iter().map(|field| field.name.as_bytes());
            names.zip(0..).collect()
        });
        Fields { space, by_name }
    }

    /// A field and its number.
    ///
    /// # Errors
    /// If the format has no field of this name.
    pub(crate) fn find(&self, name: &[u8]) -> Result<(u32, &'s Field), CommandError> {
        let format = &self.space.def().format;
        let number = match &self.by_name {
            Some(by_name) => by_name.get(name).copied(),
            None => format.number_of(name),
        };
        let found = number.and_then(|at| Some((at, format.fields.get(at as usize)?)));
        found.ok_or_else(|| {
            let (space, name) = (&self.space.def().name, shown(name));
            CommandError::err(format_args!("space '{space}' has no field '{name}' in its format"))
        })
    }

    /// A field that is to get a value, which a text is.
    ///
    /// # Errors
    /// If there is no such field, or the text is no value of its type.
    pub(crate) fn change(&self, name: &[u8], text: &[u8]) -> Result<FieldChange, CommandError> {
        let (number, field) = self.find(name)?;
        let mut value = Vec::with_capacity(text.len() + 5);
        as_text::encode_value(field.kind, text, &mut value)
            .map_err(|why| self.wrong_text(name, &why))?;
        Ok(FieldChange { number, value })
    }

    fn wrong_text(&self, name: &[u8], why: &TextError) -> CommandError {
        let (space, name) = (&self.space.def().name, shown(name));
        CommandError::err(format_args!("field '{name}' of space '{space}': {why}"))
    }

    /// Whether a field belongs to the primary key.
    pub(crate) fn is_of_key(&self, number: u32) -> bool {
        let primary = self.space.index(0);
        primary.is_some_and(|index| index.def().parts.iter().any(|part| part.field == number))
    }

    /// The error for a change of a field of the primary key.
    pub(crate) fn is_fixed(&self, name: &[u8]) -> CommandError {
        let (space, name) = (&self.space.def().name, shown(name));
        CommandError::err(format_args!(
            "field '{name}' is a part of the primary key of space '{space}', and the key says what \
             it is"
        ))
    }
}

/// The tuple at a key with changed fields, and how many of these are new; made from the key if
/// there is none.
///
/// # Errors
/// If the primary key would change, or a field that must have a value would have none.
pub(crate) fn rebuilt(
    fields: &Fields<'_>,
    at: &TupleKey,
    old: Option<&Tuple>,
    changes: Vec<FieldChange>,
) -> Result<(Vec<u8>, usize), CommandError> {
    let mut values: Vec<Cow<'_, [u8]>> = match old {
        Some(tuple) => fields::Fields::of(tuple.bytes()).map(Cow::Borrowed).collect(),
        None => new_tuple(fields.space, at),
    };
    let mut added = 0;
    let mut is_named = vec![false; values.len()];
    let format = &fields.space.def().format.fields;
    for FieldChange { number, value } in changes {
        let place = number as usize;
        if values.len() <= place {
            values.resize(place + 1, Cow::Borrowed(NIL));
            is_named.resize(place + 1, false);
        }
        let is_first = !std::mem::replace(&mut is_named[place], true);
        let was_nil = *values[place] == *NIL;
        if fields.is_of_key(number) {
            if *values[place] != *value {
                let name = format.get(place).map_or("", |field| &field.name);
                return Err(fields.is_fixed(name.as_bytes()));
            }
            added += usize::from(is_first && old.is_none());
            continue;
        }
        added += usize::from(is_first && was_nil);
        values[place] = Cow::Owned(value);
    }
    if old.is_none() {
        check_complete(fields.space, &values)?;
    }
    let mut tuple = Vec::new();
    ladon_msgpack::write::array(&mut tuple, values.len() as u32);
    values.iter().for_each(|value| tuple.extend_from_slice(value));
    Ok((tuple, added))
}

/// The fields of a new tuple: those of its key, and as many more as there must be.
fn new_tuple<'k>(space: &Space, at: &'k TupleKey) -> Vec<Cow<'k, [u8]>> {
    let parts = space.index(0).map_or(&[][..], |index| &index.def().parts);
    let format = &space.def().format.fields;
    let required = format.iter().rposition(|field| !field.is_nullable).map_or(0, |last| last + 1);
    let of_key = parts.iter().map(|part| part.field as usize + 1).max().unwrap_or(0);
    let count = required.max(of_key).max(space.def().field_count as usize);
    let mut values = vec![Cow::Borrowed(NIL); count];
    for (part, value) in parts.iter().zip(fields::Fields::of(&at.key)) {
        values[part.field as usize] = Cow::Borrowed(value);
    }
    values
}

/// Checks that a new tuple has what the format demands.
fn check_complete(space: &Space, values: &[Cow<'_, [u8]>]) -> Result<(), CommandError> {
    let format = space.def().format.fields.iter();
    let missing = format.zip(values).find(|(field, value)| !field.is_nullable && ***value == *NIL);
    match missing {
        Some((field, _)) => Err(CommandError::err(format_args!(
            "a new tuple of space '{}' needs field '{}' ({})",
            space.def().name,
            field.name,
            field.kind.name()
        ))),
        None => Ok(()),
    }
}

/// Puts a tuple at a key, where `old` is now.
///
/// # Errors
/// Those of the space's rules and indexes; nothing has changed then.
pub(crate) fn put(
    ctx: &mut Ctx<'_>,
    at: &TupleKey,
    old: Option<&Tuple>,
    tuple: &[u8],
) -> Result<(), CommandError> {
    let statement = match old {
        Some(_) => Statement::Replace(tuple),
        None => Statement::Insert(tuple),
    };
    ctx.tx().write_tuple(at.space, statement).map_err(|error| refused(&error))?;
    Ok(())
}
