//! The entries, one file per family.

mod bitmap;
mod connection;
mod generic;
mod hash;
mod introspection;
mod list;
mod scripting;
mod server;
mod set;
mod sort;
mod sorted_set;
mod string;
mod transactions;

use crate::doc::CommandDoc;

pub(crate) static FAMILIES: &[&[CommandDoc]] = &[
    bitmap::COMMANDS,
    connection::COMMANDS,
    generic::COMMANDS,
    hash::COMMANDS,
    introspection::COMMANDS,
    list::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    set::COMMANDS,
    sort::COMMANDS,
    sorted_set::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
];
