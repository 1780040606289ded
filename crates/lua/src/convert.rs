//! RESP to Lua values and back, as Redis converts them.

use ladon_resp::{Proto, Reply};
use mlua::{Lua, Result, Table, Value};

/// Tables deeper than this are cut, as in Redis.
const DEPTH_MAX: usize = 100;

/// Reads one reply at the beginning of `bytes`, and returns how long it is.
pub(crate) fn from_resp(lua: &Lua, bytes: &[u8]) -> Result<(Value, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap_or(bytes.len());
    let (line, mut at) = (&bytes[1..end], end + 2);
    let number = || std::str::from_utf8(line).ok().and_then(|text| text.parse::<i64>().ok());
    let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
    let one_field = |name: &str, value: Value| {
        let table = lua.create_table()?;
        table.raw_set(name, value)?;
        Ok::<_, mlua::Error>(Value::Table(table))
    };
    let value = match bytes[0] {
        b'+' => one_field("ok", text(line)?)?,
        b'-' => one_field("err", text(line)?)?,
        b':' => Value::Number(number().unwrap_or_default() as f64),
        b'_' => Value::Nil,
        b'#' => Value::Boolean(line == b"t"),
        b',' => {
            let double = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
            one_field("double", Value::Number(double.unwrap_or(f64::NAN)))?
        }
        b'(' => one_field("big_number", text(line)?)?,
        b'$' | b'=' => match usize::try_from(number().unwrap_or(-1)) {
            Err(_) => Value::Boolean(false),
            Ok(length) => {
                let body = &bytes[at..at + length];
                at += length + 2;
                if bytes[0] == b'=' {
                    let both = lua.create_table()?;
                    both.raw_set("format", text(&body[..3])?)?;
                    both.raw_set("string", text(&body[4..])?)?;
                    one_field("verbatim_string", Value::Table(both))?
                } else {
                    text(body)?
                }
            }
        },
        b'*' | b'>' => match usize::try_from(number().unwrap_or(-1)) {
            Err(_) => Value::Boolean(false),
            Ok(count) => {
                let array = lua.create_table_with_capacity(count, 0)?;
                for index in 1..=count {
                    let (value, length) = from_resp(lua, &bytes[at..])?;
                    array.raw_set(index, value)?;
                    at += length;
                }
                Value::Table(array)
            }
        },
        kind @ (b'%' | b'~') => {
            let table = lua.create_table()?;
            for _ in 0..number().unwrap_or_default() {
                let (key, length) = from_resp(lua, &bytes[at..])?;
                at += length;
                let mut value = Value::Boolean(true);
                if kind == b'%' {
                    let (found, length) = from_resp(lua, &bytes[at..])?;
                    value = found;
                    at += length;
                }
                table.raw_set(key, value)?;
            }
            one_field(if kind == b'%' { "map" } else { "set" }, Value::Table(table))?
        }
        _ => Value::Nil,
    };
    Ok((value, at))
}

/// Writes a value as the reply to the client.
pub(crate) fn to_resp(value: &Value, depth: usize, reply: &mut Reply<'_>) -> Result<()> {
    match value {
        Value::String(text) => reply.bulk(&*text.as_bytes()),
        Value::Integer(number) => reply.integer(*number),
        Value::Number(number) => reply.integer(*number as i64),
        Value::Boolean(value) if reply.proto() == Proto::Resp3 => reply.bool(*value),
        Value::Boolean(true) => reply.integer(1),
        Value::Table(_) if depth > DEPTH_MAX => {
            reply.error("ERR reached lua stack limit");
        }
        Value::Table(table) => table_to_resp(table, depth, reply)?,
        _ => reply.null(),
    }
    Ok(())
}

fn table_to_resp(table: &Table, depth: usize, reply: &mut Reply<'_>) -> Result<()> {
    let text = |name: &str| match table.raw_get::<Value>(name) {
        Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
        _ => None,
    };
    if let Some(error) = text("err") {
        reply.error(error.strip_prefix(b"-").unwrap_or(&error));
        return Ok(());
    }
    if let Some(status) = text("ok") {
        reply.simple(&String::from_utf8_lossy(&status));
        return Ok(());
    }
    if let Value::Number(double) = table.raw_get::<Value>("double")? {
        reply.double(double);
        return Ok(());
    }
    let mark = reply.begin_array();
    let mut count = 0;
    loop {
        let value: Value = table.raw_get(count + 1)?;
        if value.is_nil() {
            break;
        }
        to_resp(&value, depth + 1, reply)?;
        count += 1;
    }
    reply.end_array(mark, count);
    Ok(())
}
