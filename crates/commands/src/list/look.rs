//! Looking at a list: LLEN, LRANGE, LINDEX.

use super::{index_of, range_of, reply_element};
use crate::args;
use crate::ctx::Ctx;
use crate::error::CommandResult;
use ladon_engine::types::list::ListValue;

pub(super) fn llen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = ctx.tx().read_value::<ListValue>(db, key)?.map_or(0, ListValue::len);
    ctx.reply.integer(length as i64);
    Ok(())
}

pub(super) fn lrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (start, stop) = (args::integer(args[2])?, args::integer(args[3])?);
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let Some(list) = tx.read_value::<ListValue>(db, key)? else {
        reply.array(0);
        return Ok(());
    };
    let range = range_of(start, stop, list.len());
    reply.array(range.len());
    list.forward(range.start).take(range.len()).for_each(|element| reply_element(reply, element));
    Ok(())
}

pub(super) fn lindex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let Some(list) = tx.read_value::<ListValue>(db, key)? else {
        reply.null();
        return Ok(());
    };
    let index = args::integer(args[2])?;
    match index_of(index, list.len()).and_then(|index| list.get(index)) {
        Some(element) => reply_element(reply, element),
        None => reply.null(),
    }
    Ok(())
}
