//! HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT.

use super::fields;
use crate::shared::element_expiry::{Unit, condition};
use ladon_engine::EventClass;
use ladon_engine::types::hash::HashValue;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

const NO_FIELD: i64 = -2;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
/// The time is past, and the field was removed.
const REMOVED: i64 = 2;

pub(super) fn hexpire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::SECONDS, "hexpire")
}

pub(super) fn hpexpire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::MILLISECONDS, "hpexpire")
}

pub(super) fn hexpireat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::UNIX_SECONDS, "hexpireat")
}

pub(super) fn hpexpireat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    expire(ctx, args, Unit::UNIX_MILLISECONDS, "hpexpireat")
}

fn expire(ctx: &mut Ctx<'_>, args: &[&[u8]], unit: Unit, command: &str) -> CommandResult {
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let (tx, reply) = ctx.tx_and_reply();
    tx.get_value::<HashValue>(db, key)?;
    let at = unit.moment(args[2], now_ms, command)?;
    let condition = condition(args[3]);
    let words = &args[if condition.is_some() { 4 } else { 3 }..];
    let names = fields::parse(words, fields::NOT_POSITIVE_HERE)?;
    reply.array(names.len());
    let (mut set, mut removed) = (false, false);
    let changed_names = || tx.changed_names(EventClass::HASH);
    let (mut set_names, mut removed_names) = (changed_names(), changed_names());
    let outcome = tx.edit_hash(db, key, |edit| {
        for name in names {
            let result = match edit.expire_at(name) {
                None => NO_FIELD,
                Some(old) if condition.is_some_and(|allows| !allows(old, at)) => NOT_MET,
                Some(_) if at <= now_ms => {
                    if edit.remove(name) {
                        removed = true;
                        removed_names.push(name);
                    }
                    REMOVED
                }
                Some(_) => {
                    edit.set_expiry(name, at);
                    set = true;
                    set_names.push(name);
                    DONE
                }
            };
            reply.integer(result);
        }
    })?;
    if outcome.is_none() {
        names.iter().for_each(|_| reply.integer(NO_FIELD));
    }
    if set {
        tx.notify_of(EventClass::HASH, "hexpire", db, key, &set_names);
    }
    if removed {
        tx.notify_removal_of(EventClass::HASH, "hdel", db, key, &removed_names);
    }
    Ok(())
}
