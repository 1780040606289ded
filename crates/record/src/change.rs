//! A change: what happened to which key. Never the command that caused it.
//!
//! Replay needs no command code, no clock and no randomness: applying the changes of every record
//! in order to an empty keyspace yields the keyspace. One record (one transaction) is a sequence of
//! encoded changes. A checkpoint's blocks use the same encoding, `Put` and `Library` only.
//!
//! ```text
//! change := tag u8, db varint, then by tag
//!   1 Put     key bytes, expire_at varint (0: none), kind u8, body bytes
//!   2 Update  key bytes, kind u8, op bytes          (a type's own delta: see the engine's types)
//!   3 Delete  key bytes
//!   4 Expire  key bytes, expire_at varint (0: never expires)
//!   5 FlushDb
//!   6 SwapDb  other varint                          (positions in the SELECT map, not DbIds)
//!   7 Library         name bytes, body bytes        (see `library.rs`; db is 0, as in 8 and 9)
//!   8 DeleteLibrary   name bytes
//!   9 FlushLibraries
//!  10 SpacePut        space varint, tuple bytes     (MessagePack; db is 0, as in 11)
//!  11 SpaceDelete     space varint, key bytes       (the primary key's parts, a MessagePack array)
//!  12 PutItem key bytes, expire_at varint (0: none), marks varint, body bytes
//! bytes := length varint, then that many bytes
//! ```

use crate::record::{LargeRecord, RecordPart};
use crate::varint;
use crate::{DbId, SpaceId, UnixMillis};
use std::sync::Arc;
use thiserror::Error;

/// Which type a value has; a number of the file format, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ValueKind {
    /// A string; the body is its bytes.
    String = 1,
    /// A set; the body is its members, each as length and bytes (with times: see the engine's
    /// `types/set/collection.rs`).
    Set = 2,
    /// A hash; the body is its fields as items (see the engine's `types/hash/item.rs`).
    Hash = 3,
    /// A list; the body is its elements, first to last, each as length and bytes.
    List = 4,
    /// A sorted set; the body is its members in order, each as score, length and bytes.
    SortedSet = 5,
    /// A stream; the body is its entries and groups (see the engine's
    /// `types/stream/collection.rs`).
    Stream = 6,
}

impl ValueKind {
    /// The inverse of `kind as u8`.
    pub const fn from_u8(byte: u8) -> Option<ValueKind> {
        match byte {
            1 => Some(ValueKind::String),
            2 => Some(ValueKind::Set),
            3 => Some(ValueKind::Hash),
            4 => Some(ValueKind::List),
            5 => Some(ValueKind::SortedSet),
            6 => Some(ValueKind::Stream),
            _ => None,
        }
    }

    /// The name that `TYPE` answers.
    pub const fn name(self) -> &'static str {
        match self {
            ValueKind::String => "string",
            ValueKind::Set => "set",
            ValueKind::Hash => "hash",
            ValueKind::List => "list",
            ValueKind::SortedSet => "zset",
            ValueKind::Stream => "stream",
        }
    }
}

/// One change to the data, borrowed from its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named as in the encoding above")]
pub enum Change<'a> {
    /// The key now has this value and this expiry, whatever it had before.
    Put { db: DbId, key: &'a [u8], expire_at: UnixMillis, kind: ValueKind, body: &'a [u8] },
    /// As `Put`, of a string that has marks of memcached's protocol: its client flags, and whether it
    /// is stale (see the engine's `item.rs`).
    PutItem { db: DbId, key: &'a [u8], expire_at: UnixMillis, marks: u64, body: &'a [u8] },
    /// The key's value changed by a delta that its type understands.
    Update { db: DbId, key: &'a [u8], kind: ValueKind, op: &'a [u8] },
    /// The key was removed.
    Delete { db: DbId, key: &'a [u8] },
    /// The key expires at another time (0: never).
    Expire { db: DbId, key: &'a [u8], expire_at: UnixMillis },
    /// Every key of the database was removed.
    FlushDb { db: DbId },
    /// `SELECT first` and `SELECT second` changed their meaning with each other.
    SwapDb { first: DbId, second: DbId },
    /// The library of this name is now this one, whatever was there before.
    Library { name: &'a [u8], body: &'a [u8] },
    /// The library was removed.
    DeleteLibrary { name: &'a [u8] },
    /// Every library was removed.
    FlushLibraries,
    /// The space has this tuple now, in place of the one with the same primary key if there was
    /// one. Definitions are tuples too, of the system spaces.
    SpacePut { space: SpaceId, tuple: &'a [u8] },
    /// The tuple with this primary key was removed from the space.
    SpaceDelete { space: SpaceId, key: &'a [u8] },
}

const TAG_PUT: u8 = 1;
const TAG_UPDATE: u8 = 2;
const TAG_DELETE: u8 = 3;
const TAG_EXPIRE: u8 = 4;
const TAG_FLUSH_DB: u8 = 5;
const TAG_SWAP_DB: u8 = 6;
const TAG_LIBRARY: u8 = 7;
const TAG_DELETE_LIBRARY: u8 = 8;
const TAG_FLUSH_LIBRARIES: u8 = 9;
const TAG_SPACE_PUT: u8 = 10;
const TAG_SPACE_DELETE: u8 = 11;
const TAG_PUT_ITEM: u8 = 12;

impl Change<'_> {
    /// Appends the encoding.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Put { db, key, expire_at, kind, body } => {
                // Reserving once keeps the appends below free of growth checks that matter.
                out.reserve(key.len() + body.len() + 40);
                if db < 0x80 && key.len() < 0x80 {
                    out.extend_from_slice(&[TAG_PUT, db as u8, key.len() as u8]);
                    out.extend_from_slice(key);
                } else {
                    head(out, TAG_PUT, db);
                    varint::put_bytes(out, key);
                }
                if expire_at == 0 && body.len() < 0x80 {
                    out.extend_from_slice(&[0, kind as u8, body.len() as u8]);
                    out.extend_from_slice(body);
                } else {
                    varint::put(out, expire_at);
                    out.push(kind as u8);
                    varint::put_bytes(out, body);
                }
            }
            Change::PutItem { db, key, expire_at, marks, body } => {
                out.reserve(key.len() + body.len() + 50);
                Change::encode_put_item_head(out, (db, key), expire_at, marks, body.len());
                out.extend_from_slice(body);
            }
            Change::Update { db, key, kind, op } => {
                out.reserve(key.len() + op.len() + 30);
                if db < 0x80 && key.len() < 0x80 && op.len() < 0x80 {
                    out.extend_from_slice(&[TAG_UPDATE, db as u8, key.len() as u8]);
                    out.extend_from_slice(key);
                    out.extend_from_slice(&[kind as u8, op.len() as u8]);
                    out.extend_from_slice(op);
                } else {
                    head(out, TAG_UPDATE, db);
                    varint::put_bytes(out, key);
                    out.push(kind as u8);
                    varint::put_bytes(out, op);
                }
            }
            Change::Delete { db, key } => {
                head(out, TAG_DELETE, db);
                varint::put_bytes(out, key);
            }
            Change::Expire { db, key, expire_at } => {
                head(out, TAG_EXPIRE, db);
                varint::put_bytes(out, key);
                varint::put(out, expire_at);
            }
            Change::FlushDb { db } => head(out, TAG_FLUSH_DB, db),
            Change::SwapDb { first, second } => {
                head(out, TAG_SWAP_DB, first);
                varint::put(out, u64::from(second));
            }
            Change::Library { name, body } => {
                out.reserve(name.len() + body.len() + 20);
                head(out, TAG_LIBRARY, 0);
                varint::put_bytes(out, name);
                varint::put_bytes(out, body);
            }
            Change::DeleteLibrary { name } => {
                head(out, TAG_DELETE_LIBRARY, 0);
                varint::put_bytes(out, name);
            }
            Change::FlushLibraries => head(out, TAG_FLUSH_LIBRARIES, 0),
            Change::SpacePut { space, tuple } => of_space(out, TAG_SPACE_PUT, space, tuple),
            Change::SpaceDelete { space, key } => of_space(out, TAG_SPACE_DELETE, space, key),
        }
    }

    /// Appends the encoding of a [`Change::Put`] up to its body, which has this many bytes and has
    /// to follow.
    pub fn encode_put_head(
        out: &mut Vec<u8>,
        (db, key): (DbId, &[u8]),
        expire_at: UnixMillis,
        kind: ValueKind,
        body_bytes: usize,
    ) {
        head(out, TAG_PUT, db);
        varint::put_bytes(out, key);
        varint::put(out, expire_at);
        out.push(kind as u8);
        varint::put(out, body_bytes as u64);
    }

    /// As `encode_put_head`, of a [`Change::PutItem`].
    pub fn encode_put_item_head(
        out: &mut Vec<u8>,
        (db, key): (DbId, &[u8]),
        expire_at: UnixMillis,
        marks: u64,
        body_bytes: usize,
    ) {
        head(out, TAG_PUT_ITEM, db);
        varint::put_bytes(out, key);
        varint::put(out, expire_at);
        varint::put(out, marks);
        varint::put(out, body_bytes as u64);
    }

    fn encode_update_head(
        out: &mut Vec<u8>,
        (db, key): (DbId, &[u8]),
        kind: ValueKind,
        op_bytes: usize,
    ) {
        head(out, TAG_UPDATE, db);
        varint::put_bytes(out, key);
        out.push(kind as u8);
        varint::put(out, op_bytes as u64);
    }

    /// The key that the change touches, with its database; `None` for whole databases, libraries
    /// and spaces.
    pub fn key(&self) -> Option<(DbId, &[u8])> {
        match *self {
            Change::Put { db, key, .. }
            | Change::PutItem { db, key, .. }
            | Change::Update { db, key, .. }
            | Change::Delete { db, key }
            | Change::Expire { db, key, .. } => Some((db, key)),
            Change::FlushDb { .. }
            | Change::SwapDb { .. }
            | Change::Library { .. }
            | Change::DeleteLibrary { .. }
            | Change::FlushLibraries
            | Change::SpacePut { .. }
            | Change::SpaceDelete { .. } => None,
        }
    }
}

#[inline]
fn head(out: &mut Vec<u8>, tag: u8, db: DbId) {
    out.push(tag);
    varint::put(out, u64::from(db));
}

#[inline]
fn of_space(out: &mut Vec<u8>, tag: u8, space: SpaceId, bytes: &[u8]) {
    out.reserve(bytes.len() + 20);
    out.extend_from_slice(&[tag, 0]);
    varint::put(out, u64::from(space));
    varint::put_bytes(out, bytes);
}

/// Why an encoded change cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The bytes end inside a change.
    #[error("the bytes end inside a change")]
    Truncated,
    /// The tag belongs to no change that this version knows.
    #[error("unknown change tag {0}")]
    UnknownTag(u8),
    /// The kind belongs to no value type that this version knows.
    #[error("unknown value kind {0}")]
    UnknownKind(u8),
}

/// The changes of one record or block, read from their encoding; stops after the first error.
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    rest: &'a [u8],
}

impl<'a> Changes<'a> {
    /// Reads `bytes`, a run of encoded changes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Changes { rest: bytes }
    }

    /// What is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>, ChangeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let change = take_change(&mut self.rest);
        if change.is_err() {
            self.rest = &[];
        }
        Some(change)
    }
}

fn take_change<'a>(input: &mut &'a [u8]) -> Result<Change<'a>, ChangeError> {
    use ChangeError::Truncated;
    let tag = take_u8(input)?;
    let db = take_db(input)?;
    let mut bytes = || varint::take_bytes(input).ok_or(Truncated);
    Ok(match tag {
        TAG_PUT => {
            let key = bytes()?;
            let expire_at = varint::take(input).ok_or(Truncated)?;
            let kind = take_kind(input)?;
            let body = varint::take_bytes(input).ok_or(Truncated)?;
            Change::Put { db, key, expire_at, kind, body }
        }
        TAG_PUT_ITEM => {
            let key = bytes()?;
            let expire_at = varint::take(input).ok_or(Truncated)?;
            let marks = varint::take(input).ok_or(Truncated)?;
            let body = varint::take_bytes(input).ok_or(Truncated)?;
            Change::PutItem { db, key, expire_at, marks, body }
        }
        TAG_UPDATE => {
            let key = bytes()?;
            let kind = take_kind(input)?;
            let op = varint::take_bytes(input).ok_or(Truncated)?;
            Change::Update { db, key, kind, op }
        }
        TAG_DELETE => Change::Delete { db, key: bytes()? },
        TAG_EXPIRE => {
            let key = bytes()?;
            Change::Expire { db, key, expire_at: varint::take(input).ok_or(Truncated)? }
        }
        TAG_FLUSH_DB => Change::FlushDb { db },
        TAG_SWAP_DB => Change::SwapDb { first: db, second: take_db(input)? },
        TAG_LIBRARY => {
            let name = bytes()?;
            Change::Library { name, body: bytes()? }
        }
        TAG_DELETE_LIBRARY => Change::DeleteLibrary { name: bytes()? },
        TAG_FLUSH_LIBRARIES => Change::FlushLibraries,
        TAG_SPACE_PUT => {
            let space = take_space(input)?;
            Change::SpacePut { space, tuple: varint::take_bytes(input).ok_or(Truncated)? }
        }
        TAG_SPACE_DELETE => {
            let space = take_space(input)?;
            Change::SpaceDelete { space, key: varint::take_bytes(input).ok_or(Truncated)? }
        }
        other => return Err(ChangeError::UnknownTag(other)),
    })
}

fn take_u8(input: &mut &[u8]) -> Result<u8, ChangeError> {
    let (&first, rest) = input.split_first().ok_or(ChangeError::Truncated)?;
    *input = rest;
    Ok(first)
}

fn take_db(input: &mut &[u8]) -> Result<DbId, ChangeError> {
    let db = varint::take(input).ok_or(ChangeError::Truncated)?;
    DbId::try_from(db).map_err(|_| ChangeError::Truncated)
}

fn take_space(input: &mut &[u8]) -> Result<SpaceId, ChangeError> {
    let space = varint::take(input).ok_or(ChangeError::Truncated)?;
    SpaceId::try_from(space).map_err(|_| ChangeError::Truncated)
}

fn take_kind(input: &mut &[u8]) -> Result<ValueKind, ChangeError> {
    let byte = take_u8(input)?;
    ValueKind::from_u8(byte).ok_or(ChangeError::UnknownKind(byte))
}

/// Collects the changes of one record while its locks are held.
#[derive(Clone, Debug, Default)]
pub struct ChangeBuffer {
    bytes: Vec<u8>,
    /// Bodies in separate memory, and the offset in `bytes` where each belongs.
    shared: Vec<(usize, Arc<Vec<u8>>)>,
    count: u32,
}

/// A place in a [`ChangeBuffer`].
#[derive(Clone, Copy, Debug)]
pub struct ChangeMark {
    bytes: usize,
    shared: usize,
    count: u32,
}

impl ChangeBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        ChangeBuffer::default()
    }

    /// Adds one change.
    #[inline]
    pub fn push(&mut self, change: Change<'_>) {
        change.encode(&mut self.bytes);
        self.count += 1;
    }

    /// The encoded changes, without shared bodies: the payload of a log record.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a [`Change::Put`], a [`Change::PutItem`] or a [`Change::Update`] with this body in place of
    /// its own. It is not copied, and may be shared with the data.
    pub fn push_shared(&mut self, change: Change<'_>, body: Arc<Vec<u8>>) {
        match change {
            Change::Put { db, key, expire_at, kind, .. } => {
                Change::encode_put_head(&mut self.bytes, (db, key), expire_at, kind, body.len());
            }
            Change::PutItem { db, key, expire_at, marks, .. } => {
                let at = (db, key);
                Change::encode_put_item_head(&mut self.bytes, at, expire_at, marks, body.len());
            }
            Change::Update { db, key, kind, .. } => {
                Change::encode_update_head(&mut self.bytes, (db, key), kind, body.len());
            }
            _ => unreachable!("other changes have no body"),
        }
        self.shared.push((self.bytes.len(), body));
        self.count += 1;
    }

    /// Whether some body is shared, so that `as_bytes` is not all.
    #[inline]
    pub fn is_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Takes the encoded changes as a record; their number stays known.
    pub fn take_record(&mut self) -> LargeRecord {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut parts = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut begin = 0;
        for (end, body) in self.shared.drain(..) {
            parts.push(RecordPart::Own(bytes[begin..end].into()));
            parts.push(RecordPart::Shared(body));
            begin = end;
        }
        bytes.drain(..begin);
        if !bytes.is_empty() {
            parts.push(RecordPart::Own(bytes.into_boxed_slice()));
        }
        LargeRecord::of(parts)
    }

    /// How many changes were added since the last `clear` (Redis calls this "dirty").
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Nothing changed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The place behind what was added.
    pub fn mark(&self) -> ChangeMark {
        ChangeMark { bytes: self.bytes.len(), shared: self.shared.len(), count: self.count }
    }

    /// Forgets what was added since.
    pub fn truncate(&mut self, mark: ChangeMark) {
        self.bytes.truncate(mark.bytes);
        self.shared.truncate(mark.shared);
        self.count = mark.count;
    }

    /// Forgets the changes; keeps the memory unless a huge record left it oversized.
    #[inline]
    pub fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 1 << 20;
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.shared.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bodies_read_back_in_their_places() {
        let body = |length| Arc::new(vec![length as u8; length]);
        let put = |db, key, expire_at, body| {
            let kind = ValueKind::String;
            Change::Put { db, key, expire_at, kind, body }
        };
        let update = |op| Change::Update { db: 128, key: b"d", kind: ValueKind::List, op };
        let mut changes = ChangeBuffer::new();
        changes.push_shared(put(0, b"a", 0, b""), body(300));
        changes.push(Change::Delete { db: 1, key: b"b" });
        changes.push_shared(put(200, b"c", 9, b""), body(200));
        changes.push_shared(update(b""), body(100));
        assert_eq!((changes.count(), changes.is_shared()), (4, true));
        let record = changes.take_record();
        let encoded = record.changes();
        let read: Result<Vec<_>, _> = Changes::new(&encoded).collect();
        let (first, second, last) = (body(300), body(200), body(100));
        let expected = [
            put(0, b"a" as &[u8], 0, &first),
            Change::Delete { db: 1, key: b"b" },
            put(200, b"c", 9, &second),
            update(&last),
        ];
        assert_eq!(read.unwrap(), expected);
        assert_eq!(record.into_parts().0.len(), 6);
        assert!(!changes.is_shared() && changes.is_empty());
    }

    #[test]
    fn every_change_reads_back_and_every_cut_is_an_error() {
        let changes = [
            Change::Put { db: 0, key: b"k", expire_at: 9, kind: ValueKind::String, body: b"v" },
            Change::Put { db: 1, key: b"", expire_at: 0, kind: ValueKind::String, body: b"" },
            Change::Put { db: 128, key: b"k", expire_at: 0, kind: ValueKind::Set, body: &[7; 200] },
            Change::PutItem { db: 0, key: b"k", expire_at: 9, marks: 7, body: b"v" },
            Change::PutItem {
                db: 300,
                key: &[1; 250],
                expire_at: 0,
                marks: 1 << 32,
                body: &[7; 300],
            },
            Change::Update { db: 127, key: b"key", kind: ValueKind::List, op: b"\x03\x01" },
            Change::Update { db: 0, key: &[b'x'; 128], kind: ValueKind::Hash, op: b"\x01" },
            Change::Update { db: 0, key: b"k", kind: ValueKind::Set, op: &[7; 128] },
            Change::Update { db: 300, key: b"", kind: ValueKind::Set, op: b"\x01" },
            Change::Delete { db: 1, key: &[b'x'; 200] },
            Change::Expire { db: 1, key: b"k", expire_at: 0 },
            Change::FlushDb { db: 15 },
            Change::SwapDb { first: 0, second: 400 },
            Change::Library { name: b"mylib", body: &[7; 200] },
            Change::DeleteLibrary { name: b"mylib" },
            Change::FlushLibraries,
            Change::SpacePut { space: 512, tuple: &[7; 200] },
            Change::SpacePut { space: 2_147_483_647, tuple: b"\x91\x01" },
            Change::SpaceDelete { space: 280, key: b"\x91\x01" },
        ];
        for change in changes {
            let mut out = Vec::new();
            change.encode(&mut out);
            assert_eq!(Changes::new(&out).next(), Some(Ok(change)));
            for cut in 1..out.len() {
                let read: Result<Vec<_>, _> = Changes::new(&out[..cut]).collect();
                assert!(read.is_err(), "{change:?} cut at {cut}");
            }
        }
    }
}
