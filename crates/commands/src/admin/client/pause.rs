//! `CLIENT PAUSE` and `UNPAUSE`.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::shared::Paused;

pub(super) fn pause(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let what = match args[3..] {
        [] => Paused::All,
        [mode] if is(mode, "ALL") => Paused::All,
        [mode] if is(mode, "WRITE") => Paused::Writes,
        [_] => return Err(CommandError::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => {
            return Err(CommandError::err(format_args!(
                "unknown subcommand or wrong number of arguments for '{}'. Try CLIENT HELP.",
                shown(args[1])
            )));
        }
    };
    let pausing = match ctx.session.pausing.take() {
        Some(pausing) => Some(pausing),
        None => args::timeout(args[2], ctx.now_ms)?.map(|until_ms| ctx.node.pause(until_ms, what)),
    };
    // OK means that no write is in progress any more: another thread may have let one in before it
    // saw the pause. A transaction cannot wait; its OK says only that the pause has begun.
    if let Some(generation) = pausing
        && !ctx.in_exec
        && !ctx.node.is_pause_seen(generation, ctx.local.thread)
    {
        ctx.session.pausing = pausing;
        ctx.flow = Flow::Again;
        return Ok(());
    }
    // What other clients were told before is as safe as this connection asks.
    ctx.depend_on(ctx.node.durability.reserved());
    ctx.reply.ok();
    Ok(())
}

pub(super) fn unpause(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.unpause();
    ctx.reply.ok();
    Ok(())
}
