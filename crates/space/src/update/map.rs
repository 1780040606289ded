//! A map inside of a tuple that is being updated.
//!
//! As in Tarantool, keys that operations named come first in the new map, the last of them in
//! front, and then the pairs that nobody touched.

use super::lexer::Lexer;
use super::node::Slot;
use super::operation::{Action, Operation};
use super::walk::Walk;
use crate::error::BoxError;
use crate::format::Rule;
use ladon_msgpack::{self as msgpack, Value, write};
use std::collections::HashMap;
use std::ops::Range;

/// Maps of more pairs than this are searched by hash.
const SEARCHED_MAX: usize = 16;

/// A pair of the map as it was.
struct Pair<'a> {
    /// If it is a string.
    key: Option<&'a [u8]>,
    /// Key and value.
    bytes: &'a [u8],
    value: &'a [u8],
}

/// A pair that an operation named, and pairs behind it that none did.
struct Item<'a> {
    /// None if the pair was deleted, or there was none.
    named: Option<(&'a [u8], Slot<'a>)>,
    untouched: Range<usize>,
}

pub(super) struct Map<'a> {
    pairs: Vec<Pair<'a>>,
    /// The first pair with each key, if there are many.
    numbers: HashMap<&'a [u8], usize>,
    /// The last is the first in the new map.
    items: Vec<Item<'a>>,
    count: u32,
}

impl<'a> Map<'a> {
    /// A map, with something in the place of the value of a key that it has.
    pub(super) fn of(bytes: &'a [u8], child: Option<(&'a [u8], Slot<'a>)>) -> Map<'a> {
        let pairs = pairs_of(bytes);
        let mut numbers = HashMap::new();
        if pairs.len() > SEARCHED_MAX {
            for (number, pair) in pairs.iter().enumerate() {
                if let Some(key) = pair.key {
                    numbers.entry(key).or_insert(number);
                }
            }
        }
        let count = pairs.len();
        let mut map = Map { pairs, numbers, items: Vec::new(), count: count as u32 };
        let number = child.as_ref().and_then(|(key, _)| map.number_of(key));
        match number {
            Some(number) => {
                map.items.push(Item { named: None, untouched: 0..number });
                map.items.push(Item { named: child, untouched: number + 1..count });
            }
            None => map.items.push(Item { named: None, untouched: 0..count }),
        }
        map
    }

    /// Does an operation on the value of a key, or inside of it if there is a path left.
    pub(super) fn act_at(
        &mut self,
        operation: &Operation<'a>,
        key: &'a [u8],
        path: Lexer<'a>,
        walk: &mut Walk,
    ) -> Result<(), BoxError> {
        let found = self.name(key);
        if !path.is_at_end() {
            let number = found.ok_or_else(|| operation.no_field())?;
            return self
                .slot(number)
                .ok_or_else(|| operation.no_field())?
                .enter(operation, path, walk);
        }
        match (&operation.action, found) {
            (Action::Insert(_), Some(_)) => Err(operation.duplicate()),
            (Action::Insert(value) | Action::Set(value), None) => {
                self.count += 1;
                self.items.push(Item { named: Some((key, Slot::Old(value))), untouched: 0..0 });
                Ok(())
            }
            (Action::Set(value), Some(number)) => {
                self.items[number].named = Some((key, Slot::Set(value)));
                Ok(())
            }
            (Action::Delete(count), _) if *count != 1 => Err(operation.delete_one()),
            // What is not there is deleted.
            (Action::Delete(_), None) => Ok(()),
            (Action::Delete(_), Some(number)) => {
                self.items[number].named = None;
                self.count -= 1;
                Ok(())
            }
            (_, found) => {
                let slot = found.and_then(|number| self.slot(number));
                slot.ok_or_else(|| operation.no_field())?.compute(operation)
            }
        }
    }

    fn slot(&mut self, item: usize) -> Option<&mut Slot<'a>> {
        self.items[item].named.as_mut().map(|(_, slot)| slot)
    }

    /// The item that names a key; makes it if the map has the key.
    fn name(&mut self, key: &'a [u8]) -> Option<usize> {
        let is_it = |item: &Item<'_>| item.named.as_ref().is_some_and(|(named, _)| *named == key);
        if let Some(item) = self.items.iter().rposition(is_it) {
            return Some(item);
        }
        let number = self.number_of(key)?;
        let item = self.items.iter().rposition(|item| item.untouched.contains(&number))?;
        let (from, to) = (self.items[item].untouched.start, self.items[item].untouched.end);
        let named = Some((key, Slot::Old(self.pairs[number].value)));
        if self.items[item].named.is_none() && number == from {
            self.items[item] = Item { named, untouched: number + 1..to };
            return Some(item);
        }
        self.items[item].untouched = from..number;
        self.items.push(Item { named, untouched: number + 1..to });
        Some(self.items.len() - 1)
    }

    /// The number of the first pair with a key.
    fn number_of(&self, key: &[u8]) -> Option<usize> {
        match self.numbers.is_empty() {
            true => self.pairs.iter().position(|pair| pair.key == Some(key)),
            false => self.numbers.get(key).copied(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, rule: Option<&Rule>) {
        write::map(out, self.count);
        for (key, slot) in self.items.iter().rev().filter_map(|item| item.named.as_ref()) {
            write::str(out, key);
            slot.write(out, rule.and_then(|rule| rule.of_key(key)));
        }
        for item in self.items.iter().rev() {
            let untouched = &self.pairs[item.untouched.clone()];
            untouched.iter().for_each(|pair| out.extend_from_slice(pair.bytes));
        }
    }
}

/// The pairs of a map; ends early where the bytes are damaged.
fn pairs_of(mut rest: &[u8]) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    for _ in 0..msgpack::read_map(&mut rest).unwrap_or(0) {
        let from = rest;
        let Ok(key) = msgpack::take(&mut rest) else { break };
        let Ok(value) = msgpack::take(&mut rest) else { break };
        let key = match msgpack::read(&mut { key }) {
            Ok(Value::Str(key)) => Some(key),
            _ => None,
        };
        pairs.push(Pair { key, bytes: &from[..from.len() - rest.len()], value });
    }
    pairs
}
