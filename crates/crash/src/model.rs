//! The expected content of a lane's keys, and the expected replies to its requests.

use crate::operation::{Command, Operation, Side};
use ladon_resp::client::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A string.
    Text(Vec<u8>),
    /// A set.
    Set(BTreeSet<u64>),
    /// A list.
    List(VecDeque<u64>),
    /// A hash: fields and their numbers.
    Hash(BTreeMap<u64, i64>),
    /// A sorted set: members and their scores.
    Sorted(BTreeMap<u64, i64>),
}

fn number(number: impl ToString) -> Value {
    Value::Bulk(number.to_string().into_bytes())
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
    /// Applies an operation of a lane; returns the expected reply.
    pub fn apply(&mut self, lane: u64, operation: &Operation) -> Value {
        match operation {
            Operation::One(command) => self.run(lane, command),
            Operation::Transaction(commands) => {
                Value::Array(commands.iter().map(|command| self.run(lane, command)).collect())
            }
        }
    }

    fn run(&mut self, lane: u64, command: &Command) -> Value {
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
                    self.run(lane, &Command::Sadd(to, vec![*member]));
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
            on_collection => self.run_on_collection(lane, on_collection),
        }
    }

    /// Commands on lists, hashes, sorted sets and bitmaps.
    fn run_on_collection(&mut self, lane: u64, command: &Command) -> Value {
        match command {
            Command::Push(key, side, elements) => self.list(key, |list| {
                for &element in elements {
                    put(list, *side, element);
                }
                Value::Integer(list.len() as i64)
            }),
            Command::Pop(key, side, count) => self.list(key, |list| {
                if list.is_empty() {
                    return Value::NullArray;
                }
                let popped = (0..*count).map_while(|_| take(list, *side));
                Value::Array(popped.map(number).collect())
            }),
            Command::BlockingPop(key, side) => self.list(key, |list| match take(list, *side) {
                Some(element) => {
                    let name = format!("lane{lane}:{key}").into_bytes();
                    Value::Array(vec![Value::Bulk(name), number(element)])
                }
                None => Value::NullArray,
            }),
            // The list stays, and its expiry with it, though it is empty for a moment.
            Command::Lmove(from, to, side, end) if from == to => self.list(from, |list| {
                let Some(element) = take(list, *side) else { return Value::Null };
                put(list, *end, element);
                number(element)
            }),
            Command::Lmove(from, to, side, end) => {
                let Some(element) = self.list(from, |list| take(list, *side)) else {
                    return Value::Null;
                };
                self.list(to, |list| put(list, *end, element));
                number(element)
            }
            Command::Lrem(key, element) => self.list(key, |list| {
                let before = list.len();
                list.retain(|present| present != element);
                Value::Integer((before - list.len()) as i64)
            }),
            Command::Ltrim(key, count) => self.list(key, |list| {
                list.truncate(*count as usize);
                ok()
            }),
            Command::Hset(key, pairs) => self.numbers(key, Held::Hash, |hash| {
                let new = pairs
                    .iter()
                    .filter(|&&(field, value)| hash.insert(field, value as i64).is_none());
                Value::Integer(new.count() as i64)
            }),
            Command::Hincrby(key, field, by) => self.numbers(key, Held::Hash, |hash| {
                let value = hash.entry(*field).or_insert(0);
                *value += by;
                Value::Integer(*value)
            }),
            Command::Hdel(key, field) => {
                self.numbers(key, Held::Hash, |hash| flag(hash.remove(field).is_some()))
            }
            Command::Zadd(key, pairs) => self.numbers(key, Held::Sorted, |scores| {
                let new =
                    pairs.iter().filter(|&&(member, score)| scores.insert(member, score).is_none());
                Value::Integer(new.count() as i64)
            }),
            Command::Zincrby(key, member, by) => self.numbers(key, Held::Sorted, |scores| {
                let score = scores.entry(*member).or_insert(0);
                *score += by;
                number(*score)
            }),
            Command::Zpopmin(key, count) => self.numbers(key, Held::Sorted, |scores| {
                let mut order: Vec<_> = scores.iter().map(|(&m, &score)| (score, m)).collect();
                // Equal scores are in the members' order as bytes.
                order.sort_by_key(|&(score, member)| (score, member.to_string()));
                order.truncate(*count as usize);
                for (_, member) in &order {
                    scores.remove(member);
                }
                let flat = order.into_iter().flat_map(|(score, m)| [number(m), number(score)]);
                Value::Array(flat.collect())
            }),
            Command::ZunionStore(to, first, second) => {
                let mut union = BTreeMap::new();
                for key in [first, second] {
                    for (member, score) in self.numbers(key, Held::Sorted, |scores| scores.clone())
                    {
                        let highest = union.entry(member).or_insert(score);
                        *highest = score.max(*highest);
                    }
                }
                self.keys.remove(to);
                let count = union.len();
                self.numbers(to, Held::Sorted, |scores| *scores = union);
                Value::Integer(count as i64)
            }
            Command::Setbit(key, offset, on) => self.bits(key, offset / 8 + 1, |bytes| {
                let (byte, bit) = (&mut bytes[(offset / 8) as usize], 0x80 >> (offset % 8));
                let old = *byte & bit != 0;
                *byte = if *on { *byte | bit } else { *byte & !bit };
                flag(old)
            }),
            Command::BitfieldIncr(key, offset, by) => {
                self.bits(key, offset.div_ceil(8) + 1, |bytes| {
                    let (at, shift) = ((offset / 8) as usize, offset % 8);
                    let high = u16::from(bytes[at]) << 8;
                    let low = bytes.get(at + 1).copied().map_or(0, u16::from);
                    let window = high | low;
                    let old = (window << shift >> 8) as u8;
                    let new = old.wrapping_add(*by as u8);
                    let mask = 0xff00_u16 >> shift;
                    let window = window & !mask | (u16::from(new) << 8 >> shift);
                    bytes[at] = (window >> 8) as u8;
                    if shift != 0 {
                        bytes[at + 1] = window as u8;
                    }
                    Value::Array(vec![Value::Integer(new.into())])
                })
            }
            Command::Bitxor(to, first, second) => {
                let (first, second) = (self.text(first).cloned(), self.text(second).cloned());
                let (mut long, short) = (first.unwrap_or_default(), second.unwrap_or_default());
                let (long, short) = if long.len() < short.len() {
                    (short, std::mem::take(&mut long))
                } else {
                    (long, short)
                };
                let tail = short.iter().copied().chain(std::iter::repeat(0));
                let bytes: Vec<u8> = long.iter().zip(tail).map(|(a, b)| a ^ b).collect();
                let length = bytes.len();
                self.keys.remove(to);
                if length != 0 {
                    self.keys.insert(to, (Held::Text(bytes), 0));
                }
                Value::Integer(length as i64)
            }
            other => unreachable!("{other:?} is not on a collection"),
        }
    }

    /// Changes a list, which exists while it has elements.
    fn list<R>(&mut self, key: &'static str, change: impl FnOnce(&mut VecDeque<u64>) -> R) -> R {
        let (held, _) = self.keys.entry(key).or_insert((Held::List(VecDeque::new()), 0));
        let Held::List(list) = held else { unreachable!("{key} is a list") };
        let result = change(list);
        if list.is_empty() {
            self.keys.remove(key);
        }
        result
    }

    /// Changes a hash or a sorted set, which exists while it has members.
    fn numbers<R>(
        &mut self,
        key: &'static str,
        kind: fn(BTreeMap<u64, i64>) -> Held,
        change: impl FnOnce(&mut BTreeMap<u64, i64>) -> R,
    ) -> R {
        let (held, _) = self.keys.entry(key).or_insert((kind(BTreeMap::new()), 0));
        let (Held::Hash(numbers) | Held::Sorted(numbers)) = held else {
            unreachable!("{key} is a hash or a sorted set")
        };
        let result = change(numbers);
        if numbers.is_empty() {
            self.keys.remove(key);
        }
        result
    }

    /// Changes a bitmap of at least this many bytes.
    fn bits<R>(
        &mut self,
        key: &'static str,
        bytes: u64,
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> R {
        let (held, _) = self.keys.entry(key).or_insert((Held::Text(Vec::new()), 0));
        let Held::Text(text) = held else { unreachable!("{key} is a bitmap") };
        text.resize(text.len().max(bytes as usize), 0);
        change(text)
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

fn put(list: &mut VecDeque<u64>, side: Side, element: u64) {
    match side {
        Side::Left => list.push_front(element),
        Side::Right => list.push_back(element),
    }
}

fn take(list: &mut VecDeque<u64>, side: Side) -> Option<u64> {
    match side {
        Side::Left => list.pop_front(),
        Side::Right => list.pop_back(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Side;

    /// As Redis has it: the list is never seen to be empty.
    #[test]
    fn a_list_that_moves_its_only_element_keeps_its_expiry() {
        let mut model = Model::default();
        model.run(0, &Command::Push("l0", Side::Left, vec![7]));
        model.run(0, &Command::ExpireAt("l0", 4_000_000_000));
        model.run(0, &Command::Lmove("l0", "l0", Side::Left, Side::Right));
        assert_eq!(model.keys["l0"].1, 4_000_000_000);
    }
}
