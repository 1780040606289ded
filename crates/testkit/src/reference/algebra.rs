//! What commands mean that make a value of others: of sets, of sorted sets, and COPY.

use super::{Call, Datum, State, integer, number};
use ladon_resp::client::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Applies the call and returns its reply; `None` if a key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    match call[0].as_slice() {
        b"SUNION" | b"SINTER" | b"SDIFF" => {
            let result = combined(state, &call[0], &call[1..])?;
            Some(Value::Array(result.into_iter().map(Value::Bulk).collect()))
        }
        b"SUNIONSTORE" | b"SINTERSTORE" | b"SDIFFSTORE" => {
            let result = combined(state, &call[0], &call[2..])?;
            let count = result.len();
            let result = result.into_iter().map(|member| (member, 0)).collect();
            store(state, &call[1], (count > 0).then_some(Datum::Set(result)));
            Some(number(count))
        }
        b"ZUNIONSTORE" | b"ZINTERSTORE" => {
            let (keys, options) = call[3..].split_at(integer(&call[2]));
            let highest = options.ends_with(&[b"MAX".to_vec()]);
            let result = scored(state, keys, call[0] == b"ZINTERSTORE", highest)?;
            let count = result.len();
            store(state, &call[1], (count > 0).then_some(Datum::Sorted(result)));
            Some(number(count))
        }
        b"COPY" => {
            let Some(value) = state.get(&call[1]).cloned() else { return Some(Value::Integer(0)) };
            let replaces = call.len() > 3;
            let copies = replaces || !state.contains_key(&call[2]);
            if copies {
                store(state, &call[2], Some(value));
            }
            Some(number(usize::from(copies)))
        }
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    }
}

fn store(state: &mut State, key: &[u8], value: Option<Datum>) {
    state.remove(key);
    if let Some(value) = value {
        state.insert(key.to_vec(), value);
    }
}

fn combined(state: &State, name: &[u8], keys: &[Vec<u8>]) -> Option<BTreeSet<Vec<u8>>> {
    let mut sets = Vec::new();
    for key in keys {
        sets.push(match state.get(key) {
            None => BTreeSet::new(),
            Some(Datum::Set(set)) => set.keys().cloned().collect(),
            Some(_) => return None,
        });
    }
    sets.into_iter().reduce(|a, b| match name[1] {
        b'U' => &a | &b,
        b'I' => &a & &b,
        _ => &a - &b,
    })
}

/// Of members that any key has, or that every one has: their scores added up, or the highest.
fn scored(
    state: &State,
    keys: &[Vec<u8>],
    in_all: bool,
    highest: bool,
) -> Option<BTreeMap<Vec<u8>, i64>> {
    let mut sums: BTreeMap<Vec<u8>, (i64, usize)> = BTreeMap::new();
    for key in keys {
        let scores = match state.get(key) {
            None => continue,
            Some(Datum::Sorted(scores)) => scores.clone(),
            Some(Datum::Set(set)) => set.keys().map(|member| (member.clone(), 1)).collect(),
            Some(_) => return None,
        };
        for (member, score) in scores {
            let (sum, times) = sums.entry(member).or_default();
            *sum = if highest && *times > 0 { score.max(*sum) } else { score + *sum };
            *times += 1;
        }
    }
    let wanted = |times: usize| !in_all || times == keys.len();
    let sums = sums.into_iter().filter(|(_, (_, times))| wanted(*times));
    Some(sums.map(|(member, (sum, _))| (member, sum)).collect())
}
