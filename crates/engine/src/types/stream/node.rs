//! A node: consecutive entries, packed.
//!
//! The fields of the entry that began the node are at its beginning; an entry with the same fields
//! in the same order has only its values.
//!
//! ```text
//! node  := varint (number of fields), field*, entry*
//! entry := varint 1, id, value*                                 with the node's fields
//!        | varint (number of fields * 2), id, (field value)*    with fields of its own
//! id    := relative to the node's: see `StreamId::put_after`
//! ```
//! Fields and values are encoded as `value.rs` says.

use super::id::StreamId;
use super::value::Value;
use crate::types::buffer::Buffer;
use ladon_record::varint;
use smallvec::SmallVec;

/// An entry with the node's fields.
const SAME_FIELDS: u64 = 1;

/// How far apart the entries are at which a search near a node's end may begin. Each costs a search
/// some nanoseconds; a node of a hundred would cost it half a microsecond.
const TAIL_ENTRIES: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The last entry's id.
    last: StreamId,
    /// Number of entries, at least 1.
    count: u32,
    /// Number of entries that were removed from it. Redis counts them towards a node's maximum.
    removed: u32,
    /// Where the entries begin.
    entries_at: u32,
    /// Where one of the last entries begins, if one is known, else as `entries_at`.
    tail_at: u32,
    bytes: Buffer,
}

/// An entry of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    /// Number of its fields.
    count: usize,
    /// The fields where they are the node's.
    fields: Option<&'a [u8]>,
    /// The values, or fields and values.
    body: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Number of its fields.
    #[allow(clippy::len_without_is_empty, reason = "no entry is without fields")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Calls `visit` with each field and its value.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(Value<'a>, Value<'a>)) {
        let mut body = self.body;
        let mut fields = self.fields;
        for _ in 0..self.count {
            let field = match &mut fields {
                Some(fields) => Value::take(fields),
                None => Value::take(&mut body),
            };
            // A node was checked when it was read.
            let (Some(field), Some(value)) = (field, Value::take(&mut body)) else { return };
            visit(field, value);
        }
    }

    /// Fields and values in turn.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let mut words = Vec::with_capacity(2 * self.count);
        self.for_each(|field, value| words.extend([field.to_vec(), value.to_vec()]));
        words
    }
}

/// Reads entries one after the other.
#[derive(Clone)]
struct Entries<'a> {
    node_id: StreamId,
    field_count: usize,
    fields: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    /// The next entry; `None` if it is malformed, or there is none.
    // Inlined everywhere: looking for an entry takes all that precede it in its node.
    #[inline(always)]
    fn take(&mut self) -> Option<Entry<'a>> {
        let head = varint::take(&mut self.rest)?;
        let id = StreamId::take_after(self.node_id, &mut self.rest)?;
        let (count, skipped, fields) = match head {
            SAME_FIELDS => (self.field_count, self.field_count, Some(self.fields)),
            _ if head & 1 == 0 && head != 0 => {
                let count = usize::try_from(head >> 1).ok()?;
                (count, count.checked_mul(2)?, None)
            }
            _ => return None,
        };
        let body = self.rest;
        for _ in 0..skipped {
            Value::skip(&mut self.rest)?;
        }
        Some(Entry { id, count, fields, body: &body[..body.len() - self.rest.len()] })
    }
}

impl Node {
    /// A node that is about to get its first entry, which has these fields; `room` bytes are
    /// expected.
    pub(super) fn new(words: &[&[u8]], room: usize) -> Node {
        let mut bytes = Buffer::with_room(room);
        varint::put(&mut bytes, words.len() as u64 / 2);
        words.iter().step_by(2).for_each(|field| Value::put(field, &mut bytes));
        let entries_at = bytes.len() as u32;
        Node { last: StreamId::MIN, count: 0, removed: 0, entries_at, tail_at: entries_at, bytes }
    }

    #[inline]
    pub(super) fn last(&self) -> StreamId {
        self.last
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Number of entries that were ever in it.
    #[inline]
    pub(super) fn count_ever(&self) -> usize {
        self.count as usize + self.removed as usize
    }

    /// Bytes of its content.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The address of its content's end.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.bytes.as_ptr_range().end.addr()
    }

    /// Bytes of memory, itself included, in an `Arc`.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        2 * size_of::<usize>() + size_of::<Node>() + self.bytes.capacity()
    }

    fn entries(&self, node_id: StreamId) -> Entries<'_> {
        let (mut fields, rest) = self.bytes.split_at(self.entries_at as usize);
        let field_count = varint::take(&mut fields).unwrap_or(0) as usize;
        Entries { node_id, field_count, fields, rest }
    }

    /// Its entries in order.
    pub(super) fn iter(&self, node_id: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let mut entries = self.entries(node_id);
        std::iter::from_fn(move || entries.take())
    }

    /// Its entries in order, from one on that is at `first` or before, or is the first.
    pub(super) fn iter_from(
        &self,
        node_id: StreamId,
        first: StreamId,
    ) -> impl Iterator<Item = Entry<'_>> {
        let mut entries = self.entries(node_id);
        let tail = Entries { rest: &self.bytes[self.tail_at as usize..], ..entries };
        if tail.clone().take().is_some_and(|entry| entry.id <= first) {
            entries = tail;
        }
        std::iter::from_fn(move || entries.take())
    }

    /// The entry with this id.
    pub(super) fn get(&self, node_id: StreamId, id: StreamId) -> Option<Entry<'_>> {
        let entry = self.iter_from(node_id, id).find(|entry| entry.id >= id);
        entry.filter(|entry| entry.id == id)
    }

    /// Its entries from the last to the first.
    pub(super) fn iter_reversed(&self, node_id: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let mut entries = self.entries(node_id);
        let all = entries.rest;
        let mut begins = SmallVec::<[u32; 128]>::new();
        loop {
            let begin = (all.len() - entries.rest.len()) as u32;
            if entries.take().is_none() {
                break;
            }
            begins.push(begin);
        }
        begins.into_iter().rev().map_while(move |begin| {
            entries.rest = &all[begin as usize..];
            entries.take()
        })
    }

    /// Whether an entry with these words has the node's fields.
    #[inline]
    fn has_fields_of(&self, words: &[&[u8]]) -> bool {
        let mut rest = &self.bytes[..self.entries_at as usize];
        varint::take(&mut rest) == Some(words.len() as u64 / 2)
            && words.iter().step_by(2).all(|word| {
                Value::take(&mut rest).is_some_and(|field| field.with_bytes(|field| field == *word))
            })
    }

    /// Appends an entry, whose id is larger than the others.
    #[inline]
    pub(super) fn push(&mut self, node_id: StreamId, id: StreamId, words: &[&[u8]]) {
        if self.count_ever().is_multiple_of(TAIL_ENTRIES) {
            self.tail_at = self.bytes.len() as u32;
        }
        let same = self.count_ever() == 0 || self.has_fields_of(words);
        varint::put(&mut self.bytes, if same { SAME_FIELDS } else { words.len() as u64 });
        id.put_after(node_id, &mut self.bytes);
        let from = usize::from(same);
        for word in words[from..].iter().step_by(1 + from) {
            Value::put(word, &mut self.bytes);
        }
        self.last = id;
        self.count += 1;
    }

    /// Whether it has an entry with this id.
    pub(super) fn contains(&self, node_id: StreamId, id: StreamId) -> bool {
        id <= self.last && self.get(node_id, id).is_some()
    }

    /// Removes an entry; returns whether it was there.
    pub(super) fn remove(&mut self, node_id: StreamId, id: StreamId) -> bool {
        if id > self.last {
            return false;
        }
        let mut entries = self.entries(node_id);
        let mut before = StreamId::MIN;
        loop {
            let begin = self.bytes.len() - entries.rest.len();
            let Some(entry) = entries.take() else { return false };
            if entry.id < id {
                before = entry.id;
                continue;
            }
            if entry.id > id {
                return false;
            }
            let end = self.bytes.len() - entries.rest.len();
            self.bytes.remove(begin..end);
            break;
        }
        if id == self.last {
            self.last = before;
        }
        self.tail_at = self.entries_at;
        self.count -= 1;
        self.removed += 1;
        true
    }

    /// Number of entries before this id.
    pub(super) fn count_before(&self, node_id: StreamId, id: StreamId) -> usize {
        self.iter(node_id).take_while(|entry| entry.id < id).count()
    }

    /// Removes the first `count` entries, which are not all.
    pub(super) fn remove_first(&mut self, node_id: StreamId, count: usize) {
        debug_assert!(count < self.count());
        let mut entries = self.entries(node_id);
        for _ in 0..count {
            entries.take();
        }
        let (begin, end) = (self.entries_at as usize, self.bytes.len() - entries.rest.len());
        self.bytes.remove(begin..end);
        self.tail_at = self.entries_at;
        self.count -= count as u32;
        self.removed += count as u32;
    }

    /// Frees slack memory: nothing more will be appended.
    pub(super) fn seal(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Appends the encoding.
    pub(super) fn encode(&self, node_id: StreamId, out: &mut Vec<u8>) {
        node_id.put(out);
        varint::put(out, u64::from(self.removed));
        varint::put_bytes(out, &self.bytes);
    }

    /// Reads what `encode` wrote: the node and its id; `None` if it is malformed.
    pub(super) fn decode(input: &mut &[u8]) -> Option<(StreamId, Node)> {
        let node_id = StreamId::take(input)?;
        let removed = u32::try_from(varint::take(input)?).ok()?;
        let bytes = varint::take_bytes(input)?;
        let entries_at = u32::try_from(fields_end(bytes)?).ok()?;
        let bytes = Buffer::of(bytes);
        let mut node =
            Node { last: node_id, count: 0, removed, entries_at, tail_at: entries_at, bytes };
        let (mut last, mut count) = (None, 0u32);
        let mut entries = node.entries(node_id);
        while !entries.rest.is_empty() {
            let entry = entries.take()?;
            if last.is_some_and(|last| entry.id <= last) || entry.id.is_zero() {
                return None;
            }
            last = Some(entry.id);
            count = count.checked_add(1)?;
        }
        count.checked_add(removed)?;
        node.count = count;
        node.last = last?;
        Some((node_id, node))
    }
}

/// Where the entries of an encoded node begin; `None` if its fields are malformed.
fn fields_end(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let count = varint::take(&mut rest)?;
    if count == 0 {
        return None;
    }
    for _ in 0..count {
        Value::skip(&mut rest)?;
    }
    Some(bytes.len() - rest.len())
}

/// As `Node::decode`, without a copy: the entries; `None` if it is malformed.
pub(super) fn show<'a>(input: &mut &'a [u8]) -> Option<Vec<Entry<'a>>> {
    let node_id = StreamId::take(input)?;
    varint::take(input)?;
    let bytes = varint::take_bytes(input)?;
    let (mut fields, rest) = bytes.split_at(fields_end(bytes)?);
    let field_count = usize::try_from(varint::take(&mut fields)?).ok()?;
    let mut entries = Entries { node_id, field_count, fields, rest };
    let mut found = Vec::new();
    while !entries.rest.is_empty() {
        found.push(entries.take()?);
    }
    Some(found)
}
