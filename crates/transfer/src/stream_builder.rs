//! A stream of the engine out of elements: entries, what it knows beside them, groups.

use crate::builder::Refused;
use ladon_engine::Env;
use ladon_engine::types::stream::{ENTRY_BYTES_MAX, GroupRestore, Stream, StreamId};
use ladon_rdb::{ConsumerHead, Element, Encoding, Entry, GroupHead, StreamState};
use std::mem;

/// A stream that is being built.
pub(crate) struct StreamBuilder {
    encoding: Encoding,
    limits: ladon_engine::types::stream::StreamLimits,
    stream: Stream,
    /// The present group and its name.
    group: Option<(Vec<u8>, GroupRestore)>,
    /// The number of its present consumer.
    consumer: u32,
}

pub(crate) fn id_of(id: ladon_rdb::StreamId) -> StreamId {
    StreamId::new(id.ms, id.seq)
}

/// A time of a file, in milliseconds since 1970: none is before that.
fn time(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

impl StreamBuilder {
    pub(crate) fn new(encoding: Encoding, env: Env<'_>) -> StreamBuilder {
        let (stream, limits) = (Stream::new(), env.limits.of_streams());
        StreamBuilder { encoding, limits, stream, group: None, consumer: 0 }
    }

    pub(crate) fn push(&mut self, element: Element) -> Result<(), Refused> {
        const ORDER: &str = "the reader's elements are in the file's order";
        match element {
            Element::Entry(entry) => self.entry(&entry),
            Element::StreamState(state) => self.state(&state),
            Element::Group(head) => self.begin_group(head),
            Element::GroupPending(pending) => {
                let (_, group) = self.group.as_mut().expect(ORDER);
                let (id, at) = (id_of(pending.id), time(pending.delivered_at_ms));
                once(group.pending(id, at, pending.deliveries), "a pending entry of the group")
            }
            Element::Consumer(head) => self.begin_consumer(&head),
            Element::ConsumerPending(id) => {
                let (_, group) = self.group.as_mut().expect(ORDER);
                if group.claim(id_of(id), self.consumer) {
                    return Ok(());
                }
                Err(Refused::Contradiction(
                    "a pending entry of a consumer is not pending in the group, or is another \
                     consumer's",
                ))
            }
            other => panic!("{other:?} in a stream"),
        }
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), Refused> {
        let mut words: Vec<&[u8]> = Vec::with_capacity(2 * entry.fields.len());
        entry.fields.iter().for_each(|(name, value)| words.extend([&name[..], &value[..]]));
        if words.is_empty() {
            return Err(Refused::Contradiction("an entry of the stream has no fields"));
        }
        if words.iter().map(|word| word.len()).sum::<usize>() > ENTRY_BYTES_MAX {
            return Err(Refused::Contradiction("an entry of the stream has more than 1 GiB"));
        }
        let id = id_of(entry.id);
        if id <= self.stream.last_id() {
            return Err(Refused::Contradiction("the ids of a stream's entries do not grow"));
        }
        self.stream.add(self.limits, id, &words);
        Ok(())
    }

    fn state(&mut self, state: &StreamState) -> Result<(), Refused> {
        let last_id = id_of(state.last_id);
        if self.stream.last_entry_id().is_some_and(|entry| entry > last_id) {
            return Err(Refused::Contradiction("a stream's last id is below an entry's"));
        }
        if state.length != self.stream.len() as u64 {
            return Err(Refused::Contradiction("a stream has another length than it says"));
        }
        let (added, deleted) = match state.counters {
            Some(counters) => (counters.entries_added, id_of(counters.max_deleted_id)),
            // Before Redis 7.0 nobody counted; Redis takes these, too.
            None => (state.length, StreamId::MIN),
        };
        self.stream.set_id(last_id, added, deleted);
        Ok(())
    }

    fn begin_group(&mut self, head: GroupHead) -> Result<(), Refused> {
        self.end_group()?;
        let last_id = id_of(head.last_id);
        let read = match self.encoding {
            Encoding::Stream1 => self.stream.read_after(None, last_id, last_id),
            _ => head.entries_read,
        };
        self.group = Some((head.name, GroupRestore::new(last_id, read)));
        Ok(())
    }

    fn begin_consumer(&mut self, head: &ConsumerHead) -> Result<(), Refused> {
        let Some((_, group)) = &mut self.group else { panic!("a consumer without a group") };
        let seen = time(head.seen_at_ms);
        let active = match self.encoding {
            Encoding::Stream3 => head.active_at_ms.map(time),
            // The best estimate there is; Redis takes it, too.
            _ => Some(seen),
        };
        let number = group.consumer(&head.name, seen, active);
        self.consumer = number.ok_or(Refused::Twice("a consumer of the group"))?;
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), Refused> {
        let Some((name, group)) = self.group.take() else { return Ok(()) };
        if self.stream.group(&name).is_some() {
            return Err(Refused::Twice("a group of the stream"));
        }
        if !self.stream.restore_group(&name, group) {
            return Err(Refused::Contradiction("a pending entry of a group is no consumer's"));
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Stream, Refused> {
        self.end_group()?;
        Ok(mem::take(&mut self.stream))
    }
}

fn once(is_new: bool, what: &'static str) -> Result<(), Refused> {
    if is_new { Ok(()) } else { Err(Refused::Twice(what)) }
}
