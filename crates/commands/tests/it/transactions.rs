//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

use crate::common::{TestNode, check, check_on};
use ladon_kernel::request::outcome::Flow;
use std::sync::atomic::Ordering::Relaxed;

const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.";

#[test]
fn a_transaction_runs_as_one() {
    check(
        r#"
        MULTI                   => +OK
        SET a 1                 => +QUEUED
        INCR a                  => +QUEUED
        LPUSHX                  => *
        DISCARD                 => +OK
        GET a                   => nil
        MULTI                   => +OK
        SET a x                 => +QUEUED
        INCR a                  => +QUEUED
        GET a                   => +QUEUED
        EXEC                    => [+OK -ERR value is not an integer or out of range "x"]
        MULTI                   => +OK
        EXEC                    => []
        EXEC                    => -ERR EXEC without MULTI
        DISCARD                 => -ERR DISCARD without MULTI
        "#,
    );
    let node = TestNode::new();
    check_on(&node, "MULTI => +OK\nSET a 1 => +QUEUED\nSADD s x => +QUEUED\nEXEC => [+OK :1]");
    assert_eq!(node.log.records().len(), 1, "one transaction is one record");
}

#[test]
fn errors_while_queueing_abort() {
    let mut script = String::new();
    for (line, error) in [
        ("SET a", "-ERR wrong number of arguments for 'set' command"),
        ("NOSUCH", "*"),
        ("CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP."),
        ("CLIENT", "-ERR wrong number of arguments for 'client' command"),
        ("MULTI x", "-ERR wrong number of arguments for 'multi' command"),
    ] {
        script += &format!(
            "MULTI => +OK\nSET b 1 => +QUEUED\n{line} => {error}\nSET b 2 => +QUEUED\n\
             EXEC => {ABORTED}\nGET b => nil\nPING => +PONG\n"
        );
    }
    check(&script);
}

#[test]
fn some_commands_are_refused_without_harm() {
    check(
        r#"
        MULTI                   => +OK
        MULTI                   => -ERR MULTI calls can not be nested
        WATCH a                 => -ERR WATCH inside MULTI is not allowed
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        MULTI                   => +OK
        EXEC x                  => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        EXEC                    => -ERR EXEC without MULTI
        EXEC x                  => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        MULTI                   => +OK
        UNWATCH                 => +QUEUED
        SELECT 5                => +QUEUED
        SET a 1                 => +QUEUED
        EXEC                    => [+OK +OK +OK]
        GET a                   => "1"
        SELECT 0                => +OK
        GET a                   => nil
        MULTI                   => +OK
        SET a 1                 => +QUEUED
        RESET                   => +RESET
        EXEC                    => -ERR EXEC without MULTI
        GET a                   => nil
        "#,
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told to the server line by line")]
fn watched_keys_decide() {
    check(
        r#"
        SET x 1                 => +OK
        WATCH x y               => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        # No longer watched after EXEC.
        SET x 2                 => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        # Its own change counts too.
        WATCH x                 => +OK
        SET x 3                 => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => nil-array
        # Another's.
        WATCH a b x c           => +OK
        @client 2
        SET x 4                 => +OK
        @client 1
        WATCH d                 => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => nil-array
        # Not the value, the change.
        WATCH x                 => +OK
        @client 2
        SET x 4                 => +OK
        @client 1
        MULTI                   => +OK
        EXEC                    => nil-array
        WATCH x                 => +OK
        @client 2
        DEL x                   => :1
        @client 1
        UNWATCH                 => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        WATCH x                 => +OK
        SET x 5                 => +OK
        MULTI                   => +OK
        DISCARD                 => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        # An error comes first.
        WATCH x                 => +OK
        SET x 6                 => +OK
        MULTI                   => +OK
        NOSUCH                  => *
        EXEC                    => -EXECABORT Transaction discarded because of previous errors.
        # What does not change a key does not touch it.
        SADD s a                => :1
        WATCH s x               => +OK
        SADD s a                => :0
        SREM s z                => :0
        EXPIRE missing 5        => :0
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        WATCH s                 => +OK
        SREM s a                => :1
        MULTI                   => +OK
        EXEC                    => nil-array
        SET x 1                 => +OK
        WATCH x                 => +OK
        EXPIRE x 100            => :1
        MULTI                   => +OK
        EXEC                    => nil-array
        @resp3
        WATCH x                 => +OK
        SET x 1                 => +OK
        MULTI                   => +OK
        EXEC                    => nil
        "#,
    );
}

#[test]
fn watching_remembers_the_database() {
    check(
        r#"
        SELECT 5                => +OK
        SET x 30                => +OK
        WATCH x                 => +OK
        SELECT 1                => +OK
        SET x 10                => +OK
        SELECT 5                => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        WATCH x                 => +OK
        SELECT 1                => +OK
        @client 2
        SELECT 5                => +OK
        SET x 31                => +OK
        @client 1
        MULTI                   => +OK
        EXEC                    => nil-array
        "#,
    );
}

#[test]
fn expiry_and_watching() {
    check(
        r#"
        SET x 1 PX 20           => +OK
        WATCH x                 => +OK
        @advance 30
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => nil-array
        "#,
    );
    // Active expiry would come in between on a real server.
    check_on(
        &TestNode::new(),
        r#"
        # What had expired when it was watched changes nothing by going away.
        SET x 1 PX 20           => +OK
        @advance 30
        WATCH x                 => +OK
        @client 2
        GET x                   => nil
        @client 1
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        SET x 1 PX 20           => +OK
        @advance 30
        WATCH x                 => +OK
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        SET x 1 PX 20           => +OK
        @advance 30
        WATCH x                 => +OK
        DEL x                   => :0
        MULTI                   => +OK
        PING                    => +QUEUED
        EXEC                    => [+PONG]
        # But it may come back.
        SET x 1 PX 20           => +OK
        @advance 30
        WATCH x                 => +OK
        SET x 2                 => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        "#,
    );
}

#[test]
fn flushing_and_watching() {
    check(
        r#"
        SET x 1                 => +OK
        WATCH x                 => +OK
        FLUSHALL                => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        WATCH x                 => +OK
        FLUSHALL                => +OK
        MULTI                   => +OK
        EXEC                    => []
        SET x 1                 => +OK
        WATCH x                 => +OK
        FLUSHDB                 => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        SET x 1                 => +OK
        WATCH x                 => +OK
        SELECT 1                => +OK
        FLUSHDB                 => +OK
        MULTI                   => +OK
        EXEC                    => []
        "#,
    );
    check_on(
        &TestNode::new(),
        r#"
        SET x 1 PX 20           => +OK
        @advance 30
        WATCH x                 => +OK
        FLUSHDB                 => +OK
        MULTI                   => +OK
        EXEC                    => []
        SET x 1 PX 20           => +OK
        WATCH x                 => +OK
        @advance 30
        FLUSHALL                => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        "#,
    );
}

#[test]
fn swapping_and_watching() {
    check(
        r#"
        SET x 1                 => +OK
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        SELECT 0                => +OK
        # x is in 1 now, and comes back.
        WATCH x                 => +OK
        SWAPDB 1 0              => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        FLUSHALL                => +OK
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => []
        SET y 1                 => +OK
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => []
        # The watch goes by the number, not by the data.
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        SET x 1                 => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        "#,
    );
    check_on(
        &TestNode::new(),
        r#"
        # Stale keys that come and go are no change, ...
        SET x 1 PX 20           => +OK
        @advance 30
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => []
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => []
        FLUSHALL                => +OK
        SET x 1 PX 20           => +OK
        SELECT 1                => +OK
        SET x 1 PX 20           => +OK
        SELECT 0                => +OK
        @advance 30
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => []
        # ... a live one is.
        FLUSHALL                => +OK
        SET x 1 PX 20           => +OK
        SELECT 1                => +OK
        SET x 1                 => +OK
        SELECT 0                => +OK
        @advance 30
        WATCH x                 => +OK
        SWAPDB 0 1              => +OK
        MULTI                   => +OK
        EXEC                    => nil-array
        "#,
    );
}

#[test]
fn memory_and_transactions() {
    const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
    let node = TestNode::new();
    let (mut one, mut two) = (node.client(), node.client());
    let full = |full: bool| {
        let limit = if full { "1" } else { "0" };
        node.node.settings.set_many(&[("maxmemory", limit)]).unwrap();
        node.node.keyspace.add_used_bytes(if full { 1000 } else { -1000 });
    };
    let mut run = |line: &str| node.run(&mut one, line);
    // What was queued before memory ran out and needs some, EXEC refuses.
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("SET a 1"), "+QUEUED");
    full(true);
    assert_eq!(run("EXEC"), format!("-EXECABORT Transaction discarded because of: {OOM}"));
    assert_eq!(run("EXEC"), "-ERR EXEC without MULTI");
    full(false);
    // What needs none, it runs.
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("GET a"), "+QUEUED");
    full(true);
    assert_eq!(run("EXEC"), "[nil]");
    // Queueing takes memory, whatever is queued.
    assert_eq!(run("GET a"), "nil");
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("GET a"), format!("-{OOM}"));
    assert_eq!(run("EXEC"), ABORTED);
    assert_eq!(node.run(&mut two, "SET a 1"), format!("-{OOM}"));
}

#[test]
fn a_write_that_was_let_in_goes_on_should_the_log_break_at_this_very_moment() {
    for line in ["SET a 2", "EXEC", "FLUSHALL", "SADD s 1"] {
        let node = TestNode::new();
        let mut one = node.client();
        node.run(&mut one, "SET a 1");
        if line == "EXEC" {
            node.run(&mut one, "MULTI");
            node.run(&mut one, "INCR a");
        }
        let records = node.log.records().len();
        node.log.breaks_next.store(true, Relaxed);
        let reply = node.run(&mut one, line);
        // Its record is what the gate keeps waiting; the change itself is whole.
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        assert_eq!(node.log.records().len(), records + 1, "{line}");
        assert_eq!(node.dump(), node.replayed(), "{line}");
        assert!(node.run(&mut one, "SET a 3").starts_with("-MISCONF "), "{line}");
    }
}

#[test]
fn a_broken_log_refuses_transactions_that_write() {
    const BROKEN: &str = "MISCONF Errors writing to the log: No space left on device";
    let node = TestNode::new();
    let mut client = node.client();
    let mut run = |line: &str| node.run(&mut client, line);
    assert_eq!(run("WATCH w"), "+OK");
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("SET a 1"), "+QUEUED");
    node.log.broken.store(true, Relaxed);
    assert_eq!(run("EXEC"), format!("-EXECABORT Transaction discarded because of: {BROKEN}"));
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("GET a"), "+QUEUED");
    assert_eq!(run("EXEC"), "[nil]");
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("SET a 1"), format!("-{BROKEN}"));
    assert_eq!(run("EXEC"), ABORTED);
}

#[test]
fn replicas_that_must_be_there_and_are_not_refuse_writes() {
    check(
        r#"
        SET k 1 => +OK
        MULTI => +OK
        INCR k => +QUEUED
        @client 2
        CONFIG SET min-replicas-to-write 2 => +OK
        @client 1
        EXEC => -EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write.
        SET k 2 => -NOREPLICAS Not enough good replicas to write.
        GET k => "1"
        CONFIG SET min-slaves-max-lag 0 => +OK
        INCR k => :2
        CONFIG SET min-slaves-max-lag 10 min-slaves-to-write 0 => +OK
        INCR k => :3
        "#,
    );
}

#[test]
fn a_queue_beyond_the_query_buffer_costs_the_connection() {
    let node = TestNode::new();
    node.node.settings.set_many(&[("client-query-buffer-limit", "1mb")]).unwrap();
    let mut client = node.client();
    node.run(&mut client, "MULTI");
    let value = vec![b'x'; 100_000];
    let mut queued = 0;
    loop {
        let (_, outcome) = node.request(&mut client, &[b"SET", b"a", &value]);
        match outcome.flow {
            Flow::Continue => queued += 1,
            Flow::Drop => break,
            flow => panic!("{flow:?}"),
        }
    }
    assert_eq!(queued, 10);
}

#[test]
fn a_client_that_goes_leaves_nothing_behind() {
    let node = TestNode::new();
    let mut client = node.client();
    node.run(&mut client, "WATCH a b c");
    node.run(&mut client, "MULTI");
    node.run(&mut client, "SET a 1");
    let flag = std::sync::Arc::downgrade(&client.session.watch_flag);
    node.end(client);
    assert!(flag.upgrade().is_none(), "nobody holds the flag any more");
    check_on(&node, "SET a 2 => +OK\nGET a => \"2\"");
}
