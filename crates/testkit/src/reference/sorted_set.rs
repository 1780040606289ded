//! The meaning of the commands on sorted sets.

use super::{Call, Datum, State, integer, number};
use ladon_resp::client::Value;
use std::collections::BTreeMap;

/// Applies the call and returns its reply; `None` if the key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    let adds = matches!(call[0].as_slice(), b"ZADD" | b"ZINCRBY");
    if !state.contains_key(&call[1]) && !adds {
        return Some(match call[0].as_slice() {
            b"ZREM" => Value::Integer(0),
            b"ZPOPMIN" | b"ZRANGE" => Value::Array(Vec::new()),
            _ => Value::Null,
        });
    }
    let datum = state.entry(call[1].clone()).or_insert_with(|| Datum::Sorted(BTreeMap::new()));
    let Datum::Sorted(set) = datum else { return None };
    let reply = match call[0].as_slice() {
        b"ZADD" => {
            let added = call[2..]
                .chunks(2)
                .filter(|pair| set.insert(pair[1].clone(), integer(&pair[0])).is_none());
            number(added.count())
        }
        b"ZINCRBY" => {
            let sum = set.entry(call[3].clone()).or_insert(0);
            *sum += integer::<i64>(&call[2]);
            Value::Bulk(sum.to_string().into_bytes())
        }
        b"ZREM" => number(call[2..].iter().filter(|member| set.remove(*member).is_some()).count()),
        b"ZRANK" => match ordered(set).iter().position(|(_, member)| **member == call[2]) {
            Some(rank) => number(rank),
            None => Value::Null,
        },
        b"ZRANGE" => {
            let each = ordered(set).into_iter();
            let each = each.flat_map(|(score, member)| [member.clone(), score.to_string().into()]);
            Value::Array(each.map(Value::Bulk).collect())
        }
        b"ZPOPMIN" => {
            let count = call.get(2).map_or(1, |count| integer(count));
            let first = ordered(set).into_iter().take(count);
            let first: Vec<_> = first.map(|(score, member)| (score, member.clone())).collect();
            for (_, member) in &first {
                set.remove(member);
            }
            let each = first.into_iter();
            let each = each.flat_map(|(score, member)| [member, score.to_string().into_bytes()]);
            Value::Array(each.map(Value::Bulk).collect())
        }
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    };
    if set.is_empty() {
        state.remove(&call[1]);
    }
    Some(reply)
}

fn ordered(set: &BTreeMap<Vec<u8>, i64>) -> Vec<(i64, &Vec<u8>)> {
    let mut all: Vec<_> = set.iter().map(|(member, &score)| (score, member)).collect();
    all.sort();
    all
}
