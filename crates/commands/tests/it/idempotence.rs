//! XADD of idempotent producers, and XCFGSET, as in Redis 8.6. The clock shows 1700000000000.

use crate::common::{TestNode, check_on};

fn check(script: &str) {
    check_on(&TestNode::new(), script);
}

#[test]
fn an_entry_that_is_sent_twice_is_added_once() {
    check(
        r#"
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        XADD s IDMP p 1 * f b       => "1700000000000-0"
        XADD s IDMP p 2 * f c       => "1700000000000-1"
        XADD s IDMP other 1 * f d   => "1700000000000-2"
        XADD s idmp p 2 maxlen 0 * f c => "1700000000000-1"
        XLEN s                      => :3
        XINFO STREAM s              => ["length" :3 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "1700000000000-2" "max-deleted-entry-id" "0-0" "entries-added" :3 "recorded-first-entry-id" "1700000000000-0" "idmp-duration" :100 "idmp-maxsize" :100 "pids-tracked" :2 "iids-tracked" :3 "iids-added" :3 "iids-duplicates" :2 "groups" :0 "first-entry" ["1700000000000-0" ["f" "a"]] "last-entry" ["1700000000000-2" ["f" "d"]]]
        XDEL s 1700000000000-0      => :1
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        XTRIM s MAXLEN 0            => :2
        XADD s MAXLEN 0 IDMP p 2 NOMKSTREAM * f a => "1700000000000-1"
        XLEN s                      => :0
        COPY s copy                 => :1
        XADD copy IDMP p 2 * f a    => "1700000000000-1"
        RENAME copy moved           => +OK
        XADD moved IDMP p 1 * f a   => "1700000000000-0"
        "#,
    );
}

#[test]
fn the_id_can_be_that_of_the_content() {
    check(
        r#"
        XADD s IDMPAUTO p * a 1 b 2     => "1700000000000-0"
        XADD s IDMPAUTO p * b 2 a 1     => "1700000000000-0"
        XADD s IDMPAUTO other * a 1 b 2 => "1700000000000-1"
        XADD s IDMPAUTO p * a 1 a 1     => "1700000000000-2"
        XADD s IDMPAUTO p * a 1         => "1700000000000-3"
        XADD s IDMPAUTO p * b 1 a 2     => "1700000000000-4"
        XADD s IDMPAUTO p * a1 "" b 2   => "1700000000000-5"
        XADD s IDMPAUTO p * a 1 b 2     => "1700000000000-0"
        "#,
    );
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_nothing() {
    check(
        r#"
        XADD s IDMP p 1 IDMP p 1 * f a   => -ERR IDMP/IDMPAUTO specified multiple times
        XADD s IDMPAUTO p IDMP p 1 * f a => -ERR IDMP/IDMPAUTO specified multiple times
        XADD s IDMP p 1 1-1 f a          => -ERR IDMP/IDMPAUTO can be used only with auto-generated IDs
        XADD s IDMPAUTO p 1-* f a        => -ERR IDMP/IDMPAUTO can be used only with auto-generated IDs
        XADD s IDMP "" 1 * f a           => -ERR IDMP requires a non-empty producer ID
        XADD s IDMP p "" * f a           => -ERR IDMP requires a non-empty idempotent ID
        XADD s IDMPAUTO "" * f a         => -ERR IDMPAUTO requires a non-empty producer ID
        XADD s IDMP p * f a              => -ERR Invalid stream ID specified as stream command argument
        XADD s IDMP p 1 *                => -ERR wrong number of arguments for 'xadd' command
        XADD s IDMP p 1                  => -ERR wrong number of arguments for 'xadd' command
        XTRIM s IDMP p 1 MAXLEN 1        => -ERR syntax error
        XADD s NOMKSTREAM IDMP p 1 * f a => nil
        EXISTS s                         => :0
        XADD end 18446744073709551615-18446744073709551615 f a => "18446744073709551615-18446744073709551615"
        XADD end IDMP p 1 * f a          => -ERR The stream has exhausted the last possible ID, unable to add more items
        XINFO STREAM end                 => ["length" :1 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "18446744073709551615-18446744073709551615" "max-deleted-entry-id" "0-0" "entries-added" :1 "recorded-first-entry-id" "18446744073709551615-18446744073709551615" "groups" :0 "first-entry" ["18446744073709551615-18446744073709551615" ["f" "a"]] "last-entry" ["18446744073709551615-18446744073709551615" ["f" "a"]]]
        SET string x                     => +OK
        XADD string IDMP p 1 * f a       => -WRONGTYPE Operation against a key holding the wrong kind of value
        XCFGSET string IDMP-MAXSIZE 1    => -WRONGTYPE Operation against a key holding the wrong kind of value
        XCFGSET missing IDMP-MAXSIZE 1   => -ERR no such key
        XCFGSET end                      => -ERR At least one parameter (IDMP-DURATION or IDMP-MAXSIZE) is required
        XCFGSET end IDMP-MAXSIZE         => -ERR syntax error
        XCFGSET end IDMP-MAXSIZE 1 X     => -ERR syntax error
        XCFGSET end SIZE 1               => -ERR syntax error
        XCFGSET end IDMP-MAXSIZE x       => -ERR value is not an integer or out of range
        XCFGSET end IDMP-MAXSIZE 0       => -ERR IDMP-MAXSIZE must be between 1 and 10000 entries
        XCFGSET end IDMP-MAXSIZE 10001   => -ERR IDMP-MAXSIZE must be between 1 and 10000 entries
        XCFGSET end IDMP-DURATION -1     => -ERR IDMP-DURATION must be between 1 and 86400 seconds
        XCFGSET end IDMP-DURATION 86401  => -ERR IDMP-DURATION must be between 1 and 86400 seconds
        XCFGSET end IDMP-DURATION 86400 IDMP-MAXSIZE 10000 => +OK
        "#,
    );
}

#[test]
fn what_is_remembered_ends_with_its_number_and_its_time() {
    check(
        r#"
        CONFIG SET stream-idmp-maxsize 2 stream-idmp-duration 3 => +OK
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        CONFIG SET stream-idmp-maxsize 50 stream-idmp-duration 60 => +OK
        XADD s IDMP p 2 * f a       => "1700000000000-1"
        XADD s IDMP q 1 * f a       => "1700000000000-2"
        XADD s IDMP p 3 * f a       => "1700000000000-3"
        XADD s IDMP p 1 * f a       => "1700000000000-4"
        XADD s IDMP p 3 * f a       => "1700000000000-3"
        XADD s IDMP q 1 * f a       => "1700000000000-2"
        @advance 2999
        XADD s IDMP p 3 * f a       => "1700000000000-3"
        XADD s IDMP r 1 * f a       => "1700000002999-0"
        @advance 1
        XADD s IDMP p 3 * f a       => "1700000003000-0"
        XINFO STREAM s FULL COUNT 1 => ["length" :7 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "1700000003000-0" "max-deleted-entry-id" "0-0" "entries-added" :7 "recorded-first-entry-id" "1700000000000-0" "idmp-duration" :3 "idmp-maxsize" :2 "pids-tracked" :2 "iids-tracked" :2 "iids-added" :7 "iids-duplicates" :3 "entries" [["1700000000000-0" ["f" "a"]]] "groups" []]
        "#,
    );
}

#[test]
fn another_memory_forgets_and_the_same_does_not() {
    check(
        r#"
        XADD s 1-1 f a              => "1-1"
        XCFGSET s IDMP-DURATION 7   => +OK
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        XCFGSET s IDMP-DURATION 7 IDMP-MAXSIZE 100 => +OK
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        XCFGSET s IDMP-MAXSIZE 5    => +OK
        XADD s IDMP p 1 * f a       => "1700000000000-1"
        XADD s IDMP p 1 * f a       => "1700000000000-1"
        XINFO STREAM s FULL COUNT 1 => ["length" :3 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "1700000000000-1" "max-deleted-entry-id" "0-0" "entries-added" :3 "recorded-first-entry-id" "1-1" "idmp-duration" :7 "idmp-maxsize" :5 "pids-tracked" :1 "iids-tracked" :1 "iids-added" :2 "iids-duplicates" :2 "entries" [["1-1" ["f" "a"]]] "groups" []]
        XTRIM s MAXLEN 0            => :3
        XSETID s 1700000000000-1    => +OK
        XADD s IDMP p 1 * f a       => "1700000000000-1"
        XSETID s 5-5                => +OK
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        "#,
    );
}

#[test]
fn only_an_entry_that_is_added_is_a_change_to_others() {
    check(
        r#"
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        WATCH s                     => +OK
        @client 2
        XADD s IDMP p 1 * f a       => "1700000000000-0"
        XCFGSET s IDMP-DURATION 1   => +OK
        XADD other IDMP p 1 * f a   => "1700000000000-0"
        @client 1
        MULTI                       => +OK
        XLEN s                      => +QUEUED
        EXEC                        => [:1]
        WATCH s                     => +OK
        @client 2
        XADD s IDMP p 1 * f a       => "1700000000000-1"
        @client 1
        MULTI                       => +OK
        XLEN s                      => +QUEUED
        EXEC                        => nil-array
        WATCH s                     => +OK
        @advance 5000
        @client 2
        XLEN s                      => :2
        @client 1
        MULTI                       => +OK
        XADD s IDMP p 1 * f a       => +QUEUED
        XADD s IDMP p 1 * f a       => +QUEUED
        EXEC                        => ["1700000005000-0" "1700000005000-0"]
        "#,
    );
}
