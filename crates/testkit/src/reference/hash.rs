//! The meaning of the commands on hashes.

use super::{Call, Datum, State, integer, number};
use ladon_resp::client::Value;
use std::collections::BTreeMap;

type Fields = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// `None`: the key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    let mut none = Fields::new();
    let (fields, exists) = match state.get_mut(&call[1]) {
        None => (&mut none, false),
        Some(Datum::Hash(fields)) => (fields, true),
        Some(_) => return None,
    };
    let reply = match call[0].as_slice() {
        b"HSET" => {
            let set = |pair: &[Vec<u8>]| fields.insert(pair[0].clone(), (pair[1].clone(), 0));
            number(call[2..].chunks(2).map(set).filter(Option::is_none).count())
        }
        b"HGET" => match fields.get(&call[2]) {
            Some((value, _)) => Value::Bulk(value.clone()),
            None => Value::Null,
        },
        b"HGETALL" => {
            let each = fields.iter().flat_map(|(field, (value, _))| [field, value]);
            Value::Array(each.cloned().map(Value::Bulk).collect())
        }
        b"HLEN" => number(fields.len()),
        b"HDEL" => number(call[2..].iter().filter(|field| fields.remove(*field).is_some()).count()),
        b"HINCRBY" => {
            let (value, _) = fields.entry(call[2].clone()).or_insert((b"0".to_vec(), 0));
            let old = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
            match old {
                Some(old) => {
                    let new = old + integer::<i64>(&call[3]);
                    *value = new.to_string().into_bytes();
                    Value::Integer(new)
                }
                None => Value::Error(b"ERR hash value is not an integer".to_vec()),
            }
        }
        // Far in the future or long past: no clock is asked.
        b"HPEXPIREAT" => Value::Array(vec![expire(fields, &call[5], &call[2])]),
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    };
    if exists && fields.is_empty() {
        state.remove(&call[1]);
    } else if !exists && !none.is_empty() {
        state.insert(call[1].clone(), Datum::Hash(none));
    }
    Some(reply)
}

fn expire(fields: &mut Fields, field: &[u8], at: &[u8]) -> Value {
    let at = std::str::from_utf8(at).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    match fields.get_mut(field) {
        None => Value::Integer(-2),
        Some((_, old)) if at > 1 => {
            *old = at;
            Value::Integer(1)
        }
        Some(_) => {
            fields.remove(field);
            Value::Integer(2)
        }
    }
}
