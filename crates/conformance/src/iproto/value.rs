//! MessagePack, as the comparison needs it: values to bytes, bytes to values, and values as text.

use std::fmt::Write as _;

/// How deep values may be nested; what is deeper is taken for a mistake of the server's.
const DEPTH_MAX: usize = 200;

/// A value. Doubles are kept by their bits, so that NaN equals itself and 1.0 differs from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Nothing.
    Nil,
    /// A boolean.
    Bool(bool),
    /// Any integer that MessagePack has.
    Int(i128),
    /// A float, by its bits.
    Float(u32),
    /// A double, by its bits.
    Double(u64),
    /// A text, of any bytes.
    Str(Vec<u8>),
    /// Bytes.
    Bin(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// A map, in the order of its bytes.
    Map(Vec<(Value, Value)>),
    /// An extension: its type and bytes.
    Ext(i8, Vec<u8>),
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Value {
        Value::Str(text.into())
    }

    /// An integer.
    pub fn int(number: impl Into<i128>) -> Value {
        Value::Int(number.into())
    }

    /// A map whose keys are texts.
    pub fn named(pairs: &[(&str, Value)]) -> Value {
        Value::Map(pairs.iter().map(|(name, value)| (Value::text(name), value.clone())).collect())
    }

    /// Appends the bytes, in the shortest form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => out.push(0xc0),
            Value::Bool(is) => out.push(0xc2 + u8::from(*is)),
            Value::Int(number) => encode_int(*number, out),
            Value::Float(bits) => with(0xca, &bits.to_be_bytes(), out),
            Value::Double(bits) => with(0xcb, &bits.to_be_bytes(), out),
            Value::Str(bytes) => {
                match bytes.len() {
                    short @ 0..=31 => out.push(0xa0 | short as u8),
                    length => head(&[0xd9, 0xda, 0xdb], length, out),
                }
                out.extend_from_slice(bytes);
            }
            Value::Bin(bytes) => {
                head(&[0xc4, 0xc5, 0xc6], bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Value::Array(items) => {
                match items.len() {
                    short @ 0..=15 => out.push(0x90 | short as u8),
                    length => long_head([0xdc, 0xdd], length, out),
                }
                items.iter().for_each(|item| item.encode(out));
            }
            Value::Map(pairs) => {
                match pairs.len() {
                    short @ 0..=15 => out.push(0x80 | short as u8),
                    length => long_head([0xde, 0xdf], length, out),
                }
                for (key, value) in pairs {
                    key.encode(out);
                    value.encode(out);
                }
            }
            Value::Ext(kind, bytes) => {
                match bytes.len() {
                    fixed @ (1 | 2 | 4 | 8 | 16) => out.push(0xd4 + fixed.trailing_zeros() as u8),
                    length => head(&[0xc7, 0xc8, 0xc9], length, out),
                }
                out.push(*kind as u8);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Reads one value and advances past it; `None` if the bytes are none.
    pub fn decode(bytes: &mut &[u8]) -> Option<Value> {
        decode(bytes, 0)
    }

    /// The value as text, like JSON.
    pub fn show(&self) -> String {
        let all = |items: &[Value]| items.iter().map(Value::show).collect::<Vec<_>>().join(", ");
        match self {
            Value::Nil => "nil".into(),
            Value::Bool(is) => is.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Float(bits) => format!("{:?}f", f32::from_bits(*bits)),
            Value::Double(bits) => format!("{:?}", f64::from_bits(*bits)),
            Value::Str(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
            Value::Bin(bytes) => format!("bin({})", hex(bytes)),
            Value::Array(items) => format!("[{}]", all(items)),
            Value::Map(pairs) => {
                let pair =
                    |(key, value): &(Value, Value)| format!("{}: {}", key.show(), value.show());
                format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
            Value::Ext(kind, bytes) => format!("ext({kind}, {})", hex(bytes)),
        }
    }
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn with(first: u8, rest: &[u8], out: &mut Vec<u8>) {
    out.push(first);
    out.extend_from_slice(rest);
}

/// One of three first bytes, and the length in one, two or four bytes.
fn head(firsts: &[u8; 3], length: usize, out: &mut Vec<u8>) {
    match length {
        0..=0xff => with(firsts[0], &[length as u8], out),
        0x100..=0xffff => with(firsts[1], &(length as u16).to_be_bytes(), out),
        _ => with(firsts[2], &(length as u32).to_be_bytes(), out),
    }
}

/// One of two first bytes, and the length in two or four bytes.
fn long_head(firsts: [u8; 2], length: usize, out: &mut Vec<u8>) {
    match length {
        0..=0xffff => with(firsts[0], &(length as u16).to_be_bytes(), out),
        _ => with(firsts[1], &(length as u32).to_be_bytes(), out),
    }
}

fn encode_int(number: i128, out: &mut Vec<u8>) {
    match number {
        0..=0x7f => out.push(number as u8),
        -32..0 => out.push(number as i8 as u8),
        0x80..=0xff => with(0xcc, &[number as u8], out),
        0x100..=0xffff => with(0xcd, &(number as u16).to_be_bytes(), out),
        0x1_0000..=0xffff_ffff => with(0xce, &(number as u32).to_be_bytes(), out),
        0x1_0000_0000.. => with(0xcf, &(number as u64).to_be_bytes(), out),
        -0x80..-32 => with(0xd0, &[number as i8 as u8], out),
        -0x8000..-0x80 => with(0xd1, &(number as i16).to_be_bytes(), out),
        -0x8000_0000..-0x8000 => with(0xd2, &(number as i32).to_be_bytes(), out),
        _ => with(0xd3, &(number as i64).to_be_bytes(), out),
    }
}

fn decode(bytes: &mut &[u8], depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let first = take(bytes, 1)?[0];
    Some(match first {
        0x00..=0x7f => Value::int(first),
        0xe0..=0xff => Value::int(first as i8),
        0x80..=0x8f => map(bytes, usize::from(first & 15), depth)?,
        0x90..=0x9f => array(bytes, usize::from(first & 15), depth)?,
        0xa0..=0xbf => Value::Str(take(bytes, usize::from(first & 31))?.into()),
        0xc0 => Value::Nil,
        0xc1 => return None,
        0xc2 | 0xc3 => Value::Bool(first == 0xc3),
        0xc4..=0xc6 => {
            let length = number(bytes, 1 << (first - 0xc4))?;
            Value::Bin(take(bytes, length as usize)?.into())
        }
        0xc7..=0xc9 => {
            let length = number(bytes, 1 << (first - 0xc7))?;
            ext(bytes, length as usize)?
        }
        0xca => Value::Float(number(bytes, 4)? as u32),
        0xcb => Value::Double(number(bytes, 8)?),
        0xcc..=0xcf => Value::int(number(bytes, 1 << (first - 0xcc))?),
        0xd0 => Value::int(number(bytes, 1)? as i8),
        0xd1 => Value::int(number(bytes, 2)? as i16),
        0xd2 => Value::int(number(bytes, 4)? as i32),
        0xd3 => Value::int(number(bytes, 8)? as i64),
        0xd4..=0xd8 => ext(bytes, 1 << (first - 0xd4))?,
        0xd9..=0xdb => {
            let length = number(bytes, 1 << (first - 0xd9))?;
            Value::Str(take(bytes, length as usize)?.into())
        }
        0xdc | 0xdd => {
            let length = number(bytes, 2 << (first - 0xdc))?;
            array(bytes, length as usize, depth)?
        }
        0xde | 0xdf => {
            let length = number(bytes, 2 << (first - 0xde))?;
            map(bytes, length as usize, depth)?
        }
    })
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8], length: usize) -> Option<u64> {
    Some(take(bytes, length)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

fn ext(bytes: &mut &[u8], length: usize) -> Option<Value> {
    let kind = take(bytes, 1)?[0] as i8;
    Some(Value::Ext(kind, take(bytes, length)?.into()))
}

fn array(bytes: &mut &[u8], length: usize, depth: usize) -> Option<Value> {
    let items = (0..length).map(|_| decode(bytes, depth + 1)).collect::<Option<_>>()?;
    Some(Value::Array(items))
}

fn map(bytes: &mut &[u8], length: usize, depth: usize) -> Option<Value> {
    let mut pair = || Some((decode(bytes, depth + 1)?, decode(bytes, depth + 1)?));
    Some(Value::Map((0..length).map(|_| pair()).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_their_bytes() {
        let ints = [0, 127, 128, 255, 256, 65_535, 65_536, 1 << 32, u64::MAX.into()];
        let negative =
            [-1, -32, -33, -128, -129, -32_768, -32_769, -(1 << 31) - 1, i64::MIN.into()];
        let mut values: Vec<Value> =
            ints.iter().chain(&negative).map(|it| Value::Int(*it)).collect();
        for length in [0, 1, 15, 16, 31, 32, 255, 256, 65_536] {
            values.push(Value::Str(vec![b'a'; length]));
            values.push(Value::Bin(vec![1; length]));
            values.push(Value::Ext(-3, vec![1; length]));
            values.push(Value::Array(vec![Value::Nil; length]));
            values.push(Value::Map(vec![(Value::int(1), Value::Bool(true)); length]));
        }
        values.push(Value::Double(f64::NAN.to_bits()));
        values.push(Value::Float(1.5f32.to_bits()));
        for value in values {
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(Value::decode(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
        assert_eq!(Value::decode(&mut &[0x92, 1][..]), None);
    }
}
