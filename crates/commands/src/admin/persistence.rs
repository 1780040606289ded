//! Saving, and stopping: `SAVE`, `BGSAVE`, `BGREWRITEAOF`, `LASTSAVE`, `SHUTDOWN`.
//!
//! Redis' RDB file and the rewritten AOF are one thing here, the checkpoint.

use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::durability::{CheckpointError, Shutdown};
use ladon_kernel::request::outcome::Flow;

const BUSY: CommandError = CommandError::text("ERR Background save already in progress");

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("save", LockNeed::None, save),
    Code::with_locks("bgsave", LockNeed::None, bgsave),
    Code::with_locks("bgrewriteaof", LockNeed::None, bgrewriteaof),
    Code::with_locks("lastsave", LockNeed::None, lastsave),
    Code::with_locks("shutdown", LockNeed::None, shutdown).with(Flags::BUSY_UNLESS_NOSAVE),
];

fn save(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.durability.checkpoint().map_err(refused)?;
    ctx.reply.ok();
    Ok(())
}

fn refused(error: CheckpointError) -> CommandError {
    match error {
        CheckpointError::Busy => BUSY,
        CheckpointError::Failed(reason) => CommandError::err(reason),
    }
}

/// In Redis, `SCHEDULE` waits for a rewrite of the AOF. That is a checkpoint here, so there is
/// nothing else to wait for.
fn bgsave(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match args {
        [_] => {}
        [_, schedule] if is(schedule, "schedule") => {}
        _ => return Err(CommandError::Syntax),
    }
    ctx.node.durability.start_checkpoint().map_err(refused)?;
    ctx.reply.simple("Background saving started");
    Ok(())
}

fn bgrewriteaof(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.durability.start_checkpoint().map_err(|error| match error {
        CheckpointError::Busy => {
            CommandError::text("ERR Background append only file rewriting already in progress")
        }
        error => refused(error),
    })?;
    ctx.reply.simple("Background append only file rewriting started");
    Ok(())
}

fn lastsave(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.integer(ctx.node.durability.status().last_checkpoint_unix as i64);
    Ok(())
}

fn shutdown(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (mut save, mut force, mut other, mut abort) = (None, false, false, false);
    for word in &args[1..] {
        if is(word, "nosave") && save != Some(true) {
            save = Some(false);
        } else if is(word, "save") && save != Some(false) {
            save = Some(true);
        } else if is(word, "force") {
            force = true;
        } else if is(word, "now") {
            // Concerns waiting for replicas, of which there are none.
            other = true;
        } else if is(word, "abort") {
            abort = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if abort {
        if save.is_some() || force || other {
            return Err(CommandError::Syntax);
        }
        // A shutdown in progress closes connections, so no client could send this during one.
        return Err(CommandError::err("No shutdown in progress."));
    }
    // The data loaded so far is less than what the files hold.
    if ctx.node.loading.is_some() {
        save = Some(false);
    }
    if save == Some(true) {
        match save_for_good(ctx) {
            Ok(()) => save = Some(false),
            Err(_) if force => {}
            Err(reason) => {
                tracing::error!("SHUTDOWN SAVE: {reason}");
                return Err(CommandError::err("Errors trying to SHUTDOWN. Check logs."));
            }
        }
    }
    ctx.node.durability.request_shutdown(Shutdown { save, force });
    ctx.flow = Flow::Drop;
    Ok(())
}

/// Makes a checkpoint as soon as no other is in progress.
pub(crate) fn save_for_good(ctx: &Ctx<'_>) -> Result<(), String> {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
    loop {
        match ctx.node.durability.checkpoint() {
            Ok(()) => return Ok(()),
            Err(CheckpointError::Busy) => ctx.node.process.sleep(PAUSE),
            Err(CheckpointError::Failed(reason)) => return Err(reason),
        }
    }
}
