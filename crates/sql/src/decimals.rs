//! Arithmetic of decimals: 38 digits, rounded half away from zero.
//!
//! Source: Tarantool's documentation, "decimal"; its rules are those of the General Decimal
//! Arithmetic specification (<https://speleotrove.com/decimal/>).

use crate::ast::Binary;
use crate::error::{self, Error};
use crate::value::Value;
use ladon_space::Decimal;
use num_bigint::BigInt;
use std::cmp::Ordering;

/// Digits of a decimal, and most of them behind the point.
const DIGITS_MAX: i32 = 38;

fn overflowed() -> Error {
    error::execute("decimal is overflowed")
}

/// A value as a decimal: an integer, or one already.
pub(crate) fn of(value: &Value) -> Option<Decimal> {
    match value {
        Value::Int(number) => Some(Decimal::of_integer(*number)),
        other => other.decimal(),
    }
}

/// `a op b` of two decimals, `op` one of `+ - * / %`.
///
/// # Errors
/// If the result has too many digits in front of the point, or the divisor is 0.
pub(crate) fn arithmetic(op: Binary, a: Decimal, b: Decimal) -> Result<Value, Error> {
    let result = match op {
        Binary::Add => a.plus(b),
        Binary::Subtract => a.minus(b),
        Binary::Multiply => {
            let ((a, a_scale), (b, b_scale)) = (a.parts(), b.parts());
            rounded(BigInt::from(a) * b, a_scale + b_scale)
        }
        _ if b.parts().0 == 0 => return Err(error::execute("division by zero")),
        Binary::Divide => quotient(a.parts(), b.parts()),
        _ => {
            let ((a, a_scale), (b, b_scale)) = (a.parts(), b.parts());
            let scale = a_scale.max(b_scale);
            let rest = (BigInt::from(a) * ten_to(scale - a_scale))
                % (BigInt::from(b) * ten_to(scale - b_scale));
            rounded(rest, scale)
        }
    };
    result.map(Value::of_decimal).ok_or_else(overflowed)
}

/// With the other sign.
pub(crate) fn negated(value: Decimal) -> Value {
    let (coefficient, scale) = value.parts();
    Decimal::of_parts(-coefficient, scale).map_or(Value::Null, Value::of_decimal)
}

/// Without a sign.
pub(crate) fn abs(value: Decimal) -> Value {
    if value.parts().0 < 0 { negated(value) } else { Value::of_decimal(value) }
}

/// With at most so many digits behind the point.
pub(crate) fn round(value: Decimal, digits: i32) -> Value {
    let (coefficient, scale) = value.parts();
    let result = match scale > digits {
        true => {
            let kept = dropped(BigInt::from(coefficient), (scale - digits) as u32);
            rounded(kept, digits)
        }
        false => Some(value),
    };
    result.map_or(Value::Null, Value::of_decimal)
}

/// The integer in front of the point, if it is one of MessagePack's.
pub(crate) fn whole(value: Decimal) -> Option<i128> {
    let (coefficient, scale) = value.parts();
    let power = 10i128.checked_pow(u32::try_from(scale).ok()?)?;
    Some(coefficient / power)
}

fn ten_to(power: i32) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power).unwrap_or(0))
}

/// Without its last digits, rounded half away from zero.
fn dropped(coefficient: BigInt, digits: u32) -> BigInt {
    let power = BigInt::from(10).pow(digits);
    let half: BigInt = &power / 2;
    match coefficient.sign() {
        num_bigint::Sign::Minus => (coefficient - half) / power,
        _ => (coefficient + half) / power,
    }
}

/// `coefficient / 10^scale` with as many digits as a decimal has.
fn rounded(mut coefficient: BigInt, mut scale: i32) -> Option<Decimal> {
    loop {
        let digits = coefficient.magnitude().to_string().len() as i32;
        let excess = (digits - DIGITS_MAX).max(scale - DIGITS_MAX);
        if excess <= 0 {
            return Decimal::of_parts(i128::try_from(coefficient).ok()?, scale);
        }
        coefficient = dropped(coefficient, excess as u32);
        scale -= excess;
    }
}

/// Zeros at the end go as long as the quotient stays exact and has more digits behind the point than
/// the dividend has more than the divisor.
fn quotient((a, a_scale): (i128, i32), (b, b_scale): (i128, i32)) -> Option<Decimal> {
    // So many zeros more that the quotient has 40 digits at least.
    const MORE: i32 = 80;
    let ideal = a_scale - b_scale;
    let (dividend, divisor) = (BigInt::from(a) * ten_to(MORE), BigInt::from(b));
    let mut quotient = &dividend / &divisor;
    let mut scale = ideal + MORE;
    if &quotient * &divisor == dividend {
        let ten = BigInt::from(10);
        while scale > ideal && (&quotient % &ten).sign() == num_bigint::Sign::NoSign {
            quotient /= &ten;
            scale -= 1;
        }
    }
    rounded(quotient, scale)
}

/// A decimal's bytes such that equal numbers have the same, those of integers and doubles included:
/// an integer or a double, if it is one.
pub(crate) fn canonical(value: Decimal) -> Value {
    let double = value.to_double();
    match value.integer().and_then(|whole| crate::operators::integer(whole).ok()) {
        Some(whole) => Value::Int(whole),
        None if value.compare_double(double) == Ordering::Equal => Value::Double(double),
        None => Value::of_decimal(value.trimmed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).expect("a decimal")
    }

    #[test]
    fn the_four_operations_round_at_38_digits() {
        let nines = "9".repeat(38);
        for (a, op, b, expected) in [
            ("1.5", Binary::Multiply, "1.50", "2.250"),
            ("1", Binary::Divide, "3", "0.33333333333333333333333333333333333333"),
            ("2", Binary::Divide, "3", "0.66666666666666666666666666666666666667"),
            ("10", Binary::Divide, "4", "2.5"),
            ("100", Binary::Divide, "4", "25"),
            ("-7.5", Binary::Remainder, "2", "-1.5"),
            ("0.1", Binary::Add, "0.2", "0.3"),
            (&nines, Binary::Multiply, "0.1", "9999999999999999999999999999999999999.9"),
        ] {
            let found = arithmetic(op, decimal(a), decimal(b)).expect("no error");
            assert_eq!(found.shown(), expected, "{a} {op:?} {b}");
        }
        assert!(arithmetic(Binary::Multiply, decimal(&nines), decimal("10")).is_err());
        assert!(arithmetic(Binary::Divide, decimal("1"), decimal("0.0")).is_err());
    }

    #[test]
    fn rounding_and_whole_parts() {
        for (text, digits, expected) in
            [("2.345", 2, "2.35"), ("-2.345", 2, "-2.35"), ("0.5", 0, "1"), ("7", 3, "7")]
        {
            assert_eq!(round(decimal(text), digits).shown(), expected);
        }
        assert_eq!(whole(decimal("-7.9")), Some(-7));
        assert!(matches!(canonical(decimal("2.50")), Value::Double(2.5)));
        assert!(matches!(canonical(decimal("2.0")), Value::Int(2)));
    }
}
