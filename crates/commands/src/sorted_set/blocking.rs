//! The blocking forms: BZPOPMIN, BZPOPMAX, BZMPOP.

use super::pop::{End, Several, take};
use ladon_engine::types::sorted_set::SortedSet;
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_record::ValueKind;

pub(super) fn bzpopmin(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Min)
}

pub(super) fn bzpopmax(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Max)
}

fn pop(ctx: &mut Ctx<'_>, args: &[&[u8]], end: End) -> CommandResult {
    let last = args.len() - 1;
    let deadline_ms = args::timeout_seconds(args[last], ctx.now_ms)?;
    let db = ctx.db();
    for bytes in &args[1..last] {
        let key = ctx.key(bytes);
        let is_there = ctx.tx().get_value::<SortedSet>(db, key)?.is_some();
        if !is_there || !ctx.may_take(db, key, ValueKind::SortedSet) {
            continue;
        }
        let (tx, reply) = ctx.tx_and_reply();
        let popped = take(tx, db, key, end, 1)?;
        reply.array(1 + 2 * popped.len());
        reply.bulk(bytes);
        for (member, score) in popped {
            reply.bulk(member);
            reply.double(score);
        }
        return Ok(());
    }
    ctx.block_or_answer_null(args, 1..last, ValueKind::SortedSet, deadline_ms);
    Ok(())
}

pub(super) fn bzmpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let request = Several::parse(&args[2..])?;
    let deadline_ms = args::timeout_seconds(args[1], ctx.now_ms)?;
    let db = ctx.db();
    for name in request.names {
        let key = ctx.key(name);
        let is_there = ctx.tx().get_value::<SortedSet>(db, key)?.is_some();
        if is_there
            && ctx.may_take(db, key, ValueKind::SortedSet)
            && request.try_pop(ctx, db, key)?
        {
            return Ok(());
        }
    }
    ctx.block_or_answer_null(args, 3..3 + request.names.len(), ValueKind::SortedSet, deadline_ms);
    Ok(())
}
