//! Setting when a key expires: EXPIRE and its like, PERSIST.

use ladon_engine::EventClass;
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown_up_to};
use ladon_kernel::ctx::Ctx;

pub(super) fn expire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let base = ctx.now_ms as i64;
    expire_at(ctx, args, 1000, base, "expire")
}

pub(super) fn pexpire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let base = ctx.now_ms as i64;
    expire_at(ctx, args, 1, base, "pexpire")
}

pub(super) fn expireat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire_at(ctx, args, 1000, 0, "expireat")
}

pub(super) fn pexpireat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire_at(ctx, args, 1, 0, "pexpireat")
}

/// The condition for changing the expiry; `XX` may be combined with `GT` or `LT`.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    /// Only if there is none.
    nx: bool,
    /// Only if there is one.
    xx: bool,
    /// Only to a later time; no expiry counts as the latest.
    gt: bool,
    /// Only to an earlier time.
    lt: bool,
}

impl Condition {
    fn allows(self, old: u64, new: i64) -> bool {
        let old = (old != 0).then_some(old as i64);
        !(self.nx && old.is_some()
            || self.xx && old.is_none()
            || self.gt && old.is_none_or(|old| new <= old)
            || self.lt && old.is_some_and(|old| new >= old))
    }
}

#[inline]
fn expire_at(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    unit_ms: i64,
    base_ms: i64,
    command: &str,
) -> CommandResult {
    let condition = parse(&args[3..])?;
    let at =
        integer(args[2])?.checked_mul(unit_ms).and_then(|ms| ms.checked_add(base_ms)).ok_or_else(
            || CommandError::err(format_args!("invalid expire time in '{command}' command")),
        )?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    // A time before 1970 is as expired as its first millisecond; 0 would mean "never".
    let expire_at = at.max(1) as u64;
    let done = ctx.tx().set_expire_if(db, key, expire_at, |old| condition.allows(old, at));
    if done {
        let event = if at <= ctx.now_ms as i64 { "del" } else { "expire" };
        ctx.tx().notify(EventClass::GENERIC, event, db, key);
    }
    ctx.reply.integer(i64::from(done));
    Ok(())
}

fn parse(words: &[&[u8]]) -> Result<Condition, CommandError> {
    let mut condition = Condition::default();
    for word in words {
        if is(word, "nx") {
            condition.nx = true;
        } else if is(word, "xx") {
            condition.xx = true;
        } else if is(word, "gt") {
            condition.gt = true;
        } else if is(word, "lt") {
            condition.lt = true;
        } else {
            let word = shown_up_to(word, usize::MAX);
            return Err(CommandError::err(format_args!("Unsupported option {word}")));
        }
    }
    let Condition { nx, xx, gt, lt } = condition;
    if nx && (xx || gt || lt) {
        return Err(CommandError::text(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ));
    }
    if gt && lt {
        return Err(CommandError::text(
            "ERR GT and LT options at the same time are not compatible",
        ));
    }
    Ok(condition)
}

pub(super) fn persist(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let done = ctx.tx().set_expire_if(db, key, 0, |old| old != 0);
    if done {
        ctx.tx().notify(EventClass::GENERIC, "persist", db, key);
    }
    ctx.reply.integer(i64::from(done));
    Ok(())
}
