//! Options that a connection sets for itself.

use ladon_kernel::client::session::ReplyMode;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn reply(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mode = &mut ctx.session.reply_mode;
    if is(args[2], "ON") {
        *mode = ReplyMode::On;
        ctx.reply.ok();
    } else if is(args[2], "OFF") {
        *mode = ReplyMode::Off;
    } else if is(args[2], "SKIP") {
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

pub(super) fn no_evict(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let on = on_or_off(args[2])?;
    ctx.session.info.no_evict.store(on, Relaxed);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn no_touch(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let on = on_or_off(args[2])?;
    ctx.session.no_touch = on;
    ctx.session.info.no_touch.store(on, Relaxed);
    ctx.reply.ok();
    Ok(())
}

fn on_or_off(word: &[u8]) -> Result<bool, CommandError> {
    match word {
        word if is(word, "ON") => Ok(true),
        word if is(word, "OFF") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}
