//! What the commands on keys of any type answer.

use crate::common::{self, check};

#[test]
fn removing_and_looking() {
    check(
        r#"
        MSET a 1 b 2 c 3                 => +OK
        EXISTS a                         => :1
        EXISTS a b a missing             => :3
        TOUCH a b missing a              => :3
        TYPE a                           => +string
        TYPE missing                     => +none
        DBSIZE                           => :3
        DEL a missing a                  => :1
        UNLINK b c missing               => :2
        DBSIZE                           => :0
        SET a 1 PX 20                    => +OK
        @advance 30
        DEL a                            => :0
        SET a 1 PX 20                    => +OK
        @advance 30
        TYPE a                           => +none
        TOUCH a                          => :0
        "#,
    );
}

#[test]
fn expiring() {
    check(
        r#"
        SET a 1                          => +OK
        TTL a                            => :-1
        TTL missing                      => :-2
        PTTL missing                     => :-2
        EXPIRETIME a                     => :-1
        PEXPIRETIME missing              => :-2
        EXPIRE a 100                     => :1
        TTL a                            => :100
        PEXPIRE a 200400                 => :1
        TTL a                            => :200
        EXPIREAT a 33177117420           => :1
        EXPIRETIME a                     => :33177117420
        PEXPIREAT a 33177117420500       => :1
        EXPIRETIME a                     => :33177117421
        PEXPIRETIME a                    => :33177117420500
        PERSIST a                        => :1
        PERSIST a                        => :0
        PERSIST missing                  => :0
        EXPIRE missing 10                => :0
        EXPIRE a x                       => -ERR value is not an integer or out of range
        EXPIRE a 9223372036854775807     => -ERR invalid expire time in 'expire' command
        EXPIRE a -9223372036854775808    => -ERR invalid expire time in 'expire' command
        PEXPIRE a 9223372036854775807    => -ERR invalid expire time in 'pexpire' command
        EXPIREAT a 9223372036854775807   => -ERR invalid expire time in 'expireat' command
        PEXPIREAT a 9223372036854775807  => :1
        PEXPIRETIME a                    => :9223372036854775807
        EXPIRE a -1                      => :1
        EXISTS a                         => :0
        SET a 1                          => +OK
        PEXPIREAT a 0                    => :1
        EXISTS a                         => :0
        SET a 1                          => +OK
        EXPIREAT a -5                    => :1
        EXISTS a                         => :0
        SET a 1                          => +OK
        PEXPIRE a 30                     => :1
        @advance 40
        PTTL a                           => :-2
        PERSIST a                        => :0
        "#,
    );
}

#[test]
fn expiring_on_conditions() {
    check(
        r#"
        SET a 1                          => +OK
        EXPIRE a 100 XX                  => :0
        EXPIRE a 100 GT                  => :0
        EXPIRE a 100 XX LT               => :0
        EXPIRE a 100 LT                  => :1
        EXPIRE a 100 NX                  => :0
        EXPIRE a 50 GT                   => :0
        EXPIRE a 200 LT                  => :0
        EXPIRE a 200 GT                  => :1
        TTL a                            => :200
        EXPIRE a 50 xx lt                => :1
        TTL a                            => :50
        EXPIRE a 60 XX XX                => :1
        PERSIST a                        => :1
        EXPIRE a 60 NX                   => :1
        EXPIRE a 10 NX XX                => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 10 LT NX                => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 10 GT LT                => -ERR GT and LT options at the same time are not compatible
        EXPIRE a 10 FOO                  => -ERR Unsupported option FOO
        EXPIRE a 10 NX FOO               => -ERR Unsupported option FOO
        EXPIRE a x FOO                   => -ERR Unsupported option FOO
        EXPIRE missing 10 NX             => :0
        PEXPIREAT a 1 GT                 => :0
        PEXPIREAT a 1 LT                 => :1
        EXISTS a                         => :0
        "#,
    );
}

#[test]
fn renaming() {
    check(
        r#"
        RENAME a b                       => -ERR no such key
        RENAME a a                       => -ERR no such key
        RENAMENX a b                     => -ERR no such key
        SET a 1 EX 100                   => +OK
        RENAME a a                       => +OK
        RENAMENX a a                     => :0
        TTL a                            => :100
        RENAME a b                       => +OK
        TTL b                            => :100
        EXISTS a                         => :0
        SET a x                          => +OK
        RENAMENX a b                     => :0
        RENAMENX a c                     => :1
        RENAME c b                       => +OK
        TTL b                            => :-1
        GET b                            => "x"
        APPEND r 1                       => :1
        APPEND r 2                       => :2
        RENAME r q                       => +OK
        OBJECT ENCODING q                => "raw"
        "#,
    );
}

#[test]
fn copying_and_moving() {
    check(
        r#"
        COPY a b                         => :0
        SET a 1 EX 100                   => +OK
        COPY a b                         => :1
        TTL b                            => :100
        GET b                            => "1"
        SET a 2                          => +OK
        COPY a b                         => :0
        COPY a b replace                 => :1
        TTL b                            => :-1
        COPY a a                         => -ERR source and destination objects are the same
        COPY a a DB 0                    => -ERR source and destination objects are the same
        COPY a a DB 1                    => :1
        COPY a a DB 1                    => :0
        COPY missing a DB 1 REPLACE      => :0
        COPY a b FOO                     => -ERR syntax error
        COPY a b DB                      => -ERR syntax error
        COPY a b DB x                    => -ERR value is not an integer or out of range
        COPY a b DB 99999999999          => -ERR value is out of range, value must between -2147483648 and 2147483647
        COPY a b DB 16                   => -ERR DB index is out of range
        COPY a b DB -1                   => -ERR DB index is out of range
        MOVE a 1                         => :0
        MOVE a 0                         => -ERR source and destination objects are the same
        MOVE a 16                        => -ERR DB index is out of range
        MOVE a x                         => -ERR value is not an integer or out of range
        MOVE missing 2                   => :0
        EXPIRE a 100                     => :1
        MOVE a 2                         => :1
        EXISTS a                         => :0
        SELECT 2                         => +OK
        TTL a                            => :100
        GET a                            => "2"
        SELECT 16                        => -ERR DB index is out of range
        SELECT x                         => -ERR value is not an integer or out of range
        SELECT 0                         => +OK
        APPEND r 1                       => :1
        APPEND r 2                       => :2
        COPY r q                         => :1
        OBJECT ENCODING q                => "raw"
        INCRBYFLOAT f 5                  => "5"
        COPY f g                         => :1
        OBJECT ENCODING g                => "embstr"
        "#,
    );
}

#[test]
fn whole_databases() {
    check(
        r#"
        SET a zero                       => +OK
        SELECT 1                         => +OK
        SET a one                        => +OK
        DBSIZE                           => :1
        SWAPDB 0 1                       => +OK
        GET a                            => "zero"
        SWAPDB 1 1                       => +OK
        SET b 1                          => +OK
        SELECT 0                         => +OK
        GET a                            => "one"
        MOVE a 1                         => :0
        MOVE a 5                         => :1
        SWAPDB 0 5                       => +OK
        GET a                            => "one"
        SWAPDB x 0                       => -ERR invalid first DB index
        SWAPDB 0 x                       => -ERR invalid second DB index
        SWAPDB 0 99999999999             => -ERR invalid second DB index
        SWAPDB 0 16                      => -ERR DB index is out of range
        SWAPDB -1 0                      => -ERR DB index is out of range
        FLUSHDB ASYNC                    => +OK
        DBSIZE                           => :0
        SELECT 1                         => +OK
        DBSIZE                           => :2
        FLUSHDB FOO                      => -ERR syntax error
        FLUSHDB ASYNC SYNC               => -ERR syntax error
        FLUSHALL FOO                     => -ERR syntax error
        FLUSHALL sync                    => +OK
        DBSIZE                           => :0
        FLUSHALL                         => +OK
        FLUSHDB                          => +OK
        "#,
    );
}

#[test]
fn objects() {
    check(
        r#"
        OBJECT ENCODING missing          => nil
        OBJECT IDLETIME missing          => nil
        OBJECT FREQ missing              => nil
        OBJECT REFCOUNT missing          => nil
        SET a 12345678                   => +OK
        OBJECT ENCODING a                => "int"
        OBJECT REFCOUNT a                => :1
        OBJECT IDLETIME a                => :0
        OBJECT FREQ a                    => -ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
        SET a 01                         => +OK
        OBJECT ENCODING a                => "embstr"
        SET a 12345678901234567890123456789012345678901234  => +OK
        OBJECT ENCODING a                => "embstr"
        SET a 123456789012345678901234567890123456789012345 => +OK
        OBJECT ENCODING a                => "raw"
        OBJECT                           => -ERR wrong number of arguments for 'object' command
        OBJECT ENCODING                  => -ERR wrong number of arguments for 'object|encoding' command
        OBJECT FOO                       => -ERR unknown subcommand 'FOO'. Try OBJECT HELP.
        OBJECT HELP                      => *
        @advance 5000
        OBJECT IDLETIME a                => :5
        EXISTS a                         => :1
        TYPE a                           => +string
        TTL a                            => :-1
        OBJECT IDLETIME a                => :5
        TOUCH a                          => :1
        OBJECT IDLETIME a                => :0
        "#,
    );
}

#[test]
fn listing_keys() {
    check(
        r#"
        KEYS *                           => []
        RANDOMKEY                        => nil
        SCAN 0                           => ["0" []]
        SET abc 1                        => +OK
        KEYS *                           => ["abc"]
        KEYS a?c                         => ["abc"]
        KEYS b*                          => []
        RANDOMKEY                        => "abc"
        SCAN 0                           => ["0" ["abc"]]
        SCAN 0 MATCH b*                  => ["0" []]
        SCAN 0 MATCH a* COUNT 100 TYPE string => ["0" ["abc"]]
        SCAN 0 TYPE STRING               => ["0" ["abc"]]
        SCAN 0 TYPE set                  => ["0" []]
        SCAN 0 TYPE nosuch               => ["0" []]
        SCAN 00                          => ["0" ["abc"]]
        SCAN x                           => -ERR invalid cursor
        SCAN ""                          => *
        SCAN 1x                          => -ERR invalid cursor
        SCAN 18446744073709551615        => ["0" []]
        SCAN 99999999999999999999        => -ERR invalid cursor
        SCAN 0 COUNT 0                   => -ERR syntax error
        SCAN 0 COUNT x                   => -ERR value is not an integer or out of range
        SCAN 0 COUNT                     => -ERR syntax error
        SCAN 0 FOO 1                     => -ERR syntax error
        SCAN 0 COUNT 9223372036854775807 => ["0" ["abc"]]
        PEXPIRE abc 30                   => :1
        @advance 40
        KEYS *                           => []
        SCAN 0                           => ["0" []]
        RANDOMKEY                        => nil
        @resp3
        RANDOMKEY                        => nil
        "#,
    );
}

#[test]
fn inside_a_transaction() {
    check(
        r#"
        MULTI                            => +OK
        MSET a 1 b 2                     => +QUEUED
        SCAN 0 COUNT 1000                => +QUEUED
        RANDOMKEY                        => +QUEUED
        RENAME a c                       => +QUEUED
        INCR b                           => +QUEUED
        DBSIZE                           => +QUEUED
        DEL b                            => +QUEUED
        KEYS *                           => +QUEUED
        OBJECT ENCODING c                => +QUEUED
        EXEC                             => *
        MULTI                            => +OK
        SET a 1 EX 0                     => +QUEUED
        SET a 1                          => +QUEUED
        GETDEL a                         => +QUEUED
        EXEC                             => [-ERR invalid expire time in 'set' command +OK "1"]
        KEYS *                           => ["c"]
        "#,
    );
}

#[test]
fn scan_removes_what_is_over_on_its_way() {
    let node = common::TestNode::new();
    let mut client = node.client();
    for line in ["SET stays 1", "SET goes 1 PX 10", "SADD members 1", "PEXPIRE members 10"] {
        node.run(&mut client, line);
    }
    node.clock.advance(20);
    assert_eq!(node.dump().len(), 3);
    assert_eq!(node.run(&mut client, "SCAN 0 TYPE nosuch"), "[\"0\" []]");
    assert_eq!(node.dump().len(), 1, "whatever was asked for");
    assert_eq!(node.replayed(), node.dump(), "and the log knows");
    node.run(&mut client, "PEXPIRE stays 10");
    node.clock.advance(20);
    node.log.broken.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(node.run(&mut client, "SCAN 0"), "[\"0\" []]");
    assert_eq!(node.dump().len(), 1, "unless nothing may change");
}
