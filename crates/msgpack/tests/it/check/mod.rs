//! What must hold for any bytes as MessagePack. Shared by the corpus' replay and the fuzz target
//! `msgpack_values`.

use ladon_msgpack::{Error, Value, read, skip, take, validate, write};

/// Values are taken, skipped, validated and read alike, and survive being written in the shortest
/// form, which is a fixed point.
pub fn values(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut skipped = rest;
        let before = rest;
        match take(&mut rest) {
            Err(error) => {
                assert_eq!(skip(&mut skipped), Err(error));
                // What follows a whole value is another matter.
                assert_eq!(validate(before), Err(error));
                return;
            }
            Ok(value) => {
                assert_eq!(skip(&mut skipped), Ok(()));
                assert_eq!(skipped, rest);
                assert_eq!(value, &before[..before.len() - rest.len()]);
                one(value);
            }
        }
        let is_last = rest.is_empty();
        assert_eq!(validate(before), if is_last { Ok(()) } else { Err(Error::Trailing) });
    }
}

/// One whole value.
fn one(value: &[u8]) {
    assert_eq!(validate(value), Ok(()));
    assert_eq!(length(value), value.len());
    for end in 0..value.len() {
        assert_eq!(validate(&value[..end]), Err(Error::Truncated), "a part of {value:?}");
    }
    let shortest = written(value);
    assert!(shortest.len() <= value.len());
    assert_eq!(validate(&shortest), Ok(()));
    assert_eq!(written(&shortest), shortest);
    assert_eq!(tokens(&shortest), tokens(value));
}

/// The bytes of the first value, counted part by part.
fn length(bytes: &[u8]) -> usize {
    let (mut rest, mut left) = (bytes, 1u64);
    while left > 0 {
        left -= 1;
        left += match read(&mut rest).expect("it was validated") {
            Value::Array(count) => u64::from(count),
            Value::Map(count) => 2 * u64::from(count),
            _ => 0,
        };
    }
    bytes.len() - rest.len()
}

/// A value's parts in their order, as text: of arrays and maps, the counts.
fn tokens(mut value: &[u8]) -> Vec<String> {
    let mut tokens = Vec::new();
    while !value.is_empty() {
        tokens.push(match read(&mut value).expect("it was validated") {
            // So that NaN equals itself.
            Value::Float(number) => format!("float {:x}", number.to_bits()),
            Value::Double(number) => format!("double {:x}", number.to_bits()),
            other => format!("{other:?}"),
        });
    }
    tokens
}

fn written(mut value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while !value.is_empty() {
        match read(&mut value).expect("it was validated") {
            Value::Nil => write::nil(&mut out),
            Value::Bool(value) => write::bool(&mut out, value),
            Value::Uint(value) => write::uint(&mut out, value),
            Value::Int(value) => write::int(&mut out, value),
            Value::Float(value) => write::float(&mut out, value),
            Value::Double(value) => write::double(&mut out, value),
            Value::Str(value) => write::str(&mut out, value),
            Value::Bin(value) => write::bin(&mut out, value),
            Value::Array(count) => write::array(&mut out, count),
            Value::Map(count) => write::map(&mut out, count),
            Value::Ext(kind, value) => write::ext(&mut out, kind, value),
        }
    }
    out
}
