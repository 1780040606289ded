//! XINFO.

use super::shared::no_group;
use super::{idempotence, reply};
use ladon_engine::types::stream::{Consumer, Group, Stream, StreamId};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::Reply;
use std::ops::ControlFlow::{Break, Continue};

/// Entries that FULL shows of each kind.
const FULL_COUNT: usize = 10;

pub(super) fn stream(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    let (tx, reply) = ctx.tx_and_reply();
    let stream = tx.read_value::<Stream>(db, key)?.ok_or(CommandError::NoSuchKey)?;
    match full_count(args)? {
        None => {
            reply.map(10 + idempotence::facts(stream));
            describe(reply, stream);
            reply.bulk("groups");
            reply.integer(stream.group_count() as i64);
            reply.bulk("first-entry");
            end(reply, stream, false);
            reply.bulk("last-entry");
            end(reply, stream, true);
        }
        Some(count) => {
            reply.map(9 + idempotence::facts(stream));
            describe(reply, stream);
            full(reply, stream, count);
        }
    }
    Ok(())
}

/// How many entries FULL asks for; `None` without it.
fn full_count(args: &[&[u8]]) -> Result<Option<usize>, CommandError> {
    match args[3..] {
        [] => Ok(None),
        [word] if is(word, "full") => Ok(Some(FULL_COUNT)),
        [word, count, value] if is(word, "full") && is(count, "count") => {
            let count = usize::try_from(args::integer(value)?).unwrap_or(FULL_COUNT);
            Ok(Some(if count == 0 { usize::MAX } else { count }))
        }
        _ => Err(CommandError::subcommand(args)),
    }
}

/// What both forms begin with.
fn describe(reply: &mut Reply<'_>, stream: &Stream) {
    let nodes = stream.nodes() as i64;
    let number = |reply: &mut Reply<'_>, name: &str, value: i64| {
        reply.bulk(name);
        reply.integer(value);
    };
    let id = |reply: &mut Reply<'_>, name: &str, id| {
        reply.bulk(name);
        reply::id(reply, id);
    };
    number(reply, "length", stream.len() as i64);
    number(reply, "radix-tree-keys", nodes);
    // Ladon has no radix tree: this is what one of few keys would have.
    number(reply, "radix-tree-nodes", nodes + 1);
    id(reply, "last-generated-id", stream.last_id());
    id(reply, "max-deleted-entry-id", stream.max_deleted_id());
    number(reply, "entries-added", stream.entries_added() as i64);
    id(reply, "recorded-first-entry-id", stream.first_entry_id());
    idempotence::describe(reply, stream);
}

/// The first or the last entry.
fn end(reply: &mut Reply<'_>, stream: &Stream, is_last: bool) {
    let show = |entry| {
        reply::entry(reply, entry);
        Break(())
    };
    let found = if is_last {
        stream.walk_reversed(StreamId::MIN, StreamId::MAX, show)
    } else {
        stream.walk(StreamId::MIN, StreamId::MAX, show)
    };
    if found.is_continue() {
        reply.null();
    }
}

fn full(reply: &mut Reply<'_>, stream: &Stream, count: usize) {
    reply.bulk("entries");
    reply.array(stream.len().min(count));
    let mut left = count;
    let _ = stream.walk::<()>(StreamId::MIN, StreamId::MAX, |entry| {
        reply::entry(reply, entry);
        left -= 1;
        if left == 0 { Break(()) } else { Continue(()) }
    });
    reply.bulk("groups");
    reply.array(stream.group_count());
    for (name, group) in stream.groups() {
        // As long as nobody uses XNACK the reply is that of Redis 7.2.
        let released = Some(group.released()).filter(|&count| count != 0);
        reply.map(7 + usize::from(released.is_some()));
        reply.bulk("name");
        reply.bulk(name);
        progress(reply, stream, group);
        reply.bulk("pel-count");
        reply.integer(group.pending() as i64);
        reply.bulk("pending");
        reply.array(group.pending().min(count));
        for (id, pending) in group.pending_from(StreamId::MIN).take(count) {
            reply.array(4);
            reply::id(reply, *id);
            reply.bulk(group.consumer_of(pending).map_or(&b""[..], Consumer::name));
            reply.integer(pending.delivered_ms as i64);
            reply.integer(pending.count as i64);
        }
        reply.bulk("consumers");
        reply.array(group.consumer_count());
        for consumer in group.consumers() {
            full_consumer(reply, group, consumer, count);
        }
        if let Some(released) = released {
            reply.bulk("nacked-count");
            reply.integer(released as i64);
        }
    }
}

fn full_consumer(reply: &mut Reply<'_>, group: &Group, consumer: &Consumer, count: usize) {
    reply.map(5);
    reply.bulk("name");
    reply.bulk(consumer.name());
    reply.bulk("seen-time");
    reply.integer(consumer.seen_ms as i64);
    reply.bulk("active-time");
    reply.integer(consumer.active_ms.map_or(-1, |active| active as i64));
    reply.bulk("pel-count");
    reply.integer(consumer.pending() as i64);
    reply.bulk("pending");
    reply.array(consumer.pending().min(count));
    for (id, pending) in group.pending_with(consumer, StreamId::MIN).take(count) {
        reply.array(3);
        reply::id(reply, id);
        reply.integer(pending.delivered_ms as i64);
        reply.integer(pending.count as i64);
    }
}

/// How far a group has read.
fn progress(reply: &mut Reply<'_>, stream: &Stream, group: &Group) {
    reply.bulk("last-delivered-id");
    reply::id(reply, group.last_id);
    let mut optional = |name: &str, value: Option<i64>| {
        reply.bulk(name);
        match value {
            Some(value) => reply.integer(value),
            None => reply.null(),
        }
    };
    optional("entries-read", group.entries_read.map(|read| read as i64));
    optional("lag", stream.lag(group));
}

pub(super) fn groups(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    let (tx, reply) = ctx.tx_and_reply();
    let stream = tx.read_value::<Stream>(db, key)?.ok_or(CommandError::NoSuchKey)?;
    reply.array(stream.group_count());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.bulk("name");
        reply.bulk(name);
        reply.bulk("consumers");
        reply.integer(group.consumer_count() as i64);
        reply.bulk("pending");
        reply.integer(group.pending() as i64);
        progress(reply, stream, group);
    }
    Ok(())
}

pub(super) fn consumers(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, now_ms) = (ctx.db(), ctx.key(args[2]), ctx.now_ms);
    let (tx, reply) = ctx.tx_and_reply();
    let stream = tx.read_value::<Stream>(db, key)?.ok_or(CommandError::NoSuchKey)?;
    let group = stream.group(args[3]).ok_or_else(|| no_group(args[2], args[3]))?;
    reply.array(group.consumer_count());
    for consumer in group.consumers() {
        let since = |time_ms: u64| now_ms as i64 - time_ms as i64;
        reply.map(4);
        reply.bulk("name");
        reply.bulk(consumer.name());
        reply.bulk("pending");
        reply.integer(consumer.pending() as i64);
        reply.bulk("idle");
        reply.integer(since(consumer.seen_ms).max(0));
        reply.bulk("inactive");
        reply.integer(consumer.active_ms.map_or(-1, since));
    }
    Ok(())
}
