//! What is to be said of a command beyond "works".

/// A remark.
pub(crate) struct Note {
    pub(crate) name: &'static str,
    /// Something of Redis 7.2's is missing.
    pub(crate) partly: bool,
    pub(crate) text: &'static str,
}

const fn partly(name: &'static str, text: &'static str) -> Note {
    Note { name, partly: true, text }
}

const fn works(name: &'static str, text: &'static str) -> Note {
    Note { name, partly: false, text }
}

pub(crate) const NOTES: &[Note] = &[
    partly("auth", "There is one user, `default`, whose password is `requirepass`."),
    partly("hello", "`AUTH` knows the one user `default`."),
    partly("client|kill", "`USER` knows the one user `default`."),
    works(
        "client|gate",
        "Chooses a gate for this connection, stricter or laxer than the server's.",
    ),
    works("client|getredir", "There is no tracking, so that the answer is always -1."),
    works("wait", "There are no replicas, so that the answer is 0, after the time given."),
    works("waitaof", "The local part is the truth about the log; there are no replicas."),
    works("set", "Also `IFEQ value`, as Valkey and Redis 8 have it."),
    works("hscan", "Also `NOVALUES`, as Redis 7.4 has it."),
    works("hexpire", "Of Redis 7.4, as are its sisters."),
    works("hpexpire", "Of Redis 7.4."),
    works("hexpireat", "Of Redis 7.4."),
    works("hpexpireat", "Of Redis 7.4."),
    works("httl", "Of Redis 7.4."),
    works("hpttl", "Of Redis 7.4."),
    works("hexpiretime", "Of Redis 7.4."),
    works("hpexpiretime", "Of Redis 7.4."),
    works("hpersist", "Of Redis 7.4."),
    works("hgetdel", "Of Redis 8."),
    works("hgetex", "Of Redis 8."),
    works("hsetex", "Of Redis 8; also `NX` and `XX`, as Valkey has them."),
    works("object|refcount", "Always 1: values are not shared."),
    works("save", "Makes a checkpoint; see ARCHITECTURE.md."),
    works("bgsave", "Starts a checkpoint; there is no fork."),
    works("bgrewriteaof", "Starts a checkpoint, as BGSAVE does: the log behind it is dropped."),
    works("shutdown", "`NOW` has nothing to skip: there are no replicas to wait for."),
    works("config|set", "docs/settings.md lists the settings; another one is an error."),
    works(
        "info",
        "What Ladon has none of shows the value that says so; one section more, `ladon`.",
    ),
    partly("latency|histogram", "Quick commands count with the mean of their batch."),
    works("latency|graph", "Drawn in Ladon's own way."),
    works("latency|doctor", "In Ladon's own words."),
    works("memory|doctor", "In Ladon's own words."),
    works("memory|usage", "Exact with any number of samples."),
    partly("memory|stats", "Without what describes jemalloc and each database's tables."),
    works("lolwut", "A dragon, whichever version is asked for."),
    works("role", "Always a master without replicas."),
    partly("function", "There are no functions yet."),
    works("function|flush", "There are no functions; all of them are gone at once."),
    partly("script", "There are no scripts yet."),
    works("script|exists", "There are no scripts, so that the answers are 0."),
    works("script|flush", "There are no scripts; all of them are gone at once."),
    partly(
        "slowlog|get",
        "While `slowlog-log-slower-than` is 1000 or more, commands that are quick by nature \
         (few and small arguments, small reply) are timed by the batch and not entered.",
    ),
    partly(
        "debug",
        "CHANGE-REPL-ID, DIGEST, DIGEST-VALUE, ERROR, HELP, HTSTATS, HTSTATS-KEY, LISTPACK, LOADAOF, LOG, \
         OBJECT, POPULATE, PROTOCOL, RELOAD [NOSAVE], SET-ACTIVE-EXPIRE, SLEEP, STRINGMATCH-LEN.",
    ),
    works("monitor", "Commands of different threads come in the order in which they arrive."),
];
