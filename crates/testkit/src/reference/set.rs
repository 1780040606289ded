//! The meaning of the commands on sets.

use super::{Call, Datum, State, integer, number};
use ladon_resp::client::Value;
use std::collections::BTreeMap;

/// Members, and when they expire (0: never).
type Members = BTreeMap<Vec<u8>, u64>;

/// `None`: the key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    if call[0] == b"SMOVE" {
        return smove(state, call);
    }
    let mut none = Members::new();
    let (members, exists) = match state.get_mut(&call[1]) {
        None => (&mut none, false),
        Some(Datum::Set(members)) => (members, true),
        Some(_) => return None,
    };
    let reply = match call[0].as_slice() {
        // A member that is there keeps its time.
        b"SADD" => {
            let before = members.len();
            call[2..].iter().for_each(|member| _ = members.entry(member.clone()).or_insert(0));
            number(members.len() - before)
        }
        b"SREM" => number(call[2..].iter().filter(|it| members.remove(*it).is_some()).count()),
        b"SCARD" => number(members.len()),
        b"SMEMBERS" => Value::Array(members.keys().cloned().map(Value::Bulk).collect()),
        b"SISMEMBER" => number(usize::from(members.contains_key(&call[2]))),
        // Far in the future or long past: no clock is asked.
        b"SPEXPIREAT" => Value::Array(vec![expire(members, &call[5], integer(&call[2]))]),
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    };
    if exists && members.is_empty() {
        state.remove(&call[1]);
    } else if !exists && !none.is_empty() {
        state.insert(call[1].clone(), Datum::Set(none));
    }
    Some(reply)
}

fn expire(members: &mut Members, member: &[u8], at: u64) -> Value {
    match members.get_mut(member) {
        None => Value::Integer(-2),
        Some(old) if at > 1 => {
            *old = at;
            Value::Integer(1)
        }
        Some(_) => {
            members.remove(member);
            Value::Integer(2)
        }
    }
}

/// The member's time moves along.
fn smove(state: &mut State, call: &Call) -> Option<Value> {
    match state.get(&call[1]) {
        None => return Some(Value::Integer(0)),
        Some(Datum::Set(_)) => {}
        Some(_) => return None,
    }
    if !matches!(state.get(&call[2]), None | Some(Datum::Set(_))) {
        return None;
    }
    let Some(Datum::Set(from)) = state.get_mut(&call[1]) else { return None };
    if call[1] == call[2] {
        return Some(number(usize::from(from.contains_key(&call[3]))));
    }
    let Some(at) = from.remove(&call[3]) else { return Some(Value::Integer(0)) };
    if from.is_empty() {
        state.remove(&call[1]);
    }
    match state.entry(call[2].clone()).or_insert_with(|| Datum::Set(Members::new())) {
        Datum::Set(to) => to.insert(call[3].clone(), at),
        _ => return None,
    };
    Some(Value::Integer(1))
}
