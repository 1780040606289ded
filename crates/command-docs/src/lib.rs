//! The facts about every Redis command behind `COMMAND INFO`, `COMMAND DOCS`, the command table and
//! the compatibility page, as Redis 7.2 reports them, in Ladon's own words.
//!
//! **Architecture invariant:** plain data, in `commands.txt`. No handler, no engine, no protocol
//! and no dependency: the command table in `ladon-commands` has the code of a command, this crate
//! its facts.

#![forbid(unsafe_code)]

mod argument;
mod doc;
mod facts;
mod syntax;

pub use argument::{Argument, ArgumentKind};
pub use doc::{BeginSearch, CommandDoc, FindKeys, KeySpec};
pub use facts::Family;
pub use syntax::{SyntaxError, parse};

use std::collections::HashMap;
use std::sync::LazyLock;

/// All families of commands.
pub fn families() -> &'static [Family] {
    static FAMILIES: LazyLock<Vec<Family>> =
        LazyLock::new(|| facts::read(include_str!("../commands.txt")));
    &FAMILIES
}

/// All commands and subcommands that Ladon has, grouped by family.
pub fn all() -> impl Iterator<Item = &'static CommandDoc> {
    let commands = families().iter().flat_map(|family| &family.commands);
    commands.filter_map(|(_, doc)| doc.as_ref())
}

/// The entry called `name`, such as `set` or `client|kill`, in any case.
pub fn find(name: &str) -> Option<&'static CommandDoc> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static CommandDoc>> =
        LazyLock::new(|| all().map(|doc| (doc.name, doc)).collect());
    BY_NAME.get(name.to_ascii_lowercase().as_str()).copied()
}
