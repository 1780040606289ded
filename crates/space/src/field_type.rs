//! The types of fields, and which values each of them accepts.

use crate::decimal::Decimal;
use ladon_msgpack::{self as msgpack, Kind, Value};

/// The type of a field or of a key's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Tarantool's")]
pub enum FieldType {
    Any,
    Unsigned,
    String,
    Number,
    Double,
    Integer,
    Boolean,
    Varbinary,
    Scalar,
    Decimal,
    Uuid,
    Datetime,
    Interval,
    Array,
    Map,
}

const NAMES: [(&str, FieldType); 15] = [
    ("any", FieldType::Any),
    ("unsigned", FieldType::Unsigned),
    ("string", FieldType::String),
    ("number", FieldType::Number),
    ("double", FieldType::Double),
    ("integer", FieldType::Integer),
    ("boolean", FieldType::Boolean),
    ("varbinary", FieldType::Varbinary),
    ("scalar", FieldType::Scalar),
    ("decimal", FieldType::Decimal),
    ("uuid", FieldType::Uuid),
    ("datetime", FieldType::Datetime),
    ("interval", FieldType::Interval),
    ("array", FieldType::Array),
    ("map", FieldType::Map),
];

/// Numbers of MessagePack extensions.
pub mod extension {
    /// A decimal.
    pub const DECIMAL: i8 = 1;
    /// A UUID.
    pub const UUID: i8 = 2;
    /// A date and time.
    pub const DATETIME: i8 = 4;
    /// An interval of time.
    pub const INTERVAL: i8 = 6;
}

impl FieldType {
    /// The type that a definition names: in any case, and with the abbreviations `num`, `uint`,
    /// `str`, `int` and `*`.
    pub fn named(name: &[u8]) -> Option<FieldType> {
        let name = name.to_ascii_lowercase();
        let full: &[u8] = match &name[..] {
            b"num" | b"uint" => b"unsigned",
            b"str" => b"string",
            b"int" => b"integer",
            b"bool" => b"boolean",
            b"*" => b"any",
            other => other,
        };
        NAMES.iter().find(|(name, _)| name.as_bytes() == full).map(|(_, kind)| *kind)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("any", |(name, _)| name)
    }

    /// Whether a field of this type can be a part of a TREE or HASH index.
    pub fn is_indexable(self) -> bool {
        !matches!(self, FieldType::Any | FieldType::Array | FieldType::Map | FieldType::Interval)
    }

    /// Whether every value of this type is one of `other`'s.
    pub fn is_within(self, other: FieldType) -> bool {
        use FieldType::{
            Any, Array, Decimal, Double, Integer, Interval, Map, Number, Scalar, Unsigned,
        };
        self == other
            || match other {
                Any => true,
                Scalar => !matches!(self, Any | Array | Map | Interval),
                Number => matches!(self, Unsigned | Integer | Double | Decimal),
                Integer => self == Unsigned,
                _ => false,
            }
    }

    /// Whether a field of this type may have this value, the next of `bytes`.
    #[inline]
    pub fn accepts(self, value: &Value<'_>) -> bool {
        match self {
            FieldType::Any => true,
            FieldType::Unsigned => matches!(value, Value::Uint(_)),
            FieldType::String => matches!(value, Value::Str(_)),
            FieldType::Integer => matches!(value, Value::Uint(_) | Value::Int(_)),
            FieldType::Double => matches!(value, Value::Double(_)),
            FieldType::Boolean => matches!(value, Value::Bool(_)),
            FieldType::Varbinary => matches!(value, Value::Bin(_)),
            FieldType::Array => matches!(value, Value::Array(_)),
            FieldType::Map => matches!(value, Value::Map(_)),
            FieldType::Number => is_number(value),
            FieldType::Decimal => is_extension(value, extension::DECIMAL),
            FieldType::Uuid => is_extension(value, extension::UUID),
            FieldType::Datetime => is_extension(value, extension::DATETIME),
            FieldType::Interval => is_extension(value, extension::INTERVAL),
            FieldType::Scalar => {
                is_number(value)
                    || matches!(value, Value::Str(_) | Value::Bin(_) | Value::Bool(_))
                    || is_extension(value, extension::UUID)
                    || is_extension(value, extension::DATETIME)
            }
        }
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value.kind(), Kind::Uint | Kind::Int | Kind::Float | Kind::Double)
        || is_extension(value, extension::DECIMAL)
}

/// Whether it is this extension, and its bytes are what such an extension has.
fn is_extension(value: &Value<'_>, kind: i8) -> bool {
    let Value::Ext(found, bytes) = value else { return false };
    *found == kind
        && match kind {
            extension::DECIMAL => Decimal::unpack(bytes).is_some(),
            extension::UUID => bytes.len() == 16,
            extension::DATETIME => matches!(bytes.len(), 8 | 16),
            _ => true,
        }
}

/// The value at the front, without what is in it if it is an array or a map.
#[inline]
pub fn peek<'a>(mut bytes: &'a [u8]) -> Option<Value<'a>> {
    msgpack::read(&mut bytes).ok()
}
