//! `COMMAND`: the command table, for clients.

mod docs;
mod info;
mod keys;
mod list;

use crate::kernel::command_id::CommandId;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::CommandResult;
use crate::kernel::spec::{CommandSpec, Flags, Handler, KeySpec, LockNeed, Part};
use crate::shared::help::HELP;

const FLAGS: Flags = Flags::LOADING.or(Flags::STALE);

pub(crate) const COMMANDS: &[CommandSpec] = &[CommandSpec {
    name: "command",
    arity: -1,
    flags: FLAGS,
    keys: KeySpec::None,
    part: Part::None,
    locks: LockNeed::None,
    handler: Handler::RunOrContainer(info::all),
    subcommands: &[
        CommandSpec::without_keys("count", 2, FLAGS, LockNeed::None, count),
        CommandSpec::without_keys("list", -2, FLAGS, LockNeed::None, list::list),
        CommandSpec::without_keys("info", -2, FLAGS, LockNeed::None, info::info),
        CommandSpec::without_keys("docs", -2, FLAGS, LockNeed::None, docs::docs),
        CommandSpec::without_keys("getkeys", -3, FLAGS, LockNeed::None, keys::getkeys),
        CommandSpec::without_keys(
            "getkeysandflags",
            -3,
            FLAGS,
            LockNeed::None,
            keys::getkeysandflags,
        ),
        HELP,
    ],
}];

fn count(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let count = top_level(ctx).len();
    ctx.reply.integer(count as i64);
    Ok(())
}

/// The commands that are nobody's subcommand.
fn top_level(ctx: &Ctx<'_>) -> Vec<CommandId> {
    let table = ctx.node.table;
    table.iter().filter(|(_, entry)| entry.parent.is_none()).map(|(id, _)| id).collect()
}

/// What is said about a command beyond what the table has.
fn doc_of(ctx: &Ctx<'_>, id: CommandId) -> Option<&'static ladon_command_docs::CommandDoc> {
    ladon_command_docs::find(&ctx.node.table.entry(id).full_name)
}
