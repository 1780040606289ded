//! Functions and scripts: only what is needed to say that there are none.

use crate::doc::{CommandDoc, Group};

const SCRIPTING: CommandDoc = CommandDoc::in_group(Group::Scripting);

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "function",
        summary: "Commands about functions.",
        since: "7.0.0",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..SCRIPTING
    },
    CommandDoc {
        name: "function|flush",
        summary: "Removes all functions.",
        since: "7.0.0",
        syntax: "[flush-type(ASYNC|SYNC)]",
        complexity: "O(N), N being the number of functions",
        arity: -2,
        flags: &["write", "noscript"],
        acl_categories: &["write", "slow", "scripting"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..SCRIPTING
    },
    CommandDoc {
        name: "function|help",
        summary: "Lists the subcommands.",
        since: "7.0.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "scripting"],
        ..SCRIPTING
    },
    CommandDoc {
        name: "script",
        summary: "Commands about scripts.",
        since: "2.6.0",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..SCRIPTING
    },
    CommandDoc {
        name: "script|exists",
        summary: "Tells which scripts the server keeps.",
        since: "2.6.0",
        syntax: "sha1 ...",
        complexity: "O(N), N being the number of scripts asked about",
        arity: -3,
        flags: &["noscript"],
        acl_categories: &["slow", "scripting"],
        tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
        ..SCRIPTING
    },
    CommandDoc {
        name: "script|flush",
        summary: "Removes all scripts.",
        since: "2.6.0",
        syntax: "[flush-type@6.2.0(ASYNC|SYNC)]",
        complexity: "O(N), N being the number of scripts",
        arity: -2,
        flags: &["noscript"],
        acl_categories: &["slow", "scripting"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        history: &[("6.2.0", "Added ASYNC and SYNC.")],
        ..SCRIPTING
    },
    CommandDoc {
        name: "script|help",
        summary: "Lists the subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "scripting"],
        ..SCRIPTING
    },
    CommandDoc {
        name: "script|kill",
        summary: "Ends the script that runs.",
        since: "2.6.0",
        complexity: "O(1)",
        arity: 2,
        flags: &["noscript", "allow_busy"],
        acl_categories: &["slow", "scripting"],
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..SCRIPTING
    },
];
