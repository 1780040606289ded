//! `DUMP` and `RESTORE`: what is logged, taken back and refused.

use crate::common::{TestNode, check_on, show};
use ladon_rdb::payload;
use ladon_rdb::{Field, Value, Version};

fn request(node: &TestNode, args: &[&[u8]]) -> String {
    let mut client = node.client();
    let (reply, _) = node.request(&mut client, args);
    node.end(client);
    show(&reply)
}

/// The payload of a key.
fn dumped(node: &TestNode, key: &str) -> Vec<u8> {
    let mut client = node.client();
    let (reply, _) = node.request(&mut client, &[b"DUMP", key.as_bytes()]);
    node.end(client);
    let head = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    reply[head..reply.len() - 2].to_vec()
}

const VALUES: &str = r#"
SET string "text"                           => +OK
SET int 12345                               => +OK
RPUSH list a b 1 2 3                        => :5
SADD ints 1 2 3                             => :3
SADD set a b c                              => :3
ZADD zset 1 a 2.5 b -inf c                  => :3
HSET hash f v g w                           => :2
HSET expiring f v g w                       => :2
HPEXPIREAT expiring 1800000000000 FIELDS 1 f => [:1]
XADD stream 1-1 f v                         => "1-1"
XADD stream 2-1 f v g w                     => "2-1"
XGROUP CREATE stream grp 0                  => +OK
XREADGROUP GROUP grp alice COUNT 1 STREAMS stream > => *
XREADGROUP GROUP grp bob COUNT 1 STREAMS stream >   => *
"#;

const KEYS: [&str; 9] =
    ["string", "int", "list", "ints", "set", "zset", "hash", "expiring", "stream"];

/// Every restore is also run and taken back first, and what the log has is compared in the end.
#[test]
fn every_type_is_restored_and_logged() {
    let node = TestNode::new();
    check_on(&node, VALUES);
    for key in KEYS {
        let payload = dumped(&node, key);
        let copy = format!("{key}:copy");
        let restored = request(&node, &[b"RESTORE", copy.as_bytes(), b"0", &payload]);
        assert_eq!(restored, "+OK", "{key}");
        let busy = request(&node, &[b"RESTORE", copy.as_bytes(), b"0", &payload]);
        assert_eq!(busy, "-BUSYKEY Target key name already exists.", "{key}");
        let over = request(&node, &[b"RESTORE", b"string:over", b"77", &payload, b"REPLACE"]);
        assert_eq!(over, "+OK", "{key}");
        let (one, other) = (dumped(&node, key), dumped(&node, &copy));
        assert_eq!(one, other, "{key}");
    }
    check_on(
        &node,
        r#"
        PTTL string:over            => :77
        HPEXPIRETIME expiring:copy FIELDS 2 f g => [:1800000000000 :-1]
        XPENDING stream:copy grp    => [:2 "1-1" "2-1" [["alice" "1"] ["bob" "1"]]]
        LRANGE list:copy 0 -1       => ["a" "b" "1" "2" "3"]
        "#,
    );
}

#[test]
fn damage_is_refused_and_changes_nothing() {
    let node = TestNode::new();
    check_on(&node, VALUES);
    let before = node.dump();
    for key in KEYS {
        let payload = dumped(&node, key);
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 0x21;
            let reply = request(&node, &[b"RESTORE", b"bad", b"0", &damaged]);
            assert_eq!(reply, "-ERR DUMP payload version or checksum are wrong", "{key} at {at}");
            // The same damage under a right checksum: an error, or another value; no crash.
            damaged.truncate(damaged.len() - payload::FOOTER_BYTES);
            payload::seal(&mut damaged, Version::Redis12);
            let reply = request(&node, &[b"RESTORE", b"bad", b"0", &damaged]);
            assert!(reply == "+OK" || reply == "-ERR Bad data format", "{key} at {at}: {reply}");
            request(&node, &[b"DEL", b"bad"]);
        }
    }
    assert_eq!(node.dump(), before);
}

#[test]
fn what_is_there_twice_and_module_types_are_refused() {
    let node = TestNode::new();
    let twice = Value::Hash(vec![
        Field { name: b"f".into(), value: b"1".into(), expires_at_ms: None },
        Field { name: b"f".into(), value: b"2".into(), expires_at_ms: None },
    ]);
    let payload = payload::make(&twice, Version::Redis10).unwrap();
    let bad = "-ERR Bad data format";
    assert_eq!(request(&node, &[b"RESTORE", b"k", b"0", &payload]), bad);
    let mut module = b"\x07\x81\0\0\0\0\0\0\0\0\0".to_vec();
    payload::seal(&mut module, Version::Redis10);
    assert_eq!(request(&node, &[b"RESTORE", b"k", b"0", &module]), bad);
    check_on(&node, "EXISTS k => :0");
}

#[test]
fn what_no_version_has_is_named() {
    let node = TestNode::new();
    check_on(
        &node,
        r#"
        SADD set a b                            => :2
        SPEXPIREAT set 1800000000000 MEMBERS 1 a => [:1]
        DUMP set => -ERR no version of RDB has sets whose members expire
        "#,
    );
}
