//! The meaning of the stream commands. Times and consumers that have nothing pending are not kept.
//! There is no clock: who knows an id that a server has made from its own puts it into the call.

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
    /// What it remembers of producers.
    pub sent: Sent,
}

/// How many idempotent ids of a producer a stream remembers.
pub const IDS_MAX: usize = 5;

/// What a stream remembers of producers (`XADD ... IDMP`), without time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sent {
    /// Idempotent ids and entries of each producer, the oldest first.
    pub producers: BTreeMap<Vec<u8>, Vec<(Vec<u8>, Id)>>,
    /// Entries that were ever added so.
    pub added: u64,
    /// Entries that were not, because they had been.
    pub duplicates: u64,
}

impl Sent {
    /// The entry that this producer has sent under this id.
    pub fn find(&self, producer: &[u8], id: &[u8]) -> Option<Id> {
        let sent = self.producers.get(producer)?;
        sent.iter().find(|(known, _)| known == id).map(|(_, entry)| *entry)
    }

    fn remember(&mut self, producer: &[u8], id: &[u8], entry: Id) {
        let sent = self.producers.entry(producer.to_vec()).or_default();
        if sent.len() == IDS_MAX {
            sent.remove(0);
        }
        sent.push((id.to_vec(), entry));
        self.added += 1;
    }
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
        // XTRIM key MAXLEN|MINID threshold
        b"XTRIM" => match stream(state, key)? {
            None => number(0),
            Some(stream) => number(trim(stream, &call[2], &call[3])),
        },
        b"XREAD" => read(state, call)?,
        b"XCLAIM" => claim(state, call)?,
        b"XAUTOCLAIM" => claim_next(state, call)?,
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

/// `XADD key [MAXLEN|MINID threshold] [IDMP producer id] *|ms-*|id field value ...`; an id `*` is
/// one that nobody sees.
fn add(state: &mut State, call: &Call) -> Option<Value> {
    let bound = if is_bound(&call[2]) { 2 } else { 0 };
    let sender = (call[2 + bound] == b"IDMP").then(|| (&call[3 + bound], &call[4 + bound]));
    let options = bound + if sender.is_some() { 3 } else { 0 };
    let (key, id) = (&call[1], &call[2 + options]);
    if let Some((producer, sent)) = sender
        && let Some(stream) = stream(state, key)?
        && let Some(entry) = stream.sent.find(producer, sent)
    {
        stream.sent.duplicates += 1;
        return Some(shown(entry));
    }
    let last = stream(state, key)?.map_or((0, 0), |stream| stream.last);
    let next = (last.0, last.1 + 1);
    let id = match id.strip_suffix(b"-*").map(integer) {
        _ if id == b"*" => next,
        Some(ms) if ms == last.0 => next,
        Some(ms) => (ms, 0),
        None => parse(id),
    };
    if id <= last {
        return Some(Value::Error(
            b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
                .to_vec(),
        ));
    }
    let stream = stream_or_new(state, key)?;
    stream.last = id;
    stream.entries.insert(id, call[3 + options..].to_vec());
    if let Some((producer, sent)) = sender {
        stream.sent.remember(producer, sent, id);
    }
    if bound != 0 {
        trim(stream, &call[2], &call[3]);
    }
    Some(shown(id))
}

fn is_bound(word: &[u8]) -> bool {
    matches!(word, b"MAXLEN" | b"MINID")
}

/// Removes the oldest entries; how many.
fn trim(stream: &mut Stream, by: &[u8], threshold: &[u8]) -> usize {
    let before = stream.entries.len();
    if by == b"MINID" {
        stream.entries = stream.entries.split_off(&parse(threshold));
    } else {
        let surplus = before.saturating_sub(integer(threshold));
        (0..surplus).for_each(|_| drop(stream.entries.pop_first()));
    }
    before - stream.entries.len()
}

/// `XREAD [COUNT count] [BLOCK ms] STREAMS key ... id ...`
fn read(state: &mut State, call: &Call) -> Option<Value> {
    let count = if call[1] == b"COUNT" { integer(&call[2]) } else { usize::MAX };
    let streams = call.iter().position(|word| word == b"STREAMS").map_or(0, |at| at + 1);
    let (keys, ids) = call[streams..].split_at((call.len() - streams) / 2);
    let mut found = Vec::new();
    for (key, id) in keys.iter().zip(ids) {
        let Some(stream) = stream(state, key)? else { continue };
        let after = parse(id);
        let mut new = stream.entries.iter().filter(|(id, _)| **id > after).take(count).peekable();
        if new.peek().is_some() {
            found.push(Value::Array(vec![Value::Bulk(key.clone()), entries(new)]));
        }
    }
    Some(if found.is_empty() { Value::NullArray } else { Value::Array(found) })
}

/// What of it was delivered and not acknowledged, beside the entries; `None` without such a group.
type Shared<'s> = Option<(&'s BTreeMap<Id, Vec<Vec<u8>>>, &'s mut BTreeMap<Id, Vec<u8>>)>;

fn shared<'s>(state: &'s mut State, key: &[u8], group: &[u8]) -> Option<Shared<'s>> {
    Some(stream(state, key)?.and_then(|Stream { entries, groups, .. }| {
        Some((&*entries, &mut groups.get_mut(group)?.pending))
    }))
}

/// `XCLAIM key group consumer 0 id ...`
fn claim(state: &mut State, call: &Call) -> Option<Value> {
    let Some((all, pending)) = shared(state, &call[1], &call[2])? else {
        return Some(no_group(&call[1], &call[2], ""));
    };
    let mut claimed = Vec::new();
    for id in call[5..].iter().map(|id| parse(id)) {
        if let Some(consumer) = pending.get_mut(&id) {
            match all.get_key_value(&id) {
                Some(entry) => {
                    consumer.clone_from(&call[3]);
                    claimed.push(entry);
                }
                None => drop(pending.remove(&id)),
            }
        }
    }
    Some(entries(claimed.into_iter()))
}

/// `XAUTOCLAIM key group consumer 0 start COUNT count`
fn claim_next(state: &mut State, call: &Call) -> Option<Value> {
    let Some((all, pending)) = shared(state, &call[1], &call[2])? else {
        return Some(no_group(&call[1], &call[2], ""));
    };
    let (start, count): (Id, usize) = (parse(&call[5]), integer(&call[7]));
    let mut found = pending.range(start..).map(|(id, _)| *id);
    let ids: Vec<Id> = found.by_ref().take(count).collect();
    let next = found.next().unwrap_or((0, 0));
    let (mut claimed, mut gone) = (Vec::new(), Vec::new());
    for id in ids {
        match all.get_key_value(&id) {
            Some(entry) => {
                pending.insert(id, call[3].clone());
                claimed.push(entry);
            }
            None => {
                pending.remove(&id);
                gone.push(shown(id));
            }
        }
    }
    Some(Value::Array(vec![shown(next), entries(claimed.into_iter()), Value::Array(gone)]))
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
