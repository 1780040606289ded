//! `LADON.FIBER`: the fibers of the program that runs beside the data, for who has to end one.

use crate::shared::help::HELP;
use ladon_kernel::command::args::integer_in;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::program::Program;

const NO_PROGRAM: CommandError =
    CommandError::text("ERR no program runs here: see `ladon tarantool`");

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "ladon.fiber",
    &[
        Code::with_locks("kill", LockNeed::None, kill),
        Code::with_locks("running", LockNeed::None, running),
        HELP,
    ],
)];

fn program<'a>(ctx: &Ctx<'a>) -> Result<&'a dyn Program, CommandError> {
    ctx.node.program.as_deref().ok_or(NO_PROGRAM)
}

/// The fiber that runs, and for how many milliseconds it has without a wait; nil if none does.
fn running(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    match program(ctx)?.running() {
        None => ctx.reply.null(),
        Some((fiber, milliseconds)) => {
            ctx.reply.array(2);
            ctx.reply.integer(fiber as i64);
            ctx.reply.integer(milliseconds as i64);
        }
    }
    Ok(())
}

fn kill(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let fiber = integer_in(args[2], 1, i64::MAX)? as u64;
    if !program(ctx)?.kill(fiber) {
        return Err(CommandError::text("TRYAGAIN too many fibers are to end"));
    }
    ctx.reply.ok();
    Ok(())
}
