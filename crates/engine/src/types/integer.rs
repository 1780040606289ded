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
    let mut at = write_digits(int.unsigned_abs(), digits, INT_BYTES_MAX);
    if int < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

/// The numbers below 100, two digits each: half as many divisions as with single digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes the decimal form so that it ends at `end`; returns where it begins.
#[inline]
pub(crate) fn write_digits<const N: usize>(
    mut rest: u64,
    digits: &mut [u8; N],
    end: usize,
) -> usize {
    let mut at = end;
    while rest >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[rest as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    at
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

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let powers = (0..20).map(|power| 10u64.pow(power));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power / 7]);
        for int in around.chain([u64::MAX, u64::MAX - 1]) {
            let mut digits = [b'-'; INT_BYTES_MAX + 3];
            let at = write_digits(int, &mut digits, INT_BYTES_MAX + 1);
            let expected = format!("{int}--");
            assert_eq!(digits[at..], *expected.as_bytes());
            assert!(digits[..at].iter().all(|byte| *byte == b'-'));
        }
    }
}
