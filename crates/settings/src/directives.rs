//! The redis.conf directives for which Ladon has no setting, and what each line means here.
//!
//! A directive that is neither here nor in the table of settings is unknown, and an error as in
//! Redis. The reasons are shown to an operator, after the directive and its line.

use crate::kind::Unlike;

/// A directive of Redis 7.2 or older without a setting of its own in Ladon.
pub(crate) struct Directive {
    pub(crate) names: &'static [&'static str],
    /// Arguments that ask for nothing that Ladon does not do; the line needs no mention then.
    pub(crate) nothing: Option<&'static str>,
    /// What any other arguments mean.
    pub(crate) unlike: Unlike,
    /// Why it is not supported.
    pub(crate) reason: &'static str,
}

impl Directive {
    /// Whether the line asks for what Ladon does anyway.
    pub(crate) fn asks_for_nothing(&self, arguments: &[String]) -> bool {
        self.nothing.is_some_and(|nothing| arguments.join(" ").eq_ignore_ascii_case(nothing))
    }
}

/// The directive of this name, in any case.
pub(crate) fn lookup(name: &str) -> Option<&'static Directive> {
    DIRECTIVES
        .iter()
        .find(|directive| directive.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

const fn harmless(names: &'static [&'static str], reason: &'static str) -> Directive {
    Directive { names, nothing: None, unlike: Unlike::Harmless, reason }
}

const fn promise(
    names: &'static [&'static str],
    nothing: Option<&'static str>,
    reason: &'static str,
) -> Directive {
    Directive { names, nothing, unlike: Unlike::Promise, reason }
}

pub(crate) static DIRECTIVES: &[Directive] = &[
    // Promises: a user who relies on these must not find out later that they are not kept.
    promise(&["rename-command"], None, "Ladon does not rename commands"),
    promise(&["loadmodule"], None, "Ladon loads no modules"),
    promise(&["sentinel"], None, "Ladon is no sentinel"),
    harmless(
        &["tls-client-cert-file", "tls-client-key-file", "tls-client-key-file-pass"],
        "Ladon shows tls-cert-file to the server that it follows, too",
    ),
    harmless(&["tls-dh-params-file"], "keys are exchanged over elliptic curves only"),
    // The process and its surroundings.
    harmless(&["pidfile"], "Ladon writes no pid file; it stays in the foreground"),
    harmless(&["supervised"], "Ladon reports nothing to a supervisor; run it as a simple service"),
    harmless(
        &["syslog-enabled", "syslog-ident", "syslog-facility"],
        "Ladon writes to its log file or the standard error output",
    ),
    harmless(
        &["always-show-logo", "set-proc-title", "proc-title-template", "locale-collate"],
        "Ladon leaves this to its surroundings",
    ),
    harmless(
        &["crash-log-enabled", "crash-memcheck-enabled"],
        "Ladon reports a crash on its standard error output",
    ),
    harmless(
        &["oom-score-adj", "oom-score-adj-values", "disable-thp"],
        "Ladon leaves this to the service manager",
    ),
    harmless(
        &[
            "server_cpulist",
            "server-cpulist",
            "bio_cpulist",
            "bio-cpulist",
            "aof_rewrite_cpulist",
            "aof-rewrite-cpulist",
            "bgsave_cpulist",
            "bgsave-cpulist",
        ],
        "Ladon uses the cores that its process may use; see taskset(1) and io-threads",
    ),
    harmless(&["io-threads-do-reads"], "every IO thread reads, executes and writes"),
    harmless(
        &["socket-mark-id", "bind-source-addr"],
        "Ladon opens no connections and marks no sockets",
    ),
    harmless(
        &["shutdown-timeout", "shutdown-on-sigint", "shutdown-on-sigterm"],
        "Ladon finishes its replies, syncs its log and stops",
    ),
    harmless(&["ignore-warnings"], "Ladon has no start that a warning stops"),
    // Files.
    harmless(
        &["dbfilename", "appendfilename", "appenddirname"],
        "Ladon's files in the data directory have their own names",
    ),
    harmless(
        &["rdbcompression", "rdbchecksum", "sanitize-dump-payload"],
        "checkpoints are always checked, and are not compressed",
    ),
    harmless(
        &["rdb-save-incremental-fsync", "aof-rewrite-incremental-fsync", "rdb-del-sync-files"],
        "checkpoints are always written steadily",
    ),
    harmless(
        &["aof-use-rdb-preamble", "aof-timestamp-enabled", "aof-disable-auto-gc"],
        "the log has its own format and rules",
    ),
    harmless(
        &["stop-writes-on-bgsave-error"],
        "writes are refused when the log cannot be written, and only then",
    ),
    harmless(&["propagation-error-behavior"], "a change that cannot be logged is refused"),
    // Memory.
    harmless(
        &[
            "activerehashing",
            "activedefrag",
            "active-defrag-ignore-bytes",
            "active-defrag-threshold-lower",
            "active-defrag-threshold-upper",
            "active-defrag-cycle-min",
            "active-defrag-cycle-max",
            "active-defrag-max-scan-fields",
            "jemalloc-bg-thread",
        ],
        "Ladon's tables and allocator need no such help",
    ),
    // What Ladon does not have yet, so that nothing can go wrong with it.
    harmless(
        &["list-max-ziplist-entries", "list-max-ziplist-value"],
        "Ladon does not have this data type yet",
    ),
    harmless(
        &[
            "repl-backlog-ttl",
            "repl-disable-tcp-nodelay",
            "repl-diskless-load",
            "repl-diskless-sync",
            "repl-diskless-sync-delay",
            "repl-diskless-sync-max-replicas",
            "repl-diskless-sync-period",
            "repl-ping-replica-period",
            "repl-ping-slave-period",
            "replica-announced",
            "replica-ignore-disk-write-errors",
            "replica-ignore-maxmemory",
            "replica-lazy-flush",
            "replica-priority",
            "slave-ignore-maxmemory",
            "slave-lazy-flush",
            "slave-priority",
        ],
        "Ladon's replicas follow the log, and do not need it",
    ),
    harmless(
        &[
            "cluster-allow-pubsubshard-when-down",
            "cluster-allow-reads-when-down",
            "cluster-allow-replica-migration",
            "cluster-announce-bus-port",
            "cluster-announce-hostname",
            "cluster-announce-human-nodename",
            "cluster-announce-port",
            "cluster-announce-tls-port",
            "cluster-config-file",
            "cluster-link-sendbuf-limit",
            "cluster-migration-barrier",
            "cluster-node-timeout",
            "cluster-preferred-endpoint-type",
            "cluster-replica-no-failover",
            "cluster-replica-validity-factor",
            "cluster-require-full-coverage",
            "cluster-slave-no-failover",
            "cluster-slave-validity-factor",
        ],
        "Ladon's clusters have one shard, and do not need it",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_name_is_either_a_setting_or_one_directive() {
        let mut seen = HashSet::new();
        for name in DIRECTIVES.iter().flat_map(|directive| directive.names) {
            assert!(seen.insert(*name), "{name} is there twice");
            assert!(crate::lookup(name).is_none(), "{name} is a setting too");
        }
    }

    #[test]
    fn every_name_that_a_real_redis_has_means_something_here() {
        for name in include_str!("../tests/redis_7.0.15_config_names.txt").lines() {
            assert!(crate::lookup(name).is_some() || lookup(name).is_some(), "{name}");
        }
    }
}
