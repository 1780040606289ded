//! Clients that take all they can get, beside polite ones: what the others wait for is counted in
//! requests and bytes, never in time.

use crate::live::large::connect;
use crate::live::{call, closed_within, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// A field of the largest value in `CLIENT LIST`.
fn largest(client: &mut Client, field: &str) -> u64 {
    let Value::Bulk(list) = call(client, &["CLIENT", "LIST"]) else { panic!("a list") };
    let list = String::from_utf8(list).expect("text");
    let values = list.split_whitespace().filter_map(|word| word.strip_prefix(field));
    values.filter_map(|value| value.strip_prefix('=')?.parse().ok()).max().expect("a client")
}

/// Sends requests as fast as the server takes them until it is told to stop, and reads the replies.
struct Flood {
    stream: TcpStream,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Flood {
    fn start(server: &Server, requests: Vec<u8>) -> Flood {
        let mut client = connect(server);
        let stream = client.stream().try_clone().expect("a socket");
        let (mut send, mut receive) =
            (stream.try_clone().expect("one"), stream.try_clone().expect("one"));
        let threads = vec![
            thread::spawn(move || while send.write_all(&requests).is_ok() {}),
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 20];
                while receive.read(&mut buffer).is_ok_and(|length| length != 0) {}
            }),
        ];
        Flood { stream, threads }
    }

    fn stop(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.threads.into_iter().for_each(|thread| thread.join().expect("ends"));
    }
}

#[test]
fn an_endless_pipeline_leaves_turns_to_others() {
    /// Far more than a turn runs, far less than what a fast client has sent before a slow one is
    /// read.
    const COMMANDS_MAX: u64 = 100_000;
    on_both_backends(&["--io-threads", "1"], |server| {
        let flood = Flood::start(server, request(&["SET", "k", "v"]).repeat(2_000));
        let mut polite = connect(server);
        let mut before = info_number(&mut polite, "stats", "total_commands_processed");
        let begin = before;
        for _ in 0..200 {
            assert_eq!(call(&mut polite, &["PING"]), pong());
            let now = info_number(&mut polite, "stats", "total_commands_processed");
            assert!(now - before < COMMANDS_MAX, "{} others in between", now - before);
            before = now;
            let unread = largest(&mut polite, "qbuf");
            assert!(unread < 4 << 20, "{unread} bytes of requests wait");
        }
        assert!(before - begin > 10_000, "the flood was none: {}", before - begin);
        flood.stop();
    });
}

#[test]
fn replies_that_nobody_reads_are_bounded_and_all_there_later() {
    const LIMIT: u64 = 8 << 20;
    const REQUESTS: usize = 60_000;
    on_both_backends(&["--io-threads", "1", "--client-reply-backlog", "8mb"], |server| {
        let mut polite = connect(server);
        let value = "x".repeat(1000);
        assert_eq!(call(&mut polite, &["SET", "k", &value]), ok());
        let mut lazy = connect(server);
        let mut stream = lazy.stream().try_clone().expect("a socket");
        let sender = thread::spawn(move || {
            stream.write_all(&request(&["GET", "k"]).repeat(REQUESTS)).expect("sent");
        });
        let mut held = 0;
        while held < LIMIT {
            held = largest(&mut polite, "omem");
            thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..50 {
            held = held.max(largest(&mut polite, "omem"));
            assert_eq!(call(&mut polite, &["PING"]), pong());
        }
        assert!(held < LIMIT + (4 << 20), "{held} bytes of replies wait");
        for at in 0..REQUESTS {
            assert_eq!(lazy.reply().expect("a reply"), Value::Bulk(value.clone().into()), "{at}");
        }
        sender.join().expect("sent all");
        assert_eq!(call(&mut lazy, &["PING"]), pong());
    });
}

#[test]
fn who_reads_goes_on_whatever_others_leave_unread() {
    const REQUESTS: usize = 5_000;
    on_both_backends(&["--io-threads", "1", "--client-reply-backlog", "2mb"], |server| {
        let mut polite = connect(server);
        let value = "x".repeat(10_000);
        assert_eq!(call(&mut polite, &["SET", "k", &value]), ok());
        let mut lazy = connect(server);
        lazy.send(&request(&["GET", "k"]).repeat(3_000)).expect("sent");
        while largest(&mut polite, "omem") < 2 << 20 {
            thread::sleep(Duration::from_millis(5));
        }
        // More than its window at a time, all of which it reads.
        let mut reader = connect(server);
        let mut stream = reader.stream().try_clone().expect("a socket");
        let sender = thread::spawn(move || {
            stream.write_all(&request(&["GET", "k"]).repeat(REQUESTS)).expect("sent");
        });
        for at in 0..REQUESTS {
            assert_eq!(reader.reply().expect("a reply"), Value::Bulk(value.clone().into()), "{at}");
        }
        sender.join().expect("sent all");
        drop(lazy);
    });
}

#[test]
fn a_client_that_leaves_a_wait_behind_unread_requests_is_noticed() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut polite = connect(server);
        let mut gone = connect(server);
        gone.send(&request(&["BLPOP", "list", "0"])).expect("sent");
        // More than is read behind a wait, and little enough more that the kernel holds the rest:
        // the end of what it has no room for cannot be seen.
        gone.send(&request(&["PING"]).repeat(12_000)).expect("sent");
        while largest(&mut polite, "qbuf") < 128 << 10 {
            thread::sleep(Duration::from_millis(5));
        }
        drop(gone);
        for _ in 0..2_000 {
            if info_number(&mut polite, "clients", "connected_clients") == 1 {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(info_number(&mut polite, "clients", "connected_clients"), 1);
        assert_eq!(call(&mut polite, &["RPUSH", "list", "value"]), Value::Integer(1));
    });
}

#[test]
fn strangers_who_read_nothing_are_closed() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut friend = connect(server);
        assert_eq!(call(&mut friend, &["CONFIG", "SET", "requirepass", "secret"]), ok());
        let mut strangers: Vec<Client> = (0..20).map(|_| connect(server)).collect();
        // What the kernel keeps between the two is as much as it likes, so replies are far more.
        let requests = b"*1\r\n$1\r\nA\r\n".repeat(4_000_000);
        for stranger in &mut strangers {
            let _ = stranger.send(&requests);
        }
        for _ in 0..2_000 {
            if info_number(&mut friend, "clients", "connected_clients") == 1 {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(info_number(&mut friend, "clients", "connected_clients"), 1);
        let mut stranger = connect(server);
        let greeting = request(&["HELLO", "3"]).repeat(40);
        stranger.send(&greeting).expect("sent");
        (0..40).for_each(|_| assert!(matches!(stranger.reply(), Ok(Value::Error(_)))));
        assert!(!closed_within(&mut stranger, 0), "it has read all");
        assert_eq!(call(&mut friend, &["CONFIG", "SET", "requirepass", ""]), ok());
    });
}

/// As Redis, but for what the kernel keeps between the two. Those before this read without end, and
/// closed nobody, as long as the kernel took the replies.
#[test]
fn strangers_who_send_on_and_on_are_closed_soon() {
    const SENT_BYTES: usize = 64 << 20;
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut friend = connect(server);
        assert_eq!(call(&mut friend, &["CONFIG", "SET", "requirepass", "secret"]), ok());
        let requests = b"*1\r\n$1\r\nA\r\n".repeat(5_000);
        for _ in 0..4 {
            let mut stranger = connect(server);
            let stream = stranger.stream();
            let mut sent = 0;
            while sent < SENT_BYTES && stream.write_all(&requests).is_ok() {
                sent += requests.len();
                let unread = largest(&mut friend, "qbuf");
                assert!(unread < 256 << 10, "{unread} bytes of requests wait");
            }
            assert!(sent < SENT_BYTES, "nobody was closed");
        }
        // Requests ahead of a login may be many, and those behind it.
        let mut polite = connect(server);
        let mut all = request(&["PING"]).repeat(20);
        all.extend(request(&["AUTH", "secret"]));
        all.extend(request(&["PING"]).repeat(50_000));
        let mut stream = polite.stream().try_clone().expect("a socket");
        let sender = thread::spawn(move || stream.write_all(&all).expect("sent"));
        (0..20).for_each(|_| assert!(matches!(polite.reply(), Ok(Value::Error(_)))));
        assert_eq!(polite.reply().expect("a login"), ok());
        (0..50_000).for_each(|_| assert_eq!(polite.reply().expect("a reply"), pong()));
        sender.join().expect("sent all");
    });
}

#[test]
fn slow_commands_on_one_thread_hold_back_no_write_on_another() {
    const SLOW: usize = 200;
    on_both_backends(&["--io-threads", "2", "--gate", "write"], |server| {
        let (mut slow, mut quick) = (connect(server), connect(server));
        call(&mut slow, &["SETBIT", "bits", "80000000", "1"]);
        let slow_requests =
            [request(&["SET", "a", "b"]), request(&["BITCOUNT", "bits"]).repeat(SLOW)];
        slow.send(&slow_requests.concat()).expect("sent");
        assert_eq!(slow.reply().expect("the first"), ok());
        let counted = |client: &mut Client| {
            let Value::Bulk(text) = call(client, &["INFO", "commandstats"]) else { panic!("text") };
            let text = String::from_utf8(text).expect("text");
            let calls = text.split_once("cmdstat_bitcount:calls=").map(|(_, rest)| {
                rest.split(',').next().and_then(|calls| calls.parse::<usize>().ok())
            });
            calls.flatten().unwrap_or_default()
        };
        for number in 0..20 {
            let before = counted(&mut quick);
            assert_eq!(call(&mut quick, &["SET", "c", &number.to_string()]), ok());
            let between = counted(&mut quick) - before;
            assert!(between < SLOW / 2, "{between} slow commands in between");
        }
        (0..SLOW).for_each(|_| assert_eq!(slow.reply().expect("a count"), Value::Integer(1)));
    });
}

#[test]
fn a_bulk_load_is_neither_closed_nor_kept_in_memory() {
    on_both_backends(&["--io-threads", "1", "--client-query-buffer-limit", "1mb"], |server| {
        let mut polite = connect(server);
        let mut load = connect(server);
        let value = "v".repeat(40);
        let mut stream = load.stream().try_clone().expect("a socket");
        let sender = thread::spawn(move || {
            for part in 0..100 {
                let keys = (0..2_000).map(|key| format!("key:{part}:{key}"));
                let requests: Vec<u8> =
                    keys.flat_map(|key| request(&["SET", &key, &value])).collect();
                stream.write_all(&requests).expect("sent");
            }
        });
        let mut unread = 0;
        for _ in 0..200_000 {
            assert_eq!(load.reply().expect("a reply"), ok());
        }
        for _ in 0..10 {
            unread = unread.max(largest(&mut polite, "qbuf"));
        }
        assert!(unread < 1 << 20);
        sender.join().expect("sent all");
        assert_eq!(call(&mut polite, &["DBSIZE"]), Value::Integer(200_000));
    });
}
