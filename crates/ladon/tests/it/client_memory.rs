//! What clients take of memory follows what they send, counts as used memory, and has a limit.
#![cfg(target_os = "linux")]

use crate::live::large::connect;
use crate::live::{
    self, call, closed_within, info_number, ok, on_both_backends, peak_bytes, pong, rss_bytes,
};
use ladon_crash::{Client, Server};
use ladon_resp::client::{Value, write_request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::thread::sleep;
use std::time::{Duration, Instant};

const MB: u64 = 1 << 20;

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed().as_secs() < 20, "never: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Sends the first `bytes` of an argument of which much more was announced.
fn send_half(client: &mut Client, bytes: usize) {
    // The server may hang up in the middle.
    let _ = client.send(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$400000000\r\n");
    let _ = client.send(&vec![b'x'; bytes]);
}

/// A field of the line that `CLIENT LIST` shows of a connection.
fn field(admin: &mut Client, name: &str, field: &str) -> Option<u64> {
    let list = call(admin, &["CLIENT", "LIST"]);
    let list = String::from_utf8_lossy(list.as_bytes().unwrap_or_default()).into_owned();
    let line = list.lines().find(|line| line.contains(&format!(" name={name} ")))?.to_owned();
    let value = line.split(' ').find_map(|part| part.strip_prefix(&format!("{field}=")));
    value.and_then(|value| value.parse().ok())
}

/// A connection with a name.
fn named(server: &Server, name: &str) -> Client {
    let mut client = connect(server);
    assert_eq!(call(&mut client, &["CLIENT", "SETNAME", name]), ok());
    client
}

fn limit_clients(admin: &mut Client, limit: &str) {
    assert_eq!(call(admin, &["CONFIG", "SET", "maxmemory-clients", limit]), ok());
}

#[test]
fn half_a_large_request_takes_what_was_sent_of_it() {
    const CLIENTS: u64 = 400;
    const SENT: u64 = 100_000;
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut admin = connect(server);
        let before = rss_bytes(server);
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| connect(server)).collect();
        for client in &mut clients {
            send_half(client, SENT as usize);
        }
        until("all has arrived", || {
            info_number(&mut admin, "stats", "total_net_input_bytes") > CLIENTS * SENT
        });
        let grown = rss_bytes(server).saturating_sub(before);
        assert!(grown < CLIENTS * SENT * 3 / 2 + 16 * MB, "{grown} bytes for {}", CLIENTS * SENT);
        let counted = info_number(&mut admin, "memory", "mem_clients_normal");
        assert!((CLIENTS * SENT..CLIENTS * SENT * 2).contains(&counted), "{counted}");
    });
}

#[test]
fn what_strangers_send_is_not_kept() {
    const CLIENTS: usize = 40;
    const SENT: usize = 8 << 20;
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut admin = connect(server);
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "requirepass", "secret"]), ok());
        let endless = vec![b'x'; SENT];
        let empty = b"*0\r\n\r\n".repeat(SENT / 6);
        let too_many = [&b"*11\r\n"[..], &vec![b'1'; SENT]].concat();
        let too_long = [&b"*1\r\n$16385\r\n"[..], &vec![b'1'; SENT]].concat();
        let spaces = [b" ".repeat(60_000), b"\r\n".to_vec()].concat().repeat(SENT / 60_002);
        let quotes = [b"AUTH '".to_vec(), vec![b'x'; SENT]].concat();
        let shapes = [&endless, &empty, &too_many, &too_long, &spaces, &quotes];
        for (number, shape) in shapes.into_iter().enumerate() {
            let before = rss_bytes(server);
            std::thread::scope(|scope| {
                for _ in 0..CLIENTS {
                    scope.spawn(|| {
                        // It hangs up sooner or later on most of them.
                        let mut stranger = connect(server);
                        let _ = stranger.send(shape);
                    });
                }
            });
            let grown = rss_bytes(server).saturating_sub(before);
            let sent = (CLIENTS * SENT) as u64;
            assert!(grown < sent * 2 / 5, "{grown} bytes for {sent} of shape {number}");
        }
    });
}

#[test]
fn whatever_a_client_takes_can_evict_it() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut admin = connect(server);
        let long = "v".repeat(1_000_000);
        limit_clients(&mut admin, "3mb");
        // An argument that is as long as the limit never runs.
        let mut client = named(server, "argument");
        let words = ["MSET", "k", "short", "l", &"v".repeat(3 << 20)];
        let _ = client.request(&words);
        assert!(closed_within(&mut client, 10), "a long argument");
        assert_eq!(call(&mut admin, &["EXISTS", "k", "l"]), Value::Integer(0));

        let mut client = named(server, "queue");
        assert_eq!(call(&mut client, &["MULTI"]), ok());
        let queued = (0..4).take_while(|_| client.call(&["SET", "k", &long]).is_ok()).count();
        assert!(queued < 4 && closed_within(&mut client, 10), "{queued} queued");

        let mut client = named(server, "names");
        let named = client.call(&["CLIENT", "SETNAME", &"n".repeat(3 << 20)]);
        assert!(named.is_err() || closed_within(&mut client, 10), "a long name");

        limit_clients(&mut admin, "200000");
        let mut client = connect(server);
        let watched = (0..10_000)
            .take_while(|number: &u32| client.call(&["WATCH", &number.to_string()]).is_ok())
            .count();
        assert!((100..9_000).contains(&watched), "{watched} watched");
        // What it watched is no longer.
        until("its keys are forgotten", || {
            info_number(&mut admin, "clients", "total_watched_keys") == 0
        });
        assert_eq!(info_number(&mut admin, "stats", "evicted_clients"), 4);
    });
}

#[test]
fn who_is_exempt_stays_until_it_is_not() {
    on_both_backends(&["--io-threads", "2", "--maxmemory-clients", "3mb"], |server| {
        let mut exempt = connect(server);
        assert_eq!(call(&mut exempt, &["CLIENT", "NO-EVICT", "on"]), ok());
        assert_eq!(call(&mut exempt, &["CLIENT", "SETNAME", &"n".repeat(4 << 20)]), ok());
        assert_eq!(call(&mut exempt, &["PING"]), pong());
        let _ = exempt.call(&["CLIENT", "NO-EVICT", "off"]);
        assert!(closed_within(&mut exempt, 10));
    });
}

#[test]
fn a_limit_in_percent_follows_maxmemory_and_one_that_is_lowered_evicts_at_once() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut admin = named(server, "admin");
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "maxmemory", "40mb"]), ok());
        limit_clients(&mut admin, "10%");
        let mut clients: Vec<Client> = (0..4).map(|n| named(server, &format!("c{n}"))).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            send_half(client, 900_000);
            let name = format!("c{number}");
            until("it has arrived", || field(&mut admin, &name, "qbuf") == Some(900_000));
        }
        assert_eq!(info_number(&mut admin, "stats", "evicted_clients"), 0);
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "maxmemory", "20mb"]), ok());
        // Before the next command runs.
        let left = |admin: &mut Client| {
            let names = (0..4).map(|number| format!("c{number}"));
            names.filter(|name| field(admin, name, "tot-mem").is_some()).count()
        };
        assert_eq!(left(&mut admin), 2);
        limit_clients(&mut admin, "1mb");
        assert_eq!(left(&mut admin), 1);
        // No limit lets nobody in, not even the one who would raise it.
        limit_clients(&mut admin, "1");
        assert_eq!(left(&mut admin), 0);
        assert_eq!(call(&mut connect(server), &["PING"]), pong());
    });
}

#[test]
fn many_small_connections_are_evicted_too() {
    const CLIENTS: usize = 300;
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut admin = named(server, "admin");
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| connect(server)).collect();
        for client in &mut clients {
            send_half(client, 10_000);
        }
        until("all has arrived", || {
            info_number(&mut admin, "memory", "mem_clients_normal") > CLIENTS as u64 * 10_000
        });
        limit_clients(&mut admin, "1mb");
        until("enough are gone", || info_number(&mut admin, "memory", "mem_clients_normal") <= MB);
        let evicted = info_number(&mut admin, "stats", "evicted_clients");
        assert!((200..CLIENTS as u64).contains(&evicted), "{evicted} evicted");
    });
}

#[test]
fn what_clients_take_counts_towards_maxmemory() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut admin = connect(server);
        let used = info_number(&mut admin, "memory", "used_memory");
        let limit = (used + 6 * MB).to_string();
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "maxmemory", &limit]), ok());
        assert_eq!(call(&mut admin, &["SET", "k", "v"]), ok());
        let mut large = named(server, "large");
        send_half(&mut large, 8 << 20);
        until("it has arrived", || field(&mut admin, "large", "qbuf") == Some(8 << 20));
        let full = info_number(&mut admin, "memory", "used_memory");
        assert!((used + 8 * MB..used + 13 * MB).contains(&full), "{used}, then {full}");
        let normal = info_number(&mut admin, "memory", "mem_clients_normal");
        assert!((8 * MB..13 * MB).contains(&normal), "{normal}");
        let reply = call(&mut admin, &["SET", "k", "v"]);
        assert!(matches!(&reply, Value::Error(text) if text.starts_with(b"OOM ")), "{reply:?}");
        let Value::Array(stats) = call(&mut admin, &["MEMORY", "STATS"]) else { panic!() };
        let at = stats.iter().position(|name| name.as_bytes() == Some(b"clients.normal"));
        let told = &stats[at.expect("a number") + 1];
        assert!(matches!(told, Value::Integer(bytes) if *bytes >= 8 << 20), "{told:?}");
        drop(large);
        until("its memory is free", || call(&mut admin, &["SET", "k", "v"]) == ok());
        assert!(info_number(&mut admin, "memory", "used_memory") < used + MB);

        // Keys go to make room for what clients take.
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]), ok());
        for key in 0..400 {
            let words = ["SET", &format!("key:{key}"), &"v".repeat(10_000)];
            assert_eq!(call(&mut admin, &words), ok());
        }
        let mut large = named(server, "large");
        send_half(&mut large, 4 << 20);
        until("keys are evicted", || info_number(&mut admin, "stats", "evicted_keys") > 100);
    });
}

/// Stops the server for as long as the test takes.
fn while_stopped(server: &Server, test: impl FnOnce()) {
    let pid = Pid::from_raw(server.pid() as i32);
    kill(pid, Signal::SIGSTOP).expect("stopped");
    test();
    kill(pid, Signal::SIGCONT).expect("goes on");
}

#[test]
fn a_request_that_came_while_the_server_was_stopped_is_answered_before_its_client_is_idle() {
    on_both_backends(&["--timeout", "1", "--io-threads", "2"], |server| {
        for _ in 0..2 {
            let mut clients: Vec<Client> = (0..20).map(|_| connect(server)).collect();
            for client in &mut clients {
                assert_eq!(call(client, &["PING"]), pong());
            }
            while_stopped(server, || {
                clients.iter_mut().for_each(|client| client.send(b"PING\r\n").expect("sent"));
                sleep(Duration::from_millis(2_500));
            });
            for client in &mut clients {
                assert_eq!(client.reply().expect("a reply"), pong());
            }
            // And who is silent still goes.
            assert!(closed_within(&mut clients[0], 10));
        }
    });
}

#[test]
fn a_push_that_came_while_the_server_was_stopped_serves_who_waited_then() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut pusher = connect(server);
        assert_eq!(call(&mut pusher, &["PING"]), pong());
        let mut waiter = connect(server);
        waiter.request(&["BLPOP", "list", "3"]).expect("sent");
        until("it waits", || info_number(&mut pusher, "clients", "blocked_clients") == 1);
        while_stopped(server, || {
            pusher.request(&["RPUSH", "list", "element"]).expect("sent");
            sleep(Duration::from_millis(3_500));
        });
        let served = Value::Array(vec![live::bulk("list"), live::bulk("element")]);
        assert_eq!(waiter.reply().expect("a reply"), served);
        assert_eq!(pusher.reply().expect("a reply"), Value::Integer(1));
    });
}

#[test]
fn output_that_is_not_taken_ends_a_connection_that_does_nothing_else() {
    let limit = ["--client-output-buffer-limit", "normal 0 1mb 1"];
    on_both_backends(&limit, |server| {
        let mut admin = connect(server);
        let mut deaf = named(server, "deaf");
        // More than the kernel takes.
        let long = "e".repeat(12 << 20);
        for _ in 0..2 {
            deaf.request(&["ECHO", &long]).expect("sent");
        }
        until("it is closed", || field(&mut admin, "deaf", "omem").is_none());
    });
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_request(&mut bytes, words);
    bytes
}

/// What the first long request takes once, however long it is: above all the buffers that the
/// kernel fills (io_uring's take 2.6 MB once all were used).
const TAKEN_ONCE: u64 = 3 << 20;

/// The most memory that a server has ever taken for a request, in percent of its length.
fn peak_percent(server: &Server, bytes: &[u8], is_whole: bool) -> u64 {
    let mut client = connect(server);
    let before = peak_bytes(server);
    client.send(bytes).expect("sent");
    if is_whole {
        client.reply().expect("a reply");
    } else {
        let mut admin = connect(server);
        until("all has arrived", || {
            info_number(&mut admin, "stats", "total_net_input_bytes") >= bytes.len() as u64
        });
    }
    (peak_bytes(server) - before).saturating_sub(TAKEN_ONCE) * 100 / bytes.len() as u64
}

/// Redis takes: an AUTH once, a CONFIG SET three times, a refused one once, half a request of a
/// million short arguments four times.
#[test]
fn one_long_request_takes_little_beside_itself() {
    let long = "x".repeat(20 << 20);
    let many = "$5\r\nm1234\r\n".repeat(1_000_000);
    let auth = request(&["AUTH", &long[..10 << 20]]);
    let change = request(&["CONFIG", "SET", "requirepass", &long]);
    let refused = request(&["CONFIG", "SET", "maxmemory", &long]);
    let half = format!("*1000002\r\n$4\r\nSADD\r\n{many}").into_bytes();
    let whole = format!("*1000002\r\n$4\r\nSADD\r\n$1\r\ns\r\n{many}").into_bytes();
    for (what, bytes, is_whole, percent_max) in [
        ("AUTH", auth, true, 125),
        ("CONFIG SET", change, true, 225),
        ("a CONFIG SET that is refused", refused, true, 125),
        ("half a SADD", half, false, 250),
        ("SADD", whole, true, 450),
    ] {
        on_both_backends(&["--io-threads", "1"], |server| {
            let percent = peak_percent(server, &bytes, is_whole);
            assert!(percent <= percent_max, "{what} took {percent} % of its length");
        });
    }
}
