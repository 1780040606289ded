//! Doubles from text, as C's `strtod` reads them and Redis uses it.

/// Parses a double that is the whole text: decimal or hexadecimal, with or without an exponent, or
/// infinite. Not NaN, and not a number that overflows to infinity or underflows to zero.
#[inline]
pub fn parse_double(text: &[u8]) -> Option<f64> {
    // Most scores are such; up to 2^53 every integer is a double.
    if text.len() <= 15
        && let Some(int) = ladon_resp::parse_i64(text)
    {
        return Some(int as f64);
    }
    let number = Number::parse(text)?;
    (!number.out_of_range).then_some(number.value)
}

/// Parses a double as one end of a range of scores: leading spaces are skipped, an empty text is
/// zero, overflow is infinite and underflow is zero.
pub fn parse_bound(text: &[u8]) -> Option<f64> {
    // C's texts end at their first zero byte.
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    Number::parse(&text[start..]).map(|number| number.value)
}

struct Number {
    value: f64,
    /// Infinity or zero is returned for what no double can represent.
    out_of_range: bool,
}

impl Number {
    fn parse(text: &[u8]) -> Option<Number> {
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (value, is_zero) = match rest {
            [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits)?,
            _ => decimal(rest)?,
        };
        let infinite = rest.first().is_some_and(u8::is_ascii_alphabetic);
        let out_of_range = value.is_infinite() && !infinite || value == 0.0 && !is_zero;
        Some(Number { value: if negative { -value } else { value }, out_of_range })
    }
}

/// The value without a sign, and whether all its digits are zero.
fn decimal(text: &[u8]) -> Option<(f64, bool)> {
    if !text.first()?.is_ascii_alphanumeric() && text[0] != b'.' {
        return None;
    }
    let value: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next()?;
    (!value.is_nan()).then(|| (value, mantissa.iter().all(|byte| matches!(byte, b'0' | b'.'))))
}

/// As `decimal`; `text` follows the `0x`.
fn hexadecimal(text: &[u8]) -> Option<(f64, bool)> {
    let (digits, exponent) = match text.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (mut mantissa, mut power, mut seen, mut point) = (0u128, 0i64, false, false);
    for &byte in digits {
        if byte == b'.' && !point {
            point = true;
            continue;
        }
        let digit = u128::from((byte as char).to_digit(16)?);
        seen = true;
        if mantissa >> 120 == 0 {
            mantissa = mantissa << 4 | digit;
            power -= if point { 4 } else { 0 };
        } else {
            // Digits below the precision: only whether any is set counts.
            mantissa |= u128::from(digit != 0);
            power += if point { 0 } else { 4 };
        }
    }
    let power = power.saturating_add(exponent).clamp(-3000, 3000) as i32;
    // In two steps, because a power alone may overflow where the product does not.
    let value = mantissa as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
    seen.then_some((value, mantissa == 0))
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits
        .iter()
        .fold(0i64, |size, digit| size.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if text[0] == b'-' { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_strtod_reads() {
        for (text, value) in [
            ("1", Some(1.0)),
            ("-0", Some(-0.0)),
            ("+1.5", Some(1.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1e3", Some(1000.0)),
            ("1E-2", Some(0.01)),
            ("9007199254740993", Some(9007199254740992.0)),
            ("inf", Some(f64::INFINITY)),
            ("-INF", Some(f64::NEG_INFINITY)),
            ("+Infinity", Some(f64::INFINITY)),
            ("0x10", Some(16.0)),
            ("-0x1.8p1", Some(-3.0)),
            ("0x.8", Some(0.5)),
            ("4.9e-324", Some(5e-324)),
            ("0e400", Some(0.0)),
            ("1e400", None),
            ("-1e400", None),
            ("1e-400", None),
            ("0x1p3000", None),
            ("nan", None),
            ("-nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1x", None),
            ("0x", None),
            ("0x1p", None),
            (".", None),
            ("e5", None),
            ("--1", None),
            ("+-1", None),
            ("infinit", None),
        ] {
            let read = parse_double(text.as_bytes());
            assert_eq!(read.map(f64::to_bits), value.map(f64::to_bits), "{text}");
        }
    }

    #[test]
    fn bounds_are_read_less_strictly() {
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b" \t7"), Some(7.0));
        assert_eq!(parse_bound(b"1e400"), Some(f64::INFINITY));
        assert_eq!(parse_bound(b"1e-400"), Some(0.0));
        assert_eq!(parse_bound(b"1\0x"), Some(1.0));
        assert_eq!(parse_bound(b" "), None);
        assert_eq!(parse_bound(b"nan"), None);
        assert_eq!(parse_bound(b"7 "), None);
    }
}
