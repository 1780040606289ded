//! Values of each field type, with those at the types' borders.

use super::value::Value;
use crate::random::rng::Rng;

/// The types that fields and parts of indexes have here.
pub const TYPES: [&str; 12] = [
    "unsigned",
    "integer",
    "number",
    "string",
    "scalar",
    "boolean",
    "double",
    "varbinary",
    "decimal",
    "uuid",
    "any",
    "array",
];
/// The types that an index takes.
pub const INDEXED: usize = 10;

/// The extension of decimals.
const DECIMAL: i8 = 1;
/// The extension of UUIDs.
const UUID: i8 = 2;

const TEXTS: [&str; 8] =
    ["", "a", "b", "ab", "B", "é", "abc", "a long text, longer than the others"];
/// Scale and digits of 0, 1, 1.5, -2.25, 10, 100000000000000000000.
const DECIMALS: [&[u8]; 6] = [
    &[0x00, 0x0c],
    &[0x00, 0x1c],
    &[0x01, 0x01, 0x5c],
    &[0x02, 0x22, 0x5d],
    &[0x00, 0x01, 0x0c],
    &[0x00, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x0c],
];
/// 2.6 makes decimals of doubles with fifteen digits, so none has more.
const DOUBLES: [f64; 10] = [0.0, 1.0, 1.5, -0.5, 2.0, 3.25, -1.0, 1e20, 4e18, -1e300];

/// A double.
pub fn double(number: f64) -> Value {
    Value::Double(number.to_bits())
}

/// A value of this type; seldom, of another.
pub fn of_type(rng: &mut Rng, name: &str) -> Value {
    if rng.percent(96) {
        return right(rng, name);
    }
    match any(rng) {
        // 2.11 lets an array with indexed elements be nil, 2.6 does not.
        Value::Nil if matches!(name, "numbers" | "box") => Value::Array(Vec::new()),
        other => other,
    }
}

/// A value of this type.
pub fn right(rng: &mut Rng, name: &str) -> Value {
    match name {
        "unsigned" => unsigned(rng),
        "integer" => integer(rng),
        "number" => match rng.below(10) {
            0..=4 => integer(rng),
            5..=7 => double(*rng.pick(&DOUBLES)),
            8 => Value::Float(rng.pick(&[0.0f32, 1.5, 2.0, -3.0, 0.5, 16_777_216.0]).to_bits()),
            _ => decimal(rng),
        },
        "string" => text(rng),
        "boolean" => Value::Bool(rng.percent(50)),
        "double" => double(*rng.pick(&DOUBLES)),
        "varbinary" => Value::Bin(rng.pick(&TEXTS).as_bytes().to_vec()),
        "decimal" => decimal(rng),
        "uuid" => uuid(rng),
        "array" => array(rng),
        "numbers" => {
            let length = *rng.pick(&[0, 1, 2, 2, 3, 5]);
            Value::Array((0..length).map(|_| of_type(rng, "unsigned")).collect())
        }
        "box" => {
            let length = *rng.pick(&[2, 2, 2, 4, 4, 4, 4, 4, 3, 0]);
            Value::Array((0..length).map(|_| coordinate(rng)).collect())
        }
        "scalar" => scalar(rng),
        _ => any(rng),
    }
}

/// Anything that MessagePack has, and that a field may be.
pub fn any(rng: &mut Rng) -> Value {
    match rng.below(10) {
        0 => Value::Nil,
        1 => array(rng),
        2 if rng.percent(50) => scalar_or_map(rng),
        2 => Value::Map(vec![(text(rng), scalar(rng))]),
        3 => Value::Map(Vec::new()),
        _ => scalar(rng),
    }
}

fn coordinate(rng: &mut Rng) -> Value {
    const WILD: [f64; 4] = [f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300];
    match rng.below(60) {
        0 => scalar(rng),
        1 => double(*rng.pick(&WILD)),
        2..=9 => double(*rng.pick(&[0.5, 1.0, 1.5, -0.5, 2.25])),
        _ => Value::int(rng.below(6) as i64 - 1),
    }
}

fn scalar(rng: &mut Rng) -> Value {
    // 2.6 has no UUIDs among scalars.
    match *rng.pick(&TYPES[..INDEXED]) {
        "scalar" | "uuid" => integer(rng),
        name => right(rng, name),
    }
}

fn unsigned(rng: &mut Rng) -> Value {
    match rng.below(16) {
        0 => Value::int(*rng.pick(&[127u64, 128, 255, 256, 65_535, 65_536])),
        1 => Value::int(*rng.pick(&[1u64 << 32, (1 << 53) + 1, 1 << 63, u64::MAX, u64::MAX - 1])),
        _ => Value::int(rng.below(8) as u64),
    }
}

fn integer(rng: &mut Rng) -> Value {
    match rng.below(12) {
        0 => Value::int(*rng.pick(&[i64::MIN, i64::MIN + 1, -(1 << 31), -33, -129])),
        1..=3 => Value::int(-(rng.below(5) as i64)),
        _ => unsigned(rng),
    }
}

/// A text.
pub fn text(rng: &mut Rng) -> Value {
    let text: &str = rng.pick::<&str>(&TEXTS);
    Value::text(text)
}

fn decimal(rng: &mut Rng) -> Value {
    Value::Ext(DECIMAL, rng.pick(&DECIMALS).to_vec())
}

fn uuid(rng: &mut Rng) -> Value {
    let mut bytes = [0x11; 16];
    // Byte 8 has the variant, of which not all are valid.
    bytes[*rng.pick(&[0, 3, 7, 15])] = rng.below(4) as u8 * 0x50;
    Value::Ext(UUID, bytes.to_vec())
}

fn array(rng: &mut Rng) -> Value {
    let length = rng.below(4);
    Value::Array((0..length).map(|_| scalar_or_map(rng)).collect())
}

fn scalar_or_map(rng: &mut Rng) -> Value {
    match rng.below(6) {
        0 => Value::Map(vec![(Value::text("x"), scalar(rng)), (Value::text("y"), scalar(rng))]),
        1 if rng.percent(40) => array(rng),
        2 if rng.percent(40) => Value::Map(vec![
            (Value::text("a"), array(rng)),
            (Value::text("x"), array(rng)),
            (Value::text("b"), scalar(rng)),
        ]),
        _ => scalar(rng),
    }
}
