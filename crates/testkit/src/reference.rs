//! The commands on plain maps: the reference for a server's replies and data.
//!
//! Only the commands, and their forms, that the simulator and the crash rounds send. Expiry times
//! are not kept: see [`Datum`] for fields and members; a caller whose keys expire keeps their times
//! itself.

mod algebra;
mod bitmap;
mod hash;
mod list;
mod set;
mod sort;
mod sorted_set;
pub mod stream;

use ladon_resp::client::Value;
use std::collections::{BTreeMap, VecDeque};

/// One key's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Datum {
    /// A string.
    Text(Vec<u8>),
    /// A set: when its members expire (0: never).
    Set(BTreeMap<Vec<u8>, u64>),
    /// A list.
    List(VecDeque<Vec<u8>>),
    /// A hash: values, and when the fields expire (0: never).
    Hash(BTreeMap<Vec<u8>, (Vec<u8>, u64)>),
    /// A sorted set: scores, which are whole numbers here.
    Sorted(BTreeMap<Vec<u8>, i64>),
    /// A stream.
    Stream(stream::Stream),
}

/// All data.
pub type State = BTreeMap<Vec<u8>, Datum>;

/// A request's arguments, the name in upper case first.
pub type Call = Vec<Vec<u8>>;

const WRONG_TYPE: &[u8] = b"WRONGTYPE Operation against a key holding the wrong kind of value";

fn text(bytes: &[u8]) -> Value {
    Value::Simple(bytes.to_vec())
}

fn number(value: usize) -> Value {
    Value::Integer(value as i64)
}

/// A number in a request; the test that made the request made it well.
fn integer<N: std::str::FromStr>(text: &[u8]) -> N {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("no number: {}", text.escape_ascii()))
}

/// Commands on strings, and what some calls do to them.
fn string_and_change(state: &mut State, call: &Call) -> Value {
    let old = match state.get(&call[1]) {
        Some(Datum::Text(bytes)) => Some(bytes.clone()),
        Some(_) => return Value::Error(WRONG_TYPE.to_vec()),
        None => None,
    };
    if call[0] == b"GETRANGE" {
        // From the fourth byte to the fifth from the end, as it is asked for here.
        let bytes = old.unwrap_or_default();
        return Value::Bulk(bytes.get(3..bytes.len().saturating_sub(4)).unwrap_or(b"").to_vec());
    }
    match call.get(2) {
        Some(new) => state.insert(call[1].clone(), Datum::Text(new.clone())),
        None => state.remove(&call[1]),
    };
    old.map_or(Value::Null, Value::Bulk)
}

/// Applies the call to the data and returns its reply.
///
/// # Panics
/// If the command is not modelled.
#[expect(clippy::too_many_lines, reason = "one arm for each command")]
pub fn apply(state: &mut State, call: &Call) -> Value {
    let wrong_type = || Value::Error(WRONG_TYPE.to_vec());
    let arg = |at: usize| call[at].clone();
    match call[0].as_slice() {
        b"SET" => {
            state.insert(arg(1), Datum::Text(arg(2)));
            text(b"OK")
        }
        b"GET" => match state.get(&call[1]) {
            None => Value::Null,
            Some(Datum::Text(bytes)) => Value::Bulk(bytes.clone()),
            Some(_) => wrong_type(),
        },
        b"GETDEL" | b"GETSET" | b"GETRANGE" => string_and_change(state, call),
        b"DEL" => number(call[1..].iter().filter(|key| state.remove(*key).is_some()).count()),
        b"INCR" | b"INCRBY" => {
            let by = call.get(2).map_or(1, |by| integer(by));
            let old = match state.get(&call[1]) {
                None => Some(0),
                Some(Datum::Text(bytes)) => {
                    std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i64>().ok())
                }
                Some(_) => return wrong_type(),
            };
            let Some(old) = old else {
                return Value::Error(b"ERR value is not an integer or out of range".to_vec());
            };
            state.insert(arg(1), Datum::Text((old + by).to_string().into_bytes()));
            Value::Integer(old + by)
        }
        b"APPEND" => match state.entry(arg(1)).or_insert_with(|| Datum::Text(Vec::new())) {
            Datum::Text(bytes) => {
                bytes.extend_from_slice(&call[2]);
                number(bytes.len())
            }
            _ => wrong_type(),
        },
        b"MSET" => {
            for pair in call[1..].chunks(2) {
                state.insert(pair[0].clone(), Datum::Text(pair[1].clone()));
            }
            text(b"OK")
        }
        b"MGET" => Value::Array(
            call[1..]
                .iter()
                .map(|key| match state.get(key) {
                    Some(Datum::Text(bytes)) => Value::Bulk(bytes.clone()),
                    _ => Value::Null,
                })
                .collect(),
        ),
        b"RENAME" => match state.remove(&call[1]) {
            None => Value::Error(b"ERR no such key".to_vec()),
            Some(value) => {
                state.insert(arg(2), value);
                text(b"OK")
            }
        },
        b"RENAMENX" if !state.contains_key(&call[1]) => Value::Error(b"ERR no such key".to_vec()),
        b"RENAMENX" if state.contains_key(&call[2]) => Value::Integer(0),
        b"RENAMENX" => {
            if let Some(value) = state.remove(&call[1]) {
                state.insert(arg(2), value);
            }
            Value::Integer(1)
        }
        b"SADD" | b"SREM" | b"SMOVE" | b"SCARD" | b"SMEMBERS" | b"SISMEMBER" | b"SPEXPIREAT" => {
            set::apply(state, call).unwrap_or_else(wrong_type)
        }
        b"SETBIT" | b"BITCOUNT" | b"BITFIELD" | b"BITPOS" | b"BITOP" => {
            bitmap::apply(state, call).unwrap_or_else(wrong_type)
        }
        b"SUNION" | b"SINTER" | b"SDIFF" | b"SUNIONSTORE" | b"SINTERSTORE" | b"SDIFFSTORE"
        | b"ZUNIONSTORE" | b"ZINTERSTORE" | b"COPY" => {
            algebra::apply(state, call).unwrap_or_else(wrong_type)
        }
        b"SORT" => sort::apply(state, call).unwrap_or_else(wrong_type),
        name if name.starts_with(b"L")
            || matches!(name, b"RPUSH" | b"RPOP" | b"BLPOP" | b"BRPOP" | b"BLMOVE") =>
        {
            list::apply(state, call).unwrap_or_else(wrong_type)
        }
        name if name.starts_with(b"H") => hash::apply(state, call).unwrap_or_else(wrong_type),
        name if name.starts_with(b"X") => stream::apply(state, call).unwrap_or_else(wrong_type),
        name if name.starts_with(b"Z") => sorted_set::apply(state, call).unwrap_or_else(wrong_type),
        b"DBSIZE" => number(state.len()),
        b"FLUSHALL" => {
            state.clear();
            text(b"OK")
        }
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    }
}
