//! Operators on values.

use crate::ast::Binary;
use crate::convert::{to_integer, to_numeric};
use crate::decimals;
use crate::error::{self, Error};
use crate::tree::Comparison;
use crate::value::{INTEGER_MAX, INTEGER_MIN, Value};
use ladon_space::{Collation, FieldType};
use std::cmp::Ordering;

/// A result that is an integer.
///
/// # Errors
/// If it is none of MessagePack's.
#[inline]
pub(crate) fn integer(value: i128) -> Result<i128, Error> {
    match (INTEGER_MIN..=INTEGER_MAX).contains(&value) {
        true => Ok(value),
        false => Err(error::execute("integer is overflowed")),
    }
}

fn double(value: &Value) -> f64 {
    match value {
        Value::Int(value) => *value as f64,
        Value::Double(value) => *value,
        other => other.decimal().map_or(0.0, ladon_space::Decimal::to_double),
    }
}

/// `+ - * / %`, and operators on bits.
///
/// # Errors
/// If a value is no number, a result is too large, or the divisor is 0.
pub(crate) fn arithmetic(op: Binary, a: &Value, b: &Value) -> Result<Value, Error> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    if matches!(op, Binary::BitAnd | Binary::BitOr | Binary::ShiftLeft | Binary::ShiftRight) {
        return bits(op, to_integer(a)?, to_integer(b)?);
    }
    let b = to_numeric(b)?;
    let a = to_numeric(a)?;
    if let (Value::Int(a), Value::Int(b)) = (&a, &b) {
        return of_integers(op, *a, *b);
    }
    // Of a decimal and an integer comes a decimal, of a decimal and a double a double.
    if let (Some(a), Some(b)) = (decimals::of(&a), decimals::of(&b)) {
        return decimals::arithmetic(op, a, b);
    }
    let (a, b) = (double(&a), double(&b));
    let result = match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        _ if b == 0.0 || op != Binary::Divide && b.trunc() == 0.0 => {
            return Err(error::execute("division by zero"));
        }
        Binary::Divide => a / b,
        _ => a.trunc() % b.trunc(),
    };
    Ok(if result.is_nan() { Value::Null } else { Value::Double(result) })
}

/// As [`arithmetic`], of two integers.
///
/// # Errors
/// As [`arithmetic`].
#[inline]
pub(crate) fn of_integers(op: Binary, a: i128, b: i128) -> Result<Value, Error> {
    let by_zero = || error::execute("division by zero");
    let result = match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a.saturating_mul(b),
        Binary::Divide => a.checked_div(b).ok_or_else(by_zero)?,
        Binary::BitAnd | Binary::BitOr | Binary::ShiftLeft | Binary::ShiftRight => {
            return bits(op, a, b);
        }
        _ => a.checked_rem(b).ok_or_else(by_zero)?,
    };
    integer(result).map(Value::Int)
}

fn bits(op: Binary, a: i128, b: i128) -> Result<Value, Error> {
    const WIDTH: i128 = 64;
    // Beyond the largest signed integer, its bits count.
    let b = i128::from(b as i64);
    let (op, b) = match op {
        Binary::ShiftLeft if b < 0 => (Binary::ShiftRight, -b),
        Binary::ShiftRight if b < 0 => (Binary::ShiftLeft, -b),
        op => (op, b),
    };
    let a = a as i64;
    let bits = match op {
        Binary::BitAnd => a & b as i64,
        Binary::BitOr => a | b as i64,
        Binary::ShiftLeft if b >= WIDTH => 0,
        Binary::ShiftLeft => a << b,
        _ if b >= WIDTH => a >> (WIDTH - 1),
        _ => a >> b,
    };
    Ok(Value::Int(bits.into()))
}

/// `-a`.
///
/// # Errors
/// As [`arithmetic`].
pub(crate) fn negate(value: &Value) -> Result<Value, Error> {
    match to_numeric(value)? {
        Value::Int(value) => integer(-value).map(Value::Int),
        Value::Double(value) => Ok(Value::Double(-value)),
        other => Ok(other.decimal().map_or(other, decimals::negated)),
    }
}

/// `a || b`.
///
/// # Errors
/// `INCONSISTENT_TYPES`.
pub(crate) fn concat(a: &Value, b: &Value) -> Result<Value, Error> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Str(a), Value::Str(b)) => Ok(Value::Str([&a[..], b].concat().into())),
        (Value::Bin(a), Value::Bin(b)) => Ok(Value::Bin([&a[..], b].concat().into())),
        _ => {
            let is_text = |value: &Value| matches!(value, Value::Str(_) | Value::Bin(_));
            if let Some(other) = [b, a].into_iter().find(|value| !is_text(value)) {
                return Err(error::inconsistent("text or varbinary", other.type_shown()));
            }
            Err(error::inconsistent(a.type_shown(), b.type_shown()))
        }
    }
}

/// The order of two texts.
pub(crate) fn strings(collation: u32) -> impl Fn(&[u8], &[u8]) -> Ordering {
    let collation = Collation::of_id(collation.into()).unwrap_or(Collation::None);
    move |a, b| match collation {
        Collation::Unicode(unicode) => unicode.compare(a, b),
        _ => a.cmp(b),
    }
}

/// How two values compare, for sorting: null is the smallest.
pub(crate) fn order(a: &Value, b: &Value, collation: u32) -> Ordering {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) if collation != 0 => strings(collation)(a, b),
        _ => a.order(b, |a, b| a.cmp(b)),
    }
}

/// How two values compare; unknown if one is null.
///
/// # Errors
/// If their types do not go together.
pub(crate) fn compare(a: &Value, b: &Value, how: Comparison) -> Result<Option<Ordering>, Error> {
    use Value::{Bin, Bool, Double, Int, Null, Raw, Str};
    let (a, b) = match (a, b) {
        (Null, _) | (_, Null) => return Ok(None),
        (Int(a), Int(b)) => return Ok(Some(a.cmp(b))),
        (Str(a), Str(b)) if !how.is_numeric => {
            return Ok(Some(match how.collation {
                0 => a.cmp(b),
                id => strings(id)(a, b),
            }));
        }
        (Raw(_), _) | (_, Raw(_)) => return compare_raw(a, b, how).map(Some),
        (Bool(_), Bool(_)) | (Bin(_), Bin(_)) => (a.clone(), b.clone()),
        (Bool(_), other) | (other, Bool(_)) => {
            return Err(error::mismatch(other.type_shown(), "boolean"));
        }
        (Bin(_), other) | (other, Bin(_)) => {
            return Err(error::mismatch(other.type_shown(), "varbinary"));
        }
        (Int(_) | Double(_) | Str(_), Int(_) | Double(_) | Str(_)) if how.is_numeric => {
            (to_numeric(a)?, to_numeric(b)?)
        }
        (a, b) => (a.clone(), b.clone()),
    };
    if matches!((&a, &b), (Double(a), _) | (_, Double(a)) if a.is_nan()) {
        return Ok(None);
    }
    Ok(Some(order(&a, &b, how.collation)))
}

/// How a decimal, a UUID or a date compares with another value.
///
/// # Errors
/// If their types do not go together. Lists, maps and intervals have no order, as in 2.11.
fn compare_raw(a: &Value, b: &Value, how: Comparison) -> Result<Ordering, Error> {
    use FieldType::{Any, Array, Datetime, Interval, Map, Uuid};
    for value in [a, b] {
        if matches!(value.kind(), Some(Array | Map | Interval | Any)) {
            return Err(error::mismatch(&value.shown(), "comparable type"));
        }
    }
    for (one, other) in [(a, b), (b, a)] {
        if let Some(kind @ (Uuid | Datetime)) = one.kind()
            && other.kind() != Some(kind)
        {
            return Err(error::mismatch(&other.shown(), kind.name()));
        }
        if matches!(other, Value::Bool(_) | Value::Bin(_)) {
            return Err(error::mismatch(&other.shown(), "number"));
        }
    }
    if how.is_numeric {
        return Ok(order(&to_numeric_or_own(a)?, &to_numeric_or_own(b)?, 0));
    }
    Ok(order(a, b, how.collation))
}

/// The number that a text is; of other values nothing changes.
fn to_numeric_or_own(value: &Value) -> Result<Value, Error> {
    match value {
        Value::Str(_) => to_numeric(value),
        other => Ok(other.clone()),
    }
}

/// Whether an operator of comparison holds of an order.
pub(crate) fn holds(op: Binary, order: Ordering) -> bool {
    match op {
        Binary::Equal => order.is_eq(),
        Binary::Unequal => order.is_ne(),
        Binary::Less => order.is_lt(),
        Binary::LessEqual => order.is_le(),
        Binary::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Whether a text matches a pattern of LIKE: `%` is anything, `_` one character.
///
/// Time is bounded by the product of the lengths: only the last `%` is gone back to. `pay` pays for
/// so many steps, now and then.
///
/// # Errors
/// Those of `pay`.
pub(crate) fn like(
    pattern: &[char],
    text: &[char],
    (escape, collation): (Option<char>, u32),
    pay: &mut dyn FnMut(usize) -> Result<(), Error>,
) -> Result<bool, Error> {
    const STEPS_AT_ONCE: usize = 4_096;
    let mut steps = 0;
    let compare = strings(collation);
    let is_equal = |a: char, b: char| {
        let (mut first, mut second) = ([0; 4], [0; 4]);
        let one = a.encode_utf8(&mut first).as_bytes();
        a == b || collation != 0 && compare(one, b.encode_utf8(&mut second).as_bytes()).is_eq()
    };
    let (mut at, mut place) = (0, 0);
    // Behind the last `%`, and where in the text it has come to.
    let mut back: Option<(usize, usize)> = None;
    loop {
        steps += 1;
        if steps == STEPS_AT_ONCE {
            pay(steps)?;
            steps = 0;
        }
        let step = match pattern.get(at) {
            Some(mark) if Some(*mark) == escape => match (pattern.get(at + 1), text.get(place)) {
                (Some(wanted), Some(found)) if is_equal(*wanted, *found) => Some(2),
                _ => None,
            },
            Some('%') => {
                back = Some((at + 1, place));
                at += 1;
                continue;
            }
            Some('_') => text.get(place).map(|_| 1),
            Some(wanted) => text.get(place).filter(|found| is_equal(*wanted, **found)).map(|_| 1),
            None if place == text.len() => return Ok(true),
            None => None,
        };
        match (step, &mut back) {
            (Some(length), _) => {
                at += length;
                place += 1;
            }
            (None, Some((behind, from))) if *from < text.len() => {
                *from += 1;
                (at, place) = (*behind, *from);
            }
            (None, _) => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_like(pattern: &str, text: &str, escape: Option<char>) -> bool {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        like(&chars(pattern), &chars(text), (escape, 0), &mut |_| Ok(())).expect("it is paid for")
    }

    #[test]
    fn patterns_match_as_in_sql() {
        for (pattern, text, matches) in [
            ("a%", "abc", true),
            ("A%", "abc", false),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("%b%c", "abbc", true),
            ("%", "", true),
            ("", "", true),
            ("_", "", false),
            ("%é_", "caféx", true),
        ] {
            assert_eq!(is_like(pattern, text, None), matches, "{pattern} {text}");
        }
        assert!(is_like("a\\%c", "a%c", Some('\\')));
        assert!(!is_like("a\\%c", "abc", Some('\\')));
    }
}
