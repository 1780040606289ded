//! What is to be said about every Redis command: the facts behind `COMMAND INFO`, `COMMAND DOCS`
//! and the compatibility page, as Redis 7.2 reports them, with the words our own.
//!
//! **Architecture invariant:** plain data. No handler, no engine, no protocol and no dependency:
//! the command table in `ladon-commands` says what a command does, this crate what it is.

#![forbid(unsafe_code)]

mod argument;
mod doc;
mod syntax;
mod table;

pub use argument::{Argument, ArgumentKind};
pub use doc::{BeginSearch, CommandDoc, FindKeys, Group, KeySpec};
pub use syntax::{SyntaxError, parse};

/// All commands and subcommands, grouped by family.
pub fn all() -> impl Iterator<Item = &'static CommandDoc> {
    table::FAMILIES.iter().flat_map(|family| family.iter())
}

/// The entry called `name`, such as `set` or `client|kill`, in any case.
pub fn find(name: &str) -> Option<&'static CommandDoc> {
    all().find(|doc| doc.name.eq_ignore_ascii_case(name))
}
