//! memcached's protocols on the real binary: items shared with Redis' protocol, durable with their
//! flags, and beside a real memcached, which has to answer the same.

mod attacks;
mod beside;
mod binary;
mod users;
mod watch;

use crate::live::{call, ok};
use ladon_crash::{Launch, Server};
use ladon_resp::client::Value;
use ladon_testkit::Ports;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// A server that also speaks memcached's protocols.
pub(super) struct Node {
    dir: tempfile::TempDir,
    ports: Ports,
    more: Vec<String>,
}

impl Node {
    pub(super) fn new(more: &[&str]) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let more = more.iter().map(|&word| word.to_owned()).collect();
        Node { dir, ports: Ports::take(1).expect("a port"), more }
    }

    pub(super) fn start(&self) -> Server {
        let address = format!("127.0.0.1:{}", self.ports.first());
        let mut arguments = vec!["--memcached", &address, "--gate", "fsync"];
        arguments.extend(self.more.iter().map(String::as_str));
        let binary = Path::new(env!("CARGO_BIN_EXE_ladon"));
        Launch::new(binary, self.dir.path(), &arguments).start().expect("starts")
    }

    pub(super) fn connect(&self) -> Memcached {
        Memcached::connect(self.ports.first())
    }
}

/// A connection.
pub(super) struct Memcached(pub(super) TcpStream);

impl Memcached {
    pub(super) fn connect(port: u16) -> Memcached {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.set_nodelay(true).expect("a socket");
        Memcached(stream)
    }

    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("sent");
    }

    /// Reads until the reply ends with this.
    pub(super) fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let (mut reply, mut byte) = (Vec::new(), [0; 1]);
        while !reply.ends_with(end) {
            self.0.read_exact(&mut byte).unwrap_or_else(|error| {
                panic!("{error} after {:?}", String::from_utf8_lossy(&reply))
            });
            reply.push(byte[0]);
        }
        reply
    }

    /// Sends requests, and reads all replies: those up to that of `mn`, which is sent behind them.
    pub(super) fn ask(&mut self, requests: impl AsRef<[u8]>) -> String {
        self.send([requests.as_ref(), b"mn\r\n"].concat());
        let reply = self.until(b"MN\r\n");
        String::from_utf8(reply[..reply.len() - 4].to_vec()).expect("text")
    }

    /// All that comes until the server closes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        rest
    }
}

/// Ends a server in order.
pub(super) fn stop(mut server: Server) {
    let output = server.output();
    let status = server.terminate().expect("ends");
    assert!(status.success() && !output.contains("panicked"), "{output}");
}

/// `kill -9`.
fn kill(mut server: Server) {
    server.kill().expect("killed");
}

fn text(value: &str) -> Value {
    Value::Bulk(value.as_bytes().to_vec())
}

#[test]
fn values_and_flags_are_there_after_a_kill() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    let long = "x".repeat(3 << 20);
    assert_eq!(client.ask("set plain 0 0 5\r\nhello\r\n"), "STORED\r\n");
    assert_eq!(client.ask("set flagged 4294967295 0 2\r\nhi\r\n"), "STORED\r\n");
    assert_eq!(client.ask("set number 7 0 2\r\n41\r\nincr number 1\r\n"), "STORED\r\n42\r\n");
    assert_eq!(client.ask(format!("set long 9 0 {}\r\n{long}\r\n", long.len())), "STORED\r\n");
    assert_eq!(client.ask("set old 5 100 1\r\nx\r\nappend old 0 0 1\r\ny\r\n").len(), 16);
    assert_eq!(client.ask("md flagged I\r\n"), "HD\r\n");
    let all = |client: &mut Memcached| {
        let short = client.ask("get plain flagged number old\r\nmg flagged f s\r\n");
        assert_eq!(
            short,
            "VALUE plain 0 5\r\nhello\r\nVALUE flagged 4294967295 2\r\nhi\r\n\
             VALUE number 7 2\r\n42\r\nVALUE old 5 2\r\nxy\r\nEND\r\nHD f4294967295 s2 X W\r\n"
        );
        let expected = format!("VALUE long 9 {}\r\n{long}\r\nEND\r\n", long.len());
        assert!(client.ask("get long\r\n") == expected, "another value");
    };
    all(&mut client);
    drop(client);
    kill(server);
    let server = node.start();
    all(&mut node.connect());
    // Again, out of a checkpoint.
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["SAVE"]), ok());
    kill(server);
    let server = node.start();
    all(&mut node.connect());
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["RENAME", "flagged", "renamed"]), ok());
    assert_eq!(call(&mut redis, &["RENAME", "long", "long2"]), ok());
    assert_eq!(call(&mut redis, &["COPY", "number", "copied"]), Value::Integer(1));
    assert_eq!(call(&mut redis, &["APPEND", "old", "z"]), Value::Integer(3));
    assert_eq!(call(&mut redis, &["INCR", "number"]), Value::Integer(43));
    kill(server);
    let server = node.start();
    let shown = node.connect().ask("mg renamed f\r\nmg long2 f s\r\nget copied old number\r\n");
    assert_eq!(
        shown,
        format!(
            "HD f4294967295 X W\r\nHD f9 s{}\r\nVALUE copied 7 2\r\n42\r\nVALUE old 5 3\r\nxyz\r\n\
             VALUE number 7 2\r\n43\r\nEND\r\n",
            long.len()
        )
    );
    stop(server);
}

#[test]
fn items_are_strings_of_redis_protocol() {
    let node = Node::new(&["--notify-keyspace-events", "KEA"]);
    let server = node.start();
    let (mut client, mut redis) = (node.connect(), server.connect().expect("connects"));
    assert_eq!(call(&mut redis, &["SET", "r", "of redis"]), ok());
    assert_eq!(client.ask("get r\r\n"), "VALUE r 0 8\r\nof redis\r\nEND\r\n");
    assert_eq!(client.ask("set m 3 0 2\r\n10\r\n"), "STORED\r\n");
    assert_eq!(call(&mut redis, &["GET", "m"]), text("10"));
    assert_eq!(call(&mut redis, &["TTL", "m"]), Value::Integer(-1));
    assert_eq!(client.ask("touch m 100\r\n"), "TOUCHED\r\n");
    assert_eq!(call(&mut redis, &["TTL", "m"]), Value::Integer(100));
    // SET replaces the item, and its flags.
    assert_eq!(call(&mut redis, &["SET", "m", "11"]), ok());
    assert_eq!(client.ask("get m\r\n"), "VALUE m 0 2\r\n11\r\nEND\r\n");
    // A value of another type is no item.
    assert_eq!(call(&mut redis, &["LPUSH", "list", "a"]), Value::Integer(1));
    let wrong = "SERVER_ERROR the key holds a value of another type\r\n";
    for request in ["get list", "get m list m", "incr list 1", "mg list v"] {
        assert_eq!(client.ask(format!("{request}\r\n")), wrong, "{request}");
    }
    assert_eq!(client.ask("append list 0 0 1\r\nx\r\n"), wrong);
    assert_eq!(client.ask("add list 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
    assert_eq!(client.ask("delete list\r\n"), "DELETED\r\n");
    // WATCH sees it.
    assert_eq!(call(&mut redis, &["WATCH", "m"]), ok());
    assert_eq!(client.ask("set m 0 0 1\r\n1\r\n"), "STORED\r\n");
    assert_eq!(call(&mut redis, &["MULTI"]), ok());
    assert_eq!(call(&mut redis, &["GET", "m"]), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(call(&mut redis, &["EXEC"]), Value::NullArray);
    // So does who waits for the event.
    let mut listener = server.connect().expect("connects");
    call(&mut listener, &["SUBSCRIBE", "__keyspace@0__:m"]);
    assert_eq!(client.ask("set m 1 0 1\r\n1\r\ndelete m\r\n"), "STORED\r\nDELETED\r\n");
    let mut event = || match listener.reply().expect("an event") {
        Value::Array(parts) => parts[2].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((event(), event()), (text("set"), text("del")));
    stop(server);
}

#[test]
fn a_version_changes_with_every_change_of_the_value() {
    let node = Node::new(&[]);
    let server = node.start();
    let (mut client, mut redis) = (node.connect(), server.connect().expect("connects"));
    let version = |client: &mut Memcached| {
        let reply = client.ask("gets k\r\n");
        let line = reply.lines().next().expect("a line");
        line.rsplit(' ').next().expect("a word").parse::<u64>().expect("a number")
    };
    for long in [1, 100, 20_000, 2 << 20] {
        let value = "5".repeat(long);
        let set = format!("set k 1 0 {long}\r\n{value}\r\n");
        assert_eq!(client.ask(&set), "STORED\r\n");
        let mut seen = vec![version(&mut client)];
        assert_eq!(version(&mut client), seen[0], "nothing has changed");
        let mut changed = |client: &mut Memcached, by: &str| {
            let now = version(client);
            assert!(!seen.contains(&now), "{by} left the version of {long} bytes");
            // The one before is refused.
            let cas = format!("cas k 1 0 1 {}\r\nx\r\n", seen.last().expect("one"));
            assert_eq!(client.ask(cas), "EXISTS\r\n", "{by}");
            seen.push(now);
        };
        assert_eq!(client.ask(&set), "STORED\r\n");
        changed(&mut client, "set");
        assert_eq!(client.ask("append k 0 0 1\r\n1\r\n"), "STORED\r\n");
        changed(&mut client, "append");
        let more: &[&[&str]] = &[
            &["SETRANGE", "k", "0", "7"],
            &["APPEND", "k", "2"],
            &["SETBIT", "k", "7", "0"],
            &["SETBIT", "k", "7", "1"],
        ];
        for words in more {
            call(&mut redis, words);
            changed(&mut client, words[0]);
        }
        call(&mut redis, &["RENAME", "k", "other"]);
        call(&mut redis, &["RENAME", "other", "k"]);
        changed(&mut client, "RENAME");
        call(&mut redis, &["SET", "k", &value]);
        changed(&mut client, "SET");
        if long < 10 {
            call(&mut redis, &["INCR", "k"]);
            changed(&mut client, "INCR");
            assert!(client.ask("incr k 1\r\n").ends_with("\r\n"));
            changed(&mut client, "incr");
        }
        let last = version(&mut client);
        assert_eq!(client.ask("touch k 100\r\n"), "TOUCHED\r\n");
        assert_eq!(version(&mut client), last, "a touch is no change");
        assert_eq!(client.ask(format!("cas k 2 0 1 {last}\r\nx\r\n")), "STORED\r\n");
        assert_eq!(client.ask("get k\r\n"), "VALUE k 2 1\r\nx\r\nEND\r\n");
    }
    stop(server);
}

#[test]
fn a_read_only_server_changes_nothing() {
    let node = Node::new(&[]);
    let server = node.start();
    let (mut redis, mut client) = (server.connect().expect("connects"), node.connect());
    assert_eq!(call(&mut redis, &["SET", "kept", "1"]), ok());
    assert_eq!(call(&mut redis, &["SET", "old", "1", "PX", "100"]), ok());
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "read-only", "yes"]), ok());
    let refused = |reply: Value| {
        assert!(
            matches!(&reply, Value::Error(text) if text.starts_with(b"READONLY ")),
            "{reply:?}"
        );
    };
    refused(call(&mut redis, &["SET", "kept", "2"]));
    refused(call(&mut redis, &["EVAL", "return redis.call('SET', KEYS[1], 2)", "1", "kept"]));
    refused(call(&mut redis, &["FLUSHALL"]));
    assert_eq!(call(&mut redis, &["MULTI"]), ok());
    refused(call(&mut redis, &["DEL", "kept"]));
    assert!(matches!(call(&mut redis, &["EXEC"]), Value::Error(_)));
    assert!(client.ask("set kept 0 0 1\r\n2\r\n").starts_with("SERVER_ERROR READONLY "));
    assert_eq!(client.ask("get kept\r\n"), "VALUE kept 0 1\r\n1\r\nEND\r\n");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(client.ask("get old\r\n"), "END\r\n");
    // It is still so after a start that was told so.
    stop(server);
    let node = Node { more: vec!["--read-only".to_owned(), "yes".to_owned()], ..node };
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    refused(call(&mut redis, &["SET", "kept", "2"]));
    assert_eq!(call(&mut redis, &["GET", "kept"]), text("1"));
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "read-only", "no"]), ok());
    assert_eq!(call(&mut redis, &["SET", "kept", "2"]), ok());
    stop(server);
}

#[test]
fn what_expires_is_gone() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    assert_eq!(client.ask("set a 0 -1 1\r\nx\r\nget a\r\n"), "STORED\r\nEND\r\n");
    assert_eq!(client.ask("set a 0 1 1\r\nx\r\nset b 0 1000000000 1\r\nx\r\n").len(), 16);
    assert_eq!(client.ask("get a b\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.ask("get a\r\n"), "END\r\n");
    assert_eq!(
        client.ask("set a 0 0 1\r\nx\r\ngat 100 a\r\nmg a t\r\n").lines().last(),
        Some("HD t100")
    );
    assert_eq!(client.ask("gat -1 a\r\nget a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\nEND\r\n");
    stop(server);
}

#[test]
fn statistics_and_all_keys_are_told() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    for n in 0..2000 {
        client.send(format!("set key:{n} {n} 1000 1 noreply\r\nx\r\n"));
    }
    assert_eq!(client.ask("get key:1 nokey\r\n"), "VALUE key:1 1 1\r\nx\r\nEND\r\n");
    let stats = client.ask("stats\r\n");
    let fact = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {stats}")).to_owned()
    };
    assert_eq!((&*fact("curr_items"), &*fact("cmd_set")), ("2000", "2000"));
    assert_eq!((&*fact("get_hits"), &*fact("get_misses")), ("1", "1"));
    assert!(stats.ends_with("END\r\n") && fact("curr_connections") == "1");
    for of in ["items", "slabs", "sizes", "settings", "conns"] {
        let shown = client.ask(format!("stats {of}\r\n"));
        assert!(shown.starts_with("STAT ") && shown.ends_with("END\r\n"), "{of}: {shown}");
    }
    assert_eq!(client.ask("stats nonsense\r\n"), "ERROR\r\n");
    let some = client.ask("stats cachedump 1 7\r\n");
    assert!(some.starts_with("ITEM key:") && some.contains(" [1 b; "), "{some}");
    assert_eq!((some.lines().count(), some.lines().last()), (8, Some("END")));
    assert_eq!(client.ask("stats cachedump 1 0\r\n").lines().count(), 2001);
    assert_eq!(client.ask("stats cachedump 2 0\r\n"), "END\r\n");
    let dump = client.ask("lru_crawler metadump all\r\n");
    let mut keys: Vec<&str> = dump.lines().filter_map(|line| line.split(' ').next()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), keys[0]), (2001, "END"));
    assert_eq!(client.ask("flush_all\r\nget key:1\r\n"), "OK\r\nEND\r\n");
    // With a delay: whoever asks, and whether anybody does.
    let mut redis = server.connect().expect("connects");
    assert_eq!(client.ask("flush_all 1\r\nset k 0 0 1\r\nx\r\n"), "OK\r\nSTORED\r\n");
    assert_eq!(call(&mut redis, &["GET", "k"]), text("x"));
    std::thread::sleep(Duration::from_millis(2200));
    assert_eq!(call(&mut redis, &["GET", "k"]), Value::Null);
    assert_eq!(client.ask("flush_all 1\r\nset k 0 0 1\r\nx\r\n"), "OK\r\nSTORED\r\n");
    std::thread::sleep(Duration::from_millis(1050));
    assert_eq!(client.ask("get k\r\n"), "END\r\n");
    stop(server);
}

#[test]
fn memory_has_its_limit() {
    let node = Node::new(&["--maxmemory", "30mb"]);
    let server = node.start();
    let mut client = node.connect();
    let value = "x".repeat(1 << 20);
    let mut refused = false;
    for n in 0..64 {
        let reply = client.ask(format!("set k{n} 1 0 {}\r\n{value}\r\n", value.len()));
        refused |= reply == "SERVER_ERROR out of memory storing object\r\n";
        assert!(refused || reply == "STORED\r\n", "{reply}");
    }
    assert!(refused, "it stored more than it may");
    assert_eq!(client.ask("delete k0\r\nget k0\r\n"), "DELETED\r\nEND\r\n");
    stop(server);
}
