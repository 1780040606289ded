//! A value's bytes, in encodings that servers of the version read.
//!
//! Collections are written plain, count and elements: every version reads that, and a server packs
//! them as its own settings say when it loads them.

use std::iter;

use super::{Sink, Version};
use crate::encoding::Encoding;
use crate::error::Fault;
use crate::packed::Pack;
use crate::stream::ENTRIES_READ_UNKNOWN;
use crate::text::put_length;
use crate::value::{
    ConsumerHead, Entry, Field, Group, GroupHead, Pending, Stream, StreamCounters, StreamId,
    StreamState, Value,
};

/// As a Redis server does by default (`stream-node-max-bytes`, `stream-node-max-entries`).
const NODE_BYTES: usize = 4096;
const NODE_ENTRIES: usize = 100;

/// A longer string could make a listpack longer than its head can say.
const PACKED_STRING_BYTES_MAX: usize = 1 << 30;

/// A longer string goes out without being copied first.
const LONG_STRING_BYTES: usize = 64 << 10;

/// The number that `bytes` print, if printing it gives the same bytes.
pub(crate) fn canonical_number(bytes: &[u8]) -> Option<i64> {
    const DIGITS_MAX: usize = 20;
    let (first, _) = bytes.split_first()?;
    if bytes.len() > DIGITS_MAX || !(first.is_ascii_digit() || *first == b'-') {
        return None;
    }
    let number: i64 = str::from_utf8(bytes).ok()?.parse().ok()?;
    let is_canonical = match bytes {
        [b'0'] => true,
        [b'0', ..] | [b'-', b'0', ..] => false,
        _ => true,
    };
    is_canonical.then_some(number)
}

/// Appends a string: as a number of up to 32 bits if it is one, as in Redis.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    match canonical_number(bytes) {
        Some(number @ -0x80..0x80) => out.extend_from_slice(&[0xc0, number as u8]),
        Some(number @ -0x8000..0x8000) => {
            out.push(0xc1);
            out.extend_from_slice(&(number as i16).to_le_bytes());
        }
        Some(number @ -0x8000_0000..0x8000_0000) => {
            out.push(0xc2);
            out.extend_from_slice(&(number as i32).to_le_bytes());
        }
        _ => put_raw_string(out, bytes),
    }
}

fn put_raw_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What a value begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A string.
    String,
    /// A list of this many elements.
    List(u64),
    /// A set of this many members.
    Set(u64),
    /// A sorted set of this many members.
    SortedSet(u64),
    /// A hash.
    Hash {
        /// How many fields there are.
        fields: u64,
        /// When the first of them expires, in milliseconds since 1970, if one does.
        least_expiry_ms: Option<u64>,
    },
    /// A stream of this many nodes ([`NodeShare`]).
    Stream(u64),
}

impl Head {
    /// The encoding of the value, if servers of `version` know it.
    fn encoding(self, version: Version) -> Result<Encoding, Fault> {
        Ok(match self {
            Head::String => Encoding::String,
            Head::List(_) => Encoding::List,
            Head::Set(_) => Encoding::Set,
            Head::SortedSet(_) => Encoding::SortedSet,
            Head::Hash { least_expiry_ms: None, .. } => Encoding::Hash,
            Head::Hash { .. } => match version {
                Version::Redis12 => Encoding::HashMetadata,
                Version::Valkey80 => Encoding::HashValkey,
                Version::Redis9 | Version::Redis10 | Version::Redis11 => {
                    return Err(Fault::Unsupported(format!(
                        "RDB version {} has no fields that expire",
                        version.number()
                    )));
                }
            },
            Head::Stream(_) => match version {
                Version::Redis9 => Encoding::Stream1,
                Version::Redis10 => Encoding::Stream2,
                Version::Redis11 | Version::Redis12 | Version::Valkey80 => Encoding::Stream3,
            },
        })
    }

    /// Whether servers of `version` know such a value.
    pub(super) fn check(self, version: Version) -> Result<(), Fault> {
        self.encoding(version).map(drop)
    }

    fn of(value: &Value) -> Head {
        match value {
            Value::String(_) => Head::String,
            Value::List(elements) => Head::List(elements.len() as u64),
            Value::Set(members) => Head::Set(members.len() as u64),
            Value::SortedSet(members) => Head::SortedSet(members.len() as u64),
            Value::Hash(fields) => Head::Hash {
                fields: fields.len() as u64,
                least_expiry_ms: fields.iter().filter_map(|field| field.expires_at_ms).min(),
            },
            Value::Stream(stream) => Head::Stream(nodes_of(&stream.entries).len() as u64),
        }
    }
}

/// Whether [`put_value`] would write it.
pub(super) fn check(value: &Value, version: Version) -> Result<(), Fault> {
    Head::of(value).encoding(version)?;
    match value {
        Value::SortedSet(members) if members.iter().any(|(_, score)| score.is_nan()) => {
            Err(Fault::Malformed("a score is not a number"))
        }
        Value::Hash(fields) => {
            let is_wrong = |field: &Field| {
                field.expires_at_ms.is_some_and(|at| at == 0 || i64::try_from(at).is_err())
            };
            if fields.iter().any(is_wrong) {
                return Err(Fault::Malformed("a field's expiry is out of range"));
            }
            Ok(())
        }
        Value::Stream(stream) => check_stream(stream),
        _ => Ok(()),
    }
}

fn check_stream(stream: &Stream) -> Result<(), Fault> {
    let ids = || stream.entries.iter().map(|entry| entry.id);
    if ids().zip(ids().skip(1)).any(|(one, next)| one >= next) {
        return Err(Fault::Malformed("the ids of a stream's entries do not grow"));
    }
    if stream.entries.last().is_some_and(|last| last.id > stream.state.last_id) {
        return Err(Fault::Malformed("a stream's last id is below an entry's"));
    }
    if stream.state.length != stream.entries.len() as u64 {
        return Err(Fault::Malformed("a stream's length is not the number of its entries"));
    }
    let mut strings = stream.entries.iter().flat_map(|entry| &entry.fields);
    let is_long = |bytes: &[u8]| bytes.len() > PACKED_STRING_BYTES_MAX;
    if strings.any(|(name, value)| is_long(name) || is_long(value)) {
        return Err(Fault::Malformed("a string of a stream is longer than 1 GiB"));
    }
    Ok(())
}

/// Appends encoding, key (where there is one) and value.
///
/// # Errors
/// A value that servers of `version` do not know; then nothing is appended.
pub(crate) fn put_value<S: Sink>(
    sink: &mut S,
    key: Option<&[u8]>,
    value: &Value,
    version: Version,
) -> Result<(), Fault> {
    check(value, version)?;
    let mut writer = ValueWriter::begin(sink, key, Head::of(value), version)?;
    match value {
        Value::String(string) => writer.string(string)?,
        Value::List(elements) | Value::Set(elements) => {
            elements.iter().try_for_each(|element| writer.element(element))?;
        }
        Value::SortedSet(members) => {
            members.iter().try_for_each(|(member, score)| writer.scored(member, *score))?;
        }
        Value::Hash(fields) => {
            for Field { name, value, expires_at_ms } in fields {
                writer.field(name, value, *expires_at_ms)?;
            }
        }
        Value::Stream(stream) => put_stream(&mut writer, stream)?,
    }
    writer.end()
}

fn put_stream<S: Sink>(writer: &mut ValueWriter<'_, S>, stream: &Stream) -> Result<(), Fault> {
    // The count of nodes stands before them: how entries share them is known without the bytes.
    nodes_of(&stream.entries).into_iter().try_for_each(|node| writer.node(node))?;
    let first_id = stream.entries.first().map(|entry| entry.id).unwrap_or_default();
    writer.stream_state(&stream.state, first_id, stream.groups.len() as u64)?;
    for Group { head, pending, consumers } in &stream.groups {
        writer.group(head, pending.len() as u64)?;
        pending.iter().try_for_each(|pending| writer.pending(pending))?;
        writer.consumers(consumers.len() as u64)?;
        for consumer in consumers {
            writer.consumer(&consumer.head, consumer.pending.len() as u64)?;
            consumer.pending.iter().try_for_each(|&id| writer.consumer_pending(id))?;
        }
    }
    Ok(())
}

/// Writes one value, element by element, in the order of [`Element`](crate::value::Element)'s variants.
///
/// The caller writes as many elements as it announced: what is missing or too much makes the bytes
/// behind them mean something else, so [`Self::end`] asserts it.
pub struct ValueWriter<'s, S> {
    sink: &'s mut S,
    encoding: Encoding,
    least_expiry_ms: u64,
    /// How much of what was announced is still to be written.
    left: u64,
}

impl<'s, S: Sink> ValueWriter<'s, S> {
    /// Appends encoding, key (where there is one) and what the elements follow.
    pub(crate) fn begin(
        sink: &'s mut S,
        key: Option<&[u8]>,
        head: Head,
        version: Version,
    ) -> Result<ValueWriter<'s, S>, Fault> {
        let encoding = head.encoding(version)?;
        sink.out().push(encoding.byte());
        if let Some(key) = key {
            put_string(sink.out(), key);
        }
        let mut least = 0;
        let left = match head {
            Head::String => 1,
            Head::List(count) | Head::Set(count) | Head::SortedSet(count) | Head::Stream(count) => {
                count
            }
            Head::Hash { fields, least_expiry_ms } => {
                least = least_expiry_ms.unwrap_or(0);
                if encoding == Encoding::HashMetadata {
                    sink.out().extend_from_slice(&least.to_le_bytes());
                }
                fields
            }
        };
        if head != Head::String {
            put_length(sink.out(), left);
        }
        sink.element_done()?;
        Ok(ValueWriter { sink, encoding, least_expiry_ms: least, left })
    }

    /// The next of what was announced is being written.
    fn count(&mut self) {
        assert!(self.left > 0, "more is written than was announced");
        self.left -= 1;
    }

    /// All of a string.
    ///
    /// # Errors
    /// If what is written cannot go out; so do all functions here.
    pub fn string(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.count();
        if bytes.len() < LONG_STRING_BYTES {
            put_string(self.sink.out(), bytes);
            return self.sink.element_done();
        }
        put_length(self.sink.out(), bytes.len() as u64);
        self.sink.long(bytes)
    }

    /// The next element of a list, or member of a set.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn element(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.string(bytes)
    }

    /// The next member of a sorted set, whose score is a number.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn scored(&mut self, member: &[u8], score: f64) -> Result<(), Fault> {
        self.string(member)?;
        self.sink.out().extend_from_slice(&score.to_le_bytes());
        self.sink.element_done()
    }

    /// The next field of a hash. It expires only if the head says that some field does.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<(), Fault> {
        if self.encoding == Encoding::HashMetadata {
            let behind = |at: u64| at.saturating_sub(self.least_expiry_ms) + 1;
            put_length(self.sink.out(), expires_at_ms.map_or(0, behind));
        }
        self.string(name)?;
        self.left += 1;
        self.string(value)?;
        if self.encoding == Encoding::HashValkey {
            let at = expires_at_ms.map_or(-1, |at| at as i64);
            self.sink.out().extend_from_slice(&at.to_le_bytes());
        }
        self.sink.element_done()
    }

    /// The next node of a stream: its entries, as [`NodeShare`] says, at least one.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn node(&mut self, entries: &[Entry]) -> Result<(), Fault> {
        self.count();
        put_raw_string(self.sink.out(), &raw_id(entries[0].id));
        put_raw_string(self.sink.out(), &pack_node(entries));
        self.sink.element_done()
    }

    /// What a stream knows beside its entries, behind the last node. `groups` of them follow.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn stream_state(
        &mut self,
        state: &StreamState,
        first_id: StreamId,
        groups: u64,
    ) -> Result<(), Fault> {
        assert!(self.left == 0, "{} nodes are missing", self.left);
        let out = self.sink.out();
        put_length(out, state.length);
        put_id(out, state.last_id);
        if self.encoding != Encoding::Stream1 {
            let counters = state.counters.unwrap_or(StreamCounters {
                first_id,
                max_deleted_id: StreamId::default(),
                entries_added: state.length,
            });
            put_id(out, counters.first_id);
            put_id(out, counters.max_deleted_id);
            put_length(out, counters.entries_added);
        }
        put_length(out, groups);
        self.sink.element_done()
    }

    /// The next group, in which `pending` entries are pending.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn group(&mut self, head: &GroupHead, pending: u64) -> Result<(), Fault> {
        let out = self.sink.out();
        put_string(out, &head.name);
        put_id(out, head.last_id);
        if self.encoding != Encoding::Stream1 {
            put_length(out, head.entries_read.unwrap_or(ENTRIES_READ_UNKNOWN));
        }
        put_length(out, pending);
        self.sink.element_done()
    }

    /// The next pending entry of the group.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn pending(&mut self, pending: &Pending) -> Result<(), Fault> {
        let out = self.sink.out();
        out.extend_from_slice(&raw_id(pending.id));
        out.extend_from_slice(&pending.delivered_at_ms.to_le_bytes());
        put_length(out, pending.deliveries);
        self.sink.element_done()
    }

    /// Behind the group's last pending entry: how many consumers follow.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn consumers(&mut self, count: u64) -> Result<(), Fault> {
        put_length(self.sink.out(), count);
        self.sink.element_done()
    }

    /// The next consumer of the group, with which `pending` entries are pending.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn consumer(&mut self, head: &ConsumerHead, pending: u64) -> Result<(), Fault> {
        let out = self.sink.out();
        put_string(out, &head.name);
        out.extend_from_slice(&head.seen_at_ms.to_le_bytes());
        if self.encoding == Encoding::Stream3 {
            let active = head.active_at_ms.unwrap_or(-1);
            out.extend_from_slice(&active.to_le_bytes());
        }
        put_length(out, pending);
        self.sink.element_done()
    }

    /// The next entry that is pending with the consumer.
    ///
    /// # Errors
    /// As of [`Self::string`].
    pub fn consumer_pending(&mut self, id: StreamId) -> Result<(), Fault> {
        self.sink.out().extend_from_slice(&raw_id(id));
        self.sink.element_done()
    }

    /// Ends the value.
    ///
    /// # Errors
    /// As of [`Self::string`].
    ///
    /// # Panics
    /// If fewer elements were written than announced.
    pub fn end(self) -> Result<(), Fault> {
        assert!(self.left == 0, "{} elements are missing", self.left);
        self.sink.element_done()
    }
}

fn put_id(out: &mut Vec<u8>, id: StreamId) {
    put_length(out, id.ms);
    put_length(out, id.seq);
}

fn raw_id(id: StreamId) -> [u8; 16] {
    let mut raw = [0; 16];
    raw[..8].copy_from_slice(&id.ms.to_be_bytes());
    raw[8..].copy_from_slice(&id.seq.to_be_bytes());
    raw
}

/// Which entries of a stream share a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeShare {
    entries: usize,
    bytes: usize,
}

impl NodeShare {
    /// Whether an entry with strings of these lengths, names and values, joins the node of the
    /// entry before; otherwise it begins one, as the first entry does.
    pub fn joins(&mut self, lengths: impl Iterator<Item = usize>) -> bool {
        /// What an entry and a string need beside their bytes, at most.
        const ENTRY_BYTES: usize = 40;
        const STRING_BYTES: usize = 10;
        let bytes = ENTRY_BYTES + lengths.map(|length| length + STRING_BYTES).sum::<usize>();
        let joins = (1..NODE_ENTRIES).contains(&self.entries) && self.bytes + bytes <= NODE_BYTES;
        if !joins {
            *self = NodeShare::default();
        }
        self.entries += 1;
        self.bytes += bytes;
        joins
    }
}

/// Entries that share a node each.
fn nodes_of(entries: &[Entry]) -> Vec<&[Entry]> {
    let mut share = NodeShare::default();
    // Each other entry is the second of one pair.
    if let Some(first) = entries.first() {
        share.joins(lengths_of(first));
    }
    entries.chunk_by(|_, entry| share.joins(lengths_of(entry))).collect()
}

fn lengths_of(entry: &Entry) -> impl Iterator<Item = usize> {
    entry.fields.iter().flat_map(|(name, value)| [name.len(), value.len()])
}

/// The listpack of a node. Its fields are those of its first entry.
fn pack_node(entries: &[Entry]) -> Vec<u8> {
    const SAME_FIELDS: i64 = 2;
    let first = &entries[0];
    let mut pack = Pack::new();
    pack.push_number(entries.len() as i64);
    pack.push_number(0);
    pack.push_number(first.fields.len() as i64);
    for (name, _) in &first.fields {
        pack.push_bytes(name);
    }
    pack.push_number(0);
    for entry in entries {
        let mut pairs = iter::zip(&entry.fields, &first.fields);
        let is_same = entry.fields.len() == first.fields.len()
            && pairs.all(|((name, _), (of_first, _))| name == of_first);
        pack.push_number(if is_same { SAME_FIELDS } else { 0 });
        pack.push_number(entry.id.ms.wrapping_sub(first.id.ms) as i64);
        pack.push_number(entry.id.seq.wrapping_sub(first.id.seq) as i64);
        let count = entry.fields.len() as i64;
        if !is_same {
            pack.push_number(count);
        }
        for (name, value) in &entry.fields {
            if !is_same {
                pack.push_bytes(name);
            }
            pack.push_bytes(value);
        }
        pack.push_number(if is_same { count + 3 } else { 2 * count + 4 });
    }
    pack.finish()
}
