//! Ids and entries as replies.

use ladon_engine::types::stream::{Entry, StreamId, Value};
use ladon_resp::Reply;

/// An id as a bulk string.
#[inline]
pub(super) fn id(reply: &mut Reply<'_>, id: StreamId) {
    id.with_text(|text| reply.bulk(text));
}

/// An entry: its id, and the array of its fields and values.
#[inline]
pub(super) fn entry(reply: &mut Reply<'_>, entry: Entry<'_>) {
    reply.array(2);
    content(reply, entry);
}

/// Length of the reply that [`entry`] writes.
pub(super) fn entry_bytes(entry: Entry<'_>) -> usize {
    let mut bytes = "*2\r\n".len() + entry.id.with_text(bulk_bytes);
    bytes += "*\r\n".len() + digits(2 * entry.len());
    entry.for_each(|field, value| {
        bytes += field.with_bytes(bulk_bytes) + value.with_bytes(bulk_bytes);
    });
    bytes
}

fn bulk_bytes(text: &[u8]) -> usize {
    "$\r\n\r\n".len() + digits(text.len()) + text.len()
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// An entry with the time since its last delivery and the number of deliveries before this one.
pub(super) fn delivered_entry(reply: &mut Reply<'_>, entry: Entry<'_>, idle_ms: u64, count: u64) {
    reply.array(4);
    content(reply, entry);
    reply.integer(idle_ms as i64);
    reply.integer(count as i64);
}

#[inline]
fn content(reply: &mut Reply<'_>, entry: Entry<'_>) {
    id(reply, entry.id);
    reply.array(2 * entry.len());
    entry.for_each(|field, value| {
        word(reply, field);
        word(reply, value);
    });
}

#[inline]
fn word(reply: &mut Reply<'_>, word: Value<'_>) {
    match word {
        Value::Int(int) => reply.bulk_int(int),
        Value::Bytes(bytes) => reply.bulk(bytes),
    }
}
