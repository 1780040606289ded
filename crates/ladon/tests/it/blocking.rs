//! Clients that wait for keys, on the real binary: first come, first served across threads, each
//! element once, and nothing given to who is gone.

use crate::live::{bulk, call, error, info_number, ok, on_both_backends};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const FOUR_THREADS: &[&str] = &["--io-threads", "4"];

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

#[test]
fn a_wait_can_be_ended_as_soon_as_a_pause_is() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        // On all threads, also on the thread of the client that ends the waits.
        let mut waiting: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        for _ in 0..20 {
            assert_eq!(call(&mut control, &["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
            let mut requests = vec![vec!["CLIENT".to_owned(), "UNPAUSE".to_owned()]];
            for client in &mut waiting {
                let Value::Integer(id) = call(client, &["CLIENT", "ID"]) else { panic!("an id") };
                client.request(&["BLPOP", "none", "0"]).expect("sent");
                let words = ["CLIENT", "UNBLOCK", &id.to_string(), "ERROR"];
                requests.push(words.map(str::to_owned).to_vec());
            }
            until_blocked(&mut control, 4);
            assert_eq!(control.call(&requests[1]).expect("a reply"), Value::Integer(0));
            for request in &requests {
                control.request(request).expect("sent");
            }
            assert_eq!(control.reply().expect("a reply"), ok());
            for client in &mut waiting {
                assert_eq!(control.reply().expect("a reply"), Value::Integer(1));
                let unblocked = error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
                assert_eq!(client.reply().expect("a reply"), unblocked);
            }
        }
    });
}

/// Deadlines have no fractions of a millisecond, and a program that measures its wait does.
#[test]
fn no_wait_ends_early() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut client = connect(server);
        for round in 0..40 {
            let wait = Duration::from_millis(5 + round % 3);
            let seconds = wait.as_secs_f64().to_string();
            let began = Instant::now();
            assert_eq!(call(&mut client, &["BLPOP", "none", &seconds]), Value::NullArray);
            assert!(began.elapsed() >= wait, "{:?} of {wait:?}", began.elapsed());
        }
    });
}

/// Waits until so many clients wait.
fn until_blocked(client: &mut Client, count: u64) {
    let began = Instant::now();
    while info_number(client, "clients", "blocked_clients") != count {
        if began.elapsed() > Duration::from_secs(20) {
            let clients = call(client, &["CLIENT", "LIST"]);
            panic!("not {count} clients wait: {clients:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Clients that wait with these words, in the order of their coming.
fn waiters(server: &Server, control: &mut Client, count: u64, words: &[&str]) -> Vec<Client> {
    let mut waiters = Vec::new();
    for present in 1..=count {
        let mut waiter = connect(server);
        waiter.request(words).expect("sent");
        until_blocked(control, present);
        waiters.push(waiter);
    }
    waiters
}

fn popped(key: &str, element: &str) -> Value {
    Value::Array(vec![bulk(key), bulk(element)])
}

#[test]
fn who_comes_first_is_served_first_whichever_thread_it_is_on() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let mut producers: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        let mut waiting = waiters(server, &mut control, 24, &["BLPOP", "queue", "0"]);
        // One by one, from all threads; then many at once.
        for turn in 0..12 {
            let element = turn.to_string();
            call(&mut producers[turn % 4], &["RPUSH", "queue", &element]);
        }
        let rest: Vec<String> = (12..24).map(|turn| turn.to_string()).collect();
        let words: Vec<&str> =
            ["RPUSH", "queue"].into_iter().chain(rest.iter().map(String::as_str)).collect();
        call(&mut producers[0], &words);
        for (turn, waiter) in waiting.iter_mut().enumerate() {
            let served = waiter.reply().expect("served");
            assert_eq!(served, popped("queue", &turn.to_string()));
        }
        until_blocked(&mut control, 0);
        assert_eq!(call(&mut control, &["EXISTS", "queue"]), Value::Integer(0));
        assert_eq!(info_number(&mut control, "clients", "total_blocking_keys"), 0);
    });
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story of many threads")]
fn every_element_is_given_once_among_many_threads() {
    const LISTS: usize = 3;
    const PRODUCERS: usize = 4;
    const EACH: usize = 1500;
    on_both_backends(FOUR_THREADS, |server| {
        let (seen, done) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        let keys: Vec<String> = (0..LISTS).map(|list| format!("list{list}")).collect();
        thread::scope(|scope| {
            for consumer in 0..8 {
                let (keys, seen, done) = (&keys, &seen, &done);
                scope.spawn(move || {
                    let mut client = connect(server);
                    let mut mine = Vec::new();
                    // Timeouts short enough that they meet with pushes.
                    let timeout = ["0.001", "0.003", "0.2"][consumer % 3];
                    loop {
                        let over = done.load(Relaxed) == PRODUCERS as u64;
                        let (first, second) =
                            (&keys[consumer % LISTS], &keys[(consumer + 1) % LISTS]);
                        let reply = match consumer % 4 {
                            0 => call(
                                &mut client,
                                &["BLMOVE", first, "moved", "LEFT", "RIGHT", timeout],
                            ),
                            1 => call(&mut client, &["BRPOP", second, first, timeout]),
                            _ => call(&mut client, &["BLPOP", first, second, timeout]),
                        };
                        match reply {
                            Value::Array(mut pair) => match pair.pop() {
                                Some(Value::Bulk(element)) => mine.push(element),
                                other => panic!("{other:?}"),
                            },
                            // Counted where it was moved to.
                            Value::Bulk(_) => {}
                            Value::Null | Value::NullArray if over => break,
                            Value::Null | Value::NullArray => {}
                            other => panic!("{other:?}"),
                        }
                    }
                    seen.lock().expect("no panic").extend(mine);
                });
            }
            for producer in 0..PRODUCERS {
                let (keys, done) = (&keys, &done);
                scope.spawn(move || {
                    let mut client = connect(server);
                    for serial in 0..EACH {
                        let element = format!("{producer}:{serial}");
                        let key = &keys[serial % LISTS];
                        if serial % 7 == 0 {
                            call(&mut client, &["MULTI"]);
                            call(&mut client, &["RPUSH", key, &element]);
                            call(&mut client, &["EXEC"]);
                        } else {
                            call(&mut client, &["LPUSH", key, &element]);
                        }
                    }
                    done.fetch_add(1, Relaxed);
                });
            }
        });
        let mut control = connect(server);
        let mut seen = seen.into_inner().expect("no panic");
        for key in keys.iter().map(String::as_str).chain(["moved"]) {
            let Value::Array(left) = call(&mut control, &["LRANGE", key, "0", "-1"]) else {
                panic!("a list")
            };
            seen.extend(left.into_iter().map(|element| match element {
                Value::Bulk(element) => element,
                other => panic!("{other:?}"),
            }));
        }
        let distinct: BTreeSet<&Vec<u8>> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (PRODUCERS * EACH, PRODUCERS * EACH));
        assert_eq!(info_number(&mut control, "clients", "total_blocking_keys"), 0);
    });
}

#[test]
fn who_is_gone_gets_nothing() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        // Hung up, killed, unblocked, and over its time: each leaves the line.
        let mut gone = waiters(server, &mut control, 4, &["BLPOP", "queue", "0"]);
        let mut last = connect(server);
        last.request(&["BLPOP", "queue", "0.05"]).expect("sent");
        assert_eq!(last.reply().expect("a reply"), Value::NullArray);
        drop(gone.remove(0));
        until_blocked(&mut control, 3);
        let list = call(&mut control, &["CLIENT", "LIST"]);
        let list = String::from_utf8(list.as_bytes().expect("a text").to_vec()).expect("a text");
        let ids: Vec<&str> = list
            .lines()
            .filter(|line| line.contains("cmd=blpop"))
            .map(|line| {
                assert!(line.contains(" flags=b ") || line.contains("flags=N"), "{line}");
                line.split([' ', '=']).nth(1).expect("an id")
            })
            .collect();
        assert!(ids.len() >= 3, "{list}");
        assert_eq!(call(&mut control, &["CLIENT", "KILL", "ID", ids[0]]), Value::Integer(1));
        // At once: nothing is given to who is about to go.
        call(&mut control, &["RPUSH", "queue", "a"]);
        assert_eq!(gone[1].reply().expect("served"), popped("queue", "a"));
        let unblocked = call(&mut control, &["CLIENT", "UNBLOCK", ids[2], "ERROR"]);
        assert_eq!(unblocked, Value::Integer(1));
        assert_eq!(
            gone[2].reply().expect("a reply"),
            error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
        );
        call(&mut control, &["RPUSH", "queue", "b"]);
        assert_eq!(call(&mut control, &["LLEN", "queue"]), Value::Integer(1));
        assert_eq!(call(&mut gone[1], &["BLPOP", "queue", "0"]), popped("queue", "b"));
    });
}

#[test]
fn the_first_key_named_is_taken_when_a_transaction_brings_both() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let mut waiting = waiters(server, &mut control, 2, &["BLPOP", "k1", "k2", "0"]);
        control.send(b"MULTI\r\nRPUSH k2 two\r\nRPUSH k1 one\r\nEXEC\r\n").expect("sent");
        for _ in 0..4 {
            control.reply().expect("a reply");
        }
        assert_eq!(waiting[0].reply().expect("served"), popped("k1", "one"));
        assert_eq!(waiting[1].reply().expect("served"), popped("k2", "two"));
    });
}

#[test]
fn a_reply_waits_at_the_gate_for_what_it_took() {
    on_both_backends(&["--io-threads", "4", "--gate", "fsync"], |server| {
        let mut control = connect(server);
        for _ in 0..20 {
            let mut waiting =
                waiters(server, &mut control, 1, &["BLMOVE", "a", "b", "LEFT", "LEFT", "0"]);
            call(&mut control, &["RPUSH", "a", "x"]);
            assert_eq!(waiting[0].reply().expect("served"), bulk("x"));
            // What follows on the connection is its own again, and its write is known.
            assert_eq!(
                call(&mut waiting[0], &["WAITAOF", "1", "0", "0"]),
                Value::Array(vec![Value::Integer(1), Value::Integer(0)])
            );
        }
    });
}

/// `BLMOVEM ... EXACTLY` takes nothing until there is enough, and leaves the rest to others.
#[test]
fn who_waits_for_several_holds_up_nobody_who_waits_for_one() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let request = ["BLMOVEM", "a", "b", "LEFT", "RIGHT", "0", "EXACTLY", "3", "BULK"];
        for _ in 0..20 {
            let mut several = waiters(server, &mut control, 1, &request).remove(0);
            let mut one = connect(server);
            one.request(&["BLPOP", "a", "0"]).expect("sent");
            until_blocked(&mut control, 2);
            call(&mut control, &["RPUSH", "a", "1", "2"]);
            // It came later, and one is enough for it.
            assert_eq!(one.reply().expect("served"), popped("a", "1"));
            until_blocked(&mut control, 1);
            // Nor does a newcomer wait behind who is not served.
            assert_eq!(call(&mut one, &["BLPOP", "a", "0"]), popped("a", "2"));
            call(&mut control, &["RPUSH", "a", "3", "5"]);
            assert_eq!(call(&mut control, &["EXISTS", "b"]), Value::Integer(0));
            // An element between two others makes it enough, and not only one at an end.
            call(&mut control, &["LINSERT", "a", "BEFORE", "5", "4"]);
            let moved = Value::Array(["3", "4", "5"].map(bulk).to_vec());
            assert_eq!(several.reply().expect("served"), moved);
            assert_eq!(call(&mut control, &["EXISTS", "a"]), Value::Integer(0));
            assert_eq!(call(&mut control, &["DEL", "b"]), Value::Integer(1));
        }
    });
}

fn claiming<'a>(consumer: &'a str, idle_ms: &'a str, block_ms: &'a str) -> Vec<&'a str> {
    let words = ["XREADGROUP", "GROUP", "g", consumer, "CLAIM", idle_ms, "BLOCK", block_ms];
    [&words[..], &["STREAMS", "s", ">"]].concat()
}

/// `XREADGROUP ... CLAIM`: what is pending with others becomes idle while a client waits.
#[test]
fn a_wait_ends_when_time_makes_something_claimable() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        call(&mut control, &["XADD", "s", "1-0", "f", "1"]);
        assert_eq!(call(&mut control, &["XGROUP", "CREATE", "s", "g", "0"]), ok());
        call(&mut control, &["XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">"]);
        let deliveries = |reply: &Value| {
            let Value::Array(streams) = reply else { panic!("{reply:?}") };
            let Value::Array(stream) = &streams[0] else { panic!("{reply:?}") };
            let Value::Array(entries) = &stream[1] else { panic!("{reply:?}") };
            let Value::Array(entry) = &entries[0] else { panic!("{reply:?}") };
            entry[3].clone()
        };
        // Pending when the wait begins.
        let began = Instant::now();
        let words = claiming("b", "150", "0");
        assert_eq!(deliveries(&control.call(&words).expect("served")), Value::Integer(1));
        assert!(began.elapsed() < Duration::from_secs(20));
        // Two wait for the same entry: one gets it, and the other when that was long ago, too.
        let mut waiting: Vec<Client> = ["c", "d"].map(|_| connect(server)).into();
        for (client, consumer) in waiting.iter_mut().zip(["c", "d"]) {
            client.request(&claiming(consumer, "150", "0")).expect("sent");
        }
        let mut counts: Vec<Value> =
            waiting.iter_mut().map(|client| deliveries(&client.reply().expect("served"))).collect();
        counts.sort_by_key(|count| format!("{count:?}"));
        assert_eq!(counts, [Value::Integer(2), Value::Integer(3)]);
        assert_eq!(call(&mut control, &["XACK", "s", "g", "1-0"]), Value::Integer(1));
        // Nothing is pending yet; and a wait that is not served ends at its time.
        let mut late = connect(server);
        late.request(&claiming("e", "120", "0")).expect("sent");
        until_blocked(&mut control, 1);
        call(&mut control, &["XADD", "s", "2-0", "f", "2"]);
        assert_eq!(deliveries(&late.reply().expect("served")), Value::Integer(0));
        let words = claiming("f", "100000", "30");
        assert_eq!(control.call(&words).expect("a reply"), Value::NullArray);
        until_blocked(&mut control, 0);
    });
}

/// The reply to a wait may be sent by another thread than the connection's own.
#[test]
fn what_is_asked_behind_a_wait_is_answered_behind_it() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let mut producers: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        let mut consumer = connect(server);
        for turn in 0..400_usize {
            let element = turn.to_string();
            consumer.request(&["BLPOP", "queue", "0"]).expect("sent");
            if turn % 3 == 0 {
                until_blocked(&mut control, 1);
            }
            let producer = &mut producers[turn % 4];
            producer.request(&["RPUSH", "queue", &element]).expect("sent");
            // It comes while the other is being served, or before, or after.
            consumer.request(&["ECHO", &element]).expect("sent");
            let began = Instant::now();
            assert_eq!(consumer.reply().expect("served"), popped("queue", &element));
            assert_eq!(consumer.reply().expect("echoed"), bulk(&element));
            assert!(began.elapsed() < Duration::from_secs(20));
            assert_eq!(producer.reply().expect("pushed"), Value::Integer(1));
        }
        until_blocked(&mut control, 0);
    });
}

#[test]
fn large_elements_are_handed_over_whole() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let mut producers: Vec<Client> = (0..4).map(|_| connect(server)).collect();
        let large = "x".repeat(8 << 20);
        for turn in 0..8_usize {
            let element = format!("{turn}{large}");
            let mut consumer = waiters(server, &mut control, 1, &["BLPOP", "queue", "0"]);
            // More than a socket holds: the rest is the connection's own thread's business.
            call(&mut producers[turn % 4], &["RPUSH", "queue", &element]);
            assert_eq!(consumer[0].reply().expect("served"), popped("queue", &element));
            assert_eq!(call(&mut consumer[0], &["PING"]), Value::Simple(b"PONG".to_vec()));
        }
    });
}

/// Nobody sends anything when the key goes.
#[test]
fn a_reader_of_a_group_hears_that_its_stream_has_expired() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut client = connect(server);
        assert_eq!(call(&mut client, &["XGROUP", "CREATE", "x", "g", "$", "MKSTREAM"]), ok());
        call(&mut client, &["PEXPIRE", "x", "200"]);
        let wait = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "20000", "STREAMS", "x", ">"];
        let reply = call(&mut client, &wait);
        assert!(matches!(&reply, Value::Error(text) if text.starts_with(b"NOGROUP")), "{reply:?}");
    });
}
