//! `COMMANDLOG`, and `SLOWLOG`, which is one part of it.

use crate::shared::help::HELP;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::Node;
use ladon_kernel::statistics::command_logs::CommandLog;

pub(crate) const COMMANDS: &[Code] = &[
    Code::container(
        "slowlog",
        &[
            Code::with_locks("get", LockNeed::None, slow_get),
            Code::with_locks("len", LockNeed::None, slow_len),
            Code::with_locks("reset", LockNeed::None, slow_reset),
            HELP,
        ],
    ),
    Code::container(
        "commandlog",
        &[
            Code::with_locks("get", LockNeed::None, get),
            Code::with_locks("len", LockNeed::None, len),
            Code::with_locks("reset", LockNeed::None, reset),
            HELP,
        ],
    ),
];

/// The log that a word names.
fn log<'a>(node: &'a Node, word: &[u8]) -> Result<&'a CommandLog, CommandError> {
    let logs = &node.command_logs;
    match word {
        word if is(word, "slow") => Ok(&logs.slow),
        word if is(word, "large-request") => Ok(&logs.large_request),
        word if is(word, "large-reply") => Ok(&logs.large_reply),
        _ => Err(CommandError::text(
            "ERR type should be one of the following: slow, large-request, large-reply",
        )),
    }
}

fn slow_get(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    const COUNT: usize = 10;
    let count = match args {
        [_, _] => COUNT,
        [_, _, text] => count(text)?,
        _ => return Err(CommandError::subcommand(args)),
    };
    answer(ctx, &ctx.node.command_logs.slow, count)
}

fn get(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    // As in Valkey, the type is checked first.
    let log = log(ctx.node, args[3])?;
    answer(ctx, log, count(args[2])?)
}

/// A number of entries; -1 for all.
fn count(text: &[u8]) -> Result<usize, CommandError> {
    match args::integer(text) {
        Ok(-1) => Ok(usize::MAX),
        Ok(count) if count >= 0 => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(CommandError::err("count should be greater than or equal to -1")),
    }
}

fn answer(ctx: &mut Ctx<'_>, log: &CommandLog, count: usize) -> CommandResult {
    // Entries show arguments, those of changes too.
    ctx.depend_on(ctx.node.durability.reserved());
    let entries = log.newest(count);
    ctx.reply.array(entries.len());
    for entry in entries {
        ctx.reply.array(6);
        ctx.reply.integer(entry.id as i64);
        ctx.reply.integer(entry.unix_seconds as i64);
        ctx.reply.integer(entry.amount as i64);
        ctx.reply.array(entry.args.len());
        for arg in entry.args {
            ctx.reply.bulk(arg);
        }
        ctx.reply.bulk(entry.addr);
        ctx.reply.bulk(entry.name);
    }
    Ok(())
}

fn slow_len(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.integer(ctx.node.command_logs.slow.len() as i64);
    Ok(())
}

fn len(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let length = log(ctx.node, args[2])?.len();
    ctx.reply.integer(length as i64);
    Ok(())
}

fn slow_reset(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.command_logs.slow.clear();
    ctx.reply.ok();
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    log(ctx.node, args[2])?.clear();
    ctx.reply.ok();
    Ok(())
}
