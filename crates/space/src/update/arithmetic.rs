//! Operations that compute a field's new value from the old one.

use super::node::Slot;
use super::operation::{Action, Number, Operation, splice_bound};
use crate::decimal::Decimal;
use crate::error::{BoxError, ErrorCode};
use crate::field_type::peek;
use ladon_msgpack::{Value, write};

/// Bytes of most numbers.
const NUMBER_BYTES: usize = 9;

/// The new value of a field.
///
/// # Errors
/// Tarantool's, if the types do not match or the result has no room.
pub(super) fn compute<'a>(operation: &Operation<'_>, old: &[u8]) -> Result<Slot<'a>, BoxError> {
    let old = peek(old).unwrap_or(Value::Nil);
    let mut out = Vec::with_capacity(NUMBER_BYTES);
    match &operation.action {
        Action::Add(number) | Action::Subtract(number) => {
            let Some(left) = Number::of(&old) else {
                return Err(operation.wrong_argument("a number"));
            };
            let is_add = matches!(operation.action, Action::Add(_));
            match add(operation, left, *number, is_add)? {
                Number::Float(sum) => return Ok(Slot::Float(sum)),
                sum => sum.write(&mut out),
            }
        }
        Action::Bits(right) => {
            let Value::Uint(left) = old else {
                return Err(operation.wrong_argument("a positive integer"));
            };
            let result = match operation.operator {
                b'&' => left & right,
                b'|' => left | right,
                _ => left ^ right,
            };
            write::uint(&mut out, result);
        }
        Action::Splice { offset, cut, paste } => {
            let Value::Str(left) = old else {
                return Err(operation.wrong_argument("a string"));
            };
            write::str(&mut out, &splice(operation, left, *offset, *cut, paste)?);
        }
        Action::Set(value) | Action::Insert(value) => out.extend_from_slice(value),
        Action::Delete(_) => {}
    }
    Ok(Slot::Made(out))
}

fn splice(
    operation: &Operation<'_>,
    old: &[u8],
    offset: i64,
    cut: i64,
    paste: &[u8],
) -> Result<Vec<u8>, BoxError> {
    let length = old.len() as i64;
    let offset = if offset < 0 {
        // -1 is behind the last byte.
        if -offset > length + 1 {
            return Err(splice_bound(&operation.label()));
        }
        offset + length + 1
    } else {
        offset.min(length)
    };
    let behind = length - offset;
    let cut = if cut < 0 { (cut + behind).max(0) } else { cut.min(behind) };
    let (head, tail) = (&old[..offset as usize], &old[(offset + cut) as usize..]);
    Ok([head, paste, tail].concat())
}

/// The type of the result is the least exact of both: decimal, floating point, integer. A sum of
/// floating-point numbers is a float if it is one exactly, whatever both are.
fn add(
    operation: &Operation<'_>,
    left: Number,
    right: Number,
    is_add: bool,
) -> Result<Number, BoxError> {
    if let (Number::Integer(left), Number::Integer(right)) = (left, right) {
        let sum = if is_add { left + right } else { left - right };
        let has_room = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&sum);
        return if has_room { Ok(Number::Integer(sum)) } else { Err(overflow(operation)) };
    }
    if matches!(left, Number::Decimal(_)) || matches!(right, Number::Decimal(_)) {
        let expected = "a number convertible to decimal";
        let (Some(left), Some(right)) = (left.decimal(), right.decimal()) else {
            return Err(operation.wrong_argument(expected));
        };
        let sum = if is_add { left.plus(right) } else { left.minus(right) };
        return sum.map(Number::Decimal).ok_or_else(|| {
            let message = format!(
                "Decimal overflow when performing operation '{}' on field {}",
                char::from(operation.operator),
                operation.label()
            );
            BoxError::new(ErrorCode::UPDATE_DECIMAL_OVERFLOW, message)
        });
    }
    let sum = if is_add { left.double() + right.double() } else { left.double() - right.double() };
    let float = sum as f32;
    let is_float = float.is_finite() && f64::from(float) == sum;
    Ok(if is_float { Number::Float(float) } else { Number::Double(sum) })
}

fn overflow(operation: &Operation<'_>) -> BoxError {
    let message = format!(
        "Integer overflow when performing '{}' operation on field {}",
        char::from(operation.operator),
        operation.label()
    );
    BoxError::new(ErrorCode::UPDATE_INTEGER_OVERFLOW, message)
}

impl Number {
    fn double(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Float(value) => f64::from(value),
            Number::Double(value) => value,
            Number::Decimal(value) => value.to_double(),
        }
    }

    fn decimal(self) -> Option<Decimal> {
        match self {
            Number::Integer(value) => Some(Decimal::of_integer(value)),
            Number::Float(value) => Decimal::of_double(f64::from(value)),
            Number::Double(value) => Decimal::of_double(value),
            Number::Decimal(value) => Some(value),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Number::Integer(value) if value < 0 => write::int(out, value as i64),
            Number::Integer(value) => write::uint(out, value as u64),
            Number::Float(value) => write::float(out, value),
            Number::Double(value) => write::double(out, value),
            Number::Decimal(value) => value.write(out),
        }
    }
}
