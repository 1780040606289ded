//! What a space demands of its tuples: by its own format, and by the parts of its indexes.

use crate::error::{BoxError, ErrorCode};
use crate::field_type::FieldType;
use crate::key::Part;
use ladon_msgpack::{self as msgpack, Value};

/// A field as a space's format describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
    /// Whether it may be nil or absent.
    pub is_nullable: bool,
}

/// The named fields of a space; tuples may have more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// In order.
    pub fields: Vec<Field>,
}

impl Format {
    /// The number of the field with this name, from 0.
    pub fn number_of(&self, name: &[u8]) -> Option<u32> {
        let at = self.fields.iter().position(|field| field.name.as_bytes() == name)?;
        u32::try_from(at).ok()
    }
}

#[derive(Clone, Debug)]
struct Rule {
    kind: FieldType,
    is_nullable: bool,
    name: Option<String>,
}

/// The checks of each tuple that is written.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// By field number.
    fields: Vec<Rule>,
    /// How many fields a tuple has; 0 if any number will do.
    field_count: u32,
}

impl Rules {
    /// The rules of a format, and of these parts of indexes.
    pub fn new<'a>(
        format: &Format,
        field_count: u32,
        parts: impl Iterator<Item = &'a Part>,
    ) -> Rules {
        let mut fields: Vec<Rule> = format
            .fields
            .iter()
            .map(|field| Rule {
                kind: field.kind,
                is_nullable: field.is_nullable,
                name: Some(field.name.clone()),
            })
            .collect();
        for part in parts {
            let at = part.field as usize;
            let is_new = fields.len() <= at;
            while fields.len() <= at {
                fields.push(Rule { kind: FieldType::Any, is_nullable: true, name: None });
            }
            let rule = &mut fields[at];
            // Before another part has named the field, it is as nullable as this one.
            rule.is_nullable = part.is_nullable && (is_new || rule.is_nullable);
            if part.kind.is_within(rule.kind) {
                rule.kind = part.kind;
            }
        }
        Rules { fields, field_count }
    }

    /// Checks that bytes are one MessagePack array with the fields that there must be.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check(&self, tuple: &[u8]) -> Result<(), BoxError> {
        let mut rest = tuple;
        let count = match msgpack::read(&mut rest)? {
            Value::Array(count) => count,
            _ => return Err(BoxError::not_array()),
        };
        if self.field_count != 0 && count != self.field_count {
            let expected = self.field_count;
            let message =
                format!("Tuple field count {count} does not match space field count {expected}");
            return Err(BoxError::new(ErrorCode::EXACT_FIELD_COUNT, message));
        }
        let mut left = count;
        for (at, rule) in self.fields.iter().enumerate() {
            if left == 0 {
                self.check_absent(at)?;
                break;
            }
            left -= 1;
            let before = rest;
            let value = msgpack::read(&mut rest)?;
            let may_be_nil = rule.is_nullable && value == Value::Nil;
            if !may_be_nil && !rule.kind.accepts(&value) {
                return Err(self.wrong_type(at, &value));
            }
            if matches!(value, Value::Array(_) | Value::Map(_)) {
                rest = before;
                msgpack::skip(&mut rest)?;
            }
        }
        for _ in 0..left {
            msgpack::skip(&mut rest)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(msgpack::Error::Trailing.into()) }
    }

    fn check_absent(&self, from: usize) -> Result<(), BoxError> {
        let required = self.fields[from..].iter().position(|rule| !rule.is_nullable);
        let Some(missing) = required else { return Ok(()) };
        let label = self.label(from + missing);
        let message = format!("Tuple field {label} required by space format is missing");
        Err(BoxError::new(ErrorCode::FIELD_MISSING, message))
    }

    fn wrong_type(&self, at: usize, value: &Value<'_>) -> BoxError {
        let (label, expected) = (self.label(at), self.fields[at].kind.name());
        let message = format!(
            "Tuple field {label} type does not match one required by operation: \
             expected {expected}, got {}",
            value.kind().name()
        );
        BoxError::new(ErrorCode::FIELD_TYPE, message)
    }

    fn label(&self, at: usize) -> String {
        match &self.fields[at].name {
            Some(name) => format!("{} ({name})", at + 1),
            None => (at + 1).to_string(),
        }
    }
}
