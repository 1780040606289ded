//! The meaning of the stream commands. Times and consumers that have nothing pending are not kept.

use super::{Call, Datum, State, integer, number, text};
use ladon_resp::client::Value;
use std::collections::BTreeMap;

/// Milliseconds, and a number among those of the same millisecond.
pub type Id = (u64, u64);

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream {
    /// The highest id that was ever in it.
    pub last: Id,
    /// Entries: fields and values, one behind the other.
    pub entries: BTreeMap<Id, Vec<Vec<u8>>>,
    /// Its consumer groups.
    pub groups: BTreeMap<Vec<u8>, Group>,
}

/// A consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// The last id that it was given.
    pub last: Id,
    /// What was delivered and not acknowledged, and to which consumer.
    pub pending: BTreeMap<Id, Vec<u8>>,
}

/// Does what the call does; `None` if a key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    let key = &call[1];
    Some(match call[0].as_slice() {
        b"XADD" => add(state, call)?,
        b"XLEN" => number(stream(state, key)?.map_or(0, |stream| stream.entries.len())),
        b"XRANGE" => match stream(state, key)? {
            None => Value::Array(Vec::new()),
            Some(stream) => entries(stream.entries.iter()),
        },
        b"XDEL" => match stream(state, key)? {
            None => number(0),
            Some(stream) => {
                let ids = call[2..].iter().map(|id| parse(id));
                number(ids.filter(|id| stream.entries.remove(id).is_some()).count())
            }
        },
        // XTRIM key MAXLEN count
        b"XTRIM" => match stream(state, key)? {
            None => number(0),
            Some(stream) => {
                let surplus = stream.entries.len().saturating_sub(integer(&call[3]));
                (0..surplus).for_each(|_| drop(stream.entries.pop_first()));
                number(surplus)
            }
        },
        b"XGROUP" => create_group(state, call)?,
        b"XREADGROUP" => read_group(state, call)?,
        b"XACK" => match stream(state, key)?.and_then(|stream| stream.groups.get_mut(&call[2])) {
            None => number(0),
            Some(group) => {
                let ids = call[3..].iter().map(|id| parse(id));
                number(ids.filter(|id| group.pending.remove(id).is_some()).count())
            }
        },
        b"XPENDING" => {
            let group = stream(state, key)?.and_then(|stream| stream.groups.get(&call[2]));
            group.map_or_else(|| no_group(key, &call[2], ""), pending)
        }
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    })
}

fn stream<'s>(state: &'s mut State, key: &[u8]) -> Option<Option<&'s mut Stream>> {
    match state.get_mut(key) {
        None => Some(None),
        Some(Datum::Stream(stream)) => Some(Some(stream)),
        Some(_) => None,
    }
}

fn stream_or_new<'s>(state: &'s mut State, key: &[u8]) -> Option<&'s mut Stream> {
    match state.entry(key.to_vec()).or_insert_with(|| Datum::Stream(Stream::default())) {
        Datum::Stream(stream) => Some(stream),
        _ => None,
    }
}

fn parse(id: &[u8]) -> Id {
    let mut parts = id.split(|&byte| byte == b'-');
    let mut part = || parts.next().map_or(0, integer);
    (part(), part())
}

fn shown(id: Id) -> Value {
    Value::Bulk(format!("{}-{}", id.0, id.1).into_bytes())
}

fn entries<'a>(found: impl Iterator<Item = (&'a Id, &'a Vec<Vec<u8>>)>) -> Value {
    let entry = |(id, words): (&Id, &Vec<Vec<u8>>)| {
        let words = words.iter().cloned().map(Value::Bulk).collect();
        Value::Array(vec![shown(*id), Value::Array(words)])
    };
    Value::Array(found.map(entry).collect())
}

/// `XADD key ms-* field value ...`
fn add(state: &mut State, call: &Call) -> Option<Value> {
    let ms = call[2].strip_suffix(b"-*").map_or(0, integer);
    let last = stream(state, &call[1])?.map_or((0, 0), |stream| stream.last);
    if ms < last.0 {
        return Some(Value::Error(
            b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
                .to_vec(),
        ));
    }
    let stream = stream_or_new(state, &call[1])?;
    let id = if ms == last.0 { (ms, last.1 + 1) } else { (ms, 0) };
    stream.last = id;
    stream.entries.insert(id, call[3..].to_vec());
    Some(shown(id))
}

/// `XGROUP CREATE key group 0 MKSTREAM`
fn create_group(state: &mut State, call: &Call) -> Option<Value> {
    let groups = &mut stream_or_new(state, &call[2])?.groups;
    if groups.contains_key(&call[3]) {
        return Some(Value::Error(b"BUSYGROUP Consumer Group name already exists".to_vec()));
    }
    groups.insert(call[3].clone(), Group::default());
    Some(text(b"OK"))
}

fn no_group(key: &[u8], group: &[u8], end: &str) -> Value {
    let (key, group) = (key.escape_ascii(), group.escape_ascii());
    let text = format!("NOGROUP No such key '{key}' or consumer group '{group}'{end}");
    Value::Error(text.into_bytes())
}

/// `XREADGROUP GROUP group consumer COUNT count [BLOCK ms] STREAMS key >`
fn read_group(state: &mut State, call: &Call) -> Option<Value> {
    let (key, count) = (&call[call.len() - 2], integer(&call[5]));
    let found = stream(state, key)?
        .and_then(|Stream { entries, groups, .. }| Some((entries, groups.get_mut(&call[2])?)));
    let Some((all, group)) = found else {
        return Some(no_group(key, &call[2], " in XREADGROUP with GROUP option"));
    };
    let mut given: BTreeMap<Id, Vec<Vec<u8>>> = BTreeMap::new();
    for (id, words) in all.iter().filter(|(id, _)| **id > group.last).take(count) {
        given.insert(*id, words.clone());
    }
    let Some((&last, _)) = given.last_key_value() else { return Some(Value::NullArray) };
    group.last = last;
    group.pending.extend(given.keys().map(|id| (*id, call[3].clone())));
    let of_key = vec![Value::Bulk(key.clone()), entries(given.iter())];
    Some(Value::Array(vec![Value::Array(of_key)]))
}

/// The summary of `XPENDING key group`.
fn pending(group: &Group) -> Value {
    let ends = group.pending.first_key_value().zip(group.pending.last_key_value());
    let Some(((first, _), (last, _))) = ends else {
        return Value::Array(vec![number(0), Value::Null, Value::Null, Value::NullArray]);
    };
    let mut consumers: BTreeMap<&[u8], usize> = BTreeMap::new();
    for consumer in group.pending.values() {
        *consumers.entry(consumer).or_default() += 1;
    }
    let of_consumer = |(name, count): (&[u8], usize)| {
        let count = count.to_string().into_bytes();
        Value::Array(vec![Value::Bulk(name.to_vec()), Value::Bulk(count)])
    };
    let consumers = Value::Array(consumers.into_iter().map(of_consumer).collect());
    Value::Array(vec![number(group.pending.len()), shown(*first), shown(*last), consumers])
}
