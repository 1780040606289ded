//! Questions about members: their number, scores and ranks.

use super::bounds::Members;
use crate::shared::scores;
use ladon_engine::types::sorted_set::SortedSet;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn zcard(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let count = ctx.tx().read_value::<SortedSet>(db, key)?.map_or(0, SortedSet::len);
    ctx.reply.integer(count as i64);
    Ok(())
}

pub(super) fn zscore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let set = ctx.tx().read_value::<SortedSet>(db, key)?;
    match set.and_then(|set| set.score(hasher, args[2])) {
        Some(score) => ctx.reply.double(score),
        None => ctx.reply.null(),
    }
    Ok(())
}

pub(super) fn zmscore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    scores::reply_for_each(ctx, args, |reply, score| match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    })
}

pub(super) fn zrank(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    rank(ctx, args, false)
}

pub(super) fn zrevrank(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    rank(ctx, args, true)
}

fn rank(ctx: &mut Ctx<'_>, args: &[&[u8]], reversed: bool) -> CommandResult {
    let with_score = match &args[3..] {
        [] => false,
        [option] if is(option, "WITHSCORE") => true,
        [_] => return Err(CommandError::Syntax),
        _ => {
            let name = String::from_utf8_lossy(args[0]).to_lowercase();
            let text = format_args!("wrong number of arguments for '{name}' command");
            return Err(CommandError::err(text));
        }
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let set = ctx.tx().read_value::<SortedSet>(db, key)?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(hasher, args[2])?;
        Some((if reversed { set.len() - 1 - rank } else { rank }, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            ctx.reply.array(2);
            ctx.reply.integer(rank as i64);
            ctx.reply.double(score);
        }
        Some((rank, _)) => ctx.reply.integer(rank as i64),
        None if with_score => ctx.reply.null_array(),
        None => ctx.reply.null(),
    }
    Ok(())
}

pub(super) fn zcount(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    count(ctx, args, Members::by_score(args[2], args[3])?)
}

pub(super) fn zlexcount(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    count(ctx, args, Members::by_lex(args[2], args[3])?)
}

fn count(ctx: &mut Ctx<'_>, args: &[&[u8]], members: Members<'_>) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let set = ctx.tx().read_value::<SortedSet>(db, key)?;
    let count = set.map_or(0, |set| members.ranks(set).len());
    ctx.reply.integer(count as i64);
    Ok(())
}
