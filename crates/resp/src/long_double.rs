//! `INCRBYFLOAT`'s numbers. Redis computes them in C's `long double`, which on x86-64 is the
//! 80-bit extended format: one sign bit, 15 bits of exponent, 64 bits of mantissa. `f64` would
//! give `10.5 + 0.1 = 10.60000000000000000` a different tail often enough for clients to notice,
//! so this file computes in that format: text is rounded to it once, correctly (to nearest, ties
//! to even), sums are rounded once, and 17 decimals are printed from the exact binary value.

use crate::big::Big;
use std::cmp::Ordering;
use std::ops::Neg;

/// An 80-bit extended floating-point number; never NaN.
///
/// Value: `mantissa * 2^exponent`. Numbers are normal (highest mantissa bit set) unless they are
/// zero or have the lowest exponent.
#[derive(Clone, Copy, Debug)]
pub struct LongDouble {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

const EXPONENT_MIN: i32 = -16445;
const EXPONENT_MAX: i32 = 16320;
const EXPONENT_INFINITE: i32 = i32::MAX;
/// Longest text that is read as a number, in bytes: Redis' buffer for a `long double`.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// No number is written with more digits than this before the point; beyond it is infinity.
const DECIMAL_EXPONENT_MAX: i64 = 20_000;
const DECIMALS: u32 = 17;

impl LongDouble {
    /// Zero.
    pub const ZERO: LongDouble =
        LongDouble { negative: false, mantissa: 0, exponent: EXPONENT_MIN };
    /// The greatest number that is not infinite.
    pub const MAX: LongDouble =
        LongDouble { negative: false, mantissa: u64::MAX, exponent: EXPONENT_MAX };
    /// The least number that is not infinite.
    pub const MIN: LongDouble = LongDouble { negative: true, ..LongDouble::MAX };

    /// Reads a number as Redis does: what C's `strtold` takes in full (decimal or hexadecimal,
    /// with or without an exponent, `inf`), but no space, no `nan`, and nothing whose value is
    /// too great or too small to be told from infinity or zero.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble { negative, mantissa: 0, exponent: EXPONENT_INFINITE });
        }
        let number = match text {
            [b'0', b'x' | b'X', rest @ ..] => parse_hexadecimal(negative, rest)?,
            _ => parse_decimal(negative, text)?,
        };
        number.is_finite().then_some(number)
    }

    /// Whether this is an ordinary number.
    pub fn is_finite(self) -> bool {
        self.exponent != EXPONENT_INFINITE
    }

    /// A thousand times the number, rounded once, and then up to a whole number; `None` where that
    /// is beyond 64 bits. A number far below zero gives the lowest.
    pub fn ceil_thousandfold(self) -> Option<i64> {
        let product =
            round(self.negative, u128::from(self.mantissa) * 1000, self.exponent.min(0), false);
        let magnitude = match product.exponent {
            _ if self.exponent > 0 => (self.is_finite() && self.mantissa == 0).then_some(0),
            0 => Some(product.mantissa),
            exponent if exponent > 0 => (product.mantissa == 0).then_some(0),
            exponent => {
                let shift = exponent.unsigned_abs();
                let whole = product.mantissa.checked_shr(shift).unwrap_or(0);
                let is_whole =
                    whole.checked_shl(shift) == Some(product.mantissa) || product.mantissa == 0;
                Some(whole + u64::from(!is_whole && !product.negative))
            }
        };
        let magnitude = magnitude.and_then(|magnitude| i64::try_from(magnitude).ok());
        if product.negative { Some(magnitude.map_or(i64::MIN, |m| -m)) } else { magnitude }
    }

    /// The sum, rounded once; `None` for infinity minus infinity.
    #[must_use]
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        match (self.is_finite(), other.is_finite()) {
            (true, true) => Some(self.add_finite(other)),
            (false, false) if self.negative != other.negative => None,
            (false, _) => Some(self),
            (true, false) => Some(other),
        }
    }

    fn add_finite(self, other: LongDouble) -> LongDouble {
        if self.mantissa == 0 || other.mantissa == 0 {
            return match (self.mantissa, other.mantissa) {
                (0, 0) => LongDouble { negative: self.negative && other.negative, ..self },
                (0, _) => other,
                _ => self,
            };
        }
        let (high, low) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        // 62 bits below the higher number's last one are kept, the rest only as "not zero":
        // enough, as a subtraction that cancels more than one bit loses none in the first place.
        let spare = 62;
        let distance = high.exponent.abs_diff(low.exponent);
        let wide = u128::from(low.mantissa) << spare;
        let aligned = wide.checked_shr(distance).unwrap_or(0);
        let lost = distance > spare
            && (distance >= 128 || aligned.checked_shl(distance).unwrap_or(0) != wide);
        let base = u128::from(high.mantissa) << spare;
        let exponent = high.exponent - spare as i32;
        if high.negative == low.negative {
            return round(high.negative, base + aligned, exponent, lost);
        }
        if base == aligned && !lost {
            return LongDouble { negative: false, mantissa: 0, exponent: EXPONENT_MIN };
        }
        if base < aligned {
            // Only possible for equal exponents, and then nothing is lost.
            return round(low.negative, aligned - base, exponent, lost);
        }
        round(high.negative, base - aligned - u128::from(lost), exponent, lost)
    }

    /// Appends the number as people write it, which is how `INCRBYFLOAT` stores and answers:
    /// at most 17 decimals, no exponent, no trailing zeros, no `-0`.
    pub fn write_human(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        if !self.is_finite() {
            out.extend_from_slice(b"inf");
            return;
        }
        if self.exponent >= 0 {
            let digits = Big::from_u64(self.mantissa).shifted_left(self.exponent as u32);
            out.extend_from_slice(digits.to_decimal().as_bytes());
            return;
        }
        // mantissa * 10^17 is below 2^121: the rounding is exact in 128 bits.
        let scaled = u128::from(self.mantissa) * 10u128.pow(DECIMALS);
        let shift = self.exponent.unsigned_abs();
        let hundred_quadrillionths = if shift > 127 { 0 } else { shift_right_even(scaled, shift) };
        if hundred_quadrillionths == 0 {
            out.truncate(start);
            out.push(b'0');
            return;
        }
        let whole = hundred_quadrillionths / 10u128.pow(DECIMALS);
        let fraction = (hundred_quadrillionths % 10u128.pow(DECIMALS)) as u64;
        out.extend_from_slice(itoa::Buffer::new().format(whole as u64).as_bytes());
        if fraction != 0 {
            let text = format!(".{fraction:017}");
            out.extend_from_slice(text.trim_end_matches('0').as_bytes());
        }
    }
}

impl Neg for LongDouble {
    type Output = LongDouble;

    fn neg(self) -> LongDouble {
        LongDouble { negative: !self.negative, ..self }
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &LongDouble) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for LongDouble {}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &LongDouble) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By value: the two zeros are equal.
impl Ord for LongDouble {
    fn cmp(&self, other: &LongDouble) -> Ordering {
        let is_zero = |number: &LongDouble| number.is_finite() && number.mantissa == 0;
        // Numbers are normal, so the exponent decides first.
        let size = |number: &LongDouble| (number.exponent, number.mantissa);
        match (is_zero(self), is_zero(other)) {
            (true, true) => Ordering::Equal,
            (true, false) if other.negative => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, true) if self.negative => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => match (self.negative, other.negative) {
                (true, true) => size(other).cmp(&size(self)),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => size(self).cmp(&size(other)),
            },
        }
    }
}

fn shift_right_even(value: u128, shift: u32) -> u128 {
    let kept = value >> shift;
    let rest = value - (kept << shift);
    let half = 1u128 << (shift - 1);
    kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
}

/// The number nearest to `mantissa * 2^exponent` plus something below its last bit that is not
/// zero if `lost` says so (in which case `mantissa` must have at least 66 bits).
fn round(negative: bool, mantissa: u128, exponent: i32, lost: bool) -> LongDouble {
    if mantissa == 0 {
        return LongDouble { negative, mantissa: 0, exponent: EXPONENT_MIN };
    }
    let surplus = 64 - mantissa.leading_zeros() as i32;
    let shift = surplus.max(EXPONENT_MIN - exponent);
    let (mut rounded, mut exponent) = if shift <= 0 {
        (mantissa << -shift, exponent + shift)
    } else if shift > 128 {
        (0, EXPONENT_MIN)
    } else {
        let kept = mantissa.checked_shr(shift as u32).unwrap_or(0);
        let rest = mantissa - kept.checked_shl(shift as u32).unwrap_or(0);
        let half = 1u128 << (shift - 1);
        let up = rest > half || (rest == half && (lost || kept & 1 == 1));
        (kept + u128::from(up), exponent + shift)
    };
    if rounded >> 64 != 0 {
        (rounded, exponent) = (rounded >> 1, exponent + 1);
    }
    if exponent > EXPONENT_MAX {
        return LongDouble { negative, mantissa: 0, exponent: EXPONENT_INFINITE };
    }
    LongDouble { negative, mantissa: rounded as u64, exponent }
}

/// `digits[.digits][e[+-]digits]`: the digits without the point and the leading zeros, and the
/// power of the radix (before `marker`'s exponent) and the exponent.
fn scan(text: &[u8], radix: u32, marker: u8) -> Option<(Vec<u8>, i64, i64)> {
    let mut digits = Vec::with_capacity(text.len());
    let (mut seen, mut point, mut decimals, mut end) = (false, false, 0i64, text.len());
    for (index, byte) in text.iter().enumerate() {
        if char::from(*byte).is_digit(radix) {
            seen = true;
            decimals += i64::from(point);
            if *byte != b'0' || !digits.is_empty() {
                digits.push(*byte);
            }
        } else if *byte == b'.' && !point {
            point = true;
        } else if byte.eq_ignore_ascii_case(&marker) {
            end = index;
            break;
        } else {
            return None;
        }
    }
    let exponent = match &text[end..] {
        [] => 0,
        [_, b'-', rest @ ..] => -scan_exponent(rest)?,
        [_, b'+', rest @ ..] | [_, rest @ ..] => scan_exponent(rest)?,
    };
    seen.then_some((digits, -decimals, exponent))
}

fn scan_exponent(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Saturates far beyond every exponent that makes a difference.
    Some(text.iter().fold(0, |value, digit| (value * 10 + i64::from(digit - b'0')).min(1 << 40)))
}

fn zero(negative: bool) -> LongDouble {
    LongDouble { negative, mantissa: 0, exponent: EXPONENT_MIN }
}

fn parse_hexadecimal(negative: bool, text: &[u8]) -> Option<LongDouble> {
    let (digits, places, exponent) = scan(text, 16, b'p')?;
    if digits.is_empty() {
        return Some(zero(negative));
    }
    let (value, shift, lost) = Big::from_digits(&digits, 16).top();
    let exponent = (exponent + places * 4).clamp(-100_000, 100_000) as i32 + shift as i32;
    non_zero(round(negative, value, exponent, lost))
}

fn parse_decimal(negative: bool, text: &[u8]) -> Option<LongDouble> {
    let (digits, places, exponent) = scan(text, 10, b'e')?;
    if digits.is_empty() {
        return Some(zero(negative));
    }
    let power = exponent + places;
    if (power + digits.len() as i64).abs() > DECIMAL_EXPONENT_MAX {
        return None;
    }
    if let Some(number) = parse_short(negative, &digits, power) {
        return Some(number);
    }
    let number = Big::from_digits(&digits, 10);
    if power >= 0 {
        let (value, shift, lost) = number.times_power_of_ten(power as u32).top();
        return non_zero(round(negative, value, shift as i32, lost));
    }
    let divisor = Big::from_u64(1).times_power_of_ten(power.unsigned_abs() as u32);
    // Scaled so that the quotient has at least 66 bits, and at most 127.
    let wanted = divisor.bits() + 67;
    if number.bits() <= wanted {
        let shift = wanted - number.bits();
        let (quotient, lost) = number.shifted_left(shift).divided_by(&divisor);
        return non_zero(round(negative, quotient, -(shift as i32), lost));
    }
    let shift = number.bits() - wanted;
    let (quotient, lost) = number.divided_by(&divisor.shifted_left(shift));
    non_zero(round(negative, quotient, shift as i32, lost))
}

/// Up to 19 digits and up to 19 decimals: all in 128 bits.
fn parse_short(negative: bool, digits: &[u8], power: i64) -> Option<LongDouble> {
    if digits.len() > 19 || !(-19..=0).contains(&power) {
        return None;
    }
    let number = digits.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
    let divisor = 10u128.pow(power.unsigned_abs() as u32);
    let shift = u128::from(number).leading_zeros();
    let scaled = u128::from(number) << shift;
    let quotient = scaled / divisor;
    let lost = quotient * divisor != scaled;
    // 10^19 has 64 bits: its quotient may have too few for a correct rounding.
    if lost && quotient >> 65 == 0 {
        return None;
    }
    Some(round(negative, quotient, -(shift as i32), lost))
}

/// A number that is not zero but is rounded to it is out of range.
fn non_zero(number: LongDouble) -> Option<LongDouble> {
    (number.mantissa != 0 || !number.is_finite()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::LongDouble;

    fn human(number: LongDouble) -> String {
        let mut out = Vec::new();
        number.write_human(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(left: &str, right: &str, sum: &str) {
        let [left, right] = [left, right].map(|text| LongDouble::parse(text.as_bytes()).unwrap());
        assert_eq!(human(left.checked_add(right).unwrap()), sum);
    }

    #[test]
    fn adds_as_redis_does() {
        check("10.5", "0.1", "10.6");
        check("5.0e3", "2.0e2", "5200");
        check("3.0", "1.1", "4.1");
        check("1", "-1", "0");
        check("0", "-0", "0");
        check("-0.1", "-0.2", "-0.3");
        check("17179869184", "1.5", "17179869185.5");
        check("0x10", "0x1p-2", "16.25");
        check("1e-30", "0", "0");
        check("-1e-30", "0", "0");
        check("1.00000000000000001", "0", "1.00000000000000001");
        check("18446744073709551616", "1", "18446744073709551616");
        check("1e25", "1e-25", "10000000000000000000000000");
        check(".5", "1.", "1.5");
    }

    #[test]
    fn refuses_what_redis_refuses() {
        for text in [
            "",
            " 1",
            "1 ",
            ".",
            "-",
            "+",
            "nan",
            "1e",
            "1e+",
            "abc",
            "1.2.3",
            "1e5000",
            "1e-5000",
            "0x",
            "0x.p1",
            "--1",
            "1e99999999999999999999",
            "0x1p99999",
            "1_0",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        assert!(!LongDouble::parse(b"-Inf").unwrap().is_finite());
        let [plus, minus] = ["inf", "-infinity"].map(|t| LongDouble::parse(t.as_bytes()).unwrap());
        assert_eq!(plus.checked_add(minus), None);
        assert_eq!(plus.checked_add(plus), Some(plus));
    }

    #[test]
    fn short_and_long_ways_agree() {
        for (short, long) in [
            ("0.1", "0.10000000000000000000000000"),
            ("123456.789", "123456.78900000000000000000000"),
            ("0.3333333333333333333", "3333333333333333333e-19"),
            ("7", "70000000000000000000000e-22"),
            ("1e3", "1000"),
        ] {
            assert_eq!(
                LongDouble::parse(short.as_bytes()),
                LongDouble::parse(long.as_bytes()),
                "{short}"
            );
        }
    }

    #[test]
    fn numbers_have_an_order() {
        let texts = [
            "-inf", "-1e4000", "-2", "-1.5", "-1e-4940", "0", "1e-4940", "1", "1.5", "2", "1e4000",
            "inf",
        ];
        let numbers = texts.map(|text| LongDouble::parse(text.as_bytes()).unwrap());
        for (at, number) in numbers.iter().enumerate() {
            for (other_at, other) in numbers.iter().enumerate() {
                assert_eq!(
                    number.cmp(other),
                    at.cmp(&other_at),
                    "{} {}",
                    texts[at],
                    texts[other_at]
                );
            }
        }
        assert_eq!(LongDouble::parse(b"-0"), Some(LongDouble::ZERO));
        assert!(LongDouble::MAX < numbers[11] && LongDouble::MAX > numbers[10]);
        assert!(LongDouble::MIN > numbers[0] && LongDouble::MIN < numbers[1]);
    }
}
