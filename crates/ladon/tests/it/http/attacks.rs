//! Clients that take all they can get: what they cost the server, and others, is bounded.

use super::{Node, stop};
use crate::live::{call, info_number, ok, pong, rss_bytes};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_endless_pipeline_leaves_turns_to_others() {
    let node = Node::new(&["--io-threads", "1", "--gate", "none"]);
    let server = node.start();
    let stream = node.connect().0;
    let (mut send, mut receive) =
        (stream.try_clone().expect("one"), stream.try_clone().expect("one"));
    let requests = b"GET /incr/n HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    let sender = thread::spawn(move || while send.write_all(&requests).is_ok() {});
    let reader = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while receive.read(&mut buffer).is_ok_and(|length| length != 0) {}
    });
    let mut polite = server.connect().expect("connects");
    let mut before = info_number(&mut polite, "stats", "total_commands_processed");
    let begin = before;
    let began = Instant::now();
    for round in 0.. {
        let was_flood = before - begin > 10_000;
        if round >= 200 && (was_flood || began.elapsed() > Duration::from_secs(60)) {
            break;
        }
        assert_eq!(call(&mut polite, &["PING"]), pong());
        let now = info_number(&mut polite, "stats", "total_commands_processed");
        assert!(now - before < 100_000, "{} others in between", now - before);
        before = now;
    }
    assert!(before - begin > 10_000, "the flood was none: {}", before - begin);
    let _ = stream.shutdown(Shutdown::Both);
    sender.join().expect("ends");
    reader.join().expect("ends");
    stop(server);
}

#[test]
fn a_client_that_never_reads_holds_little_and_loses_nothing() {
    const REQUESTS: usize = 20_000;
    let node = Node::new(&["--io-threads", "1", "--client-reply-backlog", "8mb"]);
    let server = node.start();
    let mut polite = server.connect().expect("connects");
    let value = "x".repeat(3000);
    assert_eq!(call(&mut polite, &["SET", "k", &value]), ok());
    let mut lazy = node.connect();
    let mut send = lazy.0.try_clone().expect("a socket");
    let sender = thread::spawn(move || {
        send.write_all(&b"GET /get/k HTTP/1.1\r\nHost: x\r\n\r\n".repeat(REQUESTS)).expect("sent");
    });
    thread::sleep(Duration::from_millis(500));
    let held = rss_bytes(&server);
    assert!(held < 400 << 20, "{held} bytes");
    assert_eq!(call(&mut polite, &["PING"]), pong());
    let expected = format!("{{\"result\":\"{value}\"}}");
    for at in 0..REQUESTS {
        assert!(lazy.response(false).text() == expected, "response {at}");
    }
    sender.join().expect("sent all");
    stop(server);
}

#[test]
fn half_requests_by_the_hundred_cost_little() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "requirepass", "x"]), ok());
    let before = rss_bytes(&server);
    let mut halves = Vec::new();
    for n in 0..400 {
        let mut half = node.connect();
        match n % 4 {
            0 => half.send("GET /get/"),
            1 => half.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n[\"SET\""),
            2 => half.send(
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n[\"SET\"",
            ),
            _ => half.send(format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}", "a".repeat(15_000))),
        }
        halves.push(half);
    }
    let mut polite = node.connect();
    let authorized = "GET /ping\nAuthorization: Bearer x";
    assert_eq!(polite.ask(authorized, "").text(), r#"{"result":"PONG"}"#);
    let held = rss_bytes(&server).saturating_sub(before);
    assert!(held < 30 << 20, "{held} bytes");
    stop(server);
}

#[test]
fn tiny_writes_and_garbage_do_not_stop_others() {
    let node = Node::new(&["--io-threads", "1"]);
    let server = node.start();
    let mut slow = node.connect();
    for byte in b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n[\"ECHO\",\"hi\"]" {
        slow.send([*byte]);
    }
    assert_eq!(slow.response(false).text(), r#"{"result":"hi"}"#);
    for garbage in [
        &b"*1\r\n$4\r\nPING\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let mut client = node.connect();
        client.send(garbage);
        let rest = client.rest();
        assert!(rest.starts_with("HTTP/1.1 400"), "{rest}");
    }
    assert_eq!(slow.ask("GET /ping", "").status, 200);
    stop(server);
}

/// A full disk, as the log sees it, is an answer, and nothing is lost.
#[test]
fn a_server_that_is_full_says_so() {
    let node = Node::new(&["--maxmemory", "10mb"]);
    let server = node.start();
    let mut client = node.connect();
    let value = "x".repeat(100_000);
    let mut status = 204;
    for n in 0..500 {
        status = client.ask(&format!("PUT /v1/keys/k{n}"), &value).status;
        if status != 204 {
            break;
        }
    }
    assert_eq!(status, 507);
    assert_eq!(client.ask("GET /v1/keys/k0", "").text(), value);
    stop(server);
}
