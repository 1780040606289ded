//! Every family's commands, and the table of them all.

use crate::{
    admin, bitmap, connection, generic, geo, hash, hyperloglog, list, pubsub, replication,
    scripting, set, sort, sorted_set, space, stream, string, transactions,
};
use ladon_kernel::command::spec::Code;
use ladon_kernel::command::table::CommandTable;
use std::sync::LazyLock;

const FAMILIES: &[&[Code]] = &[
    bitmap::COMMANDS,
    admin::absent::COMMANDS,
    admin::backup::COMMANDS,
    admin::cluster::COMMANDS,
    admin::client::COMMANDS,
    admin::command::COMMANDS,
    admin::config::COMMANDS,
    connection::COMMANDS,
    admin::debug::COMMANDS,
    admin::fiber::COMMANDS,
    generic::COMMANDS,
    geo::COMMANDS,
    hash::COMMANDS,
    admin::hot_keys::COMMANDS,
    hyperloglog::COMMANDS,
    admin::info::COMMANDS,
    admin::latency::COMMANDS,
    list::COMMANDS,
    admin::memory::COMMANDS,
    admin::monitor::COMMANDS,
    admin::persistence::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    replication::replica::COMMANDS,
    replication::replicaof::COMMANDS,
    scripting::COMMANDS,
    admin::sentinel::COMMANDS,
    admin::server::COMMANDS,
    set::COMMANDS,
    admin::command_log::COMMANDS,
    admin::acl::COMMANDS,
    sort::COMMANDS,
    sorted_set::COMMANDS,
    space::COMMANDS,
    stream::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
    generic::wait::COMMANDS,
];

/// The table of all commands.
pub fn table() -> &'static CommandTable {
    static TABLE: LazyLock<CommandTable> = LazyLock::new(|| CommandTable::of(FAMILIES));
    &TABLE
}
