//! Appends values, each in its shortest format.

/// Appends nil.
#[inline]
pub fn nil(out: &mut Vec<u8>) {
    out.push(0xc0);
}

/// Appends a boolean.
#[inline]
pub fn bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

/// Appends an integer that is not negative.
#[inline]
pub fn uint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x7f => out.push(value as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, value as u8]),
        0x100..=0xffff => sized(out, 0xcd, &(value as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => sized(out, 0xce, &(value as u32).to_be_bytes()),
        _ => sized(out, 0xcf, &value.to_be_bytes()),
    }
}

/// Appends an integer.
#[inline]
pub fn int(out: &mut Vec<u8>, value: i64) {
    match value {
        0.. => uint(out, value as u64),
        -0x20..=-1 => out.push(value as u8),
        -0x80..=-0x21 => out.extend_from_slice(&[0xd0, value as u8]),
        -0x8000..=-0x81 => sized(out, 0xd1, &(value as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => sized(out, 0xd2, &(value as i32).to_be_bytes()),
        _ => sized(out, 0xd3, &value.to_be_bytes()),
    }
}

/// Appends a floating-point number of 32 bits.
pub fn float(out: &mut Vec<u8>, value: f32) {
    sized(out, 0xca, &value.to_be_bytes());
}

/// Appends a floating-point number of 64 bits.
pub fn double(out: &mut Vec<u8>, value: f64) {
    sized(out, 0xcb, &value.to_be_bytes());
}

/// Appends a string.
///
/// # Panics
/// If it is longer than 4 GiB.
#[inline]
pub fn str(out: &mut Vec<u8>, value: &[u8]) {
    match length_of(value) {
        length @ 0..=0x1f => out.push(0xa0 | length as u8),
        length => head(out, [Some(0xd9), Some(0xda), Some(0xdb)], length),
    }
    out.extend_from_slice(value);
}

/// Appends bytes.
///
/// # Panics
/// If they are longer than 4 GiB.
pub fn bin(out: &mut Vec<u8>, value: &[u8]) {
    head(out, [Some(0xc4), Some(0xc5), Some(0xc6)], length_of(value));
    out.extend_from_slice(value);
}

/// Appends the head of an array of this many values, which have to follow.
#[inline]
pub fn array(out: &mut Vec<u8>, count: u32) {
    match count {
        0..=0x0f => out.push(0x90 | count as u8),
        _ => head(out, [None, Some(0xdc), Some(0xdd)], count),
    }
}

/// Appends the head of a map of this many pairs, which have to follow.
#[inline]
pub fn map(out: &mut Vec<u8>, count: u32) {
    match count {
        0..=0x0f => out.push(0x80 | count as u8),
        _ => head(out, [None, Some(0xde), Some(0xdf)], count),
    }
}

/// Appends an extension.
///
/// # Panics
/// If it is longer than 4 GiB.
pub fn ext(out: &mut Vec<u8>, kind: i8, value: &[u8]) {
    match length_of(value) {
        length @ (1 | 2 | 4 | 8 | 16) => out.push(0xd4 + length.trailing_zeros() as u8),
        length => head(out, [Some(0xc7), Some(0xc8), Some(0xc9)], length),
    }
    out.push(kind as u8);
    out.extend_from_slice(value);
}

fn length_of(value: &[u8]) -> u32 {
    u32::try_from(value.len()).expect("MessagePack values are at most 4 GiB long")
}

/// A length in the first of the formats with 8, 16 and 32 bits that has room for it.
fn head(out: &mut Vec<u8>, [short, middle, long]: [Option<u8>; 3], length: u32) {
    match (short, middle, long) {
        (Some(format), ..) if length <= 0xff => out.extend_from_slice(&[format, length as u8]),
        (_, Some(format), _) if length <= 0xffff => {
            sized(out, format, &(length as u16).to_be_bytes());
        }
        (.., format) => sized(out, format.unwrap_or_default(), &length.to_be_bytes()),
    }
}

#[inline]
fn sized(out: &mut Vec<u8>, format: u8, bytes: &[u8]) {
    out.push(format);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, read};
    use proptest::prelude::*;

    fn reads_back(bytes: &[u8], value: &Value<'_>) {
        let mut rest = bytes;
        assert_eq!(read(&mut rest).as_ref(), Ok(value));
        assert!(rest.is_empty());
        for cut in 0..bytes.len() {
            assert!(read(&mut &bytes[..cut]).is_err(), "{value:?} cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back(bits in 0..64u32, value: u64) {
            let mut out = Vec::new();
            let value = value >> bits;
            uint(&mut out, value);
            reads_back(&out, &Value::Uint(value));
            out.clear();
            let negative = -((value >> 1) as i64) - 1;
            int(&mut out, negative);
            reads_back(&out, &Value::Int(negative));
            out.clear();
            int(&mut out, (value >> 1) as i64);
            reads_back(&out, &Value::Uint(value >> 1));
            out.clear();
            double(&mut out, value as f64);
            reads_back(&out, &Value::Double(value as f64));
        }
    }

    #[test]
    fn lengths_at_every_limit_read_back() {
        for length in [0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 255, 256, 65_535, 65_536] {
            let bytes = vec![7; length];
            let mut out = Vec::new();
            let ends = |out: &mut Vec<u8>, value: Value<'_>| {
                let mut rest = &out[..];
                assert_eq!(read(&mut rest), Ok(value));
                assert!(rest.is_empty());
                out.clear();
            };
            str(&mut out, &bytes);
            ends(&mut out, Value::Str(&bytes));
            bin(&mut out, &bytes);
            ends(&mut out, Value::Bin(&bytes));
            ext(&mut out, -3, &bytes);
            ends(&mut out, Value::Ext(-3, &bytes));
            array(&mut out, length as u32);
            ends(&mut out, Value::Array(length as u32));
            map(&mut out, length as u32);
            ends(&mut out, Value::Map(length as u32));
        }
    }
}
