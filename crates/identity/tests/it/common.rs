//! A table of a few commands with the categories that Redis 7.2 gives them, and short ways to make
//! users.

use ladon_identity::{CommandFacts, CommandTable, RuleContext, RulesError, User};
use std::sync::LazyLock;

pub const CATEGORIES: [&str; 12] = [
    "keyspace",
    "read",
    "write",
    "set",
    "hash",
    "string",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "dangerous",
    "connection",
];

/// Names, with `!` for those that need no authentication, and categories.
const COMMANDS: [(&str, &str); 31] = [
    ("!auth", "fast connection"),
    ("ping", "fast connection"),
    ("select", "fast connection"),
    ("get", "read string fast"),
    ("set", "write string slow"),
    ("incr", "write string fast"),
    ("mget", "read string fast"),
    ("del", "keyspace write slow"),
    ("copy", "keyspace write slow"),
    ("sadd", "write set fast"),
    ("hget", "read hash fast"),
    ("hset", "write hash fast"),
    ("sort", "write set slow dangerous"),
    ("flushall", "keyspace write slow dangerous"),
    ("publish", "pubsub fast"),
    ("subscribe", "pubsub slow"),
    ("psubscribe", "pubsub slow"),
    ("debug", "admin slow dangerous"),
    ("client", "slow"),
    ("client|id", "slow connection"),
    ("client|list", "admin slow dangerous connection"),
    ("client|setname", "slow connection"),
    ("client|kill", "admin slow dangerous connection"),
    ("config", "slow"),
    ("config|get", "admin slow dangerous"),
    ("config|set", "admin slow dangerous"),
    ("acl", "slow"),
    ("acl|list", "admin slow dangerous"),
    ("memory", "slow"),
    ("memory|doctor", "slow"),
    ("memory|stats", "slow"),
];

pub static TABLE: LazyLock<CommandTable> = LazyLock::new(|| {
    let split: Vec<(&str, Vec<&str>)> = COMMANDS
        .iter()
        .map(|(name, categories)| (*name, categories.split(' ').collect()))
        .collect();
    let facts = split.iter().map(|(name, categories)| CommandFacts {
        name: name.trim_start_matches('!'),
        categories,
        no_auth: name.starts_with('!'),
    });
    CommandTable::new(&CATEGORIES, facts)
});

pub fn context() -> RuleContext<'static> {
    RuleContext { table: &TABLE, all_channels_at_first: false }
}

/// Rules out of a line; words are separated by one blank.
pub fn words(line: &str) -> impl Iterator<Item = &[u8]> {
    line.split(' ').map(str::as_bytes)
}

/// A new user `u` with these rules.
pub fn user(rules: &str) -> User {
    change(&User::new(b"u", context()), rules)
}

/// The user changed by these rules.
pub fn change(user: &User, rules: &str) -> User {
    user.changed_by(words(rules), context()).unwrap_or_else(|error| panic!("{}", text(&error)))
}

/// The error of these rules for a new user.
pub fn error(rules: &str) -> String {
    let error = User::new(b"u", context()).changed_by(words(rules), context());
    text(&error.expect_err("the rules are wrong"))
}

fn text(error: &RulesError) -> String {
    String::from_utf8(error.reply()).expect("the rules are UTF-8")
}

/// What `ACL GETUSER` says of the user's commands.
pub fn commands(user: &User) -> String {
    String::from_utf8(user.fields().root.commands).expect("the rules are UTF-8")
}

pub fn description(user: &User) -> String {
    String::from_utf8(user.description()).expect("the rules are UTF-8")
}
