//! Changing a list in place: LSET, LINSERT, LREM, LTRIM.

use super::shared::{index_of, range_of};
use ladon_engine::EventClass;
use ladon_engine::types::list::{End, ListValue};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn lset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    if tx.get_value::<ListValue>(db, key)?.is_none() {
        return Err(CommandError::NoSuchKey);
    }
    let index = args::integer(args[2])?;
    let set = tx.list_set(db, key, |len| index_of(index, len), args[3])?;
    if set != Some(true) {
        return Err(CommandError::text("ERR index out of range"));
    }
    tx.notify(EventClass::LIST, "lset", db, key);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn linsert(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let before = match args[2] {
        word if is(word, "before") => true,
        word if is(word, "after") => false,
        _ => return Err(CommandError::Syntax),
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = match ctx.tx().list_insert(db, key, before, args[3], args[4])? {
        None => 0,
        Some(None) => -1,
        Some(Some(length)) => length as i64,
    };
    if length > 0 {
        ctx.tx().notify(EventClass::LIST, "linsert", db, key);
    }
    ctx.reply.integer(length);
    Ok(())
}

pub(super) fn lrem(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let count = args::integer_between(args[2], -i64::MAX, i64::MAX)?;
    let from = if count < 0 { End::Back } else { End::Front };
    let max = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let removed = ctx.tx().list_remove(db, key, from, max, args[3])?;
    if removed > 0 {
        ctx.tx().notify_removal(EventClass::LIST, "lrem", db, key);
    }
    ctx.reply.integer(removed as i64);
    Ok(())
}

pub(super) fn ltrim(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (start, stop) = (args::integer(args[2])?, args::integer(args[3])?);
    let (db, key) = (ctx.db(), ctx.first_key(args));
    if ctx.tx().list_trim(db, key, |len| range_of(start, stop, len))? {
        ctx.tx().notify_removal(EventClass::LIST, "ltrim", db, key);
    }
    ctx.reply.ok();
    Ok(())
}
