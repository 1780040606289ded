//! The meaning of the list commands.

use super::{Call, Datum, State, integer, number, text};
use ladon_resp::client::Value;
use std::collections::VecDeque;

type List = VecDeque<Vec<u8>>;

/// Does what the call does; `None` if a key holds another type.
#[expect(clippy::too_many_lines, reason = "one arm for each command")]
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    let key = &call[1];
    Some(match call[0].as_slice() {
        b"LPUSH" | b"RPUSH" => {
            let list = list_or_new(state, key)?;
            for element in &call[2..] {
                push(list, call[0][0] == b'L', element.clone());
            }
            number(list.len())
        }
        b"LPOP" | b"RPOP" if call.len() > 2 => {
            if list(state, key)?.is_none() {
                return Some(Value::NullArray);
            }
            let mut popped = Vec::new();
            for _ in 0..integer::<u64>(&call[2]) {
                let Some(element) = pop(state, key, call[0][0] == b'L')? else { break };
                popped.push(Value::Bulk(element));
            }
            Value::Array(popped)
        }
        b"LPOP" | b"RPOP" => pop(state, key, call[0][0] == b'L')?.map_or(Value::Null, Value::Bulk),
        b"BLPOP" | b"BRPOP" => match pop(state, key, call[0][1] == b'L')? {
            Some(element) => Value::Array(vec![Value::Bulk(key.clone()), Value::Bulk(element)]),
            None => Value::NullArray,
        },
        b"LLEN" => number(list(state, key)?.map_or(0, |list| list.len())),
        b"LPOS" => {
            let list = list(state, key)?;
            match list.and_then(|list| list.iter().position(|element| *element == call[2])) {
                None => Value::Null,
                Some(at) => number(at),
            }
        }
        b"LRANGE" => Value::Array(
            list(state, key)?
                .map_or_else(Vec::new, |list| list.iter().cloned().map(Value::Bulk).collect()),
        ),
        b"LMOVE" | b"BLMOVE" => {
            let waits = call[0] == b"BLMOVE";
            if !waits || list(state, key)?.is_some() {
                list(state, &call[2])?;
            }
            match pop(state, key, call[3] == b"LEFT")? {
                None if waits => Value::NullArray,
                None => Value::Null,
                Some(element) => {
                    push(list_or_new(state, &call[2])?, call[4] == b"LEFT", element.clone());
                    Value::Bulk(element)
                }
            }
        }
        b"LREM" => match list(state, key)? {
            None => number(0),
            Some(list) => {
                let before = list.len();
                list.retain(|element| *element != call[3]);
                let removed = before - list.len();
                drop_empty(state, key);
                number(removed)
            }
        },
        b"LINSERT" => match list(state, key)? {
            None => number(0),
            Some(list) => match list.iter().position(|element| *element == call[3]) {
                None => Value::Integer(-1),
                Some(at) => {
                    list.insert(at, call[4].clone());
                    number(list.len())
                }
            },
        },
        b"LTRIM" => {
            // Counted from the front only.
            let (first, last): (usize, usize) = (integer(&call[2]), integer(&call[3]));
            if let Some(list) = list(state, key)? {
                list.truncate(last + 1);
                list.drain(..first.min(list.len()));
                drop_empty(state, key);
            }
            text(b"OK")
        }
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    })
}

/// The key's list, if there is one; `None` if it holds another type.
fn list<'s>(state: &'s mut State, key: &[u8]) -> Option<Option<&'s mut List>> {
    match state.get_mut(key) {
        None => Some(None),
        Some(Datum::List(list)) => Some(Some(list)),
        Some(_) => None,
    }
}

fn list_or_new<'s>(state: &'s mut State, key: &[u8]) -> Option<&'s mut List> {
    match state.entry(key.to_vec()).or_insert_with(|| Datum::List(List::new())) {
        Datum::List(list) => Some(list),
        _ => None,
    }
}

fn push(list: &mut List, front: bool, element: Vec<u8>) {
    if front { list.push_front(element) } else { list.push_back(element) }
}

fn pop(state: &mut State, key: &[u8], front: bool) -> Option<Option<Vec<u8>>> {
    let Some(list) = list(state, key)? else { return Some(None) };
    let element = if front { list.pop_front() } else { list.pop_back() };
    drop_empty(state, key);
    Some(element)
}

fn drop_empty(state: &mut State, key: &[u8]) {
    if matches!(state.get(key), Some(Datum::List(list)) if list.is_empty()) {
        state.remove(key);
    }
}
