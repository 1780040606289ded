//! Roots, powers, logarithms: with numbers of 120 digits after the point, rounded at the end.
//!
//! An argument or a result is at least `10^-38`, so of 120 digits 82 count, and what the many steps
//! lose is far beyond the 38 that are kept.

use super::value::{DIGITS_MAX, Decimal, Failed, SCALE_MAX};
use num_bigint::{BigInt, BigUint, Sign};
use std::sync::OnceLock;

/// Digits after the point.
const PLACES: u32 = 120;

/// Tarantool's logarithms below 1 have one digit less.
const LN_SCALE_MAX: i32 = 37;

/// `exp` of more than this is beyond `10^38`; of less than its negative, below half of `10^-38`.
const EXPONENT_MAX: u32 = 90;

fn one() -> &'static BigInt {
    static ONE: OnceLock<BigInt> = OnceLock::new();
    ONE.get_or_init(|| BigInt::from(10).pow(PLACES))
}

fn fixed(number: Decimal) -> BigInt {
    let places = (PLACES as i32 + number.exponent) as u32;
    let size = BigUint::from(number.coefficient) * BigUint::from(10_u32).pow(places);
    BigInt::from_biguint(if number.negative { Sign::Minus } else { Sign::Plus }, size)
}

fn decimal(number: &BigInt) -> Result<Decimal, Failed> {
    Decimal::rounded(number.sign() == Sign::Minus, number.magnitude(), -i64::from(PLACES))
}

fn multiply(left: &BigInt, right: &BigInt) -> BigInt {
    left * right / one()
}

/// `ln` of a positive number: by eighth roots near to 1, then `2 atanh((x - 1) / (x + 1))`.
fn ln_fixed(number: &BigInt) -> BigInt {
    let mut root = number.clone();
    let mut tens = 0_i32;
    let ten = one() * 10;
    while root >= ten {
        root /= 10;
        tens += 1;
    }
    while &root < one() {
        root *= 10;
        tens -= 1;
    }
    ln_near_one(&root) + ln_ten() * tens
}

fn ln_ten() -> &'static BigInt {
    static LN_TEN: OnceLock<BigInt> = OnceLock::new();
    LN_TEN.get_or_init(|| ln_near_one(&(one() * 10)))
}

fn ln_near_one(number: &BigInt) -> BigInt {
    const HALVINGS: u32 = 3;
    let mut root = number.clone();
    for _ in 0..HALVINGS {
        root = (root * one()).sqrt();
    }
    let ratio = (&root - one()) * one() / (&root + one());
    let square = multiply(&ratio, &ratio);
    let (mut power, mut sum) = (ratio.clone(), ratio);
    for divisor in (3_u32..).step_by(2) {
        power = multiply(&power, &square);
        let term = &power / divisor;
        if term.sign() == Sign::NoSign {
            break;
        }
        sum += term;
    }
    sum * (2_u32 << HALVINGS)
}

/// `e` to a number whose size is at most [`EXPONENT_MAX`]: the series of a 1024th of it, squared
/// ten times.
fn exp_fixed(number: &BigInt) -> BigInt {
    const HALVINGS: u32 = 10;
    let small = number / (1_u32 << HALVINGS);
    let (mut term, mut sum) = (one().clone(), one().clone());
    for divisor in 1_u32.. {
        term = multiply(&term, &small) / divisor;
        if term.sign() == Sign::NoSign {
            break;
        }
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = multiply(&sum, &sum);
    }
    sum
}

fn exp_of(number: &BigInt) -> Result<Decimal, Failed> {
    let bound = one() * EXPONENT_MAX;
    if *number > bound {
        return Err(Failed);
    }
    if *number < -bound {
        return Decimal::rounded(false, &BigUint::ZERO, (-SCALE_MAX).into());
    }
    decimal(&exp_fixed(number))
}

impl Decimal {
    pub(crate) fn exp(self) -> Result<Decimal, Failed> {
        if self.is_zero() {
            return Ok(Decimal { coefficient: 1, ..Decimal::ZERO });
        }
        exp_of(&fixed(self))
    }

    pub(crate) fn ln(self) -> Result<Decimal, Failed> {
        if self.is_zero() || self.negative {
            return Err(Failed);
        }
        if self.as_integer() == Some(1) {
            return Ok(Decimal::ZERO);
        }
        Ok(decimal(&ln_fixed(&fixed(self)))?.round(LN_SCALE_MAX))
    }

    pub(crate) fn log10(self) -> Result<Decimal, Failed> {
        if self.is_zero() || self.negative {
            return Err(Failed);
        }
        let zeros = self.coefficient.ilog10();
        if self.coefficient == 10_u128.pow(zeros) {
            let power = self.exponent + zeros as i32;
            let coefficient = power.unsigned_abs().into();
            return Ok(Decimal { coefficient, exponent: 0, negative: power < 0 });
        }
        decimal(&(ln_fixed(&fixed(self)) * one() / ln_ten()))
    }

    pub(crate) fn sqrt(self) -> Result<Decimal, Failed> {
        if self.is_zero() {
            return Ok(Decimal { exponent: self.exponent.div_euclid(2), ..self });
        }
        if self.negative {
            return Err(Failed);
        }
        let odd = self.exponent.rem_euclid(2);
        let square = BigUint::from(self.coefficient) * 10_u32.pow(odd as u32);
        let exponent = i64::from((self.exponent - odd) / 2);
        let root = square.sqrt();
        if &root * &root == square {
            return Decimal::rounded(false, &root, exponent);
        }
        let root = (square * BigUint::from(10_u32).pow(2 * PLACES)).sqrt();
        Decimal::rounded(false, &root, exponent - i64::from(PLACES))
    }

    pub(crate) fn power(self, exponent: Decimal) -> Result<Decimal, Failed> {
        match exponent.as_integer() {
            Some(0) if self.is_zero() => Err(Failed),
            Some(whole) => self.power_of_integer(whole),
            None if self.is_zero() && !exponent.negative => Ok(Decimal::ZERO),
            None if self.negative || self.is_zero() => Err(Failed),
            None => exp_of(&multiply(&fixed(exponent), &ln_fixed(&fixed(self)))),
        }
    }

    /// By squaring; between the steps twice the digits are kept.
    fn power_of_integer(self, exponent: i128) -> Result<Decimal, Failed> {
        const DIGITS_BETWEEN: i64 = 2 * DIGITS_MAX as i64 + 20;
        /// A number to a power beyond this is 0, 1, or too great.
        const EXPONENT_BITS_MAX: u32 = 100;
        let negative = self.negative && exponent % 2 != 0;
        let keep = |(number, power): (BigUint, i64)| {
            let excess = (super::value::digits_of(&number) - DIGITS_BETWEEN).max(0);
            (number / BigUint::from(10_u32).pow(excess as u32), power + excess)
        };
        let (mut result, mut result_power) = (BigUint::from(1_u32), 0_i64);
        let (mut base, mut base_power) =
            (BigUint::from(self.coefficient), i64::from(self.exponent));
        let mut rest = exponent.unsigned_abs();
        if u128::BITS - rest.leading_zeros() > EXPONENT_BITS_MAX {
            return Err(Failed);
        }
        while rest > 0 {
            if rest & 1 == 1 {
                (result, result_power) = keep((result * &base, result_power + base_power));
            }
            rest >>= 1;
            if rest > 0 {
                (base, base_power) = keep((&base * &base, base_power.saturating_mul(2)));
            }
            // Far beyond what can be: no further step brings it back.
            if result_power.abs() > 1 << 40 || base_power.abs() > 1 << 40 {
                return if exponent < 0 || base_power < 0 && exponent > 0 {
                    Decimal::rounded(negative, &BigUint::ZERO, (-SCALE_MAX).into())
                } else {
                    Err(Failed)
                };
            }
        }
        if exponent >= 0 {
            return Decimal::rounded(negative, &result, result_power);
        }
        if result == BigUint::ZERO {
            return Err(Failed);
        }
        invert(negative, &result, result_power)
    }
}

/// `1 / (number * 10^power)`.
fn invert(negative: bool, number: &BigUint, power: i64) -> Result<Decimal, Failed> {
    let digits = super::value::digits_of(number) as u32 + PLACES;
    let dividend = BigUint::from(10_u32).pow(digits);
    let mut quotient = &dividend / number;
    let mut exponent = -power - i64::from(digits);
    if &quotient * number == dividend {
        while exponent < 0 && &quotient % 10_u32 == BigUint::ZERO {
            quotient /= 10_u32;
            exponent += 1;
        }
    }
    Decimal::rounded(negative, &quotient, exponent)
}
