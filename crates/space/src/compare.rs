//! The order of values: of one type, across types, and by a hint of eight bytes.
//!
//! Across types: nil, booleans, numbers, strings, bytes, UUIDs, dates, and the rest. Numbers
//! compare exactly, in whichever format they are. Source: Tarantool's documentation, "scalar".

use crate::collation::Unicode;
use crate::decimal::Decimal;
use crate::field_type::{FieldType, extension, peek};
use crate::hint_window::padded;
use ladon_msgpack::Value;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use std::cmp::Ordering;

/// Compares the values at the front of two slices, which may be of any types.
#[inline]
pub fn values(a: &[u8], b: &[u8]) -> Ordering {
    match (short_string(a), short_string(b)) {
        (Some(a), Some(b)) => a.cmp(b),
        _ => any_values(a, b),
    }
}

/// The content of a string of less than 32 bytes, as most in keys are.
#[inline]
fn short_string(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.split_first() {
        Some((first @ 0xa0..=0xbf, rest)) => rest.get(..usize::from(first & 0x1f)),
        _ => None,
    }
}

/// The content of a string.
#[inline]
pub(crate) fn string(bytes: &[u8]) -> Option<&[u8]> {
    short_string(bytes).or_else(|| match peek(bytes) {
        Some(Value::Str(string)) => Some(string),
        _ => None,
    })
}

fn any_values(a: &[u8], b: &[u8]) -> Ordering {
    match (peek(a), peek(b)) {
        (Some(a), Some(b)) => decoded(&a, &b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn decoded(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Bin(a), Value::Bin(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => class(a).cmp(&class(b)).then_with(|| within_class(a, b)),
    }
}

/// As [`values`], but strings compare by a collation.
pub fn collated(collation: Unicode, a: &[u8], b: &[u8]) -> Ordering {
    match (peek(a), peek(b)) {
        (Some(Value::Str(a)), Some(Value::Str(b))) => collation.compare(a, b),
        _ => values(a, b),
    }
}

fn within_class(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return a.compare(&b);
    }
    match (a, b) {
        (Value::Ext(extension::DATETIME, a), Value::Ext(extension::DATETIME, b)) => {
            moment(a).cmp(&moment(b))
        }
        (Value::Ext(_, a), Value::Ext(_, b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) | (Value::Map(a), Value::Map(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

/// Where values of a type are among those of other types.
fn class(value: &Value<'_>) -> u8 {
    match value {
        Value::Nil => 0,
        Value::Bool(_) => 1,
        Value::Uint(_) | Value::Int(_) | Value::Float(_) | Value::Double(_) => 2,
        Value::Ext(extension::DECIMAL, _) => 2,
        Value::Str(_) => 3,
        Value::Bin(_) => 4,
        Value::Ext(extension::UUID, _) => 5,
        Value::Ext(extension::DATETIME, _) => 6,
        Value::Ext(..) => 7,
        Value::Array(_) => 8,
        Value::Map(_) => 9,
    }
}

/// Seconds and nanoseconds; the time zone does not order.
fn moment(bytes: &[u8]) -> (i64, i32) {
    let seconds = bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_le_bytes(*bytes));
    let nanoseconds = bytes.get(8..12).and_then(|bytes| bytes.try_into().ok());
    (seconds, nanoseconds.map_or(0, i32::from_le_bytes))
}

enum Number {
    Integer(i128),
    Double(f64),
    Decimal(Decimal),
}

impl Number {
    fn of(value: &Value<'_>) -> Option<Number> {
        Some(match value {
            Value::Uint(value) => Number::Integer(i128::from(*value)),
            Value::Int(value) => Number::Integer(i128::from(*value)),
            Value::Float(value) => Number::Double(f64::from(*value)),
            Value::Double(value) => Number::Double(*value),
            Value::Ext(extension::DECIMAL, bytes) => {
                // A damaged one is refused before it is stored.
                Number::Decimal(Decimal::unpack(bytes).unwrap_or(Decimal::of_integer(0)))
            }
            _ => return None,
        })
    }

    fn compare(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(b),
            (Number::Double(a), Number::Double(b)) => double(*a, *b),
            (Number::Integer(a), Number::Double(b)) => integer_double(*a, *b),
            (Number::Double(a), Number::Integer(b)) => integer_double(*b, *a).reverse(),
            (Number::Decimal(a), Number::Decimal(b)) => a.compare(b),
            (Number::Decimal(a), Number::Integer(b)) => a.compare(&Decimal::of_integer(*b)),
            (Number::Integer(a), Number::Decimal(b)) => Decimal::of_integer(*a).compare(b),
            (Number::Decimal(a), Number::Double(b)) => decimal_double(a, *b),
            (Number::Double(a), Number::Decimal(b)) => decimal_double(b, *a).reverse(),
        }
    }

    fn approximate(&self) -> f64 {
        match self {
            Number::Integer(value) => *value as f64,
            Number::Double(value) => *value,
            Number::Decimal(value) => value.to_double(),
        }
    }
}

/// NaN comes before every number, and equals itself.
fn double(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Exact: the integers are those of 64 bits.
fn integer_double(integer: i128, double: f64) -> Ordering {
    if double.is_nan() {
        return Ordering::Greater;
    }
    // Saturates, which is right: no integer of 64 bits gets there.
    let whole = double as i128;
    integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal))
}

fn decimal_double(decimal: &Decimal, double: f64) -> Ordering {
    if double.is_nan() { Ordering::Greater } else { decimal.compare_double(double) }
}

/// A number that orders values as they are ordered, as far as eight bytes can: of two values, the
/// smaller one has no larger hint. With [`FieldType::Unsigned`] and no nil, equal hints are equal
/// values.
#[inline]
pub fn hint(kind: FieldType, is_nullable: bool, bytes: &[u8]) -> u64 {
    if kind == FieldType::String
        && !is_nullable
        && let Some(value) = short_string(bytes)
    {
        return padded(value);
    }
    any_hint(kind, is_nullable, bytes)
}

fn any_hint(kind: FieldType, is_nullable: bool, bytes: &[u8]) -> u64 {
    let Some(value) = peek(bytes) else { return 0 };
    if !is_nullable {
        match (kind, &value) {
            (FieldType::Unsigned, Value::Uint(value)) => return *value,
            (FieldType::String, Value::Str(value)) | (FieldType::Varbinary, Value::Bin(value)) => {
                return padded(value);
            }
            _ => {}
        }
    }
    general_hint(&value)
}

/// As [`hint`], of a value that compares by a collation.
pub fn collated_hint(collation: Unicode, bytes: &[u8]) -> u64 {
    match peek(bytes) {
        Some(Value::Str(string)) => general_hint(&Value::Str(&collation.sort_key(string))),
        Some(value) => general_hint(&value),
        None => 0,
    }
}

/// Four bits for the class, and the highest sixty of the value.
fn general_hint(value: &Value<'_>) -> u64 {
    let within = match value {
        Value::Bool(value) => u64::from(*value) << 63,
        Value::Str(value) | Value::Bin(value) | Value::Ext(extension::UUID, value) => padded(value),
        Value::Ext(extension::DATETIME, bytes) => ordered_signed(moment(bytes).0),
        _ => match Number::of(value) {
            Some(number) => ordered_double(number.approximate()),
            None => 0,
        },
    };
    u64::from(class(value)) << 60 | within >> 4
}

fn ordered_signed(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

/// Bits that order as the numbers do; the same of zero and minus zero, and 0 of NaN.
fn ordered_double(value: f64) -> u64 {
    if value.is_nan() {
        return 0;
    }
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// A hash that is the same of values that compare equal.
#[inline]
pub fn hash(secrets: &RapidSecrets, bytes: &[u8]) -> u64 {
    let Some(value) = peek(bytes) else { return 0 };
    match &value {
        Value::Uint(value) => hash_bytes(secrets, &i128::from(*value).to_le_bytes()),
        Value::Str(value) | Value::Bin(value) => hash_bytes(secrets, value),
        Value::Bool(value) => hash_bytes(secrets, &[u8::from(*value)]),
        other => match Number::of(other) {
            Some(number) => hash_number(secrets, &number),
            None => match other {
                Value::Ext(extension::DATETIME, bytes) => {
                    let (seconds, nanoseconds) = moment(bytes);
                    let mut moment = [0; 12];
                    moment[..8].copy_from_slice(&seconds.to_le_bytes());
                    moment[8..].copy_from_slice(&nanoseconds.to_le_bytes());
                    hash_bytes(secrets, &moment)
                }
                Value::Ext(_, bytes) => hash_bytes(secrets, bytes),
                _ => 0,
            },
        },
    }
}

/// As [`hash`], of a value that compares by a collation.
pub fn collated_hash(secrets: &RapidSecrets, collation: Unicode, bytes: &[u8]) -> u64 {
    match peek(bytes) {
        Some(Value::Str(string)) => hash_bytes(secrets, &collation.sort_key(string)),
        _ => hash(secrets, bytes),
    }
}

fn hash_number(secrets: &RapidSecrets, number: &Number) -> u64 {
    let integer = match number {
        Number::Integer(value) => Some(*value),
        Number::Double(value) => {
            // Whole numbers from here on are hashed by their bits, decimals included.
            let is_small = value.abs() < 1e37;
            (value.fract() == 0.0 && is_small).then_some(*value as i128)
        }
        Number::Decimal(value) => value.integer().filter(|_| value.to_double().abs() < 1e37),
    };
    match integer {
        Some(integer) => hash_bytes(secrets, &integer.to_le_bytes()),
        None => {
            let value = number.approximate();
            let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
            hash_bytes(secrets, &bits.to_le_bytes())
        }
    }
}

#[inline]
fn hash_bytes(secrets: &RapidSecrets, bytes: &[u8]) -> u64 {
    rapidhash_v3_seeded(bytes, secrets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_msgpack::write;

    fn encoded(write: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    }

    /// In ascending order; a group's values are equal.
    fn ordered() -> Vec<Vec<Vec<u8>>> {
        let uint = |value: u64| encoded(|out| write::uint(out, value));
        let int = |value: i64| encoded(|out| write::int(out, value));
        let double = |value: f64| encoded(|out| write::double(out, value));
        let float = |value: f32| encoded(|out| write::float(out, value));
        let str = |value: &[u8]| encoded(|out| write::str(out, value));
        let decimal = |value: i128| encoded(|out| Decimal::of_integer(value).write(out));
        let ext = |kind: i8, value: &[u8]| encoded(|out| write::ext(out, kind, value));
        vec![
            vec![vec![0xc0]],
            vec![vec![0xc2]],
            vec![vec![0xc3]],
            vec![double(f64::NAN)],
            vec![double(f64::NEG_INFINITY)],
            vec![decimal(-10i128.pow(37))],
            vec![int(i64::MIN), double(-9223372036854775808.0)],
            vec![int(-1), double(-1.0), float(-1.0), decimal(-1), vec![0xd1, 0xff, 0xff]],
            vec![double(-0.5)],
            vec![uint(0), double(0.0), double(-0.0), decimal(0)],
            vec![float(0.5), double(0.5)],
            vec![uint(1), vec![0xcd, 0, 1]],
            vec![uint(1 << 53), double(9007199254740992.0)],
            vec![uint((1 << 53) + 1), decimal((1 << 53) + 1)],
            vec![uint(u64::MAX), decimal(i128::from(u64::MAX))],
            vec![double(18446744073709551616.0), decimal(1 << 64)],
            vec![decimal(10i128.pow(38) - 1)],
            vec![double(1e300)],
            vec![double(f64::INFINITY)],
            vec![str(b"")],
            vec![str(b"a")],
            vec![str(b"a\0")],
            vec![str(b"abcdefgh")],
            vec![str(b"abcdefghi")],
            vec![str(b"b"), vec![0xd9, 1, b'b']],
            vec![encoded(|out| write::bin(out, b"a"))],
            vec![ext(2, &[1; 16])],
            vec![ext(2, &[2; 16])],
            vec![ext(4, &(-5i64).to_le_bytes())],
            vec![ext(4, &5i64.to_le_bytes())],
        ]
    }

    #[test]
    fn order_hint_and_hash_agree() {
        let secrets = RapidSecrets::seed(7);
        let groups = ordered();
        for (i, left) in groups.iter().enumerate() {
            for (j, right) in groups.iter().enumerate() {
                for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
                    assert_eq!(values(a, b), i.cmp(&j), "{a:?} {b:?}");
                    let hints = |kind, nullable| (hint(kind, nullable, a), hint(kind, nullable, b));
                    let (first, second) = hints(FieldType::Scalar, true);
                    assert!(i >= j || first <= second, "{a:?} {b:?}");
                    if i == j {
                        assert_eq!(first, second, "{a:?} {b:?}");
                        assert_eq!(hash(&secrets, a), hash(&secrets, b), "{a:?} {b:?}");
                    }
                    if matches!(class(&peek(a).unwrap()), 3)
                        && matches!(class(&peek(b).unwrap()), 3)
                    {
                        let (first, second) = hints(FieldType::String, false);
                        assert!(i >= j || first <= second);
                    }
                }
            }
        }
    }
}
