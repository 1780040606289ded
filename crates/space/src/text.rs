//! MessagePack as text, as Tarantool's messages show tuples: `[1, "a", {"b": null}]`.

use ladon_msgpack::{self as msgpack, Value};
use std::fmt::Write;

/// Longest text; what does not fit is left out.
const BYTES_MAX: usize = 512;

/// The text of one value, cut off at some length.
pub fn of(bytes: &[u8]) -> String {
    up_to(bytes, BYTES_MAX)
}

/// The text of one value, however long.
pub(crate) fn whole(bytes: &[u8]) -> String {
    up_to(bytes, usize::MAX)
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
        Value::Float(value) => write!(out, "{value}"),
        Value::Double(value) => write!(out, "{value}"),
        Value::Str(value) => write_string(out, value, most),
        Value::Bin(value) => write_string(out, value, most),
        Value::Array(_) => write!(out, "["),
        Value::Map(_) => write!(out, "{{"),
        Value::Ext(1, bytes) => match crate::decimal::Decimal::unpack(bytes) {
            Some(decimal) => write!(out, "{decimal}"),
            None => write!(out, "(extension: type 1, len {})", bytes.len()),
        },
        Value::Ext(kind, bytes) => write!(out, "(extension: type {kind}, len {})", bytes.len()),
    };
}

fn write_string(out: &mut String, value: &[u8], most: usize) -> std::fmt::Result {
    let value = &value[..value.len().min(most)];
    out.push('"');
    for c in String::from_utf8_lossy(value).chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
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
    fn long_tuples_are_cut() {
        let mut bytes = Vec::new();
        write::array(&mut bytes, 1);
        write::str(&mut bytes, &[b'x'; 100_000]);
        assert!(super::of(&bytes).len() < 600);
    }
}
