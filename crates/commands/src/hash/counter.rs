//! HINCRBY, HINCRBYFLOAT. They keep a field's expiry.

use ladon_engine::{EventClass, Key};
use ladon_kernel::command::args::integer;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::{LongDouble, parse_i64};

pub(super) fn hincrby(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let delta = integer(args[3])?;
    let (db, key, name) = (ctx.db(), ctx.first_key(args), args[2]);
    let sum = ctx.tx().edit_or_create_hash(db, key, &[], |edit| {
        let (old, at) = match edit.look(name) {
            Some((value, at)) => {
                let old = parse_i64(value);
                (old.ok_or(CommandError::text("ERR hash value is not an integer"))?, at)
            }
            None => (0, 0),
        };
        let sum = old
            .checked_add(delta)
            .ok_or(CommandError::text("ERR increment or decrement would overflow"))?;
        edit.set(name, itoa::Buffer::new().format(sum).as_bytes(), at);
        Ok::<i64, CommandError>(sum)
    })??;
    notify(ctx, "hincrby", name, key);
    ctx.reply.integer(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let delta = LongDouble::parse(args[3]).ok_or(CommandError::NotFloat)?;
    if !delta.is_finite() {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let (db, key, name) = (ctx.db(), ctx.first_key(args), args[2]);
    let text = ctx.tx().edit_or_create_hash(db, key, &[], |edit| {
        let (old, at) = edit.look(name).unwrap_or((b"0", 0));
        let old =
            LongDouble::parse(old).ok_or(CommandError::text("ERR hash value is not a float"))?;
        let sum = old
            .checked_add(delta)
            .filter(|sum| sum.is_finite())
            .ok_or(CommandError::text("ERR increment would produce NaN or Infinity"))?;
        let mut text = Vec::with_capacity(32);
        sum.write_human(&mut text);
        edit.set(name, &text, at);
        Ok::<Vec<u8>, CommandError>(text)
    })??;
    notify(ctx, "hincrbyfloat", name, key);
    ctx.reply.bulk(&text);
    Ok(())
}

fn notify(ctx: &mut Ctx<'_>, event: &'static str, name: &[u8], key: Key<'_>) {
    let db = ctx.db();
    let tx = ctx.tx();
    let mut changed = tx.changed_names(EventClass::HASH);
    changed.push(name);
    tx.notify_of(EventClass::HASH, event, db, key, &changed);
}
