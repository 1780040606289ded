//! Replies about large values, on the real binary: each of one moment whatever happens meanwhile,
//! in the order of their requests, to clients that take them fast, slowly or not at all.

use crate::live::{bulk, call, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// More than are answered at once, for all types.
const ELEMENTS: usize = 6_000;

const TWO_THREADS: &[&str] = &["--io-threads", "2"];

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

fn send(client: &mut Client, words: &[String]) -> Value {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    call(client, &words)
}

/// A request with words for each element.
fn about_all(head: &[&str], words: impl Fn(usize) -> Vec<String>) -> Vec<String> {
    let head = head.iter().map(|word| (*word).to_owned());
    head.chain((0..ELEMENTS).flat_map(words)).collect()
}

/// Writes a whole generation of each value, at one go.
fn write_generation(client: &mut Client, generation: usize) {
    call(client, &["MULTI"]);
    send(client, &about_all(&["HSET", "hash"], |n| vec![n.to_string(), generation.to_string()]));
    send(client, &about_all(&["ZADD", "sorted"], |n| vec![generation.to_string(), n.to_string()]));
    for (key, push) in [("set", "SADD"), ("list", "RPUSH")] {
        call(client, &["DEL", key]);
        send(client, &about_all(&[push, key], |n| vec![format!("{generation}:{n}")]));
    }
    assert!(matches!(call(client, &["EXEC"]), Value::Array(replies) if replies.len() == 6));
}

fn texts(reply: Value) -> Vec<String> {
    let Value::Array(values) = reply else { panic!("an array, not {reply:?}") };
    let text = |value: &Value| String::from_utf8(value.as_bytes().expect("bytes").to_vec());
    values.iter().map(|value| text(value).expect("UTF-8")).collect()
}

/// What asks for all of a value, and how to tell from its reply's parts the elements' numbers and
/// generations.
const QUESTIONS: [(&[&str], bool); 6] = [
    (&["HGETALL", "hash"], true),
    (&["ZRANGE", "sorted", "0", "-1", "WITHSCORES"], true),
    (&["ZREVRANGEBYSCORE", "sorted", "+inf", "-inf", "WITHSCORES"], true),
    (&["SMEMBERS", "set"], false),
    (&["LRANGE", "list", "0", "-1"], false),
    (&["LRANGE", "list", "1", "-1"], false),
];

/// Checks that a reply is of one moment; the generation.
fn check(words: &[&str], in_pairs: bool, reply: Value) -> usize {
    let texts = texts(reply);
    let mut elements: Vec<(usize, usize)> = if in_pairs {
        let number = |text: &String| text.parse().expect("a number");
        texts.chunks(2).map(|pair| (number(&pair[0]), number(&pair[1]))).collect()
    } else {
        let parts = texts.iter().map(|text| text.split_once(':').expect("two numbers"));
        parts.map(|(g, n)| (n.parse().expect("a number"), g.parse().expect("one"))).collect()
    };
    let generation = elements[0].1;
    assert!(elements.iter().all(|element| element.1 == generation), "{words:?}: one moment");
    if words[0] != "LRANGE" {
        elements.sort_unstable();
    }
    let first = words.contains(&"1").into();
    assert!(elements.iter().map(|element| element.0).eq(first..ELEMENTS), "{words:?}: all");
    generation
}

#[test]
fn a_long_reply_is_of_one_moment() {
    on_both_backends(TWO_THREADS, |server| {
        write_generation(&mut connect(server), 0);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = connect(server);
                let began = Instant::now();
                let mut generation = 0;
                while began.elapsed() < Duration::from_secs(1) || generation < 5 {
                    generation += 1;
                    write_generation(&mut writer, generation);
                }
                over.store(true, Relaxed);
            });
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut reader = connect(server);
                    let mut newest = 0;
                    while !over.load(Relaxed) {
                        for (words, in_pairs) in QUESTIONS {
                            let generation = check(words, in_pairs, call(&mut reader, words));
                            assert!(generation >= newest, "time goes forward");
                            newest = generation;
                        }
                    }
                });
            }
        });
    });
}

#[test]
fn replies_come_in_the_order_of_their_requests() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        write_generation(&mut client, 7);
        for (words, _) in QUESTIONS {
            client.request(words).expect("sent");
            client.request(&["PING"]).expect("sent");
        }
        client.request(&["MULTI"]).expect("sent");
        for (words, _) in QUESTIONS {
            client.request(words).expect("sent");
        }
        client.request(&["EXEC"]).expect("sent");
        for (words, in_pairs) in QUESTIONS {
            assert_eq!(check(words, in_pairs, client.reply().expect("a reply")), 7);
            assert_eq!(client.reply().expect("a reply"), pong());
        }
        assert_eq!(client.reply().expect("a reply"), ok());
        for _ in QUESTIONS {
            assert_eq!(client.reply().expect("queued"), Value::Simple(b"QUEUED".to_vec()));
        }
        let Value::Array(replies) = client.reply().expect("a reply") else { panic!("EXEC") };
        for ((words, in_pairs), reply) in QUESTIONS.into_iter().zip(replies) {
            assert_eq!(check(words, in_pairs, reply), 7);
        }
    });
}

/// How many entries an XREAD answers of each stream.
fn entries_read(reply: Value) -> Vec<(String, usize)> {
    let Value::Array(streams) = reply else { panic!("an array, not {reply:?}") };
    let part = |stream: Value| match stream {
        Value::Array(mut parts) => match (parts.remove(0), parts.remove(0)) {
            (name, Value::Array(entries)) => {
                let name = name.as_bytes().expect("a name").to_vec();
                (String::from_utf8(name).expect("UTF-8"), entries.len())
            }
            other => panic!("a name and entries, not {other:?}"),
        },
        other => panic!("a stream, not {other:?}"),
    };
    streams.into_iter().map(part).collect()
}

#[test]
fn a_budget_of_several_streams_holds_for_long_replies_too() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        for stream in ["s", "t", "u"] {
            for n in 0..ELEMENTS {
                let id = format!("{}-0", 1000 + n);
                client.request(&["XADD", stream, &id, "f", "value"]).expect("sent");
            }
            (0..ELEMENTS).for_each(|_| assert!(!client.reply().expect("an id").is_error()));
        }
        let mut read = |options: &str| {
            let words = format!("XREAD {options} STREAMS s t u 0 0 0");
            let words: Vec<&str> = words.split(' ').collect();
            let once = entries_read(call(&mut client, &words));
            assert_eq!(call(&mut client, &["MULTI"]), ok());
            call(&mut client, &words);
            let Value::Array(mut replies) = call(&mut client, &["EXEC"]) else { panic!("EXEC") };
            assert_eq!(entries_read(replies.remove(0)), once, "the same in EXEC");
            once
        };
        let named = |parts: &[(&str, usize)]| -> Vec<(String, usize)> {
            parts.iter().map(|&(name, entries)| (name.to_owned(), entries)).collect()
        };
        assert_eq!(read("MAXCOUNT 9000"), named(&[("s", 6000), ("t", 3000)]));
        assert_eq!(read("COUNT 5000 MAXCOUNT 6000"), named(&[("s", 5000), ("t", 1000)]));
        assert_eq!(read("COUNT 5000"), named(&[("s", 5000), ("t", 5000), ("u", 5000)]));
        // *2 $6 1000-0 *2 $1 f $5 value, with two bytes at the end of each line
        let bytes = 4 + 4 + 8 + 4 + 4 + 3 + 4 + 7;
        let size = format!("MAXSIZE {}", 7_000 * bytes + 5);
        assert_eq!(read(&size), named(&[("s", 6000), ("t", 1000)]));
        assert_eq!(read("MAXSIZE 1"), named(&[("s", 1)]));
    });
}

/// Fields whose values together are more than sockets hold.
const LARGE_FIELDS: usize = 1_500;
const LARGE_BYTES: usize = 8_000;

fn large_hash(client: &mut Client) {
    let value = "v".repeat(LARGE_BYTES);
    for part in 0..LARGE_FIELDS / 100 {
        let mut words = vec!["HSET".to_owned(), "large".to_owned()];
        for number in part * 100..(part + 1) * 100 {
            words.extend([number.to_string(), value.clone()]);
        }
        send(client, &words);
    }
}

/// A client that reads when it is told to.
struct Slow(BufReader<TcpStream>);

impl Slow {
    /// Asks for the large hash, and then for a sign of life.
    fn ask(server: &Server) -> Slow {
        let mut stream = connect(server).stream().try_clone().expect("a stream");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.write_all(b"HGETALL large\r\nPING\r\n").expect("sent");
        let mut slow = Slow(BufReader::new(stream));
        assert_eq!(slow.line(), format!("*{}", 2 * LARGE_FIELDS));
        slow
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn bulk(&mut self) -> Vec<u8> {
        let line = self.line();
        let len: usize = line[1..].parse().unwrap_or_else(|_| panic!("a length, not {line}"));
        let mut bytes = vec![0; len + 2];
        self.0.read_exact(&mut bytes).expect("a string");
        bytes.truncate(len);
        bytes
    }

    /// Reads the rest and checks it.
    fn check_rest(mut self) {
        let mut names = BTreeSet::new();
        for _ in 0..LARGE_FIELDS {
            names.insert(self.bulk());
            assert_eq!(self.bulk(), [b'v'; LARGE_BYTES]);
        }
        assert_eq!(names.len(), LARGE_FIELDS);
        assert_eq!(self.line(), "+PONG");
    }
}

/// Changes what the reply under way is about.
type Change = fn(&mut Client);

#[test]
fn what_becomes_of_the_value_changes_no_reply_under_way() {
    let changes: [Change; 6] = [
        |client| assert_eq!(call(client, &["DEL", "large"]), Value::Integer(1)),
        |client| assert_eq!(call(client, &["RENAME", "large", "other"]), ok()),
        |client| assert_eq!(call(client, &["FLUSHALL"]), ok()),
        |client| assert_eq!(call(client, &["SET", "large", "small"]), ok()),
        |client| assert_eq!(call(client, &["SWAPDB", "0", "1"]), ok()),
        |client| {
            for number in 0..LARGE_FIELDS {
                let word = number.to_string();
                call(client, &["HSET", "large", &word, "another"]);
                call(client, &["HDEL", "large", &word]);
            }
        },
    ];
    on_both_backends(TWO_THREADS, |server| {
        let mut other = connect(server);
        for change in changes {
            call(&mut other, &["FLUSHALL"]);
            large_hash(&mut other);
            let client = Slow::ask(server);
            change(&mut other);
            client.check_rest();
        }
    });
}

#[test]
fn who_takes_nothing_for_long_has_it_as_output_and_its_limit() {
    on_both_backends(TWO_THREADS, |server| {
        let mut control = connect(server);
        let mut output = || {
            let list = call(&mut control, &["CLIENT", "LIST"]);
            let list = String::from_utf8_lossy(list.as_bytes().expect("text")).into_owned();
            let each = list.lines().filter_map(|line| line.split_once(" omem=")?.1.split_once(' '));
            each.filter_map(|(bytes, _)| bytes.parse::<usize>().ok()).max().unwrap_or(0)
        };
        large_hash(&mut connect(server));
        let client = Slow::ask(server);
        thread::sleep(Duration::from_millis(300));
        assert!(output() < 2 << 20, "most of it is not made");
        let began = Instant::now();
        while output() < 4 << 20 {
            assert!(began.elapsed() < Duration::from_secs(20), "the rest is made after a while");
            thread::sleep(Duration::from_millis(20));
        }
        client.check_rest();
        let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0"];
        call(&mut control, &limit);
        let mut client = Slow::ask(server);
        let began = Instant::now();
        while info_number(&mut control, "clients", "connected_clients") > 1 {
            assert!(began.elapsed() < Duration::from_secs(20), "its output is over the limit");
            thread::sleep(Duration::from_millis(20));
        }
        let mut rest = Vec::new();
        let _ = client.0.read_to_end(&mut rest);
        assert!(rest.len() < LARGE_FIELDS * LARGE_BYTES);
    });
}

#[test]
fn who_leaves_or_is_made_to_leave_costs_nothing() {
    on_both_backends(TWO_THREADS, |server| {
        let mut control = connect(server);
        large_hash(&mut control);
        let before = info_number(&mut control, "memory", "used_memory_dataset");
        for turn in 0..3 {
            let client = Slow::ask(server);
            // All of it is new, so that all that was is kept for the reply.
            large_hash(&mut control);
            if turn % 2 == 0 {
                call(&mut control, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            }
            drop(client);
        }
        // Changes give back what was kept.
        let began = Instant::now();
        loop {
            large_hash(&mut control);
            let now = info_number(&mut control, "memory", "used_memory_dataset");
            if now <= before + (1 << 20) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{now} bytes, {before} before");
        }
    });
}

#[test]
fn a_long_reply_is_one_call_of_its_command() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        write_generation(&mut client, 1);
        call(&mut client, &["CONFIG", "RESETSTAT"]);
        call(&mut client, &["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
        call(&mut client, &["SLOWLOG", "RESET"]);
        for _ in 0..3 {
            call(&mut client, &["SMEMBERS", "set"]);
        }
        let info = call(&mut client, &["INFO", "commandstats"]);
        let info = String::from_utf8_lossy(info.as_bytes().expect("text")).into_owned();
        assert!(info.contains("cmdstat_smembers:calls=3,"), "{info}");
        let Value::Array(slow) = call(&mut client, &["SLOWLOG", "GET", "-1"]) else { panic!() };
        let words = Value::Array(vec![bulk("SMEMBERS"), bulk("set")]);
        let of_it = |entry: &&Value| matches!(entry, Value::Array(parts) if parts[3] == words);
        assert_eq!(slow.iter().filter(of_it).count(), 3);
    });
}

/// More elements than any reply can have.
const ENDLESS: &str = "-9223372036854775807";
/// As many with what belongs to each.
const ENDLESS_PAIRS: &str = "-4611686018427387903";

/// How a request is sent, and what comes before its reply.
const WAYS: [(&str, &str, &str); 2] =
    [("", "", ""), ("MULTI\r\n", "EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n")];

/// A client that has asked for something in one of these ways, and has read the reply's header.
fn asked(server: &Server, words: &str, way: (&str, &str, &str), header: &str) -> Slow {
    let mut stream = connect(server).stream().try_clone().expect("a stream");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let (before, after, answer) = way;
    stream.write_all(format!("{before}{words}\r\n{after}").as_bytes()).expect("sent");
    let mut client = Slow(BufReader::new(stream));
    for line in format!("{answer}{header}").lines() {
        assert_eq!(client.line(), line, "{words}");
    }
    client
}

/// Waits until the only client is the one that asks.
fn wait_for_others_to_go(control: &mut Client) {
    let began = Instant::now();
    while info_number(control, "clients", "connected_clients") > 1 {
        assert!(began.elapsed() < Duration::from_secs(20), "it has gone");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_reply_without_end_keeps_nobody_waiting_and_ends_with_its_client() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut control = connect(server);
        write_generation(&mut control, 1);
        call(&mut control, &["SADD", "few", "a", "b"]);
        for (words, header) in [
            (format!("SRANDMEMBER set {ENDLESS}"), "*9223372036854775807"),
            (format!("SRANDMEMBER few {ENDLESS}"), "*9223372036854775807"),
            (format!("HRANDFIELD hash {ENDLESS_PAIRS} WITHVALUES"), "*9223372036854775806"),
            (format!("ZRANDMEMBER sorted {ENDLESS_PAIRS} WITHSCORES"), "*9223372036854775806"),
        ] {
            for way in WAYS {
                let mut client = asked(server, &words, way, header);
                let waits = asked(server, &words, way, header);
                for _ in 0..300_000 {
                    client.bulk();
                }
                assert_eq!(call(&mut control, &["PING"]), pong());
                drop((client, waits));
                wait_for_others_to_go(&mut control);
            }
            let hidden = format!("CLIENT REPLY SKIP\r\n{words}\r\nPING");
            asked(server, &hidden, WAYS[0], "+PONG");
        }
    });
}

#[test]
fn what_waits_for_a_slow_client_without_end_is_no_more_than_the_value() {
    on_both_backends(TWO_THREADS, |server| {
        for way in WAYS {
            let mut control = connect(server);
            call(&mut control, &["FLUSHALL"]);
            large_hash(&mut control);
            let before = info_number(&mut control, "memory", "used_memory_dataset");
            let words = match way.0 {
                "" => format!("HRANDFIELD large {ENDLESS_PAIRS} WITHVALUES"),
                _ => format!("HRANDFIELD large {ENDLESS_PAIRS} WITHVALUES\r\nHGETALL large"),
            };
            let (head, end, answer) = way;
            let answer = answer.replace("*1\r\n", "+QUEUED\r\n*2\r\n");
            let mut client = asked(server, &words, (head, end, &answer), "*9223372036854775806");
            // What it was asked of has gone, and what has come has, all the time.
            let began = Instant::now();
            loop {
                call(&mut control, &["DEL", "large"]);
                large_hash(&mut control);
                for number in 0..LARGE_FIELDS {
                    call(&mut control, &["HSET", "large", &number.to_string(), "another"]);
                }
                let now = info_number(&mut control, "memory", "used_memory_dataset");
                if began.elapsed() > Duration::from_secs(2) && now < before {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(30), "{now} bytes are held");
            }
            let list = call(&mut control, &["CLIENT", "LIST"]);
            let list = String::from_utf8_lossy(list.as_bytes().expect("text")).into_owned();
            let each = list.lines().filter_map(|line| line.split_once(" omem=")?.1.split_once(' '));
            let output: usize =
                each.filter_map(|(bytes, _)| bytes.parse::<usize>().ok()).max().unwrap_or(0);
            let value = LARGE_FIELDS * LARGE_BYTES;
            assert!((value..4 * value).contains(&output), "{output} bytes of output");
            for _ in 0..5_000 {
                client.bulk();
                assert_eq!(client.bulk(), [b'v'; LARGE_BYTES]);
            }
            drop(client);
            wait_for_others_to_go(&mut control);
        }
    });
}

#[test]
fn a_value_that_is_named_often_is_kept_once() {
    const TIMES: usize = 100_000;
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut control = connect(server);
        for bytes in [50_000, 3_000_000] {
            let value = "v".repeat(bytes);
            call(&mut control, &["SET", "s", &value]);
            call(&mut control, &["HSET", "h", "s", &value]);
            for head in ["MGET", "HMGET h"] {
                let words = format!("{head}{}", " s".repeat(TIMES));
                let words: Vec<&str> = words.split(' ').collect();
                let mut asks = connect(server);
                asks.request(&words).expect("sent");
                let stream = asks.stream().try_clone().expect("a stream");
                let mut client = Slow(BufReader::new(stream));
                assert_eq!(client.line(), format!("*{TIMES}"));
                thread::sleep(Duration::from_millis(1_500));
                let list = call(&mut control, &["CLIENT", "LIST"]);
                let list = String::from_utf8_lossy(list.as_bytes().expect("text")).into_owned();
                let each =
                    list.lines().filter_map(|line| line.split_once(" omem=")?.1.split_once(' '));
                let output = each.filter_map(|(bytes, _)| bytes.parse::<usize>().ok()).max();
                assert!(output.is_some_and(|output| output < 40 << 20), "{head}: {output:?}");
                for _ in 0..20_000_000 / bytes {
                    assert!(client.bulk() == value.as_bytes(), "{head}");
                }
                drop((client, asks));
                wait_for_others_to_go(&mut control);
            }
        }
    });
}
