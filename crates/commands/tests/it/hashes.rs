//! Hashes: what the commands answer, and that the log gives back what they left.

use crate::common::{TestNode, check, check_on};

#[test]
fn fields_come_and_go() {
    check(
        r#"
        HSET h a 1 b 2 a 3      => :2
        HGET h a                => "3"
        HGET h zz               => nil
        HGET missing a          => nil
        HSET h a 4 c 5          => :1
        HMSET h c 6 d 7         => +OK
        HLEN h                  => :4
        HLEN missing            => :0
        HMGET h a zz d          => ["4" nil "7"]
        HMGET missing a         => [nil]
        HGETALL h               =>> ["a" "4" "b" "2" "c" "6" "d" "7"]
        HKEYS h                 =>> ["a" "b" "c" "d"]
        HVALS h                 =>> ["4" "2" "6" "7"]
        HGETALL missing         => []
        HKEYS missing           => []
        HVALS missing           => []
        HEXISTS h a             => :1
        HEXISTS h zz            => :0
        HEXISTS missing a       => :0
        HSTRLEN h a             => :1
        HSTRLEN h zz            => :0
        HSETNX h a 9            => :0
        HSETNX h e 9            => :1
        HSETNX new e ""         => :1
        HGET new e              => ""
        HDEL h a zz a           => :1
        HDEL h b c d e zz       => :4
        EXISTS h                => :0
        HDEL h a                => :0
        @resp3
        HSET h a 1              => :1
        HGETALL h               => {"a": "1"}
        HGETALL missing         => {}
        HKEYS missing           => []
        HGET h b                => nil
        "#,
    );
}

#[test]
fn other_types_and_wrong_arguments_are_refused() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET str x => +OK\nHSET h a 1 => :1\n".to_owned();
    for line in [
        "HSET str a 1",
        "HMSET str a 1",
        "HSETNX str a 1",
        "HGET str a",
        "HMGET str a",
        "HGETALL str",
        "HKEYS str",
        "HVALS str",
        "HLEN str",
        "HEXISTS str a",
        "HSTRLEN str a",
        "HDEL str a",
        "HINCRBY str a 1",
        "HINCRBYFLOAT str a 1",
        "HRANDFIELD str",
        "HRANDFIELD str 1",
        "HSCAN str 0",
        "GET h",
        "SADD h a",
        "APPEND h x",
    ] {
        script += &format!("{line} => {WRONG}\n");
    }
    for command in ["hset", "hmset"] {
        script += &format!(
            "{command} h a 1 b => -ERR wrong number of arguments for '{command}' command\n"
        );
    }
    script += r#"
        HINCRBY str a x         => -ERR value is not an integer or out of range
        HINCRBYFLOAT str a x    => -ERR value is not a valid float
        HSCAN h x               => -ERR invalid cursor
        HSCAN h 0 COUNT 0       => -ERR syntax error
        HSCAN h 0 COUNT x       => -ERR value is not an integer or out of range
        HSCAN h 0 MATCH         => -ERR syntax error
        HSCAN missing 0 FOO     => ["0" []]
        HRANDFIELD h x          => -ERR value is not an integer or out of range
        HRANDFIELD h 1 FOO      => -ERR syntax error
        HRANDFIELD h 1 WITHVALUES x => -ERR syntax error
        HRANDFIELD h -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        HRANDFIELD h 9223372036854775807 WITHVALUES => -ERR value is out of range
        TYPE h                  => +hash
        RENAME h g              => +OK
        HGET g a                => "1"
        SET g x                 => +OK
        HGET g a                => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#;
    check(&script);
}

#[test]
fn counters_count_within_their_type() {
    check(
        r#"
        HINCRBY h n 5           => :5
        HINCRBY h n -7          => :-2
        HGET h n                => "-2"
        HSET h n 9223372036854775807 => :0
        HINCRBY h n 1           => -ERR increment or decrement would overflow
        HINCRBY h n -1          => :9223372036854775806
        HSET h t abc e "" s " 1" => :3
        HINCRBY h t 1           => -ERR hash value is not an integer
        HINCRBY h e 1           => -ERR hash value is not an integer
        HINCRBY h s 1           => -ERR hash value is not an integer
        HINCRBYFLOAT h t 1      => -ERR hash value is not a float
        HINCRBYFLOAT h f 10.5   => "10.5"
        HINCRBYFLOAT h f 0.1    => "10.6"
        HINCRBYFLOAT h f -10.6  => "0"
        HINCRBYFLOAT h f 5.0e3  => "5000"
        HINCRBYFLOAT h f inf    => -ERR value is NaN or Infinity
        HINCRBYFLOAT h f nan    => -ERR value is not a valid float
        HSET h f inf            => :0
        HINCRBYFLOAT h f 1      => -ERR increment would produce NaN or Infinity
        HINCRBY none n x        => -ERR value is not an integer or out of range
        EXISTS none             => :0
        "#,
    );
}

#[test]
fn encodings_follow_the_settings() {
    let long = "x".repeat(65);
    check(&format!(
        r#"
        HSET h a 1                              => :1
        OBJECT ENCODING h                       => "listpack"
        HSET h b {long}                         => :1
        OBJECT ENCODING h                       => "hashtable"
        HDEL h b                                => :1
        OBJECT ENCODING h                       => "hashtable"
        HSET i {long} 1                         => :1
        OBJECT ENCODING i                       => "hashtable"
        CONFIG SET hash-max-listpack-entries 3  => +OK
        CONFIG GET hash-max-ziplist-entries     => ["hash-max-ziplist-entries" "3"]
        HSET j a 1 b 2 c 3                      => :3
        OBJECT ENCODING j                       => "listpack"
        HSET j a 1                              => :0
        OBJECT ENCODING j                       => "listpack"
        HSET j d 4                              => :1
        OBJECT ENCODING j                       => "hashtable"
        HSET k a 1 a 1 a 1 a 1                  => :1
        OBJECT ENCODING k                       =>> "hashtable"
        CONFIG SET hash-max-ziplist-value 4     => +OK
        HSET l a 1234                           => :1
        OBJECT ENCODING l                       => "listpack"
        HINCRBY l a 100000                      => :101234
        OBJECT ENCODING l                       => "hashtable"
        HSET m a 1                              => :1
        HSETNX m a 12345                        => :0
        OBJECT ENCODING m                       => "listpack"
        COPY j n                                => :1
        OBJECT ENCODING n                       => "hashtable"
        HMGET n a b c d                         => ["1" "2" "3" "4"]
        CONFIG SET hash-max-listpack-entries 512 hash-max-listpack-value 64 => +OK
        "#
    ));
}

#[test]
fn random_fields_are_of_the_hash() {
    let script = r#"
        HRANDFIELD missing          => nil
        HRANDFIELD missing 3        => []
        HRANDFIELD missing -3       => []
        HSET h a 1                  => :1
        HRANDFIELD h                => "a"
        HRANDFIELD h 0              => []
        HRANDFIELD h 5              => ["a"]
        HRANDFIELD h -3             => ["a" "a" "a"]
        HRANDFIELD h 5 WITHVALUES   => ["a" "1"]
        HRANDFIELD h -2 WITHVALUES  => ["a" "1" "a" "1"]
        HRANDFIELD missing 2 WITHVALUES => []
        @resp3
        HRANDFIELD h 5 WITHVALUES   => [["a" "1"]]
        HRANDFIELD h -2 WITHVALUES  => [["a" "1"] ["a" "1"]]
        HRANDFIELD h -2             => ["a" "a"]
        HRANDFIELD missing 2 WITHVALUES => []
        "#;
    check(script);
}

#[test]
fn scans_see_every_field_once_packed() {
    check(
        r#"
        HSET h a 1 b 2 ab 3         => :3
        HSCAN h 0                   =>> ["0" ["a" "1" "b" "2" "ab" "3"]]
        HSCAN h 0 MATCH a* COUNT 1  =>> ["0" ["a" "1" "ab" "3"]]
        HSCAN h 0 MATCH zz          => ["0" []]
        HSCAN missing 0             => ["0" []]
        "#,
    );
    check_on(
        &TestNode::new(),
        r#"
        HSET h a 1 b 2              => :2
        HSCAN h 0 NOVALUES          => ["0" ["a" "b"]]
        HSCAN h 0 NOVALUES MATCH b  => ["0" ["b"]]
        "#,
    );
}

/// What Redis 7.0 does not have.
#[test]
fn fields_expire() {
    check_on(
        &TestNode::new(),
        r#"
        HSET h a 1 b 2 c 3                  => :3
        HPEXPIRE h 100 FIELDS 3 a b zz      => [:1 :1 :-2]
        HPTTL h FIELDS 4 a b c zz           => [:100 :100 :-1 :-2]
        HTTL h FIELDS 1 a                   => [:1]
        OBJECT ENCODING h                   => "listpackex"
        HPERSIST h FIELDS 3 b c zz          => [:1 :-1 :-2]
        @advance 99
        HGET h a                            => "1"
        @advance 1
        HGET h a                            => nil
        HGETALL h                           => ["b" "2" "c" "3"]
        HLEN h                              => :2
        HEXISTS h a                         => :0
        HTTL h FIELDS 1 a                   => [:-2]
        HEXPIRE h 10 FIELDS 2 b c           => [:1 :1]
        @advance 10000
        EXISTS h                            => :0
        TYPE h                              => +none
        HSET h a 1                          => :1
        HTTL h FIELDS 1 a                   => [:-1]
        # Setting a field anew ends its expiry; counting does not.
        HEXPIRE h 10 FIELDS 1 a             => [:1]
        HINCRBY h a 1                       => :2
        HTTL h FIELDS 1 a                   => [:10]
        HSET h a 5                          => :0
        HTTL h FIELDS 1 a                   => [:-1]
        # A moment that is past removes.
        HEXPIREAT h 1 FIELDS 2 a zz         => [:2 :-2]
        EXISTS h                            => :0
        HEXPIRE h 10 FIELDS 1 a             => [:-2]
        HTTL h FIELDS 2 a b                 => [:-2 :-2]
        HPERSIST h FIELDS 1 a               => [:-2]
        "#,
    );
}

#[test]
fn conditions_on_the_present_expiry() {
    check_on(
        &TestNode::new(),
        r#"
        HSET h a 1 b 2                      => :2
        HEXPIRE h 10 NX FIELDS 1 a          => [:1]
        HEXPIRE h 20 NX FIELDS 2 a b        => [:0 :1]
        HEXPIRE h 15 GT FIELDS 2 a b        => [:1 :0]
        HEXPIRE h 12 LT FIELDS 2 a b        => [:1 :1]
        HPERSIST h FIELDS 1 a               => [:1]
        HEXPIRE h 30 XX FIELDS 2 a b        => [:0 :1]
        HEXPIRE h 30 GT FIELDS 1 a          => [:0]
        HEXPIRE h 30 LT FIELDS 1 a          => [:1]
        HEXPIRE h 0 GT FIELDS 1 a           => [:0]
        HEXPIRE h 0 LT FIELDS 1 a           => [:2]
        HKEYS h                             => ["b"]
        HPEXPIREAT h 70368744177663 FIELDS 1 b => [:1]
        HPEXPIRETIME h FIELDS 1 b           => [:70368744177663]
        HEXPIRETIME h FIELDS 1 b            => [:70368744178]
        "#,
    );
}

#[test]
fn expiry_commands_refuse_what_redis_refuses() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET str x => +OK\nHSET h a 1 => :1\n".to_owned();
    for line in [
        "HEXPIRE str x FIELDS 1 a",
        "HTTL str FIELDS x a",
        "HPERSIST str FIELDS x a",
        "HGETDEL str FIELDS x a",
        "HGETEX str EX x FIELDS 1 a",
        "HSETEX str EX 10 FIELDS 1 a 1",
    ] {
        script += &format!("{line} => {WRONG}\n");
    }
    script += r#"
        HEXPIRE h x FIELDS 1 a              => -ERR value is not an integer or out of range
        HEXPIRE h -1 FIELDS 1 a             => -ERR invalid expire time, must be >= 0
        HEXPIRE h 9999999999999 FIELDS 1 a  => -ERR invalid expire time in 'hexpire' command
        HPEXPIREAT h 70368744177664 FIELDS 1 a => -ERR invalid expire time in 'hpexpireat' command
        HEXPIRE h 1 NX GT FIELDS 1 a        => -ERR Mandatory argument FIELDS is missing or not at the right position
        HEXPIRE h 1 FIELDS 0 a              => -ERR Parameter `numFields` should be greater than 0
        HEXPIRE h 1 FIELDS x a              => -ERR Parameter `numFields` should be greater than 0
        HEXPIRE h 1 FIELDS 2 a              => -ERR The `numfields` parameter must match the number of arguments
        HTTL h FIELDS 0 a                   => -ERR Number of fields must be a positive integer
        HTTL h FIELDS 1 a b                 => -ERR The `numfields` parameter must match the number of arguments
        HTTL h FIELD 1 a                    => -ERR Mandatory argument FIELDS is missing or not at the right position
        HGETEX h EX 1 PX 1 FIELDS 1 a       => -ERR Mandatory argument FIELDS is missing or not at the right position
        HGETEX h EX 1 FIELDS                => -ERR wrong number of arguments for 'hgetex' command
        HGETEX h PERSIST FIELDS 1           => -ERR The `numfields` parameter must match the number of arguments
        HSETEX h FNX FXX FIELDS 1 a 1       => -ERR Only one of FXX or FNX arguments can be specified
        HSETEX h EX 1 KEEPTTL FIELDS 1 a 1  => -ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
        HSETEX h EX 1 FIELDS 2 a 1          => -ERR wrong number of arguments for 'hsetex' command
        HSETEX h EX 1 FIELDS 0 a 1          => -ERR invalid number of fields
        HSETEX h FOO FIELDS 1 a 1           => -ERR unknown argument: FOO
        HSETEX h EX -5 FIELDS 1 a 1         => -ERR invalid expire time, must be >= 0
        HSETEX h EX 1 FIELDS 1 a 1 FNX      => -ERR wrong number of arguments for 'hsetex' command
        HGETALL h                           => ["a" "1"]
    "#;
    check_on(&TestNode::new(), &script);
}

#[test]
fn getting_and_changing_in_one() {
    check_on(
        &TestNode::new(),
        r#"
        HSET h a 1 b 2 c 3                  => :3
        HGETEX h FIELDS 2 a zz              => ["1" nil]
        HGETEX h EX 10 FIELDS 2 a zz        => ["1" nil]
        HTTL h FIELDS 2 a b                 => [:10 :-1]
        HGETEX h PERSIST FIELDS 1 a         => ["1"]
        HTTL h FIELDS 1 a                   => [:-1]
        HGETEX h EXAT 1 FIELDS 1 a          => ["1"]
        HGETEX h PXAT 0 FIELDS 1 b          => ["2"]
        HKEYS h                             => ["c"]
        HGETEX missing EX 10 FIELDS 2 a b   => [nil nil]
        HGETDEL missing FIELDS 1 a          => [nil]
        HGETDEL h FIELDS 2 zz c             => [nil "3"]
        EXISTS h                            => :0
        HSETEX h EX 10 FIELDS 2 a 1 b 2     => :1
        HTTL h FIELDS 2 a b                 => [:10 :10]
        HSETEX h KEEPTTL FIELDS 2 a 3 c 4   => :1
        HTTL h FIELDS 2 a c                 => [:10 :-1]
        HSETEX h FNX FIELDS 2 a 9 d 9       => :0
        HSETEX h FXX FIELDS 2 a 9 d 9       => :0
        HSETEX h FXX FIELDS 2 a 9 b 9       => :1
        HMGET h a b c d                     => ["9" "9" "4" nil]
        HTTL h FIELDS 1 a                   => [:-1]
        HSETEX h EX 0 FIELDS 1 a 1          => :1
        HEXISTS h a                         => :0
        HSETEX missing FXX FIELDS 1 a 1     => :0
        HSETEX missing PXAT 1 FIELDS 1 a 1  => :1
        EXISTS missing                      => :0
        HSETEX h NX FIELDS 1 a 1            => :0
        HSETEX missing XX FIELDS 1 a 1      => :0
        HSETEX new NX PX 50 FIELDS 1 a 1    => :1
        HSETEX old PX 50 FIELDS 1 a 1       => :1
        @advance 50
        EXISTS new                          => :0
        DEL old                             => :0
        "#,
    );
}

#[test]
fn fields_that_expire_move_with_their_key() {
    check_on(
        &TestNode::new(),
        r#"
        HSETEX h PX 100 FIELDS 1 a 1        => :1
        HSET h b 2                          => :1
        COPY h copy                         => :1
        RENAME h g                          => +OK
        PEXPIRE g 1000                      => :1
        HPTTL g FIELDS 2 a b                => [:100 :-1]
        HPTTL copy FIELDS 2 a b             => [:100 :-1]
        @advance 100
        HGETALL g                           => ["b" "2"]
        HGETALL copy                        => ["b" "2"]
        PTTL g                              => :900
        # A client that watches the key sees the field go.
        HSETEX w PX 10 FIELDS 1 a 1         => :1
        HSET w b 1                          => :1
        WATCH w                             => +OK
        @advance 10
        MULTI                               => +OK
        HGET w a                            => +QUEUED
        EXEC                                => nil-array
        "#,
    );
}

#[test]
fn many_fields_expire_each_in_its_time() {
    let node = TestNode::new();
    let mut client = node.client();
    for number in 0..600 {
        let line = format!("HSETEX h PX {} FIELDS 1 f{number} v", 1 + number % 100);
        assert_eq!(node.run(&mut client, &line), ":1");
    }
    assert_eq!(node.run(&mut client, "OBJECT ENCODING h"), "\"hashtable\"");
    for passed in 1..=100 {
        node.clock.advance(1);
        assert_eq!(node.run(&mut client, "HLEN h"), format!(":{}", 6 * (100 - passed)));
    }
    assert_eq!(node.run(&mut client, "EXISTS h"), ":0");
    assert_eq!(node.replayed(), node.dump());
}

/// Redis looks at the conditions first, and at what the new values need then.
#[test]
fn a_refused_hsetex_leaves_the_encoding() {
    check_on(
        &TestNode::new(),
        r#"
        CONFIG SET hash-max-listpack-value 8                => +OK
        HSET h a 1                                          => :1
        HSETEX h FXX FIELDS 1 b 123456789                   => :0
        OBJECT ENCODING h                                   => "listpack"
        HSETEX h FXX FIELDS 1 a 123456789                   => :1
        OBJECT ENCODING h                                   => "hashtable"
        HSET i a 1                                          => :1
        HSETEX i EXAT 1 FIELDS 1 b 123456789                => :1
        OBJECT ENCODING i                                   => "hashtable"
        "#,
    );
}
