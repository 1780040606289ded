//! Clients while the data is being loaded: answered as Redis answers them, and served on
//! afterwards.
//!
//! What keeps a server loading here is a disk that holds back reads (`sick_disk/shim.c`).

use crate::live::{bulk, call, ok};
use crate::sick_disk::{SOON, SickDisk, WHILE, until};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::time::Instant;

fn loading() -> Value {
    Value::Error(b"LOADING Ladon is loading the dataset in memory".to_vec())
}

fn pong() -> Value {
    Value::Simple(b"PONG".to_vec())
}

/// A server that is about to find `k`, and does not until `hold-read` is unset.
fn held(arguments: &[&str]) -> (SickDisk, Server) {
    let mut disk = SickDisk::new(&[]);
    let mut server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    server.kill().expect("killed");
    disk.set("hold-read");
    disk.launch.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let server = disk.launch.spawn().expect("starts");
    (disk, server)
}

fn connect(server: &Server) -> Client {
    let began = Instant::now();
    loop {
        match server.connect() {
            Ok(client) => return client,
            Err(error) => assert!(began.elapsed() < SOON, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

#[test]
fn who_came_early_is_answered_and_served_on() {
    for backend in ["auto", "mio"] {
        let (disk, server) = held(&["--io-backend", backend, "--io-threads", "2"]);
        let mut clients: Vec<Client> = (0..5).map(|_| connect(&server)).collect();
        for client in &mut clients {
            assert_eq!(call(client, &["PING"]), loading());
            assert_eq!(call(client, &["GET", "k"]), loading());
            assert_eq!(call(client, &["SET", "k", "w"]), loading());
        }
        let client = &mut clients[0];
        let info = text(&call(client, &["INFO", "persistence"]));
        assert!(info.contains("\r\nloading:1\r\n"), "{info}");
        for field in ["start_time", "total_bytes", "loaded_bytes", "loaded_perc", "eta_seconds"] {
            assert!(info.contains(&format!("\r\nloading_{field}:")), "{field} in {info}");
        }
        assert_eq!(call(client, &["CLIENT", "SETNAME", "early"]), ok());
        assert_eq!(call(client, &["SELECT", "1"]), ok());
        assert_eq!(call(client, &["MULTI"]), ok());
        assert_eq!(call(client, &["GET", "k"]), loading());
        assert!(
            matches!(call(client, &["EXEC"]), Value::Error(text) if text.starts_with(b"EXECABORT"))
        );
        let id = call(client, &["CLIENT", "ID"]);
        let hello = call(&mut clients[1], &["HELLO", "3"]);
        assert!(!hello.is_error(), "{hello:?}");
        // A transaction that is open, and one that watches what nobody has seen.
        assert_eq!(call(&mut clients[2], &["MULTI"]), ok());
        assert_eq!(call(&mut clients[3], &["WATCH", "k"]), ok());
        // Half a request, and one that is longer than is read ahead.
        clients[2].send(b"*2\r\n$4\r\nECHO\r\n$5\r\nhel").expect("sent");
        let long = "x".repeat(300_000);
        clients[4].request(&["ECHO", &long]).expect("sent");

        disk.unset("hold-read");
        let client = &mut clients[0];
        until(client, &["PING"], |reply| *reply == pong());
        assert_eq!(call(client, &["CLIENT", "GETNAME"]), bulk("early"));
        assert_eq!(call(client, &["CLIENT", "ID"]), id);
        assert_eq!(call(client, &["GET", "k"]), Value::Null, "it has selected another database");
        assert_eq!(call(client, &["SELECT", "0"]), ok());
        assert_eq!(call(client, &["GET", "k"]), bulk("v"));
        let info = text(&call(client, &["INFO", "persistence"]));
        assert!(info.contains("\r\nloading:0\r\n") && !info.contains("loading_eta"), "{info}");
        let Value::Map(_) = call(&mut clients[1], &["CONFIG", "GET", "gate"]) else {
            panic!("it speaks RESP3 still")
        };
        clients[2].send(b"lo\r\n").expect("sent");
        assert_eq!(clients[2].reply().expect("a reply"), Value::Simple(b"QUEUED".to_vec()));
        assert_eq!(call(&mut clients[2], &["EXEC"]), Value::Array(vec![bulk("hello")]));
        assert_eq!(call(&mut clients[3], &["MULTI"]), ok());
        assert_eq!(call(&mut clients[3], &["GET", "k"]), Value::Simple(b"QUEUED".to_vec()));
        assert_eq!(
            call(&mut clients[3], &["EXEC"]),
            Value::NullArray,
            "what it watched was loaded"
        );
        assert_eq!(clients[4].reply().expect("a reply"), bulk(&long));
        let list = text(&call(&mut clients[0], &["CLIENT", "LIST"]));
        assert_eq!(list.lines().count(), 5, "{list}");
    }
}

/// What a connection has asked for outlasts the exchange of the data, on every thread.
#[test]
fn what_was_asked_for_while_loading_holds_afterwards() {
    let (disk, server) = held(&["--io-threads", "2"]);
    let mut watching: Vec<Client> = (0..2).map(|_| connect(&server)).collect();
    let mut subscribed: Vec<Client> = (0..2).map(|_| connect(&server)).collect();
    let mut tracking: Vec<Client> = (0..2).map(|_| connect(&server)).collect();
    let mut client = connect(&server);
    for monitor in &mut watching {
        assert_eq!(call(monitor, &["MONITOR"]), ok());
    }
    for subscriber in &mut subscribed {
        assert!(!call(subscriber, &["SUBSCRIBE", "news", "__keyevent@0__:set"]).is_error());
        subscriber.reply().expect("the second channel");
    }
    for tracker in &mut tracking {
        assert!(!call(tracker, &["HELLO", "3"]).is_error());
        assert_eq!(call(tracker, &["CLIENT", "TRACKING", "ON"]), ok());
    }
    assert_eq!(call(&mut client, &["CONFIG", "SET", "notify-keyspace-events", "E$"]), ok());
    assert_eq!(call(&mut client, &["PUBLISH", "news", "early"]), Value::Integer(2));

    disk.unset("hold-read");
    until(&mut client, &["PING"], |reply| *reply == pong());
    for tracker in &mut tracking {
        assert_eq!(call(tracker, &["GET", "k"]), bulk("v"));
    }
    assert_eq!(call(&mut client, &["SET", "k", "late"]), ok());
    assert_eq!(call(&mut client, &["PUBLISH", "news", "late"]), Value::Integer(2));
    for subscriber in &mut subscribed {
        let messages: [(&str, &str); 3] =
            [("news", "early"), ("__keyevent@0__:set", "k"), ("news", "late")];
        for (channel, message) in messages {
            let expected = [bulk("message"), bulk(channel), bulk(message)];
            assert_eq!(subscriber.reply().expect("a message"), Value::Array(expected.into()));
        }
    }
    for tracker in &mut tracking {
        let Value::Push(invalid) = tracker.reply().expect("an invalidation") else {
            panic!("it follows what it has read")
        };
        assert_eq!(invalid[0], bulk("invalidate"));
    }
    for monitor in &mut watching {
        let mut lines = std::iter::from_fn(|| match monitor.reply().expect("a line") {
            Value::Simple(line) => Some(String::from_utf8_lossy(&line).into_owned()),
            other => panic!("{other:?} is no line"),
        });
        assert!(lines.any(|line| line.contains("\"PUBLISH\" \"news\" \"early\"")));
        assert!(lines.any(|line| line.contains("\"SET\" \"k\" \"late\"")));
    }
}

/// A pause that was asked for while loading holds back requests on the data.
#[test]
fn a_pause_outlasts_loading() {
    let (disk, server) = held(&["--io-threads", "2"]);
    let (mut client, mut held_back) = (connect(&server), connect(&server));
    assert_eq!(call(&mut client, &["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
    disk.unset("hold-read");
    until(&mut client, &["GET", "k"], |reply| *reply == bulk("v"));
    held_back.request(&["SET", "k", "w"]).expect("sent");
    assert!(!held_back.has_reply_within(WHILE).expect("waits"));
    assert_eq!(call(&mut client, &["GET", "k"]), bulk("v"));
    assert_eq!(call(&mut client, &["CLIENT", "UNPAUSE"]), ok());
    assert_eq!(held_back.reply().expect("a reply"), ok());
}

/// Test harnesses start a server, connect as soon as they can, and send their first command.
#[test]
fn who_comes_before_a_short_load_is_over_is_not_refused() {
    let disk = SickDisk::new(&[]);
    for _ in 0..5 {
        let mut server = disk.launch.spawn().expect("starts");
        let mut client = connect(&server);
        assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
        server.kill().expect("killed");
    }
}

#[test]
fn strangers_stay_strangers() {
    let (disk, server) = held(&["--requirepass", "secret"]);
    let (mut known, mut stranger) = (connect(&server), connect(&server));
    let no_auth = Value::Error(b"NOAUTH Authentication required.".to_vec());
    assert_eq!(call(&mut known, &["PING"]), no_auth);
    assert!(call(&mut stranger, &["AUTH", "wrong"]).is_error());
    assert_eq!(call(&mut known, &["AUTH", "secret"]), ok());
    assert_eq!(call(&mut known, &["PING"]), loading());
    disk.unset("hold-read");
    until(&mut known, &["PING"], |reply| *reply == pong());
    assert_eq!(call(&mut known, &["GET", "k"]), bulk("v"));
    assert_eq!(call(&mut stranger, &["GET", "k"]), no_auth);
}

#[test]
fn it_can_be_stopped_and_has_lost_nothing() {
    for how in [Some(["SHUTDOWN", "NOSAVE"]), Some(["SHUTDOWN", "SAVE"]), None] {
        let (disk, mut server) = held(&[]);
        let mut client = connect(&server);
        assert_eq!(call(&mut client, &["PING"]), loading());
        let status = match how {
            Some(words) => {
                client.request(&words).expect("sent");
                server.wait()
            }
            None => server.terminate(),
        };
        assert!(status.expect("ends").success(), "{how:?}: {}", server.output());
        disk.unset("hold-read");
        let server = disk.start();
        assert_eq!(call(&mut connect(&server), &["GET", "k"]), bulk("v"), "{how:?}");
    }
}

/// Nobody who sends much, reads nothing or speaks nonsense takes more than his share, or keeps
/// others waiting.
#[test]
fn the_impolite_are_bounded() {
    let (disk, server) = held(&[]);
    let mut polite = connect(&server);
    assert_eq!(call(&mut polite, &["PING"]), loading());
    let mut nonsense = connect(&server);
    nonsense.send(b"*1\r\n$-5\r\n").expect("sent");
    assert!(nonsense.reply().expect("an error").is_error());
    nonsense.reply().expect_err("and no more");
    let mut impolite: Vec<Client> = (0..50).map(|_| connect(&server)).collect();
    for client in &mut impolite {
        let stream = client.stream();
        stream.set_nonblocking(true).expect("a socket");
        let mut sent = 0;
        let flood = b"*1\r\n$4\r\nINFO\r\n".repeat(5000);
        while let Ok(more) = std::io::Write::write(stream, &flood) {
            sent += more;
            if sent > 4 << 20 {
                break;
            }
        }
        assert_eq!(call(&mut polite, &["PING"]), loading());
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    assert!(kib < 150 << 10, "{line}");
    drop(impolite);
    disk.unset("hold-read");
    until(&mut polite, &["PING"], |reply| *reply == pong());
    assert_eq!(call(&mut polite, &["GET", "k"]), bulk("v"));
}
