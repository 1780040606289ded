//! Values of expressions where they are: texts of tuples, parameters and literals without a copy.

use super::keep::canonical;
use crate::error::Error;
use crate::operators::{compare, order};
use crate::tree::Comparison;
use crate::value::{Value, pack_int};
use ladon_msgpack::{self as msgpack, Value as Packed, write};
use std::cmp::Ordering;

/// A value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Seen<'v> {
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    Str(&'v [u8]),
    /// What was computed, or is bytes.
    Own(Value),
}

impl<'v> Seen<'v> {
    /// A value that is kept elsewhere.
    #[inline]
    pub(crate) fn of(value: &'v Value) -> Seen<'v> {
        match value {
            Value::Null => Seen::Null,
            Value::Bool(value) => Seen::Bool(*value),
            Value::Int(value) => Seen::Int(*value),
            Value::Double(value) => Seen::Double(*value),
            Value::Str(text) => Seen::Str(text),
            other => Seen::Own(other.clone()),
        }
    }

    /// The value that MessagePack begins with; what cannot be read is null.
    #[inline]
    pub(crate) fn unpack(bytes: &'v [u8]) -> Seen<'v> {
        // Most fields are integers that are not negative.
        match *bytes {
            [small @ ..0x80, ..] => return Seen::Int(i128::from(small)),
            [0xcc, a, ..] => return Seen::Int(i128::from(a)),
            [0xcd, a, b, ..] => return Seen::Int(i128::from(u16::from_be_bytes([a, b]))),
            [0xce, a, b, c, d, ..] => {
                return Seen::Int(i128::from(u32::from_be_bytes([a, b, c, d])));
            }
            _ => {}
        }
        match msgpack::read(&mut { bytes }) {
            Ok(Packed::Uint(value)) => Seen::Int(value.into()),
            Ok(Packed::Int(value)) => Seen::Int(value.into()),
            Ok(Packed::Str(text)) => Seen::Str(text),
            Ok(Packed::Double(value)) => Seen::Double(value),
            Ok(Packed::Bool(value)) => Seen::Bool(value),
            Ok(Packed::Nil) | Err(_) => Seen::Null,
            Ok(_) => {
                let whole = msgpack::take(&mut { bytes });
                whole.map_or(Seen::Null, |bytes| Seen::from(Value::unpack(bytes)))
            }
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Seen::Null)
    }

    /// A copy of its own.
    #[inline]
    pub(crate) fn into_value(self) -> Value {
        match self {
            Seen::Null => Value::Null,
            Seen::Bool(value) => Value::Bool(value),
            Seen::Int(value) => Value::Int(value),
            Seen::Double(value) => Value::Double(value),
            Seen::Str(text) => Value::Str(text.into()),
            Seen::Own(value) => value,
        }
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Seen::Str(text) => Some(text),
            Seen::Own(Value::Str(text)) => Some(text),
            _ => None,
        }
    }

    /// As [`compare`].
    #[inline]
    pub(crate) fn compare(
        &self,
        other: &Seen<'_>,
        how: Comparison,
    ) -> Result<Option<Ordering>, Error> {
        match (self, other) {
            (Seen::Null, _) | (_, Seen::Null) => Ok(None),
            (Seen::Int(a), Seen::Int(b)) => Ok(Some(a.cmp(b))),
            (a, b) => match (a.text(), b.text()) {
                (Some(a), Some(b)) if !how.is_numeric && how.collation == 0 => Ok(Some(a.cmp(b))),
                _ => compare(&a.clone().into_value(), &b.clone().into_value(), how),
            },
        }
    }

    /// As [`order`].
    #[inline]
    pub(crate) fn order(&self, other: &Value, collation: u32) -> Ordering {
        match (self, other) {
            (Seen::Int(a), Value::Int(b)) => a.cmp(b),
            (Seen::Str(a), Value::Str(b)) if collation == 0 => (*a).cmp(b),
            _ => order(&self.clone().into_value(), other, collation),
        }
    }

    /// Appends it as MessagePack.
    #[inline]
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Seen::Null => write::nil(out),
            Seen::Bool(value) => write::bool(out, *value),
            Seen::Int(value) => pack_int(*value, out),
            Seen::Double(value) => write::double(out, *value),
            Seen::Str(text) => write::str(out, text),
            Seen::Own(value) => value.pack(out),
        }
    }

    /// As [`canonical`].
    #[inline]
    pub(crate) fn canonical(&self, collation: u32, out: &mut Vec<u8>) {
        match self {
            Seen::Null | Seen::Bool(_) | Seen::Int(_) => self.pack(out),
            Seen::Str(_) if collation == 0 => self.pack(out),
            other => canonical(&other.clone().into_value(), collation, out),
        }
    }
}

impl From<Value> for Seen<'_> {
    #[inline]
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Seen::Null,
            Value::Bool(value) => Seen::Bool(value),
            Value::Int(value) => Seen::Int(value),
            Value::Double(value) => Seen::Double(value),
            other => Seen::Own(other),
        }
    }
}

/// Appends a field's MessagePack as a result shows it: numbers of 32 bits as those of 64.
#[inline]
pub(crate) fn show(field: &[u8], out: &mut Vec<u8>) {
    const FLOAT: u8 = 0xca;
    match field.first() {
        Some(&FLOAT) => Value::unpack(field).pack(out),
        Some(_) => out.extend_from_slice(field),
        None => write::nil(out),
    }
}
