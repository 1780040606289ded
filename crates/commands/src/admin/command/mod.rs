//! `COMMAND`: the command table, for clients.

mod docs;
mod info;
mod keys;
mod list;

use crate::shared::help::HELP;
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "command",
    &[
        Code::with_locks("count", LockNeed::None, count),
        Code::with_locks("list", LockNeed::None, list::list),
        Code::with_locks("info", LockNeed::None, info::info),
        Code::with_locks("docs", LockNeed::None, docs::docs),
        Code::with_locks("getkeys", LockNeed::None, keys::getkeys),
        Code::with_locks("getkeysandflags", LockNeed::None, keys::getkeysandflags),
        HELP,
    ],
)
.alone(info::all)];

fn count(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let count = top_level(ctx).len();
    ctx.reply.integer(count as i64);
    Ok(())
}

/// The commands that are not subcommands.
fn top_level(ctx: &Ctx<'_>) -> Vec<CommandId> {
    let table = ctx.node.table;
    table.iter().filter(|(_, entry)| entry.parent.is_none()).map(|(id, _)| id).collect()
}
