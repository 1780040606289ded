//! Lists: what the commands answer, and that the log gives back what they left.

use crate::common::{TestClient, TestNode, check, check_on};
use ladon_settings::Loader;

#[test]
fn in_and_out_at_the_ends() {
    check(
        r#"
        RPUSH l a b c           => :3
        LPUSH l x y             => :5
        LRANGE l 0 -1           => ["y" "x" "a" "b" "c"]
        LLEN l                  => :5
        LLEN missing            => :0
        LPOP l                  => "y"
        RPOP l                  => "c"
        LPOP l 2                => ["x" "a"]
        LPOP l 0                => []
        RPOP l 10               => ["b"]
        EXISTS l                => :0
        LPOP l                  => nil
        LPOP l 3                => nil-array
        RPOP missing 0          => nil-array
        LPUSHX l a              => :0
        RPUSHX l a b            => :0
        EXISTS l                => :0
        RPUSH l 1               => :1
        LPUSHX l 0 -1           => :3
        RPUSHX l 2 3            => :5
        LRANGE l 0 -1           => ["-1" "0" "1" "2" "3"]
        RPUSH e ""              => :1
        RPOP e                  => ""
        LPOP l -1               => -ERR value is out of range, must be positive
        LPOP l x                => -ERR value is out of range, must be positive
        LPOP missing -1         => -ERR value is out of range, must be positive
        LPOP l 1 2              => -ERR wrong number of arguments for 'lpop' command
        RPOP l 1 2              => -ERR wrong number of arguments for 'rpop' command
        LPUSH l                 => -ERR wrong number of arguments for 'lpush' command
        @resp3
        LPOP missing            => nil
        LPOP missing 2          => nil
        LPOP l 2                => ["-1" "0"]
        "#,
    );
}

#[test]
fn looking_at_ranges_and_indexes() {
    check(
        r#"
        RPUSH l 0 1 2 3 4 5     => :6
        LRANGE l 1 3            => ["1" "2" "3"]
        LRANGE l -3 -2          => ["3" "4"]
        LRANGE l -100 100       => ["0" "1" "2" "3" "4" "5"]
        LRANGE l 4 2            => []
        LRANGE l 6 10           => []
        LRANGE l -100 -7        => []
        LRANGE l 5 5            => ["5"]
        LRANGE missing 0 -1     => []
        LRANGE l x 1            => -ERR value is not an integer or out of range
        LRANGE l 1 x            => -ERR value is not an integer or out of range
        LRANGE l -9223372036854775808 9223372036854775807 => ["0" "1" "2" "3" "4" "5"]
        LINDEX l 0              => "0"
        LINDEX l -1             => "5"
        LINDEX l -6             => "0"
        LINDEX l 6              => nil
        LINDEX l -7             => nil
        LINDEX l -9223372036854775808 => nil
        LINDEX missing 0        => nil
        LINDEX missing x        => nil
        LINDEX l x              => -ERR value is not an integer or out of range
        LINDEX l 01             => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn changes_in_place() {
    check(
        r#"
        RPUSH l a b c b a       => :5
        LSET l 1 B              => +OK
        LSET l -1 A             => +OK
        LRANGE l 0 -1           => ["a" "B" "c" "b" "A"]
        LSET l 5 x              => -ERR index out of range
        LSET l -6 x             => -ERR index out of range
        LSET l x x              => -ERR value is not an integer or out of range
        LSET missing 0 x        => -ERR no such key
        LSET missing x x        => -ERR no such key
        LINSERT l BEFORE c x    => :6
        LINSERT l after A y     => :7
        LINSERT l before a z    => :8
        LRANGE l 0 -1           => ["z" "a" "B" "x" "c" "b" "A" "y"]
        LINSERT l BEFORE no x   => :-1
        LINSERT missing AFTER a b => :0
        LINSERT l BESIDE a b    => -ERR syntax error
        DEL l                   => :1
        RPUSH l a b a c a b a   => :7
        LREM l 1 b              => :1
        LRANGE l 0 -1           => ["a" "a" "c" "a" "b" "a"]
        LREM l -2 a             => :2
        LRANGE l 0 -1           => ["a" "a" "c" "b"]
        LREM l 0 a              => :2
        LREM l 0 a              => :0
        LREM l x a              => -ERR value is not an integer or out of range
        LREM l -9223372036854775808 a =>> -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        LREM missing 0 a        => :0
        LREM l 5 c              => :1
        LREM l -5 b             => :1
        EXISTS l                => :0
        RPUSH l 0 1 2 3 4 5     => :6
        LTRIM l 1 -2            => +OK
        LRANGE l 0 -1           => ["1" "2" "3" "4"]
        LTRIM l 0 100           => +OK
        LTRIM l -2 -1           => +OK
        LRANGE l 0 -1           => ["3" "4"]
        LTRIM l 1 0             => +OK
        EXISTS l                => :0
        LTRIM missing 0 1       => +OK
        LTRIM missing x 1       => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn positions() {
    check(
        r#"
        RPUSH l a b c 1 2 3 c c => :8
        LPOS l c                => :2
        LPOS l 2                => :4
        LPOS l RANK             => nil
        LPOS l c RANK 2         => :6
        LPOS l c RANK 4         => nil
        LPOS l c RANK -1        => :7
        LPOS l c COUNT 2        => [:2 :6]
        LPOS l c COUNT 0        => [:2 :6 :7]
        LPOS l c COUNT 0 RANK 2 => [:6 :7]
        LPOS l c COUNT 0 RANK -2 => [:6 :2]
        LPOS l c COUNT 2 RANK -1 => [:7 :6]
        LPOS l c COUNT 0 MAXLEN 7 => [:2 :6]
        LPOS l c COUNT 0 MAXLEN 7 RANK -2 => [:6 :2]
        LPOS l c COUNT 0 MAXLEN 6 RANK -1 => [:7 :6 :2]
        LPOS l z                => nil
        LPOS l z COUNT 0        => []
        LPOS missing z          => nil
        LPOS missing z COUNT 1  => []
        LPOS l c RANK 0         => -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        LPOS l c RANK x         => -ERR value is not an integer or out of range
        LPOS l c COUNT -1       => -ERR COUNT can't be negative
        LPOS l c MAXLEN -1      => -ERR MAXLEN can't be negative
        LPOS l c MAXLEN x       => -ERR MAXLEN can't be negative
        LPOS l c RANK           => -ERR syntax error
        LPOS l c FOO 1          => -ERR syntax error
        LPOS missing c RANK 0   => -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        "#,
    );
}

#[test]
fn from_list_to_list() {
    check(
        r#"
        RPUSH l a b c           => :3
        LMOVE l m LEFT RIGHT    => "a"
        LMOVE l m right left    => "c"
        LRANGE m 0 -1           => ["c" "a"]
        RPOPLPUSH l m           => "b"
        EXISTS l                => :0
        LRANGE m 0 -1           => ["b" "c" "a"]
        RPOPLPUSH l m           => nil
        LMOVE l m LEFT LEFT     => nil
        LMOVE m m LEFT RIGHT    => "b"
        RPOPLPUSH m m           => "b"
        LMOVE m m LEFT LEFT     => "b"
        LRANGE m 0 -1           => ["b" "c" "a"]
        LMOVE m n UP LEFT       => -ERR syntax error
        LMOVE m n LEFT DOWN     => -ERR syntax error
        RPUSH one 1             => :1
        EXPIRE one 100          => :1
        RPOPLPUSH one one       => "1"
        TTL one                 => :100
        RPOPLPUSH one new       => "1"
        TTL new                 => :-1
        SET s x                 => +OK
        RPOPLPUSH m s           => -WRONGTYPE Operation against a key holding the wrong kind of value
        RPOPLPUSH s m           => -WRONGTYPE Operation against a key holding the wrong kind of value
        RPOPLPUSH missing s     => nil
        LRANGE m 0 -1           => ["b" "c" "a"]
        "#,
    );
}

#[test]
fn popping_from_the_first_of_several() {
    check(
        r#"
        RPUSH b 1 2 3           => :3
        LMPOP 2 a b LEFT        => ["b" ["1"]]
        LMPOP 2 a b RIGHT COUNT 5 => ["b" ["3" "2"]]
        LMPOP 2 a b RIGHT COUNT 5 => nil-array
        LMPOP 0 a LEFT          => -ERR numkeys should be greater than 0
        LMPOP x a LEFT          => -ERR numkeys should be greater than 0
        LMPOP 1 a LEFT COUNT 0  => -ERR count should be greater than 0
        LMPOP 1 a LEFT COUNT x  => -ERR count should be greater than 0
        LMPOP 1 a UP            => -ERR syntax error
        LMPOP 2 a LEFT          => -ERR syntax error
        LMPOP 9 a b LEFT        => -ERR syntax error
        LMPOP 1 a LEFT COUNT    => -ERR syntax error
        LMPOP 1 a LEFT COUNT 1 COUNT 1 => -ERR syntax error
        LMPOP 1 a LEFT COUNT 1 x => -ERR syntax error
        SET s x                 => +OK
        RPUSH b 1               => :1
        LMPOP 2 s b LEFT        => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMPOP 2 b s LEFT        => ["b" ["1"]]
        @resp3
        LMPOP 1 b LEFT          => nil
        "#,
    );
}

#[test]
fn other_types_are_refused() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET str x => +OK\nRPUSH l a => :1\nSADD s a => :1\n".to_owned();
    for line in [
        "LPUSH str a",
        "RPUSH s a",
        "LPUSHX str a",
        "RPUSHX str a",
        "LPOP str",
        "RPOP str 2",
        "LLEN str",
        "LRANGE str 0 -1",
        "LINDEX str 0",
        "LPOS str a",
        "LSET str 0 a",
        "LINSERT str BEFORE a b",
        "LREM str 0 a",
        "LTRIM str 0 1",
        "GET l",
        "SADD l a",
        "INCR l",
        "APPEND l x",
    ] {
        script += &format!("{line} => {WRONG}\n");
    }
    check(&script);
}

/// By the documentation of Redis 8.10: the reply has the order of the destination.
#[test]
fn several_from_list_to_list() {
    let mut script = String::new();
    for (ends, obo, bulk) in [
        (
            "LEFT LEFT",
            [r#""b" "a""#, r#"["b" "a" "x" "y"]"#],
            [r#""a" "b""#, r#"["a" "b" "x" "y"]"#],
        ),
        (
            "LEFT RIGHT",
            [r#""a" "b""#, r#"["x" "y" "a" "b"]"#],
            [r#""a" "b""#, r#"["x" "y" "a" "b"]"#],
        ),
        (
            "RIGHT LEFT",
            [r#""c" "d""#, r#"["c" "d" "x" "y"]"#],
            [r#""c" "d""#, r#"["c" "d" "x" "y"]"#],
        ),
        (
            "RIGHT RIGHT",
            [r#""d" "c""#, r#"["x" "y" "d" "c"]"#],
            [r#""c" "d""#, r#"["x" "y" "c" "d"]"#],
        ),
    ] {
        let kept = if ends.starts_with("LEFT") { r#"["c" "d"]"# } else { r#"["a" "b"]"# };
        for (order, [moved, destination]) in [("obo", obo), ("BULK", bulk)] {
            for how in ["COUNT 2", "exactly 2"] {
                script += &format!(
                    "
                    RPUSH l a b c d     => :4
                    RPUSH m x y         => :2
                    LMOVEM l m {ends} {how} {order} =>> [{moved}]
                    LRANGE l 0 -1       =>> {kept}
                    LRANGE m 0 -1       =>> {destination}
                    DEL l m             => :2
                    "
                );
            }
        }
    }
    check(&script);
}

#[test]
fn several_are_moved_within_bounds() {
    check(
        r#"
        RPUSH l 1 2 3                               => :3
        LMOVEM l m LEFT LEFT                        =>> ["1"]
        LMOVEM l m LEFT RIGHT EXACTLY 3 OBO         =>> nil-array
        LMOVEM l m LEFT RIGHT COUNT 9223372036854775807 OBO =>> ["2" "3"]
        EXISTS l                                    =>> :0
        LRANGE m 0 -1                               =>> ["1" "2" "3"]
        LMOVEM l m LEFT LEFT                        =>> nil-array
        LMOVEM l m LEFT LEFT COUNT 3 BULK           =>> nil-array
        RPUSH k a b c d                             => :4
        LMOVEM k k LEFT LEFT COUNT 2 BULK           =>> ["a" "b"]
        LRANGE k 0 -1                               => ["a" "b" "c" "d"]
        LMOVEM k k LEFT LEFT COUNT 2 OBO            =>> ["b" "a"]
        LRANGE k 0 -1                               =>> ["b" "a" "c" "d"]
        LMOVEM k k LEFT RIGHT COUNT 3 BULK          =>> ["b" "a" "c"]
        LRANGE k 0 -1                               =>> ["d" "b" "a" "c"]
        LMOVEM k k RIGHT RIGHT EXACTLY 4 OBO        =>> ["c" "a" "b" "d"]
        LRANGE k 0 -1                               =>> ["c" "a" "b" "d"]
        LMOVEM k k RIGHT RIGHT EXACTLY 5 OBO        =>> nil-array
        LMOVEM k n LEFT RIGHT COUNT 0 BULK          =>> -ERR count should be greater than 0
        LMOVEM k n LEFT RIGHT COUNT -1 BULK         =>> -ERR count should be greater than 0
        LMOVEM k n LEFT RIGHT EXACTLY x BULK        =>> -ERR count should be greater than 0
        LMOVEM k n LEFT RIGHT COUNT 2               =>> -ERR syntax error
        LMOVEM k n LEFT RIGHT COUNT 2 OBO BULK      =>> -ERR syntax error
        LMOVEM k n LEFT RIGHT ALL 2 OBO             =>> -ERR syntax error
        LMOVEM k n LEFT RIGHT COUNT 2 SORTED        =>> -ERR syntax error
        LMOVEM k n UP RIGHT COUNT 2 OBO             =>> -ERR syntax error
        LMOVEM k n LEFT                             =>> -ERR wrong number of arguments for 'lmovem' command
        SET s x                                     => +OK
        LMOVEM s n LEFT LEFT                        =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        LMOVEM k s LEFT LEFT COUNT 2 OBO            =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        LLEN k                                      => :4
        LMOVEM none s LEFT LEFT                     =>> nil-array
        BLMOVEM k n LEFT LEFT 0 COUNT 2 BULK        =>> ["c" "a"]
        BLMOVEM k n LEFT LEFT 0                     =>> ["b"]
        BLMOVEM k n LEFT LEFT -1                    =>> -ERR timeout is negative
        BLMOVEM k n LEFT LEFT x                     =>> -ERR timeout is not a float or out of range
        BLMOVEM k s LEFT LEFT 0                     =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        MULTI                                       => +OK
        BLMOVEM k n LEFT LEFT 0 EXACTLY 2 BULK      =>> +QUEUED
        BLMOVEM k n LEFT LEFT 0 COUNT 2 BULK        =>> +QUEUED
        EXEC                                        =>> [nil-array ["d"]]
        LRANGE n 0 -1                               =>> ["d" "b" "c" "a"]
        COMMAND GETKEYS LMOVEM a b LEFT LEFT        =>> ["a" "b"]
        "#,
    );
}

#[test]
fn generic_commands_know_lists() {
    check(
        r#"
        RPUSH l a b 3           => :3
        TYPE l                  => +list
        OBJECT ENCODING l       =>> "listpack"
        COPY l m                => :1
        RPUSH m x               => :4
        LRANGE l 0 -1           => ["a" "b" "3"]
        LRANGE m 0 -1           => ["a" "b" "3" "x"]
        RENAME m n              => +OK
        LLEN n                  => :4
        MOVE n 1                => :1
        EXISTS n                => :0
        SELECT 1                => +OK
        LRANGE n 0 -1           => ["a" "b" "3" "x"]
        SELECT 0                => +OK
        SCAN 0 TYPE list        => ["0" ["l"]]
        PEXPIRE l 50            => :1
        RPUSH l c               => :4
        @advance 60
        LLEN l                  => :0
        RPUSH l d               => :1
        LRANGE l 0 -1           => ["d"]
        WATCH l                 => +OK
        @client 2
        LPUSH l e               => :2
        @client 1
        MULTI                   => +OK
        LPOP l                  => +QUEUED
        EXEC                    => nil-array
        SET l x                 => +OK
        GET l                   => "x"
        "#,
    );
}

#[test]
fn the_encoding_changes_both_ways() {
    let long = "x".repeat(5000);
    check_on(
        &TestNode::new(),
        &format!(
            r#"
            RPUSH l a {long}        => :2
            OBJECT ENCODING l       => "listpack"
            RPUSH l {long}          => :3
            OBJECT ENCODING l       => "quicklist"
            RPOP l                  => "{long}"
            OBJECT ENCODING l       => "quicklist"
            RPOP l                  => "{long}"
            OBJECT ENCODING l       => "listpack"
            CONFIG SET list-max-listpack-size 4 => +OK
            CONFIG GET list-max-ziplist-size => ["list-max-ziplist-size" "4"]
            RPUSH l b c d           => :4
            OBJECT ENCODING l       => "listpack"
            RPUSH l e               => :5
            OBJECT ENCODING l       => "quicklist"
            LTRIM l 0 2             => +OK
            OBJECT ENCODING l       => "quicklist"
            LTRIM l 0 1             => +OK
            OBJECT ENCODING l       => "listpack"
            CONFIG SET list-max-listpack-size 1 => +OK
            LSET l 0 z              => +OK
            OBJECT ENCODING l       => "quicklist"
            LINSERT l BEFORE z y    => :3
            LRANGE l 0 -1           => ["y" "z" "b"]
            DEBUG RELOAD            => *
            LRANGE l 0 -1           => ["y" "z" "b"]
            CONFIG GET list-compress-depth => ["list-compress-depth" "0"]
            "#
        ),
    );
}

/// `DEBUG OBJECT` says so of a list that has pieces between its ends; it answers and is loaded
/// again as if nothing were compressed.
#[test]
fn a_list_is_compressed_between_its_ends() {
    let mut loader = Loader::new();
    loader.flag("enable-debug-command", "yes");
    let node = TestNode::with_settings(loader.finish().expect("a known flag").0);
    let mut client = node.client();
    let set = node.run(&mut client, "CONFIG SET list-max-listpack-size 4 list-compress-depth 1");
    assert_eq!(set, "+OK");
    let element =
        |number: usize| format!("a-job-that-waits-to-be-done-with-the-number-{number:05}");
    for key in ["packed", "plain"] {
        for number in 0..200 {
            node.run(&mut client, &format!("RPUSH {key} {}", element(number)));
        }
        node.run(&mut client, "CONFIG SET list-compress-depth 0");
    }
    let number = |client: &mut TestClient, request: &str| -> usize {
        node.run(client, request).trim_start_matches(':').parse().expect("a number")
    };
    let usage = |client: &mut TestClient, key: &str| number(client, &format!("MEMORY USAGE {key}"));
    assert!(usage(&mut client, "packed") < usage(&mut client, "plain") * 3 / 4);
    for (key, flag) in [("packed", "ql_compressed:1 "), ("plain", "ql_compressed:0 ")] {
        let shown = node.run(&mut client, &format!("DEBUG OBJECT {key}"));
        assert!(shown.contains(flag), "{shown}");
    }
    let read = [
        "LRANGE K 0 -1".to_owned(),
        "LINDEX K 99".to_owned(),
        format!("LPOS K {}", element(150)),
        format!("LINSERT K AFTER {} between", element(100)),
        format!("LPOS K {} RANK -1", element(20)),
        "LSET K 70 other".to_owned(),
        format!("LREM K -1 {}", element(33)),
        "LTRIM K 12 -60".to_owned(),
        "SORT K ALPHA DESC".to_owned(),
        "LRANGE K 0 -1".to_owned(),
    ];
    for request in read {
        let [packed, plain] =
            ["packed", "plain"].map(|key| node.run(&mut client, &request.replace('K', key)));
        assert_eq!(packed, plain, "{request}");
    }
    let dump = node.dump();
    assert_eq!(node.replayed(), dump);
    // Emptied it is small again, and what it gets from then on is as the setting says now.
    node.run(&mut client, "LTRIM packed -1 -1");
    let shown = node.run(&mut client, "DEBUG OBJECT packed");
    assert!(!shown.contains("ql_"), "{shown}");
}

/// As in Redis, whose order of looking at them is visible where two are wrong.
#[test]
fn blmpop_looks_at_the_time_last() {
    check(
        r#"
        BLMPOP -1 1 l LEFT COUNT 0      => -ERR count should be greater than 0
        BLMPOP -1 0 l LEFT              => -ERR numkeys should be greater than 0
        BLMPOP -1 1 l MIDDLE            => -ERR syntax error
        BLMPOP -1 1 l LEFT              => -ERR timeout is negative
        "#,
    );
}
