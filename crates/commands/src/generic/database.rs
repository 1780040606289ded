//! Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.

use ladon_kernel::command::args::{int32, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn dbsize(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let db = ctx.db();
    let keys = ctx.tx().len(db);
    ctx.reply.integer(keys as i64);
    Ok(())
}

pub(super) fn flushdb(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_mode(args)?;
    let db = ctx.db();
    ctx.tx().flush(db);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn flushall(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_mode(args)?;
    for db in 0..ctx.keyspace().databases() {
        ctx.tx().flush(db);
    }
    ctx.reply.ok();
    Ok(())
}

/// `ASYNC` or `SYNC`: with either, the data is gone when the reply is written, and its memory is
/// freed in the background.
fn check_mode(args: &[&[u8]]) -> Result<(), CommandError> {
    match args {
        [_] => Ok(()),
        [_, mode] if is(mode, "async") || is(mode, "sync") => Ok(()),
        _ => Err(CommandError::Syntax),
    }
}

pub(super) fn swapdb(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let first = int32(args[1]).ok_or(CommandError::text("ERR invalid first DB index"))?;
    let second = int32(args[2]).ok_or(CommandError::text("ERR invalid second DB index"))?;
    let databases = ctx.keyspace().databases();
    let number = |index: i32| u16::try_from(index).ok().filter(|&number| number < databases);
    let (Some(first), Some(second)) = (number(first), number(second)) else {
        return Err(CommandError::text("ERR DB index is out of range"));
    };
    if first != second {
        ctx.tx().swap(first, second);
    }
    ctx.reply.ok();
    Ok(())
}
