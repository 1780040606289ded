//! Which lookups count as hits and misses, and which ones count as use: as in Redis.

use crate::common::TestNode;

/// Hits and misses of one request.
fn counted(node: &TestNode, line: &str) -> (u64, u64) {
    let mut client = node.client();
    node.run(&mut client, line);
    (client.scratch.counters.hits, client.scratch.counters.misses)
}

#[test]
fn reading_commands_count_and_writing_ones_do_not() {
    for (line, expected) in [
        ("GET a", (1, 0)),
        ("GET missing", (0, 1)),
        ("MGET a missing b", (2, 1)),
        ("STRLEN a", (1, 0)),
        ("GETRANGE missing 0 1", (0, 1)),
        ("LCS a missing", (1, 1)),
        ("GETEX a", (1, 0)),
        ("GETDEL missing", (0, 1)),
        ("GETSET missing 1", (0, 1)),
        ("SET a 1 GET", (1, 0)),
        ("EXISTS a missing", (1, 1)),
        ("TOUCH a missing", (1, 1)),
        ("TYPE missing", (0, 1)),
        ("TTL a", (1, 0)),
        ("OBJECT ENCODING a", (1, 0)),
        ("COPY a c", (1, 0)),
        ("COPY missing c", (0, 1)),
        ("SET a 1", (0, 0)),
        ("SET a 1 XX", (0, 0)),
        ("SET a 1 KEEPTTL", (0, 0)),
        ("SETNX a 1", (0, 0)),
        ("MSETNX a 1", (0, 0)),
        ("INCR n", (0, 0)),
        ("INCRBYFLOAT n 1", (0, 0)),
        ("APPEND a x", (0, 0)),
        ("SETRANGE missing 0 x", (0, 0)),
        ("DEL a", (0, 0)),
        ("RENAME a b", (0, 0)),
        ("RENAME missing b", (0, 0)),
        ("MOVE a 1", (0, 0)),
        ("EXPIRE a 100", (0, 0)),
        ("PERSIST missing", (0, 0)),
        ("RANDOMKEY", (0, 0)),
        ("SCAN 0", (0, 0)),
    ] {
        let node = TestNode::new();
        node.run(&mut node.client(), "MSET a 1 b 2");
        assert_eq!(counted(&node, line), expected, "{line}");
    }
}

#[test]
fn a_client_that_does_not_touch_leaves_access_times_alone() {
    for (line, no_touch, idle) in [
        ("GET a", false, ":0"),
        ("GET a", true, ":9"),
        ("STRLEN a", true, ":9"),
        ("GETEX a EX 100", true, ":9"),
        ("INCR a", true, ":9"),
        ("INCR a", false, ":0"),
        ("EXPIRE a 100", false, ":0"),
        ("EXPIRE a 100", true, ":9"),
        ("TOUCH a", true, ":0"),
        ("EXISTS a", false, ":9"),
        ("TTL a", false, ":9"),
        ("OBJECT IDLETIME a", false, ":9"),
        ("SET a 2", true, ":0"),
    ] {
        let node = TestNode::new();
        let mut client = node.client();
        node.run(&mut client, "SET a 1");
        node.clock.advance(9_000);
        client.session.no_touch = no_touch;
        node.run(&mut client, line);
        let reply = node.run(&mut node.client(), "OBJECT IDLETIME a");
        assert_eq!(reply, idle, "{line}, no_touch {no_touch}");
    }
}
