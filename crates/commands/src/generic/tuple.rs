//! Generic commands on tuples of mounted spaces: they exist and can be deleted, never expire, and
//! stay where they are.

use super::{database, relocate};
use crate::shared::tuple::{TupleKey, is_ordinary, locate, refused, require};
use ladon_engine::{EventClass, Key, MOUNTS_DATABASE, Tx};
use ladon_kernel::command::args::{int32, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::mounted;
use ladon_record::DbId;
use ladon_space::Statement;

/// DEL and UNLINK, of tuples and of ordinary keys, and of an ordinary key under a prefix.
pub(super) fn del(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mut found = 0;
    // What is refused is refused before anything is deleted.
    let mut tuples: Vec<Option<TupleKey>> = Vec::with_capacity(args.len() - 1);
    for name in &args[1..] {
        let is_ordinary = is_ordinary(ctx, name);
        tuples.push(if is_ordinary { None } else { locate(ctx, name)? });
    }
    for (name, tuple) in args[1..].iter().zip(tuples) {
        let (db, key) = (ctx.db(), ctx.key(name));
        found += i64::from(match tuple {
            Some(at) => delete(ctx.tx(), &at)?,
            None => delete_ordinary(ctx.tx(), db, key),
        });
    }
    ctx.reply.integer(found);
    Ok(())
}

fn delete(tx: &mut Tx<'_>, at: &TupleKey) -> Result<bool, CommandError> {
    let delete = Statement::Delete { index: 0, key: &at.key };
    let written = tx.write_tuple(at.space, delete).map_err(|error| refused(&error))?;
    Ok(written.old.is_some())
}

fn delete_ordinary(tx: &mut Tx<'_>, db: DbId, key: Key<'_>) -> bool {
    let deleted = tx.delete(db, key);
    if deleted {
        tx.notify(EventClass::GENERIC, "del", db, key);
    }
    deleted
}

/// EXISTS and TOUCH.
pub(super) fn exists(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mut found = 0;
    for name in &args[1..] {
        let exists = match locate(ctx, name)? {
            Some(at) => is_there(ctx, &at)?,
            None => {
                let (db, key) = (ctx.db(), ctx.key(name));
                ctx.tx().inspect(db, key).is_some()
            }
        };
        found += i64::from(exists);
    }
    ctx.reply.integer(found);
    Ok(())
}

fn is_there(ctx: &mut Ctx<'_>, at: &TupleKey) -> Result<bool, CommandError> {
    let found = ctx.tx().mounted(at.space).get(0, &at.key);
    Ok(found.map_err(|error| refused(&error))?.is_some())
}

pub(super) fn type_of(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let at = require(ctx, args[1])?;
    let name = if is_there(ctx, &at)? { "hash" } else { "none" };
    ctx.reply.simple(name);
    Ok(())
}

/// TTL and its like: a tuple does not expire.
pub(super) fn ttl(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let at = require(ctx, args[1])?;
    let answer = if is_there(ctx, &at)? { -1 } else { -2 };
    ctx.reply.integer(answer);
    Ok(())
}

/// PERSIST: there is no expiry to remove.
pub(super) fn persist(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    require(ctx, args[1])?;
    ctx.reply.integer(0);
    Ok(())
}

pub(super) fn rename(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.session.db;
    relocate(ctx, args, (db, args[2]), relocate::rename)
}

pub(super) fn renamenx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.session.db;
    relocate(ctx, args, (db, args[2]), relocate::renamenx)
}

pub(super) fn copy(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mut db = ctx.session.db;
    // As COPY reads its options; what is wrong with them is its own to say.
    if let Some(at) = args[3..].iter().position(|word| is(word, "db"))
        && let Some(text) = args.get(3 + at + 1)
    {
        db = ctx.database_number(text)?;
    }
    relocate(ctx, args, (db, args[2]), relocate::copy)
}

pub(super) fn move_key(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.database_number(args[2])?;
    relocate(ctx, args, (db, args[1]), relocate::move_key)
}

/// Runs a command that takes a value elsewhere: from an ordinary key, and not to a tuple's.
fn relocate(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    (to_db, to): (u16, &[u8]),
    run: fn(&mut Ctx<'_>, &[&[u8]]) -> CommandResult,
) -> CommandResult {
    let is_tuple = |ctx: &Ctx<'_>, db: u16, key: &[u8]| {
        db == MOUNTS_DATABASE && mounted::catalog(ctx).mount_of(key).is_some()
    };
    let takes_tuple = is_tuple(ctx, ctx.session.db, args[1]) && !is_ordinary(ctx, args[1]);
    if takes_tuple || is_tuple(ctx, to_db, to) {
        return mounted::refuse(ctx, args);
    }
    run(ctx, args)
}

/// SWAPDB: what is under a prefix would be elsewhere.
pub(super) fn swapdb(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let is_of_mounts = |text: &[u8]| int32(text) == Some(i32::from(MOUNTS_DATABASE));
    if is_of_mounts(args[1]) || is_of_mounts(args[2]) {
        return Err(CommandError::text(
            "ERR SWAPDB does not exchange database 0 while spaces are mounted in it",
        ));
    }
    database::swapdb(ctx, args)
}
