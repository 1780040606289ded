//! Scripts: requests and the replies that they must get.
//!
//! ```text
//! # a comment
//! SET key "a b"   => +OK            a request and its reply, as `show` writes it
//! GET key         => "a b"
//! LCS a b         =>> "x"           as =>, but Redis 7.0 answers otherwise: see `real.rs`
//! RANDOMKEY       => *              any reply
//! @client 2                         go on as another connection
//! @resp3                            this connection speaks RESP3 from now on
//! @advance 50                       milliseconds pass
//! ```

use super::real::RealServer;
use super::{TestClient, TestNode, speak_resp3};
use std::collections::BTreeMap;

/// Runs a script on a new node, and against a real server where there is one; afterwards the log
/// must give back what the node holds.
#[track_caller]
pub fn check(script: &str) {
    if let Some(mut real) = RealServer::from_environment() {
        real.check(script);
    }
    check_on(&TestNode::new(), script);
}

/// Runs a script on a node.
#[track_caller]
pub fn check_on(node: &TestNode, script: &str) {
    let mut clients: BTreeMap<String, TestClient> = BTreeMap::new();
    let mut current = "1".to_owned();
    for step in steps(script) {
        let client = clients.entry(current.clone()).or_insert_with(|| node.client());
        match step {
            Step::Client(name) => current = name.to_owned(),
            Step::Resp3 => speak_resp3(client),
            Step::Advance(ms) => node.clock.advance(ms),
            Step::Request { line, expected, .. } => {
                let reply = node.run(client, line);
                assert!(
                    expected == "*" || reply == expected,
                    "{}",
                    differs(line, expected, &reply)
                );
            }
        }
    }
    assert_eq!(node.replayed(), node.dump(), "the log gives back what the node holds");
}

pub(super) enum Step<'a> {
    Client(&'a str),
    Resp3,
    Advance(u64),
    Request { line: &'a str, expected: &'a str, newer: bool },
}

pub(super) fn steps(script: &str) -> impl Iterator<Item = Step<'_>> {
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.map(|line| {
        if let Some(name) = line.strip_prefix("@client ") {
            return Step::Client(name);
        }
        if let Some(ms) = line.strip_prefix("@advance ") {
            return Step::Advance(ms.parse().expect("milliseconds"));
        }
        if line == "@resp3" {
            return Step::Resp3;
        }
        let (line, expected) = line.split_once("=>").unwrap_or_else(|| panic!("no => in {line}"));
        let (newer, expected) = match expected.strip_prefix('>') {
            Some(expected) => (true, expected),
            None => (false, expected),
        };
        Step::Request { line: line.trim(), expected: expected.trim(), newer }
    })
}

pub(super) fn differs(line: &str, expected: &str, reply: &str) -> String {
    format!("\n request: {line}\nexpected: {expected}\n   reply: {reply}\n")
}

/// A request's words; a quoted word may hold spaces and Rust's byte escapes (`"a\x00\n"`).
pub fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = line.trim().bytes().peekable();
    while let Some(first) = rest.next() {
        if first == b' ' {
            continue;
        }
        let quoted = first == b'"';
        let mut word = if quoted { Vec::new() } else { vec![first] };
        while let Some(byte) = rest.next_if(|&byte| quoted || byte != b' ') {
            match byte {
                b'"' if quoted => break,
                b'\\' if quoted => word.push(match rest.next().expect("an escape") {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'x' => {
                        let digits = [rest.next().expect("hex"), rest.next().expect("hex")];
                        let digits = std::str::from_utf8(&digits).expect("hex");
                        u8::from_str_radix(digits, 16).expect("hex")
                    }
                    other => other,
                }),
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
    words
}
