//! The text of a field, by its type.
//!
//! | type | text |
//! |---|---|
//! | unsigned, integer | digits |
//! | number | digits, or a floating-point number |
//! | double | the shortest number that reads back as the same |
//! | decimal | all digits |
//! | string, any, scalar | as it is; what is written is a string |
//! | varbinary | its bytes |
//! | boolean | `true` or `false` |
//! | uuid | lower case, with hyphens |
//! | datetime, interval, array, map | read only; arrays and maps look like JSON |

use super::{TextError, shown};
use crate::decimal::Decimal;
use crate::field_type::{FieldType, extension};
use crate::text::{self, HYPHENS};
use ladon_msgpack::{self as msgpack, Value, write};
use std::io::Write as _;

/// Appends the text of a value. Returns `false` if it is nil, which has none.
pub fn write_value(value: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(read) = msgpack::read(&mut { value }) else { return false };
    // Writing to a `Vec` does not fail.
    let _ = match read {
        Value::Nil => return false,
        Value::Bool(value) => write!(out, "{value}"),
        Value::Uint(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Float(value) => write!(out, "{}", number_text(value.into())),
        Value::Double(value) => write!(out, "{}", number_text(value)),
        Value::Str(bytes) | Value::Bin(bytes) => out.write_all(bytes),
        Value::Array(_) | Value::Map(_) | Value::Ext(..) => {
            write!(out, "{}", text::whole(value))
        }
    };
    true
}

/// A number without an exponent, unless it is very large or very small.
fn number_text(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-5..1e17).contains(&size) {
        return value.to_string();
    }
    format!("{value:e}")
}

/// Whether texts of this type can be written.
pub fn is_writable(kind: FieldType) -> bool {
    use FieldType::{Array, Datetime, Interval, Map};
    !matches!(kind, Array | Map | Datetime | Interval)
}

/// Appends the value of this type that a text is.
///
/// # Errors
/// If it is none.
pub fn encode_value(kind: FieldType, text: &[u8], out: &mut Vec<u8>) -> Result<(), TextError> {
    if !is_writable(kind) {
        return Err(TextError::NotWritable(kind.name()));
    }
    let wrong = || TextError::Value { text: shown(text), kind: kind.name() };
    match kind {
        FieldType::String | FieldType::Any | FieldType::Scalar => write::str(out, text),
        FieldType::Varbinary => write::bin(out, text),
        FieldType::Unsigned => write::uint(out, unsigned(text).ok_or_else(wrong)?),
        FieldType::Integer => integer(text, out).ok_or_else(wrong)?,
        FieldType::Number => number(text, out).ok_or_else(wrong)?,
        FieldType::Double => write::double(out, double(text).ok_or_else(wrong)?),
        FieldType::Decimal => Decimal::parse(text).ok_or_else(wrong)?.write(out),
        FieldType::Boolean => match text {
            b"true" => write::bool(out, true),
            b"false" => write::bool(out, false),
            _ => return Err(wrong()),
        },
        FieldType::Uuid => write::ext(out, extension::UUID, &uuid(text).ok_or_else(wrong)?),
        FieldType::Array | FieldType::Map | FieldType::Datetime | FieldType::Interval => {
            return Err(wrong());
        }
    }
    Ok(())
}

fn unsigned(text: &[u8]) -> Option<u64> {
    let is_digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_digits)?.parse().ok()
}

fn integer(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if let Some(value) = unsigned(text) {
        write::uint(out, value);
        return Some(());
    }
    let digits = text.strip_prefix(b"-").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let value: i64 = format!("-{}", std::str::from_utf8(digits).ok()?).parse().ok()?;
    write::int(out, value);
    Some(())
}

fn number(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    integer(text, out).or_else(|| {
        write::double(out, double(text)?);
        Some(())
    })
}

fn double(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || HYPHENS.iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let is_digit = |at: &usize| !HYPHENS.contains(at);
    let digits: Option<Vec<u8>> =
        (0..text.len()).filter(is_digit).map(|at| digit(&text[at])).collect();
    let mut bytes = [0; 16];
    for (byte, two) in bytes.iter_mut().zip(digits?.chunks(2)) {
        *byte = two[0] << 4 | two[1];
    }
    Some(bytes)
}
