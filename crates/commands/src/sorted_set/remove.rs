//! Removing members: ZREM, and whole ranges.

use super::bounds::Members;
use ladon_engine::EventClass;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn zrem(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let removed = ctx.tx().sorted_set_remove(db, key, args[2..].iter().copied())?;
    if removed > 0 {
        ctx.tx().notify_removal(EventClass::SORTED_SET, "zrem", db, key);
    }
    ctx.reply.integer(removed as i64);
    Ok(())
}

pub(super) fn zremrangebyrank(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    remove(ctx, args, Members::by_rank(args[2], args[3])?, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    remove(ctx, args, Members::by_score(args[2], args[3])?, "zremrangebyscore")
}

pub(super) fn zremrangebylex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    remove(ctx, args, Members::by_lex(args[2], args[3])?, "zremrangebylex")
}

fn remove(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    members: Members<'_>,
    event: &'static str,
) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let choose = |set: &_| members.ranks(set);
    let removed = ctx.tx().sorted_set_remove_ranks(db, key, choose, |_, _| {})?;
    if removed > 0 {
        ctx.tx().notify_removal(EventClass::SORTED_SET, event, db, key);
    }
    ctx.reply.integer(removed as i64);
    Ok(())
}
