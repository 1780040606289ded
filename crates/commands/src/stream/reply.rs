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
