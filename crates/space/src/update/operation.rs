//! Update operations out of MessagePack: `[[operator, field, argument...], ...]`.

use super::lexer::{Lexer, Token};
use crate::decimal::Decimal;
use crate::error::{BoxError, ErrorCode};
use crate::field_type::{extension, peek};
use crate::format::Format;
use ladon_msgpack::{self as msgpack, DEPTH_MAX, Value};
use smallvec::SmallVec;
use std::fmt::Display;

/// Operations of one request.
const OPERATIONS_MAX: u32 = 4000;

/// A number to add, subtract, or to do so with.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Integer(i128),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
}

/// What an operation does, with its argument.
#[derive(Clone, Copy)]
pub(crate) enum Action<'a> {
    Set(&'a [u8]),
    Insert(&'a [u8]),
    Delete(u32),
    Add(Number),
    Subtract(Number),
    Bits(u64),
    Splice { offset: i64, cut: i64, paste: &'a [u8] },
}

/// One operation.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) operator: u8,
    pub(crate) place: Place<'a>,
    pub(crate) action: Action<'a>,
}

/// Where an operation does what it does.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// From 0; negative numbers count from the end.
    pub(crate) field: i32,
    /// The field's name or the path, if it was not a number.
    name: Option<&'a [u8]>,
    /// From the field on.
    pub(crate) path: Lexer<'a>,
}

impl<'a> Operation<'a> {
    /// The operation with its field counted from the beginning, as messages have it once the field
    /// is found.
    pub(crate) fn at(&self, field: u64) -> Operation<'a> {
        let field = i32::try_from(field).unwrap_or(i32::MAX);
        Operation { place: Place { field, ..self.place }, ..*self }
    }

    /// Whether the path has more steps than values have levels.
    pub(crate) fn is_too_deep(&self) -> bool {
        !self.place.path.is_at_end() && self.place.path.has_more_than(DEPTH_MAX)
    }

    /// How messages name the field.
    pub(crate) fn label(&self) -> String {
        self.place.label()
    }

    pub(crate) fn error(&self, why: &str) -> BoxError {
        field_error(&self.label(), why)
    }

    pub(crate) fn double(&self) -> BoxError {
        self.error("double update of the same field")
    }

    pub(crate) fn duplicate(&self) -> BoxError {
        self.error("the key exists already")
    }

    pub(crate) fn delete_one(&self) -> BoxError {
        self.error("can delete only 1 field from a map in a row")
    }

    /// `place` is in characters, from 1.
    pub(crate) fn bad_path(&self, place: u32) -> BoxError {
        bad_path(&self.label(), place)
    }

    pub(crate) fn no_field(&self) -> BoxError {
        let field = self.place.field;
        match self.place.name {
            Some(_) => {
                let message = format!("Field '{}' was not found in the tuple", self.label());
                BoxError::new(ErrorCode::NO_SUCH_FIELD_NAME, message)
            }
            None => no_field_number(i64::from(field) + i64::from(field >= 0)),
        }
    }

    pub(crate) fn wrong_argument(&self, expected: &str) -> BoxError {
        wrong_argument(self.operator, &self.label(), expected)
    }
}

impl Place<'_> {
    fn label(&self) -> String {
        match self.name {
            Some(name) => quoted(name),
            None if self.field >= 0 => (i64::from(self.field) + 1).to_string(),
            None => self.field.to_string(),
        }
    }
}

/// The longest path in a message; what does not fit is left out.
const LABEL_BYTES_MAX: usize = 256;

fn quoted(name: &[u8]) -> String {
    // Tarantool shows a name up to a byte 0.
    let shown = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let shown = &shown[..shown.len().min(LABEL_BYTES_MAX)];
    format!("'{}'", String::from_utf8_lossy(shown))
}

fn bad_path(label: &str, place: u32) -> BoxError {
    field_error(label, &format!("invalid JSON in position {place}"))
}

fn field_error(label: &str, why: &str) -> BoxError {
    BoxError::new(ErrorCode::UPDATE_FIELD, format!("Field {label} UPDATE error: {why}"))
}

fn no_field_number(number: i64) -> BoxError {
    let message = format!("Field {number} was not found in the tuple");
    BoxError::new(ErrorCode::NO_SUCH_FIELD_NO, message)
}

fn wrong_argument(operator: u8, label: &str, expected: &str) -> BoxError {
    let message = format!(
        "Argument type in operation '{}' on field {label} does not match field type: \
         expected {expected}",
        char::from(operator)
    );
    BoxError::new(ErrorCode::UPDATE_ARG_TYPE, message)
}

/// The operations of a request; field numbers begin with `base`.
///
/// # Errors
/// Tarantool's.
pub(crate) fn parse<'a>(
    mut bytes: &'a [u8],
    base: u32,
    format: &Format,
) -> Result<SmallVec<[Operation<'a>; 2]>, BoxError> {
    let count = msgpack::read_array(&mut bytes)
        .map_err(|_| BoxError::illegal("update operations must be an array {{op,..}, {op,..}}"))?;
    if count > OPERATIONS_MAX {
        return Err(BoxError::illegal("too many operations for update"));
    }
    let mut operations = SmallVec::new();
    for number in 1..=count {
        operations.push(read_operation(msgpack::take(&mut bytes)?, number, base, format)?);
    }
    Ok(operations)
}

fn read_operation<'a>(
    mut bytes: &'a [u8],
    number: u32,
    base: u32,
    format: &Format,
) -> Result<Operation<'a>, BoxError> {
    let count = msgpack::read_array(&mut bytes)
        .map_err(|_| BoxError::illegal("update operation must be an array {op,..}"))?;
    if count < 1 {
        let what = "update operation must be an array {op,..}, got empty array";
        return Err(BoxError::illegal(what));
    }
    let Ok(name) = msgpack::read_str(&mut bytes) else {
        return Err(BoxError::illegal("update operation name must be a string"));
    };
    let unknown = |what: &str| {
        let message = format!("Unknown UPDATE operation #{number}: {what}");
        BoxError::new(ErrorCode::UNKNOWN_UPDATE_OP, message)
    };
    let (operator, expected) = match name {
        [operator @ (b'=' | b'+' | b'-' | b'&' | b'|' | b'^' | b'!' | b'#')] => (*operator, 3),
        b":" => (b':', 5),
        _ => {
            // Tarantool shows it up to a byte 0.
            let shown = name.split(|byte| *byte == 0).next().unwrap_or_default();
            return Err(unknown(&format!("\"{}\"", String::from_utf8_lossy(shown))));
        }
    };
    if count != expected {
        let what = format!("wrong number of arguments, expected {expected}, got {count}");
        return Err(unknown(&what));
    }
    let place = read_place(operator, &mut bytes, base, format)?;
    let action = read_action(operator, &place, &mut bytes, base)?;
    Ok(Operation { operator, place, action })
}

fn read_place<'a>(
    operator: u8,
    bytes: &mut &'a [u8],
    base: u32,
    format: &Format,
) -> Result<Place<'a>, BoxError> {
    let numbered = |field| Place { field, name: None, path: Lexer::of(b"") };
    let is_long = |number: &dyn Display| {
        // As in Tarantool, which reads it as a number of 32 bits.
        wrong_argument(operator, &number.to_string(), "an integer")
    };
    match msgpack::read(bytes)? {
        Value::Int(number) => i32::try_from(number).map(numbered).map_err(|_| is_long(&number)),
        Value::Uint(number) => {
            let number = i32::try_from(number).map_err(|_| is_long(&number))?;
            match i32::try_from(i64::from(number) - i64::from(base)) {
                Ok(shifted) if shifted >= 0 => Ok(numbered(shifted)),
                _ => Err(no_field_number(number.into())),
            }
        }
        Value::Str(name) => named(name, format),
        _ => Err(BoxError::illegal("field id must be a number or a string")),
    }
}

/// The place that a name or a path says. A field's whole name comes before a path of the same text.
fn named<'a>(name: &'a [u8], format: &Format) -> Result<Place<'a>, BoxError> {
    let number_of = |name: &[u8]| format.number_of(name).and_then(|at| i32::try_from(at).ok());
    if let Some(field) = number_of(name) {
        return Ok(Place { field, name: Some(name), path: Lexer::of(b"") });
    }
    let mut path = Lexer::of(name);
    let field = match path.next().map_err(|place| bad_path(&quoted(name), place))? {
        Token::Index(index) => Some(i32::try_from(index).unwrap_or(i32::MAX)),
        Token::Key(first) => number_of(first),
        Token::Each | Token::End => None,
    };
    field.map(|field| Place { field, name: Some(name), path }).ok_or_else(|| {
        let message = format!("Field {} was not found in the tuple", quoted(name));
        BoxError::new(ErrorCode::NO_SUCH_FIELD_NAME, message)
    })
}

fn read_action<'a>(
    operator: u8,
    place: &Place<'_>,
    bytes: &mut &'a [u8],
    base: u32,
) -> Result<Action<'a>, BoxError> {
    let argument = msgpack::take(bytes)?;
    let value = peek(argument).unwrap_or(Value::Nil);
    let wrong = |expected: &str| wrong_argument(operator, &place.label(), expected);
    Ok(match operator {
        b'=' => Action::Set(argument),
        b'!' => Action::Insert(argument),
        b'#' => match value {
            // Tarantool keeps 32 bits of it.
            Value::Uint(count) => match count as u32 {
                0 => return Err(field_error(&place.label(), "cannot delete 0 fields")),
                count => Action::Delete(count),
            },
            _ => return Err(wrong("a positive integer")),
        },
        b'+' => Action::Add(Number::of(&value).ok_or_else(|| wrong("a number"))?),
        b'-' => Action::Subtract(Number::of(&value).ok_or_else(|| wrong("a number"))?),
        b':' => {
            let mut offset = small(&value).ok_or_else(|| wrong("an integer"))?;
            if offset >= 0 {
                offset -= i64::from(base);
                if offset < 0 {
                    return Err(splice_bound(&place.label()));
                }
            }
            let cut = msgpack::take(bytes)?;
            let cut = peek(cut).and_then(|cut| small(&cut)).ok_or_else(|| wrong("an integer"))?;
            let paste = msgpack::read_str(bytes).map_err(|_| wrong("a string"))?;
            Action::Splice { offset, cut, paste }
        }
        _ => match value {
            Value::Uint(bits) => Action::Bits(bits),
            _ => return Err(wrong("a positive integer")),
        },
    })
}

pub(crate) fn splice_bound(label: &str) -> BoxError {
    let message = format!("SPLICE error on field {label}: offset is out of bound");
    BoxError::new(ErrorCode::UPDATE_SPLICE, message)
}

/// An integer of 32 bits.
fn small(value: &Value<'_>) -> Option<i64> {
    let value = match value {
        Value::Uint(value) => i64::try_from(*value).ok()?,
        Value::Int(value) => *value,
        _ => return None,
    };
    i32::try_from(value).ok().map(i64::from)
}

impl Number {
    pub(crate) fn of(value: &Value<'_>) -> Option<Number> {
        Some(match value {
            Value::Uint(value) => Number::Integer(i128::from(*value)),
            Value::Int(value) => Number::Integer(i128::from(*value)),
            Value::Float(value) => Number::Float(*value),
            Value::Double(value) => Number::Double(*value),
            Value::Ext(extension::DECIMAL, bytes) => Number::Decimal(Decimal::unpack(bytes)?),
            _ => return None,
        })
    }
}
