//! Decimal numbers: up to 38 digits and a scale, as MessagePack's extension 1 carries them.
//!
//! ```text
//! [ scale: MessagePack integer | two digits a byte, highest first | sign in the last half byte ]
//! ```
//!
//! Source: Tarantool's documentation, "MessagePack extensions".

use ladon_msgpack::{self as msgpack, Value, write};
use std::cmp::Ordering;
use std::fmt;

/// Digits of a decimal.
const DIGITS_MAX: u32 = 38;
/// Scales beyond are refused: the number is below or above every other.
const SCALE_MAX: i32 = 38;
/// The first coefficient with too many digits; it and its negative fit in an `i128`.
const LIMIT: i128 = 10i128.pow(DIGITS_MAX);

/// `coefficient / 10^scale`.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    coefficient: i128,
    scale: i32,
}

impl Decimal {
    /// The decimal that an extension's bytes are; `None` if they are none.
    pub fn unpack(mut bytes: &[u8]) -> Option<Decimal> {
        let scale = match msgpack::read(&mut bytes).ok()? {
            Value::Uint(scale) => i32::try_from(scale).ok()?,
            Value::Int(scale) => i32::try_from(scale).ok()?,
            _ => return None,
        };
        let (&last, digits) = bytes.split_last()?;
        let sign = match last & 0x0f {
            0x0a | 0x0c | 0x0e | 0x0f => 1,
            0x0b | 0x0d => -1,
            _ => return None,
        };
        let halves = digits.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
        let mut coefficient = 0i128;
        for digit in halves.chain([last >> 4]) {
            // One more digit would be too many.
            if digit > 9 || coefficient >= LIMIT / 10 {
                return None;
            }
            coefficient = coefficient * 10 + i128::from(digit);
        }
        (-SCALE_MAX..=SCALE_MAX)
            .contains(&scale)
            .then_some(Decimal { coefficient: coefficient * sign, scale })
    }

    /// Appends the decimal as a MessagePack extension.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = Vec::with_capacity(24);
        write::int(&mut bytes, i64::from(self.scale));
        let mut digits = self.coefficient.unsigned_abs().to_string().into_bytes();
        if digits.len().is_multiple_of(2) {
            digits.insert(0, b'0');
        }
        digits.push(b'0' + if self.coefficient < 0 { 0x0d } else { 0x0c });
        bytes.extend(digits.chunks(2).map(|two| (two[0] - b'0') << 4 | (two[1] - b'0')));
        write::ext(out, 1, &bytes);
    }

    /// The decimal of an integer.
    pub fn of_integer(value: i128) -> Decimal {
        Decimal { coefficient: value, scale: 0 }
    }

    /// The decimal of a floating-point number in 15 digits, as in Tarantool; `None` if it has too
    /// many before the point.
    pub fn of_double(value: f64) -> Option<Decimal> {
        if !value.is_finite() {
            return None;
        }
        let text = format!("{value:.14e}");
        let (digits, exponent) = text.split_once('e')?;
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        let exponent: i32 = exponent.parse().ok()?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let coefficient: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()? - exponent;
        Decimal { coefficient, scale }.fitted()
    }

    /// The decimal that a text is: digits with a point and an exponent, or without.
    pub fn parse(text: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(text).ok()?;
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i16>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let (sign, whole) = match whole.strip_prefix('-') {
            Some(whole) => ("-", whole),
            None => ("", whole.strip_prefix('+').unwrap_or(whole)),
        };
        let has_digits = !(whole.is_empty() && fraction.is_empty());
        if !has_digits || !whole.bytes().chain(fraction.bytes()).all(|it| it.is_ascii_digit()) {
            return None;
        }
        let coefficient: i128 = format!("{sign}{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()? - i32::from(exponent);
        // What would be rounded to nothing is no decimal either.
        let fitted = Decimal { coefficient, scale }.fitted()?;
        (fitted.coefficient != 0 || coefficient == 0).then_some(fitted)
    }

    /// The coefficient, and the digits of it that are behind the point.
    pub fn parts(&self) -> (i128, i32) {
        (self.coefficient, self.scale)
    }

    /// `coefficient / 10^scale`; `None` if it has too many digits before the point.
    pub fn of_parts(coefficient: i128, scale: i32) -> Option<Decimal> {
        Decimal { coefficient, scale }.fitted()
    }

    /// The number without zeros at the end of its fraction.
    pub fn trimmed(&self) -> Decimal {
        let (coefficient, scale) = self.normal();
        Decimal::of_parts(coefficient, scale).unwrap_or(*self)
    }

    /// The sum; `None` if it has too many digits before the point.
    pub fn plus(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let (mut a, mut b, mut scale) = (self, other, scale);
        loop {
            match (a.at_scale(scale), b.at_scale(scale)) {
                (Some(a), Some(b)) => {
                    let sum = a.checked_add(b).map(|coefficient| Decimal { coefficient, scale });
                    return sum.unwrap_or_else(|| Decimal::sum_of_tenths(a, b, scale)).fitted();
                }
                _ if scale <= -SCALE_MAX => return None,
                // Digits that the larger number has no room for are rounded.
                _ => {
                    scale -= 1;
                    (a, b) = (a.rounded_to(scale), b.rounded_to(scale));
                }
            }
        }
    }

    /// The sum of two large coefficients of one sign without their last digit, rounded.
    fn sum_of_tenths(a: i128, b: i128, scale: i32) -> Decimal {
        let last = a % 10 + b % 10;
        let coefficient = a / 10 + b / 10 + (last + 5 * last.signum()) / 10;
        Decimal { coefficient, scale: scale - 1 }
    }

    /// The difference; `None` if it has too many digits before the point.
    pub fn minus(self, other: Decimal) -> Option<Decimal> {
        self.plus(Decimal { coefficient: -other.coefficient, scale: other.scale })
    }

    /// The coefficient at another scale that is not smaller.
    fn at_scale(&self, scale: i32) -> Option<i128> {
        let factor = 10i128.checked_pow(u32::try_from(scale - self.scale).ok()?)?;
        self.coefficient.checked_mul(factor).filter(|value| value.abs() < LIMIT)
    }

    /// Rounds half away from zero where the scale is larger than this.
    fn rounded_to(self, scale: i32) -> Decimal {
        if self.scale <= scale {
            return self;
        }
        let digits = u32::try_from(self.scale - scale).unwrap_or(u32::MAX);
        let coefficient = match 10i128.checked_pow(digits) {
            Some(divisor) => {
                let (quotient, rest) = (self.coefficient / divisor, self.coefficient % divisor);
                let up = i128::from(rest.abs() >= divisor - divisor / 2);
                quotient + up * self.coefficient.signum()
            }
            None => 0,
        };
        Decimal { coefficient, scale }
    }

    /// The decimal with no more digits than there may be.
    fn fitted(mut self) -> Option<Decimal> {
        while self.coefficient.abs() >= LIMIT || self.scale > SCALE_MAX {
            self = self.rounded_to(self.scale - 1);
        }
        while self.scale < 0 && self.coefficient != 0 {
            let next = self.coefficient.checked_mul(10).filter(|value| value.abs() < LIMIT)?;
            self = Decimal { coefficient: next, scale: self.scale + 1 };
        }
        self.scale = self.scale.max(0);
        Some(self)
    }

    /// The integer, if it is one.
    pub fn integer(&self) -> Option<i128> {
        if self.coefficient == 0 {
            return Some(0);
        }
        let power = 10i128.checked_pow(self.scale.unsigned_abs())?;
        if self.scale <= 0 {
            self.coefficient.checked_mul(power)
        } else {
            (self.coefficient % power == 0).then(|| self.coefficient / power)
        }
    }

    /// The nearest floating-point number.
    pub fn to_double(self) -> f64 {
        format!("{}e{}", self.coefficient, -self.scale).parse().unwrap_or(0.0)
    }

    /// Sign and digits without zeros at the end, and the power of ten in front of them.
    fn normal(&self) -> (i128, i32) {
        let (mut coefficient, mut scale) = (self.coefficient, self.scale);
        while coefficient != 0 && coefficient % 10 == 0 {
            (coefficient, scale) = (coefficient / 10, scale - 1);
        }
        (coefficient, scale)
    }

    /// Exact order of two decimals.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        let ((a, a_scale), (b, b_scale)) = (self.normal(), other.normal());
        let signs = a.signum().cmp(&b.signum());
        if signs.is_ne() || a == 0 {
            return signs;
        }
        // Digits before the point decide between numbers of one sign.
        let places = |value: i128, scale: i32| value.unsigned_abs().ilog10() as i32 - scale;
        let magnitude = places(a, a_scale).cmp(&places(b, b_scale)).then_with(|| {
            // As many digits before the point: both have at most 38, so one of them grows to as
            // many as the other has.
            let grow = |value: i128, by: i32| value.unsigned_abs() * 10u128.pow(by.max(0) as u32);
            grow(a, b_scale - a_scale).cmp(&grow(b, a_scale - b_scale))
        });
        if a < 0 { magnitude.reverse() } else { magnitude }
    }

    /// Exact order against a floating-point number that is not NaN.
    pub fn compare_double(&self, other: f64) -> Ordering {
        match self.to_double().partial_cmp(&other) {
            // Rounding keeps the order.
            Some(order) if order.is_ne() => order,
            _ => self.compare_exact(other),
        }
    }

    /// Both round to the same floating-point number, so its digits are few enough to write down.
    fn compare_exact(&self, other: f64) -> Ordering {
        if other.fract() == 0.0 && other.abs() < 1e37 {
            return self.compare(&Decimal::of_integer(other as i128));
        }
        // The digits after the point of any double; of those this small, all.
        let text = format!("{:.1074}", other.abs());
        let mut theirs = text.trim_end_matches('0').trim_start_matches('0').to_owned();
        let (coefficient, scale) = self.normal();
        let mut digits = coefficient.unsigned_abs().to_string();
        let point = theirs.find('.').unwrap_or(theirs.len());
        let theirs_after = theirs.len() - point - usize::from(point < theirs.len());
        theirs.retain(|c| c != '.');
        let ours_after = usize::try_from(scale).unwrap_or(0);
        digits.extend(std::iter::repeat_n('0', usize::try_from(-scale).unwrap_or(0)));
        digits.extend(std::iter::repeat_n('0', theirs_after.saturating_sub(ours_after)));
        theirs.extend(std::iter::repeat_n('0', ours_after.saturating_sub(theirs_after)));
        let (ours, theirs) = (digits.trim_start_matches('0'), theirs.trim_start_matches('0'));
        let magnitude = ours.len().cmp(&theirs.len()).then_with(|| ours.cmp(theirs));
        if self.coefficient < 0 { magnitude.reverse() } else { magnitude }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.coefficient < 0 { "-" } else { "" };
        let digits = self.coefficient.unsigned_abs().to_string();
        if self.scale <= 0 {
            let zeros = "0".repeat(self.scale.unsigned_abs() as usize);
            return write!(out, "{sign}{digits}{zeros}");
        }
        let scale = self.scale as usize;
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(out, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(coefficient: i128, scale: i32) -> Decimal {
        Decimal { coefficient, scale }
    }

    #[test]
    fn a_decimal_of_39_digits_is_none() {
        let nines = |count: usize, last: u8| [&[0][..], &vec![0x99; count], &[last]].concat();
        assert!(Decimal::unpack(&nines(18, 0x9c)).is_some());
        for count in [19, 20, 60] {
            assert!(Decimal::unpack(&nines(count, 0x9c)).is_none());
        }
        assert!(Decimal::unpack(&[&[0][..], &[0; 60], &[0x1c]].concat()).is_some());
    }

    #[test]
    fn sums_of_two_times_38_digits_are_rounded_or_refused() {
        let decimal = |text: &str| Decimal::parse(text.as_bytes()).expect("a decimal");
        let nines = "9".repeat(38);
        assert!(decimal(&nines).plus(decimal(&nines)).is_none());
        let negative = format!("-{nines}");
        assert!(decimal(&negative).minus(decimal(&nines)).is_none());
        assert_eq!(
            decimal(&nines).minus(decimal(&nines)).map(|it| it.to_string()),
            Some("0".into())
        );
        let fractions = format!("{}.9", "9".repeat(37));
        let sum = decimal(&fractions).plus(decimal(&fractions)).map(|it| it.to_string());
        assert_eq!(sum, Some(format!("2{}", "0".repeat(37))));
        let seven = format!("{}.7", "9".repeat(37));
        let sum = decimal(&seven).plus(decimal(&seven)).map(|it| it.to_string());
        assert_eq!(sum, Some(format!("1{}", "9".repeat(37))));
    }

    #[test]
    fn bytes_and_back() {
        for (coefficient, scale) in [(0, 0), (-1234, 2), (LIMIT - 1, 38), (5, -3), (12345, 0)] {
            let mut bytes = Vec::new();
            decimal(coefficient, scale).write(&mut bytes);
            let Ok(Value::Ext(1, bytes)) = msgpack::read(&mut &bytes[..]) else { panic!() };
            let back = Decimal::unpack(bytes).expect("it was written");
            assert_eq!((back.coefficient, back.scale), (coefficient, scale));
        }
        // The documentation's example: -12.34 is 0x02 0x01 0x23 0x4d.
        let read = Decimal::unpack(&[0x02, 0x01, 0x23, 0x4d]).expect("a decimal");
        assert_eq!(read.to_string(), "-12.34");
        assert!(Decimal::unpack(&[0x02, 0xaa, 0x23, 0x4d]).is_none());
        assert!(Decimal::unpack(&[]).is_none());
    }

    #[test]
    fn order_is_exact() {
        let sorted = [
            decimal(-LIMIT + 1, 0),
            decimal(-5, 0),
            decimal(-1234, 3),
            decimal(0, 0),
            decimal(1, 38),
            decimal(1, 1),
            decimal(11, 2),
            decimal(1, 0),
            decimal(1001, 3),
            decimal(1, -30),
            decimal(LIMIT - 1, 0),
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(a.compare(b), i.cmp(&j), "{a} {b}");
            }
        }
        assert!(decimal(10, 1).compare(&decimal(1, 0)).is_eq());
        // 0.1 as a double is a little more than a tenth.
        assert_eq!(decimal(1, 1).compare_double(0.1), Ordering::Less);
        assert_eq!(decimal(-1, 1).compare_double(-0.1), Ordering::Greater);
        assert_eq!(decimal(5, 1).compare_double(0.5), Ordering::Equal);
        assert_eq!(decimal(5, 1).compare_double(f64::INFINITY), Ordering::Less);
        assert_eq!(
            decimal(i128::from(u64::MAX), 0).compare_double(1.8446744073709552e19),
            Ordering::Less
        );
    }

    #[test]
    fn sums() {
        let sum = |a: Decimal, b: Decimal| a.plus(b).map(|sum| sum.to_string());
        assert_eq!(sum(decimal(11, 1), decimal(-205, 2)), Some("-0.95".to_owned()));
        assert_eq!(sum(decimal(LIMIT - 1, 0), decimal(1, 0)), None);
        assert_eq!(sum(decimal(LIMIT - 1, 0), decimal(1, 2)), Some((LIMIT - 1).to_string()));
        assert_eq!(Decimal::of_double(0.25).map(|d| d.to_string()), Some("0.25".to_owned()));
        assert!(Decimal::of_double(f64::NAN).is_none());
        // As a real Tarantool has them.
        let cut = f64::from_bits(0x4415_af1d_78b9_8c40);
        for (value, text) in [(cut, "100000000004295000000"), (1.0 / 3.0, "0.333333333333333")] {
            assert_eq!(Decimal::of_double(value).map(|d| d.to_string()), Some(text.to_owned()));
        }
    }
}
