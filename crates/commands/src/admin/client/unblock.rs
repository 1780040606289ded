//! `CLIENT UNBLOCK`: ends another client's wait.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::message::{Message, Unserved};
use ladon_kernel::request::outcome::Flow;
use std::sync::atomic::Ordering::Acquire;

pub(super) fn unblock(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let how = match args[3..] {
        [] => Unserved::Timeout,
        [word] if is(word, "timeout") => Unserved::Timeout,
        [word] if is(word, "error") => Unserved::Error,
        [_] => {
            return Err(CommandError::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        _ => return Err(CommandError::subcommand(args)),
    };
    let id = args::integer(args[2])?;
    let client = u64::try_from(id).ok().and_then(|id| ctx.node.clients.find(id));
    let is_held_back = client.as_ref().is_some_and(|client| client.postponed.load(Acquire));
    let waiting = client.filter(|client| {
        let claim = client.claim.lock();
        claim.as_ref().is_some_and(|claim| claim.take())
    });
    if let Some(client) = &waiting {
        let message = Message::Unblock { client: client.id, slot: client.slot, how };
        ctx.node.threads[client.thread].send(message);
    }
    if waiting.is_none()
        && is_held_back
        && !ctx.must_answer()
        && ctx.node.paused(ctx.now_ms).is_none()
    {
        // The pause is over, but the thread has not reached the request yet, which may then wait.
        ctx.flow = Flow::Again;
        return Ok(());
    }
    ctx.reply.integer(i64::from(waiting.is_some()));
    Ok(())
}
