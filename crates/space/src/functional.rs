//! Functional indexes: a function makes the keys of a tuple.
//!
//! ```text
//! tuple --function--> {k1, k2}, or {{k1, k2}, ...} of a multikey function
//! entry of the index  [k1, k2, primary key ...] --primary index--> tuple
//! ```
//!
//! Functions are deterministic and see nothing but the tuple, so any thread may call them, also while
//! a log is replayed. A layer above says what calls them ([`set_function_maker`]).

use crate::error::{BoxError, ErrorCode};
use crate::fields::Fields;
use crate::format::Format;
use crate::index::Index;
use crate::key::{Key, KeyDef};
use crate::key_part::Part;
use crate::path::Path;
use crate::space::Space;
use crate::statement::KEYS_MAX;
use crate::tuple::Tuple;
use ladon_msgpack::{self as msgpack, Value, write};
use std::sync::{Arc, OnceLock};

/// Names of fields, in order.
pub type Names = Arc<[Box<str>]>;

/// A function that makes keys. It returns the same whenever it is called with the same tuple.
pub trait KeyFunction: Send + Sync {
    /// What the function returns for a tuple: a MessagePack array of values.
    ///
    /// # Errors
    /// What it raised.
    fn call(&self, tuple: &[u8], names: &Names) -> Result<Vec<u8>, String>;

    /// Whether a tuple may have several keys.
    fn is_multikey(&self) -> bool;
}

/// What makes a function of its name, its text, and whether it is multikey.
pub type FunctionMaker = fn(&str, &str, bool) -> Result<Arc<dyn KeyFunction>, String>;

static MAKER: OnceLock<FunctionMaker> = OnceLock::new();

/// Says what functions are made by, in this process. The first one stays.
pub fn set_function_maker(maker: FunctionMaker) {
    // Whoever comes later says the same.
    let _ = MAKER.set(maker);
}

/// Makes a function.
///
/// # Errors
/// The text is no function, or the process does not know how to make one.
pub fn make_function(
    name: &str,
    text: &str,
    is_multikey: bool,
) -> Result<Arc<dyn KeyFunction>, BoxError> {
    let made = match MAKER.get() {
        Some(maker) => maker(name, text, is_multikey),
        None => Err("this process does not run functions of Lua".to_owned()),
    };
    made.map_err(|why| {
        let message = format!("Failed to dynamically load function '{name}': {why}");
        BoxError::new(ErrorCode::LOAD_FUNCTION, message)
    })
}

/// What a functional index has beside its entries.
#[derive(Clone)]
pub(crate) struct Made {
    function: Arc<dyn KeyFunction>,
    names: Names,
    /// The primary key, of a tuple.
    primary: KeyDef,
    /// Values of a key.
    own: u32,
    /// Bytes of the entries.
    pub(crate) bytes: usize,
}

impl Made {
    pub(crate) fn new(
        function: Arc<dyn KeyFunction>,
        format: &Format,
        own: &[Part],
        primary: &[Part],
    ) -> Made {
        let primary = KeyDef::new(primary, &[], true);
        Made { function, names: names_of(format), primary, own: own.len() as u32, bytes: 0 }
    }

    pub(crate) fn set_format(&mut self, format: &Format) {
        self.names = names_of(format);
    }

    pub(crate) fn function(&self) -> &Arc<dyn KeyFunction> {
        &self.function
    }

    /// The primary key's parts, as they stand in an entry.
    pub(crate) fn parts_in_entry(own: &[Part], primary: &[Part]) -> Vec<Part> {
        let behind = |(at, part): (usize, &Part)| Part {
            field: (own.len() + at) as u32,
            path: Path::default(),
            ..part.clone()
        };
        primary.iter().enumerate().map(behind).collect()
    }

    /// The entries of a tuple.
    ///
    /// # Errors
    /// Tarantool's, if the function fails, or what it returns does not fit.
    pub(crate) fn entries(
        &self,
        tuple: &[u8],
        key: &KeyDef,
        (index, space): (&str, &str),
    ) -> Result<Vec<Vec<u8>>, BoxError> {
        let misfit = |why: &str| {
            let message = format!(
                "Key format doesn't match one defined in functional index '{index}' of space \
                 '{space}': {why}"
            );
            BoxError::new(ErrorCode::FUNC_INDEX_FORMAT, message)
        };
        let returned = self.function.call(tuple, &self.names).map_err(|_| {
            let message = format!(
                "Failed to build a key for functional index '{index}' of space '{space}': can't \
                 evaluate function"
            );
            BoxError::new(ErrorCode::FUNC_INDEX_FUNC, message)
        })?;
        let mut rest = &returned[..];
        if msgpack::read_array(&mut rest)? != 1 {
            return Err(misfit("to many values were returned"));
        }
        let mut count = 1;
        if self.function.is_multikey() {
            count = msgpack::read_array(&mut rest)
                .map_err(|_| misfit("a multikey function mustn't return a scalar"))?;
        }
        if u64::from(count) > KEYS_MAX {
            return Err(BoxError::too_many_keys(count.into()));
        }
        let primary = self.primary.extract(tuple, 0, false);
        let primary = Key::parse(&primary)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let key_bytes = msgpack::take(&mut rest)?;
            let Ok(of) = Key::parse(key_bytes) else {
                return Err(misfit("supplied key type is invalid: expected array"));
            };
            if of.count() != self.own {
                let (expected, got) = (self.own, of.count());
                let why = format!(
                    "Invalid key part count in an exact match (expected {expected}, got {got})"
                );
                return Err(misfit(&why));
            }
            if key.check_key(&of).is_err() {
                return Err(misfit("key does not follow functional index definition"));
            }
            let mut entry = Vec::new();
            write::array(&mut entry, self.own + primary.count());
            entry.extend_from_slice(of.values());
            entry.extend_from_slice(primary.values());
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The primary key in an entry.
    pub(crate) fn primary_of<'a>(&self, entry: &'a [u8]) -> Option<Key<'a>> {
        let mut rest = entry;
        let count = msgpack::read_array(&mut rest).ok()?.checked_sub(self.own)?;
        for _ in 0..self.own {
            msgpack::skip(&mut rest).ok()?;
        }
        Some(Key::of_values(rest, count))
    }

    /// Whether an entry is of the tuple with this primary key.
    pub(crate) fn is_of(&self, entry: &[u8], primary: &[u8]) -> bool {
        let key = Key::parse(primary).ok();
        key.zip(self.primary_of(entry)).is_some_and(|(a, b)| a.values() == b.values())
    }

    pub(crate) fn primary_key(&self, tuple: &[u8]) -> Vec<u8> {
        self.primary.extract(tuple, 0, false)
    }
}

fn names_of(format: &Format) -> Names {
    format.fields.iter().map(|field| field.name.as_str().into()).collect()
}

impl Space {
    /// Makes a function known to indexes that are created from now on.
    pub fn set_function(&mut self, id: u32, function: Arc<dyn KeyFunction>) {
        self.functions.insert(id, function);
    }

    /// The tuple that an entry of an index stands for. A function that did not return the same twice
    /// may have left an entry behind, which stands for none.
    #[inline]
    pub(crate) fn resolve<'a>(&'a self, index: &Index, entry: &'a Tuple) -> Option<&'a Tuple> {
        match &index.made {
            None => Some(entry),
            Some(made) => self.indexes.first()?.resolve_entry(made, entry),
        }
    }

    /// Checks that a tuple has keys for a functional index, and that no tuple but `old` has one of
    /// them if that is unique.
    pub(crate) fn check_made(
        &self,
        index: &Index,
        tuple: &[u8],
        old: Option<&Tuple>,
    ) -> Result<(), BoxError> {
        for entry in index.entries(tuple, &self.def.name)? {
            let hint = index.key.hint(&entry);
            if !index.key.is_exclusive(&entry, hint) || !index.key.includes(&entry, hint) {
                continue;
            }
            let found = index.find(&entry, hint).and_then(|found| self.resolve(index, found));
            if let Some(found) = found
                && old.is_none_or(|old| !old.is_same(found))
            {
                return Err(self.duplicate(index, found, tuple));
            }
        }
        Ok(())
    }
}

impl Index {
    /// Whether a function makes its keys.
    pub fn is_functional(&self) -> bool {
        self.made.is_some()
    }

    pub(crate) fn entries(&self, tuple: &[u8], space: &str) -> Result<Vec<Vec<u8>>, BoxError> {
        match &self.made {
            Some(made) => made.entries(tuple, &self.key, (&self.def.name, space)),
            None => Ok(Vec::new()),
        }
    }

    /// Of a primary index: the tuple of another index's entry.
    pub(crate) fn resolve_entry(&self, made: &Made, entry: &Tuple) -> Option<&Tuple> {
        self.find_key(&made.primary_of(entry.bytes())?).map(|(_, tuple)| tuple)
    }

    /// Puts in what the function makes of a tuple, which was checked. Returns an entry of another
    /// tuple that had one of the places.
    pub(crate) fn put_made(&mut self, tuple: &Tuple) -> Option<Tuple> {
        let entries = self.entries(tuple.bytes(), "").unwrap_or_default();
        self.put_entries(tuple, entries)
    }

    fn put_entries(&mut self, tuple: &Tuple, entries: Vec<Vec<u8>>) -> Option<Tuple> {
        let primary = self.made.as_ref()?.primary_key(tuple.bytes());
        let mut replaced = None;
        for entry in entries {
            if !self.key.includes(&entry, self.key.hint(&entry)) {
                continue;
            }
            let entry = Tuple::new(&entry);
            let old = self.put_entry(&entry);
            let made = self.made.as_mut()?;
            made.bytes += entry.memory();
            if let Some(old) = old {
                made.bytes = made.bytes.saturating_sub(old.memory());
                if !made.is_of(old.bytes(), &primary) {
                    replaced = Some(old);
                }
            }
        }
        replaced
    }

    /// Takes out what the function makes of a tuple; all that there is of it, if the function does not
    /// make it again.
    pub(crate) fn remove_made(&mut self, tuple: &[u8]) {
        let Some(primary) = self.made.as_ref().map(|made| made.primary_key(tuple)) else { return };
        let entries = self.entries(tuple, "");
        let mut is_whole = entries.is_ok();
        let mut removed: Vec<Vec<u8>> = Vec::new();
        for entry in entries.unwrap_or_default() {
            let hint = self.key.hint(&entry);
            if !self.key.includes(&entry, hint) {
                continue;
            }
            if self.remove_entry(&entry, hint, &primary) {
                removed.push(entry);
                continue;
            }
            // Equal keys have one place.
            let is_equal = |other: &Vec<u8>| {
                let other = Tuple::new(other);
                self.key.compare(self.key.hint(other.bytes()), &other, hint, &entry).is_eq()
            };
            is_whole &= removed.iter().any(is_equal);
        }
        if !is_whole {
            self.remove_all_of(&primary);
        }
    }

    /// Takes out an entry of the tuple with this primary key. Returns whether it was there.
    fn remove_entry(&mut self, entry: &[u8], hint: u64, primary: &[u8]) -> bool {
        let is_own = |made: &Made, found: &Tuple| made.is_of(found.bytes(), primary);
        let found = self.made.as_ref().zip(self.find(entry, hint));
        if !found.is_some_and(|(made, found)| is_own(made, found)) {
            return false;
        }
        let Some(old) = self.take_entry(entry, hint) else { return false };
        if let Some(made) = &mut self.made {
            made.bytes = made.bytes.saturating_sub(old.memory());
        }
        true
    }

    /// Looks at all entries.
    #[cold]
    fn remove_all_of(&mut self, primary: &[u8]) {
        let Some(made) = &self.made else { return };
        let is_of = |entry: &&Tuple| made.is_of(entry.bytes(), primary);
        let left: Vec<Tuple> = self.tuples().filter(is_of).cloned().collect();
        for entry in left {
            let hint = self.key.hint(entry.bytes());
            self.remove_entry(entry.bytes(), hint, primary);
        }
    }

    /// Replaces everything by what the function makes of tuples. If two have one key, returns the entry
    /// of the earlier one and the other.
    ///
    /// # Errors
    /// Tarantool's, if a tuple has no key.
    pub(crate) fn fill_made<'a>(
        &mut self,
        tuples: impl Iterator<Item = &'a Tuple>,
        space: &str,
    ) -> Result<Option<(Tuple, Tuple)>, BoxError> {
        self.clear();
        for tuple in tuples {
            let entries = self.entries(tuple.bytes(), space)?;
            if let Some(old) = self.put_entries(tuple, entries) {
                return Ok(Some((old, tuple.clone())));
            }
        }
        Ok(None)
    }

    /// Which of the function's keys an entry of a tuple is.
    pub(crate) fn ordinal_of(&self, tuple: &[u8], entry: &[u8]) -> u64 {
        let entries = self.entries(tuple, "").unwrap_or_default();
        entries.iter().position(|other| other == entry).unwrap_or(0) as u64
    }

    /// The position of a tuple by the key of this ordinal: that key and the primary key.
    pub(crate) fn made_position(&self, tuple: &[u8], ordinal: u64) -> Vec<u8> {
        let mut entries = self.entries(tuple, "").unwrap_or_default();
        let at = usize::try_from(ordinal).unwrap_or(usize::MAX);
        if at < entries.len() { entries.swap_remove(at) } else { vec![0x90] }
    }
}

/// The number of the function that makes an index's keys, as a tuple of `_index` says it.
///
/// # Errors
/// Tarantool's, if the options cannot be read.
pub fn function_of_index(tuple: &[u8]) -> Result<Option<u32>, BoxError> {
    let Some(mut options) = Fields::of(tuple).nth(4) else { return Ok(None) };
    let Ok(count) = msgpack::read_map(&mut options) else { return Ok(None) };
    for _ in 0..count {
        let name = msgpack::read(&mut options)?;
        let value = msgpack::take(&mut options)?;
        if name == Value::Str(b"func")
            && let Ok(Value::Uint(id)) = msgpack::read(&mut { value })
        {
            return Ok(u32::try_from(id).ok().filter(|id| *id != 0));
        }
    }
    Ok(None)
}
