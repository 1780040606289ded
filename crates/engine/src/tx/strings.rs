//! Changing strings.

use super::{LARGE_RECORD_BYTES, Tx, weight_of};
use crate::item::ItemHead;
use crate::key::Key;
use crate::object::Object;
use crate::partition::partition_of;
use crate::table::entry::{EntryRef, ValueInit, ValueRef};
use crate::types::collection::WrongType;
use crate::types::integer;
use crate::types::long_string::LongString;
use crate::types::string::{self, Form};
use crate::types::string_op;
use ladon_record::{Change, DbId, ValueKind};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;
use thiserror::Error;

/// A new string that begins with more zeros than this is logged without them.
const LEADING_ZEROS_MAX: usize = 64;

/// A string larger than this that was built by growing is not copied to the exact size.
const TAKEN_OVER_BYTES_MIN: usize = 1 << 20;

/// Why a counter could not be increased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CountError {
    /// The value is no string.
    #[error("not a string")]
    NotString,
    /// The string is not the decimal form of a 64-bit integer.
    #[error("not an integer")]
    NotInteger,
    /// The sum does not fit into 64 bits.
    #[error("overflow")]
    Overflow,
}

/// Ranges of a string that were written to.
pub type Written = SmallVec<[Range<usize>; 4]>;

impl Tx<'_> {
    /// Gives the key a string value and an expiry (0: none), whatever it was before.
    #[inline]
    pub fn put_string(&mut self, db: DbId, key: Key<'_>, bytes: &[u8], expire_at: u64) {
        self.note_overwritten(db, key, ValueKind::String);
        self.put_string_as(db, key, bytes, expire_at, Form::Shortest);
    }

    /// As `put_string`, for a number that takes the place of the number before it.
    pub fn put_number(&mut self, db: DbId, key: Key<'_>, text: &[u8], expire_at: u64) {
        self.put_string_as(db, key, text, expire_at, Form::Shortest);
    }

    /// As `put_string`, for a string that was assembled in place (`OBJECT ENCODING`: "raw").
    pub fn put_grown_string(&mut self, db: DbId, key: Key<'_>, bytes: &[u8], expire_at: u64) {
        self.note_overwritten(db, key, ValueKind::String);
        self.put_string_as(db, key, bytes, expire_at, Form::Grown);
    }

    /// As `put_string`, for a string that is no integer even if it looks like one (`OBJECT
    /// ENCODING`: "embstr").
    pub fn put_text(&mut self, db: DbId, key: Key<'_>, bytes: &[u8], expire_at: u64) {
        self.put_string_as(db, key, bytes, expire_at, Form::Text);
    }

    /// As `put_string`, for a string with these flags.
    pub fn put_item(
        &mut self,
        db: DbId,
        key: Key<'_>,
        bytes: &[u8],
        expire_at: u64,
        head: ItemHead,
    ) {
        let logged = head.of_changed();
        if logged.is_empty() {
            self.put_string(db, key, bytes, expire_at);
        } else {
            self.note_overwritten(db, key, ValueKind::String);
            self.put_item_again(db, key, bytes, expire_at, logged);
        }
        if head != logged {
            self.set_item(db, key, |_| head);
        }
    }

    /// As `put_item`, of the string that the key has, changed.
    fn put_item_again(
        &mut self,
        db: DbId,
        key: Key<'_>,
        bytes: &[u8],
        expire_at: u64,
        head: ItemHead,
    ) {
        let marks = head.marks();
        if bytes.len() < LARGE_RECORD_BYTES {
            self.put(db, key, string::init_item(bytes, Form::Shortest, head), expire_at);
            let name = key.bytes;
            let put = Change::PutItem { db, key: name, expire_at, marks, body: bytes };
            return self.changed(key, put);
        }
        let string = LongString::from(bytes.to_vec()).with_head(head);
        let body = string.freeze().into_shared();
        self.put(db, key, ValueInit::Object(Box::new(Object::String(string))), expire_at);
        self.begin_change(key);
        let put = Change::PutItem { db, key: key.bytes, expire_at, marks, body: &[] };
        self.scratch.changes.push_shared(put, body);
        self.noted(db, key, true, Some(ValueKind::String));
    }

    /// The number that tells the key's string from every other one that the key had or gets; given
    /// when it is first asked for. `None` if there is no such key, or if it is no string.
    pub fn item_cas(&mut self, db: DbId, key: Key<'_>) -> Option<u64> {
        let entry = self.peek(db, key)?;
        string::bytes(entry.value())?;
        match entry.item().cas {
            0 => {
                let cas = self.keyspace.next_cas(self.now_ms);
                self.set_item(db, key, |head| ItemHead { cas, ..head });
                Some(cas)
            }
            cas => Some(cas),
        }
    }

    /// Changes what a string has besides its bytes and what the log keeps: nothing of it is a change
    /// of the data.
    pub fn set_item(&mut self, db: DbId, key: Key<'_>, change: impl FnOnce(ItemHead) -> ItemHead) {
        debug_assert!(!self.scratch.undoable, "it could not be taken back");
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let local = database.table.local(key.hash.0);
        let Some(mut slot) = database.table.get_mut(local, key.bytes) else { return };
        let (before, old) = (slot.get().bytes() as i64, slot.get().item());
        let head = change(old);
        debug_assert_eq!(head.marks(), old.marks(), "the log does not know");
        if head != old {
            slot.set_item(head);
            self.scratch.counters.bytes_delta += slot.get().bytes() as i64 - before;
        }
    }

    #[inline]
    fn put_string_as(&mut self, db: DbId, key: Key<'_>, bytes: &[u8], expire_at: u64, form: Form) {
        if bytes.len() >= LARGE_RECORD_BYTES {
            return self.put_long_string(db, key, bytes, expire_at);
        }
        self.put(db, key, string::init(bytes, form), expire_at);
        self.put_changed(db, key, bytes, expire_at);
    }

    /// The record shares the value's memory until it is written.
    #[cold]
    fn put_long_string(&mut self, db: DbId, key: Key<'_>, bytes: &[u8], expire_at: u64) {
        let string = LongString::from(bytes.to_vec());
        let (kind, body) = (ValueKind::String, string.freeze().into_shared());
        self.put(db, key, ValueInit::Object(Box::new(Object::String(string))), expire_at);
        self.begin_change(key);
        let put = Change::Put { db, key: key.bytes, expire_at, kind, body: &[] };
        self.scratch.changes.push_shared(put, body);
        self.noted(db, key, true, Some(kind));
    }

    #[inline]
    fn put_changed(&mut self, db: DbId, key: Key<'_>, body: &[u8], expire_at: u64) {
        let kind = ValueKind::String;
        self.changed(key, Change::Put { db, key: key.bytes, expire_at, kind, body });
    }

    /// Adds to the integer in the key's string (a missing key: 0), keeping the expiry; returns the
    /// sum.
    #[inline]
    pub fn add_to_int(&mut self, db: DbId, key: Key<'_>, delta: i64) -> Result<i64, CountError> {
        let (sum, expire_at, head) = match self.slot_of_int(db, key) {
            Some(mut slot) => {
                let entry = slot.get();
                let expire_at = entry.expire_at();
                if let ValueRef::Int(int) = entry.value() {
                    let sum = int.checked_add(delta).ok_or(CountError::Overflow)?;
                    // An integer replaces an integer in place: no account changes.
                    slot.set(expire_at, ValueInit::Int(sum));
                    let mut digits = [0; integer::INT_BYTES_MAX];
                    let body = integer::format_int(sum, &mut digits);
                    self.put_changed(db, key, body, expire_at);
                    return Ok(sum);
                }
                let bytes = string::bytes(entry.value()).ok_or(CountError::NotString)?;
                let int = integer::parse_int(&bytes).ok_or(CountError::NotInteger)?;
                let sum = int.checked_add(delta).ok_or(CountError::Overflow)?;
                (sum, expire_at, entry.item().of_changed())
            }
            None => (delta, 0, ItemHead::default()),
        };
        let mut digits = [0; integer::INT_BYTES_MAX];
        let body = integer::format_int(sum, &mut digits);
        if !head.is_empty() {
            self.put_item_again(db, key, body, expire_at, head);
            return Ok(sum);
        }
        self.put(db, key, ValueInit::Int(sum), expire_at);
        self.put_changed(db, key, body, expire_at);
        Ok(sum)
    }

    /// The strings of several keys, for a reading command: counts hits and misses. Fails if any is
    /// not a string.
    pub fn read_strings(
        &mut self,
        db: DbId,
        keys: &[Key<'_>],
    ) -> Result<Vec<Option<Cow<'_, [u8]>>>, WrongType> {
        // Removes expired keys first, because references to several values cannot outlive a change.
        let mut found = Vec::with_capacity(keys.len());
        for &key in keys {
            let value = self.read(db, key).map(EntryRef::value);
            found.push(
                value.map(|value| string::bytes(value).ok_or(WrongType)).transpose()?.is_some(),
            );
        }
        let look = |(&key, &found): (&Key<'_>, &bool)| {
            let database = &self.locked.look_at(partition_of(key.hash)).dbs[usize::from(db)];
            let entry = database.table.get(database.table.local(key.hash.0), key.bytes)?;
            found.then(|| string::bytes(entry.value())).flatten()
        };
        Ok(keys.iter().zip(&found).map(look).collect())
    }

    /// Freezes a string that was just read, for reading after the transaction; copied if it is
    /// short. `None` if there is none.
    pub fn freeze_string(&mut self, db: DbId, key: Key<'_>) -> Option<LongString> {
        match self.peek(db, key)?.value() {
            ValueRef::Object(Object::String(string)) => Some(string.freeze()),
            value => string::bytes(value).map(|bytes| bytes.into_owned().into()),
        }
    }

    /// Writes `bytes` at `offset` into the key's string and fills a gap with zeros; creates the
    /// string if missing, keeps the expiry. Returns the new length.
    pub fn write_string_at(
        &mut self,
        db: DbId,
        key: Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) -> Result<usize, WrongType> {
        let written = offset..offset + bytes.len();
        self.edit_string_within(db, key, written.end, written.clone(), |string| {
            string[written.clone()].copy_from_slice(bytes);
            written
        })
    }

    /// Changes the key's string in place after extending it with zeros to `length_min` bytes;
    /// creates it if missing, keeps the expiry. `edit` returns the range that it wrote to (empty
    /// for nothing), and only that is logged. Returns the new length.
    pub fn edit_string(
        &mut self,
        db: DbId,
        key: Key<'_>,
        length_min: usize,
        edit: impl FnOnce(&mut [u8]) -> Range<usize>,
    ) -> Result<usize, WrongType> {
        self.edit_string_within(db, key, length_min, 0..usize::MAX, edit)
    }

    /// As `edit_string`, for an `edit` that writes only `within` this range: then less has to be
    /// saved for taking it back.
    pub fn edit_string_within(
        &mut self,
        db: DbId,
        key: Key<'_>,
        length_min: usize,
        within: Range<usize>,
        edit: impl FnOnce(&mut [u8]) -> Range<usize>,
    ) -> Result<usize, WrongType> {
        if self.scratch.undoable {
            self.save_string(db, key, within);
        }
        let mut op = std::mem::take(&mut self.scratch.body);
        op.clear();
        let Some(mut slot) = self.slot(db, key) else {
            self.scratch.body = op;
            return Ok(self.create_string(db, key, length_min, edit));
        };
        let length;
        let (mut entry_delta, mut object_delta) = (0, 0);
        if let Some(object) = slot.object_mut() {
            let Object::String(string) = object else {
                self.scratch.body = op;
                return Err(WrongType);
            };
            let (old, bytes) = (string.len(), string.bytes() as i64);
            string.edit(|string| {
                string_op::extend_to(string, length_min);
                let written = edit(string);
                string_op::encode_edit(old, string, written, &mut op);
            });
            length = string.len();
            object_delta = string.bytes() as i64 - bytes;
        } else if let Some(string) = slot.bytes_mut()
            && length_min <= string.len()
        {
            let written = edit(string);
            string_op::encode_edit(string.len(), string, written, &mut op);
            length = string.len();
        } else {
            let (expire_at, entry_bytes) = (slot.get().expire_at(), slot.get().bytes() as i64);
            let head = slot.get().item().of_changed();
            let mut string =
                string::bytes(slot.get().value()).map_or(Vec::new(), |s| s.into_owned());
            let old = string.len();
            string_op::extend_to(&mut string, length_min);
            let written = edit(&mut string);
            string_op::encode_edit(old, &string, written, &mut op);
            length = string.len();
            let init = if length > TAKEN_OVER_BYTES_MIN {
                let string = LongString::from(string).with_head(head);
                ValueInit::Object(Box::new(Object::String(string)))
            } else {
                string::init_item(&string, Form::Grown, head)
            };
            object_delta = weight_of(&init).object_bytes as i64;
            slot.set(expire_at, init);
            entry_delta = slot.get().bytes() as i64 - entry_bytes;
        }
        self.edited(db, key, (entry_delta, object_delta), op);
        Ok(length)
    }

    /// Changes bytes of the key's string in place, unless `look` has a result already; `edit` adds
    /// the ranges that it writes to, and only those are logged. `None` if there is no such key.
    pub fn edit_string_in_place<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        look: impl FnOnce(&[u8]) -> Option<R>,
        edit: impl FnOnce(&mut [u8], &mut Written) -> R,
    ) -> Result<Option<R>, WrongType> {
        if self.scratch.undoable {
            self.save_string(db, key, 0..usize::MAX);
        }
        let mut op = std::mem::take(&mut self.scratch.body);
        op.clear();
        let edit = |bytes: &mut [u8]| {
            let mut written = Written::new();
            let result = edit(bytes, &mut written);
            string_op::encode_written(bytes, &mut written, &mut op);
            result
        };
        let Some(mut slot) = self.slot(db, key) else {
            self.scratch.body = op;
            return Ok(None);
        };
        // A look leaves the encoding as it is.
        let found = string::bytes(slot.get().value()).map(|bytes| look(&bytes));
        if let Some(Some(result)) = found {
            self.scratch.body = op;
            return Ok(Some(result));
        }
        let (mut entry_delta, mut object_delta) = (0, 0);
        let result = if let Some(object) = slot.object_mut() {
            let Object::String(string) = object else {
                self.scratch.body = op;
                return Err(WrongType);
            };
            string.edit(|string| edit(string))
        } else if let Some(bytes) = slot.bytes_mut() {
            edit(bytes)
        } else {
            let (expire_at, entry_bytes) = (slot.get().expire_at(), slot.get().bytes() as i64);
            let mut bytes =
                string::bytes(slot.get().value()).map_or(Vec::new(), |s| s.into_owned());
            let result = edit(&mut bytes);
            let head = slot.get().item().of_changed();
            let init = string::init_item(&bytes, Form::Grown, head);
            object_delta = weight_of(&init).object_bytes as i64;
            slot.set(expire_at, init);
            entry_delta = slot.get().bytes() as i64 - entry_bytes;
            result
        };
        self.edited(db, key, (entry_delta, object_delta), op);
        Ok(Some(result))
    }

    /// Gives the key other bytes, whose differences alone are logged; creates the string if
    /// missing, keeps the expiry.
    pub fn replace_string(&mut self, db: DbId, key: Key<'_>, new: &[u8]) -> Result<(), WrongType> {
        if self.scratch.undoable {
            self.save_string(db, key, 0..usize::MAX);
        }
        let mut op = std::mem::take(&mut self.scratch.body);
        op.clear();
        let Some(mut slot) = self.slot(db, key) else {
            self.scratch.body = op;
            self.put_grown_string(db, key, new, 0);
            return Ok(());
        };
        let (mut entry_delta, mut object_delta) = (0, 0);
        if let Some(object) = slot.object_mut() {
            let Object::String(string) = object else {
                self.scratch.body = op;
                return Err(WrongType);
            };
            let bytes = string.bytes() as i64;
            let parts = string_op::differences(string, new);
            string_op::encode_replace(parts.iter().cloned(), &mut op);
            if !parts.is_empty() {
                string.edit(|string| string_op::replace(string, &parts));
                object_delta = string.bytes() as i64 - bytes;
            }
        } else {
            let (expire_at, entry_bytes) = (slot.get().expire_at(), slot.get().bytes() as i64);
            let old = string::bytes(slot.get().value()).unwrap_or_default();
            string_op::encode_replace(string_op::differences(&old, new), &mut op);
            drop(old);
            if !op.is_empty() {
                let head = slot.get().item().of_changed();
                let init = string::init_item(new, Form::Grown, head);
                object_delta = weight_of(&init).object_bytes as i64;
                slot.set(expire_at, init);
                entry_delta = slot.get().bytes() as i64 - entry_bytes;
            }
        }
        self.edited(db, key, (entry_delta, object_delta), op);
        Ok(())
    }

    /// Accounts for an edit of a string, and logs it.
    fn edited(
        &mut self,
        db: DbId,
        key: Key<'_>,
        (entry_delta, object_delta): (i64, i64),
        mut op: Vec<u8>,
    ) {
        self.scratch.counters.bytes_delta += entry_delta + object_delta;
        if object_delta != 0 {
            let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
            database.object_bytes = (database.object_bytes as i64 + object_delta) as usize;
        }
        if !op.is_empty() {
            let (kind, name) = (ValueKind::String, key.bytes);
            self.changed_by(key, &mut op, |op| Change::Update { db, key: name, kind, op });
        }
        self.scratch.body = op;
        self.trim_body();
    }

    fn create_string(
        &mut self,
        db: DbId,
        key: Key<'_>,
        length: usize,
        edit: impl FnOnce(&mut [u8]) -> Range<usize>,
    ) -> usize {
        // The system provides zeroed memory of this size without touching it.
        let mut string = vec![0; length];
        let written = edit(&mut string);
        let zeros = if written.is_empty() { length } else { written.start };
        if zeros <= LEADING_ZEROS_MAX {
            self.put_changed(db, key, &string, 0);
        } else {
            // Megabytes of zeros need not be logged.
            self.put_changed(db, key, b"", 0);
            let mut op = Vec::new();
            string_op::encode_edit(0, &string, written, &mut op);
            let kind = ValueKind::String;
            self.changed(key, Change::Update { db, key: key.bytes, kind, op: &op });
        }
        let object;
        let init = if length > string::GROWN_INLINE_BYTES_MAX {
            object = Box::new(Object::String(string.into()));
            ValueInit::Object(object)
        } else {
            ValueInit::Bytes { bytes: &string, grown: true }
        };
        self.put(db, key, init, 0);
        length
    }
}
