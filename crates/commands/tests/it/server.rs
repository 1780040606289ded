//! The server's own commands: `INFO`, `CONFIG`, `COMMAND`, `SLOWLOG` and the like.

use crate::common::{TestNode, check, check_on};
use ladon_kernel::durability::Shutdown;
use std::sync::atomic::Ordering::Relaxed;

/// A reply without the quotes and escapes that scripts show it with.
fn text(node: &TestNode, line: &str) -> String {
    let mut client = node.client();
    node.run(&mut client, line).trim_matches('"').replace("\\r\\n", "\n")
}

fn field(info: &str, name: &str) -> Option<String> {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::to_owned)
}

#[test]
fn config_changes_settings_and_says_why_not() {
    check(
        r#"
        CONFIG GET maxmemory maxmemor* nosuch => *
        CONFIG SET maxmemory 1mb hz 20        => +OK
        CONFIG GET maxmemory                  => ["maxmemory" "1048576"]
        CONFIG SET maxmemory                  => -ERR wrong number of arguments for 'config|set' command
        CONFIG SET maxmemory 1 hz             => -ERR syntax error
        CONFIG SET maxmemory 0 hz 10          => +OK
        CONFIG SET nosuch 1                   =>> -ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
        CONFIG SET maxmemory 5 maxmemory 6    => -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - duplicate parameter
        CONFIG SET maxmemory 5 timeout x      => -ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer
        CONFIG GET maxmemory                  => ["maxmemory" "0"]
        CONFIG SET daemonize yes              => -ERR CONFIG SET failed (possibly related to argument 'daemonize') - can't set immutable config
        CONFIG REWRITE                        => -ERR The server is running without a config file
        CONFIG RESETSTAT                      => +OK
        CONFIG NOSUCH                         => -ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP.
        CONFIG                                => -ERR wrong number of arguments for 'config' command
        MULTI                                 => +OK
        CONFIG SET hz 10                      => +QUEUED
        EXEC                                  => [+OK]
        "#,
    );
}

#[test]
fn settings_reach_those_who_keep_a_copy() {
    let node = TestNode::new();
    let limit = || node.node.keyspace.limits().set_intset_entries.load(Relaxed);
    assert_eq!(limit(), 512);
    check_on(&node, "CONFIG SET set-max-intset-entries 7 appendonly no => +OK");
    assert_eq!(limit(), 7);
}

#[test]
fn commands_are_listed_and_described() {
    check(
        r#"
        COMMAND INFO nosuch get  => [nil ["get" :2 [+readonly +fast] :1 :1 :1 [+@read +@string +@fast] [] [["flags" [+RO +access] "begin_search" ["type" "index" "spec" ["index" :1]] "find_keys" ["type" "range" "spec" ["lastkey" :0 "keystep" :1 "limit" :0]]]] []]]
        COMMAND INFO CONFIG|GET  => [["config|get" :-3 [+admin +noscript +loading +stale] :0 :0 :0 [+@admin +@slow +@dangerous] [] [] []]]
        COMMAND GETKEYS GET a    => ["a"]
        COMMAND GETKEYS SET a b  => ["a"]
        COMMAND GETKEYS GET      =>> -ERR Invalid number of arguments specified for command
        COMMAND GETKEYS PING     =>> -ERR The command has no key arguments
        COMMAND GETKEYS NOSUCH a => -ERR Invalid command specified
        COMMAND GETKEYS          => -ERR wrong number of arguments for 'command|getkeys' command
        COMMAND GETKEYSANDFLAGS DEL a b => [["a" [+RM +delete]] ["b" [+RM +delete]]]
        COMMAND LIST FILTERBY PATTERN CONFIG|R* => *
        COMMAND LIST FILTERBY MODULE x => []
        COMMAND LIST FILTERBY ACLCAT nosuch => []
        COMMAND LIST FILTERBY NOSUCH x => -ERR syntax error
        COMMAND LIST FILTERBY PATTERN  => -ERR syntax error
        COMMAND DOCS nosuch      => []
        @resp3
        COMMAND INFO echo        => [["echo" :2 ~[+loading +stale +fast] :0 :0 :0 ~[+@fast +@connection] ~[] ~[] ~[]]]
        COMMAND LIST FILTERBY PATTERN config|rewrit? => ["config|rewrite"]
        COMMAND DOCS nosuch      => {}
        "#,
    );
}

#[test]
fn info_tells_the_truth_in_sections() {
    let node = TestNode::new();
    let mut client = node.client();
    for line in ["SET a 1", "GET a", "GET missing", "CONFIG SET timeout x", "SET", "nosuch"] {
        node.run(&mut client, line);
    }
    let info = text(&node, "INFO");
    for section in ["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU"] {
        assert!(info.contains(&format!("# {section}\n")), "{section}");
    }
    for (name, expected) in [
        ("redis_mode", "standalone"),
        ("role", "master"),
        ("connected_clients", "2"),
        ("total_commands_processed", "4"),
        ("total_error_replies", "3"),
        ("errorstat_ERR", "count=3"),
        ("db0", "keys=1,expires=0,avg_ttl=0"),
        ("gate", "everysec"),
        ("maxmemory_human", "0B"),
        ("cluster_enabled", "0"),
    ] {
        assert_eq!(field(&info, name).as_deref(), Some(expected), "{name}");
    }
    assert!(!info.contains("cmdstat_"));
    assert_eq!(field(&info, "master_replid").unwrap().len(), 40);
    assert!(field(&info, "used_memory").unwrap().parse::<u64>().unwrap() > 0);

    let info = text(&node, "INFO commandstats STATS nosuch");
    assert!(info.starts_with("# Stats\n"), "{info}");
    let set = field(&info, "cmdstat_set").unwrap();
    assert!(set.starts_with("calls=1,usec=") && set.ends_with("rejected_calls=1,failed_calls=0"));
    let failed = field(&info, "cmdstat_config|set").unwrap();
    assert!(failed.ends_with("rejected_calls=0,failed_calls=1"), "{failed}");
    assert_eq!(text(&node, "INFO nosuch"), "");
    assert!(text(&node, "INFO everything").contains("latency_percentiles_usec_get:p50="));

    node.run(&mut client, "CONFIG RESETSTAT");
    let info = text(&node, "INFO all");
    assert_eq!(field(&info, "errorstat_ERR"), None);
    assert_eq!(field(&info, "total_error_replies").as_deref(), Some("0"));
    assert!(!info.contains("# Modules") && !info.contains("# Debug"));
}

#[test]
fn a_transaction_counts_each_of_its_commands() {
    let node = TestNode::new();
    check_on(
        &node,
        r#"
        MULTI              => +OK
        SET a b            => +QUEUED
        CONFIG SET hz none => +QUEUED
        INFO keyspace      => +QUEUED
        EXEC               => *
        "#,
    );
    let info = text(&node, "INFO commandstats errorstats stats");
    for (name, expected) in [
        ("cmdstat_set", "rejected_calls=0,failed_calls=0"),
        ("cmdstat_config|set", "rejected_calls=0,failed_calls=1"),
        ("cmdstat_exec", "rejected_calls=0,failed_calls=0"),
    ] {
        let stats = field(&info, name).unwrap();
        assert!(stats.starts_with("calls=1,") && stats.ends_with(expected), "{name} {stats}");
    }
    assert_eq!(field(&info, "total_error_replies").as_deref(), Some("1"));
    assert_eq!(field(&info, "total_commands_processed").as_deref(), Some("5"));
}

#[test]
fn slow_commands_are_remembered() {
    let node = TestNode::new().without_rehearsals();
    check_on(
        &node,
        r#"
        CONFIG SET slowlog-log-slower-than 0 => +OK
        SLOWLOG RESET      => +OK
        SET k v            => +OK
        MULTI              => +OK
        GET k              => +QUEUED
        EXEC               => ["v"]
        CONFIG SET requirepass "" slowlog-max-len 5 => +OK
        SLOWLOG LEN        => :5
        SLOWLOG GET 2      => [[:6 :1700000000 :0 ["SLOWLOG" "LEN"] "127.0.0.1:1" ""] [:5 :1700000000 :0 ["CONFIG" "SET" "requirepass" "(redacted)" "slowlog-max-len" "5"] "127.0.0.1:1" ""]]
        SLOWLOG GET 0      => []
        SLOWLOG GET -2     => -ERR count should be greater than or equal to -1
        SLOWLOG GET 1 2    => -ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
        CONFIG SET slowlog-log-slower-than -1 => +OK
        SLOWLOG RESET      => +OK
        SLOWLOG GET -1     => []
        "#,
    );
}

/// Replies and errors as of Valkey 9.1.
#[test]
fn large_requests_and_replies_are_logged() {
    let (long, short) = ("x".repeat(33), "x".repeat(32));
    check_on(
        &TestNode::new().without_rehearsals(),
        &format!(
            r#"
            COMMANDLOG GET 1 large-reply    => []
            CONFIG SET commandlog-request-larger-than 60 commandlog-reply-larger-than 40 commandlog-execution-slower-than -1 => +OK
            COMMANDLOG RESET LARGE-REQUEST  => +OK
            SET a {long}                    => +OK
            SET a {short}                   => +OK
            GET a                           => "{short}"
            SET a {long}                    => +OK
            GET a                           => "{long}"
            COMMANDLOG LEN large-request    => :2
            COMMANDLOG GET -1 large-reply   => [[:0 :1700000000 :40 ["GET" "a"] "127.0.0.1:1" ""]]
            COMMANDLOG GET 1 large-request  => [[:2 :1700000000 :60 ["SET" "a" "{long}"] "127.0.0.1:1" ""]]
            CONFIG SET commandlog-request-larger-than 0 commandlog-large-request-max-len 2 => +OK
            COMMANDLOG RESET large-request  => +OK
            PING                            => +PONG
            PING                            => +PONG
            COMMANDLOG LEN large-request    => :2
            CONFIG SET commandlog-request-larger-than -1 slowlog-log-slower-than 0 => +OK
            CONFIG GET commandlog-execution-slower-than => ["commandlog-execution-slower-than" "0"]
            COMMANDLOG RESET slow           => +OK
            SLOWLOG LEN                     => :1
            COMMANDLOG LEN slow             => :2
            SLOWLOG RESET                   => +OK
            COMMANDLOG GET 1 slow           => [[:5 :1700000000 :0 ["SLOWLOG" "RESET"] "127.0.0.1:1" ""]]
            COMMANDLOG GET 1 fast           => -ERR type should be one of the following: slow, large-request, large-reply
            COMMANDLOG LEN fast             => -ERR type should be one of the following: slow, large-request, large-reply
            COMMANDLOG GET -2 slow          => -ERR count should be greater than or equal to -1
            COMMANDLOG GET x slow           => -ERR count should be greater than or equal to -1
            COMMANDLOG GET 1                => -ERR wrong number of arguments for 'commandlog|get' command
            CONFIG SET commandlog-reply-larger-than -2 => -ERR CONFIG SET failed (possibly related to argument 'commandlog-reply-larger-than') - argument must be between -1 and 9223372036854775807 inclusive
            "#
        ),
    );
}

/// Replies and errors by the documentation and the tests of Redis 8.6.
#[test]
fn hot_keys_are_counted_while_somebody_looks() {
    let node = TestNode::new().without_rehearsals();
    check_on(
        &node,
        r#"
        HOTKEYS GET                             => nil
        HOTKEYS STOP                            => nil
        HOTKEYS RESET                           => +OK
        SET before x                            => +OK
        HOTKEYS START METRICS 1 NET COUNT 2     => +OK
        HOTKEYS START METRICS 1 CPU             => -ERR hotkey tracking session already in progress
        HOTKEYS RESET                           => -ERR hotkey tracking session in progress, stop tracking first
        SET a xxxxxxxxxx                        => +OK
        GET b                                   => nil
        GET a                                   => "xxxxxxxxxx"
        MSET b 1 c 1                            => +OK
        EVAL "return redis.call('get', KEYS[1])" 1 a => "xxxxxxxxxx"
        PING                                    => +PONG
        @advance 1500
        HOTKEYS STOP                            => +OK
        GET b                                   => "1"
        HOTKEYS GET                             => [["tracking-active" :0 "sample-ratio" :1 "selected-slots" [[:0 :16383]] "all-commands-all-slots-us" :0 "net-bytes-all-commands-all-slots" :535 "collection-start-time-unix-ms" :1700000000000 "collection-duration-ms" :1500 "total-net-bytes" :535 "by-net-bytes" ["a" :164 "b" :48]]]
        @resp3
        HOTKEYS RESET                           => +OK
        HOTKEYS START METRICS 1 NET DURATION 1 SAMPLE 1000000 => +OK
        @advance 2000
        GET a                                   => "xxxxxxxxxx"
        HOTKEYS GET                             => [{"tracking-active": :0, "sample-ratio": :1000000, "selected-slots": [[:0 :16383]], "all-commands-all-slots-us": :0, "net-bytes-all-commands-all-slots": :108, "collection-start-time-unix-ms": :1700000001500, "collection-duration-ms": :1000, "total-net-bytes": :108, "by-net-bytes": []}]
        HOTKEYS START METRICS 2 GPU CPU         => +OK
        HOTKEYS STOP                            => +OK
        HOTKEYS RESET                           => +OK
        HOTKEYS GET                             => nil
        HOTKEYS START                           => -ERR METRICS parameter is required
        HOTKEYS START COUNT 5                   => -ERR METRICS parameter is required
        HOTKEYS START METRICS 0                 => -ERR METRICS count must be > 0 and <= 2
        HOTKEYS START METRICS 3 CPU NET GPU     => -ERR METRICS count must be > 0 and <= 2
        HOTKEYS START COUNT 5 METRICS 1 CPU     => -ERR METRICS parameter is required
        HOTKEYS START METRICS 2 CPU             => -ERR METRICS count does not match number of metric types provided
        HOTKEYS START METRICS 1 CPU NET         => -ERR syntax error
        HOTKEYS START METRICS 1 GPU             => -ERR METRICS no valid metrics passed. Supported: CPU|NET
        HOTKEYS START METRICS 2 CPU CPU         => -ERR METRICS CPU defined more than once!
        HOTKEYS START METRICS 2 NET NET         => -ERR METRICS NET defined more than once!
        HOTKEYS START METRICS 1 CPU COUNT 65    => -ERR COUNT must be between 1 and 64
        HOTKEYS START METRICS 1 CPU COUNT 0     => -ERR COUNT must be between 1 and 64
        HOTKEYS START METRICS 1 CPU SAMPLE 0    => -ERR SAMPLE ratio must be positive
        HOTKEYS START METRICS 1 CPU DURATION -1 => -ERR DURATION must be between 1 and 1000000
        HOTKEYS START METRICS 1 CPU SLOTS 1 0   => -ERR SLOTS parameter cannot be used in non-cluster mode
        HOTKEYS START METRICS 2 CPU NET         => +OK
        "#,
    );
    let mut client = node.client();
    let shown = node.run(&mut client, "HOTKEYS GET");
    for name in
        ["total-cpu-time-user-ms", "total-cpu-time-sys-ms", "by-cpu-time-us", "by-net-bytes"]
    {
        assert!(shown.contains(name), "{name}: {shown}");
    }
}

#[test]
fn help_names_every_subcommand() {
    let node = TestNode::new();
    let help = text(&node, "SLOWLOG HELP");
    assert!(help.starts_with("[+SLOWLOG <subcommand> [<arg>"), "{help}");
    for line in ["+GET [count]", "+LEN", "+RESET", "+HELP"] {
        assert!(help.contains(line), "{line}");
    }
}

#[test]
fn small_questions() {
    check(
        r#"
        TIME             => *
        TIME x           => -ERR wrong number of arguments for 'time' command
        ROLE             => *
        LOLWUT VERSION x => -ERR value is not an integer or out of range
        LOLWUT VERSION 5 => *
        FUNCTION FLUSH   => +OK
        FUNCTION FLUSH x => -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
        SCRIPT FLUSH          => +OK
        SCRIPT FLUSH sync     => +OK
        SCRIPT FLUSH x        => -ERR SCRIPT FLUSH only support SYNC|ASYNC option
        SCRIPT FLUSH sync x   => -ERR SCRIPT FLUSH only support SYNC|ASYNC option
        SCRIPT EXISTS a b     => [:0 :0]
        SCRIPT EXISTS         => -ERR wrong number of arguments for 'script|exists' command
        SCRIPT KILL           => -NOTBUSY No scripts in execution right now.
        "#,
    );
    check_on(&TestNode::new(), r#"TIME => ["1700000000" "0"]"#);
    check_on(&TestNode::new(), r#"ROLE => ["master" :0 []]"#);
}

#[test]
fn saving_and_stopping() {
    let node = TestNode::new();
    check_on(
        &node,
        r#"
        SAVE            => +OK
        BGSAVE          => +Background saving started
        BGSAVE SCHEDULE => +Background saving started
        BGSAVE x        => -ERR syntax error
        BGREWRITEAOF    => +Background append only file rewriting started
        LASTSAVE        => :0
        MULTI           => +OK
        SAVE            => -ERR Command not allowed inside a transaction
        SHUTDOWN        => -ERR Command not allowed inside a transaction
        DISCARD         => +OK
        SHUTDOWN ABORT  => -ERR No shutdown in progress.
        SHUTDOWN x      => -ERR syntax error
        SHUTDOWN SAVE NOSAVE => -ERR syntax error
        SHUTDOWN NOW ABORT   => -ERR syntax error
        "#,
    );
    assert_eq!(node.log.checkpoints.load(Relaxed), 4);
    assert_eq!(*node.log.shutdown.lock(), None);
    check_on(&node, "SHUTDOWN NOSAVE NOW FORCE => (none)");
    let expected = Shutdown { save: Some(false), force: true };
    assert_eq!(*node.log.shutdown.lock(), Some(expected));
}

#[test]
fn memory_is_accounted_for() {
    check(
        r#"
        SET k v                  => +OK
        MEMORY USAGE nosuch      => nil
        MEMORY USAGE k SAMPLES   => -ERR syntax error
        MEMORY USAGE k SAMPLES x => -ERR value is not an integer or out of range
        MEMORY USAGE k SAMPLES -1 => -ERR syntax error
        MEMORY USAGE k NOSUCH 1  => -ERR syntax error
        MEMORY USAGE k SAMPLES 0 => *
        MEMORY DOCTOR            => *
        "#,
    );
    let node = TestNode::new();
    let mut client = node.client();
    let big = format!("SET big {}", "x".repeat(100_000));
    node.run(&mut client, &big);
    let usage = node.run(&mut client, "MEMORY USAGE big");
    let usage: usize = usage.strip_prefix(':').unwrap().parse().unwrap();
    assert!((100_000..101_000).contains(&usage), "{usage}");
    let stats = node.run(&mut client, "MEMORY STATS");
    assert!(stats.contains(r#""keys.count" :1 "#), "{stats}");
    // The test's process has an allocator that cannot be asked.
    assert!(node.run(&mut client, "MEMORY PURGE").starts_with("-ERR the allocator"));
    assert!(node.run(&mut client, "MEMORY MALLOC-STATS").starts_with("-ERR unknown subcommand"));
}

#[test]
fn delays_are_remembered_and_explained() {
    let node = TestNode::new().without_rehearsals();
    check_on(
        &node,
        r#"
        LATENCY LATEST         => []
        LATENCY RESET          => :0
        LATENCY HISTORY nosuch => []
        LATENCY GRAPH nosuch   => -ERR No samples available for event 'nosuch'
        LATENCY HELP x         => -ERR wrong number of arguments for 'latency|help' command
        CONFIG SET latency-monitor-threshold 10 => +OK
        "#,
    );
    let events = &node.node.latency_events;
    events.note("fsync", 25, 1_700_000_000);
    events.note("command", 9, 1_700_000_000);
    check_on(
        &node,
        r#"
        LATENCY LATEST         => [["fsync" :1700000000 :25 :25]]
        LATENCY HISTORY fsync  => [[:1700000000 :25]]
        LATENCY RESET a fsync  => :1
        "#,
    );
    assert!(text(&node, "LATENCY DOCTOR").contains("No delays"));

    check_on(
        &node,
        r#"
        CONFIG RESETSTAT         => +OK
        SET a b                  => +OK
        LATENCY HISTOGRAM set    => ["set" ["calls" :1 "histogram_usec" [:1 :1]]]
        LATENCY HISTOGRAM nosuch => []
        LATENCY HISTOGRAM config => ["config|resetstat" ["calls" :1 "histogram_usec" [:1 :1]]]
        @resp3
        LATENCY HISTOGRAM set x  => {"set": {"calls": :1, "histogram_usec": {:1: :1}}}
        "#,
    );
}

/// A node on which DEBUG is allowed.
fn debug_node() -> TestNode {
    let mut loader = ladon_settings::Loader::new();
    loader.flag("enable-debug-command", "local");
    TestNode::with_settings(loader.finish().expect("a known flag").0)
}

#[test]
fn debug_has_to_be_allowed() {
    check_on(
        &TestNode::new(),
        "DEBUG SLEEP 0 => -ERR DEBUG command not allowed. If the enable-debug-command option is \
         set to \"local\", you can run it from a local connection, otherwise you need to set \
         this option in the configuration file, and then restart the server.",
    );
    let node = debug_node();
    let mut client = node.client();
    assert_eq!(node.run(&mut client, "DEBUG SLEEP 0"), "+OK");
    let info = ladon_kernel::client::clients::ClientInfo {
        addr: "192.0.2.1:5".to_owned(),
        ..ladon_kernel::client::clients::ClientInfo::default()
    };
    client.session.info = info.into();
    assert!(node.run(&mut client, "DEBUG SLEEP 0").starts_with("-ERR DEBUG command not allowed"));
}

#[test]
fn debug_looks_inside() {
    check_on(
        &debug_node(),
        r#"
        DEBUG JMAP                     => -ERR unknown subcommand or wrong number of arguments for 'JMAP'. Try DEBUG HELP.
        DEBUG SLEEP                    => -ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.
        DEBUG PANIC                    => -ERR DEBUG PANIC is not supported by Ladon
        DEBUG ERROR "MY error"         => -MY error
        DEBUG LOG hello                => +OK
        DEBUG SET-ACTIVE-EXPIRE 0      => +OK
        DEBUG SET-ACTIVE-EXPIRE x      => -ERR value is not an integer or out of range
        DEBUG STRINGMATCH-LEN h*llo hello => :1
        DEBUG STRINGMATCH-LEN h*llo world => :0
        DEBUG DIGEST                   => +0000000000000000000000000000000000000000
        DEBUG DIGEST-VALUE nosuch      => [+0000000000000000000000000000000000000000]
        DEBUG OBJECT nosuch            => -ERR no such key
        DEBUG POPULATE x               => -ERR value is out of range, must be positive
        DEBUG POPULATE 3               => +OK
        DEBUG POPULATE 2 a 10          => +OK
        GET key:2                      => "value:2"
        GET a:1                        => "value:1\x00\x00\x00"
        DBSIZE                         => :5
        DEBUG PROTOCOL map             => [:0 :0 :1 :1 :2 :0]
        DEBUG PROTOCOL push            => -ERR RESP2 is not supported by this command
        DEBUG PROTOCOL attrib          => "Some real reply following the attribute"
        DEBUG HTSTATS 99               => -ERR Out of range database
        DEBUG HTSTATS-KEY nosuch       => -ERR no such key
        DEBUG HTSTATS-KEY a:1          => -ERR The value stored at the specified key is not represented using an hash table
        "#,
    );
}

#[test]
fn digests_depend_on_the_data_alone() {
    let (one, two) = (debug_node(), debug_node());
    let (mut a, mut b) = (one.client(), two.client());
    for line in ["SET k 12", "SADD s 1 2 3 x", "SET gone 1", "DEL gone"] {
        one.run(&mut a, line);
    }
    for line in ["SADD s 3 x", "SADD s 2 1", "SET k 1", "APPEND k 2"] {
        two.run(&mut b, line);
    }
    let digest = one.run(&mut a, "DEBUG DIGEST");
    assert_eq!(digest.len(), 41);
    assert_eq!(digest, two.run(&mut b, "DEBUG DIGEST"));
    let values = one.run(&mut a, "DEBUG DIGEST-VALUE k s");
    assert_eq!(values, two.run(&mut b, "DEBUG DIGEST-VALUE k s"));
    for line in ["EXPIRE k 100", "SREM s 3", "SELECT 1", "SET k 12"] {
        two.run(&mut b, line);
        assert_ne!(digest, two.run(&mut b, "DEBUG DIGEST"), "{line}");
    }
}

#[test]
fn data_survives_the_form_of_files() {
    let node = debug_node();
    let mut client = node.client();
    for line in [
        "SET n 12",
        "SET s some-text EX 100",
        "APPEND grown x",
        "SADD ints 1 2 3",
        "SADD words a b c",
        "SELECT 3",
        "SET other 1",
        "SADD big a b c",
    ] {
        node.run(&mut client, line);
    }
    for at in 0..1000 {
        node.run(&mut client, &format!("SADD big {at}"));
    }
    let (dump, used) = (node.dump(), client.scratch.counters.bytes_delta);
    let digest = node.run(&mut client, "DEBUG DIGEST");
    for line in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE", "DEBUG LOADAOF"] {
        assert_eq!(node.run(&mut client, line), "+OK");
        assert_eq!(node.dump(), dump);
        assert_eq!(node.run(&mut client, "DEBUG DIGEST"), digest);
    }
    assert!(client.scratch.counters.bytes_delta <= used, "nothing is counted twice");
    assert_eq!(node.log.checkpoints.load(Relaxed), 1);
    assert_eq!(node.replayed(), dump);
    for line in ["DEBUG RELOAD MERGE", "DEBUG RELOAD x"] {
        assert!(node.run(&mut client, line).starts_with("-ERR DEBUG RELOAD "), "{line}");
    }
    assert_eq!(node.run(&mut client, "OBJECT ENCODING big"), "\"hashtable\"");
    node.run(&mut client, "FLUSHALL");
    assert_eq!(client.scratch.counters.bytes_delta, 0, "nor forgotten");
}

#[test]
fn watchers_see_what_was_executed() {
    let node = TestNode::new();
    let (mut watcher, mut client) = (node.client(), node.client());
    assert_eq!(node.run(&mut watcher, "MONITOR"), "+OK");
    for line in ["SET a \"b\\x00\"", "MULTI", "GET a", "EXEC", "CONFIG GET x", "AUTH u p"] {
        node.run(&mut client, line);
    }
    let seen: Vec<String> = node.node.threads[0]
        .take()
        .into_iter()
        .map(|message| match message {
            ladon_kernel::message::Message::Deliver { client, bytes, .. } => {
                assert_eq!(client, watcher.session.info.id);
                String::from_utf8(bytes.to_vec()).unwrap()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [r#""SET" "a" "b\x00""#, r#""MULTI""#, r#""GET" "a""#, r#""EXEC""#];
    let expected: Vec<String> = expected
        .iter()
        .map(|command| format!("+1700000000.000000 [0 127.0.0.1:2] {command}\r\n"))
        .collect();
    assert_eq!(seen[..4], expected);
    assert_eq!(
        seen.iter().filter(|line| line.contains("CONFIG") || line.contains("\"p\"")).count(),
        0
    );
}

#[test]
fn nothing_expires_while_writes_are_paused() {
    let node = TestNode::new();
    check_on(
        &node,
        r#"
        SET k v PX 10             => +OK
        CLIENT PAUSE 100000 WRITE => +OK
        @advance 50
        GET k                     => nil
        EXISTS k                  => :0
        DBSIZE                    => :1
        CLIENT UNPAUSE            => +OK
        GET k                     => nil
        DBSIZE                    => :0
        "#,
    );
}
