//! `SCRIPT` and `FUNCTION`, as far as they can be answered truthfully without scripts and
//! functions. Test suites clean up with the two `FLUSH` commands.

use crate::kernel::args::is;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use crate::kernel::spec::{Code, LockNeed};
use crate::shared::help::HELP;

pub(crate) const COMMANDS: &[Code] = &[
    Code::container("function", &[Code::with_locks("flush", LockNeed::None, function_flush), HELP]),
    Code::container(
        "script",
        &[
            Code::with_locks("exists", LockNeed::None, exists),
            Code::with_locks("flush", LockNeed::None, script_flush),
            Code::with_locks("kill", LockNeed::None, kill),
            HELP,
        ],
    ),
];

fn function_flush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    flush(ctx, args, "FUNCTION FLUSH only supports SYNC|ASYNC option")
}

fn script_flush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    flush(ctx, args, "SCRIPT FLUSH only support SYNC|ASYNC option")
}

/// There are none, so all of them are removed at once.
fn flush(ctx: &mut Ctx<'_>, args: &[&[u8]], usage: &str) -> CommandResult {
    match args {
        [_, _] => {}
        [_, _, how] if is(how, "sync") || is(how, "async") => {}
        _ => return Err(CommandError::err(usage)),
    }
    ctx.reply.ok();
    Ok(())
}

fn exists(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let asked = &args[2..];
    ctx.reply.array(asked.len());
    for _ in asked {
        ctx.reply.integer(0);
    }
    Ok(())
}

fn kill(_ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    Err(CommandError::text("NOTBUSY No scripts in execution right now."))
}
