//! Publish and subscribe on the real binary: one order for everybody, nothing lost after an
//! acknowledgement, nothing shown before its gate, and slow subscribers bounded.

use crate::live::{call, info_number, ok, on_both_backends, peak_bytes};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const FOUR_THREADS: &[&str] = &["--io-threads", "4"];

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

fn subscribe(client: &mut Client, command: &str, name: &str) {
    let reply = call(client, &[command, name]);
    assert!(matches!(&reply, Value::Array(parts) if parts.len() == 3), "{reply:?}");
}

/// The last part of the next message.
fn payload(client: &mut Client) -> String {
    let reply = client.reply().expect("a message");
    let Value::Array(parts) = &reply else { panic!("{reply:?}") };
    let text = parts.last().and_then(Value::as_bytes).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[test]
fn all_subscribers_of_a_channel_see_one_order() {
    const MESSAGES: usize = 3000;
    on_both_backends(FOUR_THREADS, |server| {
        let mut subscribers: Vec<Client> = (0..8).map(|_| connect(server)).collect();
        for (at, subscriber) in subscribers.iter_mut().enumerate() {
            if at % 2 == 0 {
                subscribe(subscriber, "SUBSCRIBE", "news");
            } else {
                subscribe(subscriber, "PSUBSCRIBE", "n*");
            }
        }
        let publish = |name: &str| {
            let mut publisher = connect(server);
            for batch in 0..MESSAGES / 100 {
                for at in 0..100 {
                    let text = format!("{name}{}", batch * 100 + at);
                    publisher.request(&["PUBLISH", "news", &text]).expect("sent");
                }
                for _ in 0..100 {
                    assert_eq!(publisher.reply().expect("a reply"), Value::Integer(8));
                }
            }
        };
        let seen: Vec<Vec<String>> = thread::scope(|scope| {
            let readers: Vec<_> = subscribers
                .iter_mut()
                .map(|it| scope.spawn(|| (0..2 * MESSAGES).map(|_| payload(it)).collect()))
                .collect();
            scope.spawn(|| publish("a"));
            scope.spawn(|| publish("b"));
            readers.into_iter().map(|reader| reader.join().expect("no panic")).collect()
        });
        for other in &seen[1..] {
            assert!(*other == seen[0], "two subscribers saw different orders");
        }
        for name in ["a", "b"] {
            let sent: Vec<String> = (0..MESSAGES).map(|at| format!("{name}{at}")).collect();
            let received: Vec<_> = seen[0].iter().filter(|it| it.starts_with(name)).collect();
            assert!(received.into_iter().eq(&sent), "a publisher's order is not kept");
        }
    });
}

#[test]
fn every_publisher_sees_an_acknowledged_subscription() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut publishers: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        let mut subscribers: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        for round in 0..100 {
            let channel = format!("c{round}");
            let subscriber = &mut subscribers[round % 4];
            let forms = [("SUBSCRIBE", "UNSUBSCRIBE"), ("PSUBSCRIBE", "PUNSUBSCRIBE")];
            let (begin, end) = forms[round / 4 % 2];
            subscribe(subscriber, begin, &channel);
            for publisher in &mut publishers {
                let reply = call(publisher, &["PUBLISH", &channel, "m"]);
                assert_eq!(reply, Value::Integer(1), "round {round}");
            }
            for _ in 0..4 {
                assert_eq!(payload(subscriber), "m");
            }
            let reply = call(subscriber, &[end, &channel]);
            assert!(matches!(&reply, Value::Array(parts) if parts[2] == Value::Integer(0)));
            for publisher in &mut publishers {
                let reply = call(publisher, &["PUBLISH", &channel, "m"]);
                assert_eq!(reply, Value::Integer(0), "round {round}");
            }
        }
        // What was published before a subscription does not reach it.
        let subscriber = &mut subscribers[0];
        subscribe(subscriber, "SUBSCRIBE", "c1");
        call(&mut publishers[0], &["PUBLISH", "c1", "last"]);
        assert_eq!(payload(subscriber), "last");
    });
}

#[test]
fn the_events_of_a_key_have_the_order_of_its_changes() {
    const CALLS: usize = 3000;
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        assert_eq!(call(&mut control, &["CONFIG", "SET", "notify-keyspace-events", "KA"]), ok());
        let mut subscriber = connect(server);
        subscribe(&mut subscriber, "SUBSCRIBE", "__keyspace@0__:k");
        thread::scope(|scope| {
            for writer in 0..4 {
                scope.spawn(move || {
                    let mut client = connect(server);
                    for at in 0..CALLS {
                        let words =
                            if (at + writer) % 3 == 0 { ["DEL", "k"] } else { ["INCR", "k"] };
                        client.request(&words).expect("sent");
                        if at % 50 == 49 {
                            (0..50).for_each(|_| drop(client.reply().expect("a reply")));
                        }
                    }
                });
            }
        });
        call(&mut control, &["SET", "k", "end"]);
        let (mut exists, mut events) = (false, 0);
        loop {
            match payload(&mut subscriber).as_str() {
                "set" => break,
                "incrby" => exists = true,
                "del" => {
                    assert!(exists, "event {events}: the key was removed twice");
                    exists = false;
                }
                other => panic!("{other}"),
            }
            events += 1;
        }
        assert!(events > 4 * CALLS / 2);
    });
}

/// As Redis 8.2 has it: what is replaced as a whole, and what gets another type.
#[test]
fn who_wants_to_hears_that_values_are_replaced() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let mut subscriber = connect(server);
        subscribe(&mut subscriber, "SUBSCRIBE", "__keyspace@0__:k");
        assert_eq!(call(&mut control, &["CONFIG", "SET", "notify-keyspace-events", "AKoc"]), ok());
        for (request, events) in [
            ("SET k 1", &["set"][..]),
            ("SET k 2", &["overwritten", "set"]),
            ("INCR k", &["incrby"]),
            ("INCREX k", &["incrby"]),
            ("APPEND k 1", &["append"]),
            ("SADD s a", &[]),
            ("SUNIONSTORE k s", &["overwritten", "type_changed", "sunionstore"]),
            ("SUNIONSTORE k s", &["overwritten", "sunionstore"]),
            ("SADD k b", &["sadd"]),
            ("SORT s STORE k ALPHA", &["overwritten", "type_changed", "sortstore"]),
            ("COPY s k REPLACE", &["overwritten", "type_changed", "copy_to"]),
            ("RPUSH l a", &[]),
            ("RENAME l k", &["overwritten", "type_changed", "rename_to"]),
            ("BITOP NOT k none", &["del"]),
            ("SET k 1 EX 100", &["set", "expire"]),
            ("PEXPIRE k 0", &["del"]),
            ("LPUSH k a", &["lpush"]),
        ] {
            let words: Vec<&str> = request.split(' ').collect();
            call(&mut control, &words);
            for event in events {
                assert_eq!(payload(&mut subscriber), *event, "{request}");
            }
        }
        call(&mut control, &["PUBLISH", "__keyspace@0__:k", "last"]);
        assert_eq!(payload(&mut subscriber), "last", "and nothing else");
    });
}

/// Rounds of `kill -9` while a client writes and publishes what it wrote, at the gate `none`.
/// Returns which messages the subscriber got, at its own gate, about writes that are gone.
fn lost(gate: &str, rounds: u32, write: &str) -> BTreeSet<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--io-threads", "2", "--gate", "none", "--notify-keyspace-events", "E$"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let mut lost = BTreeSet::new();
    for round in 0..rounds {
        let mut server = launch.start().expect("starts");
        let mut subscriber = connect(&server);
        assert_eq!(call(&mut subscriber, &["CLIENT", "GATE", gate]), ok());
        let channel = if write == "PUBLISH" { "c" } else { "__keyevent@0__:set" };
        subscribe(&mut subscriber, "SUBSCRIBE", channel);
        let mut writer = connect(&server);
        let (heard, first) = mpsc::channel();
        let received: Vec<String> = thread::scope(|scope| {
            scope.spawn(move || {
                // Long enough that the log takes its time.
                let value = "v".repeat(20_000);
                for at in 0.. {
                    let key = format!("{round}.{at}");
                    let mut sent = writer.request(&["SET", &key, &value]);
                    if write == "PUBLISH" {
                        sent = sent.and_then(|()| writer.request(&["PUBLISH", "c", &key]));
                    }
                    if at % 20 == 19 {
                        while writer.has_reply_within(Duration::from_micros(10)).unwrap_or(false) {
                            sent = sent.and_then(|()| writer.reply().map(drop));
                        }
                    }
                    if sent.is_err() {
                        return;
                    }
                }
            });
            let reader = scope.spawn(move || {
                let mut received = Vec::new();
                while let Ok(Value::Array(parts)) = subscriber.reply() {
                    let text = parts.last().and_then(Value::as_bytes).unwrap_or_default();
                    received.push(String::from_utf8_lossy(text).into_owned());
                    let _ = heard.send(());
                }
                received
            });
            first.recv().expect("somebody gets a message");
            thread::sleep(Duration::from_millis(u64::from(20 + round * 7 % 30)));
            server.kill().expect("killed");
            reader.join().expect("no panic")
        });
        let mut server = launch.start().expect("starts again");
        let mut reader = connect(&server);
        for key in received {
            if call(&mut reader, &["EXISTS", &key]) != Value::Integer(1) {
                lost.insert(key);
            }
        }
        server.kill().expect("killed");
    }
    lost
}

#[test]
fn no_message_leaves_before_what_it_depends_on_is_safe() {
    for write in ["PUBLISH", "SET"] {
        let lost = lost("fsync", 6, write);
        assert!(lost.is_empty(), "{write}: {lost:?}");
    }
}

/// The canary: at the gate `none`, a subscriber sees what is then lost, and the check notices.
#[test]
fn the_check_notices_messages_at_the_gate_none() {
    assert!((0..40).any(|_| !lost("none", 4, "PUBLISH").is_empty()));
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_and_holds_nobody() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut control = connect(server);
        let mut deaf: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        for client in &mut deaf {
            subscribe(client, "SUBSCRIBE", "c");
        }
        let before = peak_bytes(server);
        let message = "m".repeat(64 << 10);
        // Four times as much as the limit of a subscriber's output.
        for _ in 0..2048 {
            call(&mut control, &["PUBLISH", "c", &message]);
        }
        assert_eq!(call(&mut control, &["PUBLISH", "c", &message]), Value::Integer(0));
        assert_eq!(info_number(&mut control, "clients", "pubsub_clients"), 0);
        // The limit is 32 MiB each, and freed memory is not returned at once.
        let grown = peak_bytes(server) - before;
        assert!(grown < 400 << 20, "{} MiB", grown >> 20);
    });
}

#[test]
fn a_message_to_many_subscribers_is_delivered_once_to_each() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut subscribers: Vec<Client> = (0..1000).map(|_| connect(server)).collect();
        for subscriber in &mut subscribers {
            subscribe(subscriber, "SUBSCRIBE", "c");
            // A client that matches twice gets the message twice, as in Redis.
            subscribe(subscriber, "PSUBSCRIBE", "c*");
        }
        let mut publisher = connect(server);
        for at in 0..5 {
            let reply = call(&mut publisher, &["PUBLISH", "c", &at.to_string()]);
            assert_eq!(reply, Value::Integer(2000));
        }
        for subscriber in &mut subscribers {
            for at in 0..5 {
                assert_eq!(payload(subscriber), at.to_string());
                assert_eq!(payload(subscriber), at.to_string());
            }
            assert!(!subscriber.has_reply_within(Duration::from_millis(1)).expect("open"));
        }
    });
}
