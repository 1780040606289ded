//! Commands on any number of keys of any type: EXISTS, TOUCH, DEL, UNLINK; and TYPE.

use ladon_engine::types::kind_of;
use ladon_engine::{EventClass, Key, Tx};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_record::DbId;

pub(super) fn exists(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    count(ctx, args, |tx, db, key| tx.inspect(db, key).is_some())
}

pub(super) fn touch(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    count(ctx, args, |tx, db, key| tx.touch(db, key))
}

/// DEL and UNLINK: a value that takes long to drop goes to the dropper with either.
pub(super) fn del(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    count(ctx, args, |tx, db, key| {
        let deleted = tx.delete(db, key);
        if deleted {
            tx.notify(EventClass::GENERIC, "del", db, key);
        }
        deleted
    })
}

/// Replies with the number of keys that `check` holds for.
#[inline]
fn count(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    mut check: impl FnMut(&mut Tx<'_>, DbId, Key<'_>) -> bool,
) -> CommandResult {
    let db = ctx.db();
    let first = ctx.first_key(args);
    let tx = ctx.tx();
    let mut found = i64::from(check(tx, db, first));
    for name in &args[2..] {
        let key = tx.key(name);
        found += i64::from(check(tx, db, key));
    }
    ctx.reply.integer(found);
    Ok(())
}

pub(super) fn type_of(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let name = ctx.tx().inspect(db, key).map_or("none", |entry| kind_of(entry.value()).name());
    ctx.reply.simple(name);
    Ok(())
}
