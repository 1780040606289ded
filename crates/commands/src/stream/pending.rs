//! XPENDING.

use super::shared::no_key_or_group;
use super::{id, reply};
use ladon_engine::types::stream::{Group, Pending, Stream, StreamId};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::Reply;
use std::ops::ControlFlow::{self, Break, Continue};

/// What to list.
struct Query<'a> {
    first: StreamId,
    last: StreamId,
    count: usize,
    min_idle_ms: i64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Query<'a> {
    /// Reads what follows the group; `None` if that is nothing.
    fn parse(args: &[&'a [u8]]) -> Result<Option<Query<'a>>, CommandError> {
        if args.len() == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&args.len()) {
            return Err(CommandError::Syntax);
        }
        let (mut min_idle_ms, mut words) = (0, &args[3..]);
        if is(words[0], "idle") {
            min_idle_ms = args::integer(words[1])?;
            words = &words[2..];
        }
        let [first, last, count, rest @ ..] = words else { return Err(CommandError::Syntax) };
        let count = usize::try_from(args::integer(count)?).unwrap_or(0);
        let (first, last) = (id::first(first)?, id::last(last)?);
        let consumer = rest.first().copied();
        Ok(Some(Query { first, last, count, min_idle_ms, consumer }))
    }
}

pub(super) fn xpending(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let query = Query::parse(args)?;
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let (tx, reply) = ctx.tx_and_reply();
    let group = tx.read_value::<Stream>(db, key)?.and_then(|stream| stream.group(args[2]));
    let group = group.ok_or_else(|| no_key_or_group(args[1], args[2]))?;
    match query {
        None => sum(reply, group),
        Some(query) => list(reply, group, &query, now_ms),
    }
    Ok(())
}

fn sum(reply: &mut Reply<'_>, group: &Group) {
    reply.array(4);
    reply.integer(group.pending() as i64);
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply::id(reply, first);
    reply::id(reply, last);
    let array = reply.begin_array();
    let mut count = 0;
    for consumer in group.consumers().filter(|consumer| consumer.pending() != 0) {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_int(consumer.pending() as i64);
        count += 1;
    }
    reply.end_array(array, count);
}

fn list(reply: &mut Reply<'_>, group: &Group, query: &Query<'_>, now_ms: u64) {
    let array = reply.begin_array();
    let mut count = 0;
    let mut visit = |id: StreamId, pending: &Pending| -> ControlFlow<()> {
        if id > query.last || count == query.count {
            return Break(());
        }
        let idle_ms = now_ms as i64 - pending.delivered_ms as i64;
        if query.min_idle_ms != 0 && idle_ms < query.min_idle_ms {
            return Continue(());
        }
        reply.array(4);
        reply::id(reply, id);
        match group.consumer_of(pending) {
            Some(consumer) => {
                reply.bulk(consumer.name());
                reply.integer(idle_ms.max(0));
            }
            None => {
                reply.bulk("");
                reply.integer(-1);
            }
        }
        reply.integer(pending.count as i64);
        count += 1;
        Continue(())
    };
    let _ = match query.consumer {
        None => group.pending_from(query.first).try_for_each(|(id, pending)| visit(*id, pending)),
        Some(name) => group.consumer(name).map_or(Continue(()), |consumer| {
            group
                .pending_with(consumer, query.first)
                .try_for_each(|(id, pending)| visit(id, &pending))
        }),
    };
    reply.end_array(array, count);
}
