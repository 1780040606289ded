//! Arguments and replies as JSON.
//!
//! | reply | JSON |
//! |---|---|
//! | string | a string; `{"bytes": BASE64}` if it is no UTF-8 |
//! | integer | a number; `{"integer": "..."}` if JavaScript cannot hold it |
//! | null, boolean, array | the same |
//! | status, error, double, big number | `{"status": ...}`, `{"error": ...}`, `{"double": "..."}`, `{"big": "..."}` |
//! | map, set, push | `{"map": [[KEY, VALUE], ...]}`, `{"set": [...]}`, `{"push": [...]}` |

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ladon_resp::client::Value;
use serde_json::Value as Json;

/// The largest integer that JavaScript holds exactly.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// Appends a reply.
pub(super) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null | Value::NullArray => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Integer(number) if number.unsigned_abs() <= SAFE_INTEGER_MAX => {
            out.extend_from_slice(number.to_string().as_bytes());
        }
        Value::Integer(number) => tagged(out, "integer", |out| text(out, &number.to_string())),
        Value::Bulk(bytes) => string(out, bytes),
        Value::Verbatim { text, .. } => string(out, text),
        Value::Simple(status) => tagged(out, "status", |out| lossy(out, status)),
        Value::Error(error) => tagged(out, "error", |out| lossy(out, error)),
        Value::BigNumber(digits) => tagged(out, "big", |out| lossy(out, digits)),
        Value::Double(number) => tagged(out, "double", |out| text(out, &number.to_string())),
        Value::Array(values) => list(out, values),
        Value::Set(values) => tagged(out, "set", |out| list(out, values)),
        Value::Push(values) => tagged(out, "push", |out| list(out, values)),
        Value::Map(pairs) => tagged(out, "map", |out| {
            out.push(b'[');
            for (number, (key, value)) in pairs.iter().enumerate() {
                out.extend_from_slice(if number == 0 { b"[" } else { b",[" });
                write(out, key);
                out.push(b',');
                write(out, value);
                out.push(b']');
            }
            out.push(b']');
        }),
        Value::Attributed { value, .. } => write(out, value),
    }
}

/// A string of bytes.
pub(super) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text(out, valid),
        Err(_) => tagged(out, "bytes", |out| text(out, &STANDARD.encode(bytes))),
    }
}

fn lossy(out: &mut Vec<u8>, bytes: &[u8]) {
    text(out, &String::from_utf8_lossy(bytes));
}

fn text(out: &mut Vec<u8>, value: &str) {
    // Writing text to memory cannot fail.
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "a text cannot be written");
}

fn tagged(out: &mut Vec<u8>, tag: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(format!("{{\"{tag}\":").as_bytes());
    write(out);
    out.push(b'}');
}

fn list(out: &mut Vec<u8>, values: &[Value]) {
    out.push(b'[');
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(out, value);
    }
    out.push(b']');
}

/// An argument: a string, or `{"bytes": BASE64}`.
pub(super) fn argument(json: &Json) -> Result<Vec<u8>, String> {
    match json {
        Json::String(text) => Ok(text.as_bytes().to_vec()),
        Json::Object(members) if members.len() == 1 => {
            let encoded = members.get("bytes").and_then(Json::as_str);
            let decoded = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
            decoded.ok_or_else(|| "the member \"bytes\" of an argument has to be base64".to_owned())
        }
        _ => Err("an argument has to be a string, or an object with \"bytes\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reply_is_json() {
        let bulk = |text: &str| Value::Bulk(text.into());
        for (value, expected) in [
            (bulk("a\"\n\u{e9}"), "\"a\\\"\\n\u{e9}\""),
            (Value::Bulk(vec![0xff, 0]), r#"{"bytes":"/wA="}"#),
            (Value::Integer(-7), "-7"),
            (Value::Integer(i64::MIN), r#"{"integer":"-9223372036854775808"}"#),
            (Value::Null, "null"),
            (Value::NullArray, "null"),
            (Value::Bool(true), "true"),
            (Value::Double(1.5), r#"{"double":"1.5"}"#),
            (Value::Double(f64::NEG_INFINITY), r#"{"double":"-inf"}"#),
            (Value::Simple(b"OK".to_vec()), r#"{"status":"OK"}"#),
            (Value::Error(b"ERR \xff".to_vec()), "{\"error\":\"ERR \u{fffd}\"}"),
            (Value::BigNumber(b"12".to_vec()), r#"{"big":"12"}"#),
            (Value::Array(vec![Value::Integer(1), bulk("x")]), r#"[1,"x"]"#),
            (Value::Set(vec![]), r#"{"set":[]}"#),
            (Value::Push(vec![bulk("m")]), r#"{"push":["m"]}"#),
            (
                Value::Map(vec![(bulk("a"), Value::Null), (bulk("b"), Value::Integer(2))]),
                r#"{"map":[["a",null],["b",2]]}"#,
            ),
        ] {
            let mut out = Vec::new();
            write(&mut out, &value);
            assert_eq!(String::from_utf8(out).expect("text"), expected);
            assert!(serde_json::from_str::<Json>(expected).is_ok(), "{expected}");
        }
    }

    #[test]
    fn arguments_are_text_or_bytes() {
        let read = |json: &str| argument(&serde_json::from_str(json).expect("JSON"));
        assert_eq!(read("\"\u{e9}\""), Ok("\u{e9}".as_bytes().to_vec()));
        assert_eq!(read(r#"{"bytes":"/wA="}"#), Ok(vec![0xff, 0]));
        for wrong in ["1", "null", "[]", "{}", r#"{"bytes":1}"#, r#"{"bytes":"?"}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
