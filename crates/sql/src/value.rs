//! Values as expressions see them.

use ladon_msgpack::{self as msgpack, Value as Packed, write};
use ladon_space::{Decimal, FieldType, extension};
use std::cmp::Ordering;
use std::sync::Arc;

/// The largest integer of MessagePack.
pub(crate) const INTEGER_MAX: i128 = u64::MAX as i128;
/// The smallest integer of MessagePack.
pub(crate) const INTEGER_MIN: i128 = i64::MIN as i128;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer, within those of MessagePack: from -2^63 to 2^64-1.
    Int(i128),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Str(Arc<[u8]>),
    /// Bytes.
    Bin(Arc<[u8]>),
    /// Anything else, as a decimal, a UUID, a date, a list or a map: its MessagePack.
    Raw(Arc<[u8]>),
}

/// Appends an integer as MessagePack.
#[inline]
pub(crate) fn pack_int(value: i128, out: &mut Vec<u8>) {
    match u64::try_from(value) {
        Ok(value) => write::uint(out, value),
        Err(_) => write::int(out, value as i64),
    }
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Value {
        Value::Str(text.as_bytes().into())
    }

    /// The value that MessagePack's bytes are; they hold one value. What cannot be read is null.
    pub fn unpack(bytes: &[u8]) -> Value {
        match msgpack::read(&mut { bytes }) {
            Ok(Packed::Nil) | Err(_) => Value::Null,
            Ok(Packed::Bool(value)) => Value::Bool(value),
            Ok(Packed::Uint(value)) => Value::Int(value.into()),
            Ok(Packed::Int(value)) => Value::Int(value.into()),
            Ok(Packed::Float(value)) => Value::Double(value.into()),
            Ok(Packed::Double(value)) => Value::Double(value),
            Ok(Packed::Str(value)) => Value::Str(value.into()),
            Ok(Packed::Bin(value)) => Value::Bin(value.into()),
            Ok(_) => Value::Raw(bytes.into()),
        }
    }

    /// Appends the value as MessagePack.
    pub fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => write::nil(out),
            Value::Bool(value) => write::bool(out, *value),
            Value::Int(value) => pack_int(*value, out),
            Value::Double(value) => write::double(out, *value),
            Value::Str(value) => write::str(out, value),
            Value::Bin(value) => write::bin(out, value),
            Value::Raw(value) => out.extend_from_slice(value),
        }
    }

    /// The type; none of null.
    pub fn kind(&self) -> Option<FieldType> {
        Some(match self {
            Value::Null => return None,
            Value::Bool(_) => FieldType::Boolean,
            Value::Int(_) => FieldType::Integer,
            Value::Double(_) => FieldType::Double,
            Value::Str(_) => FieldType::String,
            Value::Bin(_) => FieldType::Varbinary,
            Value::Raw(bytes) => raw_kind(bytes),
        })
    }

    /// The decimal that it is.
    pub(crate) fn decimal(&self) -> Option<Decimal> {
        let Value::Raw(bytes) = self else { return None };
        match msgpack::read(&mut { &bytes[..] }) {
            Ok(Packed::Ext(extension::DECIMAL, payload)) => Decimal::unpack(payload),
            _ => None,
        }
    }

    /// A decimal.
    pub(crate) fn of_decimal(decimal: Decimal) -> Value {
        let mut bytes = Vec::with_capacity(24);
        decimal.write(&mut bytes);
        Value::Raw(bytes.into())
    }

    /// Its MessagePack.
    fn packed(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.pack(&mut bytes);
        bytes
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Memory beside the value itself, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Value::Str(bytes) | Value::Bin(bytes) | Value::Raw(bytes) => bytes.len() + 16,
            _ => 0,
        }
    }

    /// How errors show it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Bool(true) => "TRUE".to_owned(),
            Value::Bool(false) => "FALSE".to_owned(),
            Value::Int(value) => value.to_string(),
            Value::Double(value) => double_text(*value),
            Value::Str(value) => String::from_utf8_lossy(value).into_owned(),
            Value::Bin(_) => "varbinary".to_owned(),
            Value::Raw(bytes) => ladon_space::value_text(bytes),
        }
    }

    /// The name of its type, as errors about types show it.
    pub(crate) fn type_shown(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Bool(_) => "boolean",
            Value::Int(value) if *value < 0 => "integer",
            Value::Int(_) => "unsigned",
            Value::Double(_) => "real",
            Value::Str(_) => "text",
            Value::Bin(_) => "varbinary",
            Value::Raw(bytes) => raw_kind(bytes).name(),
        }
    }

    /// The place of its type in the order of all values.
    fn class(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) | Value::Double(_) => 2,
            Value::Str(_) => 3,
            Value::Bin(_) => 4,
            Value::Raw(bytes) => match raw_kind(bytes) {
                FieldType::Decimal => 2,
                FieldType::Uuid => 5,
                FieldType::Datetime => 6,
                FieldType::Interval => 7,
                FieldType::Array => 8,
                FieldType::Map => 9,
                _ => 10,
            },
        }
    }

    /// The order of all values, strings by `strings`.
    pub(crate) fn order(
        &self,
        other: &Value,
        strings: impl FnOnce(&[u8], &[u8]) -> Ordering,
    ) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Value::Int(a), Value::Double(b)) => integer_and_double(*a, *b),
            (Value::Double(a), Value::Int(b)) => integer_and_double(*b, *a).reverse(),
            (Value::Str(a), Value::Str(b)) => strings(a, b),
            (Value::Bin(a), Value::Bin(b)) => a.cmp(b),
            _ => self.class().cmp(&other.class()).then_with(|| match (self, other) {
                (Value::Raw(a), Value::Raw(b)) => ladon_space::compare_values(a, b),
                (Value::Raw(_), _) | (_, Value::Raw(_)) => {
                    ladon_space::compare_values(&self.packed(), &other.packed())
                }
                _ => Ordering::Equal,
            }),
        }
    }
}

/// The type of what has no variant of its own.
fn raw_kind(bytes: &[u8]) -> FieldType {
    match msgpack::read(&mut { bytes }) {
        Ok(Packed::Array(_)) => FieldType::Array,
        Ok(Packed::Map(_)) => FieldType::Map,
        Ok(Packed::Ext(extension::DECIMAL, _)) => FieldType::Decimal,
        Ok(Packed::Ext(extension::UUID, _)) => FieldType::Uuid,
        Ok(Packed::Ext(extension::DATETIME, _)) => FieldType::Datetime,
        Ok(Packed::Ext(extension::INTERVAL, _)) => FieldType::Interval,
        _ => FieldType::Any,
    }
}

fn integer_and_double(a: i128, b: f64) -> Ordering {
    if b.is_nan() || b < INTEGER_MIN as f64 {
        return Ordering::Greater;
    }
    if b > INTEGER_MAX as f64 {
        return Ordering::Less;
    }
    let whole = b.trunc();
    a.cmp(&(whole as i128)).then(if b > whole {
        Ordering::Less
    } else if b < whole {
        Ordering::Greater
    } else {
        Ordering::Equal
    })
}

/// A number's text: 15 significant digits, always with a point.
pub(crate) fn double_text(value: f64) -> String {
    const DIGITS: i32 = 15;
    if value.is_nan() {
        return "NULL".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return "0.0".to_owned();
    }
    let scientific = format!("{:.*e}", (DIGITS - 1) as usize, value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let all: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match all.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let sign = if value < 0.0 { "-" } else { "" };
    if !(-4..DIGITS).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}.{rest}e{mark}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}

/// The number that a whole text is, blanks around it apart.
pub(crate) fn parse_number(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t', '\n', '\r']);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Ok(value) = text.parse::<i128>()
        && (INTEGER_MIN..=INTEGER_MAX).contains(&value)
    {
        return Some(Value::Int(value));
    }
    text.parse().ok().map(Value::Double)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_fifteen_digits() {
        for (value, text) in [
            (5.0, "5.0"),
            (0.1, "0.1"),
            (1e20, "1.0e+20"),
            (1e15, "1.0e+15"),
            (1e14, "100000000000000.0"),
            (-2.5, "-2.5"),
            (0.00001, "1.0e-05"),
            (0.0001, "0.0001"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(double_text(value), text);
        }
    }

    #[test]
    fn integers_and_doubles_have_one_order() {
        let order = |a, b| integer_and_double(a, b);
        assert_eq!(order(1, 1.5), Ordering::Less);
        assert_eq!(order(2, 1.5), Ordering::Greater);
        assert_eq!(order(-1, -1.5), Ordering::Greater);
        assert_eq!(order(i128::from(u64::MAX), 18_446_744_073_709_551_616.0), Ordering::Less);
        assert_eq!(order(0, f64::NEG_INFINITY), Ordering::Greater);
        assert_eq!(order(i64::MIN.into(), -9_223_372_036_854_775_808.0), Ordering::Equal);
        assert_eq!(order(i64::MIN.into(), -9_223_372_036_854_777_856.0), Ordering::Greater);
    }
}
