//! `CLIENT PAUSE` and `UNPAUSE`.

use crate::args::{self, is};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::node::Paused;

pub(super) fn pause(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let what = match args[3..] {
        [] => Paused::All,
        [mode] if is(mode, "ALL") => Paused::All,
        [mode] if is(mode, "WRITE") => Paused::Writes,
        [_] => return Err(CommandError::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => {
            return Err(CommandError::err(format_args!(
                "unknown subcommand or wrong number of arguments for '{}'. Try CLIENT HELP.",
                args::shown(args[1])
            )));
        }
    };
    if let Some(until_ms) = args::timeout(args[2], ctx.now_ms)? {
        ctx.node.pause(until_ms, what);
    }
    ctx.reply.ok();
    Ok(())
}

pub(super) fn unpause(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.unpause();
    ctx.reply.ok();
    Ok(())
}
