//! The blocking forms: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH.

use super::ends::{PopFrom, pop_first};
use super::relocate::move_element;
use super::shared::{end, popped, reply_element};
use ladon_engine::EventClass;
use ladon_engine::types::list::{End, ListValue};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_record::ValueKind;

pub(super) fn blpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Front)
}

pub(super) fn brpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Back)
}

fn pop(ctx: &mut Ctx<'_>, args: &[&[u8]], end: End) -> CommandResult {
    let last = args.len() - 1;
    let deadline_ms = args::timeout_seconds(args[last], ctx.now_ms)?;
    let db = ctx.db();
    for bytes in &args[1..last] {
        let key = ctx.key(bytes);
        let is_there = ctx.tx().get_value::<ListValue>(db, key)?.is_some();
        if !is_there || !ctx.may_take(db, key, ValueKind::List) {
            continue;
        }
        let (tx, reply) = ctx.tx_and_reply();
        reply.array(2);
        reply.bulk(bytes);
        tx.list_pop(db, key, end, 1, |_| reply, |reply, element| reply_element(reply, element))?;
        tx.notify_removal(EventClass::LIST, popped(end), db, key);
        return Ok(());
    }
    ctx.block_or_answer_null(args, 1..last, ValueKind::List, deadline_ms);
    Ok(())
}

pub(super) fn blmpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    // As in Redis, the timeout is checked last.
    let wanted = PopFrom::read(&args[2..])?;
    let deadline_ms = args::timeout_seconds(args[1], ctx.now_ms)?;
    let must_answer = ctx.must_answer();
    let popped = pop_first(ctx, &wanted, |tx, db, key| {
        must_answer || !tx.is_awaited(db, key, ValueKind::List)
    })?;
    if !popped {
        ctx.block_or_answer_null(args, 3..3 + wanted.keys.len(), ValueKind::List, deadline_ms);
    }
    Ok(())
}

pub(super) fn blmove(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (from, to) = (end(args[3])?, end(args[4])?);
    relocate(ctx, args, from, to, args[5])
}

pub(super) fn brpoplpush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    relocate(ctx, args, End::Back, End::Front, args[3])
}

fn relocate(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    from: End,
    to: End,
    timeout: &[u8],
) -> CommandResult {
    let deadline_ms = args::timeout_seconds(timeout, ctx.now_ms)?;
    let (db, source, destination) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]));
    let is_there = ctx.tx().get_value::<ListValue>(db, source)?.is_some();
    if is_there && ctx.may_take(db, source, ValueKind::List) {
        match move_element(ctx, source, destination, from, to)? {
            Some(element) => ctx.reply.bulk(element),
            None => ctx.reply.null(),
        }
    } else if ctx.must_answer() {
        ctx.reply.null();
    } else {
        ctx.block(args, 1..2, ValueKind::List, deadline_ms);
    }
    Ok(())
}
