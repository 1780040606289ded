//! A value under another name or in another database: RENAME, RENAMENX, COPY, MOVE.

use crate::args::{database, is};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};

const SAME: CommandError = CommandError::text("ERR source and destination objects are the same");

pub(super) fn rename(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, from, to) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]));
    let tx = ctx.tx();
    if !tx.exists(db, from) {
        return Err(CommandError::NoSuchKey);
    }
    if from.bytes != to.bytes {
        tx.rename(db, from, db, to);
    }
    ctx.reply.ok();
    Ok(())
}

pub(super) fn renamenx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, from, to) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]));
    let tx = ctx.tx();
    if !tx.exists(db, from) {
        return Err(CommandError::NoSuchKey);
    }
    // The key itself, should it be both, exists.
    let free = !tx.exists(db, to);
    if free {
        tx.rename(db, from, db, to);
    }
    ctx.reply.integer(i64::from(free));
    Ok(())
}

pub(super) fn copy(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (mut number, mut replace) = (ctx.session.db, false);
    let mut words = &args[3..];
    while let [word, rest @ ..] = words {
        words = rest;
        if is(word, "replace") {
            replace = true;
        } else if is(word, "db")
            && let [text, rest @ ..] = rest
        {
            number = database(ctx, text)?;
            words = rest;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let (from_db, to_db) = (ctx.db(), ctx.keyspace().select(number));
    let (from, to) = (ctx.key(args[1]), ctx.key(args[2]));
    if from_db == to_db && from.bytes == to.bytes {
        return Err(SAME);
    }
    let tx = ctx.tx();
    let copies = tx.read(from_db, from).is_some() && (replace || !tx.exists(to_db, to));
    if copies {
        tx.copy(from_db, from, to_db, to);
    }
    ctx.reply.integer(i64::from(copies));
    Ok(())
}

pub(super) fn move_key(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let number = database(ctx, args[2])?;
    let (from_db, to_db) = (ctx.db(), ctx.keyspace().select(number));
    if from_db == to_db {
        return Err(SAME);
    }
    let key = ctx.first_key(args);
    let tx = ctx.tx();
    let moves = tx.exists(from_db, key) && !tx.exists(to_db, key);
    if moves {
        tx.rename(from_db, key, to_db, key);
    }
    ctx.reply.integer(i64::from(moves));
    Ok(())
}
