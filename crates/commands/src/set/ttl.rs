//! STTL, SPTTL, SEXPIRETIME, SPEXPIRETIME, SPERSIST.

use ladon_engine::EventClass;
use ladon_engine::types::set::SetValue;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

const NO_MEMBER: i64 = -2;
const NO_EXPIRY: i64 = -1;
const PERSISTED: i64 = 1;

pub(super) fn sttl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    answer(ctx, args, |at| at.saturating_sub(now_ms).div_ceil(1000))
}

pub(super) fn spttl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    answer(ctx, args, |at| at.saturating_sub(now_ms))
}

pub(super) fn sexpiretime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, |at| at.div_ceil(1000))
}

pub(super) fn spexpiretime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, |at| at)
}

/// Replies with `show` of each member's expiry time.
fn answer(ctx: &mut Ctx<'_>, args: &[&[u8]], show: impl Fn(u64) -> u64) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let set = tx.read_value::<SetValue>(db, key)?;
    let members = parse(&args[2..])?;
    reply.array(members.len());
    for member in members {
        reply.integer(match set.and_then(|set| set.expire_at(hasher, member)) {
            None => NO_MEMBER,
            Some(0) => NO_EXPIRY,
            Some(at) => show(at) as i64,
        });
    }
    Ok(())
}

pub(super) fn spersist(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    tx.get_value::<SetValue>(db, key)?;
    let members = parse(&args[2..])?;
    reply.array(members.len());
    let mut persisted = false;
    let outcome = tx.edit_set(db, key, |edit| {
        for member in members {
            reply.integer(match edit.expire_at(member) {
                None => NO_MEMBER,
                Some(0) => NO_EXPIRY,
                Some(_) => {
                    edit.set_expiry(member, 0);
                    persisted = true;
                    PERSISTED
                }
            });
        }
    })?;
    if outcome.is_none() {
        members.iter().for_each(|_| reply.integer(NO_MEMBER));
    }
    if persisted {
        tx.notify(EventClass::SET, "spersist", db, key);
    }
    Ok(())
}

/// `MEMBERS nummembers member ...`
fn parse<'w, 'a>(words: &'w [&'a [u8]]) -> Result<&'w [&'a [u8]], CommandError> {
    let [word, count, members @ ..] = words else { return Err(CommandError::Syntax) };
    if !is(word, "MEMBERS") {
        return Err(CommandError::text(
            "ERR Mandatory argument MEMBERS is missing or not at the right position",
        ));
    }
    let text = "ERR Number of members must be a positive integer";
    if args::integer_or(count, 1.., text)? as u64 != members.len() as u64 {
        return Err(CommandError::text(
            "ERR The `nummembers` parameter must match the number of arguments",
        ));
    }
    Ok(members)
}
