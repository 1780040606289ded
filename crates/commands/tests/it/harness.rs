//! The harness itself: what it must notice.

use crate::common::{TestNode, check, check_on};

#[test]
fn scripts_see_replies_clients_and_time() {
    check(
        r#"
        SET a "b c\x00"  => +OK
        GET a            => "b c\x00"
        GET missing      => nil
        NOSUCH           => *
        @client 2
        MULTI            => +OK
        GET a            => +QUEUED
        @client 1
        DEL a missing    => :1
        @client 2
        EXEC             => [nil]
        @resp3
        MULTI            => +OK
        EXEC             => []
        "#,
    );
}

#[test]
#[should_panic(expected = "expected: :2")]
fn a_wrong_reply_is_noticed() {
    check_on(&TestNode::new(), "DEL a => :2");
}

#[test]
#[should_panic(expected = "the log gives back")]
fn a_lost_record_is_noticed() {
    let node = TestNode::new();
    let mut client = node.client();
    node.run(&mut client, "SET a 1");
    node.log.append(b"\x03\x00\x01a");
    check_on(&node, "GET a => \"1\"");
}
