//! SEXPIRE, SPEXPIRE, SEXPIREAT, SPEXPIREAT.

use crate::shared::element_expiry::{Condition, Unit, condition};
use ladon_engine::EventClass;
use ladon_engine::types::set::SetValue;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;

const NO_MEMBER: i64 = -2;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
/// The time is past, and the member was removed.
const REMOVED: i64 = 2;

pub(super) fn sexpire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::SECONDS, "sexpire")
}

pub(super) fn spexpire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::MILLISECONDS, "spexpire")
}

pub(super) fn sexpireat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::UNIX_SECONDS, "sexpireat")
}

pub(super) fn spexpireat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::UNIX_MILLISECONDS, "spexpireat")
}

fn expire(ctx: &mut Ctx<'_>, args: &[&[u8]], unit: Unit, command: &str) -> CommandResult {
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let (tx, reply) = ctx.tx_and_reply();
    tx.get_value::<SetValue>(db, key)?;
    let at = unit.moment(args[2], now_ms, command)?;
    let (condition, members) = parse(&args[3..])?;
    reply.array(members.len());
    let (mut set, mut removed) = (false, false);
    let outcome = tx.edit_set(db, key, |edit| {
        for member in members {
            let result = match edit.expire_at(member) {
                None => NO_MEMBER,
                Some(old) if condition.is_some_and(|allows| !allows(old, at)) => NOT_MET,
                Some(_) if at <= now_ms => {
                    removed |= edit.remove(member);
                    REMOVED
                }
                Some(_) => {
                    edit.set_expiry(member, at);
                    set = true;
                    DONE
                }
            };
            reply.integer(result);
        }
    })?;
    if outcome.is_none() {
        members.iter().for_each(|_| reply.integer(NO_MEMBER));
    }
    if set {
        tx.notify(EventClass::SET, "sexpire", db, key);
    }
    if removed {
        tx.notify_removal(EventClass::SET, "srem", db, key);
    }
    Ok(())
}

/// The condition and the members, in any order.
fn parse<'w, 'a>(
    words: &'w [&'a [u8]],
) -> Result<(Option<Condition>, &'w [&'a [u8]]), CommandError> {
    let mut conditions: Option<(&[u8], Condition)> = None;
    let mut members: Option<&[&[u8]]> = None;
    let mut are_many = false;
    let mut rest = words;
    while let [word, after @ ..] = rest {
        rest = after;
        if is(word, "MEMBERS") {
            if members.is_some() {
                return Err(CommandError::text("ERR MEMBERS keyword specified multiple times"));
            }
            let [count, after @ ..] = rest else { return Err(too_short()) };
            if after.is_empty() {
                return Err(too_short());
            }
            let text = "ERR Parameter `numMembers` should be greater than 0";
            let count = args::integer_or(count, 1..=i64::from(i32::MAX), text)? as usize;
            let Some((named, after)) = after.split_at_checked(count) else {
                return Err(CommandError::text("ERR wrong number of arguments"));
            };
            (members, rest) = (Some(named), after);
        } else if let Some(condition) = condition(word) {
            are_many |= conditions.is_some_and(|(other, _)| !other.eq_ignore_ascii_case(word));
            conditions = Some((word, condition));
        } else {
            let word = shown(word);
            return Err(CommandError::err(format_args!("unknown argument: {word}")));
        }
    }
    let Some(members) = members else {
        return Err(CommandError::text("ERR missing MEMBERS argument"));
    };
    if are_many {
        return Err(CommandError::text("ERR Multiple condition flags specified"));
    }
    Ok((conditions.map(|(_, condition)| condition), members))
}

fn too_short() -> CommandError {
    CommandError::text("ERR MEMBERS requires at least nummembers and one member argument")
}
