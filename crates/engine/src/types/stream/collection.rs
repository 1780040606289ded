//! Streams as the rest of the engine sees them, and their form in a `Put`.
//!
//! ```text
//! body     := id added id count node* count group* idempotence?
//!                                                      last id, entries added, largest removed
//! node     := id removed bytes                         see node.rs
//! group    := name id read count consumer* count pending*
//! consumer := name seen active                         times; active + 1, or 0 for never
//! pending  := id consumer time count                   the consumer's place among the above, or
//!                                                      their number if it was released
//! idempotence := seconds ids added duplicates count producer*
//!                                                      how much is remembered; absent if it was never
//!                                                      used
//! producer := name count sent*                         in no particular order
//! sent     := id idempotent-id
//! ```
//! Ids are two numbers, in `pending` and `sent` relative to the one before. Numbers are varints.

use super::delta::{put_optional, take_optional};
use super::{
    Consumer, Group, Idempotence, Memory, Node, SharedNode, Step, Stream, StreamId, StreamLimits,
    Value, node,
};
use crate::saved_bytes::{PieceWriter, Steps};
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::DumpValue;
use ladon_record::{KeyHasher, ValueKind, varint};
use std::ops::ControlFlow::Continue;
use std::sync::Arc;

/// Streams with more bytes are saved from a snapshot.
const WHOLE_BYTES_MAX: usize = 64 << 10;

impl Collection for Stream {
    const KIND: ValueKind = ValueKind::Stream;
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
        if let Some(idempotence) = self.idempotence() {
            let counts = (idempotence.memory(), idempotence.added(), idempotence.duplicates());
            visit(&[format!("{counts:?}").as_bytes()]);
            for (producer, id, entry) in idempotence.iter() {
                visit(&[producer, id, &entry.to_text()]);
            }
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encode(self, out);
    }

    fn decode(mut body: &[u8], env: Env<'_>) -> Option<Stream> {
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
        if !input.is_empty() {
            let idempotence = decode_idempotence(input, env.hasher)?;
            if idempotence.last().is_some_and(|last| last > stream.last_id()) {
                return None;
            }
            stream.0.idempotence = Some(Arc::new(idempotence));
        }
        input.is_empty().then_some(stream)
    }

    /// Steps, one after the other.
    fn apply_op(&mut self, mut op: &[u8], env: Env<'_>) -> Option<()> {
        while !op.is_empty() {
            self.apply(&Step::take(&mut op)?, env)?;
        }
        Some(())
    }

    /// When the oldest of what producers have sent is to be forgotten.
    #[inline]
    fn next_expiry(&self) -> u64 {
        self.idempotence().map_or(0, Idempotence::next_expiry)
    }

    fn has_due(&self, now: u64, count: usize) -> bool {
        self.idempotence().is_some_and(|idempotence| idempotence.due(now, count) == count)
    }

    fn expire_due(&mut self, now: u64, max: usize, env: Env<'_>, op: &mut Vec<u8>) -> usize {
        let count = self.idempotence().map_or(0, |idempotence| idempotence.due(now, max));
        if count != 0 {
            let step = Step::Forget { count };
            self.apply(&step, env).expect("so many are remembered");
            step.encode(op);
        }
        count
    }

    fn saving(&self, piece: usize) -> Saving {
        if self.len() <= 2 * piece && Stream::bytes(self) <= WHOLE_BYTES_MAX {
            return Saving::Whole;
        }
        let snapshot = Stream::duplicate(self);
        Saving::Snapshot(Box::new(move |take| {
            let mut pieces = PieceWriter::new(take);
            encode(&snapshot, &mut pieces);
            pieces.finish();
        }))
    }

    fn show_body(mut body: &[u8]) -> Option<DumpValue<'_>> {
        let input = &mut body;
        StreamId::take(input)?;
        varint::take(input)?;
        StreamId::take(input)?;
        let mut all = Vec::new();
        for _ in 0..varint::take(input)? {
            for entry in node::show(input)? {
                let mut parts = vec![DumpValue::Text(text(entry.id.to_text()))];
                entry.for_each(|field, value| {
                    parts.extend([field, value].map(show_word));
                });
                all.push(DumpValue::List(parts));
            }
        }
        let mut groups = Vec::new();
        for _ in 0..varint::take(input)? {
            groups.push(DumpValue::Bytes(varint::take_bytes(input)?));
            decode_group(input)?;
        }
        let mut parts =
            vec![("entries", DumpValue::List(all)), ("groups", DumpValue::List(groups))];
        if !input.is_empty() {
            parts.push(("sent", DumpValue::List(show_idempotence(input)?)));
        }
        input.is_empty().then_some(())?;
        Some(DumpValue::Record(parts))
    }

    fn show_op(mut op: &[u8]) -> Option<DumpValue<'_>> {
        let mut steps = Vec::new();
        while !op.is_empty() {
            steps.push(Step::take(&mut op)?.show()?);
        }
        match steps.len() {
            0 => None,
            1 => steps.pop(),
            _ => Some(DumpValue::Record(vec![("steps", DumpValue::List(steps))])),
        }
    }
}

fn show_word(word: Value<'_>) -> DumpValue<'_> {
    match word {
        Value::Int(int) => DumpValue::Text(int.to_string()),
        Value::Bytes(bytes) => DumpValue::Bytes(bytes),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

fn encode(stream: &Stream, out: &mut impl Steps) {
    let inner = &*stream.0;
    out.step(|out| {
        inner.last_id.put(out);
        varint::put(out, inner.entries_added);
        inner.max_deleted_id.put(out);
        varint::put(out, inner.nodes.len() as u64);
    });
    inner.nodes.iter().for_each(|(id, node)| out.step(|out| node.encode(*id, out)));
    out.step(|out| varint::put(out, inner.groups.len() as u64));
    for (name, group) in stream.groups() {
        out.bytes(name);
        encode_group(group, out);
    }
    if let Some(idempotence) = stream.idempotence() {
        encode_idempotence(idempotence, out);
    }
}

fn encode_group(group: &Group, out: &mut impl Steps) {
    out.step(|out| {
        group.last_id.put(out);
        put_optional(group.entries_read, out);
        varint::put(out, group.consumer_count() as u64);
    });
    let mut places = Vec::new();
    for (place, consumer) in group.consumers().enumerate() {
        out.bytes(consumer.name());
        out.step(|out| {
            varint::put(out, consumer.seen_ms);
            put_optional(consumer.active_ms, out);
        });
        let number = group.number(consumer.name()).unwrap_or_default() as usize;
        places.resize(places.len().max(number + 1), 0);
        places[number] = place as u64;
    }
    out.step(|out| varint::put(out, group.pending() as u64));
    let mut before = StreamId::MIN;
    for (id, pending) in group.pending_from(StreamId::MIN) {
        let place = pending.consumer().map(|number| places[number as usize]);
        out.step(|out| {
            id.put_after(before, out);
            varint::put(out, place.unwrap_or(group.consumer_count() as u64));
            varint::put(out, pending.delivered_ms);
            varint::put(out, pending.count);
        });
        before = *id;
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

fn encode_idempotence(idempotence: &Idempotence, out: &mut impl Steps) {
    let memory = idempotence.memory();
    out.step(|out| {
        for number in [memory.duration_s, memory.ids_max as u64] {
            varint::put(out, number);
        }
        varint::put(out, idempotence.added);
        varint::put(out, idempotence.duplicates);
        varint::put(out, idempotence.producers() as u64);
    });
    for (name, sent) in idempotence.by_producer() {
        out.bytes(name);
        out.step(|out| varint::put(out, sent.len() as u64));
        let mut before = StreamId::MIN;
        for (entry, id) in sent {
            out.step(|out| entry.put_after(before, out));
            before = entry;
            out.bytes(id);
        }
    }
}

/// The memory, the counters, and what was sent, in parts.
struct Sendings<'a> {
    memory: Memory,
    added: u64,
    duplicates: u64,
    /// Producer, idempotent id, entry; in the order of the entries.
    sent: Vec<(&'a [u8], &'a [u8], StreamId)>,
}

impl<'a> Sendings<'a> {
    fn take(input: &mut &'a [u8]) -> Option<Sendings<'a>> {
        let (duration_s, ids_max) = (varint::take(input)?, varint::take(input)?);
        let memory = Memory { duration_s, ids_max: usize::try_from(ids_max).ok()? };
        let (added, duplicates) = (varint::take(input)?, varint::take(input)?);
        let mut sent = Vec::new();
        for _ in 0..varint::take(input)? {
            let producer = varint::take_bytes(input)?;
            let mut before = StreamId::MIN;
            for _ in 0..varint::take(input)? {
                before = StreamId::take_after(before, input)?;
                sent.push((producer, varint::take_bytes(input)?, before));
            }
        }
        sent.sort_unstable_by_key(|sent| sent.2);
        Some(Sendings { memory, added, duplicates, sent })
    }
}

fn decode_idempotence(input: &mut &[u8], hasher: &KeyHasher) -> Option<Idempotence> {
    let Sendings { memory, added, duplicates, sent } = Sendings::take(input)?;
    let mut idempotence = Idempotence::new(memory)?;
    (idempotence.added, idempotence.duplicates) = (added, duplicates);
    for (producer, id, entry) in sent {
        idempotence.remember(hasher, producer, id, entry)?;
    }
    Some(idempotence)
}

fn show_idempotence<'a>(input: &mut &'a [u8]) -> Option<Vec<DumpValue<'a>>> {
    let sent = Sendings::take(input)?.sent.into_iter().map(|(producer, id, entry)| {
        DumpValue::List(vec![
            DumpValue::Text(text(entry.to_text())),
            DumpValue::Bytes(producer),
            DumpValue::Bytes(id),
        ])
    });
    Some(sent.collect())
}

impl StreamLimits {
    /// Sizes of a node: `stream-node-max-bytes` and `stream-node-max-entries`.
    pub fn new(node_bytes: usize, node_entries: usize) -> StreamLimits {
        StreamLimits { node_bytes, node_entries }
    }
}
