//! Doubles as Redis 7.2 writes them: the shortest digits that read back as the same number.

/// Appends `value`: whole numbers up to 2^62 in full, others with the fewest digits that mean
/// exactly this number, with an exponent only far away from one; `inf`, `-inf`, `nan`, `-0`.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    if value == 0.0 {
        return out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    }
    let whole_max = (i64::MAX / 2) as f64;
    if value.abs() <= whole_max && value as i64 as f64 == value {
        return crate::write_i64(out, value as i64);
    }
    if value < 0.0 {
        out.push(b'-');
    }
    // Rust prints the shortest digits as `d.ddde-7`; only their arrangement differs.
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    arrange(out, &digits, exponent, value < 0.0);
}

/// `digits` stand for `d.ddd * 10^exponent`.
fn arrange(out: &mut Vec<u8>, digits: &[u8], exponent: i32, negative: bool) {
    let count = digits.len() as i32;
    // Power of ten of the last digit.
    let last = exponent - count + 1;
    let distance = exponent.abs();
    if last >= 0 && distance < count + 7 {
        out.extend_from_slice(digits);
        out.resize(out.len() + last as usize, b'0');
    } else if last < 0 && (last > -7 || distance < 4) {
        let whole = count + last;
        if whole <= 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + whole.unsigned_abs() as usize, b'0');
            out.extend_from_slice(digits);
        } else {
            let (whole, fraction) = digits.split_at(whole as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    } else {
        // 18 characters at most before the exponent, the sign included.
        let shown = digits.len().min(18 - usize::from(negative));
        out.push(digits[0]);
        if shown > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..shown]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        crate::write_i64(out, i64::from(distance));
    }
}

#[cfg(test)]
mod tests {
    use super::write_double;

    #[track_caller]
    fn check(value: f64, expected: &str) {
        let mut out = Vec::new();
        write_double(&mut out, value);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn writes_the_shortest_form() {
        check(0.0, "0");
        check(-0.0, "-0");
        check(3.0, "3");
        check(-17.5, "-17.5");
        check(0.1, "0.1");
        check(0.1 + 0.2, "0.30000000000000004");
        check(1e18, "1000000000000000000");
        check(1e20, "1e+20");
        check(1.5e300, "1.5e+300");
        check(0.000001, "0.000001");
        check(1.234e-5, "1.234e-5");
        check(1e-7, "1e-7");
        check(1234.5678, "1234.5678");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "nan");
        check(f64::MAX, "1.7976931348623157e+308");
        check(5e-324, "5e-324");
    }
}
