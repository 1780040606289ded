//! Streams as the rest of the engine sees them, and their form in a `Put`.
//!
//! ```text
//! body     := id added id count node* count group*     last id, entries added, largest removed
//! node     := id removed bytes                         see node.rs
//! group    := name id read count consumer* count pending*
//! consumer := name seen active                         times; active + 1, or 0 for never
//! pending  := id consumer time count                   the consumer's place among the above, or
//!                                                      their number if it was released
//! ```
//! Ids are two numbers, in `pending` relative to the one before. Numbers are varints.

use super::delta::{put_optional, take_optional};
use super::{Consumer, Group, Node, SharedNode, Step, Stream, StreamId, StreamLimits, Value, node};
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::Shown;
use ladon_model::varint;
use std::ops::ControlFlow::Continue;
use std::sync::Arc;

/// Streams with more bytes are saved from a snapshot.
const WHOLE_BYTES_MAX: usize = 64 << 10;

impl Collection for Stream {
    const ORDERED: bool = true;

    fn len(&self) -> usize {
        Stream::len(self)
    }

    /// A stream without entries is a value like any other.
    fn is_empty(&self) -> bool {
        false
    }

    #[inline]
    fn bytes(&self) -> usize {
        Stream::bytes(self)
    }

    fn encoding(&self) -> &'static str {
        "stream"
    }

    fn drop_effort(&self) -> usize {
        Stream::drop_effort(self)
    }

    fn duplicate(&self, _env: Env<'_>) -> Stream {
        Stream::duplicate(self)
    }

    fn freeze(&mut self) -> Option<Stream> {
        Some(Stream::duplicate(self))
    }

    /// Entries: the id, then fields and values. Then what else there is, as text and names.
    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]])) {
        let _ = self.walk::<()>(StreamId::MIN, StreamId::MAX, |entry| {
            let (id, words) = (entry.id.to_text(), entry.words());
            let mut parts: Vec<&[u8]> = vec![&id];
            parts.extend(words.iter().map(|word| &word[..]));
            visit(&parts);
            Continue(())
        });
        let (last, deleted) = (self.last_id().to_text(), self.max_deleted_id().to_text());
        visit(&[&last, self.entries_added().to_string().as_bytes(), &deleted]);
        for (name, group) in self.groups() {
            let read = group.entries_read.map_or(String::new(), |read| read.to_string());
            visit(&[name, &group.last_id.to_text(), read.as_bytes()]);
            for consumer in group.consumers() {
                let times = format!("{} {:?}", consumer.seen_ms, consumer.active_ms);
                visit(&[consumer.name(), times.as_bytes()]);
            }
            for (id, pending) in group.pending_from(StreamId::MIN) {
                let times = format!("{} {}", pending.delivered_ms, pending.count);
                let consumer = group.consumer_of(pending).map_or(&b""[..], Consumer::name);
                visit(&[&id.to_text(), consumer, times.as_bytes()]);
            }
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let inner = &*self.0;
        inner.last_id.put(out);
        varint::put(out, inner.entries_added);
        inner.max_deleted_id.put(out);
        varint::put(out, inner.nodes.len() as u64);
        inner.nodes.iter().for_each(|(id, node)| node.encode(*id, out));
        varint::put(out, inner.groups.len() as u64);
        for (name, group) in self.groups() {
            varint::put_bytes(out, name);
            encode_group(group, out);
        }
    }

    fn decode(mut body: &[u8], _env: Env<'_>) -> Option<Stream> {
        let mut stream = Stream::new();
        let input = &mut body;
        let inner = &mut *stream.0;
        inner.last_id = StreamId::take(input)?;
        inner.entries_added = varint::take(input)?;
        inner.max_deleted_id = StreamId::take(input)?;
        let mut last = StreamId::MIN;
        for _ in 0..varint::take(input)? {
            let (id, node) = Node::decode(input)?;
            if inner.len != 0 && id <= last || node.last() > inner.last_id {
                return None;
            }
            last = node.last();
            inner.len += node.count();
            inner.node_bytes += node.bytes();
            let count = node.count() as u32;
            inner.nodes.insert(id, SharedNode { count, node: Arc::new(node) });
        }
        for _ in 0..varint::take(input)? {
            let name = varint::take_bytes(input)?;
            let group = decode_group(input)?;
            stream.add_group(name, group).then_some(())?;
        }
        input.is_empty().then_some(stream)
    }

    /// Steps, one after the other.
    fn apply_op(&mut self, mut op: &[u8], env: Env<'_>) -> Option<()> {
        let limits = env.limits.of_streams();
        while !op.is_empty() {
            self.apply(&Step::take(&mut op)?, limits)?;
        }
        Some(())
    }

    fn saving(&self, piece: usize) -> Saving {
        if self.len() <= 2 * piece && Stream::bytes(self) <= WHOLE_BYTES_MAX {
            return Saving::Whole;
        }
        let snapshot = Stream::duplicate(self);
        Saving::Snapshot(Box::new(move |out| snapshot.encode(out)))
    }

    fn show_body(mut body: &[u8]) -> Option<Shown<'_>> {
        let input = &mut body;
        StreamId::take(input)?;
        varint::take(input)?;
        StreamId::take(input)?;
        let mut all = Vec::new();
        for _ in 0..varint::take(input)? {
            for entry in node::show(input)? {
                let mut parts = vec![Shown::Text(text(entry.id.to_text()))];
                entry.for_each(|field, value| {
                    parts.extend([field, value].map(show_word));
                });
                all.push(Shown::List(parts));
            }
        }
        let mut groups = Vec::new();
        for _ in 0..varint::take(input)? {
            groups.push(Shown::Bytes(varint::take_bytes(input)?));
            decode_group(input)?;
        }
        input.is_empty().then_some(())?;
        let parts = vec![("entries", Shown::List(all)), ("groups", Shown::List(groups))];
        Some(Shown::Record(parts))
    }

    fn show_op(mut op: &[u8]) -> Option<Shown<'_>> {
        let mut steps = Vec::new();
        while !op.is_empty() {
            steps.push(Step::take(&mut op)?.show()?);
        }
        match steps.len() {
            0 => None,
            1 => steps.pop(),
            _ => Some(Shown::Record(vec![("steps", Shown::List(steps))])),
        }
    }
}

fn show_word(word: Value<'_>) -> Shown<'_> {
    match word {
        Value::Int(int) => Shown::Text(int.to_string()),
        Value::Bytes(bytes) => Shown::Bytes(bytes),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

fn encode_group(group: &Group, out: &mut Vec<u8>) {
    group.last_id.put(out);
    put_optional(group.entries_read, out);
    varint::put(out, group.consumer_count() as u64);
    let mut places = Vec::new();
    for (place, consumer) in group.consumers().enumerate() {
        varint::put_bytes(out, consumer.name());
        varint::put(out, consumer.seen_ms);
        put_optional(consumer.active_ms, out);
        let number = group.number(consumer.name()).unwrap_or_default() as usize;
        places.resize(places.len().max(number + 1), 0);
        places[number] = place as u64;
    }
    varint::put(out, group.pending() as u64);
    let mut before = StreamId::MIN;
    for (id, pending) in group.pending_from(StreamId::MIN) {
        id.put_after(before, out);
        before = *id;
        let place = pending.consumer().map(|number| places[number as usize]);
        varint::put(out, place.unwrap_or(group.consumer_count() as u64));
        varint::put(out, pending.delivered_ms);
        varint::put(out, pending.count);
    }
}

fn decode_group(input: &mut &[u8]) -> Option<Group> {
    let mut group = Group::new(StreamId::take(input)?, take_optional(input)?);
    let consumers = varint::take(input)?;
    for place in 0..consumers {
        let (name, seen_ms) = (varint::take_bytes(input)?, varint::take(input)?);
        let number = group.see(name, seen_ms);
        // A name that occurs twice has the number of the first.
        if u64::from(number) != place {
            return None;
        }
        group.set_active(number, take_optional(input)?);
    }
    let mut before = StreamId::MIN;
    for index in 0..varint::take(input)? {
        let id = StreamId::take_after(before, input)?;
        if index != 0 && id <= before {
            return None;
        }
        before = id;
        let consumer = varint::take(input)?;
        let (delivered_ms, count) = (varint::take(input)?, varint::take(input)?);
        if consumer == consumers {
            (delivered_ms == 0).then(|| group.release(id, count))?;
        } else {
            group.assign(id, u32::try_from(consumer).ok()?, delivered_ms, count)?;
        }
    }
    Some(group)
}

impl StreamLimits {
    /// Sizes of a node: `stream-node-max-bytes` and `stream-node-max-entries`.
    pub fn new(node_bytes: usize, node_entries: usize) -> StreamLimits {
        StreamLimits { node_bytes, node_entries }
    }
}
