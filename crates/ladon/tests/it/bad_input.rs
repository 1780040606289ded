//! Broken and hostile clients on the real binary, on both IO backends: each costs its own
//! connection at most.

use crate::live::{self, bulk, call, closed_within, error, ok, on_both_backends, pong, rss_bytes};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

const MB: u64 = 1 << 20;

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// After each of these the connection is over: what follows has no known boundary.
#[test]
fn broken_requests_are_named_and_end_their_connection() {
    let long = "7".repeat(70_000);
    let cases: [(String, &str); 11] = [
        ("*3\r\n$3\r\nSET\r\n$-1\r\n".into(), "invalid bulk length"),
        ("*2\r\n$3\r\nGET\r\n$536870913\r\n".into(), "invalid bulk length"),
        ("*2\r\n$3\r\nGET\r\n$99999999999999999999\r\n".into(), "invalid bulk length"),
        ("*2\r\n$3\r\nGET\r\n$1x\r\n".into(), "invalid bulk length"),
        ("*2147483648\r\n".into(), "invalid multibulk length"),
        ("*abc\r\n".into(), "invalid multibulk length"),
        ("*1\r\nPING\r\n".into(), "expected '$', got 'P'"),
        ("SET k \"half\r\n".into(), "unbalanced quotes in request"),
        (long.clone(), "too big inline request"),
        (format!("*{long}"), "too big mbulk count string"),
        (format!("*1\r\n${long}"), "too big bulk count string"),
    ];
    on_both_backends(&[], |server| {
        for (bytes, wanted) in &cases {
            let mut client = connect(server);
            // The server may hang up while the rest is still being sent.
            let _ = client.send(bytes.as_bytes());
            let reply = client.reply().unwrap_or_else(|e| panic!("{wanted}: {e}"));
            assert_eq!(reply, error(&format!("ERR Protocol error: {wanted}")));
            assert!(closed_within(&mut client, 5), "{wanted}");
        }
        let mut client = connect(server);
        let garbage: Vec<u8> = (0..=255u8).cycle().take(100_000).collect();
        let _ = client.send(&garbage);
        assert_eq!(call(&mut connect(server), &["PING"]), pong());
    });
}

#[test]
fn empty_and_inline_requests_are_as_in_redis() {
    on_both_backends(&[], |server| {
        let mut client = connect(server);
        client
            .send(b"*0\r\n\r\n*-1\r\n  \r\nPING\r\nset 'a b' \"c\\x41\"\nGET 'a b'\r\n")
            .expect("sent");
        assert_eq!(client.reply().expect("a reply"), pong());
        assert_eq!(client.reply().expect("a reply"), ok());
        assert_eq!(client.reply().expect("a reply"), bulk("cA"));
    });
}

#[test]
fn a_promise_of_much_costs_nothing_until_it_is_kept() {
    on_both_backends(&[], |server| {
        call(&mut connect(server), &["PING"]);
        let before = rss_bytes(server);
        let mut clients: Vec<Client> = (0..200).map(|_| connect(server)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let bytes: &[u8] = match number % 3 {
                0 => b"*1000000\r\n",
                1 => b"*1000000\r\n$536870912\r\n",
                _ => b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nhalf of it, and silence",
            };
            client.send(bytes).expect("sent");
        }
        assert_eq!(call(&mut connect(server), &["PING"]), pong());
        sleep(Duration::from_millis(200));
        let grown = rss_bytes(server).saturating_sub(before);
        assert!(grown < 32 * MB, "200 promises took {grown} bytes");
    });
}

#[test]
fn a_request_may_come_in_any_two_pieces() {
    let request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nv\r\nxy\r\nECHO 'in line'\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    on_both_backends(&["--io-threads", "2"], |server| {
        for split in 1..request.len() {
            let mut client = connect(server);
            client.send(&request[..split]).expect("sent");
            if split % 8 == 0 {
                // Now and then long enough that the pieces surely arrive apart.
                sleep(Duration::from_millis(5));
            }
            client.send(&request[split..]).expect("sent");
            assert_eq!(client.reply().expect("a reply"), ok(), "split at {split}");
            assert_eq!(client.reply().expect("a reply"), bulk("in line"));
            assert_eq!(client.reply().expect("a reply"), bulk("v\r\nxy"));
        }
        let mut client = connect(server);
        for byte in request {
            client.send(&[*byte]).expect("sent");
        }
        for wanted in [ok(), bulk("in line"), bulk("v\r\nxy")] {
            assert_eq!(client.reply().expect("a reply"), wanted);
        }
    });
}

#[test]
fn a_hundred_thousand_requests_at_once_are_answered_in_order() {
    const COUNT: i64 = 100_000;
    on_both_backends(&["--gate", "write"], |server| {
        let mut client = connect(server);
        let mut stream = client.stream().try_clone().expect("a second handle");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let bytes = b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n".repeat(COUNT as usize);
                stream.write_all(&bytes).expect("sent");
            });
            for wanted in 1..=COUNT {
                assert_eq!(client.reply().expect("a reply"), Value::Integer(wanted));
            }
        });
    });
}

#[test]
fn who_never_reads_is_cut_off_at_the_output_limit() {
    on_both_backends(&["--client-output-buffer-limit", "normal 8mb 0 0"], |server| {
        let mut admin = connect(server);
        let value = "v".repeat(100_000);
        assert_eq!(call(&mut admin, &["SET", "big", &value]), ok());
        let before = rss_bytes(server);
        let mut deaf = connect(server);
        let request = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(20_000);
        // The server hangs up somewhere on the way.
        let _ = deaf.send(&request);
        until("the deaf one is gone", || clients(&mut admin) == 1);
        let grown = rss_bytes(server).saturating_sub(before);
        assert!(grown < 64 * MB, "2 GB of replies took {grown} bytes");
        assert_eq!(call(&mut admin, &["PING"]), pong());
    });
}

#[test]
fn who_sends_too_much_at_once_is_cut_off_at_the_query_limit() {
    on_both_backends(&["--client-query-buffer-limit", "1mb"], |server| {
        let mut client = connect(server);
        let _ = client.send(b"*2\r\n$4\r\nECHO\r\n$4000000\r\n");
        let _ = client.send(&vec![b'x'; 3_000_000]);
        assert!(closed_within(&mut client, 10));
        assert_eq!(call(&mut connect(server), &["PING"]), pong());
    });
}

#[test]
fn who_vanishes_in_a_transaction_leaves_nothing() {
    on_both_backends(&["--io-threads", "2"], |server| {
        for _ in 0..20 {
            let mut client = connect(server);
            let half = b"WATCH w\r\nMULTI\r\nSET k v\r\nINCR n\r\n*3\r\n$3\r\nSET\r\n$1\r\nx";
            client.send(half).expect("sent");
            for _ in 0..4 {
                client.reply().expect("a reply");
            }
        }
        let mut client = connect(server);
        assert_eq!(call(&mut client, &["EXISTS", "k", "n", "x"]), Value::Integer(0));
        until("the others are gone", || clients(&mut client) == 1);
    });
}

#[test]
fn large_values_go_through_whole_and_larger_ones_are_refused() {
    on_both_backends(&[], |server| {
        let mut client = connect(server);
        let big: Vec<u8> = (0..100 * MB).map(|at| (at / 7) as u8).collect();
        assert_eq!(client.call(&[b"SET" as &[u8], b"big", &big]).expect("a reply"), ok());
        let back = client.call(&["GET", "big"]).expect("a reply");
        assert!(back.as_bytes() == Some(&big[..]), "100 MB come back as they went");
        assert_eq!(call(&mut client, &["CONFIG", "SET", "proto-max-bulk-len", "1mb"]), ok());
        let _ = client.request(&[b"SET" as &[u8], b"big", &big[..2_000_000]]);
        let reply = client.reply().expect("an error");
        assert_eq!(reply, error("ERR Protocol error: invalid bulk length"));
    });
}

#[test]
fn the_silent_are_hung_up_on_after_the_timeout() {
    on_both_backends(&["--timeout", "1", "--io-threads", "2"], |server| {
        let (mut silent, mut busy) = (connect(server), connect(server));
        assert_eq!(call(&mut silent, &["PING"]), pong());
        for _ in 0..25 {
            assert_eq!(call(&mut busy, &["PING"]), pong(), "who talks stays");
            sleep(Duration::from_millis(100));
        }
        assert!(closed_within(&mut silent, 1));
    });
}

#[test]
fn one_client_too_many_is_told_so() {
    on_both_backends(&["--maxclients", "3", "--io-threads", "2"], |server| {
        let mut three = vec![connect(server)];
        // The client that asked whether the server is ready may still be on its way out.
        until("the first is alone", || clients(&mut three[0]) == 1);
        three.extend([connect(server), connect(server)]);
        for client in &mut three {
            assert_eq!(call(client, &["PING"]), pong());
        }
        let mut fourth = connect(server);
        assert_eq!(fourth.reply().expect("an error"), error("ERR max number of clients reached"));
        assert!(closed_within(&mut fourth, 5));
        drop(three.pop());
        until("a place is free again", || connect(server).call(&["PING"]).ok() == Some(pong()));
        assert_eq!(call(&mut three[0], &["PING"]), pong());
    });
}

#[test]
fn noeviction_is_exact_within_a_batch() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = connect(server);
        let used = live::info_number(&mut client, "memory", "used_memory");
        let limit = used + 2_000_000;
        assert_eq!(call(&mut client, &["CONFIG", "SET", "maxmemory", &limit.to_string()]), ok());
        let value = "v".repeat(400);
        let mut replies = Vec::new();
        // Each batch is small enough to arrive, and so to run, at once.
        for first in (0..6000).step_by(20) {
            let mut bytes = Vec::new();
            for key in first..first + 20 {
                let words = ["SET".to_owned(), format!("key:{key}"), value.clone()];
                ladon_resp::client::write_request(&mut bytes, &words);
            }
            client.send(&bytes).expect("sent");
            replies.extend((0..20).map(|_| client.reply().expect("a reply")));
        }
        let oom = error("OOM command not allowed when used memory > 'maxmemory'.");
        // The clients' buffers count as well, and they change between batches, not within one.
        for batch in replies.chunks(20) {
            let stored = batch.iter().take_while(|&reply| *reply == ok()).count();
            assert!(batch[stored..].iter().all(|reply| *reply == oom), "{batch:?}");
        }
        let stored = replies.iter().filter(|&reply| *reply == ok()).count();
        assert!(replies[stored + 40..].iter().all(|reply| *reply == oom), "{stored} stored");
        let used = live::info_number(&mut client, "memory", "used_memory");
        // The write that crosses the limit is let through, with what the table grew by for it.
        assert!(stored > 500 && used < limit + 16_000, "{stored} stored, {used} of {limit} used");
        assert_eq!(call(&mut client, &["GET", "key:0"]), bulk(&value), "reads go on");
        // What the crossing write took, the table's growth included, is given back key by key: a
        // write is let in from the very byte on at which the limit holds again.
        let taken = |client: &mut Client| live::info_number(client, "memory", "used_memory");
        for key in 0.. {
            let used = taken(&mut client);
            let reply = call(&mut client, &["SET", "small", "v"]);
            assert_eq!(reply, if used > limit { oom.clone() } else { ok() }, "{used} of {limit}");
            if used <= limit {
                break;
            }
            let Value::Integer(usage) =
                call(&mut client, &["MEMORY", "USAGE", &format!("key:{key}")])
            else {
                panic!("no number")
            };
            assert_eq!(call(&mut client, &["DEL", &format!("key:{key}")]), Value::Integer(1));
            let freed = used - taken(&mut client);
            assert_eq!(freed, usage as u64, "exactly what MEMORY USAGE said");
        }
    });
}

#[test]
fn the_data_stays_within_maxmemory_however_many_threads_write() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let arguments = ["--io-threads", "4", "--maxmemory-policy", policy];
        on_both_backends(&arguments, |server| {
            let limit =
                live::info_number(&mut connect(server), "memory", "used_memory") + 12_000_000;
            let mut client = connect(server);
            assert_eq!(
                call(&mut client, &["CONFIG", "SET", "maxmemory", &limit.to_string()]),
                ok()
            );
            std::thread::scope(|scope| {
                for writer in 0..8 {
                    scope.spawn(move || {
                        let mut client = connect(server);
                        for round in 0..40 {
                            let mut bytes = Vec::new();
                            for key in 0..100 {
                                // Some of them large.
                                let size = if key == 50 { 20_000 } else { 300 + key };
                                let words = [
                                    "SET".to_owned(),
                                    format!("key:{writer}:{round}:{key}"),
                                    "v".repeat(size),
                                ];
                                ladon_resp::client::write_request(&mut bytes, &words);
                            }
                            client.send(&bytes).expect("sent");
                            for _ in 0..100 {
                                assert_eq!(client.reply().expect("a reply"), ok());
                            }
                        }
                    });
                }
                for _ in 0..100 {
                    let used = live::info_number(&mut client, "memory", "used_memory");
                    assert!(used < limit + limit / 50, "{policy}: {used} of {limit}");
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            let used = live::info_number(&mut client, "memory", "used_memory");
            assert!(used < limit + limit / 50, "{policy}: {used} of {limit}");
            assert!(used > limit / 100 * 98, "{policy}: more is evicted than needs be: {used}");
            assert!(live::info_number(&mut client, "stats", "evicted_keys") > 5000);
        });
    }
}

/// Every partition that has seen a key keeps a page for the next one, 2 MiB in all: more than this
/// limit leaves.
#[test]
fn a_small_maxmemory_holds() {
    let arguments = ["--maxmemory-policy", "allkeys-random", "--io-threads", "1"];
    on_both_backends(&arguments, |server| {
        let mut client = connect(server);
        for key in 0..5_000 {
            assert_eq!(call(&mut client, &["SET", &format!("gone:{key}"), "v"]), ok());
            assert_eq!(call(&mut client, &["DEL", &format!("gone:{key}")]), Value::Integer(1));
        }
        let full = live::info_number(&mut client, "memory", "used_memory");
        let limit = full - 1_200_000;
        assert_eq!(call(&mut client, &["CONFIG", "SET", "maxmemory", &limit.to_string()]), ok());
        for key in 0..5_000 {
            assert_eq!(call(&mut client, &["SET", &format!("key:{key}"), "v"]), ok());
        }
        let used = live::info_number(&mut client, "memory", "used_memory");
        assert!(used < limit + limit / 50, "{used} of {limit}");
        assert!(matches!(call(&mut client, &["DBSIZE"]), Value::Integer(1..)));
    });
}

#[test]
fn a_lowered_limit_is_reached_though_nobody_writes() {
    on_both_backends(&["--maxmemory-policy", "allkeys-random", "--io-threads", "2"], |server| {
        let mut client = connect(server);
        let before = live::info_number(&mut client, "memory", "used_memory");
        let value = "v".repeat(500);
        for key in 0..20_000 {
            let words = ["SET", &format!("key:{key}"), &value];
            assert_eq!(call(&mut client, &words), ok());
        }
        let limit = (before + live::info_number(&mut client, "memory", "used_memory")) / 2;
        assert_eq!(call(&mut client, &["CONFIG", "SET", "maxmemory", &limit.to_string()]), ok());
        let begin = std::time::Instant::now();
        while live::info_number(&mut client, "memory", "used_memory") > limit {
            assert!(begin.elapsed() < Duration::from_secs(10), "nothing is evicted");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn the_connections_that_take_most_go_when_all_together_take_too_much() {
    on_both_backends(&["--maxmemory-clients", "4mb", "--io-threads", "2"], |server| {
        let mut admin = connect(server);
        let mut exempt = connect(server);
        assert_eq!(call(&mut exempt, &["CLIENT", "NO-EVICT", "on"]), ok());
        let half = |client: &mut Client, bytes: usize| {
            let _ = client.send(b"*2\r\n$4\r\nECHO\r\n$100000000\r\n");
            let _ = client.send(&vec![b'x'; bytes]);
        };
        half(&mut exempt, 1_500_000);
        let (mut small, mut large) = (connect(server), connect(server));
        half(&mut small, 300_000);
        sleep(Duration::from_millis(100));
        half(&mut large, 8_000_000);
        assert!(closed_within(&mut large, 10), "the largest goes");
        assert_eq!(live::info_number(&mut admin, "stats", "evicted_clients"), 1);
        assert!(!closed_within(&mut small, 0) && !closed_within(&mut exempt, 0), "the others stay");
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "maxmemory-clients", "0"]), ok());
        let mut large = connect(server);
        half(&mut large, 8_000_000);
        sleep(Duration::from_millis(100));
        assert!(!closed_within(&mut large, 0), "no limit, no eviction");
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "maxmemory-clients", "4mb"]), ok());
        assert!(closed_within(&mut large, 10), "what was there before the limit counts too");
    });
}

#[test]
fn unix_sockets_serve_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ladon.sock");
    let extra = ["--unixsocket", path.to_str().expect("a name"), "--unixsocketperm", "700"];
    on_both_backends(&extra, |_| {
        let mut stream = UnixStream::connect(&path).expect("connects");
        stream.write_all(b"PING\r\n").expect("sent");
        let mut reply = [0; 7];
        std::io::Read::read_exact(&mut stream, &mut reply).expect("a reply");
        assert_eq!(&reply, b"+PONG\r\n");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    });
}

#[test]
fn strangers_are_kept_out_while_there_is_no_password() {
    // The address under which other machines would reach this one; connecting a datagram socket
    // sends nothing.
    let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let own = match own {
        Ok(address) if !address.ip().is_loopback() => address.ip(),
        other => {
            println!("this machine has no address but loopback ({other:?}): nothing to test");
            return;
        }
    };
    on_both_backends(&["--bind", "0.0.0.0"], |server| {
        let mut outsider = stranger(own, server);
        let reply = outsider.reply().expect("an error");
        let Value::Error(text) = &reply else { panic!("{reply:?}") };
        assert!(text.starts_with(b"DENIED "), "{reply:?}");
        assert!(closed_within(&mut outsider, 5));
        let mut local = connect(server);
        assert_eq!(call(&mut local, &["CONFIG", "SET", "protected-mode", "no"]), ok());
        let mut outsider = stranger(own, server);
        assert_eq!(call(&mut outsider, &["PING"]), pong());
    });
}

fn stranger(own: std::net::IpAddr, server: &Server) -> Client {
    let stream = TcpStream::connect((own, server.port)).expect("connects");
    Client::on(stream).expect("a client")
}

/// How many connections there are.
fn clients(client: &mut Client) -> usize {
    let list = call(client, &["CLIENT", "LIST"]);
    String::from_utf8_lossy(list.as_bytes().unwrap_or_default()).lines().count()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed().as_secs() < 20, "never: {what}");
        sleep(Duration::from_millis(20));
    }
}
