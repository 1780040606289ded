//! What definitions are made of: tuples of system spaces, and who knows what they need.

use crate::catalog::{Catalog, Table};
use crate::error::{self, Error};
use ladon_msgpack::{self as msgpack, Value as Packed, write};
use ladon_space::FieldType;
use ladon_space::fields::Fields;
use std::sync::Arc;

/// The field of a space's definition that has its options.
const OPTIONS: usize = 5;

/// Who knows what definitions need beside tables.
pub trait Schema: Catalog {
    /// The number that a new space gets.
    fn new_space_id(&mut self) -> u32;
    /// The number that a new sequence gets.
    fn new_sequence_id(&mut self) -> u32;
    /// The texts of all views that keep a table from being dropped; none, if the user may not drop
    /// it: that is what the error is to say.
    ///
    /// # Errors
    /// If definitions cannot be read.
    fn views_before_drop(&mut self, table: u32) -> Result<Vec<String>, Error>;
    /// Whether a space has no tuple.
    fn is_empty(&mut self, space: u32) -> bool;
    /// The user's number.
    fn owner(&mut self) -> u32;
    /// The sequence that fills in a field of a space, if it was made for that.
    fn sequence_of(&mut self, space: u32) -> Option<u32>;
}

/// A change of a tuple of a system space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A new tuple; a way back is to delete this key.
    Insert {
        /// The system space.
        space: u32,
        /// The tuple.
        tuple: Vec<u8>,
        /// Its primary key.
        key: Vec<u8>,
    },
    /// A tuple in the place of another.
    Replace {
        /// The system space.
        space: u32,
        /// The tuple.
        tuple: Vec<u8>,
    },
    /// The tuple with this primary key goes, if it is there.
    Delete {
        /// The system space.
        space: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// A space is emptied.
    Truncate {
        /// `_truncate`.
        system: u32,
        /// The space.
        space: u32,
    },
}

/// What a statement defines, and the number of rows that it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// In this order; if one fails, those before it are taken back.
    pub steps: Vec<Definition>,
    /// What its reply shows.
    pub count: u64,
}

pub(crate) fn numbers(numbers: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, numbers.len() as u32);
    numbers.iter().for_each(|number| write::uint(&mut out, (*number).into()));
    out
}

pub(crate) fn existing(schema: &mut dyn Schema, name: &str) -> Result<Arc<Table>, Error> {
    schema.table(name)?.ok_or_else(|| error::no_space(name))
}

pub(crate) fn with_field(tuple: &[u8], number: usize, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let fields: Vec<&[u8]> = Fields::of(tuple).collect();
    write::array(&mut out, fields.len() as u32);
    for (at, field) in fields.into_iter().enumerate() {
        out.extend_from_slice(if at == number { value } else { field });
    }
    out
}

/// The value of an option in a space's definition.
pub(crate) fn option_of<'d>(definition: &'d [u8], option: &str) -> Option<&'d [u8]> {
    let options = Fields::of(definition).nth(OPTIONS)?;
    let found = map_pairs(options).into_iter().find(|(name, _)| is_option(name, option));
    found.map(|(_, value)| value)
}

fn is_option(name: &[u8], option: &str) -> bool {
    matches!(msgpack::read(&mut { name }), Ok(Packed::Str(it)) if it == option.as_bytes())
}

/// A definition of a space with another value of an option; without it, if there is none.
pub(crate) fn with_option(definition: &[u8], option: &str, value: Option<&[u8]>) -> Vec<u8> {
    let options = Fields::of(definition).nth(OPTIONS).unwrap_or(&[0x80]);
    let mut kept = map_pairs(options);
    kept.retain(|(name, _)| !is_option(name, option));
    let mut out = Vec::new();
    write::map(&mut out, kept.len() as u32 + u32::from(value.is_some()));
    for (name, value) in kept {
        out.extend_from_slice(name);
        out.extend_from_slice(value);
    }
    if let Some(value) = value {
        write::str(&mut out, option.as_bytes());
        out.extend_from_slice(value);
    }
    with_field(definition, OPTIONS, &out)
}

pub(crate) fn map_pairs(mut map: &[u8]) -> Vec<(&[u8], &[u8])> {
    let Ok(Packed::Map(count)) = msgpack::read(&mut map) else { return Vec::new() };
    let mut pairs = Vec::new();
    for _ in 0..count {
        match (msgpack::take(&mut map), msgpack::take(&mut map)) {
            (Ok(name), Ok(value)) => pairs.push((name, value)),
            _ => break,
        }
    }
    pairs
}

/// A part of an index, or a field of a format.
pub(crate) struct Named<'n> {
    pub(crate) name: &'n str,
    pub(crate) kind: FieldType,
    pub(crate) is_nullable: bool,
    pub(crate) collation: u32,
    pub(crate) default: Option<&'n str>,
}

pub(crate) fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    write::str(out, name.as_bytes());
    write::str(out, value.as_bytes());
}

pub(crate) fn one(step: Definition, count: u64) -> Definitions {
    Definitions { steps: vec![step], count }
}
