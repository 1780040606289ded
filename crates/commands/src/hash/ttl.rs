//! HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME, HPERSIST.

use super::fields;
use ladon_engine::EventClass;
use ladon_engine::types::hash::HashValue;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;

pub(super) fn httl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    answer(ctx, args, |at| at.saturating_sub(now_ms).div_ceil(1000))
}

pub(super) fn hpttl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    answer(ctx, args, |at| at.saturating_sub(now_ms))
}

pub(super) fn hexpiretime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, |at| at.div_ceil(1000))
}

pub(super) fn hpexpiretime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, |at| at)
}

/// Replies with `show` of each field's expiry time.
fn answer(ctx: &mut Ctx<'_>, args: &[&[u8]], show: impl Fn(u64) -> u64) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let hash = tx.read_value::<HashValue>(db, key)?;
    let names = fields::parse(&args[2..], fields::NOT_POSITIVE)?;
    reply.array(names.len());
    for name in names {
        reply.integer(match hash.and_then(|hash| hash.expire_at(hasher, name)) {
            None => NO_FIELD,
            Some(0) => NO_EXPIRY,
            Some(at) => show(at) as i64,
        });
    }
    Ok(())
}

pub(super) fn hpersist(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    tx.get_value::<HashValue>(db, key)?;
    let names = fields::parse(&args[2..], fields::NOT_POSITIVE)?;
    reply.array(names.len());
    let mut persisted = false;
    let mut changed = tx.changed_names(EventClass::HASH);
    let outcome = tx.edit_hash(db, key, |edit| {
        for name in names {
            reply.integer(match edit.expire_at(name) {
                None => NO_FIELD,
                Some(0) => NO_EXPIRY,
                Some(_) => {
                    persisted = true;
                    changed.push(name);
                    i64::from(edit.set_expiry(name, 0))
                }
            });
        }
    })?;
    if outcome.is_none() {
        names.iter().for_each(|_| reply.integer(NO_FIELD));
    }
    if persisted {
        tx.notify_of(EventClass::HASH, "hpersist", db, key, &changed);
    }
    Ok(())
}
