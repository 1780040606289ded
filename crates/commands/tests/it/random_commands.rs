//! Random commands on strings and keys against a plain map, and what the log then gives back.

use crate::common::{self, TestClient, TestNode};
use ladon_platform::Clock;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq)]
enum Held {
    String(Vec<u8>),
    Set(BTreeSet<String>),
}

/// What a node should hold and answer.
#[derive(Default)]
struct Model {
    keys: BTreeMap<(u16, String), (Held, Option<u64>)>,
    db: u16,
    now_ms: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Run(Vec<String>),
    Advance(u64),
}

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const DATABASES: u16 = 3;

fn bulk(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn integer(value: impl Into<i64>) -> String {
    format!(":{}", value.into())
}

impl Model {
    fn expire(&mut self) {
        let now_ms = self.now_ms;
        self.keys.retain(|_, (_, expiry)| expiry.is_none_or(|at| at > now_ms));
    }

    fn at(&self, key: &str) -> (u16, String) {
        (self.db, key.to_owned())
    }

    fn get(&self, key: &str) -> Option<&(Held, Option<u64>)> {
        self.keys.get(&self.at(key))
    }

    fn string(&self, key: &str) -> Result<Option<&Vec<u8>>, String> {
        match self.get(key) {
            Some((Held::String(bytes), _)) => Ok(Some(bytes)),
            Some(_) => Err(WRONG_TYPE.to_owned()),
            None => Ok(None),
        }
    }

    fn expiry(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(|(_, expiry)| *expiry)
    }

    fn put(&mut self, key: &str, bytes: &[u8], expiry: Option<u64>) {
        self.keys.insert(self.at(key), (Held::String(bytes.to_vec()), expiry));
    }

    fn run(&mut self, words: &[String]) -> String {
        self.expire();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.answer(&words).unwrap_or_else(|error| error)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each command")]
    fn answer(&mut self, words: &[&str]) -> Result<String, String> {
        let nil = || "nil".to_owned();
        let ok = || "+OK".to_owned();
        let shown = |bytes: Option<&Vec<u8>>| bytes.map_or(nil(), |bytes| bulk(bytes));
        Ok(match *words {
            ["SET", key, value, ref options @ ..] => {
                let mut expiry = None;
                let old = self.get(key).cloned();
                let get = options.contains(&"GET");
                let reply = if get { shown(self.string(key)?) } else { ok() };
                let refused = match options {
                    [.., "NX"] => old.is_some(),
                    [.., "XX"] => old.is_none(),
                    [.., "IFEQ", wanted] => match &old {
                        Some((Held::String(bytes), _)) => bytes != wanted.as_bytes(),
                        Some(_) => return Err(WRONG_TYPE.to_owned()),
                        None => true,
                    },
                    _ => false,
                };
                match options {
                    ["PX", ms, ..] => expiry = Some(self.now_ms + ms.parse::<u64>().unwrap()),
                    ["KEEPTTL", ..] => expiry = self.expiry(key),
                    _ => {}
                }
                if refused {
                    return Ok(if get { reply } else { nil() });
                }
                self.put(key, value.as_bytes(), expiry);
                reply
            }
            ["GET", key] => shown(self.string(key)?),
            ["GETDEL", key] => {
                let reply = shown(self.string(key)?);
                self.keys.remove(&self.at(key));
                reply
            }
            ["GETEX", key, "PERSIST"] => {
                let reply = shown(self.string(key)?);
                self.keys.entry(self.at(key)).and_modify(|(_, expiry)| *expiry = None);
                reply
            }
            ["GETSET", key, value] => {
                let reply = shown(self.string(key)?);
                self.put(key, value.as_bytes(), None);
                reply
            }
            ["SETNX", key, value] => {
                let is_new = self.get(key).is_none();
                if is_new {
                    self.put(key, value.as_bytes(), None);
                }
                integer(is_new)
            }
            ["MSETNX", first, value, second, other] => {
                let free = self.get(first).is_none() && self.get(second).is_none();
                if free {
                    self.put(first, value.as_bytes(), None);
                    self.put(second, other.as_bytes(), None);
                }
                integer(free)
            }
            ["MGET", first, second] => {
                let show = |key| shown(self.string(key).ok().flatten());
                format!("[{} {}]", show(first), show(second))
            }
            ["APPEND", key, more] => {
                let mut bytes = self.string(key)?.cloned().unwrap_or_default();
                bytes.extend_from_slice(more.as_bytes());
                let expiry = self.expiry(key);
                self.put(key, &bytes, expiry);
                integer(bytes.len() as i64)
            }
            ["SETRANGE", key, offset, piece] => {
                let mut bytes = self.string(key)?.cloned().unwrap_or_default();
                let start: usize = offset.parse().unwrap();
                if !piece.is_empty() {
                    let end = start + piece.len();
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[start..end].copy_from_slice(piece.as_bytes());
                    let expiry = self.expiry(key);
                    self.put(key, &bytes, expiry);
                }
                integer(bytes.len() as i64)
            }
            ["INCRBY", key, delta] => {
                let text = self.string(key)?.cloned().unwrap_or(b"0".to_vec());
                let text = String::from_utf8_lossy(&text);
                let old: i64 = text.parse().map_err(|_| NOT_INTEGER.to_owned())?;
                if old.to_string() != text {
                    return Err(NOT_INTEGER.to_owned());
                }
                let sum = old + delta.parse::<i64>().unwrap();
                let expiry = self.expiry(key);
                self.put(key, sum.to_string().as_bytes(), expiry);
                integer(sum)
            }
            ["STRLEN", key] => integer(self.string(key)?.map_or(0, Vec::len) as i64),
            ["SADD", key, member] => {
                let (db, key) = self.at(key);
                let new = (Held::Set(BTreeSet::new()), None);
                match &mut self.keys.entry((db, key)).or_insert(new).0 {
                    Held::Set(set) => integer(set.insert(member.to_owned())),
                    Held::String(_) => return Err(WRONG_TYPE.to_owned()),
                }
            }
            ["DEL" | "UNLINK", first, second] => {
                let removed = [first, second].map(|key| self.keys.remove(&self.at(key)).is_some());
                integer(removed.into_iter().map(i64::from).sum::<i64>())
            }
            ["EXISTS" | "TOUCH", first, second] => {
                let found = [first, second].map(|key| self.get(key).is_some());
                integer(found.into_iter().map(i64::from).sum::<i64>())
            }
            ["TYPE", key] => match self.get(key) {
                Some((Held::String(_), _)) => "+string".to_owned(),
                Some((Held::Set(_), _)) => "+set".to_owned(),
                None => "+none".to_owned(),
            },
            ["PEXPIRE", key, ms, ref condition @ ..] => {
                let at = self.now_ms as i64 + ms.parse::<i64>().unwrap();
                let Some((_, old)) = self.get(key) else { return Ok(integer(0)) };
                let old = old.map(|old| old as i64);
                let allowed = match condition {
                    ["NX"] => old.is_none(),
                    ["XX"] => old.is_some(),
                    ["GT"] => old.is_some_and(|old| at > old),
                    ["LT"] => old.is_none_or(|old| at < old),
                    _ => true,
                };
                if allowed {
                    self.keys.entry(self.at(key)).and_modify(|held| held.1 = Some(at as u64));
                    self.expire();
                }
                integer(allowed)
            }
            ["PERSIST", key] => {
                let had = self.expiry(key).is_some();
                self.keys.entry(self.at(key)).and_modify(|held| held.1 = None);
                integer(had)
            }
            ["PEXPIRETIME", key] => match self.get(key) {
                None => integer(-2),
                Some((_, None)) => integer(-1),
                Some((_, Some(at))) => integer(*at as i64),
            },
            ["RENAME", from, to] => {
                let held = self.keys.remove(&self.at(from)).ok_or("-ERR no such key")?;
                self.keys.insert(self.at(to), held);
                ok()
            }
            ["RENAMENX", from, to] => {
                let held = self.get(from).cloned().ok_or("-ERR no such key")?;
                let free = self.get(to).is_none();
                if free {
                    self.keys.remove(&self.at(from));
                    self.keys.insert(self.at(to), held);
                }
                integer(free)
            }
            ["COPY", from, to, "DB", db, ref replace @ ..] => {
                let target = (db.parse().unwrap(), to.to_owned());
                if self.at(from) == target {
                    return Err("-ERR source and destination objects are the same".to_owned());
                }
                let Some(held) = self.get(from).cloned() else { return Ok(integer(0)) };
                if replace.is_empty() && self.keys.contains_key(&target) {
                    return Ok(integer(0));
                }
                self.keys.insert(target, held);
                integer(1)
            }
            ["MOVE", key, db] => {
                let target = (db.parse().unwrap(), key.to_owned());
                if self.db == target.0 {
                    return Err("-ERR source and destination objects are the same".to_owned());
                }
                let Some(held) = self.get(key).cloned() else { return Ok(integer(0)) };
                let free = !self.keys.contains_key(&target);
                if free {
                    self.keys.remove(&self.at(key));
                    self.keys.insert(target, held);
                }
                integer(free)
            }
            ["SWAPDB", first, second] => {
                let (first, second): (u16, u16) = (first.parse().unwrap(), second.parse().unwrap());
                let swapped = |db| match db {
                    db if db == first => second,
                    db if db == second => first,
                    db => db,
                };
                let keys = std::mem::take(&mut self.keys).into_iter();
                self.keys = keys.map(|((db, key), held)| ((swapped(db), key), held)).collect();
                ok()
            }
            ["SELECT", db] => {
                self.db = db.parse().unwrap();
                ok()
            }
            ["FLUSHDB"] => {
                let db = self.db;
                self.keys.retain(|(of, _), _| *of != db);
                ok()
            }
            ["FLUSHALL"] => {
                self.keys.clear();
                ok()
            }
            _ => unreachable!("{words:?}"),
        })
    }
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(vec!["a", "b", "c", "d", "longer-key"]);
    let long = "v".repeat(2050);
    let value = move || {
        let values = ["", "1", "-17", "007", "text", &long].map(str::to_owned);
        prop::sample::select(values.to_vec())
    };
    let number = || (-3i64..100).prop_map(|n| n.to_string());
    let db = || (0..DATABASES).prop_map(|n| n.to_string());
    let options = prop::sample::select(vec![
        "",
        "",
        "GET",
        "NX",
        "XX",
        "GET NX",
        "GET XX",
        "KEEPTTL",
        "KEEPTTL XX",
        "PX 50",
        "PX 50 NX",
        "PX 30 GET",
        "IFEQ 1",
        "GET IFEQ 1",
        "PX 90 IFEQ text",
    ]);
    let condition = prop::sample::select(vec!["", "NX", "XX", "GT", "LT"]);
    macro_rules! command {
        ($name:literal $(, $part:expr)*) => {
            ($($part,)*).prop_map(|parts| words($name, &parts))
        };
    }
    prop_oneof![
        6 => command!("SET", key(), value(), options),
        2 => command!("GET", key()),
        1 => command!("GETDEL", key()),
        1 => command!("GETEX", key(), Just("PERSIST")),
        1 => command!("GETSET", key(), value()),
        1 => command!("SETNX", key(), value()),
        1 => command!("MSETNX", key(), value(), key(), value()),
        1 => command!("MGET", key(), key()),
        2 => command!("APPEND", key(), value()),
        2 => command!("SETRANGE", key(), (0..9).prop_map(|n: i32| n.to_string()), value()),
        3 => command!("INCRBY", key(), number()),
        1 => command!("STRLEN", key()),
        1 => command!("SADD", key(), value()),
        1 => command!("DEL", key(), key()),
        1 => command!("UNLINK", key(), key()),
        1 => command!("EXISTS", key(), key()),
        1 => command!("TOUCH", key(), key()),
        1 => command!("TYPE", key()),
        4 => command!("PEXPIRE", key(), number(), condition),
        1 => command!("PERSIST", key()),
        2 => command!("PEXPIRETIME", key()),
        2 => command!("RENAME", key(), key()),
        2 => command!("RENAMENX", key(), key()),
        2 => command!("COPY", key(), key(), Just("DB"), db()),
        2 => command!("COPY", key(), key(), Just("DB"), db(), Just("REPLACE")),
        2 => command!("MOVE", key(), db()),
        1 => command!("SWAPDB", db(), db()),
        2 => command!("SELECT", db()),
        1 => prop::sample::select(vec!["FLUSHDB", "FLUSHALL"])
            .prop_map(|name| Step::Run(vec![name.to_owned()])),
        4 => (0u64..60).prop_map(Step::Advance),
    ]
}

/// A tuple of parts as words: an empty option is none, `"PX 50"` is two.
trait Parts {
    fn parts(&self) -> Vec<String>;
}

macro_rules! parts {
    ($($name:ident)*) => {
        impl<$($name: ToString),*> Parts for ($($name,)*) {
            #[allow(non_snake_case, reason = "names of types as names of values")]
            fn parts(&self) -> Vec<String> {
                let ($($name,)*) = self;
                vec![$($name.to_string()),*]
            }
        }
    };
}
parts!(A);
parts!(A B);
parts!(A B C);
parts!(A B C D);
parts!(A B C D E);

fn words(name: &str, parts: &impl Parts) -> Step {
    let mut words = vec![name.to_owned()];
    for (index, part) in parts.parts().into_iter().enumerate() {
        // Options stand third; everything before may be empty and means it.
        if index >= 2 && matches!(name, "SET" | "PEXPIRE") {
            words.extend(part.split_whitespace().map(str::to_owned));
        } else {
            words.push(part);
        }
    }
    Step::Run(words)
}

fn run(node: &TestNode, client: &mut TestClient, words: &[String]) -> String {
    let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    common::show(&node.request(client, &args).0)
}

/// What the model holds in the form of a node's dump.
fn dump(model: &Model) -> common::Dump {
    let keys = model.keys.iter().map(|((db, key), (held, expiry))| {
        let (kind, parts) = match held {
            Held::String(bytes) => ("string", vec![bytes.clone()]),
            Held::Set(set) => ("set", set.iter().map(|m| m.clone().into_bytes()).collect()),
        };
        ((*db, key.clone().into_bytes()), (kind.to_owned(), parts, expiry.unwrap_or(0)))
    });
    keys.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn commands_answer_and_log_what_the_model_says(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let node = TestNode::new();
        let mut client = node.client();
        let mut model = Model { now_ms: node.clock.unix_ms(), ..Model::default() };
        for step in &steps {
            match step {
                Step::Advance(ms) => {
                    node.clock.advance(*ms);
                    model.now_ms += ms;
                }
                Step::Run(words) => {
                    let expected = model.run(words);
                    let reply = run(&node, &mut client, words);
                    prop_assert_eq!(reply, expected, "{:?}", words);
                }
            }
        }
        model.expire();
        let mut held = node.dump();
        prop_assert_eq!(&node.replayed(), &held);
        held.retain(|_, (_, _, expire_at)| *expire_at == 0 || *expire_at > model.now_ms);
        prop_assert_eq!(held, dump(&model));
    }
}
