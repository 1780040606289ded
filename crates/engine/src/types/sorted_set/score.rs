//! A score's long decimal form.

/// Appends a score with up to 17 digits, as C's `%.17g` does: what Redis' digests and its scans of
/// large sorted sets show.
pub fn write_score_17(out: &mut Vec<u8>, score: f64) {
    const DIGITS: i32 = 17;
    if !score.is_finite() {
        let text: &[u8] = match score {
            f64::INFINITY => b"inf",
            f64::NEG_INFINITY => b"-inf",
            _ => b"nan",
        };
        return out.extend_from_slice(text);
    }
    if score.is_sign_negative() {
        out.push(b'-');
    }
    let text = format!("{:.*e}", DIGITS as usize - 1, score.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let digits = match digits.iter().rposition(|&digit| digit != b'0') {
        Some(last) => &digits[..=last],
        None => &b"0"[..],
    };
    if !(-4..DIGITS).contains(&exponent) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let whole = exponent as usize + 1;
        out.extend_from_slice(&digits[..whole.min(digits.len())]);
        match digits.get(whole..) {
            Some([]) => {}
            Some(fraction) => {
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
            None => out.resize(out.len() + whole - digits.len(), b'0'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write_score_17;

    #[test]
    fn seventeen_digits_as_c_has_them() {
        for (score, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (100.0, "100"),
            (-17.5, "-17.5"),
            (0.1, "0.10000000000000001"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (123456789.125, "123456789.125"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut out = Vec::new();
            write_score_17(&mut out, score);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
