//! What the HyperLogLog commands answer, and what they log.

use crate::common::{TestNode, check};

#[test]
fn adding_counting_merging() {
    check(
        r#"
        PFADD h                          => :1
        PFADD h                          => :0
        PFCOUNT h                        => :0
        PFADD h a b c                    => :1
        PFADD h c a                      => :0
        PFCOUNT h                        => :3
        GETRANGE h 15 15                 => "\x00"
        PFADD h a                        => :0
        GETRANGE h 15 15                 => "\x00"
        PFADD h d                        => :1
        GETRANGE h 15 15                 => "\x80"
        OBJECT ENCODING h                => "raw"
        PFADD other c d e f              => :1
        PFCOUNT h other missing          => :6
        PFMERGE h other                  => +OK
        PFCOUNT h                        => :6
        PFDEBUG ENCODING h               => +sparse
        PFDEBUG TODENSE h                => :1
        PFDEBUG TODENSE h                => :0
        STRLEN h                         => :12304
        PFCOUNT h                        => :6
        EXPIRE h 100                     => :1
        PFADD h x y z                    => :1
        PFCOUNT h                        => :9
        TTL h                            => :100
        PFMERGE h other                  => +OK
        TTL h                            => :100
        PFSELFTEST                       => +OK
        "#,
    );
}

#[test]
fn damaged_values_are_refused() {
    check(
        r#"
        SET text abc                     => +OK
        PFADD text a                     => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SADD set a                       => :1
        PFADD set a                      => -WRONGTYPE Operation against a key holding the wrong kind of value
        PFADD h a b c                    => :1
        APPEND h hello                   => :32
        PFCOUNT h                        => -INVALIDOBJ Corrupted HLL object detected
        PFCOUNT h h                      => -INVALIDOBJ Corrupted HLL object detected
        PFMERGE new h                    => -INVALIDOBJ Corrupted HLL object detected
        EXISTS new                       => :0
        PFDEBUG GETREG h                 => -INVALIDOBJ Corrupted HLL object detected
        SETRANGE h 4 2                   => :32
        PFCOUNT h                        => -WRONGTYPE Key is not a valid HyperLogLog string value.
        "#,
    );
}

/// A register is a few bytes of log, in either encoding.
#[test]
fn a_register_is_logged_as_a_register() {
    let node = TestNode::new();
    let mut client = node.client();
    let mut logged = |line: &str| {
        let sum = || -> usize { node.log.records().iter().map(|(_, changes)| changes.len()).sum() };
        let before = sum();
        node.run(&mut client, line);
        sum() - before
    };
    for number in 0..1000 {
        let sparse = logged(&format!("PFADD h e{number}"));
        assert!(sparse < 60, "{number}: {sparse}");
        if number % 10 == 0 {
            assert!(logged("PFCOUNT h") < 30);
            assert_eq!(logged("PFCOUNT h"), 0, "it is in the value");
        }
    }
    assert!(logged("PFADD h e1") == 0, "nothing changed");
    assert!(logged("PFDEBUG TODENSE h") > 12_000);
    for number in 1000..3000 {
        let dense = logged(&format!("PFADD h e{number}"));
        assert!(dense < 30, "{number}: {dense}");
        if number % 10 == 0 {
            assert!(logged("PFCOUNT h") < 30);
        }
    }
    let many: Vec<String> = (0..100).map(|number| format!("many{number}")).collect();
    assert!(logged(&format!("PFADD h {}", many.join(" "))) < 1500);
    assert_eq!(node.replayed(), node.dump());
}

/// The log gives back every value, whatever changed in it and however it is encoded.
#[test]
fn the_log_gives_values_back() {
    let node = TestNode::new();
    let mut client = node.client();
    for number in 0..1000 {
        let key = number % 3;
        node.run(&mut client, &format!("PFADD k{key} a{number} b{number} c{number} d{number}"));
        if number % 7 == 0 {
            node.run(&mut client, &format!("PFCOUNT k{key}"));
        }
        if number % 50 == 0 {
            node.run(&mut client, &format!("PFMERGE m k{key}"));
            assert_eq!(node.replayed(), node.dump());
        }
    }
    assert_eq!(node.run(&mut client, "PFDEBUG ENCODING m"), "+dense");
    assert_eq!(node.replayed(), node.dump());
}
