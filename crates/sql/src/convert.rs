//! Conversions: what casts, assignments and operators make of a value.

use crate::decimals;
use crate::error::{self, Error};
use crate::extensions;
use crate::value::{INTEGER_MAX, INTEGER_MIN, Value, double_text, parse_number};
use ladon_space::{Decimal, FieldType, extension};

fn refused(value: &Value, kind: FieldType) -> Error {
    error::mismatch(&value.shown(), kind.name())
}

/// The integer that a double is without its fraction, if it is in the range.
fn whole(value: f64) -> Option<i128> {
    let is_in = value >= INTEGER_MIN as f64 && value < INTEGER_MAX as f64;
    is_in.then_some(value as i128)
}

/// What CAST makes of a value.
///
/// # Errors
/// `SQL_TYPE_MISMATCH`.
pub(crate) fn cast(value: Value, kind: FieldType) -> Result<Value, Error> {
    if value.is_null() {
        return Ok(value);
    }
    match kind {
        FieldType::Integer | FieldType::Unsigned => {
            let least = if kind == FieldType::Unsigned { 0 } else { INTEGER_MIN };
            let number = match &value {
                Value::Int(number) => Some(*number),
                Value::Double(number) => whole(*number),
                Value::Bool(is) => Some((*is).into()),
                Value::Str(text) | Value::Bin(text) => match parse_number(text) {
                    Some(Value::Int(number)) => Some(number),
                    _ => None,
                },
                other => other.decimal().and_then(decimals::whole),
            };
            let number = number.filter(|number| (least..=INTEGER_MAX).contains(number));
            number.map(Value::Int).ok_or_else(|| refused(&value, kind))
        }
        FieldType::Number | FieldType::Double => to_number_by_cast(value, kind),
        FieldType::Boolean => match &value {
            Value::Bool(_) => Ok(value),
            Value::Int(number) => Ok(Value::Bool(*number != 0)),
            Value::Double(number) => Ok(Value::Bool(*number != 0.0)),
            Value::Str(text) => match &text.trim_ascii().to_ascii_lowercase()[..] {
                b"true" => Ok(Value::Bool(true)),
                b"false" => Ok(Value::Bool(false)),
                _ => Err(refused(&value, kind)),
            },
            _ => Err(refused(&value, kind)),
        },
        FieldType::String => match &value {
            Value::Str(_) => Ok(value),
            Value::Bin(bytes) => Ok(Value::Str(bytes.clone())),
            Value::Raw(bytes) => Ok(Value::text(&ladon_space::whole_text(bytes))),
            _ => Ok(Value::text(&value.shown())),
        },
        FieldType::Varbinary => match &value {
            Value::Bin(_) => Ok(value),
            Value::Str(bytes) => Ok(Value::Bin(bytes.clone())),
            other => match extensions::payload(other, extension::UUID) {
                Some(bytes) => Ok(Value::Bin(bytes.into())),
                None => Err(refused(&value, kind)),
            },
        },
        FieldType::Decimal => to_decimal(&value).ok_or_else(|| refused(&value, kind)),
        FieldType::Any => Ok(value),
        FieldType::Scalar if is_scalar(&value) => Ok(value),
        _ => extensions::cast(&value, kind).ok_or_else(|| refused(&value, kind)),
    }
}

/// Whether a column of the type SCALAR may have it.
fn is_scalar(value: &Value) -> bool {
    let kind = value.kind().unwrap_or(FieldType::Scalar);
    kind == FieldType::Scalar || kind.is_within(FieldType::Scalar)
}

fn to_decimal(value: &Value) -> Option<Value> {
    let decimal = match value {
        Value::Double(number) => Decimal::of_double(*number),
        Value::Str(text) => Decimal::parse(text.trim_ascii()),
        other => decimals::of(other),
    };
    decimal.map(Value::of_decimal)
}

fn to_number_by_cast(value: Value, kind: FieldType) -> Result<Value, Error> {
    let number = match &value {
        Value::Int(_) | Value::Double(_) => Some(value.clone()),
        Value::Bool(is) => Some(Value::Int((*is).into())),
        Value::Str(text) | Value::Bin(text) => parse_number(text),
        other => match other.decimal() {
            Some(number) if kind == FieldType::Double => Some(Value::Double(number.to_double())),
            Some(_) => Some(value.clone()),
            None => None,
        },
    };
    match number {
        Some(Value::Int(number)) if kind == FieldType::Double => Ok(Value::Double(number as f64)),
        Some(number) => Ok(number),
        None => Err(refused(&value, kind)),
    }
}

/// What a column of this type stores of a value.
///
/// # Errors
/// `SQL_TYPE_MISMATCH`.
pub(crate) fn assign(value: Value, kind: FieldType) -> Result<Value, Error> {
    let fits = match (&value, kind) {
        (Value::Null, _)
        | (_, FieldType::Any)
        | (Value::Bool(_), FieldType::Boolean)
        | (Value::Int(_) | Value::Double(_), FieldType::Number)
        | (Value::Int(_), FieldType::Integer)
        | (Value::Double(_), FieldType::Double)
        | (Value::Str(_), FieldType::String)
        | (Value::Bin(_), FieldType::Varbinary) => true,
        (Value::Int(number), FieldType::Unsigned) => *number >= 0,
        (_, FieldType::Scalar) => is_scalar(&value),
        (Value::Raw(_), _) => value.kind().is_some_and(|own| own.is_within(kind)),
        _ => false,
    };
    if fits {
        return Ok(value);
    }
    match (&value, kind) {
        (Value::Int(number), FieldType::Double) => Ok(Value::Double(*number as f64)),
        (Value::Double(_) | Value::Str(_), FieldType::Integer | FieldType::Unsigned) => {
            cast(value, kind)
        }
        (Value::Int(_) | Value::Double(_), FieldType::Decimal) => cast(value, kind),
        (Value::Raw(_), FieldType::Integer | FieldType::Unsigned | FieldType::Double) => {
            exactly(&value, kind).ok_or_else(|| refused(&value, kind))
        }
        (Value::Str(text), FieldType::Number) => {
            parse_number(text).ok_or_else(|| refused(&value, kind))
        }
        _ => Err(refused(&value, kind)),
    }
}

/// The integer or the double that a decimal is.
pub(crate) fn exactly(value: &Value, kind: FieldType) -> Option<Value> {
    let decimal = value.decimal()?;
    if kind == FieldType::Double {
        let double = decimal.to_double();
        return decimal.compare_double(double).is_eq().then_some(Value::Double(double));
    }
    let least = if kind == FieldType::Unsigned { 0 } else { INTEGER_MIN };
    let whole = decimal.integer().filter(|whole| (least..=INTEGER_MAX).contains(whole));
    whole.map(Value::Int)
}

/// A number as arithmetic takes it.
///
/// # Errors
/// `SQL_TYPE_MISMATCH`.
pub(crate) fn to_numeric(value: &Value) -> Result<Value, Error> {
    match value {
        Value::Int(_) | Value::Double(_) | Value::Null => Ok(value.clone()),
        Value::Str(text) | Value::Bin(text) => {
            parse_number(text).ok_or_else(|| error::mismatch(&value.shown(), "numeric"))
        }
        other if other.decimal().is_some() => Ok(value.clone()),
        _ => Err(error::mismatch(&value.shown(), "numeric")),
    }
}

/// An integer as bits.
///
/// # Errors
/// `SQL_TYPE_MISMATCH`.
pub(crate) fn to_integer(value: &Value) -> Result<i128, Error> {
    match to_numeric(value).ok() {
        Some(Value::Int(number)) => Ok(number),
        Some(Value::Double(number)) if number.fract() == 0.0 && whole(number).is_some() => {
            Ok(whole(number).unwrap_or_default())
        }
        Some(number @ Value::Raw(_)) => match exactly(&number, FieldType::Integer) {
            Some(Value::Int(number)) => Ok(number),
            _ => Err(error::mismatch(&value.shown(), "integer")),
        },
        _ => Err(error::mismatch(&value.shown(), "integer")),
    }
}

/// True, false or unknown.
///
/// # Errors
/// `SQL_TYPE_MISMATCH`.
pub(crate) fn to_truth(value: &Value) -> Result<Option<bool>, Error> {
    match value {
        Value::Bool(is) => Ok(Some(*is)),
        Value::Null => Ok(None),
        other => Err(error::mismatch(&other.shown(), "boolean")),
    }
}

/// A value's text, as functions of texts take it.
pub(crate) fn text_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Str(text) | Value::Bin(text) => text.to_vec(),
        Value::Double(number) => double_text(*number).into_bytes(),
        Value::Raw(bytes) => ladon_space::whole_text(bytes).into_bytes(),
        other => other.shown().into_bytes(),
    }
}
