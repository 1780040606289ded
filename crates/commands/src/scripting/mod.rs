//! Scripts: `EVAL` and its relatives, and `SCRIPT`. `runner.rs` runs scripts and functions as one
//! transaction each. `FUNCTION` answers only what can be answered truthfully without functions: test
//! suites clean up with `FUNCTION FLUSH`.

mod eval;
mod host;
mod runner;
mod script;

use crate::kernel::args::is;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use crate::kernel::flags::Flags;
use crate::kernel::spec::{Code, HandlerFn, LockNeed};
use crate::shared::help::HELP;

pub(crate) const COMMANDS: &[Code] = &[
    runs_script("eval", eval::eval).with(Flags::RUNS_SCRIPT.or(Flags::MAY_REPLICATE)),
    runs_script("eval_ro", eval::eval_ro).with(Flags::RUNS_SCRIPT),
    runs_script("evalsha", eval::evalsha).with(Flags::RUNS_SCRIPT.or(Flags::MAY_REPLICATE)),
    runs_script("evalsha_ro", eval::evalsha_ro).with(Flags::RUNS_SCRIPT),
    Code::container("function", &[Code::with_locks("flush", LockNeed::None, function_flush), HELP]),
    Code::container(
        "script",
        &[
            Code::with_locks("debug", LockNeed::None, script::debug),
            Code::with_locks("exists", LockNeed::None, script::exists),
            Code::with_locks("flush", LockNeed::None, script::flush),
            Code::with_locks("kill", LockNeed::None, script::kill),
            Code::with_locks("load", LockNeed::None, script::load),
            HELP,
        ],
    ),
];

/// A command that takes locks as its script asks for them; inside `EXEC`, it has all.
const fn runs_script(name: &'static str, handler: HandlerFn) -> Code {
    Code::with_locks(name, LockNeed::Own, handler)
}

fn function_flush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match args {
        [_, _] => {}
        [_, _, how] if is(how, "sync") || is(how, "async") => {}
        _ => return Err(CommandError::err("FUNCTION FLUSH only supports SYNC|ASYNC option")),
    }
    ctx.reply.ok();
    Ok(())
}
