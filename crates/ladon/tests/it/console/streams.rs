//! Events: samples of the server, and messages of channels.

use super::{Node, request};
use crate::live::{call, ok};
use ladon_resp::client::Value;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A stream of events.
pub(super) struct Events(BufReader<UnixStream>);

impl Events {
    pub(super) fn open(node: &Node, path: &str, cookie: &str) -> Events {
        let mut stream = UnixStream::connect(&node.socket).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let headers = format!("Cookie: {cookie}\r\n");
        stream.write_all(request("GET", path, &headers, "").as_bytes()).expect("sent");
        let mut events = Events(BufReader::new(stream));
        assert!(events.line().expect("a status").contains(" 200 "));
        while !events.line().expect("a header").is_empty() {}
        events
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event of any name; `None` at the end.
    pub(super) fn next(&mut self) -> Option<(String, Json)> {
        let mut name = None;
        loop {
            let line = self.line()?;
            if let Some(event) = line.strip_prefix("event: ") {
                name = Some(event.to_owned());
            } else if let (Some(data), Some(name)) = (line.strip_prefix("data: "), &name) {
                let data = serde_json::from_str(data).unwrap_or_else(|_| panic!("{data}"));
                return Some((name.clone(), data));
            }
        }
    }
}

#[test]
fn a_late_page_has_a_past_and_hears_each_second() {
    let node = Node::new(&[]);
    let mut client = node.server.connect().expect("connects");
    for number in 0..50 {
        assert_eq!(call(&mut client, &["SET", &format!("k{number}"), "v"]), ok());
    }
    std::thread::sleep(Duration::from_millis(2500));
    let cookie = node.log_in("default", "");
    let history = node.get("api/history", &cookie).json();
    let past = history.as_array().expect("samples");
    assert!(past.len() >= 2, "{history}");
    let calls = |sample: &Json, name: &str| {
        let commands = sample["cmds"].as_array().expect("commands").clone();
        let found = commands.into_iter().find(|command| command[0] == name);
        found.map_or(0, |command| command[1].as_u64().expect("a rate"))
    };
    // A rate is over about a second, so the sum is about the number.
    let sets: u64 = past.iter().map(|sample| calls(sample, "set")).sum();
    assert!((30..=70).contains(&sets), "{sets} of 50: {history}");
    let busy = past.iter().find(|sample| calls(sample, "set") > 0).expect("a busy second");
    let command = busy["cmds"].as_array().expect("commands").iter().find(|it| it[0] == "set");
    let [p50, p99, p999] = [1, 2, 3].map(|at| command.expect("set")[2][at].as_u64().expect("ns"));
    assert!(0 < p50 && p50 <= p99 && p99 <= p999, "{busy}");

    let mut events = Events::open(&node, "api/live", &cookie);
    let began = Instant::now();
    let times: Vec<u64> = (0..3)
        .map(|_| {
            let (name, sample) = events.next().expect("a sample");
            assert_eq!(name, "sample");
            assert!(sample["mem"]["keys"].as_u64().expect("bytes") > 0, "{sample}");
            assert_eq!(sample["log"]["ok"], true);
            assert!(!sample["threads"].as_array().expect("threads").is_empty());
            sample["t"].as_u64().expect("a time")
        })
        .collect();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(times.is_sorted() && times[2] - times[0] >= 1500, "{times:?}");
    // It outlives an ordinary connection of the port, and ends with the session.
    assert_eq!(node.post("api/logout", &cookie, &json!({})).status, 200);
    let (name, _) = events.next().expect("an end");
    assert_eq!(name, "end");
    assert!(events.next().is_none());
}

#[test]
fn a_stream_outlives_an_ordinary_connection() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut events = Events::open(&node, "api/live", &cookie);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(12) {
        assert_eq!(events.next().expect("a sample").0, "sample");
    }
}

#[test]
fn a_stream_ends_when_the_user_may_no_longer() {
    let node = Node::with_password(&[], "s3cret");
    let root = node.log_in("default", "s3cret");
    let rules = ["ACL", "SETUSER", "ann", "on", ">one", "+info", "+subscribe", "&*"];
    assert_eq!(node.one(&root, &rules), json!({"status": "OK"}));
    let ann = node.log_in("ann", "one");
    let mut live = Events::open(&node, "api/live", &ann);
    let mut tail = Events::open(&node, "api/tail?channel=c", &ann);
    assert_eq!(live.next().expect("a sample").0, "sample");
    assert_eq!(node.one(&root, &["ACL", "DELUSER", "ann"]), json!(1));
    let end = loop {
        match live.next() {
            Some((name, _)) if name == "sample" => {}
            other => break other,
        }
    };
    assert_eq!(end.expect("an end").0, "end");
    assert_eq!(tail.next().expect("an end").0, "end");
}

#[test]
fn messages_come_as_they_are_published() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut events = Events::open(&node, "api/tail?channel=a%20b&pattern=news.*", &cookie);
    let mut client = node.server.connect().expect("connects");
    for (channel, message) in [("a b", "one"), ("other", "no"), ("news.x", "two")] {
        let Value::Integer(_) = call(&mut client, &["PUBLISH", channel, message]) else {
            panic!("a number")
        };
    }
    assert_eq!(events.next(), Some(("message".into(), json!(["a b", null, "one", 3]))));
    assert_eq!(events.next(), Some(("message".into(), json!(["news.x", "news.*", "two", 3]))));
    let long = "x".repeat(100_000);
    call(&mut client, &["PUBLISH", "news.long", &long]);
    let (_, message) = events.next().expect("a message");
    assert_eq!(message[2].as_str().expect("text").len(), 4096);
    assert_eq!(message[3], 100_000);
    // Whoever leaves is no subscriber any more.
    drop(events);
    let began = Instant::now();
    while call(&mut client, &["PUBLISH", "news.x", "three"]) != Value::Integer(0) {
        assert!(began.elapsed() < Duration::from_secs(10), "it is still subscribed");
        std::thread::sleep(Duration::from_millis(10));
    }
    for query in ["", "channel", "shard=x", "channel=%"] {
        assert_eq!(node.get(&format!("api/tail?{query}"), &cookie).status, 400, "{query}");
    }
}

/// More messages than anybody reads are counted, and the server goes on.
#[test]
fn a_flood_of_messages_is_thinned_out() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let mut events = Events::open(&node, "api/tail?channel=flood", &cookie);
    let mut client = node.server.connect().expect("connects");
    for _ in 0..3000 {
        call(&mut client, &["PUBLISH", "flood", "drop"]);
    }
    std::thread::sleep(Duration::from_millis(1100));
    call(&mut client, &["PUBLISH", "flood", "last"]);
    let (mut shown, mut left_out) = (0, 0);
    loop {
        let (name, data) = events.next().expect("an event");
        match name.as_str() {
            "left_out" => left_out += data.as_u64().expect("a number"),
            _ if data[2] == "last" => break,
            _ => shown += 1,
        }
    }
    assert!(shown >= 64 && left_out > 0, "{shown} {left_out}");
    assert_eq!(shown + left_out, 3000);
}
