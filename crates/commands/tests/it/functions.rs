//! `FUNCTION` and `FCALL`: what they log, and what stays of a transaction that is taken back.

use crate::common::{TestNode, check_on};
use ladon_engine::{Keyspace, KeyspaceOptions, Locks, Recovering, Scratch};
use ladon_record::LibraryBody;

const CODE: &str = "#!lua name=l\nredis.register_function{function_name='f', description='what', \
                    callback=function(k, a) return redis.call('incrby', k[1], a[1]) end, \
                    flags={'allow-oom'}}\n";

fn request(node: &TestNode, args: &[&[u8]]) -> String {
    let mut client = node.client();
    let (reply, _) = node.request(&mut client, args);
    node.end(client);
    String::from_utf8_lossy(&reply).into_owned()
}

fn load(node: &TestNode, code: &str) -> String {
    request(node, &[b"FUNCTION", b"LOAD", b"REPLACE", code.as_bytes()])
}

type Found = Vec<(Vec<u8>, LibraryBody)>;

fn libraries(keyspace: &Keyspace) -> Found {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::Partition(0), &mut scratch, 0);
    let found = tx.libraries();
    found.iter().map(|library| (library.name.to_vec(), library.body.clone())).collect()
}

/// What replaying the log gives.
fn replayed(node: &TestNode) -> Found {
    let keyspace = Keyspace::new(KeyspaceOptions { hash_seed: 42, databases: 16 });
    let recovering = Recovering::new(&keyspace, 0);
    for (lsn, changes) in node.log.records() {
        recovering.replay((0, 1)).record(lsn, &changes).expect("a logged record applies");
    }
    libraries(&keyspace)
}

#[test]
fn a_library_is_one_record_and_is_there_after_replay() {
    let node = TestNode::new();
    assert_eq!(load(&node, CODE), "$1\r\nl\r\n");
    assert_eq!(node.log.records().len(), 1);
    let found = replayed(&node);
    assert_eq!(found, libraries(&node.node.keyspace));
    let [(name, body)] = &found[..] else { panic!("one library") };
    assert_eq!((&name[..], &body.code[..]), (&b"l"[..], CODE.as_bytes()));
    let function = &body.functions[0];
    assert_eq!((&function.name[..], function.flags), (&b"f"[..], 2));
    assert_eq!(function.description.as_deref(), Some(&b"what"[..]));

    check_on(
        &node,
        r#"
        FCALL f 1 n 5           => :5
        FLUSHALL                => +OK
        FCALL F 1 n 7           => :7
        FUNCTION DELETE l       => +OK
        FUNCTION DELETE l       => -ERR Library not found
        FUNCTION FLUSH          => +OK
        FCALL f 1 n 5           => -ERR Function not found
        "#,
    );
    assert_eq!(node.log.records().len(), 5, "what removes nothing is not logged");
    assert!(replayed(&node).is_empty());
    assert_eq!(node.node.keyspace.library_bytes(), 0);
}

#[test]
fn every_thread_notices_that_a_library_was_replaced() {
    let node = TestNode::new();
    let (mut first, mut second) = (node.client(), node.client());
    for version in 1..5 {
        let code =
            format!("#!lua name=l\nredis.register_function('f', function() return {version} end)");
        load(&node, &code);
        for client in [&mut first, &mut second] {
            for _ in 0..2 {
                assert_eq!(node.run(client, "FCALL f 0"), format!(":{version}"));
            }
        }
    }
    assert_eq!(node.run(&mut first, "FUNCTION FLUSH"), "+OK");
    for client in [&mut first, &mut second] {
        assert_eq!(node.run(client, "FCALL f 0"), "-ERR Function not found");
    }
    node.end(first);
    node.end(second);
}

/// A payload whose second library does not fit leaves the first one out, too.
#[test]
fn a_payload_is_restored_whole_or_not_at_all() {
    let node = TestNode::new();
    load(&node, "#!lua name=a\nredis.register_function('x', function() return 1 end)");
    load(&node, "#!lua name=b\nredis.register_function('y', function() return 1 end)");
    let dump = request(&node, &[b"FUNCTION", b"DUMP"]);
    let mut client = node.client();
    let (reply, _) = node.request(&mut client, &[b"FUNCTION", b"DUMP"]);
    node.end(client);
    let start = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let payload = &reply[start..reply.len() - 2];
    assert!(dump.starts_with('$') && payload.len() > 100);
    let both = libraries(&node.node.keyspace);

    request(&node, &[b"FUNCTION", b"DELETE", b"a"]);
    let one = libraries(&node.node.keyspace);
    let restore = |how: &[u8]| request(&node, &[b"FUNCTION", b"RESTORE", payload, how]);
    assert_eq!(restore(b"APPEND"), "-ERR Library b already exists\r\n");
    assert_eq!(libraries(&node.node.keyspace), one);
    let records = node.log.records().len();
    assert_eq!(restore(b"REPLACE"), "+OK\r\n");
    assert_eq!(libraries(&node.node.keyspace), both);
    assert_eq!(node.log.records().len(), records + 1, "one record");
    load(&node, "#!lua name=c\nredis.register_function('z', function() return 1 end)");
    assert_eq!(restore(b"FLUSH"), "+OK\r\n");
    assert_eq!(libraries(&node.node.keyspace), both);
    assert_eq!(replayed(&node), both);
}

#[test]
fn a_transaction_changes_libraries_as_one() {
    let node = TestNode::new();
    load(&node, CODE);
    let before = node.log.records().len();
    let mut client = node.client();
    for (line, reply) in [
        ("MULTI", "+OK"),
        ("FUNCTION DELETE l", "+QUEUED"),
        (
            "FUNCTION LOAD \"#!lua name=m\\nredis.register_function('m', function(k) return \
             redis.call('incr', k[1]) end)\"",
            "+QUEUED",
        ),
        ("FCALL m 1 n", "+QUEUED"),
        ("FCALL f 1 n 1", "+QUEUED"),
        ("EXEC", "[+OK \"m\" :1 -ERR Function not found]"),
        ("FCALL m 1 n", ":2"),
    ] {
        assert_eq!(node.run(&mut client, line), reply, "{line}");
        if line == "EXEC" {
            let logged = node.log.records().len() - before;
            assert_eq!(logged, 1, "one transaction is one record");
        }
    }
    node.end(client);
    let found = replayed(&node);
    assert_eq!(found.len(), 1);
    assert_eq!(found, libraries(&node.node.keyspace));
}

/// What a replica or an operator reads about libraries.
#[test]
fn libraries_count_as_memory() {
    let node = TestNode::new();
    let used = node.node.used_memory();
    load(&node, &format!("{CODE}-- {}", "x".repeat(100_000)));
    assert!(node.node.used_memory() > used + 100_000);
    let info = request(&node, &[b"INFO", b"memory"]);
    assert!(info.contains("number_of_functions:1\r\nnumber_of_libraries:1\r\n"), "{info}");
    request(&node, &[b"FUNCTION", b"FLUSH"]);
    assert_eq!(node.node.used_memory(), used);
}
