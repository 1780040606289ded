//! What an index orders by: parts of tuples, taken out, compared, hinted and hashed.

use crate::compare;
use crate::entry::Entry;
use crate::error::{BoxError, ErrorCode};
use crate::field_type::{FieldType, peek};
use crate::fields;
use crate::hint_window::{HintWindow, Side};
use crate::key_part::{NIL, Part};
use crate::multikey::Elements;
use crate::tree::Hints;
use crate::tuple::Tuple;
use ladon_msgpack::{self as msgpack, Value, write};
use rapidhash::v3::RapidSecrets;
use std::cmp::Ordering;
use std::ops::Range;

/// A key of a request: MessagePack values, a prefix of an index's parts.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    values: &'a [u8],
    count: u32,
}

impl<'a> Key<'a> {
    /// The key that an array is.
    ///
    /// # Errors
    /// If it is no array.
    pub fn parse(mut bytes: &'a [u8]) -> Result<Key<'a>, BoxError> {
        let count = msgpack::read_array(&mut bytes).map_err(|_| BoxError::not_array())?;
        Ok(Key { values: bytes, count })
    }

    /// The key of these values, of which there are so many.
    pub(crate) fn of_values(values: &'a [u8], count: u32) -> Key<'a> {
        Key { values, count }
    }

    /// The values.
    pub(crate) fn values(&self) -> &'a [u8] {
        self.values
    }

    /// How many values it has.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// The parts by which an index orders tuples: its own, and then those of the primary key that are
/// not among them, which order tuples with the same key.
#[derive(Clone, Debug)]
pub struct KeyDef {
    parts: Box<[Part]>,
    /// How many of the parts are the index's own.
    own: usize,
    is_unique: bool,
    /// The one part is an unsigned integer, so hints say everything.
    hint_decides: bool,
    /// The first part is an unsigned integer that is never nil, so equal hints are equal values.
    hint_is_first: bool,
    excludes_null: bool,
    /// No part has a path, or a collation that does not compare bytes.
    is_plain: bool,
    /// Of a multikey index: the array that a tuple has a key for each element of.
    elements: Option<Elements>,
    /// How many of a hint's low bits order nothing.
    unordered_bits: u32,
    /// Of a first part that is a string and never nil: what hints show of it.
    window: Option<HintWindow>,
}

impl KeyDef {
    /// The order of an index with these parts; `primary` are the primary key's, none in the primary
    /// index.
    pub fn new(own: &[Part], primary: &[Part], is_unique: bool) -> KeyDef {
        let mut parts = own.to_vec();
        for part in primary {
            // Equal by its collation, strings of the own part may still differ.
            let is_own = |own: &Part| {
                own.is_same_place(part)
                    && (own.collation == part.collation || own.collation.is_strict())
            };
            if !own.iter().any(is_own) {
                parts.push(part.clone());
            }
        }
        let elements = Elements::of(own);
        let hint_is_first = elements.is_none()
            && own
                .first()
                .is_some_and(|part| part.kind == FieldType::Unsigned && !part.is_nullable);
        let compared = if is_unique && !own.iter().any(|part| part.is_nullable) {
            own.len()
        } else {
            parts.len()
        };
        let is_plain = parts.iter().all(Part::is_plain);
        let has_window = is_plain
            && own.first().is_some_and(|part| part.kind == FieldType::String && !part.is_nullable);
        KeyDef {
            own: own.len(),
            is_unique,
            hint_decides: hint_is_first && compared == 1,
            hint_is_first,
            excludes_null: own.iter().any(|part| part.exclude_null),
            is_plain,
            window: (has_window && elements.is_none()).then(HintWindow::default),
            unordered_bits: if elements.is_some() { Elements::OFFSET_BITS } else { 0 },
            elements,
            parts: parts.into(),
        }
    }

    /// The index's own parts.
    pub fn own(&self) -> &[Part] {
        &self.parts[..self.own]
    }

    /// All parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a tuple has a key for each element of an array.
    #[inline]
    pub fn is_multikey(&self) -> bool {
        self.elements.is_some()
    }

    /// The hints of a tuple's keys, of those that the index has: one, or one for each element of an
    /// array.
    #[inline]
    pub fn hints<'a>(&'a self, tuple: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
        let (one, each) = match &self.elements {
            None => (Some(self.hint(tuple)), None),
            Some(elements) => (None, Some(elements.offsets(tuple))),
        };
        let each = each.into_iter().flatten().map(|offset| self.hint_at(tuple, offset));
        one.into_iter().chain(each).filter(|hint| self.includes(tuple, *hint))
    }

    /// How many keys a tuple has at most.
    pub fn keys_max(&self, tuple: &[u8]) -> u64 {
        self.elements.as_ref().map_or(1, |elements| elements.count(tuple).into())
    }

    fn hint_at(&self, tuple: &[u8], offset: u32) -> u64 {
        let part = &self.parts[0];
        let order = part.hint(part.value_of(tuple, offset.into()));
        order >> self.unordered_bits << self.unordered_bits | u64::from(offset)
    }

    /// Whether the index has a tuple's key with this hint.
    #[inline]
    pub fn includes(&self, tuple: &[u8], hint: u64) -> bool {
        !self.excludes_null || self.has_no_excluded_nil(tuple, hint)
    }

    fn has_no_excluded_nil(&self, tuple: &[u8], hint: u64) -> bool {
        let mut excluding = self.own().iter().filter(|part| part.exclude_null);
        excluding.all(|part| !is_nil(self.value_of(tuple, hint, part)))
    }

    /// Whether a whole key has one tuple at most: the index is unique, and no part may be nil.
    pub fn is_exact(&self) -> bool {
        self.is_unique && !self.own().iter().any(|part| part.is_nullable)
    }

    /// Whether two tuples may not have this one's key with this hint: no part of it is nil.
    pub fn is_exclusive(&self, tuple: &[u8], hint: u64) -> bool {
        self.is_unique
            && self
                .own()
                .iter()
                .all(|part| !part.is_nullable || !is_nil(self.value_of(tuple, hint, part)))
    }

    /// Whether hints take little time: no collation is asked for them, and a tuple has one.
    pub(crate) fn has_quick_hints(&self) -> bool {
        self.is_plain && self.elements.is_none()
    }

    /// The hints of what may have the same first value as what has this hint.
    #[inline]
    pub(crate) fn alike(&self, hint: u64) -> Hints {
        let unordered = (1 << self.unordered_bits) - 1;
        Hints::between(hint & !unordered, hint | unordered)
    }

    /// The hint of a tuple's key, of an index that is not multikey.
    #[inline]
    pub fn hint(&self, tuple: &[u8]) -> u64 {
        let part = &self.parts[0];
        if !self.is_plain {
            return part.hint(part.value_of(tuple, 0));
        }
        self.plain_hint(part, part_of(tuple, part))
    }

    #[inline]
    fn plain_hint(&self, part: &Part, value: &[u8]) -> u64 {
        match &self.window {
            Some(window) => window.hint(compare::string(value).unwrap_or_default()),
            None => compare::hint(part.kind, part.is_nullable, value),
        }
    }

    /// Has hints show what suits `len` tuples; `tuple` returns the tuple of a rank, in the order of
    /// the index. Returns whether tuples have other hints now.
    pub(crate) fn choose_window<'a>(
        &mut self,
        len: u64,
        tuple: impl Fn(u64) -> Option<&'a Tuple>,
    ) -> bool {
        let Some(window) = &mut self.window else { return false };
        let suited = HintWindow::of(len, |rank| first_string(&self.parts[0], tuple(rank)));
        let is_other = *window != suited;
        *window = suited;
        is_other
    }

    /// As [`KeyDef::choose_window`], for the strings on one side of most. Returns the ranks of the
    /// tuples that have other hints now.
    pub(crate) fn choose_side<'a>(
        &mut self,
        side: Side,
        len: u64,
        tuple: impl Fn(u64) -> Option<&'a Tuple>,
    ) -> Option<Range<u64>> {
        let window = self.window.as_mut()?;
        window.choose_side(side, len, |rank| first_string(&self.parts[0], tuple(rank)))
    }

    /// The side of tuples with this hint, if their strings do not begin as most do.
    #[inline]
    pub(crate) fn side_of(&self, hint: u64) -> Option<Side> {
        self.window.as_ref()?.side_of(hint)
    }

    /// The hint of a key with at least one value.
    #[inline]
    pub fn hint_of_key(&self, key: &Key<'_>) -> u64 {
        let part = &self.parts[0];
        if !self.is_plain {
            return part.hint(key.values);
        }
        self.plain_hint(part, key.values)
    }

    /// The order of two of the index's entries.
    #[inline]
    pub(crate) fn order(&self, a: &Entry, b: &Entry) -> Ordering {
        self.compare(a.hint, &a.tuple, b.hint, b.tuple.bytes())
    }

    /// Compares two tuples whose hints are `a_hint` and `b_hint`, the order of the index.
    #[inline]
    pub fn compare(&self, a_hint: u64, a: &Tuple, b_hint: u64, b: &[u8]) -> Ordering {
        match (a_hint >> self.unordered_bits).cmp(&(b_hint >> self.unordered_bits)) {
            Ordering::Equal if !self.hint_decides => {
                self.compare_parts((a_hint, a.bytes()), (b_hint, b))
            }
            order => order,
        }
    }

    /// A tuple from the value of the first part on.
    pub(crate) fn first_value<'a>(&self, tuple: &'a [u8]) -> &'a [u8] {
        self.value_of(tuple, 0, &self.parts[0])
    }

    /// The tuple from this part's value on; an absent one is nil.
    #[inline]
    fn value_of<'a>(&self, tuple: &'a [u8], hint: u64, part: &Part) -> &'a [u8] {
        if self.is_plain { part_of(tuple, part) } else { part.value_of(tuple, hint) }
    }

    fn compare_parts(&self, a: (u64, &[u8]), b: (u64, &[u8])) -> Ordering {
        let mut has_nil = false;
        for (at, part) in self.parts.iter().enumerate() {
            if at == self.own && self.is_unique && !has_nil {
                return Ordering::Equal;
            }
            if at == 0 && self.hint_is_first {
                continue;
            }
            let (left, right) = (self.value_of(a.1, a.0, part), self.value_of(b.1, b.0, part));
            match self.compare_values(part, left, right) {
                Ordering::Equal => has_nil |= part.is_nullable && is_nil(left),
                order => return order,
            }
        }
        Ordering::Equal
    }

    #[inline]
    fn compare_values(&self, part: &Part, a: &[u8], b: &[u8]) -> Ordering {
        if self.is_plain { compare::values(a, b) } else { part.compare(a, b) }
    }

    /// Compares a tuple with a key of at least one value: equal if the key is a prefix of the
    /// tuple's.
    #[inline]
    pub fn compare_key(&self, hint: u64, tuple: &Tuple, key_hint: u64, key: &Key<'_>) -> Ordering {
        match (hint >> self.unordered_bits).cmp(&(key_hint >> self.unordered_bits)) {
            Ordering::Equal if self.hint_is_first && key.count == 1 => Ordering::Equal,
            Ordering::Equal => self.compare_key_parts(tuple.bytes(), hint, key),
            order => order,
        }
    }

    fn compare_key_parts(&self, tuple: &[u8], hint: u64, key: &Key<'_>) -> Ordering {
        let mut rest = key.values;
        for (at, part) in self.parts.iter().take(key.count as usize).enumerate() {
            match self.compare_values(part, self.value_of(tuple, hint, part), rest) {
                Ordering::Equal if at + 1 == key.count as usize => break,
                Ordering::Equal => {}
                order => return order,
            }
            if msgpack::skip(&mut rest).is_err() {
                break;
            }
        }
        Ordering::Equal
    }

    /// The hash of a tuple's key: the index's own parts.
    #[inline]
    pub fn hash(&self, secrets: &RapidSecrets, tuple: &[u8]) -> u64 {
        let hashes = self
            .own()
            .iter()
            .map(|part| self.hash_value(secrets, part, self.value_of(tuple, 0, part)));
        hashes.fold(0, join_hashes)
    }

    /// The hash of a whole key.
    #[inline]
    pub fn hash_of_key(&self, secrets: &RapidSecrets, key: &Key<'_>) -> u64 {
        let mut rest = key.values;
        let mut joined = 0;
        for part in self.own().iter().take(key.count as usize) {
            joined = join_hashes(joined, self.hash_value(secrets, part, rest));
            if msgpack::skip(&mut rest).is_err() {
                break;
            }
        }
        joined
    }

    #[inline]
    fn hash_value(&self, secrets: &RapidSecrets, part: &Part, value: &[u8]) -> u64 {
        if self.is_plain { compare::hash(secrets, value) } else { part.hash(secrets, value) }
    }

    /// Checks the types of a key's values, of which there are not more than parts.
    ///
    /// # Errors
    /// Tarantool's, if a type is another.
    pub fn check_key(&self, key: &Key<'_>) -> Result<(), BoxError> {
        self.check_parts(key, true)
    }

    fn check_parts(&self, key: &Key<'_>, may_be_nil: bool) -> Result<(), BoxError> {
        let mut rest = key.values;
        for (at, part) in self.parts.iter().take(key.count as usize).enumerate() {
            let Some(value) = peek(rest) else {
                return Err(BoxError::from(msgpack::Error::Truncated));
            };
            let is_nil = may_be_nil && part.is_nullable && value == Value::Nil;
            if !is_nil && !part.kind.accepts(&value) {
                return Err(BoxError::key_part_type(at, part.kind));
            }
            msgpack::skip(&mut rest)?;
        }
        Ok(())
    }

    /// Checks that a key has all of the index's own parts, and no nil, which names no single tuple.
    ///
    /// # Errors
    /// Tarantool's, if it has more or fewer, or a type is another.
    pub fn check_exact(&self, key: &Key<'_>) -> Result<(), BoxError> {
        if key.count as usize != self.own {
            let message = format!(
                "Invalid key part count in an exact match (expected {}, got {})",
                self.own, key.count
            );
            return Err(BoxError::new(ErrorCode::EXACT_MATCH, message));
        }
        self.check_parts(key, false)
    }

    /// The key of a tuple with this hint: a MessagePack array of the index's own parts, or of all.
    pub fn extract(&self, tuple: &[u8], hint: u64, with_primary: bool) -> Vec<u8> {
        let parts = if with_primary { self.parts() } else { self.own() };
        let mut key = Vec::new();
        write::array(&mut key, parts.len() as u32);
        parts.iter().for_each(|part| {
            let mut rest = self.value_of(tuple, hint, part);
            key.extend_from_slice(msgpack::take(&mut rest).unwrap_or(&NIL));
        });
        key
    }
}

/// The string that a tuple's key begins with; an empty one without a tuple.
fn first_string<'a>(part: &Part, tuple: Option<&'a Tuple>) -> &'a [u8] {
    let value = tuple.and_then(|tuple| compare::string(part_of(tuple.bytes(), part)));
    value.unwrap_or_default()
}

/// The tuple from this part's value on; an absent one is nil.
#[inline]
fn part_of<'a>(tuple: &'a [u8], part: &Part) -> &'a [u8] {
    fields::from_field(tuple, part.field).unwrap_or(&NIL)
}

fn is_nil(value: &[u8]) -> bool {
    value.first().is_none_or(|first| *first == NIL[0])
}

fn join_hashes(joined: u64, next: u64) -> u64 {
    joined.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ next
}
