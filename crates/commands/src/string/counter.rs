//! Counters: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.

use ladon_engine::types::string;
use ladon_engine::{CountError, EventClass};
use ladon_kernel::command::args::integer;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::LongDouble;

pub(super) fn incr(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    add(ctx, args, 1)
}

pub(super) fn decr(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    add(ctx, args, -1)
}

pub(super) fn incrby(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    add(ctx, args, integer(args[2])?)
}

pub(super) fn decrby(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let delta = integer(args[2])?.checked_neg();
    add(ctx, args, delta.ok_or(CommandError::text("ERR decrement would overflow"))?)
}

#[inline]
fn add(ctx: &mut Ctx<'_>, args: &[&[u8]], delta: i64) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let sum = ctx.tx().add_to_int(db, key, delta).map_err(|error| match error {
        CountError::NotString => CommandError::WrongType,
        CountError::NotInteger => CommandError::NotInteger,
        CountError::Overflow => CommandError::text("ERR increment or decrement would overflow"),
    })?;
    ctx.tx().notify(EventClass::STRING, "incrby", db, key);
    ctx.reply.integer(sum);
    Ok(())
}

pub(super) fn incrbyfloat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    let number = |text: &[u8]| LongDouble::parse(text).ok_or(CommandError::NotFloat);
    let (old, expire_at) = match tx.get(db, key) {
        Some(entry) => {
            let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
            (number(&bytes)?, entry.expire_at())
        }
        None => (number(b"0")?, 0),
    };
    let sum = old
        .checked_add(number(args[2])?)
        .filter(|sum| sum.is_finite())
        .ok_or(CommandError::text("ERR increment would produce NaN or Infinity"))?;
    let mut text = Vec::with_capacity(32);
    sum.write_human(&mut text);
    // As in Redis, the value stays text, even if it is an integer.
    tx.put_text(db, key, &text, expire_at);
    tx.notify(EventClass::STRING, "incrbyfloat", db, key);
    ctx.reply.bulk(&text);
    Ok(())
}
