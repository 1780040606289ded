//! MessagePack as text, as Tarantool's messages show tuples: `[1, "a", {"b": null}]`.

mod extensions;

pub(crate) use extensions::HYPHENS;
pub use extensions::uuid_text;

use ladon_msgpack::{self as msgpack, Value};
use std::fmt::Write;

/// Longest text; what does not fit is left out.
const BYTES_MAX: usize = 512;
/// No text is too long, and numbers have all of their digits: it is a value, and not part of a
/// message.
const WHOLE: usize = usize::MAX;

/// The text of one value, cut off at some length.
pub fn of(bytes: &[u8]) -> String {
    up_to(bytes, BYTES_MAX)
}

/// The text of one value, however long.
pub fn whole(bytes: &[u8]) -> String {
    up_to(bytes, WHOLE)
}

fn up_to(mut bytes: &[u8], most: usize) -> String {
    let mut out = String::new();
    // What is open: how many values are left in it, and whether it is a map.
    let mut open: Vec<(u64, bool)> = Vec::new();
    loop {
        let Ok(value) = msgpack::read(&mut bytes) else { return out };
        write_value(&mut out, &value, most);
        match value {
            Value::Array(count) => open.push((u64::from(count), false)),
            Value::Map(count) => open.push((2 * u64::from(count), true)),
            _ => {}
        }
        if out.len() > most {
            let cut = out.floor_char_boundary(most);
            out.truncate(cut);
            out.push_str("...");
            return out;
        }
        let opened = matches!(value, Value::Array(_) | Value::Map(_));
        if !separate(&mut out, &mut open, opened) {
            return out;
        }
    }
}

/// Writes what comes between two values; returns whether another one follows.
fn separate(out: &mut String, open: &mut Vec<(u64, bool)>, mut opened: bool) -> bool {
    while let Some((left, is_map)) = open.last_mut() {
        if *left == 0 {
            out.push(if *is_map { '}' } else { ']' });
            open.pop();
            opened = false;
            continue;
        }
        if !opened {
            out.push_str(if *is_map && *left % 2 == 1 { ": " } else { ", " });
        }
        *left -= 1;
        return true;
    }
    false
}

fn write_value(out: &mut String, value: &Value<'_>, most: usize) {
    // Writing to a `String` does not fail.
    let _ = match value {
        Value::Nil => write!(out, "null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Uint(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Float(value) if most == WHOLE => write!(out, "{value}"),
        Value::Double(value) if most == WHOLE => write!(out, "{value}"),
        Value::Float(value) => write_number(out, f64::from(*value)),
        Value::Double(value) => write_number(out, *value),
        Value::Str(value) => write_string(out, value, most),
        Value::Bin(value) => write_string(out, value, most),
        Value::Array(_) => write!(out, "["),
        Value::Map(_) => write!(out, "{{"),
        Value::Ext(kind, bytes) if extensions::write(out, *kind, bytes) => Ok(()),
        Value::Ext(kind, bytes) => write!(out, "(extension: type {kind}, len {})", bytes.len()),
    };
}

/// A floating-point number with six digits.
fn write_number(out: &mut String, value: f64) -> std::fmt::Result {
    out.push_str(&number_text(value, 6));
    Ok(())
}

/// A floating-point number with so many digits at most, as C's `%.6g` has it.
pub fn number_text(value: f64, digits: u8) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let behind_first = usize::from(digits.max(1) - 1);
    let rounded = format!("{value:.behind_first$e}");
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..i32::from(digits)).contains(&exponent) {
        let decimals = (i32::from(digits) - 1 - exponent) as usize;
        return without_zeros(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs())
}

/// The text of an extension that Tarantool knows: a decimal, UUID, datetime or interval. `None` if
/// it is another one, or its bytes are damaged.
pub fn extension_text(kind: i8, bytes: &[u8]) -> Option<String> {
    let mut out = String::new();
    extensions::write(&mut out, kind, bytes).then_some(out)
}

fn write_string(out: &mut String, value: &[u8], most: usize) -> std::fmt::Result {
    let value = &value[..value.len().min(most)];
    out.push('"');
    for c in String::from_utf8_lossy(value).chars() {
        match c {
            '"' | '\\' | '/' => write!(out, "\\{c}")?,
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use ladon_msgpack::write;

    #[test]
    fn values_look_as_in_tarantools_messages() {
        let mut bytes = Vec::new();
        write::array(&mut bytes, 5);
        write::uint(&mut bytes, 1);
        write::str(&mut bytes, b"a\"b\n");
        write::map(&mut bytes, 2);
        write::str(&mut bytes, b"k");
        write::array(&mut bytes, 0);
        write::int(&mut bytes, -3);
        write::nil(&mut bytes);
        write::double(&mut bytes, 1.5);
        write::bool(&mut bytes, true);
        assert_eq!(super::of(&bytes), r#"[1, "a\"b\n", {"k": [], -3: null}, 1.5, true]"#);
    }

    #[test]
    fn numbers_have_six_digits_as_in_c() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (0.1, "0.1"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1234567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e300, "1e+300"),
            (-1e-300, "-1e-300"),
            (2.0 / 3.0, "0.666667"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut bytes = Vec::new();
            write::double(&mut bytes, value);
            assert_eq!(super::of(&bytes), expected);
        }
        assert_eq!(
            super::of(&[0xd8, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
            "01020304-0506-0708-090a-0b0c0d0e0f10"
        );
        assert_eq!(super::of(b"\xa5/\x08\x0c\x01\x7f"), r#""\/\b\f\u0001\u007f""#);
        assert_eq!(super::of(&[0xd4, 77, 0]), "(extension: type 77, len 1)");
    }

    #[test]
    fn long_tuples_are_cut() {
        let mut bytes = Vec::new();
        write::array(&mut bytes, 1);
        write::str(&mut bytes, &[b'x'; 100_000]);
        assert!(super::of(&bytes).len() < 600);
    }
}
