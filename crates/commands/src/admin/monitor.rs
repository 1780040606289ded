//! `MONITOR`: showing a connection what all others have executed.

use ladon_kernel::client::clients::Monitor;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[Code] = &[Code::with_locks("monitor", LockNeed::None, monitor)];

fn monitor(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if ctx.in_exec {
        // The transaction's monitor lines would appear in the middle of its own reply.
        return Err(CommandError::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    ctx.session.monitor = true;
    ctx.session.info.monitor.store(true, Relaxed);
    let (client, thread) = (ctx.session.info.id, ctx.local.thread);
    ctx.node.clients.add_monitor(Monitor { client, thread, slot: ctx.session.info.slot });
    ctx.reply.ok();
    Ok(())
}
