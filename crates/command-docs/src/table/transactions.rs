//! Transactions.

use crate::doc::{CommandDoc, Group, KeySpec};

const TRANSACTIONS: CommandDoc = CommandDoc::in_group(Group::Transactions);

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "multi",
        summary: "Begins a transaction: commands are queued from here on.",
        since: "1.2.0",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        acl_categories: &["fast", "transaction"],
        ..TRANSACTIONS
    },
    CommandDoc {
        name: "exec",
        summary: "Executes the queued commands as one, unless a watched key has changed.",
        since: "1.2.0",
        complexity: "depends on the queued commands",
        arity: 1,
        flags: &["noscript", "loading", "stale", "skip_slowlog"],
        acl_categories: &["slow", "transaction"],
        ..TRANSACTIONS
    },
    CommandDoc {
        name: "discard",
        summary: "Forgets the queued commands.",
        since: "2.0.0",
        complexity: "O(N), N being the number of queued commands",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        acl_categories: &["fast", "transaction"],
        ..TRANSACTIONS
    },
    CommandDoc {
        name: "watch",
        summary: "Makes the next EXEC depend on these keys being unchanged.",
        since: "2.2.0",
        syntax: "key#0 ...",
        complexity: "O(1) for each key",
        arity: -2,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        keys: (1, -1, 1),
        key_specs: &[KeySpec::range(&["RO"], 1, (-1, 1, 0))],
        acl_categories: &["fast", "transaction"],
        ..TRANSACTIONS
    },
    CommandDoc {
        name: "unwatch",
        summary: "Forgets the watched keys.",
        since: "2.2.0",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        acl_categories: &["fast", "transaction"],
        ..TRANSACTIONS
    },
];
