//! A value under another name or in another database: RENAME, RENAMENX, COPY, MOVE.

use ladon_engine::{EventClass, Key, Tx};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::aside::is_much;
use ladon_record::DbId;

const SAME: CommandError = CommandError::text("ERR source and destination objects are the same");

pub(super) fn rename(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, from, to) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]));
    if !ctx.tx().exists(db, from) {
        return Err(CommandError::NoSuchKey);
    }
    let will_be_new = ctx.tx().will_be_new(db, to);
    if from.bytes == to.bytes {
        ctx.reply.ok();
    } else if ctx.relocate(args[1], db, args[2])? {
        // As in Redis, which deletes the key first.
        if will_be_new {
            ctx.tx().notify(EventClass::NEW, "new", db, to);
        }
        notify_rename(ctx, db, from, to);
        ctx.reply.ok();
    }
    Ok(())
}

pub(super) fn renamenx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, from, to) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]));
    let tx = ctx.tx();
    if !tx.exists(db, from) {
        return Err(CommandError::NoSuchKey);
    }
    // If source and destination are the same key, it exists.
    let free = !tx.exists(db, to);
    if !free {
        ctx.reply.integer(0);
    } else if ctx.relocate(args[1], db, args[2])? {
        notify_rename(ctx, db, from, to);
        ctx.reply.integer(1);
    }
    Ok(())
}

fn notify_rename(ctx: &mut Ctx<'_>, db: DbId, from: Key<'_>, to: Key<'_>) {
    let tx = ctx.tx();
    tx.notify(EventClass::GENERIC, "rename_from", db, from);
    tx.notify(EventClass::GENERIC, "rename_to", db, to);
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
            number = ctx.database_number(text)?;
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
    // A value that was stored there meanwhile stays.
    let will_be_new = ctx.tx().will_be_new(to_db, to);
    let is_free = replace || ctx.session.aside.is_none() || !ctx.tx().exists(to_db, to);
    if is_free && ctx.put_computed(to_db, args[2])?.is_some() {
        notify_copy(ctx.tx(), to_db, to, will_be_new);
        ctx.reply.integer(1);
        return Ok(());
    }
    let large = ctx.large_store();
    let tx = ctx.tx();
    let found = tx.read(from_db, from).map(|entry| (entry.expire_at(), is_much(large, entry)));
    let copies = found.is_some() && (replace || !tx.exists(to_db, to));
    if let Some((expire_at, true)) = found.filter(|_| copies)
        && let Some(frozen) = tx.freeze_object(from_db, from)
    {
        ctx.store_aside(&[from], (to_db, args[2], expire_at), move |keyspace| {
            Ok(frozen.copy(keyspace.env()))
        });
        return Ok(());
    }
    if copies {
        tx.copy(from_db, from, to_db, to);
        notify_copy(tx, to_db, to, will_be_new);
    }
    ctx.reply.integer(i64::from(copies));
    Ok(())
}

/// As in Redis, which deletes a key that is replaced first.
fn notify_copy(tx: &mut Tx<'_>, db: DbId, key: Key<'_>, is_new: bool) {
    if is_new {
        tx.notify(EventClass::NEW, "new", db, key);
    }
    tx.notify(EventClass::GENERIC, "copy_to", db, key);
}

pub(super) fn move_key(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let number = ctx.database_number(args[2])?;
    let (from_db, to_db) = (ctx.db(), ctx.keyspace().select(number));
    if from_db == to_db {
        return Err(SAME);
    }
    let key = ctx.first_key(args);
    let tx = ctx.tx();
    let moves = tx.exists(from_db, key) && !tx.exists(to_db, key);
    if !moves {
        ctx.reply.integer(0);
    } else if ctx.relocate(args[1], to_db, args[1])? {
        let tx = ctx.tx();
        tx.notify(EventClass::GENERIC, "move_from", from_db, key);
        tx.notify(EventClass::GENERIC, "move_to", to_db, key);
        ctx.reply.integer(1);
    }
    Ok(())
}
