//! Selecting by bits: the iterators of a BITSET index.
//!
//! Its tuples stand in a tree, in the order of their values and primary keys. A number's hint is
//! its value, so a search reads the tree's nodes one after the other and looks at no tuple; it
//! begins where values with the bits that are asked for can begin.

use crate::entry::Entry;
use crate::iterator_type::IteratorType;
use crate::key::{Key, KeyDef};
use crate::looked::{LOOKED_AT_ONCE, Looked};
use crate::tree::{Hints, Tree};
use ladon_msgpack::Value;

/// The bits that are asked for: of a number, or of a string's bytes, the lowest bit of each first.
enum Bits<'a> {
    Number(u64),
    Text(&'a [u8]),
}

/// Which values an iterator selects.
struct Wanted<'a> {
    iterator: IteratorType,
    bits: Bits<'a>,
}

impl<'a> Wanted<'a> {
    /// Of a key of one number or string; anything is selected without one.
    fn new(iterator: IteratorType, key: &Key<'a>) -> Wanted<'a> {
        let (iterator, bits) = match crate::field_type::peek(key.values()) {
            Some(Value::Uint(number)) if key.count() > 0 => (iterator, Bits::Number(number)),
            Some(Value::Str(text)) if key.count() > 0 => (iterator, Bits::Text(text)),
            _ => (IteratorType::All, Bits::Number(0)),
        };
        Wanted { iterator, bits }
    }

    #[inline]
    fn selects_number(&self, key: u64, value: u64) -> bool {
        match self.iterator {
            IteratorType::Eq => value == key,
            // No bits are never set.
            IteratorType::BitsAllSet => key != 0 && value & key == key,
            IteratorType::BitsAnySet => value & key != 0,
            IteratorType::BitsAllNotSet => value & key == 0,
            _ => true,
        }
    }

    /// Bits behind a string's end are not set; those behind the key's end do not matter.
    fn selects_text(&self, key: &[u8], value: &[u8]) -> bool {
        let filled = value.iter().copied().chain(std::iter::repeat(0));
        let mut both = key.iter().copied().zip(filled);
        match self.iterator {
            IteratorType::Eq => both.all(|(key, value)| value == key),
            IteratorType::BitsAllSet => {
                key.iter().any(|byte| *byte != 0) && both.all(|(key, value)| value & key == key)
            }
            IteratorType::BitsAnySet => both.any(|(key, value)| value & key != 0),
            IteratorType::BitsAllNotSet => both.all(|(key, value)| value & key == 0),
            _ => true,
        }
    }

    /// The ranks between which the selected values are.
    fn ranks(&self, tree: &Tree<Entry>, key_def: &KeyDef) -> (u64, u64) {
        match self.bits {
            Bits::Number(key) => {
                let from = |least: u64| tree.count_before(least.into(), |_| false);
                match self.iterator {
                    IteratorType::Eq => (from(key), tree.count_before(key.into(), |_| true)),
                    IteratorType::BitsAllSet => (from(key), tree.len()),
                    // Its lowest bit is set, or a higher one.
                    IteratorType::BitsAnySet => (from(key & key.wrapping_neg()), tree.len()),
                    _ => (0, tree.len()),
                }
            }
            Bits::Text(key) if self.iterator == IteratorType::Eq => {
                // Shorter strings have zeros for the key's last bytes.
                let zeros = key.iter().rev().take_while(|byte| **byte == 0).count();
                let prefix = &key[..key.len() - zeros];
                let head = |entry: &Entry| {
                    let value = text_of(key_def, entry);
                    value[..value.len().min(prefix.len())].cmp(prefix)
                };
                let begin = tree.count_before(Hints::ALL, |entry| head(entry).is_lt());
                (begin, tree.count_before(Hints::ALL, |entry| head(entry).is_le()))
            }
            Bits::Text(_) => (0, tree.len()),
        }
    }
}

fn text_of<'a>(key: &KeyDef, entry: &'a Entry) -> &'a [u8] {
    match crate::field_type::peek(key.first_value(entry.tuple.bytes())) {
        Some(Value::Str(text)) => text,
        _ => &[],
    }
}

/// The selected tuples.
pub(crate) struct BitSearch<'a> {
    key_def: &'a KeyDef,
    tree: &'a Tree<Entry>,
    iterator: IteratorType,
    /// The key's bits: a number, or a string.
    number: u64,
    text: Option<Box<[u8]>>,
    next: u64,
    end: u64,
    run: std::slice::Iter<'a, Entry>,
}

impl<'a> BitSearch<'a> {
    /// Searches an index's tree; the key fits the index.
    pub(crate) fn new(
        key_def: &'a KeyDef,
        tree: &'a Tree<Entry>,
        iterator: IteratorType,
        key: &Key<'_>,
    ) -> BitSearch<'a> {
        let wanted = Wanted::new(iterator, key);
        let (next, end) = wanted.ranks(tree, key_def);
        let (number, text) = match wanted.bits {
            Bits::Number(number) => (number, None),
            Bits::Text(text) => (0, Some(text.into())),
        };
        let (iterator, run) = (wanted.iterator, [].iter());
        BitSearch { key_def, tree, iterator, number, text, next, end, run }
    }
}

impl<'a> BitSearch<'a> {
    /// Looks at some entries.
    pub(crate) fn look(&mut self) -> Looked<'a> {
        for _ in 0..LOOKED_AT_ONCE {
            if self.next >= self.end {
                return Looked::AtAll;
            }
            if self.run.len() == 0 {
                self.run = self.tree.run_from(self.next).iter();
            }
            let Some(entry) = self.run.next() else { return Looked::AtAll };
            self.next += 1;
            let wanted = Wanted { iterator: self.iterator, bits: Bits::Number(self.number) };
            let is_selected = match &self.text {
                None => wanted.selects_number(self.number, entry.hint),
                Some(key) => wanted.selects_text(key, text_of(self.key_def, entry)),
            };
            if is_selected {
                return Looked::Found((entry.hint, &entry.tuple));
            }
        }
        Looked::AtSome
    }
}
