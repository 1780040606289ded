//! Functions: `FUNCTION` and `FCALL`.
//!
//! The catalog of libraries is part of the data (`ladon_engine`'s `libraries.rs`): it is in the log
//! and in checkpoints, and changes in transactions that hold all locks. A library's code is run
//! when it is loaded, which says what its functions are (`load.rs`), and once more by each thread
//! that is asked for one of them (`fcall.rs`).

mod fcall;
mod header;
mod list;
mod load;
mod payload;
mod restore;
mod stats;

use crate::shared::help::HELP;
use ladon_engine::{Library, Locks};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use std::sync::Arc;

/// `FCALL`.
pub(super) const FCALL: Code = super::runs_script("fcall", fcall::fcall)
    .with(Flags::RUNS_SCRIPT.or(Flags::MAY_REPLICATE))
    .declared_by(fcall::declared);

/// `FCALL_RO`.
pub(super) const FCALL_RO: Code =
    super::runs_script("fcall_ro", fcall::fcall_ro).with(Flags::RUNS_SCRIPT);

/// `LADON.FCALL`: a function of one library.
pub(super) const FCALL_OF: Code = super::runs_script("ladon.fcall", fcall::fcall_of)
    .with(Flags::RUNS_SCRIPT.or(Flags::MAY_REPLICATE))
    .declared_by(fcall::declared_of);

/// `LADON.FCALL_RO`.
pub(super) const FCALL_RO_OF: Code =
    super::runs_script("ladon.fcall_ro", fcall::fcall_ro_of).with(Flags::RUNS_SCRIPT);

/// `FUNCTION`.
pub(super) const FUNCTION: Code = Code::container(
    "function",
    &[
        Code::with_locks("delete", LockNeed::All, delete),
        Code::with_locks("dump", LockNeed::Own, list::dump),
        Code::with_locks("flush", LockNeed::All, flush),
        Code::with_locks("kill", LockNeed::None, stats::kill),
        Code::with_locks("list", LockNeed::Own, list::list),
        Code::with_locks("load", LockNeed::Own, load::load),
        Code::with_locks("restore", LockNeed::Own, restore::restore),
        Code::with_locks("stats", LockNeed::None, stats::stats),
        HELP,
    ],
);

fn delete(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if !ctx.tx().delete_library(args[2]) {
        return Err(CommandError::text("ERR Library not found"));
    }
    ctx.reply.ok();
    Ok(())
}

/// With either mode, the libraries are gone when the reply is written, and their memory is freed in
/// the background.
fn flush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match args {
        [_, _] => {}
        [_, _, how] if is(how, "sync") || is(how, "async") => {}
        [_, _, _] => {
            return Err(CommandError::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        }
        _ => return Err(CommandError::subcommand(args)),
    }
    ctx.tx().flush_libraries();
    ctx.reply.ok();
    Ok(())
}

/// All libraries, by name.
fn all(ctx: &mut Ctx<'_>) -> Result<Vec<Arc<Library>>, CommandError> {
    ctx.on(Locks::Partition(0), |tx| tx.libraries())
}

fn exists(name: &[u8]) -> CommandError {
    CommandError::err(format_args!("Library '{}' already exists", String::from_utf8_lossy(name)))
}

fn function_exists(name: &[u8]) -> CommandError {
    CommandError::err(format_args!("Function {} already exists", String::from_utf8_lossy(name)))
}
