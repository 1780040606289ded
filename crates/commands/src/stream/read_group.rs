//! XREADGROUP.

use super::read::{begin_part, halves, peek};
use super::shared::{is_new_consumer, notify_consumer, text};
use super::streams_option::{Budget, Options};
use super::{id, reply};
use ladon_engine::types::stream::{Claimed, Group, Step, Stream, StreamId};
use ladon_engine::{StreamEdit, Tx};
use ladon_kernel::blocking::{LookAt, Wanted};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_record::{DbId, ValueKind};
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::ops::ControlFlow::{Break, Continue};

/// Milliseconds between two looks of who waits for what nobody has got yet.
const LOOK_PAUSE_MS: u64 = 100;

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
    let Options { count, mut budget, no_ack, claim_idle_ms, .. } = options;
    let request = Request { group, consumer, now_ms, count, no_ack, claim_idle_ms };
    let is_map = ctx.reply.proto() == Proto::Resp3;
    let position = ctx.reply.position();
    let mark = if is_map { ctx.reply.begin_map() } else { ctx.reply.begin_array() };
    let mut served = 0;
    for (name, &after) in names.iter().zip(&after) {
        if budget.is_spent() {
            break;
        }
        let key = ctx.key(name);
        let (tx, reply) = ctx.tx_and_reply();
        let mut is_new = false;
        let is_served = tx.stream_change(db, key, |stream| {
            is_new = is_new_consumer(stream, group, consumer);
            request.serve(stream, name, after, &mut budget, reply)
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
            let wanted = Wanted {
                kind: ValueKind::Stream,
                hears_loss: true,
                is_ready: Some(is_ready),
                look_at: claim_idle_ms.map(|_| look_at as LookAt),
            };
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
    let now_ms = tx.now_ms();
    // Only who asks for new entries waits.
    names.iter().any(|name| {
        let key = tx.key(name);
        let Ok(Some(stream)) = peek(tx, db, key) else { return true };
        stream.group(group).is_none_or(|group| {
            let claims = options.claim_idle_ms.and_then(|idle_ms| now_ms.checked_sub(idle_ms));
            let oldest_ms = || group.oldest_delivery().unwrap_or(u64::MAX);
            has_new(stream, group.last_id) || claims.is_some_and(|until_ms| oldest_ms() <= until_ms)
        })
    })
}

/// When a waiting XREADGROUP may find something to claim: when the oldest entry that is pending now
/// will be idle for long enough, or one that could be delivered meanwhile.
fn look_at(tx: &mut Tx<'_>, db: DbId, args: &[&[u8]]) -> u64 {
    let now_ms = tx.now_ms();
    let Ok(Options { group: Some((group, _)), claim_idle_ms: Some(idle_ms), keys, .. }) =
        Options::parse(args, true, 0)
    else {
        return u64::MAX;
    };
    let later_ms = now_ms.saturating_add(idle_ms.max(LOOK_PAUSE_MS));
    args[keys].iter().fold(later_ms, |soonest_ms, name| {
        let key = tx.key(name);
        let oldest_ms = peek(tx, db, key)
            .ok()
            .flatten()
            .and_then(|stream| stream.group(group).and_then(Group::oldest_delivery));
        let due_ms = oldest_ms.map_or(u64::MAX, |oldest_ms| oldest_ms.saturating_add(idle_ms));
        soonest_ms.min(due_ms.max(now_ms + 1))
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
    claim_idle_ms: Option<u64>,
}

impl Request<'_> {
    /// Writes the part of the reply about one stream, if there is something to say; returns
    /// whether.
    fn serve(
        &self,
        stream: &mut StreamEdit<'_>,
        name: &[u8],
        after: StreamId,
        budget: &mut Budget,
        reply: &mut Reply<'_>,
    ) -> bool {
        let Request { group, consumer, now_ms, .. } = *self;
        let Some(last_delivered) = stream.group(group).map(|group| group.last_id) else {
            return false;
        };
        stream.apply(Step::See { group, consumer, at_ms: now_ms });
        let position = reply.position();
        if after != NEW {
            begin_part(reply, name);
            let is_cut_off = self.repeat(stream, after, budget, reply);
            if is_cut_off {
                reply.rewind(position);
            }
            return !is_cut_off;
        }
        begin_part(reply, name);
        let array = reply.begin_array();
        let mut count = 0;
        if let Some(idle_ms) = self.claim_idle_ms
            && let Some(until_ms) = now_ms.checked_sub(idle_ms)
        {
            count += self.claim(stream, until_ms, budget, reply);
        }
        if count < self.count && has_new(stream, last_delivered) {
            let max = self.count - count;
            count += self.deliver(stream, (last_delivered, max), budget, reply);
        }
        if count == 0 {
            reply.rewind(position);
            return false;
        }
        reply.end_array(array, count);
        true
    }

    /// Claims what was delivered at `until_ms` or before, the oldest first; returns how many
    /// entries. What does not exist any more is no longer pending, as with XCLAIM.
    fn claim(
        &self,
        stream: &mut StreamEdit<'_>,
        until_ms: u64,
        budget: &mut Budget,
        reply: &mut Reply<'_>,
    ) -> usize {
        let Request { group, consumer, now_ms, .. } = *self;
        stream.index_by_time(group);
        let mut claimed = Vec::new();
        while claimed.len() < self.count {
            // No more than are wanted, and more only where entries did not exist.
            let wanted = self.count - claimed.len();
            let of = stream.group(group);
            let ids = of.map_or(Vec::new(), |group| group.delivered_until(until_ms, wanted));
            let (mut gone, mut taken) = (Vec::new(), Vec::new());
            for id in ids {
                let pending = stream.group(group).and_then(|group| group.pending_entry(id));
                let Some(&pending) = pending else { continue };
                let Some(entry) = stream.get(id) else {
                    gone.push(id);
                    continue;
                };
                if !budget.admits(|| reply::entry_bytes(entry)) {
                    break;
                }
                let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
                reply::delivered_entry(reply, entry, idle_ms, pending.count);
                let count = pending.count.saturating_add(1).min(i64::MAX as u64);
                taken.push(Claimed { id, delivered_ms: now_ms, count });
            }
            let is_over = gone.is_empty() || until_ms == now_ms || budget.is_spent();
            if !gone.is_empty() {
                stream.apply(Step::Acknowledge { group, ids: gone });
            }
            if !taken.is_empty() {
                let taken = taken.clone();
                stream.apply(Step::Claim { group, consumer, at_ms: now_ms, claimed: taken });
            }
            claimed.append(&mut taken);
            if is_over {
                break;
            }
        }
        claimed.len()
    }

    /// Delivers up to `max` entries that follow the last delivered one; returns how many.
    fn deliver(
        &self,
        stream: &mut StreamEdit<'_>,
        (after, max): (StreamId, usize),
        budget: &mut Budget,
        reply: &mut Reply<'_>,
    ) -> usize {
        let Request { group, consumer, now_ms: at_ms, .. } = *self;
        let mut read = stream.group(group).and_then(|group| group.entries_read);
        let mut last = after;
        let mut ids = SmallVec::<[StreamId; 16]>::new();
        let first = after.next().unwrap_or(StreamId::MAX);
        let _ = stream.walk(first, StreamId::MAX, |entry| {
            if !budget.admits(|| reply::entry_bytes(entry)) {
                return Break(());
            }
            read = stream.read_after(read, last, entry.id);
            last = entry.id;
            match self.claim_idle_ms {
                None => reply::entry(reply, entry),
                Some(_) => reply::delivered_entry(reply, entry, 0, 0),
            }
            ids.push(entry.id);
            if ids.len() == max { Break(()) } else { Continue(()) }
        });
        if ids.is_empty() {
            return 0;
        }
        if self.no_ack {
            stream.apply(Step::SetGroup { group, last, read });
        } else {
            stream.deliver(Step::Deliver { group, consumer, at_ms, last, read }, &ids);
        }
        ids.len()
    }

    /// Delivers again what is pending with the consumer. Returns whether the budget left nothing of
    /// it, which must not be taken for the end of what is pending.
    fn repeat(
        &self,
        stream: &mut StreamEdit<'_>,
        after: StreamId,
        budget: &mut Budget,
        reply: &mut Reply<'_>,
    ) -> bool {
        let Request { group, consumer, now_ms: at_ms, .. } = *self;
        let first = after.next().unwrap_or(StreamId::MAX);
        let array = reply.begin_array();
        let (mut count, mut exists, mut is_cut) = (0, false, false);
        let member = stream.group(group).and_then(|group| Some((group, group.consumer(consumer)?)));
        if let Some((group, consumer)) = member {
            for (id, _) in group.pending_with(consumer, first).take(self.count) {
                let entry = stream.get(id);
                if !budget.admits(|| entry.map_or(0, reply::entry_bytes)) {
                    is_cut = true;
                    break;
                }
                match entry {
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
            let count = if is_cut { count } else { self.count } as u64;
            stream.apply(Step::Redeliver { group, consumer, at_ms, first, count });
        }
        is_cut && count == 0
    }
}
