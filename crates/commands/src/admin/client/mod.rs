//! CLIENT: a connection asks about itself and about the others.

mod gate;
mod kill;
mod line;
mod list;
mod names;
mod pause;
mod switches;
mod unblock;

use crate::kernel::args::is;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult, shown};
use crate::kernel::spec::{CommandSpec, Flags, LockNeed};

const OWN: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);
const OTHERS: Flags = OWN.or(Flags::ADMIN);

pub(crate) const COMMANDS: &[CommandSpec] = &[CommandSpec::container(
    "client",
    &[
        CommandSpec::without_keys("id", 2, OWN, LockNeed::None, id),
        CommandSpec::without_keys("info", 2, OWN, LockNeed::None, list::info),
        CommandSpec::without_keys("list", -2, OTHERS, LockNeed::None, list::list),
        CommandSpec::without_keys("kill", -3, OTHERS, LockNeed::None, kill::kill),
        CommandSpec::without_keys("setname", 3, OWN, LockNeed::None, names::setname),
        CommandSpec::without_keys("getname", 2, OWN, LockNeed::None, names::getname),
        CommandSpec::without_keys("setinfo", 4, OWN, LockNeed::None, names::setinfo),
        CommandSpec::without_keys("reply", 3, OWN, LockNeed::None, switches::reply),
        CommandSpec::without_keys("no-evict", 3, OTHERS, LockNeed::None, switches::no_evict),
        CommandSpec::without_keys("no-touch", 3, OWN, LockNeed::None, switches::no_touch),
        CommandSpec::without_keys("pause", -3, OTHERS, LockNeed::None, pause::pause),
        CommandSpec::without_keys("unpause", 2, OTHERS, LockNeed::None, pause::unpause),
        CommandSpec::without_keys("unblock", -3, OTHERS, LockNeed::None, unblock::unblock),
        CommandSpec::without_keys("getredir", 2, OWN, LockNeed::None, getredir),
        CommandSpec::without_keys("gate", -2, OWN, LockNeed::None, gate::gate),
        crate::shared::help::HELP,
    ],
)];

fn id(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let id = ctx.session.info.id;
    ctx.reply.integer(id as i64);
    Ok(())
}

/// Where notices about cached keys go: nowhere, as no connection has any sent.
fn getredir(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.integer(-1);
    Ok(())
}

/// The classes of clients that filters name; all of ours are normal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Normal,
    /// A kind that no connection is.
    Other,
}

fn class(name: &[u8]) -> Result<Class, CommandError> {
    if is(name, "normal") {
        Ok(Class::Normal)
    } else if ["master", "slave", "replica", "pubsub"].into_iter().any(|word| is(name, word)) {
        Ok(Class::Other)
    } else {
        Err(CommandError::err(format_args!("Unknown client type '{}'", shown(name))))
    }
}
