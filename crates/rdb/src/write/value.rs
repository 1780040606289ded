//! A value's bytes, in encodings that servers of the version read.
//!
//! Collections are written plain, count and elements: every version reads that, and a server packs
//! them as its own settings say when it loads them.

use std::iter;

use super::{Sink, Version};
use crate::packed::Pack;
use crate::stream::ENTRIES_READ_UNKNOWN;
use crate::text::put_length;
use crate::{
    Encoding, Entry, Fault, Field, Group, Pending, Stream, StreamCounters, StreamId, Value,
};

/// As a Redis server does by default (`stream-node-max-bytes`, `stream-node-max-entries`).
const NODE_BYTES: usize = 4096;
const NODE_ENTRIES: usize = 100;

/// A longer string could make a listpack longer than its head can say.
const PACKED_STRING_BYTES_MAX: usize = 1 << 30;

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

/// The encoding of a value, if servers of `version` know it.
fn encoding_of(value: &Value, version: Version) -> Result<Encoding, Fault> {
    Ok(match value {
        Value::String(_) => Encoding::String,
        Value::List(_) => Encoding::List,
        Value::Set(_) => Encoding::Set,
        Value::SortedSet(_) => Encoding::SortedSet,
        Value::Hash(fields) if fields.iter().all(|field| field.expires_at_ms.is_none()) => {
            Encoding::Hash
        }
        Value::Hash(_) => match version {
            Version::Redis12 => Encoding::HashMetadata,
            Version::Valkey80 => Encoding::HashValkey,
            Version::Redis9 | Version::Redis10 | Version::Redis11 => {
                return Err(Fault::Unsupported(format!(
                    "RDB version {} has no fields that expire",
                    version.number()
                )));
            }
        },
        Value::Stream(_) => match version {
            Version::Redis9 => Encoding::Stream1,
            Version::Redis10 => Encoding::Stream2,
            Version::Redis11 | Version::Redis12 | Version::Valkey80 => Encoding::Stream3,
        },
    })
}

/// Whether [`put_value`] would write it.
pub(super) fn check(value: &Value, version: Version) -> Result<(), Fault> {
    encoding_of(value, version)?;
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
pub(crate) fn put_value(
    sink: &mut impl Sink,
    key: Option<&[u8]>,
    value: &Value,
    version: Version,
) -> Result<(), Fault> {
    check(value, version)?;
    let encoding = encoding_of(value, version)?;
    sink.out().push(encoding.byte());
    if let Some(key) = key {
        put_string(sink.out(), key);
    }
    match value {
        Value::String(string) => put_string(sink.out(), string),
        Value::List(elements) | Value::Set(elements) => {
            put_length(sink.out(), elements.len() as u64);
            for element in elements {
                put_string(sink.out(), element);
                sink.element_done()?;
            }
        }
        Value::SortedSet(members) => {
            put_length(sink.out(), members.len() as u64);
            for (member, score) in members {
                put_string(sink.out(), member);
                sink.out().extend_from_slice(&score.to_le_bytes());
                sink.element_done()?;
            }
        }
        Value::Hash(fields) => put_hash(sink, fields, encoding)?,
        Value::Stream(stream) => put_stream(sink, stream, encoding)?,
    }
    sink.element_done()
}

fn put_hash(sink: &mut impl Sink, fields: &[Field], encoding: Encoding) -> Result<(), Fault> {
    let least = fields.iter().filter_map(|field| field.expires_at_ms).min().unwrap_or(0);
    if encoding == Encoding::HashMetadata {
        sink.out().extend_from_slice(&least.to_le_bytes());
    }
    put_length(sink.out(), fields.len() as u64);
    for field in fields {
        let out = sink.out();
        if encoding == Encoding::HashMetadata {
            put_length(out, field.expires_at_ms.map_or(0, |at| at - least + 1));
        }
        put_string(out, &field.name);
        put_string(out, &field.value);
        if encoding == Encoding::HashValkey {
            let at = field.expires_at_ms.map_or(-1, |at| at as i64);
            out.extend_from_slice(&at.to_le_bytes());
        }
        sink.element_done()?;
    }
    Ok(())
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

fn put_stream(sink: &mut impl Sink, stream: &Stream, encoding: Encoding) -> Result<(), Fault> {
    // The count of nodes stands before them: how entries share them is known without the bytes.
    let nodes = nodes_of(&stream.entries);
    put_length(sink.out(), nodes.len() as u64);
    for entries in nodes {
        put_raw_string(sink.out(), &raw_id(entries[0].id));
        put_raw_string(sink.out(), &pack_node(entries));
        sink.element_done()?;
    }
    let (out, state) = (sink.out(), &stream.state);
    put_length(out, state.length);
    put_id(out, state.last_id);
    if encoding != Encoding::Stream1 {
        let counters = state.counters.unwrap_or_else(|| StreamCounters {
            first_id: stream.entries.first().map(|entry| entry.id).unwrap_or_default(),
            max_deleted_id: StreamId::default(),
            entries_added: state.length,
        });
        put_id(out, counters.first_id);
        put_id(out, counters.max_deleted_id);
        put_length(out, counters.entries_added);
    }
    put_length(out, stream.groups.len() as u64);
    for group in &stream.groups {
        put_group(sink, group, encoding)?;
    }
    Ok(())
}

/// Entries that share a node each.
fn nodes_of(entries: &[Entry]) -> Vec<&[Entry]> {
    /// What an entry and a string need beside their bytes, at most.
    const ENTRY_BYTES: usize = 40;
    const STRING_BYTES: usize = 10;
    let bytes_of = |entry: &Entry| {
        let strings = entry.fields.iter().flat_map(|(name, value)| [name.len(), value.len()]);
        ENTRY_BYTES + strings.map(|bytes| bytes + STRING_BYTES).sum::<usize>()
    };
    let mut rest = entries;
    iter::from_fn(|| {
        let mut bytes = 0;
        let fits = rest.iter().take(NODE_ENTRIES).take_while(|entry| {
            bytes += bytes_of(entry);
            bytes <= NODE_BYTES
        });
        let count = fits.count().max(1).min(rest.len());
        let (node, after) = rest.split_at(count);
        rest = after;
        (!node.is_empty()).then_some(node)
    })
    .collect()
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

fn put_group(sink: &mut impl Sink, group: &Group, encoding: Encoding) -> Result<(), Fault> {
    let out = sink.out();
    put_string(out, &group.head.name);
    put_id(out, group.head.last_id);
    if encoding != Encoding::Stream1 {
        put_length(out, group.head.entries_read.unwrap_or(ENTRIES_READ_UNKNOWN));
    }
    put_length(out, group.pending.len() as u64);
    for &Pending { id, delivered_at_ms, deliveries } in &group.pending {
        let out = sink.out();
        out.extend_from_slice(&raw_id(id));
        out.extend_from_slice(&delivered_at_ms.to_le_bytes());
        put_length(out, deliveries);
        sink.element_done()?;
    }
    put_length(sink.out(), group.consumers.len() as u64);
    for consumer in &group.consumers {
        let out = sink.out();
        put_string(out, &consumer.head.name);
        out.extend_from_slice(&consumer.head.seen_at_ms.to_le_bytes());
        if encoding == Encoding::Stream3 {
            let active = consumer.head.active_at_ms.unwrap_or(-1);
            out.extend_from_slice(&active.to_le_bytes());
        }
        put_length(out, consumer.pending.len() as u64);
        for &id in &consumer.pending {
            sink.out().extend_from_slice(&raw_id(id));
            sink.element_done()?;
        }
    }
    sink.element_done()
}
