//! Parameters of EXECUTE.

use super::state::{SQL_EXECUTE, sql_error};
use ladon_msgpack::{self as msgpack, Kind, Value as Packed};
use ladon_space::{BoxError, ErrorCode};
use ladon_sql::Value;
use smallvec::{SmallVec, smallvec};

/// The values of a statement's parameters; most have few.
pub(super) type Values = SmallVec<[Value; 4]>;

/// `ER_SQL_BIND_TYPE`.
const SQL_BIND_TYPE: ErrorCode = ErrorCode(157);
/// `ER_SQL_BIND_NOT_FOUND`.
const SQL_BIND_NOT_FOUND: ErrorCode = ErrorCode(161);

fn invalid() -> BoxError {
    BoxError::new(ErrorCode::INVALID_MSGPACK, "Invalid MsgPack - SQL bind parameter")
}

fn unsupported(kind: Kind, parameter: &str) -> BoxError {
    let kind = match kind {
        Kind::Array => "ARRAY",
        Kind::Map => "MAP",
        _ => "USERDATA",
    };
    let message = format!("Bind value type {kind} for parameter {parameter} is not supported");
    BoxError::new(SQL_BIND_TYPE, message)
}

/// The values of a statement's parameters, those that are not given null.
pub(super) fn values(
    bind: Option<&[u8]>,
    parameters: &[Option<String>],
) -> Result<Values, BoxError> {
    let mut values: Values = smallvec![Value::Null; parameters.len()];
    let Some(mut rest) = bind else { return Ok(values) };
    let Ok(count) = msgpack::read_array(&mut rest) else { return Err(invalid()) };
    for at in 0..count as usize {
        let one = msgpack::take(&mut rest)?;
        let (place, value, shown) = match msgpack::read(&mut { one })? {
            Packed::Map(1) => {
                let mut pair = one;
                msgpack::read(&mut pair)?;
                let name = msgpack::read_str(&mut pair).map_err(|_| invalid())?;
                let name = String::from_utf8_lossy(name).into_owned();
                let place = parameters.iter().position(|own| own.as_deref() == Some(&name));
                let Some(place) = place else {
                    let message = format!("Parameter '{name}' was not found in the statement");
                    return Err(BoxError::new(SQL_BIND_NOT_FOUND, message));
                };
                (place, pair, format!("'{name}'"))
            }
            Packed::Map(_) => return Err(invalid()),
            _ => (at, one, (at + 1).to_string()),
        };
        if place >= values.len() {
            let message = "Failed to execute SQL statement: The number of parameters is too large";
            return Err(sql_error(SQL_EXECUTE, message));
        }
        let kind = msgpack::read(&mut { value })?.kind();
        if matches!(kind, Kind::Array | Kind::Map) {
            return Err(unsupported(kind, &shown));
        }
        values[place] = Value::unpack(value);
    }
    Ok(values)
}
