//! One value, or the head of an array or map.

/// The type of a value, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub enum Kind {
    Nil,
    Bool,
    /// An unsigned integer, or a signed one that is not negative.
    Uint,
    /// A negative integer.
    Int,
    Float,
    Double,
    Str,
    Bin,
    Array,
    Map,
    Ext,
}

impl Kind {
    /// The name that Tarantool's messages use.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Nil => "nil",
            Kind::Bool => "boolean",
            Kind::Uint => "unsigned",
            Kind::Int => "integer",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::Str => "string",
            Kind::Bin => "varbinary",
            Kind::Array => "array",
            Kind::Map => "map",
            Kind::Ext => "extension",
        }
    }
}

/// A scalar value, or the head of an array or map whose elements follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer that is not negative, whichever of the formats it was sent in.
    Uint(u64),
    /// A negative integer.
    Int(i64),
    /// A floating-point number of 32 bits.
    Float(f32),
    /// A floating-point number of 64 bits.
    Double(f64),
    /// A string, which need not be UTF-8.
    Str(&'a [u8]),
    /// Bytes.
    Bin(&'a [u8]),
    /// An array of this many values, which follow.
    Array(u32),
    /// A map of this many pairs, which follow.
    Map(u32),
    /// An extension: its type and its bytes.
    Ext(i8, &'a [u8]),
}

impl Value<'_> {
    /// The value's type.
    pub const fn kind(&self) -> Kind {
        match self {
            Value::Nil => Kind::Nil,
            Value::Bool(_) => Kind::Bool,
            Value::Uint(_) => Kind::Uint,
            Value::Int(_) => Kind::Int,
            Value::Float(_) => Kind::Float,
            Value::Double(_) => Kind::Double,
            Value::Str(_) => Kind::Str,
            Value::Bin(_) => Kind::Bin,
            Value::Array(_) => Kind::Array,
            Value::Map(_) => Kind::Map,
            Value::Ext(..) => Kind::Ext,
        }
    }
}
