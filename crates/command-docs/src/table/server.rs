//! The server as a whole.

use crate::doc::{CommandDoc, Group};

const SERVER: CommandDoc = CommandDoc::in_group(Group::Server);

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "swapdb",
        summary: "Exchanges two databases.",
        since: "4.0.0",
        syntax: "index1:integer index2:integer",
        complexity: "O(N), N being the number of clients that watch or wait for keys of the two",
        arity: 3,
        flags: &["write", "fast"],
        acl_categories: &["keyspace", "write", "fast", "dangerous"],
        ..SERVER
    },
    CommandDoc {
        name: "dbsize",
        summary: "Counts the keys of the database.",
        since: "1.0.0",
        arity: 1,
        flags: &["readonly", "fast"],
        acl_categories: &["keyspace", "read", "fast"],
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        ..SERVER
    },
    CommandDoc {
        name: "flushdb",
        summary: "Removes all keys of the database.",
        since: "1.0.0",
        syntax: "[flush-type(ASYNC@4.0.0|SYNC@6.2.0)]",
        complexity: "O(N), N being the number of keys in the database",
        arity: -1,
        flags: &["write"],
        acl_categories: &["keyspace", "write", "slow", "dangerous"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        history: &[("4.0.0", "ASYNC was added."), ("6.2.0", "SYNC was added.")],
        ..SERVER
    },
    CommandDoc {
        name: "flushall",
        summary: "Removes all keys of all databases.",
        since: "1.0.0",
        syntax: "[flush-type(ASYNC@4.0.0|SYNC@6.2.0)]",
        complexity: "O(N), N being the number of keys in all databases",
        arity: -1,
        flags: &["write"],
        acl_categories: &["keyspace", "write", "slow", "dangerous"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        history: &[("4.0.0", "ASYNC was added."), ("6.2.0", "SYNC was added.")],
        ..SERVER
    },
    CommandDoc {
        name: "info",
        summary: "Describes the server and its state.",
        since: "1.0.0",
        syntax: "[section ...]",
        arity: -1,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        history: &[("7.0.0", "Several sections may be given.")],
        ..SERVER
    },
    CommandDoc {
        name: "config",
        summary: "Commands about the server's settings.",
        since: "2.0.0",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "config|get",
        summary: "Answers the settings whose names fit the patterns.",
        since: "2.0.0",
        syntax: "parameter ...",
        complexity: "O(N), N being the number of patterns",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        history: &[("7.0.0", "Several patterns may be given.")],
        ..SERVER
    },
    CommandDoc {
        name: "config|set",
        summary: "Changes settings while the server runs, all or none.",
        since: "2.0.0",
        syntax: "data(parameter value) ...",
        complexity: "O(N), N being the number of settings",
        arity: -4,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        history: &[("7.0.0", "Several settings may be given.")],
        ..SERVER
    },
    CommandDoc {
        name: "config|resetstat",
        summary: "Sets the statistics back to zero.",
        since: "2.0.0",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..SERVER
    },
    CommandDoc {
        name: "config|rewrite",
        summary: "Writes the settings in force to the configuration file.",
        since: "2.8.0",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..SERVER
    },
    CommandDoc {
        name: "config|help",
        summary: "Lists the subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "time",
        summary: "Tells the server's time.",
        since: "2.6.0",
        arity: 1,
        flags: &["loading", "stale", "fast"],
        acl_categories: &["fast"],
        tips: &["nondeterministic_output"],
        ..SERVER
    },
    CommandDoc {
        name: "role",
        summary: "Tells the node's part in replication.",
        since: "2.8.12",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast"],
        acl_categories: &["admin", "fast", "dangerous"],
        ..SERVER
    },
    CommandDoc {
        name: "shutdown",
        summary: "Stops the server, after saving if need be.",
        since: "1.0.0",
        syntax: "[save-selector(NOSAVE|SAVE)] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
        complexity: "O(1), or O(N) when it saves N keys",
        arity: -1,
        flags: &["admin", "noscript", "loading", "stale", "no_multi", "allow_busy"],
        acl_categories: &["admin", "slow", "dangerous"],
        history: &[("7.0.0", "NOW, FORCE and ABORT were added.")],
        ..SERVER
    },
    CommandDoc {
        name: "debug",
        summary: "Commands for tests and for looking inside.",
        since: "1.0.0",
        complexity: "depends on the subcommand",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        doc_flags: &["syscmd"],
        ..SERVER
    },
    CommandDoc {
        name: "bgsave",
        summary: "Starts to save the data in the background.",
        since: "1.0.0",
        syntax: "[SCHEDULE@3.2.2]",
        arity: -1,
        flags: &["admin", "noscript", "no_async_loading"],
        acl_categories: &["admin", "slow", "dangerous"],
        history: &[("3.2.2", "SCHEDULE was added.")],
        ..SERVER
    },
    CommandDoc {
        name: "save",
        summary: "Saves the data and answers when that is done.",
        since: "1.0.0",
        complexity: "O(N), N being the number of keys in all databases",
        arity: 1,
        flags: &["admin", "noscript", "no_async_loading", "no_multi"],
        acl_categories: &["admin", "slow", "dangerous"],
        ..SERVER
    },
    CommandDoc {
        name: "bgrewriteaof",
        summary: "Starts to shorten the log in the background.",
        since: "1.0.0",
        arity: 1,
        flags: &["admin", "noscript", "no_async_loading"],
        acl_categories: &["admin", "slow", "dangerous"],
        ..SERVER
    },
    CommandDoc {
        name: "lastsave",
        summary: "Tells when the data was last saved, in seconds since 1970.",
        since: "1.0.0",
        arity: 1,
        flags: &["loading", "stale", "fast"],
        acl_categories: &["admin", "fast", "dangerous"],
        tips: &["nondeterministic_output"],
        ..SERVER
    },
];
