//! Decimal numbers of 38 digits: what they are, how text becomes one, and the four operations.
//!
//! The rules are those of decNumber (the General Decimal Arithmetic specification,
//! <https://speleotrove.com/decimal/>) with Tarantool's context: 38 digits, rounding half up, an
//! adjusted exponent of at most 37, no digit beyond the 38th after the point, no NaN and no
//! infinity.

use num_bigint::BigUint;
use std::cmp::Ordering;
use std::fmt;

/// Most digits of a coefficient.
pub(crate) const DIGITS_MAX: u32 = 38;

/// Most digits after the point.
pub(crate) const SCALE_MAX: i32 = 38;

/// Of a text so many significant digits count: rounding half up depends on no more.
const TEXT_DIGITS_MAX: usize = 80;

/// A number: `coefficient * 10^exponent`, negated or not.
///
/// Invariants: `coefficient < 10^38`, `-38 <= exponent`, and unless it is zero the number is below
/// `10^38`. Zeros have a sign, and trailing zeros count, as for decNumber.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
    pub(crate) negative: bool,
}

/// The result has too many digits before the point, or there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Failed;

impl Decimal {
    pub(crate) const ZERO: Decimal = Decimal { coefficient: 0, exponent: 0, negative: false };

    /// Rounds `coefficient * 10^exponent` to what a decimal can be. The true number may be greater
    /// by less than the last digit: half up rounds both alike.
    pub(crate) fn rounded(
        negative: bool,
        coefficient: &BigUint,
        exponent: i64,
    ) -> Result<Decimal, Failed> {
        let (mut coefficient, mut exponent) = (coefficient.clone(), exponent);
        loop {
            let digits = digits_of(&coefficient);
            let excess = digits - i64::from(DIGITS_MAX);
            let drop = excess.max(-i64::from(SCALE_MAX) - exponent).max(0);
            if drop == 0 {
                break;
            }
            if drop > digits {
                // Below half of the last place.
                coefficient = BigUint::ZERO;
            } else {
                coefficient = round_off(&coefficient, drop as u32);
            }
            exponent += drop;
        }
        let digits = digits_of(&coefficient);
        if coefficient == BigUint::ZERO {
            let exponent = exponent.clamp(-i64::from(SCALE_MAX), i64::from(DIGITS_MAX) - 1);
            return Ok(Decimal { coefficient: 0, exponent: exponent as i32, negative });
        }
        if digits + exponent > i64::from(DIGITS_MAX) {
            return Err(Failed);
        }
        let coefficient = u128::try_from(&coefficient).expect("38 digits fit in 128 bits");
        Ok(Decimal { coefficient, exponent: exponent as i32, negative })
    }

    /// The number that a text is: a sign, digits, a point, an exponent. `None` if it is none, or too
    /// great.
    pub(crate) fn parse(text: &[u8]) -> Option<Decimal> {
        let (negative, mut rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        let mut digits = Vec::new();
        let mut exponent = 0_i64;
        let (mut seen, mut point) = (false, false);
        while let Some((byte, after)) = rest.split_first() {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    if digits.len() < TEXT_DIGITS_MAX {
                        if *byte != b'0' || !digits.is_empty() {
                            digits.push(*byte);
                        }
                        exponent -= i64::from(point);
                    } else {
                        exponent += i64::from(!point);
                    }
                }
                b'.' if !point => point = true,
                b'e' | b'E' if seen => {
                    exponent += parse_exponent(after)?;
                    rest = &[];
                    continue;
                }
                _ => return None,
            }
            rest = after;
        }
        if !seen {
            return None;
        }
        let coefficient = BigUint::parse_bytes(&digits, 10).unwrap_or_default();
        Decimal::rounded(negative, &coefficient, exponent).ok()
    }

    /// Digits after the point.
    pub(crate) fn scale(self) -> i32 {
        (-self.exponent).max(0)
    }

    /// Digits, zeros that an exponent stands for included.
    pub(crate) fn precision(self) -> i32 {
        (digits_of_u128(self.coefficient) as i32 + self.exponent.max(0)).max(self.scale())
    }

    pub(crate) fn is_zero(self) -> bool {
        self.coefficient == 0
    }

    pub(crate) fn abs(self) -> Decimal {
        Decimal { negative: false, ..self }
    }

    /// `0 - self`: of a zero, one without a sign.
    pub(crate) fn negated(self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..self }
    }

    pub(crate) fn add(self, other: Decimal) -> Result<Decimal, Failed> {
        let exponent = self.exponent.min(other.exponent);
        let (left, right) = (self.shifted_to(exponent), other.shifted_to(exponent));
        let (negative, sum) = if self.negative == other.negative {
            (self.negative, left + right)
        } else {
            match left.cmp(&right) {
                Ordering::Greater => (self.negative, left - right),
                Ordering::Less => (other.negative, right - left),
                Ordering::Equal => (false, BigUint::ZERO),
            }
        };
        Decimal::rounded(negative, &sum, exponent.into())
    }

    pub(crate) fn subtract(self, other: Decimal) -> Result<Decimal, Failed> {
        self.add(Decimal { negative: !other.negative, ..other })
    }

    pub(crate) fn multiply(self, other: Decimal) -> Result<Decimal, Failed> {
        let product = BigUint::from(self.coefficient) * other.coefficient;
        let exponent = i64::from(self.exponent) + i64::from(other.exponent);
        Decimal::rounded(self.negative != other.negative, &product, exponent)
    }

    pub(crate) fn divide(self, other: Decimal) -> Result<Decimal, Failed> {
        if other.is_zero() {
            return Err(Failed);
        }
        let negative = self.negative != other.negative;
        let ideal = i64::from(self.exponent) - i64::from(other.exponent);
        if self.is_zero() {
            return Decimal::rounded(negative, &BigUint::ZERO, ideal);
        }
        // So many zeros more that the quotient has 40 digits at least.
        const MORE: u32 = 80;
        let dividend = BigUint::from(self.coefficient) * BigUint::from(10_u32).pow(MORE);
        let divisor = BigUint::from(other.coefficient);
        let mut quotient = &dividend / &divisor;
        let mut exponent = ideal - i64::from(MORE);
        if &quotient * &divisor == dividend {
            let ten = BigUint::from(10_u32);
            while exponent < ideal && &quotient % &ten == BigUint::ZERO {
                quotient /= &ten;
                exponent += 1;
            }
        }
        Decimal::rounded(negative, &quotient, exponent)
    }

    /// What is left of a division towards zero, with the sign of the dividend.
    pub(crate) fn remainder(self, other: Decimal) -> Result<Decimal, Failed> {
        if other.is_zero() {
            return Err(Failed);
        }
        let exponent = self.exponent.min(other.exponent);
        let rest = self.shifted_to(exponent) % other.shifted_to(exponent);
        Decimal::rounded(self.negative, &rest, exponent.into())
    }

    pub(crate) fn compare(self, other: Decimal) -> Ordering {
        if self.is_zero() && other.is_zero() {
            return Ordering::Equal;
        }
        let exponent = self.exponent.min(other.exponent);
        let by_size = self.shifted_to(exponent).cmp(&other.shifted_to(exponent));
        match (self.negative && !self.is_zero(), other.negative && !other.is_zero()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => by_size,
            (true, true) => by_size.reverse(),
        }
    }

    /// With at most so many digits after the point. As in Tarantool, a scale beyond 0 to 38 changes
    /// nothing, and a carry into a new digit costs the last zero.
    pub(crate) fn round(self, scale: i32) -> Decimal {
        if !(0..=SCALE_MAX).contains(&scale) || scale >= self.scale() {
            return self;
        }
        let dropped = (self.scale() - scale) as u32;
        let kept = i64::from(digits_of_u128(self.coefficient)) - i64::from(dropped);
        let mut coefficient =
            round_off(&BigUint::from(self.coefficient), dropped).try_into().unwrap_or(0_u128);
        let mut exponent = -scale;
        if kept > 0 && i64::from(digits_of_u128(coefficient)) > kept && exponent < 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Decimal { coefficient, exponent, negative: self.negative }
    }

    /// With exactly so many digits after the point, if that is possible.
    pub(crate) fn rescale(self, scale: i32) -> Decimal {
        if !(0..=SCALE_MAX).contains(&scale) || scale < self.scale() {
            return self.round(scale);
        }
        let more = (scale + self.exponent) as u32;
        if digits_of_u128(self.coefficient) + more > DIGITS_MAX {
            return self;
        }
        let coefficient = self.coefficient * 10_u128.pow(more);
        Decimal { coefficient, exponent: -scale, negative: self.negative }
    }

    /// Without the zeros after the last digit of the fraction.
    pub(crate) fn trim(self) -> Decimal {
        let mut trimmed = self;
        if trimmed.is_zero() {
            trimmed.exponent = 0;
        }
        while trimmed.exponent < 0 && trimmed.coefficient.is_multiple_of(10) {
            trimmed.coefficient /= 10;
            trimmed.exponent += 1;
        }
        trimmed
    }

    /// The whole number that it is, if it is one.
    pub(crate) fn as_integer(self) -> Option<i128> {
        let trimmed = self.trim();
        if trimmed.exponent < 0 {
            return None;
        }
        let shift = 10_u128.checked_pow(trimmed.exponent as u32)?;
        let size = i128::try_from(trimmed.coefficient.checked_mul(shift)?).ok()?;
        Some(if self.negative { -size } else { size })
    }

    fn shifted_to(self, exponent: i32) -> BigUint {
        let zeros = (self.exponent - exponent) as u32;
        BigUint::from(self.coefficient) * BigUint::from(10_u32).pow(zeros)
    }
}

/// Without the last digits, rounded half up. At most one digit more may be dropped than there are.
fn round_off(coefficient: &BigUint, dropped: u32) -> BigUint {
    let unit = BigUint::from(10_u32).pow(dropped);
    (coefficient + &unit / 2_u32) / unit
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // What is beyond a million is as good as infinite.
    let size = digits
        .iter()
        .fold(0_i64, |size, digit| (size * 10 + i64::from(digit - b'0')).min(1_000_000));
    Some(if negative { -size } else { size })
}

/// Digits of a number; one of zero.
pub(crate) fn digits_of(number: &BigUint) -> i64 {
    match u128::try_from(number) {
        Ok(small) => digits_of_u128(small).into(),
        Err(_) => {
            // The bits bound the digits; the power of ten decides.
            let estimate = (number.bits() * 30_103 / 100_000) as u32;
            let greater = *number >= BigUint::from(10_u32).pow(estimate);
            i64::from(estimate) + i64::from(greater)
        }
    }
}

pub(crate) fn digits_of_u128(number: u128) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        if self.exponent >= 0 {
            return write!(f, "{sign}{}{:0<2$}", self.coefficient, "", self.exponent as usize);
        }
        let scale = self.scale() as usize;
        let digits = format!("{:0>1$}", self.coefficient, scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}
