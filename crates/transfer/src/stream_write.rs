//! A stream of the engine, element by element.

use ladon_engine::types::stream::{Consumer, Group, Pending, Stream, StreamId};
use ladon_rdb::{
    ConsumerHead, Entry, Fault, GroupHead, Head, NodeShare, Sink, StreamCounters, StreamState,
    ValueWriter,
};
use std::mem;
use std::ops::ControlFlow::{Break, Continue};

fn id_of(id: StreamId) -> ladon_rdb::StreamId {
    ladon_rdb::StreamId { ms: id.ms, seq: id.seq }
}

/// The number of nodes precedes them, so the entries are walked once for it.
pub(crate) fn head_of(stream: &Stream) -> Result<Head, Fault> {
    if stream.groups().any(|(_, group)| group.released() != 0) {
        return Err(Fault::Unsupported(
            "no version of RDB has pending entries that their consumer released".to_owned(),
        ));
    }
    let (mut share, mut nodes) = (NodeShare::default(), 0);
    let _ = stream.walk::<()>(StreamId::MIN, StreamId::MAX, |entry| {
        let mut lengths = Vec::with_capacity(2 * entry.len());
        entry.for_each(|field, value| {
            lengths.extend([field, value].map(|word| word.with_bytes(<[u8]>::len)));
        });
        nodes += u64::from(!share.joins(lengths.into_iter()));
        Continue(())
    });
    Ok(Head::Stream(nodes))
}

pub(crate) fn write<S: Sink>(stream: &Stream, out: &mut ValueWriter<'_, S>) -> Result<(), Fault> {
    let (mut share, mut node) = (NodeShare::default(), Vec::new());
    let walked = stream.walk(StreamId::MIN, StreamId::MAX, |entry| {
        let mut fields = Vec::with_capacity(entry.len());
        entry.for_each(|field, value| fields.push((field.to_vec(), value.to_vec())));
        let lengths = fields.iter().flat_map(|(name, value)| [name.len(), value.len()]);
        if !share.joins(lengths)
            && !node.is_empty()
            && let Err(fault) = out.node(&mem::take(&mut node))
        {
            return Break(fault);
        }
        node.push(Entry { id: id_of(entry.id), fields });
        Continue(())
    });
    if let Break(fault) = walked {
        return Err(fault);
    }
    if !node.is_empty() {
        out.node(&node)?;
    }
    let first_id = id_of(stream.first_entry_id());
    let counters = StreamCounters {
        first_id,
        max_deleted_id: id_of(stream.max_deleted_id()),
        entries_added: stream.entries_added(),
    };
    let (length, last_id) = (stream.len() as u64, id_of(stream.last_id()));
    let state = StreamState { length, last_id, counters: Some(counters) };
    out.stream_state(&state, first_id, stream.group_count() as u64)?;
    stream.groups().try_for_each(|(name, group)| write_group(name, group, out))
}

fn write_group<S: Sink>(
    name: &[u8],
    group: &Group,
    out: &mut ValueWriter<'_, S>,
) -> Result<(), Fault> {
    let (name, last_id) = (name.to_vec(), id_of(group.last_id));
    let head = GroupHead { name, last_id, entries_read: group.entries_read };
    out.group(&head, group.pending() as u64)?;
    for &(id, pending) in group.pending_from(StreamId::MIN) {
        let Pending { delivered_ms, count, .. } = pending;
        out.pending(&ladon_rdb::Pending {
            id: id_of(id),
            delivered_at_ms: signed(delivered_ms),
            deliveries: count,
        })?;
    }
    out.consumers(group.consumer_count() as u64)?;
    for consumer in group.consumers() {
        out.consumer(&head_of_consumer(consumer), consumer.pending() as u64)?;
        for (id, _) in group.pending_with(consumer, StreamId::MIN) {
            out.consumer_pending(id_of(id))?;
        }
    }
    Ok(())
}

/// Whether a consumer was last given an entry at another time than it was last seen: who reads an
/// older version takes both for the same.
pub(crate) fn has_active_times(stream: &Stream) -> bool {
    let mut consumers = stream.groups().flat_map(|(_, group)| group.consumers());
    consumers.any(|consumer| consumer.active_ms != Some(consumer.seen_ms))
}

fn head_of_consumer(consumer: &Consumer) -> ConsumerHead {
    ConsumerHead {
        name: consumer.name().to_vec(),
        seen_at_ms: signed(consumer.seen_ms),
        active_at_ms: consumer.active_ms.map(signed),
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
