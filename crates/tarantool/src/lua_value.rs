//! A MessagePack value as Lua has it: what Tarantool's methods see of their options.
//!
//! Lua's numbers are doubles. An integer from 10^14 on would lose digits in a part of them, so
//! Tarantool passes it as `int64_t` or `uint64_t`, which is no number to `type`.

use crate::error;
use ladon_msgpack::{Value, read};
use ladon_space::{BoxError, extension_text, number_text};

/// From here on, an integer is no number of Lua's.
const NUMBERS_END: u64 = 100_000_000_000_000;
/// Lua shows numbers with so many digits.
const LUA_DIGITS: u8 = 14;
/// 2 to the power of 63.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LuaValue<'a> {
    /// `box.NULL`, which equals nil and is none.
    Null,
    Bool(bool),
    Number(f64),
    Int(i64),
    Uint(u64),
    Text(&'a [u8]),
    Table,
    /// The name of its C type, and its text.
    Other(&'static str, String),
}

impl<'a> LuaValue<'a> {
    /// Reads the value at the beginning of valid MessagePack.
    pub(crate) fn of(mut value: &'a [u8]) -> LuaValue<'a> {
        match read(&mut value) {
            Ok(Value::Bool(value)) => LuaValue::Bool(value),
            Ok(Value::Uint(value)) if value < NUMBERS_END => LuaValue::Number(value as f64),
            Ok(Value::Uint(value)) => LuaValue::Uint(value),
            Ok(Value::Int(value)) if value.unsigned_abs() < NUMBERS_END => {
                LuaValue::Number(value as f64)
            }
            Ok(Value::Int(value)) => LuaValue::Int(value),
            Ok(Value::Float(value)) => LuaValue::Number(value.into()),
            Ok(Value::Double(value)) => LuaValue::Number(value),
            Ok(Value::Str(text)) => LuaValue::Text(text),
            Ok(Value::Array(_) | Value::Map(_)) => LuaValue::Table,
            Ok(Value::Bin(bytes)) => {
                LuaValue::Other("struct varbinary", String::from_utf8_lossy(bytes).into_owned())
            }
            Ok(Value::Ext(kind, bytes)) => {
                let name = match kind {
                    1 => "struct decimal",
                    2 => "struct tt_uuid",
                    4 => "struct datetime",
                    _ => "struct interval",
                };
                LuaValue::Other(name, extension_text(kind, bytes).unwrap_or_default())
            }
            Ok(Value::Nil) | Err(_) => LuaValue::Null,
        }
    }

    /// What `tostring` makes of it, but for a table's address.
    pub(crate) fn shown(&self) -> String {
        match self {
            LuaValue::Null => "cdata<void *>: NULL".to_owned(),
            LuaValue::Bool(value) => value.to_string(),
            LuaValue::Number(value) => lua_number(*value),
            LuaValue::Int(value) => format!("{value}LL"),
            LuaValue::Uint(value) => format!("{value}ULL"),
            LuaValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
            LuaValue::Table => "table".to_owned(),
            LuaValue::Other(_, text) => text.clone(),
        }
    }

    /// The 32 bits that a C function gets for it, as its argument of this number.
    ///
    /// # Errors
    /// If it is no number.
    pub(crate) fn to_u32(&self, function: &str, argument: u32) -> Result<u32, BoxError> {
        let what = match self {
            LuaValue::Bool(value) => return Ok(u32::from(*value)),
            // Fractions and high bits are cut off. A number without 64 bits is 2^63 then.
            LuaValue::Number(value) if value.abs() < INT64_END => return Ok(*value as i64 as u32),
            LuaValue::Number(_) => return Ok(0),
            LuaValue::Int(value) => return Ok(*value as u32),
            LuaValue::Uint(value) => return Ok(*value as u32),
            LuaValue::Null => "void *",
            LuaValue::Text(_) => "string",
            LuaValue::Table => "table",
            LuaValue::Other(name, _) => name,
        };
        Err(error::of_lua(format!(
            "bad argument #{argument} to '{function}' (cannot convert '{what}' to 'unsigned int')"
        )))
    }
}

/// A number as LuaJIT shows it, which rounds a half up where C rounds it to even.
fn lua_number(value: f64) -> String {
    let exact = format!("{value:.40e}");
    let behind = exact.trim_start_matches('-').split('e').next().and_then(|it| it.get(15..));
    let is_half =
        behind.is_some_and(|it| it.starts_with('5') && it[1..].bytes().all(|b| b == b'0'));
    let away = if is_half && value < 0.0 { value.next_down() } else { value.next_up() };
    match value.is_nan() {
        true => "nan".to_owned(),
        false => number_text(if is_half { away } else { value }, LUA_DIGITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_msgpack::write;

    fn double(value: f64) -> Vec<u8> {
        let mut bytes = Vec::new();
        write::double(&mut bytes, value);
        bytes
    }

    #[test]
    fn numbers_have_fourteen_digits() {
        let text = |value: f64| LuaValue::of(&double(value)).shown();
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (-0.5, "-0.5"),
            (1e13, "10000000000000"),
            (1e14, "1e+14"),
            (123_456_789_012_345.0, "1.2345678901235e+14"),
            (-123_456_789_012_345.0, "-1.2345678901235e+14"),
            (123_456_789_012_344.0, "1.2345678901234e+14"),
            (100_000_000_000_000.5, "1e+14"),
            (99_999_999_999_999.0, "99999999999999"),
            (-1e20, "-1e+20"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, wanted) in cases {
            assert_eq!(text(value), wanted);
        }
    }

    #[test]
    fn integers_from_ten_to_the_fourteen_on_are_no_numbers() {
        let of = |value: u64| {
            let mut bytes = Vec::new();
            write::uint(&mut bytes, value);
            LuaValue::of(&bytes).shown()
        };
        assert_eq!(of(99_999_999_999_999), "99999999999999");
        assert_eq!(of(100_000_000_000_000), "100000000000000ULL");
        let mut bytes = Vec::new();
        write::int(&mut bytes, -100_000_000_000_000);
        assert_eq!(LuaValue::of(&bytes).shown(), "-100000000000000LL");
    }

    #[test]
    fn c_gets_32_bits() {
        let of = |value: &[u8]| LuaValue::of(value).to_u32("f", 4);
        assert_eq!(of(&[0xc3]), Ok(1));
        assert_eq!(of(&[0xff]), Ok(u32::MAX));
        assert_eq!(of(&double(2.5)), Ok(2));
        assert_eq!(of(&double(-0.5)), Ok(0));
        assert_eq!(of(&double(-1.5)), Ok(u32::MAX));
        for beyond in [1e20, -1e20, f64::NAN, f64::INFINITY] {
            assert_eq!(of(&double(beyond)), Ok(0));
        }
        // 2^32 + 3, and 2^63 + 2048: as a number of Lua's it has lost all that C sees of it.
        assert_eq!(of(&[0xcf, 0, 0, 0, 1, 0, 0, 0, 3]), Ok(3));
        assert_eq!(of(&[0xcf, 0x80, 0, 0, 0, 0, 0, 8, 0]), Ok(2048));
        assert_eq!(of(&double(9_223_372_036_854_777_856.0)), Ok(0));
        let refused = "bad argument #4 to 'f' (cannot convert 'string' to 'unsigned int')";
        assert_eq!(of(&[0xa1, b'1']).unwrap_err().message, refused);
    }
}
