//! `watch`: connections that are shown what requests do with items.

use super::{Memcached, Node, stop};
use crate::live::{call, info_number, pong, rss_bytes};
use std::time::{Duration, Instant};

/// A watching connection.
fn watching(node: &Node, what: &str) -> Memcached {
    let mut watcher = node.connect();
    watcher.send(format!("watch {what}\r\n"));
    assert_eq!(watcher.until(b"\r\n"), b"OK\r\n");
    watcher
}

/// The next line, without its time and number.
fn line(watcher: &mut Memcached) -> String {
    let line = String::from_utf8(watcher.until(b"\n")).expect("text");
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    assert!(words[0].starts_with("ts=") && words[1].starts_with("gid="), "{line}");
    let shown = words[2..].iter().filter(|word| !word.starts_with("cfd="));
    shown.copied().collect::<Vec<_>>().join(" ")
}

#[test]
fn requests_are_shown_to_those_who_watch_them() {
    let node = Node::new(&[]);
    let server = node.start();
    let (mut fetchers, mut mutations) = (watching(&node, ""), watching(&node, "mutations"));
    let mut client = node.connect();
    client.ask("set a:1 5 100 2\r\nhi\r\nget a:1 none\r\nms b 1 MA\r\nx\r\nmg a:1 v\r\n");
    client.ask("cas none 0 0 1 1\r\nx\r\nadd a:1 0 0 1\r\nx\r\n");
    let found = |key: &str| format!("type=item_get key={key} status=found clsid=1 size=2");
    let missing = |key: &str| format!("type=item_get key={key} status=not_found clsid=0 size=0");
    // Storing looks first.
    for expected in [
        missing("a%3A1"),
        found("a%3A1"),
        missing("none"),
        missing("b"),
        found("a%3A1"),
        missing("none"),
        found("a%3A1"),
    ] {
        assert_eq!(line(&mut fetchers), expected);
    }
    for expected in [
        "type=item_store key=a%3A1 status=stored cmd=set ttl=100 clsid=1 size=2",
        "type=item_store key=b status=not_stored cmd=append ttl=0 clsid=1 size=1",
        "type=item_store key=none status=not_found cmd=cas ttl=0 clsid=1 size=1",
        "type=item_store key=a%3A1 status=not_stored cmd=add ttl=0 clsid=1 size=1",
    ] {
        assert_eq!(line(&mut mutations), expected);
    }
    // A watcher asks for nothing more, and is forgotten when it leaves.
    fetchers.send("version\r\n");
    let mut redis = server.connect().expect("connects");
    assert_eq!(info_number(&mut redis, "clients", "connected_clients"), 4);
    drop((fetchers, mutations));
    let began = Instant::now();
    while info_number(&mut redis, "clients", "connected_clients") != 2 {
        assert!(began.elapsed() < Duration::from_secs(10), "watchers stay that have left");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(client.ask("get a:1\r\n"), "VALUE a:1 5 2\r\nhi\r\nEND\r\n");
    stop(server);
}

#[test]
fn a_watcher_that_does_not_read_is_told_what_it_has_lost() {
    const ROUNDS: usize = 200;
    let node = Node::new(&["--io-threads", "2"]);
    let server = node.start();
    let mut lazy = watching(&node, "fetchers");
    let before = rss_bytes(&server);
    let mut client = node.connect();
    let gets = format!("get {}\r\n", "k ".repeat(1000)).repeat(10);
    for _ in 0..ROUNDS {
        assert_eq!(client.ask(&gets).len(), 50);
    }
    let grown = rss_bytes(&server).saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes");
    let (mut shown, mut skipped, mut last) = (0u64, 0u64, 0u64);
    while shown + skipped < 10_000 * ROUNDS as u64 {
        let line = String::from_utf8(lazy.until(b"\n")).expect("text");
        match line.trim_end().strip_prefix("skipped=") {
            Some(count) => skipped += count.parse::<u64>().expect("a number"),
            None => {
                let number = line.split(' ').nth(1).and_then(|word| word.strip_prefix("gid="));
                let number = number.and_then(|number| number.parse().ok()).expect("a number");
                assert!(number > last, "{line} after {last}");
                (last, shown) = (number, shown + 1);
            }
        }
    }
    assert!(skipped > 0, "nothing was too much");
    // From then on it sees all again.
    client.ask("get one\r\n");
    assert!(line(&mut lazy).contains("key=one"));
    stop(server);
}

#[test]
fn evictions_are_shown() {
    let node = Node::new(&["--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"]);
    let server = node.start();
    let mut watcher = watching(&node, "evictions");
    let mut client = node.connect();
    let value = "x".repeat(10_000);
    for n in 0..2000 {
        let set = format!("set key:{n} 0 1000 {}\r\n{value}\r\n", value.len());
        assert_eq!(client.ask(set), "STORED\r\n");
    }
    let line = line(&mut watcher);
    assert!(line.starts_with("type=eviction key=key%3A"), "{line}");
    let left = line.split("ttl=").nth(1).and_then(|rest| rest.split(' ').next());
    let left: u64 = left.and_then(|left| left.parse().ok()).expect("a number");
    assert!((900..=1000).contains(&left), "{line}");
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["PING"]), pong());
    stop(server);
}

#[test]
fn watching_needs_the_right_to_monitor() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    call(&mut redis, &["ACL", "SETUSER", "default", "-monitor", "-config"]);
    let reply = node.connect().ask("watch fetchers\r\nstats detail on\r\n");
    assert_eq!(reply.matches("SERVER_ERROR NOPERM").count(), 2, "{reply}");
    stop(server);
}
