//! The decimal form of integers, as strings, set members and list elements may be kept.

/// Reads a canonical decimal integer: no sign but `-`, no leading zeros, no spaces.
#[inline]
pub fn parse_int(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    let (&first, rest) = digits.split_first()?;
    if digits.len() > 19 || !first.is_ascii_digit() {
        return None;
    }
    if first == b'0' {
        return (rest.is_empty() && !negative).then_some(0);
    }
    let mut value = u64::from(first - b'0');
    for &digit in rest {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Bytes that the longest integer takes.
pub(crate) const INT_BYTES_MAX: usize = 20;

/// The decimal form, written to the end of `digits`.
#[inline]
pub(crate) fn format_int(int: i64, digits: &mut [u8; INT_BYTES_MAX]) -> &[u8] {
    let mut at = write_digits(int.unsigned_abs(), digits);
    if int < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

/// The decimal form of an unsigned integer, written to the end of `digits`.
#[inline]
pub(crate) fn format_u64(int: u64, digits: &mut [u8; INT_BYTES_MAX]) -> &[u8] {
    let at = write_digits(int, digits);
    &digits[at..]
}

/// Returns where the digits begin.
#[inline]
fn write_digits(mut rest: u64, digits: &mut [u8; INT_BYTES_MAX]) -> usize {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return at;
        }
    }
}

/// Appends the decimal form.
pub(crate) fn write_int(int: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(format_int(int, &mut [0; INT_BYTES_MAX]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_canonical() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("01", None),
            ("-0", None),
            ("+1", None),
            ("", None),
            ("-", None),
            ("1 ", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_int(text.as_bytes()), value, "{text}");
            if let Some(value) = value {
                let mut out = Vec::new();
                write_int(value, &mut out);
                assert_eq!(out, text.as_bytes());
            }
        }
    }
}
