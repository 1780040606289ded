//! Looking inside: what the server can do, what it did, what it holds.

use crate::doc::{CommandDoc, Group, KeySpec};

const SERVER: CommandDoc = CommandDoc::in_group(Group::Server);

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "command",
        summary: "Describes all commands.",
        since: "2.8.13",
        complexity: "O(N), N being the number of commands",
        arity: -1,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["nondeterministic_output_order"],
        ..SERVER
    },
    CommandDoc {
        name: "command|count",
        summary: "Counts the commands.",
        since: "2.8.13",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..SERVER
    },
    CommandDoc {
        name: "command|docs",
        summary: "Answers what is documented about commands.",
        since: "7.0.0",
        syntax: "[command-name ...]",
        complexity: "O(N), N being the number of commands asked for",
        arity: -2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["nondeterministic_output_order"],
        ..SERVER
    },
    CommandDoc {
        name: "command|getkeys",
        summary: "Finds the keys in a whole command.",
        since: "2.8.13",
        syntax: "command [arg ...]",
        complexity: "O(N), N being the number of the command's arguments",
        arity: -3,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..SERVER
    },
    CommandDoc {
        name: "command|getkeysandflags",
        summary: "Finds the keys in a whole command and tells what happens to each.",
        since: "7.0.0",
        syntax: "command [arg ...]",
        complexity: "O(N), N being the number of the command's arguments",
        arity: -3,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..SERVER
    },
    CommandDoc {
        name: "command|info",
        summary: "Describes commands.",
        since: "2.8.13",
        syntax: "[command-name ...]",
        complexity: "O(N), N being the number of commands asked for",
        arity: -2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["nondeterministic_output_order"],
        history: &[("7.0.0", "Without a name all commands are described.")],
        ..SERVER
    },
    CommandDoc {
        name: "command|list",
        summary: "Lists the commands' names.",
        since: "7.0.0",
        syntax: "[FILTERBY filterby(MODULE module-name|ACLCAT category|PATTERN pattern:pattern)]",
        complexity: "O(N), N being the number of commands",
        arity: -2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["nondeterministic_output_order"],
        ..SERVER
    },
    CommandDoc {
        name: "command|help",
        summary: "Lists the subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..SERVER
    },
    CommandDoc {
        name: "memory",
        summary: "Commands about memory.",
        since: "4.0.0",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "memory|usage",
        summary: "Estimates the memory that a key takes.",
        since: "4.0.0",
        syntax: "key#0 [SAMPLES count:integer]",
        complexity: "O(N), N being the number of samples",
        arity: -3,
        flags: &["readonly"],
        keys: (2, 2, 1),
        key_specs: &[KeySpec::range(&["RO"], 2, (0, 1, 0))],
        acl_categories: &["read", "slow"],
        ..SERVER
    },
    CommandDoc {
        name: "memory|stats",
        summary: "Tells what the memory is used for.",
        since: "4.0.0",
        arity: 2,
        acl_categories: &["slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "memory|doctor",
        summary: "Looks for trouble with memory.",
        since: "4.0.0",
        arity: 2,
        acl_categories: &["slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "memory|purge",
        summary: "Asks the allocator to return unused memory.",
        since: "4.0.0",
        complexity: "depends on how much memory is allocated",
        arity: 2,
        acl_categories: &["slow"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..SERVER
    },
    CommandDoc {
        name: "memory|help",
        summary: "Lists the subcommands.",
        since: "4.0.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "slowlog",
        summary: "Commands about the log of slow commands.",
        since: "2.2.12",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "slowlog|get",
        summary: "Answers the newest entries of the slow log.",
        since: "2.2.12",
        syntax: "[count:integer]",
        complexity: "O(N), N being the number of entries answered",
        arity: -2,
        flags: &["admin", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        history: &[("4.0.0", "Entries tell the client's address and name.")],
        ..SERVER
    },
    CommandDoc {
        name: "slowlog|len",
        summary: "Counts the entries of the slow log.",
        since: "2.2.12",
        arity: 2,
        flags: &["admin", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        ..SERVER
    },
    CommandDoc {
        name: "slowlog|reset",
        summary: "Empties the slow log.",
        since: "2.2.12",
        complexity: "O(N), N being the number of entries",
        arity: 2,
        flags: &["admin", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..SERVER
    },
    CommandDoc {
        name: "slowlog|help",
        summary: "Lists the subcommands.",
        since: "6.2.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "monitor",
        summary: "Sends this connection every command that the server executes.",
        since: "1.0.0",
        complexity: "",
        arity: 1,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        ..SERVER
    },
    CommandDoc {
        name: "latency",
        summary: "Commands about delays that were noticed.",
        since: "2.8.13",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|doctor",
        summary: "Explains the delays that were noticed.",
        since: "2.8.13",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|graph",
        summary: "Draws the delays of one kind as text.",
        since: "2.8.13",
        syntax: "event",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|histogram",
        summary: "Answers how long commands took, as cumulative histograms.",
        since: "7.0.0",
        syntax: "[command ...]",
        complexity: "O(N), N being the number of commands with figures",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|history",
        summary: "Answers the delays of one kind with their times.",
        since: "2.8.13",
        syntax: "event",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|latest",
        summary: "Answers the last delay of every kind.",
        since: "2.8.13",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|reset",
        summary: "Forgets delays, all or of some kinds.",
        since: "2.8.13",
        syntax: "[event ...]",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
        ..SERVER
    },
    CommandDoc {
        name: "latency|help",
        summary: "Lists the subcommands.",
        since: "2.8.13",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow"],
        ..SERVER
    },
    CommandDoc {
        name: "lolwut",
        summary: "Draws something and tells the version.",
        since: "5.0.0",
        syntax: "[VERSION version:integer]",
        complexity: "",
        arity: -1,
        flags: &["readonly", "fast"],
        acl_categories: &["read", "fast"],
        ..SERVER
    },
];
