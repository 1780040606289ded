//! `SYNC` on the real binary: a dump of all data, as `redis-cli --rdb` asks for it.

use crate::live::{call, error, ok, on_both_backends, pong, rss_bytes};
use ladon_crash::{Client, Server};
use ladon_rdb::{Element, Event, Field, Reader};
use ladon_resp::client::Value;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const MARK_BYTES: usize = 40;

/// A connection that has said what it understands.
fn asks(server: &Server, options: &[(&str, &str)]) -> Client {
    let mut client = server.connect().expect("connects");
    for (option, value) in options {
        assert_eq!(call(&mut client, &["REPLCONF", option, value]), ok());
    }
    client
}

/// All that the server sends until it closes the connection: without head and mark.
fn dumped(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the server closes it");
    let mark = all.strip_prefix(b"$EOF:").expect("a dump")[..MARK_BYTES].to_vec();
    let file = &all[5 + MARK_BYTES..];
    let file = file.strip_prefix(b"\r\n").expect("the end of a line");
    file.strip_suffix(&mark[..]).expect("the mark").to_vec()
}

fn dump_of(server: &Server, options: &[(&str, &str)]) -> Vec<u8> {
    let mut client = asks(server, options);
    client.stream().write_all(b"SYNC\r\n").expect("sent");
    dumped(client.stream())
}

/// What a file holds: by database and key, the expiry and the number of elements; the functions, and
/// the fields that expire.
#[derive(Default, Debug, PartialEq, Eq)]
struct Held {
    keys: BTreeMap<(u64, Vec<u8>), (Option<i64>, usize)>,
    functions: usize,
    expiring_fields: usize,
}

fn held(file: &[u8]) -> Held {
    let (mut held, mut database, mut key) = (Held::default(), 0, None);
    for event in Reader::new(file) {
        match event.expect("a sound file") {
            Event::SelectDb(number) => database = number,
            Event::Function(_) => held.functions += 1,
            Event::Key(begun) => {
                let name = (database, begun.name.clone());
                let facts = (begun.expires_at_ms, 0);
                assert_eq!(held.keys.insert(name.clone(), facts), None, "{name:?} is there twice");
                key = Some(name);
            }
            Event::Element(element) => {
                let bytes = match element {
                    Element::StringPart(part) => part.len(),
                    Element::Field(Field { expires_at_ms: Some(4_000_000_000_000), .. }) => {
                        held.expiring_fields += 1;
                        1
                    }
                    _ => 1,
                };
                let name = key.as_ref().expect("a key before its elements");
                held.keys.get_mut(name).expect("it was begun").1 += bytes;
            }
            _ => {}
        }
    }
    held
}

#[test]
fn everything_is_in_the_dump() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = server.connect().expect("connects");
        for number in 0..3000 {
            client.request(&["SET", &format!("key:{number}"), "value"]).expect("sent");
        }
        for _ in 0..3000 {
            assert_eq!(client.reply().expect("a reply"), ok());
        }
        call(&mut client, &["SET", "over", "1", "PXAT", "1"]);
        call(&mut client, &["SET", "expiring", "1", "PXAT", "4000000000000"]);
        call(&mut client, &["SET", "long", &"x".repeat(5 << 20)]);
        call(&mut client, &["SELECT", "9"]);
        for n in 0..20 {
            let members: Vec<String> = (0..1000).map(|m| format!("{n}:{m}")).collect();
            let mut words = vec!["RPUSH", "large"];
            words.extend(members.iter().map(String::as_str));
            call(&mut client, &words);
        }
        for (key, count) in [("hash", 3), ("large hash", 3000)] {
            let fields: Vec<String> = (0..2 * count).map(|n| format!("{n}")).collect();
            let mut words = vec!["HSET", key];
            words.extend(fields.iter().map(String::as_str));
            call(&mut client, &words);
            let words = ["HPEXPIREAT", key, "4000000000000", "FIELDS", "2", "0", "2"];
            call(&mut client, &words);
        }
        let code = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
        call(&mut client, &["FUNCTION", "LOAD", code]);
        let mut all: BTreeMap<(u64, Vec<u8>), (Option<i64>, usize)> = (0..3000)
            .map(|number| ((0, format!("key:{number}").into_bytes()), (None, 5)))
            .collect();
        all.insert((0, b"expiring".to_vec()), (Some(4_000_000_000_000), 1));
        all.insert((0, b"long".to_vec()), (None, 5 << 20));
        all.insert((9, b"large".to_vec()), (None, 20_000));
        all.insert((9, b"hash".to_vec()), (None, 3));
        all.insert((9, b"large hash".to_vec()), (None, 3000));
        let expected = Held { keys: all, functions: 1, expiring_fields: 4 };
        let capa = ("capa", "eof");
        assert_eq!(held(&dump_of(server, &[capa, ("rdb-only", "1")])), expected);
        let functions = held(&dump_of(server, &[capa, ("rdb-filter-only", "functions")]));
        assert_eq!((functions.keys.len(), functions.functions), (0, 1));
        // Two at once, of which one does not read before the other is done.
        let mut slow = asks(server, &[capa]);
        slow.stream().write_all(b"SYNC\r\n").expect("sent");
        assert_eq!(held(&dump_of(server, &[capa])), expected);
        assert_eq!(held(&dumped(slow.stream())), expected);
    });
}

#[test]
fn who_would_follow_is_refused() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let none = error(
            "ERR Ladon sends its log to replicas that are Ladons too: SYNC gives a dump, to redis-cli --rdb \
             and the like",
        );
        let mut client = server.connect().expect("connects");
        let length =
            error("ERR the dump's length is not known before its end: say REPLCONF capa eof first");
        assert_eq!(call(&mut client, &["SYNC"]), length);
        assert_eq!(call(&mut client, &["REPLCONF", "listening-port", "6379"]), none);
        assert_eq!(call(&mut client, &["REPLCONF", "capa", "eof", "capa", "psync2"]), ok());
        assert_eq!(call(&mut client, &["SYNC"]), none);
        let mut client = asks(server, &[("capa", "eof")]);
        assert_eq!(call(&mut client, &["PSYNC", "?", "-1"]), none);
        assert_eq!(call(&mut client, &["SYNC"]), none);
        let unknown = error("ERR Unrecognized REPLCONF option: what");
        assert_eq!(call(&mut client, &["REPLCONF", "what", "1"]), unknown);
        assert_eq!(call(&mut client, &["REPLCONF", "capa"]), error("ERR syntax error"));
        assert_eq!(call(&mut client, &["PING"]), pong());
    });
}

/// Clients that read nothing: others are served, memory stays, and when they leave, a dump can be
/// had again.
#[test]
fn clients_that_read_nothing_cost_little() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut client = server.connect().expect("connects");
        let value = "x".repeat(1 << 20);
        for number in 0..64 {
            call(&mut client, &["SET", &format!("key:{number}"), &value]);
        }
        let before = rss_bytes(server);
        let mut idle: Vec<Client> = Vec::new();
        let refusal = loop {
            let mut client = asks(server, &[("capa", "eof")]);
            client.request(&["SYNC"]).expect("sent");
            let mut first = [0; 1];
            client.stream().peek(&mut first).expect("it begins");
            if first == *b"-" {
                break client.reply().expect("a reply");
            }
            idle.push(client);
        };
        assert_eq!(refusal, error("ERR cannot make a dump: 8 are under way already"));
        assert_eq!(idle.len(), 8);
        assert_eq!(call(&mut client, &["INCR", "n"]), Value::Integer(1));
        let more = rss_bytes(server).saturating_sub(before);
        assert!(more < 40 << 20, "8 clients that read nothing took {more} bytes");
        drop(idle);
        let file = loop {
            let mut client = asks(server, &[("capa", "eof")]);
            client.request(&["SYNC"]).expect("sent");
            let mut first = [0; 1];
            client.stream().peek(&mut first).expect("it begins");
            if first == *b"$" {
                break dumped(client.stream());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(held(&file).keys.len(), 65);
    });
}
