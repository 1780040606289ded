//! CLIENT: information about this connection and the others.

mod gate;
mod kill;
mod list;
mod names;
mod pause;
mod switches;
mod tracking;
mod unblock;

use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "client",
    &[
        Code::with_locks("id", LockNeed::None, id),
        Code::with_locks("info", LockNeed::None, list::info),
        Code::with_locks("list", LockNeed::None, list::list),
        Code::with_locks("kill", LockNeed::None, kill::kill),
        Code::with_locks("setname", LockNeed::None, names::setname),
        Code::with_locks("getname", LockNeed::None, names::getname),
        Code::with_locks("setinfo", LockNeed::None, names::setinfo),
        Code::with_locks("reply", LockNeed::None, switches::reply),
        Code::with_locks("no-evict", LockNeed::None, switches::no_evict),
        Code::with_locks("no-touch", LockNeed::None, switches::no_touch),
        Code::with_locks("pause", LockNeed::None, pause::pause),
        Code::with_locks("unpause", LockNeed::None, pause::unpause),
        Code::with_locks("unblock", LockNeed::None, unblock::unblock),
        Code::with_locks("tracking", LockNeed::None, tracking::tracking),
        Code::with_locks("trackinginfo", LockNeed::None, tracking::info),
        Code::with_locks("caching", LockNeed::None, tracking::caching),
        Code::with_locks("getredir", LockNeed::None, tracking::getredir),
        Code::with_locks("gate", LockNeed::None, gate::gate),
        crate::shared::help::HELP,
    ],
)];

fn id(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let id = ctx.session.info.id;
    ctx.reply.integer(id as i64);
    Ok(())
}

/// The classes of clients that filters name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Normal,
    /// With subscriptions.
    PubSub,
    /// Of servers that follow this one.
    Replica,
    /// A class that no connection has.
    Other,
}

impl Class {
    fn of(info: &ClientInfo) -> Class {
        match (info.is_replica.load(Relaxed), info.is_subscribed()) {
            (true, _) => Class::Replica,
            (false, true) => Class::PubSub,
            (false, false) => Class::Normal,
        }
    }
}

fn class(name: &[u8]) -> Result<Class, CommandError> {
    if is(name, "normal") {
        Ok(Class::Normal)
    } else if is(name, "pubsub") {
        Ok(Class::PubSub)
    } else if is(name, "replica") || is(name, "slave") {
        Ok(Class::Replica)
    } else if is(name, "master") {
        Ok(Class::Other)
    } else {
        Err(CommandError::err(format_args!("Unknown client type '{}'", shown(name))))
    }
}
