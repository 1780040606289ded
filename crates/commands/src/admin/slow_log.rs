//! `SLOWLOG`.

use crate::kernel::args;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use crate::kernel::spec::{Code, LockNeed};
use crate::shared::help::HELP;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "slowlog",
    &[
        Code::with_locks("get", LockNeed::None, get),
        Code::with_locks("len", LockNeed::None, len),
        Code::with_locks("reset", LockNeed::None, reset),
        HELP,
    ],
)];

fn get(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    const COUNT: usize = 10;
    let count = match args {
        [_, _] => COUNT,
        [_, _, count] => match args::integer(count) {
            Ok(-1) => usize::MAX,
            Ok(count) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
            _ => return Err(CommandError::err("count should be greater than or equal to -1")),
        },
        _ => return Err(CommandError::subcommand(args)),
    };
    // Entries show arguments, those of changes too.
    ctx.depend_on(ctx.node.durability.reserved());
    let entries = ctx.node.slow_log.newest(count);
    ctx.reply.array(entries.len());
    for entry in entries {
        ctx.reply.array(6);
        ctx.reply.integer(entry.id as i64);
        ctx.reply.integer(entry.unix_seconds as i64);
        ctx.reply.integer(entry.microseconds as i64);
        ctx.reply.array(entry.args.len());
        for arg in entry.args {
            ctx.reply.bulk(arg);
        }
        ctx.reply.bulk(entry.addr);
        ctx.reply.bulk(entry.name);
    }
    Ok(())
}

fn len(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.integer(ctx.node.slow_log.len() as i64);
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.slow_log.clear();
    ctx.reply.ok();
    Ok(())
}
