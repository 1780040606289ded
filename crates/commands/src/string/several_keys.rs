//! Several strings at once: MGET, MSET, MSETNX.

use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use crate::shared::long_string::Strings;
use ladon_engine::{EntryRef, EventClass};

pub(super) fn mget(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.db();
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    reply.array(args.len() - 1);
    let mut strings = Strings::default();
    for name in &args[1..] {
        let key = tx.key(name);
        // A value of another type counts as none here.
        strings.answer(reply, tx.read(db, key).map(EntryRef::value), large);
    }
    ctx.reply_rest(strings.into_rest());
    Ok(())
}

pub(super) fn mset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_pairs(args, "mset")?;
    if args.len() == 3 {
        // A single long value is taken over, not copied.
        return super::set::set(ctx, args);
    }
    put_all(ctx, args);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn msetnx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_pairs(args, "msetnx")?;
    if args.len() == 3 {
        return super::set::setnx(ctx, args);
    }
    let db = ctx.db();
    let tx = ctx.tx();
    let any = args[1..].iter().step_by(2).any(|name| {
        let key = tx.key(name);
        tx.get(db, key).is_some()
    });
    if !any {
        put_all(ctx, args);
    }
    ctx.reply.integer(i64::from(!any));
    Ok(())
}

fn check_pairs(args: &[&[u8]], command: &str) -> Result<(), CommandError> {
    if args.len().is_multiple_of(2) {
        let text = format_args!("wrong number of arguments for '{command}' command");
        return Err(CommandError::err(text));
    }
    Ok(())
}

fn put_all(ctx: &mut Ctx<'_>, args: &[&[u8]]) {
    let db = ctx.db();
    let tx = ctx.tx();
    for pair in args[1..].chunks_exact(2) {
        let key = tx.key(pair[0]);
        tx.put_string(db, key, pair[1], 0);
        tx.notify(EventClass::STRING, "set", db, key);
    }
}
