//! A reply as a value.

/// What a server answered. Text is bytes, as Redis promises no encoding.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`: a status.
    Simple(Vec<u8>),
    /// `-` or `!`: an error, code included.
    Error(Vec<u8>),
    /// `:`.
    Integer(i64),
    /// `$`: a string.
    Bulk(Vec<u8>),
    /// `_`, or RESP2's `$-1`.
    Null,
    /// RESP2's `*-1`.
    NullArray,
    /// `#`.
    Bool(bool),
    /// `,`.
    Double(f64),
    /// `(`: decimal digits, possibly with a sign.
    BigNumber(Vec<u8>),
    /// `=`: text with its format.
    Verbatim {
        /// Such as `txt` or `mkd`.
        format: [u8; 3],
        /// The text itself.
        text: Vec<u8>,
    },
    /// `*`.
    Array(Vec<Value>),
    /// `~`.
    Set(Vec<Value>),
    /// `%`: pairs in the order in which they came.
    Map(Vec<(Value, Value)>),
    /// `>`: a message that no request asked for.
    Push(Vec<Value>),
    /// `|`: remarks, and the reply that they are about.
    Attributed {
        /// The remarks.
        attributes: Vec<(Value, Value)>,
        /// The reply.
        value: Box<Value>,
    },
}

impl Value {
    /// The bytes of a status, string, big number or verbatim text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(bytes) | Value::Bulk(bytes) | Value::BigNumber(bytes) => Some(bytes),
            Value::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether the server refused.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }

    /// The elements of an array, set or push.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) | Value::Set(values) | Value::Push(values) => Some(values),
            _ => None,
        }
    }
}
