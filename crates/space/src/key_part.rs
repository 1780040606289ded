//! A part of a key: which values of a tuple it is, and how they compare.

use crate::collation::Collation;
use crate::compare;
use crate::field_type::FieldType;
use crate::fields;
use crate::multikey::Elements;
use crate::path::{self, Path, Step};
use rapidhash::v3::RapidSecrets;
use std::cmp::Ordering;

/// The value of an absent field.
pub(crate) const NIL: [u8; 1] = [0xc0];

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The field's number, from 0.
    pub field: u32,
    /// Where in the field its values are.
    pub path: Path,
    /// The type of its values.
    pub kind: FieldType,
    /// Whether it may be nil or absent.
    pub is_nullable: bool,
    /// Whether the index leaves out tuples in which it is nil.
    pub exclude_null: bool,
    /// How strings compare.
    pub collation: Collation,
}

impl Part {
    /// Whether both are of the same values.
    pub fn is_same_place(&self, other: &Part) -> bool {
        self.field == other.field && self.path == other.path
    }

    /// How messages name the values.
    pub fn label(&self) -> String {
        let field = u64::from(self.field) + 1;
        if self.path.is_empty() {
            return field.to_string();
        }
        let steps: String = self.path.steps().iter().map(ToString::to_string).collect();
        format!("[{field}]{steps}")
    }

    /// The array whose elements the values are in, if the path has a `[*]`: the field's number and
    /// the steps to it.
    pub(crate) fn array(&self) -> Option<(u32, &[Step])> {
        self.path.in_front_of_each().map(|steps| (self.field, steps))
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.collation.is_strict() && self.path.is_empty()
    }

    /// As `part_of`, of a part with a path; `hint` says which element of an array.
    pub(crate) fn value_of<'a>(&self, tuple: &'a [u8], hint: u64) -> &'a [u8] {
        let value = match self.path.behind_each() {
            Some(steps) => Elements::at(tuple, hint).and_then(|value| path::follow(value, steps)),
            None => fields::from_field(tuple, self.field)
                .and_then(|field| path::follow(field, self.path.steps())),
        };
        value.unwrap_or(&NIL)
    }

    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.collation {
            Collation::Unicode(unicode) => compare::collated(unicode, a, b),
            Collation::None | Collation::Binary => compare::values(a, b),
        }
    }

    pub(crate) fn hint(&self, value: &[u8]) -> u64 {
        match self.collation {
            Collation::Unicode(unicode) => compare::collated_hint(unicode, value),
            Collation::None | Collation::Binary => {
                compare::hint(self.kind, self.is_nullable, value)
            }
        }
    }

    pub(crate) fn hash(&self, secrets: &RapidSecrets, value: &[u8]) -> u64 {
        match self.collation {
            Collation::Unicode(unicode) => compare::collated_hash(secrets, unicode, value),
            Collation::None | Collation::Binary => compare::hash(secrets, value),
        }
    }
}
