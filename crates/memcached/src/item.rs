//! What requests do with one item, whose key is locked.

use crate::expiry::Expiry;
use crate::output::Value;
use crate::running::At;
use ladon_engine::types::string;
use ladon_engine::{EntryRef, EventClass, ItemHead, Object, ValueRef};
use ladon_memcache::Mode;

/// The key holds another type of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongType;

/// How storing a value went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Done; the item's version, if it was asked for, and its length.
    Done { cas: u64, bytes: usize },
    /// The key was there, or not.
    Unmet,
    /// The item has another version.
    Exists,
    /// There is no item to compare with.
    NotFound,
    /// It would be too long.
    TooLarge,
    /// See [`WrongType`].
    WrongType,
}

/// A value to store.
pub(crate) struct Put<'a> {
    pub(crate) mode: Mode,
    pub(crate) flags: u32,
    pub(crate) exptime: i64,
    /// Only if the item has this version.
    pub(crate) cas: Option<u64>,
    /// An older version is taken as well, and makes the item stale.
    pub(crate) invalidates: bool,
    /// The version that the item gets.
    pub(crate) new_cas: Option<u64>,
    /// A missing item is made, which expires then, where something is to be appended.
    pub(crate) vivify: Option<i64>,
    /// Whether somebody asks for the new version.
    pub(crate) wants_cas: bool,
    pub(crate) value: &'a [u8],
}

/// A request to store, as a line for watchers shows it.
#[derive(Clone, Copy)]
pub(crate) struct Storing<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) mode: Mode,
    pub(crate) has_cas: bool,
    pub(crate) exptime: i64,
    pub(crate) bytes: usize,
}

impl<'a> Put<'a> {
    /// What watchers are shown of it.
    pub(crate) fn storing(&self, key: &'a [u8]) -> Storing<'a> {
        let (mode, has_cas, exptime) = (self.mode, self.cas.is_some(), self.exptime);
        Storing { key, mode, has_cas, exptime, bytes: self.value.len() }
    }
}

/// How counting went.
pub(crate) enum Counted {
    /// The number; the item's version, if it was asked for, when it expires, and whether there was none
    /// before.
    Is {
        number: u64,
        cas: u64,
        expire_at: u64,
        made: bool,
    },
    NotFound,
    /// The item has another version.
    Exists,
    NotANumber,
    WrongType,
}

/// By how much to count.
pub(crate) struct Count {
    pub(crate) delta: u64,
    pub(crate) down: bool,
    pub(crate) cas: Option<u64>,
    pub(crate) new_cas: Option<u64>,
    pub(crate) exptime: Option<i64>,
    /// A missing item is made with this number, and expires then.
    pub(crate) vivify: Option<(u64, i64)>,
    pub(crate) wants_cas: bool,
}

/// How deleting went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    Done,
    NotFound,
    Exists,
    WrongType,
}

/// What a look has found.
pub(crate) struct Found {
    pub(crate) value: Value,
    pub(crate) head: ItemHead,
    pub(crate) expire_at: u64,
    /// The look has made it.
    pub(crate) is_made: bool,
}

/// A longer string is no number.
const NUMBER_BYTES_MAX: usize = 22;

/// The entry, if it holds a string.
pub(crate) fn string_of(entry: EntryRef<'_>) -> Result<EntryRef<'_>, WrongType> {
    match entry.value() {
        ValueRef::Object(Object::String(_)) | ValueRef::Bytes { .. } | ValueRef::Int(_) => {
            Ok(entry)
        }
        ValueRef::Object(_) => Err(WrongType),
    }
}

/// Whether a version is the one that a client knows.
fn is_same(head: ItemHead, cas: u64) -> bool {
    cas != 0 && head.cas == cas
}

impl At<'_, '_, '_> {
    /// Looks the item up for a reading request.
    pub(crate) fn read(&mut self, wants_cas: bool) -> Result<Option<Found>, WrongType> {
        let Some(entry) = self.tx.read(self.db, self.key) else { return Ok(None) };
        string_of(entry)?;
        if wants_cas {
            self.tx.item_cas(self.db, self.key);
        }
        Ok(self.found())
    }

    /// As `read`; the item does not count as used.
    pub(crate) fn inspect(&mut self, wants_cas: bool) -> Result<Option<Found>, WrongType> {
        let Some(entry) = self.tx.inspect(self.db, self.key) else { return Ok(None) };
        string_of(entry)?;
        if wants_cas {
            self.tx.item_cas(self.db, self.key);
        }
        Ok(self.found())
    }

    /// Makes an empty item, for a client that is to fill it.
    pub(crate) fn make(&mut self, expire_at: u64, head: ItemHead, wants_cas: bool) {
        self.put(b"", expire_at, head, "set");
        self.cas_if(wants_cas);
    }

    /// The item as it is, of which nothing is counted.
    pub(crate) fn found(&mut self) -> Option<Found> {
        let large = self.large;
        let entry = self.tx.peek(self.db, self.key)?;
        let (head, expire_at) = (entry.item(), entry.expire_at());
        let value = match entry.value() {
            ValueRef::Object(Object::String(it)) if Value::is_frozen(large, it.len()) => {
                Value::Frozen(it.freeze())
            }
            value => Value::Copied(string::bytes(value)?.into_owned()),
        };
        Some(Found { value, head, expire_at, is_made: false })
    }

    /// The length of the item's value; nothing is counted.
    pub(crate) fn value_bytes(&mut self) -> Option<usize> {
        let entry = self.tx.peek(self.db, self.key)?;
        string::bytes(entry.value()).map(|bytes| bytes.len())
    }

    /// The item's head and expiry.
    fn head(&mut self) -> Result<Option<(ItemHead, u64)>, WrongType> {
        let entry = self.tx.get(self.db, self.key).map(string_of).transpose()?;
        Ok(entry.map(|entry| (entry.item(), entry.expire_at())))
    }

    /// Gives the item this value.
    fn put(&mut self, bytes: &[u8], expire_at: u64, head: ItemHead, event: &'static str) {
        self.tx.put_item(self.db, self.key, bytes, expire_at, head);
        self.tx.notify(EventClass::STRING, event, self.db, self.key);
    }

    fn cas_if(&mut self, wanted: bool) -> u64 {
        if wanted { self.tx.item_cas(self.db, self.key).unwrap_or(0) } else { 0 }
    }

    /// The item goes.
    fn remove(&mut self) {
        if self.tx.delete(self.db, self.key) {
            self.tx.notify(EventClass::GENERIC, "del", self.db, self.key);
        }
    }

    /// Stores a value.
    pub(crate) fn store(&mut self, put: &Put<'_>) -> Stored {
        let found = match self.head() {
            Ok(found) => found,
            Err(WrongType) if put.mode == Mode::Add => return Stored::Unmet,
            // As SET of Redis' protocol does.
            Err(WrongType) if put.mode == Mode::Set && put.cas.is_none() => None,
            Err(WrongType) => return Stored::WrongType,
        };
        let mut replaced_stale = None;
        match (put.mode, &found) {
            (Mode::Add, Some(_)) => return Stored::Unmet,
            (Mode::Replace, None) if put.cas.is_none() => return Stored::Unmet,
            (Mode::Append | Mode::Prepend, _) => return self.extend(put, found),
            _ => {}
        }
        if let Some(cas) = put.cas
            && put.mode != Mode::Add
        {
            let Some((head, expire_at)) = found else { return Stored::NotFound };
            if !is_same(head, cas) {
                // A version that nobody has asked for is newer than any that somebody has.
                let is_older = cas != 0 && (head.cas == 0 || cas < head.cas);
                if !(put.invalidates && is_older) {
                    return Stored::Exists;
                }
                replaced_stale = Some((head.won, expire_at));
            }
        }
        let bytes = put.value.len();
        let mut head = self.new_head(put.flags, put.new_cas);
        let mut expiry = Expiry::of(put.exptime, self.now_ms);
        if let Some((won, expire_at)) = replaced_stale {
            // The value is another one, and is still to be made again, by whoever has won that.
            (head.stale, head.won, expiry) = (true, won, Expiry::At(expire_at));
        }
        match expiry {
            Expiry::Gone => {
                self.remove();
                Stored::Done { cas: 0, bytes }
            }
            Expiry::At(expire_at) => {
                self.put(put.value, expire_at, head, "set");
                if expire_at != 0 {
                    self.tx.notify(EventClass::GENERIC, "expire", self.db, self.key);
                }
                Stored::Done { cas: self.cas_if(put.wants_cas), bytes }
            }
        }
    }

    fn new_head(&self, flags: u32, cas: Option<u64>) -> ItemHead {
        ItemHead { cas: cas.unwrap_or(0), ..ItemHead::of_flags(flags) }
    }

    /// Appends or prepends.
    fn extend(&mut self, put: &Put<'_>, found: Option<(ItemHead, u64)>) -> Stored {
        let Some((head, expire_at)) = found else {
            let Some(exptime) = put.vivify else { return Stored::Unmet };
            let made = Put { mode: Mode::Set, exptime, cas: None, vivify: None, ..*put };
            return self.store(&made);
        };
        if put.cas.is_some_and(|cas| !is_same(head, cas)) {
            return Stored::Exists;
        }
        let old = self.tx.peek(self.db, self.key).map(EntryRef::value).and_then(string::bytes);
        let old = old.unwrap_or_default();
        let bytes = old.len() + put.value.len();
        if bytes as u64 > self.value_bytes_max {
            return Stored::TooLarge;
        }
        let (mut value, is_append) = (Vec::with_capacity(bytes), put.mode == Mode::Append);
        let (first, second) = if is_append { (&*old, put.value) } else { (put.value, &*old) };
        value.extend_from_slice(first);
        value.extend_from_slice(second);
        drop(old);
        let head = self.new_head(head.flags, put.new_cas);
        self.put(&value, expire_at, head, if is_append { "append" } else { "setrange" });
        Stored::Done { cas: self.cas_if(put.wants_cas), bytes }
    }

    /// Gives the item another expiry; whether there is one.
    pub(crate) fn touch(&mut self, exptime: i64) -> bool {
        match Expiry::of(exptime, self.now_ms) {
            Expiry::Gone => {
                let exists = self.tx.exists(self.db, self.key);
                self.remove();
                exists
            }
            Expiry::At(expire_at) => {
                let exists = self.tx.set_expire(self.db, self.key, expire_at);
                if exists {
                    let event = if expire_at == 0 { "persist" } else { "expire" };
                    self.tx.notify(EventClass::GENERIC, event, self.db, self.key);
                }
                exists
            }
        }
    }

    /// Deletes the item, if it has this version.
    pub(crate) fn delete(&mut self, cas: Option<u64>) -> Deleted {
        let head = match self.head() {
            Ok(None) => return Deleted::NotFound,
            Ok(Some((head, _))) => Some(head),
            // As DEL of Redis' protocol does.
            Err(WrongType) => None,
        };
        match (head, cas) {
            (Some(head), Some(cas)) if !is_same(head, cas) => Deleted::Exists,
            (None, Some(_)) => Deleted::WrongType,
            _ => {
                self.remove();
                Deleted::Done
            }
        }
    }

    /// Marks the item as stale, if it has this version, or takes its value.
    pub(crate) fn invalidate(&mut self, invalid: &Invalidation) -> Deleted {
        let (head, expire_at) = match self.head() {
            Ok(None) => return Deleted::NotFound,
            Ok(Some(found)) => found,
            Err(WrongType) => return Deleted::WrongType,
        };
        if invalid.cas.is_some_and(|cas| !is_same(head, cas)) {
            return Deleted::Exists;
        }
        let value = match invalid.removes_value {
            true => Some(Vec::new()),
            false => {
                let value = self.tx.peek(self.db, self.key).map(EntryRef::value);
                value.and_then(string::bytes).map(|bytes| bytes.into_owned())
            }
        };
        let value = value.unwrap_or_default();
        let expire_at = match invalid.exptime.map(|time| Expiry::of(time, self.now_ms)) {
            Some(Expiry::Gone) => {
                self.remove();
                return Deleted::Done;
            }
            Some(Expiry::At(at)) => at,
            None => expire_at,
        };
        let flags = if invalid.removes_value { 0 } else { head.flags };
        let stale = invalid.stale || head.stale && !invalid.removes_value;
        let new = ItemHead { stale, ..self.new_head(flags, invalid.new_cas) };
        self.put(&value, expire_at, new, "set");
        Deleted::Done
    }

    /// Counts.
    pub(crate) fn count(&mut self, count: &Count) -> Counted {
        let (head, expire_at) = match self.head() {
            Err(WrongType) => return Counted::WrongType,
            Ok(Some(found)) => found,
            Ok(None) => {
                let Some((number, exptime)) = count.vivify else { return Counted::NotFound };
                let Expiry::At(expire_at) = Expiry::of(exptime, self.now_ms) else {
                    return Counted::Is { number, cas: 0, expire_at: 1, made: true };
                };
                let head = self.new_head(0, count.new_cas);
                self.put(number.to_string().as_bytes(), expire_at, head, "set");
                let cas = self.cas_if(count.wants_cas);
                return Counted::Is { number, cas, expire_at, made: true };
            }
        };
        if count.cas.is_some_and(|cas| !is_same(head, cas)) {
            return Counted::Exists;
        }
        let old = self.tx.peek(self.db, self.key).map(EntryRef::value).and_then(string::bytes);
        let old = old.unwrap_or_default();
        let Some(number) = number_of(&old) else { return Counted::NotANumber };
        let number = match count.down {
            true => number.saturating_sub(count.delta),
            false => number.wrapping_add(count.delta),
        };
        let mut text = number.to_string().into_bytes();
        // As memcached does, which counts in place.
        if text.len() < old.len() {
            text.resize(old.len(), b' ');
        }
        drop(old);
        let new = self.new_head(head.flags, count.new_cas);
        let expire_at = match count.exptime.map(|time| Expiry::of(time, self.now_ms)) {
            None => expire_at,
            Some(Expiry::At(at)) => at,
            Some(Expiry::Gone) => {
                self.remove();
                return Counted::Is { number, cas: 0, expire_at: 1, made: false };
            }
        };
        let stale = head.stale;
        self.put(&text, expire_at, ItemHead { stale, ..new }, "incrby");
        Counted::Is { number, cas: self.cas_if(count.wants_cas), expire_at, made: false }
    }
}

/// How an item becomes invalid.
pub(crate) struct Invalidation {
    pub(crate) cas: Option<u64>,
    pub(crate) new_cas: Option<u64>,
    pub(crate) exptime: Option<i64>,
    pub(crate) stale: bool,
    pub(crate) removes_value: bool,
}

/// The number that a string is, between spaces.
fn number_of(bytes: &[u8]) -> Option<u64> {
    if bytes.len() > NUMBER_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?.trim_matches(' ');
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_between_spaces() {
        assert_eq!(number_of(b" 12 "), Some(12));
        assert_eq!(number_of(b"18446744073709551615"), Some(u64::MAX));
        for text in [&b""[..], b" ", b"-1", b"+1", b"1 2", b"18446744073709551616", b"12x"] {
            assert_eq!(number_of(text), None, "{text:?}");
        }
    }
}
