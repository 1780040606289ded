//! The connection's own commands.

use crate::doc::{CommandDoc, Group};

const CONNECTION: CommandDoc = CommandDoc::in_group(Group::Connection);

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "ping",
        summary: "Answers PONG, or the message given: is the server there?",
        since: "1.0.0",
        syntax: "[message]",
        arity: -1,
        flags: &["fast"],
        acl_categories: &["fast", "connection"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..CONNECTION
    },
    CommandDoc {
        name: "echo",
        summary: "Answers the message given.",
        since: "1.0.0",
        syntax: "message",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        acl_categories: &["fast", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "hello",
        summary: "Greets the server: chooses the protocol version, and may log in and name the connection.",
        since: "6.0.0",
        syntax: "[arguments(protover:integer [AUTH auth(username password)] [SETNAME clientname])]",
        arity: -1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        acl_categories: &["fast", "connection"],
        history: &[(
            "6.2.0",
            "The version may be left out; the reply then just describes the connection.",
        )],
        ..CONNECTION
    },
    CommandDoc {
        name: "auth",
        summary: "Logs the connection in.",
        since: "1.0.0",
        syntax: "[username@6.0.0] password",
        complexity: "O(N), N being the number of passwords of the user",
        arity: -2,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        acl_categories: &["fast", "connection"],
        history: &[("6.0.0", "A user name may precede the password.")],
        ..CONNECTION
    },
    CommandDoc {
        name: "select",
        summary: "Chooses the database that this connection works on.",
        since: "1.0.0",
        syntax: "index:integer",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        acl_categories: &["fast", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "quit",
        summary: "Closes the connection after the replies that are still due.",
        since: "1.0.0",
        arity: -1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        acl_categories: &["fast", "connection"],
        doc_flags: &["deprecated"],
        deprecated: Some(("7.2.0", "closing the connection")),
        ..CONNECTION
    },
    CommandDoc {
        name: "reset",
        summary: "Returns the connection to the state of a new one.",
        since: "6.2.0",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        acl_categories: &["fast", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client",
        summary: "Commands about client connections.",
        since: "2.4.0",
        complexity: "depends on the subcommand",
        arity: -2,
        acl_categories: &["slow"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|id",
        summary: "Tells this connection's number.",
        since: "5.0.0",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|info",
        summary: "Describes this connection.",
        since: "6.2.0",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["nondeterministic_output"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|list",
        summary: "Lists the open connections, all or by a filter.",
        since: "2.4.0",
        syntax: "[TYPE client-type@5.0.0(NORMAL|MASTER|REPLICA|PUBSUB)] [ID client-id:integer@6.2.0 ...]",
        complexity: "O(N), N being the number of connections",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous", "connection"],
        tips: &["nondeterministic_output"],
        history: &[
            ("2.8.12", "The field id was added."),
            ("5.0.0", "The filter TYPE was added."),
            ("6.0.0", "The field user was added."),
            (
                "6.2.0",
                "The fields argv-mem, tot-mem, laddr and redir and the filter ID were added.",
            ),
            ("7.0.0", "The fields resp, multi-mem, rbs and rbp were added."),
            ("7.0.3", "The field ssub was added."),
            ("7.2.0", "The fields lib-name and lib-ver were added."),
        ],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|kill",
        summary: "Closes the connections that fit the filters.",
        since: "2.4.0",
        syntax: "filter(old-format{ip:port}~2.8.12|new-format([ID client-id:integer@2.8.12]|[TYPE client-type@2.8.12(NORMAL|MASTER@3.2.0|SLAVE|REPLICA@5.0.0|PUBSUB)]|[USER username]|[ADDR addr{ip:port}]|[LADDR laddr{ip:port}@6.2.0]|[SKIPME skipme(YES|NO)]) ...)",
        complexity: "O(N), N being the number of connections",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous", "connection"],
        history: &[
            ("2.8.12", "Filters by name were added."),
            ("2.8.12", "The filter ID was added."),
            ("3.2.0", "TYPE knows master."),
            ("5.0.0", "TYPE knows replica; slave means the same."),
            ("6.2.0", "The filter LADDR was added."),
        ],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|setname",
        summary: "Names this connection.",
        since: "2.6.9",
        syntax: "connection-name",
        arity: 3,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|getname",
        summary: "Tells this connection's name.",
        since: "2.6.9",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|setinfo",
        summary: "Tells the server which library this connection uses, and its version.",
        since: "7.2.0",
        syntax: "attr(LIB-NAME libname|LIB-VER libver)",
        arity: 4,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|reply",
        summary: "Turns replies to this connection on, off, or off for one command.",
        since: "3.2.0",
        syntax: "action(ON|OFF|SKIP)",
        arity: 3,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|pause",
        summary: "Holds back clients' commands, all or only those that write, for a while.",
        since: "3.0.0",
        syntax: "timeout:integer [mode@6.2.0(WRITE|ALL)]",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous", "connection"],
        history: &[("6.2.0", "The mode WRITE was added, and with it the argument.")],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|unpause",
        summary: "Lets paused clients go on.",
        since: "6.2.0",
        complexity: "O(N), N being the number of paused clients",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|unblock",
        summary: "Ends the waiting of a client in a blocking command.",
        since: "5.0.0",
        syntax: "client-id:integer [unblock-type(TIMEOUT|ERROR)]",
        complexity: "O(log N), N being the number of clients",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|no-evict",
        summary: "Spares this connection when client memory runs short, or no longer does.",
        since: "7.0.0",
        syntax: "enabled(ON|OFF)",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        acl_categories: &["admin", "slow", "dangerous", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|no-touch",
        summary: "Lets this connection's reads leave the keys' last access as it was, or no longer does.",
        since: "7.2.0",
        syntax: "enabled(ON|OFF)",
        arity: 3,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|getredir",
        summary: "Tells which connection gets the notices meant for this one, or -1.",
        since: "6.0.0",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|gate",
        summary: "Tells or chooses how safe a change must be before this connection sees it.",
        since: "0.1.0",
        syntax: "[gate(NONE|WRITE|EVERYSEC|FSYNC|DEFAULT)]",
        arity: -2,
        flags: &["noscript", "loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
    CommandDoc {
        name: "client|help",
        summary: "Lists the subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: &["loading", "stale"],
        acl_categories: &["slow", "connection"],
        ..CONNECTION
    },
];
