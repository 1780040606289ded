//! A field plus a number that is a text.

use super::TextError;
use crate::decimal::Decimal;
use crate::field_type::{FieldType, extension, peek};
use ladon_msgpack::{Value, write};
use thiserror::Error;

/// Why there is no sum.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SumError {
    /// The field's values are not of a type that this is for.
    #[error("a field of type {0} is not what this adds to")]
    Type(&'static str),
    /// The field's value is not of the kind that this adds to.
    #[error("the value is not an integer")]
    NotInteger,
    /// The sum does not fit the type, or is no 64-bit signed integer.
    #[error("increment or decrement would overflow")]
    Overflow,
    /// The number is none.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// Appends the sum of an integer field of type unsigned, integer or number, and an integer. No
/// value counts as zero.
///
/// # Errors
/// If the type is another, the value is no integer, or the sum does not fit.
pub fn add_integer(
    kind: FieldType,
    value: Option<&[u8]>,
    by: i64,
    out: &mut Vec<u8>,
) -> Result<i64, SumError> {
    if !matches!(kind, FieldType::Unsigned | FieldType::Integer | FieldType::Number) {
        return Err(SumError::Type(kind.name()));
    }
    let before = match value.and_then(peek) {
        None | Some(Value::Nil) => 0,
        Some(Value::Uint(value)) => i128::from(value),
        Some(Value::Int(value)) => i128::from(value),
        Some(_) => return Err(SumError::NotInteger),
    };
    let sum = i64::try_from(before + i128::from(by)).map_err(|_| SumError::Overflow)?;
    if kind == FieldType::Unsigned && sum < 0 {
        return Err(SumError::Overflow);
    }
    write::int(out, sum);
    Ok(sum)
}

/// Appends the sum of a field of type double, number or decimal, and a number. No value counts as
/// zero. Decimals are added exactly.
///
/// # Errors
/// If the type is another, the text is no number, or the sum does not fit.
pub fn add_float(
    kind: FieldType,
    value: Option<&[u8]>,
    by: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), SumError> {
    let value = value.and_then(peek).filter(|value| *value != Value::Nil);
    match kind {
        FieldType::Decimal => {
            let not = || TextError::Value { text: super::shown(by), kind: kind.name() };
            let by = Decimal::parse(by).ok_or_else(not)?;
            let before = match value {
                Some(Value::Ext(extension::DECIMAL, bytes)) => Decimal::unpack(bytes),
                _ => None,
            };
            let before = before.unwrap_or(Decimal::of_integer(0));
            before.plus(by).ok_or(SumError::Overflow)?.write(out);
        }
        FieldType::Double | FieldType::Number => {
            let mut encoded = Vec::new();
            super::encode_value(FieldType::Double, by, &mut encoded)?;
            let by = peek(&encoded).and_then(double).unwrap_or_default();
            let before = value.and_then(double).unwrap_or_default();
            let sum = before + by;
            if !sum.is_finite() {
                return Err(SumError::Overflow);
            }
            write::double(out, sum);
        }
        _ => return Err(SumError::Type(kind.name())),
    }
    Ok(())
}

fn double(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Uint(value) => Some(value as f64),
        Value::Int(value) => Some(value as f64),
        Value::Float(value) => Some(value.into()),
        Value::Double(value) => Some(value),
        Value::Ext(extension::DECIMAL, bytes) => Decimal::unpack(bytes).map(Decimal::to_double),
        _ => None,
    }
}
