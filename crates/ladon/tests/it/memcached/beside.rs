//! The same requests to Ladon and to a real memcached, which answer the same bytes but for versions.

use super::{Memcached, Node, stop};
use ladon_testkit::Ports;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A memcached of its own; `None` where none is installed.
struct Real {
    child: Child,
    ports: Ports,
}

impl Real {
    fn start() -> Option<Real> {
        let ports = Ports::take(1).expect("a port");
        let port = ports.first().to_string();
        let child = Command::new("memcached")
            .args(["-u", "root", "-l", "127.0.0.1", "-U", "0", "-p", &port])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let real = Real { child, ports };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", real.ports.first())).is_err() {
            assert!(began.elapsed() < Duration::from_secs(10), "memcached does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(real)
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests, one a line; `|` stands for a line's end within one.
const REQUESTS: &str = include_str!("requests.txt");

/// A reply without the versions that `gets` and `c` show.
fn without_versions(reply: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let is_versioned = words[0] == "VALUE" && words.len() == 5;
        let shown = words.iter().enumerate().map(|(at, word)| {
            let is_meta = matches!(words[0], "HD" | "VA" | "EX" | "NS" | "NF")
                && word.len() > 1
                && word.starts_with('c')
                && word[1..].bytes().all(|byte| byte.is_ascii_digit())
                && *word != "c0";
            if is_versioned && at == 4 || is_meta { "VERSION" } else { word }
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    reply.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n")
}

/// The version in the last reply with one.
fn version_in(reply: &str) -> Option<&str> {
    let words = reply.split("\r\n").flat_map(|line| {
        let is_value = line.starts_with("VALUE");
        line.split(' ').enumerate().filter_map(move |(at, word)| match word.strip_prefix('c') {
            _ if is_value && at == 4 => Some(word),
            Some(version) if !is_value && at > 0 => Some(version),
            _ => None,
        })
    });
    words.filter(|word| word.parse::<u64>().is_ok()).last()
}

/// A reply with one number, without the blanks that keep its length. memcached writes a smaller number
/// in the place of the larger one, unless a thread of its own holds the item just then: the number gets
/// an item of its own length in that case.
fn unpadded(reply: &str) -> Option<String> {
    let (head, rest) = reply.split_once("\r\n")?;
    let (start, _) = head.strip_prefix("VALUE ")?.rsplit_once(' ')?;
    let (value, end) = rest.split_once("\r\n")?;
    let value = value.trim_end_matches(' ');
    value.parse::<u64>().ok()?;
    Some(format!("VALUE {start} {}\r\n{value}\r\n{end}", value.len()))
}

#[test]
fn both_count_the_same_of_prefixes() {
    let Some(real) = Real::start() else {
        eprintln!("no memcached is installed: nothing was compared");
        return;
    };
    let node = Node::new(&[]);
    let server = node.start();
    let seen = [node.connect(), Memcached::connect(real.ports.first())].map(|mut client| {
        let mut dump = |requests: &str| {
            let reply = client.ask(format!("{requests}stats detail dump\r\n"));
            let lines = reply.lines().filter(|line| line.starts_with("PREFIX "));
            let mut lines: Vec<String> = lines.map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let uncounted = dump("get a:1\r\nset a:1 0 0 1\r\nx\r\n");
        let counted = dump(
            "stats detail on\r\nget a:1 a:2 b:1 c\r\ngets a:1\r\nset a:3 0 0 1\r\nx\r\nadd b:1 0 0 1\r\n1\r\n\
             delete a:1\r\ndelete a:1\r\nincr b:1 1\r\ngat 10 b:1\r\ntouch b:1 5\r\nset :e 0 0 1\r\nx\r\n",
        );
        let stopped = dump("stats detail off\r\nget a:1\r\nset a:1 0 0 1\r\nx\r\n");
        [uncounted, counted, stopped, dump("stats reset\r\n")]
    });
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0][1].iter().any(|line| line == "PREFIX a get 3 hit 2 set 1 del 2"), "{seen:?}");
    stop(server);
}

/// What both count of requests.
const COUNTED: &str = "cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses delete_misses \
    delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits \
    touch_misses store_too_large store_no_memory total_items";

#[test]
fn both_count_the_same_of_requests() {
    let Some(real) = Real::start() else {
        eprintln!("no memcached is installed: nothing was compared");
        return;
    };
    let node = Node::new(&["--proto-max-bulk-len", "1mb"]);
    let server = node.start();
    let large = format!("set l 0 0 1048577|{}", "x".repeat(1 << 20 | 1));
    let mut clients = [node.connect(), Memcached::connect(real.ports.first())];
    for client in &mut clients {
        client.ask("stats reset\r\n");
    }
    for request in [
        "get a",
        "set a 0 0 1|1",
        "get a b a",
        "add a 0 0 1|1",
        "replace b 0 0 1|1",
        "append a 0 0 1|0",
        "prepend b 0 0 1|0",
        "incr a 5",
        "decr a 1",
        "incr b 1",
        "decr b 1",
        "cas b 0 0 1 5|1",
        "cas a 0 0 1 99999999|1",
        "touch a 100",
        "touch b 100",
        "gat 100 a b",
        "delete a",
        "delete a",
        "ms m 2|hi",
        "ms m 2 ME|hi",
        "mg m v",
        "mg none v",
        "mg m T30",
        "mg none T30",
        "mg made N30 v",
        "ma m",
        "ma none",
        "ma none2 N0 J5",
        "ma none2",
        "ma none2 MD",
        "md m",
        "md m",
        "me made",
        "flush_all",
        &large,
    ] {
        let counted = clients.each_mut().map(|client| {
            client.ask(format!("{}\r\n", request.replace('|', "\r\n")));
            let stats = client.ask("stats\r\n");
            let counts = COUNTED.split_whitespace().map(|name| {
                let line = stats.lines().find(|line| line.starts_with(&format!("STAT {name} ")));
                line.unwrap_or_else(|| panic!("no {name} in {stats}"))
            });
            counts.map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(counted[0], counted[1], "{}", &request[..request.len().min(40)]);
    }
    stop(server);
}

#[test]
fn both_show_watchers_the_same() {
    let Some(real) = Real::start() else {
        eprintln!("no memcached is installed: nothing was compared");
        return;
    };
    let node = Node::new(&[]);
    let server = node.start();
    let ports = [node.ports.first(), real.ports.first()];
    let requests =
        ["set a 0 0 2|hi", "get a b", "set a 0 100 1|1", "incr a 1", "delete a", "touch b 5"];
    let shown = ports.map(|port| {
        let mut watcher = Memcached::connect(port);
        watcher.send("watch fetchers mutations connevents\r\n");
        assert_eq!(watcher.until(b"\r\n"), b"OK\r\n");
        // memcached's threads begin to log when they next wake.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut client = Memcached::connect(port);
        for request in requests {
            client.ask(format!("{}\r\n", request.replace('|', "\r\n")));
        }
        client.send("quit\r\n");
        let mut broken = Memcached::connect(port);
        std::thread::sleep(std::time::Duration::from_millis(300));
        broken.send("GET / HTTP/1.1\r\n");
        let mut lines = Vec::new();
        while lines.iter().filter(|line: &&String| line.contains("conn_close")).count() < 2 {
            let line = String::from_utf8(watcher.until(b"\n")).expect("text");
            let words = line.trim_end().split(' ').skip(2);
            let same = words
                .filter(|word| !["cfd=", "rport=", "clsid="].iter().any(|it| word.starts_with(it)));
            lines.push(same.collect::<Vec<_>>().join(" "));
        }
        lines
    });
    // A thread of memcached's each tells of its own connections.
    let shown = shown.map(|mut lines| {
        lines.sort();
        lines
    });
    assert_eq!(shown[0], shown[1]);
    stop(server);
}

#[test]
fn both_answer_the_same() {
    let Some(real) = Real::start() else {
        eprintln!("no memcached is installed: nothing was compared");
        return;
    };
    let node = Node::new(&[]);
    let server = node.start();
    let (mut ours, mut theirs) = (node.connect(), Memcached::connect(real.ports.first()));
    let (mut our_version, mut their_version) = ("0".to_owned(), "0".to_owned());
    let mut compared = 0;
    for line in REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let key = "k".repeat(251);
        let request = format!("{line}\r\n").replace('|', "\r\n").replace("LONGKEY", &key);
        if line.starts_with("lru_crawler") || line.starts_with("watch") {
            // The crawler's thread may keep the connection, or what it has read on it: each order
            // has new ones. What earlier requests have left unread does not count then.
            (ours, theirs) = (node.connect(), Memcached::connect(real.ports.first()));
        }
        let our_reply = ours.ask(request.replace("VERSION", &our_version));
        let asked = request.replace("VERSION", &their_version);
        let their_reply = match line.starts_with("lru_crawler metadump") {
            true => {
                theirs.send(asked);
                let first = String::from_utf8(theirs.until(b"\r\n")).expect("text");
                let is_dump = first == "END\r\n" || first.starts_with("key=");
                let rest = if is_dump && first != "END\r\n" {
                    String::from_utf8(theirs.until(b"END\r\n")).expect("text")
                } else {
                    String::new()
                };
                first + &rest
            }
            false => theirs.ask(asked),
        };
        let shown = (without_versions(&our_reply), without_versions(&their_reply));
        if unpadded(&shown.0).as_ref() != Some(&shown.1) {
            assert_eq!(shown.0, shown.1, "{line}");
        }
        if let (Some(our), Some(their)) = (version_in(&our_reply), version_in(&their_reply)) {
            (our_version, their_version) = (our.to_owned(), their.to_owned());
        }
        compared += 1;
    }
    assert!(compared > 150, "{compared} requests were compared");
    stop(server);
}
