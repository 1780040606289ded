//! What the bitmap commands answer, and what they cost.

use crate::common::{TestNode, check};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn bits() {
    check(
        r#"
        SETBIT k 7 1       => :0
        GET k              => "\x01"
        SETBIT k 7 1       => :1
        SETBIT k 100 1     => :0
        STRLEN k           => :13
        GETBIT k 100       => :1
        GETBIT k 1000      => :0
        BITCOUNT k         => :2
        BITCOUNT k 1 -1    => :1
        BITCOUNT k 7 7 BIT => :1
        BITPOS k 1         => :7
        BITPOS k 1 1       => :100
        BITPOS k 0 0 -1 BIT => :0
        SETBIT k 4294967296 1 => -ERR bit offset is not an integer or out of range
        SETBIT k 1 2       => -ERR bit is not an integer or out of range
        BITPOS k 2         => -ERR The bit argument must be 1 or 0.
        SET e x EX 100     => +OK
        SETBIT e 3000 1    => :0
        TTL e              => :100
        COPY e f           => :1
        RENAME f g         => +OK
        BITCOUNT g         => :5
        SET i 7            => +OK
        SETBIT i 0 0       => :0
        OBJECT ENCODING i  => "raw"
        "#,
    );
}

#[test]
fn combinations() {
    check(
        r#"
        MSET x "\xf0\xff" y "\xcc" z "\xaa\x0f\x01" => +OK
        BITOP AND d x y z  => :3
        GET d              => "\x80\x00\x00"
        BITOP NOT d y      => :1
        GET d              => "3"
        BITOP DIFF d x y z =>> :3
        GET d              =>> "\x10\xf0\x00"
        BITOP DIFF d x     =>> -ERR BITOP DIFF must be called with at least two source keys.
        BITOP ONE x x x    =>> :2
        GET x              =>> "\x00\x00"
        BITOP OR d nosuch  => :0
        EXISTS d           => :0
        "#,
    );
}

#[test]
fn fields() {
    check(
        r#"
        BITFIELD k SET u8 0 255 GET i4 2 INCRBY u2 100 1    => [:0 :-1 :1]
        BITFIELD k OVERFLOW FAIL INCRBY u8 0 1              => [nil]
        BITFIELD k OVERFLOW SAT INCRBY u8 0 1 INCRBY i8 #3 -200 => [:255 :-128]
        BITFIELD f OVERFLOW FAIL SET u8 100 256             => [nil]
        STRLEN f                                            => :14
        BITFIELD_RO k GET u8 0                              => [:255]
        BITFIELD_RO k SET u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand
        "#,
    );
}

#[test]
fn other_types_are_refused() {
    let node = TestNode::new();
    let mut client = node.client();
    node.run(&mut client, "SADD s a");
    for line in [
        "SETBIT s 1 1",
        "GETBIT s 1",
        "BITCOUNT s",
        "BITPOS s 1",
        "BITOP OR d s",
        "BITFIELD s GET u8 0",
        "BITFIELD s SET u8 0 1",
        "BITFIELD_RO s GET u8 0",
    ] {
        assert_eq!(node.run(&mut client, line), WRONG_TYPE, "{line}");
    }
}

fn logged_bytes(node: &TestNode) -> usize {
    node.log.records().iter().map(|(_, changes)| changes.len()).sum()
}

/// However long the string, a bit is a few bytes of log, and creating a long one is no more.
#[test]
fn a_bit_is_logged_as_a_bit() {
    let node = TestNode::new();
    let mut client = node.client();
    let mut logged = |line: &str| {
        let before = logged_bytes(&node);
        node.run(&mut client, line);
        logged_bytes(&node) - before
    };
    assert!(logged("SETBIT long 800000000 1") < 40);
    assert!(logged("SETBIT long 5 1") < 20);
    assert!(logged("SETBIT long 800001000 1") < 200);
    assert_eq!(logged("SETBIT long 5 1"), 0, "nothing changed");
    assert!(logged("BITFIELD long INCRBY u16 100003 1 SET i7 400000000 3") < 60);
    assert!(logged("BITFIELD zeros OVERFLOW FAIL SET u8 400000000 256") < 40);
    assert!(logged("SETRANGE other 1000000 x") < 40);
    assert!(logged("APPEND other y") < 20);
    assert_eq!(node.replayed(), node.dump());
}

/// A bit behind the end must not double a large string.
#[test]
fn a_long_bitmap_grows_by_little() {
    let node = TestNode::new();
    let mut client = node.client();
    let mut used = |line: &str| {
        node.run(&mut client, line);
        node.node.keyspace.add_used_bytes(std::mem::take(&mut client.scratch.counters.bytes_delta));
        node.node.keyspace.used_bytes()
    };
    let before = used("PING");
    let created = used("SETBIT k 79999999 1") - before;
    assert!((10_000_000..10_010_000).contains(&created), "{created}");
    let grown = used("SETBIT k 80000000 1") - before;
    assert!((10_000_001..11_300_000).contains(&grown), "{grown}");
    assert_eq!(used("SETBIT k 80000100 1") - before, grown, "room was left");
    // The table keeps its first segment.
    assert!(used("DEL k") < before + 10_000);
}
