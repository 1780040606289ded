//! What a lane's keys should hold, and what its requests should be answered.

use crate::operation::{Command, Operation};
use ladon_resp::client::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A string.
    Text(Vec<u8>),
    /// A set.
    Set(BTreeSet<u64>),
}

/// A lane's keys: value, and expiry time in Unix seconds (0 for none).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub keys: BTreeMap<&'static str, (Held, u64)>,
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn flag(is: bool) -> Value {
    Value::Integer(i64::from(is))
}

impl Model {
    /// Applies an operation; what the server should answer.
    pub fn apply(&mut self, operation: &Operation) -> Value {
        match operation {
            Operation::One(command) => self.run(command),
            Operation::Transaction(commands) => {
                Value::Array(commands.iter().map(|command| self.run(command)).collect())
            }
        }
    }

    fn run(&mut self, command: &Command) -> Value {
        match command {
            Command::Get(key) => {
                self.text(key).map_or(Value::Null, |text| Value::Bulk(text.clone()))
            }
            Command::Set(pairs) => {
                for (key, text) in pairs {
                    self.keys.insert(key, (Held::Text(text.clone()), 0));
                }
                ok()
            }
            Command::Append(key, more) => {
                let (held, _) = self.keys.entry(key).or_insert((Held::Text(Vec::new()), 0));
                let Held::Text(text) = held else { unreachable!("{key} is a string") };
                text.extend_from_slice(more);
                Value::Integer(text.len() as i64)
            }
            Command::IncrBy(key, amount) => {
                let old = self.text(key).map_or(0, |text| {
                    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).unwrap_or(0)
                });
                let new: i64 = old + amount;
                let expire_at = self.keys.get(key).map_or(0, |(_, at)| *at);
                self.keys.insert(key, (Held::Text(new.to_string().into_bytes()), expire_at));
                Value::Integer(new)
            }
            Command::Sadd(key, members) => {
                let (held, _) = self.keys.entry(key).or_insert((Held::Set(BTreeSet::new()), 0));
                let Held::Set(set) = held else { unreachable!("{key} is a set") };
                Value::Integer(members.iter().filter(|&&member| set.insert(member)).count() as i64)
            }
            Command::Srem(key, member) => flag(self.remove(key, *member)),
            Command::Smove(from, to, member) => {
                if !self.set(from).contains(member) {
                    return flag(false);
                }
                if from != to {
                    self.remove(from, *member);
                    self.run(&Command::Sadd(to, vec![*member]));
                }
                flag(true)
            }
            Command::SunionStore(to, first, second) => {
                let union: BTreeSet<u64> =
                    self.set(first).union(&self.set(second)).copied().collect();
                let count = union.len() as i64;
                if union.is_empty() {
                    self.keys.remove(to);
                } else {
                    self.keys.insert(to, (Held::Set(union), 0));
                }
                Value::Integer(count)
            }
            Command::Del(keys) => {
                let removed = keys.iter().filter(|&key| self.keys.remove(key).is_some()).count();
                Value::Integer(removed as i64)
            }
            Command::Rename(from, to) => match self.keys.remove(from) {
                Some(entry) => {
                    self.keys.insert(to, entry);
                    ok()
                }
                None => Value::Error(b"ERR no such key".to_vec()),
            },
            Command::ExpireAt(key, at) => match self.keys.get_mut(key) {
                Some((_, expire_at)) => {
                    *expire_at = *at;
                    flag(true)
                }
                None => flag(false),
            },
        }
    }

    fn text(&self, key: &str) -> Option<&Vec<u8>> {
        match self.keys.get(key) {
            Some((Held::Text(text), _)) => Some(text),
            _ => None,
        }
    }

    fn set(&self, key: &str) -> BTreeSet<u64> {
        match self.keys.get(key) {
            Some((Held::Set(set), _)) => set.clone(),
            _ => BTreeSet::new(),
        }
    }

    fn remove(&mut self, key: &'static str, member: u64) -> bool {
        let Some((Held::Set(set), _)) = self.keys.get_mut(key) else { return false };
        let removed = set.remove(&member);
        if set.is_empty() {
            self.keys.remove(key);
        }
        removed
    }
}
