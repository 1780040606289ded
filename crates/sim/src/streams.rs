//! Streams: what clients do with them, and what they are promised.
//!
//! Entries are added, to some streams with ids that clients choose, to others with ids that the
//! node makes. By one group of consumers they are read, waited for, claimed and acknowledged: each
//! consumer is a client, and no entry goes to two of them, whatever crashes, unless it is claimed.
//! Others read and wait without a group.
//!
//! The oracle has no clock. It takes an id that the node has made from whatever showed it, and
//! demands that it is higher than all before (`resolve`). Who waits must get what came
//! (`overlooked`).

use crate::history::Operation;
use crate::oracle_commands::{Call, Datum, State};
use crate::producers;
use ladon_resp::client::Value;
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

/// A script that adds an entry: key, id and value.
pub(crate) const ADD: &str = "return redis.call('xadd', KEYS[1], ARGV[1], 'f', ARGV[2])";

/// What a client does with streams.
pub(crate) struct Reader {
    random: Random,
    consumer: String,
    /// Ids of entries that it knows, by the stream.
    known: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Reader {
    /// `consumer`: the client's own number.
    pub(crate) fn new(random: Random, consumer: u64) -> Reader {
        Reader { random, consumer: format!("c{consumer}"), known: BTreeMap::new() }
    }

    /// Whether it does something now.
    pub(crate) fn wants(&mut self) -> bool {
        self.random.chance(1, 2)
    }

    /// A call on a stream; `value` is unlike any other.
    pub(crate) fn call(&mut self, value: &str) -> Call {
        let (random, consumer) = (&mut self.random, self.consumer.as_str());
        // Where ids are chosen, and where they are made.
        let is_made = random.chance(1, 3);
        let number = random.below(2);
        let key = format!("{}{number}", if is_made { "y" } else { "x" });
        let ms = 1 + random.below(3);
        let known = self.known.get(key.as_bytes()).map(|id| id.escape_ascii().to_string());
        let (new, old) = match is_made {
            true => ("*".to_owned(), known.unwrap_or_else(|| "1-1".to_owned())),
            false => (format!("{ms}-*"), format!("{ms}-{}", random.below(4))),
        };
        let wait = if random.chance(1, 3) { "3" } else { "100" };
        let words: Vec<&str> = match random.below(22) {
            0..4 => vec!["XADD", &key, &new, "f", value],
            4 => vec!["XADD", &key, "MAXLEN", "4", &new, "f", value],
            5 => vec!["XADD", &key, "MINID", &old, &new, "f", value],
            6 => vec!["EVAL", ADD, "1", &key, &new, value],
            7 | 8 => vec!["XGROUP", "CREATE", &key, "g", "0", "MKSTREAM"],
            9 => vec!["XREADGROUP", "GROUP", "g", consumer, "COUNT", "2", "STREAMS", &key, ">"],
            10 | 11 => {
                let head = ["XREADGROUP", "GROUP", "g", consumer, "COUNT", "1", "BLOCK", wait];
                head.into_iter().chain(["STREAMS", &key, ">"]).collect()
            }
            12 => vec!["XACK", &key, "g", &old],
            13 => vec!["XPENDING", &key, "g"],
            14 => vec!["XDEL", &key, &old],
            15 if random.chance(1, 2) => vec!["XTRIM", &key, "MAXLEN", "6"],
            15 => vec!["XTRIM", &key, "MINID", &old],
            16 => vec!["XCLAIM", &key, "g", consumer, "0", &old, "1-1", "2-0"],
            17 => vec!["XAUTOCLAIM", &key, "g", consumer, "0", "0", "COUNT", "2"],
            18 => vec!["XREAD", "BLOCK", wait, "STREAMS", &key, "$"],
            19 => vec!["XREAD", "BLOCK", wait, "STREAMS", &key, &old],
            20 => {
                let two = ["x0", "y0", "3-2", "$"];
                ["XREAD", "BLOCK", wait, "STREAMS"].into_iter().chain(two).collect()
            }
            _ if random.chance(1, 8) => vec!["DEL", &key],
            _ if random.chance(1, 2) => vec!["XREAD", "COUNT", "2", "STREAMS", &key, &old],
            _ => vec!["XRANGE", &key, "-", "+"],
        };
        words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// Takes in the reply to one of its calls.
    pub(crate) fn learns(&mut self, call: &Call, reply: &Value) {
        if let (Some(added), Value::Bulk(id)) = (Added::by(call), reply)
            && self.random.chance(1, 2)
        {
            self.known.insert(added.key.to_vec(), id.clone());
        }
    }
}

/// An entry that a call adds.
struct Added<'a> {
    key: &'a [u8],
    /// The id's position in the call.
    id: usize,
    value: &'a [u8],
}

impl Added<'_> {
    fn by(call: &Call) -> Option<Added<'_>> {
        let value = call.last()?;
        match call[0].as_slice() {
            b"XADD" => Some(Added { key: &call[1], id: call.len() - 3, value }),
            b"EVAL" if call[1] == ADD.as_bytes() => {
                Some(Added { key: &call[3], id: call.len() - 2, value })
            }
            _ => None,
        }
    }
}

/// Whether it has added an entry whose id the node makes.
pub(crate) fn is_id_made(call: &Call, reply: &Value) -> bool {
    matches!(reply, Value::Bulk(_)) && Added::by(call).is_some_and(|it| call[it.id] == b"*")
}

/// Whether it waits for an entry.
pub(crate) fn may_wait(call: &Call) -> bool {
    matches!(call[0].as_slice(), b"XREADGROUP" | b"XREAD") && timeout_ms(call).is_some()
}

fn timeout_ms(call: &Call) -> Option<u64> {
    let at = call.iter().position(|word| word == b"BLOCK")?;
    std::str::from_utf8(call.get(at + 1)?).ok()?.parse().ok()
}

/// One text for a group that was missing from the start, and one that went while a client waited. A
/// script's error without the script's name.
pub(crate) fn in_order(call: &Call, reply: Value) -> Value {
    match reply {
        Value::Error(text) if call[0] == b"XREADGROUP" && text.starts_with(b"NOGROUP") => {
            Value::Error(b"NOGROUP".to_vec())
        }
        Value::Error(mut text) if call[0] == b"EVAL" && call[1] == ADD.as_bytes() => {
            let name = b" script: ";
            let end = text.windows(name.len()).position(|window| window == name);
            text.truncate(end.unwrap_or(text.len()));
            Value::Error(text)
        }
        reply => reply,
    }
}

type Id = (u64, u64);

fn parse(id: &[u8]) -> Option<Id> {
    let (ms, seq) = std::str::from_utf8(id).ok()?.split_once('-')?;
    Some((ms.parse().ok()?, seq.parse().ok()?))
}

/// The ids at which entries were seen, by their values. An entry has several if it was removed and
/// its producer sent it again.
type Seen = BTreeMap<Vec<u8>, BTreeSet<Id>>;

/// Puts ids in the place of `*` and `$`, as far as anybody has seen them: in a reply, or in
/// `after`, where a stream also remembers what a producer has sent and a later entry has trimmed.
pub(crate) fn resolve(history: &mut [Operation], after: &State) {
    let mut ids = Seen::new();
    for operation in history.iter() {
        for (call, reply) in operation.answered() {
            if Added::by(call).is_none() {
                collect_ids(reply, &mut ids);
            }
        }
    }
    for datum in after.keys.values() {
        let Datum::Stream(stream) = datum else { continue };
        for (id, words) in &stream.entries {
            let value = words.last().cloned().unwrap_or_default();
            ids.entry(value).or_default().insert(*id);
        }
    }
    // Calls that were answered take their own.
    for operation in history.iter() {
        for (call, reply) in operation.answered() {
            if let (Some(added), Value::Bulk(id)) = (Added::by(call), reply)
                && let (Some(id), Some(seen)) = (parse(id), ids.get_mut(added.value))
            {
                seen.remove(&id);
            }
        }
    }
    for operation in history {
        let replies: Vec<Option<Value>> = match operation.answered() {
            answered if answered.is_empty() => vec![None; operation.calls.len()],
            answered => answered.into_iter().map(|(_, reply)| Some(reply.clone())).collect(),
        };
        for (call, reply) in operation.calls.iter_mut().zip(replies) {
            producers::name_id(call);
            resolve_call(call, reply.as_ref(), &mut ids);
            if let Some(added) = Added::by(call)
                && call[added.id] == b"*"
                && let Some((ms, seq)) = producers::remembered(after, call)
            {
                let at = added.id;
                call[at] = format!("{ms}-{seq}").into_bytes();
            }
        }
    }
}

fn resolve_call(call: &mut Call, reply: Option<&Value>, ids: &mut Seen) {
    if let Some(Added { id: at, value, .. }) = Added::by(call)
        && call[at] == b"*"
    {
        match reply {
            Some(Value::Bulk(id)) => call[at].clone_from(id),
            // It has added nothing: the id is another call's, which sent the same.
            Some(Value::Error(_)) => {}
            _ => {
                if let Some((ms, seq)) = ids.get_mut(value).and_then(BTreeSet::pop_first) {
                    call[at] = format!("{ms}-{seq}").into_bytes();
                }
            }
        }
    }
    if call[0] != b"XREAD" {
        return;
    }
    let names = names_of(call).to_vec();
    let first_id = call.len() - names.len();
    for (at, name) in names.iter().enumerate() {
        if call[first_id + at] == b"$" {
            let first = reply.and_then(|reply| shown_of(reply, name).first().copied());
            // Nothing of it, or what came first and all after that.
            let (ms, seq) = first.map_or((u64::MAX, u64::MAX), |((ms, seq), _)| match seq {
                0 => (ms - 1, u64::MAX),
                _ => (ms, seq - 1),
            });
            call[first_id + at] = format!("{ms}-{seq}").into_bytes();
        }
    }
}

/// Notes the ids of all entries in a reply, by their values.
fn collect_ids(reply: &Value, ids: &mut Seen) {
    let Value::Array(parts) = reply else { return };
    if let [Value::Bulk(id), Value::Array(words)] = &parts[..]
        && let Some(id) = parse(id)
        && let Some(Value::Bulk(value)) = words.last()
    {
        ids.entry(value.clone()).or_default().insert(id);
    }
    parts.iter().for_each(|part| collect_ids(part, ids));
}

/// The keys that `XREAD` reads.
fn names_of(call: &Call) -> &[Vec<u8>] {
    let at = call.iter().position(|word| word == b"STREAMS").map_or(call.len(), |at| at + 1);
    &call[at..at + (call.len() - at) / 2]
}

/// The entries of one key in a reply of `XREAD`: ids and values.
fn shown_of<'r>(reply: &'r Value, name: &[u8]) -> Vec<(Id, &'r [u8])> {
    let Value::Array(streams) = reply else { return Vec::new() };
    let of_name = streams.iter().find_map(|stream| match stream {
        Value::Array(parts) => match &parts[..] {
            [Value::Bulk(key), Value::Array(entries)] if key == name => Some(entries),
            _ => None,
        },
        _ => None,
    });
    let entry = |entry: &'r Value| match entry {
        Value::Array(parts) => match &parts[..] {
            [Value::Bulk(id), Value::Array(words)] => Some((parse(id)?, words.last()?.as_bytes()?)),
            _ => None,
        },
        _ => None,
    };
    of_name.into_iter().flatten().filter_map(entry).collect()
}

/// A wait without a group that should have ended before, with what was added meanwhile; or one that
/// ended with what had been there before. `now_us`: a time at which everything was answered that
/// can be; `None`: nobody can say.
pub(crate) fn overlooked(history: &[Operation], now_us: Option<u64>) -> Option<String> {
    let waits =
        |it: &&Operation| !it.atomic && it.calls[0][0] == b"XREAD" && may_wait(&it.calls[0]);
    history.iter().filter(waits).find_map(|wait| {
        let call = &wait.calls[0];
        let names = names_of(call);
        let ids = &call[call.len() - names.len()..];
        names.iter().zip(ids).find_map(|(name, after)| {
            let what = match (&wait.end, after.as_slice()) {
                (Some((_, reply @ Value::Array(_))), b"$") => shown_of(reply, name)
                    .into_iter()
                    .find_map(|(_, value)| added_before(wait, value, history))
                    .map(|old| format!("it was added before the wait: {}", old.show())),
                (Some((_, Value::NullArray)), after) => {
                    let until_us = wait.sent_us + 1000 * timeout_ms(call).unwrap_or(0);
                    missed(wait, name, after, until_us, history)
                }
                (None, after) => missed(wait, name, after, now_us?, history),
                _ => None,
            };
            Some(format!("{}: {}", wait.show(), what?))
        })
    })
}

/// What had added this value, and was answered, before a wait was sent.
fn added_before<'h>(
    wait: &Operation,
    value: &[u8],
    history: &'h [Operation],
) -> Option<&'h Operation> {
    // A producer may have added it again.
    let adds = |call: &Call| {
        !producers::is_sent(call) && Added::by(call).is_some_and(|added| added.value == value)
    };
    history.iter().find(|it| {
        let is_before = it.end.as_ref().is_some_and(|(end, _)| *end < wait.begin);
        is_before && it.calls.iter().any(adds)
    })
}

/// The ids of the entries that it is known to have added to this stream.
fn added(operation: &Operation, name: &[u8]) -> impl Iterator<Item = Id> {
    operation.answered().into_iter().filter_map(move |(call, reply)| {
        // A producer's entry may have been there before.
        Added::by(call).filter(|added| added.key == name && !producers::is_sent(call))?;
        let Value::Bulk(id) = reply else { return None };
        parse(id)
    })
}

/// What was added, and seen to be, while it waited for that and before this time; not if anything
/// else might have removed the entry.
fn missed(
    wait: &Operation,
    name: &[u8],
    after: &[u8],
    until_us: u64,
    history: &[Operation],
) -> Option<String> {
    let ran = wait.ran?;
    let after = if after == b"$" { (0, 0) } else { parse(after)? };
    let end = wait.end.as_ref().map_or(u64::MAX, |(end, _)| *end);
    history.iter().find_map(|it| {
        let came = it.begin > ran && it.end.is_some() && it.end_us < until_us;
        if !came || !added(it, name).any(|id| id > after) {
            return None;
        }
        let is_safe = history.iter().all(|other| {
            let is_later = other.begin > end;
            let is_earlier = other.end.as_ref().is_some_and(|(end, _)| *end < it.begin);
            let may_remove = other.calls.iter().any(|call| may_remove(call, name));
            is_later || is_earlier || other.was_refused() || !may_remove
        });
        is_safe.then(|| format!("it outlived {}", it.show()))
    })
}

/// Whether a call may remove the last entry of this stream.
fn may_remove(call: &Call, name: &[u8]) -> bool {
    match call[0].as_slice() {
        b"FLUSHALL" => true,
        b"XDEL" | b"DEL" | b"EVICT" => call[1] == name,
        // Of `XADD`, its own entry if that is the older one.
        b"XTRIM" | b"XADD" => call[1] == name && call[2] == b"MINID",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Verdict, judge};

    fn operation(text: &str, begin: u64, end: Option<(u64, Value)>) -> Operation {
        let call = text.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        Operation { end, ran: Some(begin), ..Operation::new(vec![call], begin) }
    }

    fn id(at: u64, id: &str) -> Option<(u64, Value)> {
        Some((at, Value::Bulk(id.into())))
    }

    fn entry(id: &str, value: &str) -> Value {
        let words = Value::Array(["f", value].map(|it| Value::Bulk(it.into())).to_vec());
        Value::Array(vec![Value::Bulk(id.into()), words])
    }

    fn shown(at: u64, entries: &[(&str, &str)]) -> Option<(u64, Value)> {
        let entries = entries.iter().map(|(id, value)| entry(id, value)).collect();
        let of_key = Value::Array(vec![Value::Bulk("y0".into()), Value::Array(entries)]);
        Some((at, Value::Array(vec![of_key])))
    }

    /// By a search; all of it is on the disk.
    fn explains(mut history: Vec<Operation>) -> bool {
        let ids = [(5, "1:1"), (7, "1:2")]
            .map(|(ms, value)| ((ms, 0), vec![b"f".to_vec(), value.as_bytes().to_vec()]));
        let stream = Datum::Stream(crate::oracle_commands::Stream {
            last: (7, 0),
            entries: ids.into(),
            ..crate::oracle_commands::Stream::default()
        });
        let after = State { keys: [(b"y0".to_vec(), stream)].into(), ..State::new() };
        resolve(&mut history, &after);
        judge(&history, &[], &State::new(), &after) == Verdict::Explained
    }

    #[test]
    fn ids_of_the_node_have_to_grow() {
        let add = |value: &str, begin, end| operation(&format!("XADD y0 * f {value}"), begin, end);
        assert!(explains(vec![add("1:1", 1, id(2, "5-0")), add("1:2", 3, id(4, "7-0"))]));
        assert!(!explains(vec![add("1:1", 1, id(2, "7-0")), add("1:2", 3, id(4, "5-0"))]));
        // The data says what a crash has kept from the client.
        assert!(explains(vec![add("1:1", 1, id(2, "5-0")), add("1:2", 3, None)]));
        assert!(!explains(vec![add("1:2", 1, None), add("1:1", 3, id(4, "5-0"))].split_off(1)));
    }

    #[test]
    fn a_wait_for_the_new_gets_all_that_is_new() {
        let history = |seen: &[(&str, &str)]| {
            let add = |value: &str, begin, shown: &str| {
                operation(&format!("XADD y0 * f {value}"), begin, id(begin + 1, shown))
            };
            let wait = operation("XREAD BLOCK 5 STREAMS y0 $", 0, shown(9, seen));
            vec![add("1:1", 1, "5-0"), add("1:2", 3, "7-0"), wait]
        };
        assert!(explains(history(&[("5-0", "1:1")])));
        assert!(explains(history(&[("5-0", "1:1"), ("7-0", "1:2")])));
        assert!(explains(history(&[("7-0", "1:2")])), "it may have come in between");
        assert!(!explains(history(&[("5-0", "1:2")])));
    }

    #[test]
    fn a_wait_ends_with_the_first_entry_that_comes() {
        let wait = |end| operation("XREAD BLOCK 5 STREAMS y0 $", 1, end);
        let add = |begin| Operation {
            end_us: 2_000,
            ..operation("XADD y0 * f 1:1", begin, id(begin + 1, "5-0"))
        };
        let null = || Some((9, Value::NullArray));
        let trouble = |history: &[Operation], now| overlooked(history, now).is_some();
        assert!(trouble(&[wait(null()), add(2)], None));
        assert!(trouble(&[wait(None), add(2)], Some(3_000)));
        assert!(!trouble(&[wait(None), add(2)], Some(1_000)), "it was answered just now");
        assert!(!trouble(&[wait(null()), add(0)], None), "it may have come before");
        assert!(!trouble(&[wait(shown(9, &[("5-0", "1:1")])), add(2)], None));
        let late = Operation { end_us: 6_000, ..add(2) };
        assert!(!trouble(&[wait(null()), late], None), "the wait may have been over");
        let gone = operation("XDEL y0 5-0", 3, None);
        assert!(!trouble(&[wait(null()), add(2), gone], None));
        let old = operation("XADD y0 * f 1:1", 0, id(0, "5-0"));
        assert!(trouble(&[wait(shown(9, &[("5-0", "1:1")])), old], None), "it was there before");
    }
}
