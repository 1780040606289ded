//! What a statement keeps while it runs, and the bytes by which values are equal.

use super::{Row, Run};
use crate::convert::to_numeric;
use crate::tree::Comparison;
use crate::value::Value;
use ladon_space::Collation;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The values of a list by their bytes, and whether null is one of them.
pub(crate) type ValueSet = Rc<(HashSet<Vec<u8>>, bool)>;

/// Rows by the bytes of what they are joined by.
pub(crate) type RowHash = Rc<HashMap<Vec<u8>, Vec<super::Slot>>>;

/// The values of one place.
#[derive(Clone)]
pub(crate) enum Kept {
    Nothing,
    /// A query's rows, or those of a recursive query's last round.
    Rows(Rc<Vec<Row>>),
    /// The values of a list, and whether null is one of them.
    Set(ValueSet),
    /// Rows by what they are joined by.
    Hash(RowHash),
}

impl Run<'_> {
    pub(super) fn kept(&self, place: usize) -> Kept {
        self.kept.borrow().get(place).cloned().unwrap_or(Kept::Nothing)
    }

    pub(super) fn keep(&self, place: usize, kept: Kept) {
        if let Some(at) = self.kept.borrow_mut().get_mut(place) {
            *at = kept;
        }
    }
}

/// Appends bytes that are equal where values are: numbers by their value, texts by their collation.
pub(crate) fn canonical(value: &Value, collation: u32, out: &mut Vec<u8>) {
    match value {
        Value::Double(number) if number.fract() == 0.0 && number.abs() < i64::MAX as f64 => {
            Value::Int(*number as i128).pack(out);
        }
        Value::Str(text) if collation != 0 => match Collation::of_id(collation.into()) {
            Some(Collation::Unicode(unicode)) => {
                let key = unicode.sort_key(text);
                ladon_msgpack::write::str(out, &key);
            }
            _ => value.pack(out),
        },
        other => other.pack(out),
    }
}

/// The bytes of a row.
pub(crate) fn canonical_row(row: &[Value], collations: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() * 9);
    for (at, value) in row.iter().enumerate() {
        canonical(value, collations.get(at).copied().unwrap_or(0), &mut out);
    }
    out
}

/// As a comparison with numbers takes a value: a text that is a number is one.
pub(crate) fn as_compared(value: &Value, how: Comparison) -> Value {
    match value {
        Value::Str(_) if how.is_numeric => to_numeric(value).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}
