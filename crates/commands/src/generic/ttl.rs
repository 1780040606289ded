//! When a key expires: TTL, PTTL, EXPIRETIME, PEXPIRETIME.

use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

/// What is answered for a key that does not exist.
const NO_KEY: i64 = -2;
/// What is answered for a key that does not expire.
const NO_EXPIRY: i64 = -1;

pub(super) fn ttl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    answer(ctx, args, |at| to_seconds(at.saturating_sub(now_ms)))
}

pub(super) fn pttl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    answer(ctx, args, |at| at.saturating_sub(now_ms))
}

pub(super) fn expiretime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, to_seconds)
}

pub(super) fn pexpiretime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, |at| at)
}

/// Seconds are rounded to the nearest, as Redis does.
fn to_seconds(ms: u64) -> u64 {
    (ms + 500) / 1000
}

fn answer(ctx: &mut Ctx<'_>, args: &[&[u8]], show: impl FnOnce(u64) -> u64) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let answer = match ctx.tx().inspect(db, key).map(|entry| entry.expire_at()) {
        None => NO_KEY,
        Some(0) => NO_EXPIRY,
        Some(at) => show(at) as i64,
    };
    ctx.reply.integer(answer);
    Ok(())
}
