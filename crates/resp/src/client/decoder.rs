//! Bytes to reply values, as they come in.
//!
//! Invariant: a whole element is taken off the input at once and kept on a stack of open
//! aggregates, so that a long reply that arrives in many pieces costs linear work. Depth, counts
//! and lengths are bounded; memory follows what arrived. RESP3's "streamed" types (`$?`, `*?`),
//! which no server sends, are refused.

use super::value::Value;
use crate::number::parse_i64;

/// Bounds on one reply.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// Aggregates inside aggregates.
    pub depth_max: usize,
    /// Elements of one aggregate (a map's pair counts twice).
    pub count_max: usize,
    /// Bytes of one string.
    pub bulk_bytes_max: usize,
    /// Bytes of one line (a status, an error, a number).
    pub line_bytes_max: usize,
}

impl Default for DecodeLimits {
    /// Generous: what Redis itself can answer.
    fn default() -> DecodeLimits {
        DecodeLimits {
            depth_max: 64,
            count_max: i32::MAX as usize,
            bulk_bytes_max: 1 << 30,
            line_bytes_max: 1 << 20,
        }
    }
}

/// Why bytes are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A byte that begins no type.
    #[error("unknown reply type {0:#04x}")]
    Type(u8),
    /// A length, a number, a boolean or a verbatim string's format that is none.
    #[error("malformed reply of type {:?}", char::from(*.0))]
    Malformed(u8),
    /// One of [`DecodeLimits`].
    #[error("reply exceeds the limit on its {0}")]
    TooBig(&'static str),
}

/// What became of the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Bytes to drop from the front of the input, also when no value is complete yet.
    pub consumed: usize,
    /// The reply, once it is complete.
    pub value: Option<Value>,
}

/// Decodes one connection's replies.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: DecodeLimits,
    open: Vec<Open>,
}

/// An aggregate with elements still to come.
#[derive(Debug)]
struct Open {
    kind: u8,
    missing: usize,
    values: Vec<Value>,
}

enum Element {
    Value(Value),
    Aggregate { kind: u8, count: usize },
}

impl Decoder {
    /// A decoder at the start of a reply.
    pub fn new(limits: DecodeLimits) -> Decoder {
        Decoder { limits, open: Vec::new() }
    }

    /// Takes what it can from the front of `input`: at most one whole reply. The caller drops
    /// `consumed` bytes and calls again with the rest and what came in behind it. After an error
    /// the stream has no known boundary any more.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, DecodeError> {
        let mut consumed = 0;
        while let Some((element, length)) = element(&input[consumed..], &self.limits)? {
            consumed += length;
            let value = match element {
                Element::Value(value) => Some(value),
                Element::Aggregate { kind, count } => self.begin(kind, count)?,
            };
            if let Some(value) = value.and_then(|value| self.add(value)) {
                return Ok(Decoded { consumed, value: Some(value) });
            }
        }
        Ok(Decoded { consumed, value: None })
    }

    /// Decodes `input` as exactly one reply: for tests.
    pub fn decode_all(input: &[u8]) -> Result<Option<Value>, DecodeError> {
        let decoded = Decoder::default().decode(input)?;
        Ok(decoded.value.filter(|_| decoded.consumed == input.len()))
    }

    fn begin(&mut self, kind: u8, count: usize) -> Result<Option<Value>, DecodeError> {
        if count > self.limits.count_max {
            return Err(DecodeError::TooBig("count"));
        }
        if count == 0 {
            return Ok(Some(aggregate(kind, Vec::new())));
        }
        if self.open.len() == self.limits.depth_max {
            return Err(DecodeError::TooBig("depth"));
        }
        self.open.push(Open { kind, missing: count, values: Vec::new() });
        Ok(None)
    }

    /// Puts a finished value where it belongs; gives it back if it belongs nowhere.
    fn add(&mut self, mut value: Value) -> Option<Value> {
        while let Some(top) = self.open.last_mut() {
            top.values.push(value);
            top.missing -= 1;
            if top.missing != 0 {
                return None;
            }
            let Open { kind, values, .. } = self.open.pop()?;
            value = aggregate(kind, values);
        }
        Some(value)
    }
}

/// `|n` is treated as an aggregate of its pairs and the reply behind them: 2n + 1 elements.
fn aggregate(kind: u8, mut values: Vec<Value>) -> Value {
    match kind {
        b'~' => Value::Set(values),
        b'>' => Value::Push(values),
        b'%' => Value::Map(pairs(values)),
        b'|' => {
            let value = Box::new(values.pop().unwrap_or(Value::Null));
            Value::Attributed { attributes: pairs(values), value }
        }
        _ => Value::Array(values),
    }
}

fn pairs(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut values = values.into_iter();
    std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect()
}

/// The element at the front and its length; `None` if it is not all there yet.
fn element(input: &[u8], limits: &DecodeLimits) -> Result<Option<(Element, usize)>, DecodeError> {
    let Some(kind) = input.first().copied() else { return Ok(None) };
    if !b"+-:$_#,(=!*~%>|".contains(&kind) {
        return Err(DecodeError::Type(kind));
    }
    let malformed = DecodeError::Malformed(kind);
    let Some(end) = memchr::memchr(b'\r', input) else {
        if input.len() > limits.line_bytes_max {
            return Err(DecodeError::TooBig("line"));
        }
        return Ok(None);
    };
    let (line, next) = (&input[1..end], end + 2);
    match input.get(end + 1) {
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return Err(malformed),
    }
    let value = match kind {
        b'+' => Value::Simple(line.to_vec()),
        b'-' => Value::Error(line.to_vec()),
        b':' => Value::Integer(parse_i64(line).ok_or(malformed)?),
        b'_' if line.is_empty() => Value::Null,
        b'#' if line == b"t" => Value::Bool(true),
        b'#' if line == b"f" => Value::Bool(false),
        b'(' => Value::BigNumber(line.to_vec()),
        b',' => {
            let text = std::str::from_utf8(line).map_err(|_| malformed)?;
            Value::Double(text.parse().map_err(|_| malformed)?)
        }
        b'$' | b'=' | b'!' => {
            let length = match (kind, parse_i64(line).ok_or(malformed)?) {
                (b'$', -1) => return Ok(Some((Element::Value(Value::Null), next))),
                (_, length) => usize::try_from(length).map_err(|_| malformed)?,
            };
            if length > limits.bulk_bytes_max {
                return Err(DecodeError::TooBig("string"));
            }
            let Some(rest) = input.get(next..).filter(|rest| rest.len() >= length + 2) else {
                return Ok(None);
            };
            if &rest[length..length + 2] != b"\r\n" {
                return Err(malformed);
            }
            let value = string(kind, &rest[..length]).ok_or(malformed)?;
            return Ok(Some((Element::Value(value), next + length + 2)));
        }
        b'*' | b'~' | b'%' | b'>' | b'|' => {
            let count = match (kind, parse_i64(line).ok_or(malformed)?) {
                (b'*', -1) => return Ok(Some((Element::Value(Value::NullArray), next))),
                (_, count) => usize::try_from(count).map_err(|_| malformed)?,
            };
            let count = match kind {
                b'%' => count.saturating_mul(2),
                b'|' => count.saturating_mul(2).saturating_add(1),
                _ => count,
            };
            return Ok(Some((Element::Aggregate { kind, count }, next)));
        }
        _ => return Err(malformed),
    };
    Ok(Some((Element::Value(value), next)))
}

fn string(kind: u8, bytes: &[u8]) -> Option<Value> {
    Some(match kind {
        b'=' => {
            let (format, text) = bytes.split_first_chunk::<3>()?;
            Value::Verbatim { format: *format, text: text.strip_prefix(b":")?.to_vec() }
        }
        b'!' => Value::Error(bytes.to_vec()),
        _ => Value::Bulk(bytes.to_vec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Option<Value>, DecodeError> {
        Decoder::decode_all(text.replace('|', "\r\n").as_bytes())
    }

    #[test]
    fn reads_every_type() {
        let bulk = |text: &str| Value::Bulk(text.into());
        for (text, expected) in [
            ("+OK|", Value::Simple(b"OK".to_vec())),
            ("-ERR no|", Value::Error(b"ERR no".to_vec())),
            ("!6|ERR no|", Value::Error(b"ERR no".to_vec())),
            (":-12|", Value::Integer(-12)),
            ("$5|a\0b c|", bulk("a\0b c")),
            ("$0||", bulk("")),
            ("$-1|", Value::Null),
            ("_|", Value::Null),
            ("*-1|", Value::NullArray),
            ("#t|", Value::Bool(true)),
            (",1.5|", Value::Double(1.5)),
            (",inf|", Value::Double(f64::INFINITY)),
            ("(-99999999999999999999|", Value::BigNumber(b"-99999999999999999999".to_vec())),
            ("=6|txt:hi|", Value::Verbatim { format: *b"txt", text: b"hi".to_vec() }),
            ("*2|:1|*1|_|", {
                Value::Array(vec![Value::Integer(1), Value::Array(vec![Value::Null])])
            }),
            ("*0|", Value::Array(vec![])),
            ("~1|#f|", Value::Set(vec![Value::Bool(false)])),
            ("%1|+a|%0|", Value::Map(vec![(Value::Simple(b"a".to_vec()), Value::Map(vec![]))])),
            (">1|+x|", Value::Push(vec![Value::Simple(b"x".to_vec())])),
        ] {
            assert_eq!(all(text), Ok(Some(expected)), "{text:?}");
        }
        // The pipe is not written as CR LF here: it is the attribute's own sign.
        let attributed = Decoder::decode_all(b"|1\r\n+a\r\n:1\r\n:2\r\n");
        let attributes = vec![(Value::Simple(b"a".to_vec()), Value::Integer(1))];
        let value = Box::new(Value::Integer(2));
        assert_eq!(attributed, Ok(Some(Value::Attributed { attributes, value })));
    }

    #[test]
    fn refuses_what_is_no_reply() {
        for (text, error) in [
            ("x|", DecodeError::Type(b'x')),
            (":01|", DecodeError::Malformed(b':')),
            ("$-2|", DecodeError::Malformed(b'$')),
            ("$?|", DecodeError::Malformed(b'$')),
            ("$1|ab|", DecodeError::Malformed(b'$')),
            ("#x|", DecodeError::Malformed(b'#')),
            ("=2|hi|", DecodeError::Malformed(b'=')),
            ("_x|", DecodeError::Malformed(b'_')),
            ("%-1|", DecodeError::Malformed(b'%')),
            ("$99999999999|", DecodeError::TooBig("string")),
            ("*99999999999|", DecodeError::TooBig("count")),
        ] {
            assert_eq!(all(text), Err(error), "{text:?}");
        }
        assert_eq!(all(&"*1|".repeat(65)), Err(DecodeError::TooBig("depth")));
    }

    #[test]
    fn takes_pieces() {
        let bytes = b"*3\r\n$5\r\nhello\r\n%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n_\r\n";
        let expected = Decoder::decode_all(bytes).unwrap().unwrap();
        for size in 1..bytes.len() {
            let mut decoder = Decoder::default();
            let (mut input, mut values) = (Vec::new(), Vec::new());
            for piece in bytes.chunks(size) {
                input.extend_from_slice(piece);
                let decoded = decoder.decode(&input).unwrap();
                input.drain(..decoded.consumed);
                values.extend(decoded.value);
            }
            assert_eq!(values, std::slice::from_ref(&expected));
            assert!(input.is_empty());
        }
    }
}
