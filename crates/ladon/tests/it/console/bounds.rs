//! What a session cannot have: endless replies, waits, connections.

use super::Node;
use super::streams::Events;
use crate::live::{call, ok, pong};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_reply_beyond_the_bound_is_cut_with_a_reason() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut client = node.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "large", &"x".repeat(3 << 20)]), ok());
    let answer = node.run(&cookie, &json!([["PING"], ["GET", "large"], ["PING"]]));
    assert_eq!(answer["replies"], json!([{"status": "PONG"}]));
    let cut = answer["cut"].as_str().expect("a reason");
    assert!(cut.contains("longer than 2 MiB"), "{cut}");
    let part = node.one(&cookie, &["GETRANGE", "large", "0", "99999"]);
    assert_eq!(part.as_str().expect("text").len(), 100_000);
    for number in 0..70 {
        let words: Vec<String> = (0..1000).map(|at| format!("{number}:{at}")).collect();
        let words = ["RPUSH", "list"].into_iter().chain(words.iter().map(String::as_str));
        call(&mut client, &words.collect::<Vec<_>>());
    }
    let answer = node.run(&cookie, &json!([["LRANGE", "list", "0", "-1"]]));
    assert!(answer["replies"] == json!([]) && answer["cut"].is_string(), "{:?}", answer["cut"]);
}

#[test]
fn a_command_that_waits_is_given_up() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut client = node.server.connect().expect("connects");
    let began = Instant::now();
    let answer = node.run(&cookie, &json!([["PING"], ["BLPOP", "empty", "0"]]));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(answer["replies"], json!([{"status": "PONG"}]));
    assert!(answer["cut"].as_str().expect("a reason").contains("within 8 seconds"), "{answer}");
    // Its wait is over: what comes now is for others.
    let waits = Instant::now();
    loop {
        let list = format!("{:?}", call(&mut client, &["CLIENT", "LIST", "TYPE", "normal"]));
        if !list.contains("98, 108, 112, 111, 112") && !list.contains("blpop") {
            break;
        }
        assert!(waits.elapsed() < Duration::from_secs(10), "{list}");
    }
    call(&mut client, &["RPUSH", "empty", "x"]);
    assert_eq!(node.one(&cookie, &["LLEN", "empty"]), json!(1));
}

#[test]
fn bodies_are_bounded() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let body = json!({"commands": [["SET", "k", "x".repeat(900_000)]]});
    assert_eq!(node.post("api/command", &cookie, &body).status, 200);
    let body = json!({"commands": [["SET", "k", "x".repeat(2_000_000)]]});
    assert_eq!(node.post("api/command", &cookie, &body).status, 413);
    assert_eq!(node.try_log_in("default", &"x".repeat(10_000)).status, 413);
    let deep = format!("{{\"commands\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let headers = format!("Cookie: {cookie}\r\nContent-Type: application/json\r\n");
    let bytes = super::request("POST", "api/command", &headers, &deep);
    assert_eq!(node.exchange(bytes.as_bytes()).status, 400);
}

#[test]
fn the_session_that_was_idle_longest_leaves() {
    let node = Node::new(&[]);
    let cookies: Vec<String> = (0..33).map(|_| node.log_in("default", "")).collect();
    let status = |cookie: &str| node.get("api/session", cookie).status;
    assert_eq!(status(&cookies[0]), 401);
    assert!(cookies[1..].iter().all(|cookie| status(cookie) == 200));
}

#[test]
fn the_oldest_stream_leaves() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut streams: Vec<Events> =
        (0..17).map(|_| Events::open(&node, "api/live", &cookie)).collect();
    assert!(streams.pop().expect("the newest").next().is_some());
    assert!(streams.pop().expect("one before").next().is_some());
    let mut oldest = streams.remove(0);
    while let Some((name, _)) = oldest.next() {
        assert_eq!(name, "sample", "it has heard something before");
    }
    assert!(streams[0].next().is_some());
}

#[test]
fn sessions_and_all_together_have_so_many_calls() {
    let node = Node::new(&[]);
    let cookies: Vec<String> = (0..3).map(|_| node.log_in("default", "")).collect();
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (node, cookie) = (&node, &cookies[number % 3]);
            scope.spawn(move || {
                let body = json!({"commands": [["BLPOP", "empty", "3"]]});
                let status = node.post("api/command", cookie, &body).status;
                assert!([200, 429].contains(&status), "{status}");
            });
        }
        std::thread::sleep(Duration::from_millis(500));
        let mut client = node.server.connect().expect("connects");
        let info = format!(
            "{}",
            String::from_utf8_lossy(
                call(&mut client, &["INFO", "clients"]).as_bytes().expect("text"),
            )
        );
        assert!(info.contains("blocked_clients:8"), "{info}");
        let body = json!({"commands": [["PING"]]});
        assert_eq!(node.post("api/command", &cookies[0], &body).status, 429);
    });
    assert_eq!(node.one(&cookies[0], &["PING"]), json!({"status": "PONG"}));
    let mut client = node.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["PING"]), pong());
}

#[test]
fn maxclients_counts_the_console_too() {
    let node = Node::new(&["--maxclients", "2"]);
    let cookie = node.log_in("default", "");
    let _others: Vec<_> = (0..2)
        .map(|_| {
            let mut client = node.server.connect().expect("connects");
            assert_eq!(call(&mut client, &["PING"]), pong());
            client
        })
        .collect();
    let reply = node.one(&cookie, &["PING"]);
    assert_eq!(reply, json!({"error": "ERR max number of clients reached"}));
    assert_eq!(node.try_log_in("default", "").status, 503);
}
