//! Clients that take all they can get: what they cost the server, and others, is bounded.

use super::{Node, stop};
use crate::live::{call, info_number, ok, pong, rss_bytes};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_endless_pipeline_leaves_turns_to_others() {
    let node = Node::new(&["--io-threads", "1"]);
    let server = node.start();
    let stream = node.connect().0;
    let (mut send, mut receive) =
        (stream.try_clone().expect("one"), stream.try_clone().expect("one"));
    let requests = b"set k 0 0 1\r\nx\r\nget k k k\r\nmg k v\r\n".repeat(1000);
    let sender = thread::spawn(move || while send.write_all(&requests).is_ok() {});
    let reader = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while receive.read(&mut buffer).is_ok_and(|length| length != 0) {}
    });
    let mut polite = server.connect().expect("connects");
    let mut before = info_number(&mut polite, "stats", "total_commands_processed");
    let begin = before;
    let began = Instant::now();
    // Until there was a flood to be heard beside: how fast it is, the disk says.
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
    const REQUESTS: usize = 30_000;
    let node = Node::new(&["--io-threads", "1", "--client-reply-backlog", "8mb"]);
    let server = node.start();
    let mut polite = server.connect().expect("connects");
    let value = "x".repeat(1000);
    assert_eq!(call(&mut polite, &["SET", "k", &value]), ok());
    let mut lazy = node.connect();
    let mut send = lazy.0.try_clone().expect("a socket");
    let sender = thread::spawn(move || {
        send.write_all(&b"get k k k\r\n".repeat(REQUESTS)).expect("sent");
    });
    thread::sleep(Duration::from_millis(500));
    let held = rss_bytes(&server);
    assert!(held < 400 << 20, "{held} bytes");
    assert_eq!(call(&mut polite, &["PING"]), pong());
    let one = format!("VALUE k 0 1000\r\n{value}\r\n").repeat(3) + "END\r\n";
    let mut reply = vec![0; one.len()];
    for at in 0..REQUESTS {
        lazy.0.read_exact(&mut reply).expect("a reply");
        assert!(reply == one.as_bytes(), "reply {at}");
    }
    sender.join().expect("sent all");
    stop(server);
}

#[test]
fn half_requests_by_the_hundred_cost_little() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut polite = node.connect();
    assert_eq!(polite.ask("set k 0 0 1\r\nx\r\n"), "STORED\r\n");
    let before = rss_bytes(&server);
    let mut halves = Vec::new();
    for n in 0..400 {
        let mut half = node.connect();
        half.send(match n % 4 {
            0 => &b"set big 0 0 500000000\r\n"[..],
            1 => b"get ",
            2 => b"\x80\x01\0\x01\x08\0\0\0\x10\0\0\0",
            _ => b"ms k 400000000 T0\r\nabc",
        });
        halves.push(half);
    }
    assert_eq!(polite.ask("get k\r\n"), "VALUE k 0 1\r\nx\r\nEND\r\n");
    let more = rss_bytes(&server).saturating_sub(before);
    assert!(more < 40 << 20, "{more} bytes for 400 halves of requests");
    // One that goes on with its half is answered.
    halves[1].send("k\r\n");
    assert_eq!(halves[1].until(b"END\r\n"), b"VALUE k 0 1\r\nx\r\nEND\r\n");
    stop(server);
}

#[test]
fn requests_cut_anywhere_and_garbage_are_survived() {
    let node = Node::new(&["--proto-max-bulk-len", "1mb"]);
    let server = node.start();
    let whole = b"set cut 5 0 3\r\nabc\r\ngets cut\r\n";
    for cut in 1..whole.len() {
        let mut client = node.connect();
        client.send(&whole[..cut]);
        thread::sleep(Duration::from_millis(1));
        client.send(&whole[cut..]);
        let reply = String::from_utf8(client.until(b"END\r\n")).expect("text");
        assert!(reply.starts_with("STORED\r\nVALUE cut 5 3 "), "cut at {cut}: {reply}");
    }
    // A line without an end, and a value that is too long, which is skipped.
    let mut client = node.connect();
    client.send(vec![b'a'; 5000]);
    assert_eq!(client.rest(), b"");
    let mut client = node.connect();
    let long = vec![b'x'; (1 << 20) + 1];
    client.send([format!("set k 0 0 {}\r\n", long.len()).as_bytes(), &long, b"\r\n"].concat());
    assert_eq!(client.until(b"\r\n"), b"SERVER_ERROR object too large for cache\r\n");
    assert_eq!(client.ask("get cut\r\n"), "VALUE cut 5 3\r\nabc\r\nEND\r\n");
    let mut browser = node.connect();
    browser.send("GET / HTTP/1.1\r\nset cut 0 0 1\r\nx\r\n");
    assert_eq!(browser.rest(), b"");
    let mut random = 88_172_645_463_325_252u64;
    for _ in 0..50 {
        let mut client = node.connect();
        let garbage: Vec<u8> = (0..3000)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                b"get set 0123\r\n\x80\x81k mgsda"[random as usize % 23]
            })
            .collect();
        client.send(&garbage);
        let _ = client.0.shutdown(Shutdown::Write);
        client.rest();
    }
    let mut client = node.connect();
    assert_eq!(client.ask("get cut\r\n"), "VALUE cut 5 3\r\nabc\r\nEND\r\n");
    // Many keys in one request are answered in pieces.
    let keys = "cut ".repeat(20_000);
    let reply = client.ask(format!("get {keys}\r\n"));
    assert_eq!(reply, "VALUE cut 5 3\r\nabc\r\n".repeat(20_000) + "END\r\n");
    stop(server);
}
