//! Long strings as replies, on the real binary: right wherever they stand, of one moment, without a
//! copy for each client that takes its time.

use crate::live::large::connect;
use crate::live::{bulk, call, info_number, ok, on_both_backends, pong, rss_bytes};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const TWO_THREADS: &[&str] = &["--io-threads", "2"];

const MIB: usize = 1 << 20;

/// Text of this length, in which every place shows.
fn text(length: usize) -> String {
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        text.push_str(&format!("{:07}.", text.len()));
    }
    text.truncate(length);
    text
}

fn same(reply: &Value, expected: &str) {
    assert!(reply.as_bytes() == Some(expected.as_bytes()), "{} bytes", expected.len());
}

#[test]
fn long_strings_are_whole_in_every_reply() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        for length in [MIB - 1, MIB, 5 * MIB + 77] {
            let long = text(length);
            call(&mut client, &["SET", "long", &long]);
            same(&call(&mut client, &["GET", "long"]), &long);
            same(&call(&mut client, &["GETRANGE", "long", "0", "-1"]), &long);
            same(
                &call(&mut client, &["GETRANGE", "long", "70000", "-5"]),
                &long[70_000..length - 4],
            );
            same(&call(&mut client, &["GETRANGE", "long", "9", "99"]), &long[9..100]);
            same(&call(&mut client, &["GETEX", "long", "EX", "1000"]), &long);
            assert!(matches!(call(&mut client, &["TTL", "long"]), Value::Integer(900..=1000)));
            same(&call(&mut client, &["GETEX", "long", "PERSIST"]), &long);
            same(&call(&mut client, &["SET", "long", &long[1..], "GET"]), &long);
            same(&call(&mut client, &["SET", "long", "no", "NX", "GET"]), &long[1..]);
            same(&call(&mut client, &["GETSET", "long", &long]), &long[1..]);
            call(&mut client, &["MULTI"]);
            call(&mut client, &["GET", "long"]);
            let Value::Array(replies) = call(&mut client, &["EXEC"]) else { panic!("EXEC") };
            same(&replies[0], &long);
            same(&call(&mut client, &["GETDEL", "long"]), &long);
            assert_eq!(call(&mut client, &["GET", "long"]), Value::Null);
        }
        let error = call(&mut client, &["GETEX", "long", "EX"]);
        assert!(matches!(error, Value::Error(_)));
    });
}

#[test]
fn several_strings_come_in_their_order() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        let (first, second) = (text(3 * MIB), text(100 << 10));
        call(&mut client, &["MSET", "a", &first, "b", &second, "short", "s", "number", "12"]);
        call(&mut client, &["SADD", "set", "x"]);
        for proto in ["2", "3"] {
            client.request(&["HELLO", proto]).expect("sent");
            let words = ["short", "a", "none", "number", "b", "b", "set", "a", "short"];
            client.request(&[&["MGET"][..], &words].concat()).expect("sent");
            client.request(&["PING"]).expect("sent");
            client.request(&["GET", "a"]).expect("sent");
            client.request(&["INCR", "number"]).expect("sent");
            client.request(&["DECR", "number"]).expect("sent");
            client.reply().expect("HELLO");
            let Value::Array(replies) = client.reply().expect("MGET") else { panic!("MGET") };
            assert_eq!(replies.len(), words.len());
            for (word, reply) in words.iter().zip(&replies) {
                match *word {
                    "a" => same(reply, &first),
                    "b" => same(reply, &second),
                    "short" => assert_eq!(*reply, bulk("s")),
                    "number" => assert_eq!(*reply, bulk("12")),
                    _ => assert_eq!(*reply, Value::Null),
                }
            }
            assert_eq!(client.reply().expect("PING"), pong());
            same(&client.reply().expect("GET"), &first);
            assert_eq!(client.reply().expect("INCR"), Value::Integer(13));
            assert_eq!(client.reply().expect("DECR"), Value::Integer(12));
        }
    });
}

/// A client that has asked and takes no reply yet.
struct Slow(TcpStream);

impl Slow {
    fn ask(server: &Server, request: &str) -> Slow {
        let mut stream = connect(server).stream().try_clone().expect("a stream");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut slow = Slow(stream);
        slow.expect(b"$");
        slow
    }

    fn expect(&mut self, bytes: &[u8]) {
        let mut got = vec![0; bytes.len()];
        self.0.read_exact(&mut got).expect("more");
        assert!(got == bytes, "{} bytes as they were", bytes.len());
    }

    fn expect_rest(mut self, string: &str) {
        self.expect(format!("{}\r\n", string.len()).as_bytes());
        self.expect(string.as_bytes());
        self.expect(b"\r\n+PONG\r\n");
    }
}

/// Changes what the reply under way is about.
type Change = fn(&mut Client);

#[test]
fn what_becomes_of_the_string_changes_no_reply_under_way() {
    let changes: [Change; 7] = [
        |client| assert_eq!(call(client, &["DEL", "long"]), Value::Integer(1)),
        |client| assert_eq!(call(client, &["FLUSHALL"]), ok()),
        |client| assert_eq!(call(client, &["SET", "long", "short"]), ok()),
        |client| assert_eq!(call(client, &["RENAME", "long", "other"]), ok()),
        |client| assert!(matches!(call(client, &["APPEND", "long", "end"]), Value::Integer(_))),
        |client| assert_eq!(call(client, &["SETBIT", "long", "7", "0"]), Value::Integer(0)),
        |client| {
            for at in (0..20 * MIB).step_by(MIB) {
                call(client, &["SETRANGE", "long", &at.to_string(), "changed"]);
            }
        },
    ];
    on_both_backends(TWO_THREADS, |server| {
        let mut other = connect(server);
        let long = text(20 * MIB);
        for change in changes {
            call(&mut other, &["SET", "long", &long]);
            let client = Slow::ask(server, "GET long\r\nPING\r\n");
            change(&mut other);
            client.expect_rest(&long);
        }
        let now = call(&mut other, &["GETRANGE", "long", "0", "20"]);
        same(&now, "changed.0000008.00000");
    });
}

#[test]
fn who_takes_the_reply_slowly_costs_no_copy_of_it() {
    on_both_backends(TWO_THREADS, |server| {
        let mut control = connect(server);
        let long = text(32 * MIB);
        call(&mut control, &["SET", "long", &long]);
        let before = rss_bytes(server);
        let clients: Vec<Slow> =
            (0..6).map(|_| Slow::ask(server, "GET long\r\nPING\r\n")).collect();
        // Longer than a client may be slow before the rest counts as its output.
        let began = Instant::now();
        loop {
            let list = call(&mut control, &["CLIENT", "LIST"]);
            let list = String::from_utf8_lossy(list.as_bytes().expect("text")).into_owned();
            let outputs =
                list.lines().filter_map(|line| line.split_once(" omem=")?.1.split(' ').next());
            let long = |bytes: &&str| bytes.parse::<usize>().expect("a number") > 8 * MIB;
            if outputs.filter(long).count() == clients.len() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "all count: {list}");
            thread::sleep(Duration::from_millis(20));
        }
        let grown = rss_bytes(server).saturating_sub(before);
        assert!(grown < 32 * MIB as u64, "{grown} bytes more for six clients");
        for client in clients {
            client.expect_rest(&long);
        }
    });
}

#[test]
fn the_limit_of_output_counts_the_string_and_who_is_cut_off_costs_nothing() {
    on_both_backends(TWO_THREADS, |server| {
        let mut control = connect(server);
        let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0"];
        call(&mut control, &limit);
        let long = text(48 * MIB);
        let mut first = 0;
        for turn in 0..10 {
            call(&mut control, &["SET", "long", &long]);
            let mut client = Slow::ask(server, "GET long\r\nPING\r\n");
            // Only the reply holds it now.
            call(&mut control, &["DEL", "long"]);
            if turn % 4 != 0 {
                call(&mut control, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            }
            let began = Instant::now();
            while info_number(&mut control, "clients", "connected_clients") > 1 {
                assert!(began.elapsed() < Duration::from_secs(20), "turn {turn}");
                thread::sleep(Duration::from_millis(20));
            }
            let mut rest = Vec::new();
            let _ = client.0.read_to_end(&mut rest);
            assert!(rest.len() < long.len());
            let now = rss_bytes(server);
            first = if turn == 0 { now } else { first };
            // Memory that was given back is kept for a while, but not that of every turn.
            assert!(now < first + 4 * long.len() as u64, "{now} bytes, {first} at first");
        }
    });
}

/// Whatever a backend reports late must not hold up a reply in many parts: with a tick a second,
/// each part would take one.
#[test]
fn a_client_alone_on_its_server_does_not_wait_for_ticks() {
    on_both_backends(&["--io-threads", "1", "--hz", "1"], |server| {
        let mut client = connect(server);
        let long = text(32 * MIB);
        call(&mut client, &["SET", "long", &long]);
        call(&mut client, &["RPUSH", "list", &long[..MIB]]);
        let many: Vec<&str> =
            ["RPUSH", "list"].into_iter().chain((0..1000).map(|_| &long[..30_000])).collect();
        call(&mut client, &many);
        let slow = Slow::ask(server, "GET long\r\nPING\r\n");
        thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        slow.expect_rest(&long);
        let Value::Array(all) = call(&mut client, &["LRANGE", "list", "0", "-1"]) else { panic!() };
        assert_eq!(all.len(), 1001);
        assert!(began.elapsed() < Duration::from_secs(40), "not a second for each part");
    });
}
