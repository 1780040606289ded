//! XREADGROUP.

use super::read::{begin_part, halves, peek};
use super::streams_option::Options;
use super::{id, is_new_consumer, notify_consumer, reply, text};
use crate::kernel::blocking::Wanted;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use ladon_engine::types::stream::{Step, Stream, StreamId};
use ladon_engine::{StreamEdit, Tx};
use ladon_model::{DbId, ValueKind};
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::ops::ControlFlow::{Break, Continue};

/// Stands for `>`: what no consumer of the group has got.
const NEW: StreamId = StreamId::MAX;

pub(super) fn xreadgroup(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = Options::parse(args, true, ctx.now_ms)?;
    let Some((group, consumer)) = options.group else { return Err(CommandError::Syntax) };
    let (names, texts) = halves(args, &options);
    let (db, now_ms) = (ctx.db(), ctx.now_ms);
    let mut after = SmallVec::<[StreamId; 8]>::new();
    for (name, text) in names.iter().zip(texts) {
        let key = ctx.key(name);
        let stream = ctx.tx().read_value::<Stream>(db, key)?;
        if stream.is_none_or(|stream| stream.group(group).is_none()) {
            return Err(no_group(name, group));
        }
        after.push(after_of(text)?);
    }
    let request = Request { group, consumer, now_ms, count: options.count, no_ack: options.no_ack };
    let is_map = ctx.reply.proto() == Proto::Resp3;
    let position = ctx.reply.position();
    let mark = if is_map { ctx.reply.begin_map() } else { ctx.reply.begin_array() };
    let mut served = 0;
    for (name, &after) in names.iter().zip(&after) {
        let key = ctx.key(name);
        let (tx, reply) = ctx.tx_and_reply();
        let mut is_new = false;
        let is_served = tx.stream_change(db, key, |stream| {
            is_new = is_new_consumer(stream, group, consumer);
            request.serve(stream, name, after, reply)
        })?;
        if is_new {
            notify_consumer(tx, db, key);
        }
        served += usize::from(is_served == Some(true));
    }
    if served != 0 {
        if is_map {
            ctx.reply.end_map(mark, served);
        } else {
            ctx.reply.end_array(mark, served);
        }
        return Ok(());
    }
    ctx.reply.rewind(position);
    match options.block {
        None => ctx.reply.null_array(),
        Some(deadline_ms) => {
            let wanted =
                Wanted { kind: ValueKind::Stream, hears_loss: true, is_ready: Some(is_ready) };
            ctx.block_or_answer_null(args, options.keys, wanted, deadline_ms);
        }
    }
    Ok(())
}

fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (text(key), text(group));
    let text = format!(
        "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"
    );
    CommandError::Other(text.into())
}

fn after_of(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"$" => Err(CommandError::text(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
             history of this consumer by specifying a proper ID, or use the > ID to get new \
             messages. The $ ID would just return an empty result set.",
        )),
        b"+" => Err(CommandError::text(
            "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the \
             history of this consumer by specifying a proper ID, or use the > ID to get new \
             messages. The + ID would just return an empty result set.",
        )),
        b">" => Ok(NEW),
        _ => id::strict(text, 0),
    }
}

/// Whether a waiting XREADGROUP has something to answer; an error is something, too.
fn is_ready(tx: &mut Tx<'_>, db: DbId, args: &[&[u8]]) -> bool {
    let Ok(options) = Options::parse(args, true, 0) else { return true };
    let Some((group, _)) = options.group else { return true };
    let (names, _) = halves(args, &options);
    // Only who asks for new entries waits.
    names.iter().any(|name| {
        let key = tx.key(name);
        let Ok(Some(stream)) = peek(tx, db, key) else { return true };
        stream.group(group).is_none_or(|group| has_new(stream, group.last_id))
    })
}

fn has_new(stream: &Stream, last_delivered: StreamId) -> bool {
    stream.last_entry_id().is_some_and(|last| last > last_delivered)
}

struct Request<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    now_ms: u64,
    count: usize,
    no_ack: bool,
}

impl Request<'_> {
    /// Writes the part of the reply about one stream, if there is something to say; returns
    /// whether.
    fn serve(
        &self,
        stream: &mut StreamEdit<'_>,
        name: &[u8],
        after: StreamId,
        reply: &mut Reply<'_>,
    ) -> bool {
        let Request { group, consumer, now_ms, .. } = *self;
        let Some(last_delivered) = stream.group(group).map(|group| group.last_id) else {
            return false;
        };
        stream.apply(Step::See { group, consumer, at_ms: now_ms });
        if after != NEW {
            begin_part(reply, name);
            self.repeat(stream, after, reply);
            return true;
        }
        if !has_new(stream, last_delivered) {
            return false;
        }
        begin_part(reply, name);
        self.deliver(stream, last_delivered, reply);
        true
    }

    /// Delivers what follows the last delivered entry.
    fn deliver(&self, stream: &mut StreamEdit<'_>, after: StreamId, reply: &mut Reply<'_>) {
        let Request { group, consumer, now_ms: at_ms, .. } = *self;
        let array = reply.begin_array();
        let mut read = stream.group(group).and_then(|group| group.entries_read);
        let (mut last, mut count) = (after, 0);
        let first = after.next().unwrap_or(StreamId::MAX);
        let _ = stream.walk(first, StreamId::MAX, |entry| {
            read = stream.read_after(read, last, entry.id);
            last = entry.id;
            reply::entry(reply, entry);
            count += 1;
            if count == self.count { Break(()) } else { Continue(()) }
        });
        reply.end_array(array, count);
        stream.apply(if self.no_ack {
            Step::SetGroup { group, last, read }
        } else {
            Step::Deliver { group, consumer, at_ms, last, read }
        });
    }

    /// Delivers again what is pending with the consumer.
    fn repeat(&self, stream: &mut StreamEdit<'_>, after: StreamId, reply: &mut Reply<'_>) {
        let Request { group, consumer, now_ms: at_ms, .. } = *self;
        let first = after.next().unwrap_or(StreamId::MAX);
        let array = reply.begin_array();
        let (mut count, mut exists) = (0, false);
        let member = stream.group(group).and_then(|group| Some((group, group.consumer(consumer)?)));
        if let Some((group, consumer)) = member {
            for (id, _) in group.pending_with(consumer, first).take(self.count) {
                match stream.get(id) {
                    Some(entry) => {
                        reply::entry(reply, entry);
                        exists = true;
                    }
                    None => {
                        reply.array(2);
                        reply::id(reply, id);
                        reply.null_array();
                    }
                }
                count += 1;
            }
        }
        reply.end_array(array, count);
        if exists {
            let count = self.count as u64;
            stream.apply(Step::Redeliver { group, consumer, at_ms, first, count });
        }
    }
}
