//! Replies as one readable line.

use ladon_resp::client::{Decoder, Value};

/// A whole reply as one line:
///
/// ```text
/// +OK  -ERR text  :1  "bulk\x00"  nil  nil-array  [1 2]  ~[set]  {key: value}  ,1.5  #t  =txt:text
/// ```
///
/// An empty reply is `(none)`; several replies stand side by side.
pub fn show(mut bytes: &[u8]) -> String {
    let mut shown = Vec::new();
    while !bytes.is_empty() {
        let decoded = Decoder::default().decode(bytes).expect("a well-formed reply");
        let value = decoded.value.expect("a complete reply");
        bytes = &bytes[decoded.consumed..];
        shown.push(show_value(&value));
    }
    if shown.is_empty() { "(none)".to_owned() } else { shown.join(" ") }
}

/// One value as [`show`] has it.
pub fn show_value(value: &Value) -> String {
    let list = |values: &[Value]| values.iter().map(show_value).collect::<Vec<_>>().join(" ");
    let pairs = |pairs: &[(Value, Value)]| {
        let pairs = pairs.iter().map(|(k, v)| format!("{}: {}", show_value(k), show_value(v)));
        pairs.collect::<Vec<_>>().join(", ")
    };
    match value {
        Value::Simple(text) => format!("+{}", text.escape_ascii()),
        Value::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Value::Integer(value) => format!(":{value}"),
        Value::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Null => "nil".to_owned(),
        Value::NullArray => "nil-array".to_owned(),
        Value::Bool(value) => if *value { "#t" } else { "#f" }.to_owned(),
        Value::Double(value) => format!(",{value}"),
        Value::BigNumber(digits) => format!("({}", digits.escape_ascii()),
        Value::Verbatim { format, text } => {
            format!("={}:{}", format.escape_ascii(), text.escape_ascii())
        }
        Value::Array(values) => format!("[{}]", list(values)),
        Value::Set(values) => format!("~[{}]", list(values)),
        Value::Map(entries) => format!("{{{}}}", pairs(entries)),
        Value::Push(values) => format!(">[{}]", list(values)),
        Value::Attributed { attributes, value } => {
            format!("|{{{}}} {}", pairs(attributes), show_value(value))
        }
    }
}
