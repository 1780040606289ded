//! The text of a primary key: its parts, joined by `:`.
//!
//! In each part but the last one, `\` comes before `:` and before `\`. The last part is verbatim,
//! so a key of one string is that string.

use super::{TextError, shown};
use crate::collation::Collation;
use crate::field_type::{FieldType, extension, peek};
use crate::fields;
use crate::key_part::Part;
use crate::text::uuid_text;
use ladon_msgpack::{Value, write};

const SEPARATOR: u8 = b':';
const ESCAPE: u8 = b'\\';

/// Whether a primary key of these parts has a text; otherwise, why it has none.
///
/// # Errors
/// What is wrong with the first part that has none.
pub fn check_parts(parts: &[Part]) -> Result<(), String> {
    for part in parts {
        use FieldType::{Integer, String, Unsigned, Uuid};
        let label = part.label();
        if !part.path.is_empty() {
            return Err(format!("part {label} of the primary key has a path"));
        }
        if !matches!(part.collation, Collation::None | Collation::Binary) {
            return Err(format!("part {label} of the primary key has a collation"));
        }
        if !matches!(part.kind, Unsigned | Integer | String | Uuid) {
            let kind = part.kind.name();
            return Err(format!(
                "part {label} of the primary key is {kind}, and not unsigned, integer, string or \
                 uuid"
            ));
        }
    }
    Ok(())
}

/// The key, a MessagePack array, that a text is for a primary key of these parts.
///
/// # Errors
/// If it is none.
pub fn encode_key(parts: &[Part], text: &[u8]) -> Result<Vec<u8>, TextError> {
    let mut key = Vec::with_capacity(text.len() + 8);
    write::array(&mut key, parts.len() as u32);
    let Some((last, others)) = parts.split_last() else { return Ok(key) };
    let mut rest = text;
    for (at, part) in others.iter().enumerate() {
        let parts = TextError::Parts { expected: parts.len(), found: at + 1 };
        let (value, after) = take_part(rest)?.ok_or(parts)?;
        encode_part(part.kind, &value, &mut key)?;
        rest = after;
    }
    encode_part(last.kind, rest, &mut key)?;
    Ok(key)
}

/// Appends the text of a tuple's key.
pub fn write_key(parts: &[Part], tuple: &[u8], out: &mut Vec<u8>) {
    for (at, part) in parts.iter().enumerate() {
        let value = fields::field(tuple, part.field).and_then(peek);
        match value {
            Some(Value::Str(text)) if at + 1 == parts.len() => out.extend_from_slice(text),
            Some(Value::Str(text)) => {
                for &byte in text {
                    if matches!(byte, SEPARATOR | ESCAPE) {
                        out.push(ESCAPE);
                    }
                    out.push(byte);
                }
            }
            Some(Value::Uint(value)) => out.extend_from_slice(value.to_string().as_bytes()),
            Some(Value::Int(value)) => out.extend_from_slice(value.to_string().as_bytes()),
            Some(Value::Ext(extension::UUID, bytes)) => {
                out.extend_from_slice(uuid_text(bytes).as_bytes());
            }
            _ => debug_assert!(false, "a primary key that has no text"),
        }
        if at + 1 < parts.len() {
            out.push(SEPARATOR);
        }
    }
}

/// The first part, and what follows its separator; `None` if there is no separator.
#[allow(clippy::type_complexity, reason = "two halves of a text")]
fn take_part(text: &[u8]) -> Result<Option<(Vec<u8>, &[u8])>, TextError> {
    let mut part = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            SEPARATOR => return Ok(Some((part, &text[at + 1..]))),
            ESCAPE => match bytes.next() {
                Some((_, &escaped @ (SEPARATOR | ESCAPE))) => part.push(escaped),
                _ => return Err(TextError::Escape),
            },
            other => part.push(other),
        }
    }
    Ok(None)
}

fn encode_part(kind: FieldType, text: &[u8], key: &mut Vec<u8>) -> Result<(), TextError> {
    let before = key.len();
    super::encode_value(kind, text, key)?;
    let canonical = match peek(&key[before..]) {
        Some(Value::Uint(value)) => value.to_string(),
        Some(Value::Int(value)) => value.to_string(),
        Some(Value::Ext(extension::UUID, bytes)) => uuid_text(bytes),
        _ => return Ok(()),
    };
    if canonical.as_bytes() == text {
        return Ok(());
    }
    Err(TextError::NotCanonical { text: shown(text), kind: kind.name(), canonical })
}
