//! Steps in readable form, for tools.

use super::{Step, StreamId};
use crate::types::dump_value::DumpValue;

/// What a step shows: labels and their content.
type Parts<'a> = Vec<(&'static str, DumpValue<'a>)>;

impl<'a> Step<'a> {
    /// The step as a record whose label is what was done; `None` if a number is too large.
    pub(super) fn show(self) -> Option<DumpValue<'a>> {
        let (verb, parts) = match self {
            Step::Add { id, words } => {
                let words = words.into_iter().map(DumpValue::Bytes).collect();
                ("add", vec![("id", show_id(id)), ("words", DumpValue::List(words))])
            }
            Step::Remove { ids } => ("remove", vec![("ids", show_ids(&ids))]),
            Step::Trim { count } => ("trim", vec![("count", show_number(count as u64)?)]),
            Step::SetId { last, added, deleted } => {
                let parts = vec![("last", show_id(last)), ("added", show_number(added)?)];
                ("set-id", with(parts, "deleted", show_id(deleted)))
            }
            Step::CreateGroup { group, last, read } => {
                ("create-group", show_progress(show_group(group), last, read)?)
            }
            Step::SetGroup { group, last, read } => {
                ("set-group", show_progress(show_group(group), last, read)?)
            }
            Step::RemoveGroup { group } => ("remove-group", show_group(group)),
            Step::See { group, consumer, at_ms } => ("see", show_member(group, consumer, at_ms)?),
            Step::RemoveConsumer { group, consumer } => {
                ("remove-consumer", with(show_group(group), "consumer", DumpValue::Bytes(consumer)))
            }
            Step::Deliver { group, consumer, at_ms, last, read } => {
                ("deliver", show_progress(show_member(group, consumer, at_ms)?, last, read)?)
            }
            Step::Redeliver { group, consumer, at_ms, first, count } => {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                let parts = with(show_member(group, consumer, at_ms)?, "first", show_id(first));
                ("redeliver", with(parts, "count", DumpValue::Int(count)))
            }
            Step::Acknowledge { group, ids } => {
                ("acknowledge", with(show_group(group), "ids", show_ids(&ids)))
            }
            Step::Claim { group, consumer, at_ms, claimed } => {
                let ids: Vec<StreamId> = claimed.iter().map(|claimed| claimed.id).collect();
                ("claim", with(show_member(group, consumer, at_ms)?, "ids", show_ids(&ids)))
            }
            Step::Release { group, released } => {
                let ids: Vec<StreamId> = released.iter().map(|(id, _)| *id).collect();
                ("release", with(show_group(group), "ids", show_ids(&ids)))
            }
            Step::SetMemory(memory) => {
                let parts = vec![("duration_s", show_number(memory.duration_s)?)];
                ("set-memory", with(parts, "ids_max", show_number(memory.ids_max as u64)?))
            }
            Step::Remember { producer, id } => {
                let parts =
                    vec![("producer", DumpValue::Bytes(producer)), ("id", DumpValue::Bytes(id))];
                ("remember", parts)
            }
            Step::Duplicate => ("duplicate", Vec::new()),
            Step::Forget { count } => ("forget", vec![("count", show_number(count as u64)?)]),
        };
        Some(DumpValue::Record(vec![(verb, DumpValue::Record(parts))]))
    }
}

fn with<'a>(mut parts: Parts<'a>, label: &'static str, content: DumpValue<'a>) -> Parts<'a> {
    parts.push((label, content));
    parts
}

fn show_group(group: &[u8]) -> Parts<'_> {
    vec![("group", DumpValue::Bytes(group))]
}

fn show_member<'a>(group: &'a [u8], consumer: &'a [u8], at_ms: u64) -> Option<Parts<'a>> {
    let parts = with(show_group(group), "consumer", DumpValue::Bytes(consumer));
    Some(with(parts, "at_ms", show_number(at_ms)?))
}

fn show_progress(parts: Parts<'_>, last: StreamId, read: Option<u64>) -> Option<Parts<'_>> {
    let read = match read {
        Some(read) => show_number(read)?,
        None => DumpValue::Text("unknown".to_owned()),
    };
    Some(with(with(parts, "last", show_id(last)), "read", read))
}

fn show_id<'a>(id: StreamId) -> DumpValue<'a> {
    DumpValue::Text(String::from_utf8(id.to_text()).unwrap_or_default())
}

fn show_ids<'a>(ids: &[StreamId]) -> DumpValue<'a> {
    DumpValue::List(ids.iter().map(|id| show_id(*id)).collect())
}

fn show_number<'a>(number: u64) -> Option<DumpValue<'a>> {
    Some(DumpValue::Int(i64::try_from(number).ok()?))
}
