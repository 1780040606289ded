//! Tuples as JSON and back: objects by the names of the space's format, arrays where there is none.
//!
//! Bytes are base64; UUIDs, decimals and datetimes are strings.

use crate::shared::tuple;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ladon_msgpack::{self as msgpack, Value as Packed, write};
use ladon_space::as_text::encode_value;
use ladon_space::fields::Fields;
use ladon_space::{FieldType, Space, extension_text};
use serde_json::{Map, Number, Value};

/// Deeper values are shown as text.
const DEPTH_MAX: usize = 64;

/// A tuple as JSON.
pub(super) fn of_tuple(space: &Space, bytes: &[u8]) -> Value {
    if space.def().format.fields.is_empty() {
        return Value::Array(Fields::of(bytes).map(of_value).collect());
    }
    let mut object = Map::new();
    for (number, value) in Fields::of(bytes).enumerate() {
        object.insert(field_name(space, number), of_value(value));
    }
    Value::Object(object)
}

fn of_value(mut bytes: &[u8]) -> Value {
    value_from(&mut bytes, 0)
}

fn value_from(bytes: &mut &[u8], depth: usize) -> Value {
    let whole = *bytes;
    let Ok(value) = msgpack::read(bytes) else { return Value::Null };
    match value {
        Packed::Nil => Value::Null,
        Packed::Bool(value) => Value::Bool(value),
        Packed::Uint(value) => Value::from(value),
        Packed::Int(value) => Value::from(value),
        Packed::Float(value) => number(f64::from(value)),
        Packed::Double(value) => number(value),
        Packed::Str(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        Packed::Bin(bytes) => Value::String(STANDARD.encode(bytes)),
        Packed::Ext(kind, data) => extension_text(kind, data).map_or(Value::Null, Value::String),
        Packed::Array(_) | Packed::Map(_) if depth == DEPTH_MAX => {
            *bytes = whole;
            let one = msgpack::take(bytes).unwrap_or_default();
            Value::String(ladon_space::value_text(one))
        }
        Packed::Array(count) => {
            Value::Array((0..count).map(|_| value_from(bytes, depth + 1)).collect())
        }
        Packed::Map(count) => {
            let mut object = Map::new();
            for _ in 0..count {
                let name = match value_from(bytes, depth + 1) {
                    Value::String(name) => name,
                    other => other.to_string(),
                };
                object.insert(name, value_from(bytes, depth + 1));
            }
            Value::Object(object)
        }
    }
}

/// What is no number in JSON is null.
fn number(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// The tuple that a document is: an object by the format's names, or an array. Fields that the object
/// leaves out are those of `known` (by number), or nil; behind the last one there are none.
pub(super) fn to_tuple(
    space: &Space,
    document: &Value,
    known: &[(u32, Vec<u8>)],
) -> Result<Vec<u8>, String> {
    let mut values: Vec<Option<Vec<u8>>> = Vec::new();
    let mut set = |number: usize, value: Vec<u8>| {
        if values.len() <= number {
            values.resize(number + 1, None);
        }
        values[number] = Some(value);
    };
    for (number, value) in known {
        set(*number as usize, value.clone());
    }
    match document {
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                set(number, encoded(space, number, value)?);
            }
        }
        Value::Object(object) => {
            for (name, value) in object {
                let number = super::number_of(space, name)? as usize;
                set(number, encoded(space, number, value)?);
            }
        }
        _ => return Err("a tuple is an object or an array".to_owned()),
    }
    let mut tuple = Vec::new();
    let count = u32::try_from(values.len()).map_err(|_| "too many fields".to_owned())?;
    write::array(&mut tuple, count);
    for value in values {
        match value {
            Some(value) => tuple.extend_from_slice(&value),
            None => write::nil(&mut tuple),
        }
    }
    Ok(tuple)
}

/// A value as the field of this number has it.
pub(super) fn encoded(space: &Space, number: usize, value: &Value) -> Result<Vec<u8>, String> {
    let field = space.def().format.fields.get(number);
    let kind = field.map_or(FieldType::Any, |field| field.kind);
    let mut out = Vec::new();
    encode(value, kind, &mut out)
        .map_err(|why| format!("field {:?}: {why}", field_name(space, number)))?;
    Ok(out)
}

/// The name of a field, as text.
pub(super) fn field_name(space: &Space, number: usize) -> String {
    String::from_utf8_lossy(&tuple::name_of(space, number)).into_owned()
}

fn encode(value: &Value, kind: FieldType, out: &mut Vec<u8>) -> Result<(), String> {
    let of_text = |text: &str, out: &mut Vec<u8>| {
        encode_value(kind, text.as_bytes(), out).map_err(|error| error.to_string())
    };
    match (kind, value) {
        (FieldType::Varbinary, Value::String(text)) => {
            let bytes = STANDARD.decode(text).map_err(|_| "bytes are written as base64")?;
            write::bin(out, &bytes);
            Ok(())
        }
        (FieldType::Decimal, Value::Number(number)) => of_text(&number.to_string(), out),
        (FieldType::Decimal | FieldType::Uuid, Value::String(text)) => of_text(text, out),
        (FieldType::Double, Value::Number(number)) => {
            write::double(out, number.as_f64().unwrap_or(f64::NAN));
            Ok(())
        }
        (FieldType::Datetime | FieldType::Interval, Value::String(_)) => {
            Err(format!("values of type {} are written over IPROTO only", kind.name()))
        }
        // A whole number may be written as 7.0.
        (FieldType::Unsigned | FieldType::Integer | FieldType::Number, Value::Number(number))
            if let Some(whole) = whole(number) =>
        {
            write::int(out, whole);
            Ok(())
        }
        // The space checks whether the type is its own.
        _ => {
            natural(value, out);
            Ok(())
        }
    }
}

/// The whole number that a number with a point is.
fn whole(number: &Number) -> Option<i64> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    // Beyond this, not every whole number is one of these.
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// A value as its own kind. The depth is that of the document, which the parser bounds.
fn natural(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => write::nil(out),
        Value::Bool(value) => write::bool(out, *value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => write::uint(out, value),
            (None, Some(value)) => write::int(out, value),
            (None, None) => write::double(out, number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => write::str(out, text.as_bytes()),
        // A document has fewer elements than bytes, and those are bounded.
        Value::Array(list) => {
            write::array(out, u32::try_from(list.len()).unwrap_or(u32::MAX));
            list.iter().for_each(|value| natural(value, out));
        }
        Value::Object(object) => {
            write::map(out, u32::try_from(object.len()).unwrap_or(u32::MAX));
            for (name, value) in object {
                write::str(out, name.as_bytes());
                natural(value, out);
            }
        }
    }
}
