//! HSET, HMSET, HSETNX, HDEL.

use ladon_engine::EventClass;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn hset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let added = set_all(ctx, args, "hset")?;
    ctx.reply.integer(added);
    Ok(())
}

pub(super) fn hmset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    set_all(ctx, args, "hmset")?;
    ctx.reply.ok();
    Ok(())
}

/// How many fields are new.
#[inline]
fn set_all(ctx: &mut Ctx<'_>, args: &[&[u8]], command: &str) -> Result<i64, CommandError> {
    let (pairs, rest) = args[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(CommandError::wrong_number(command));
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let added = ctx.tx().edit_or_create_hash(db, key, &args[2..], |edit| edit.set_all(pairs))?;
    let tx = ctx.tx();
    let mut names = tx.changed_names(EventClass::HASH);
    names.extend(pairs.iter().map(|[name, _]| *name));
    tx.notify_of(EventClass::HASH, "hset", db, key, &names);
    Ok(added as i64)
}

pub(super) fn hsetnx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, name, value) = (ctx.db(), ctx.first_key(args), args[2], args[3]);
    let added = ctx.tx().edit_or_create_hash(db, key, &[], |edit| {
        edit.get(name).is_none() && edit.set(name, value, 0)
    })?;
    if added {
        let tx = ctx.tx();
        let mut names = tx.changed_names(EventClass::HASH);
        names.push(name);
        tx.notify_of(EventClass::HASH, "hset", db, key, &names);
    }
    ctx.reply.integer(i64::from(added));
    Ok(())
}

pub(super) fn hdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    let mut names = tx.changed_names(EventClass::HASH);
    let removed = tx.edit_hash(db, key, |edit| {
        if !names.are_wanted() {
            return edit.remove_all(&args[2..]);
        }
        let removed: Vec<&[u8]> =
            args[2..].iter().copied().filter(|name| edit.remove(name)).collect();
        names.extend(removed.iter().copied());
        removed.len()
    })?;
    let removed = removed.unwrap_or(0);
    if removed > 0 {
        tx.notify_removal_of(EventClass::HASH, "hdel", db, key, &names);
    }
    ctx.reply.integer(removed as i64);
    Ok(())
}
