//! Clients that do as little, or as much, as they can.

use super::{Node, request};
use crate::common::until;
use crate::live::{call, ok, pong};
use serde_json::json;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Half requests by the thousand keep nobody out.
#[test]
fn half_requests_keep_nobody_out() {
    let node = Node::new(&["--maxclients", "100"]);
    let cookie = node.log_in("default", "");
    let mut client = node.server.connect().expect("connects");
    let headers = format!("Cookie: {cookie}\r\nContent-Type: application/json\r\n");
    let whole = request("POST", "api/command", &headers, &"x".repeat(10_000));
    let login = request("POST", "api/login", "Content-Type: application/json\r\n", "{\"name\":");
    let mut half = Vec::new();
    for number in 0..1000 {
        let mut stream = UnixStream::connect(&node.socket).expect("connects");
        let bytes = match number % 4 {
            0 => &whole.as_bytes()[..60],
            1 => &whole.as_bytes()[..whole.len() - 5000],
            2 => &login.as_bytes()[..login.len() - 4],
            _ => b"",
        };
        // The port may have sent it away already.
        let _ = stream.write_all(bytes);
        half.push(stream);
        if number % 250 == 0 {
            assert_eq!(call(&mut client, &["PING"]), pong());
            assert_eq!(node.one(&cookie, &["PING"]), json!({"status": "PONG"}));
        }
    }
    // Those that were sent away are closed a moment later.
    until("few open files", || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", node.server.pid()));
        (files.expect("its files").count() < 200).then_some(())
    });
    drop(half);
}

/// Streams that nobody reads cost what waits in them, in their sockets and, as for every subscriber,
/// in the server's output up to its limit.
#[test]
fn streams_that_nobody_reads_cost_little() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut client = node.server.connect().expect("connects");
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"];
    assert_eq!(call(&mut client, &limit), ok());
    let headers = format!("Cookie: {cookie}\r\n");
    let path = "api/tail?channel=flood";
    let open = request("GET", path, &headers, "");
    let mut unread = Vec::new();
    for _ in 0..40 {
        let mut stream = UnixStream::connect(&node.socket).expect("connects");
        stream.write_all(open.as_bytes()).expect("sent");
        unread.push(stream);
    }
    let resident = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", node.server.pid()));
        let status = status.expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
    };
    let before = resident();
    let message = "x".repeat(4000);
    for _ in 0..5000 {
        call(&mut client, &["PUBLISH", "flood", &message]);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 100_000, "{grown} kB for 20 MB of messages, sixteen times");
    assert_eq!(call(&mut client, &["PING"]), pong());
    assert_eq!(node.one(&cookie, &["PING"]), json!({"status": "PONG"}));
    let files = std::fs::read_dir(format!("/proc/{}/fd", node.server.pid()));
    assert!(files.expect("its files").count() < 200);
}
