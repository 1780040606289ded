//! `MIGRATE` on the real binary: to a Ladon, and to targets that behave in every way that a peer can.

use crate::live::{bulk, call, error, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

const READING: &str = "IOERR error or timeout reading to target instance";
const WRITING: &str = "IOERR error or timeout writing to target instance";
const CONNECTING: &str = "IOERR error or timeout connecting to the client";

/// Longer than any test takes.
const LONG_MS: &str = "600000";

/// Shorter than a person notices.
const SHORT_MS: &str = "50";

/// A target in the test's hand.
struct Target {
    listener: TcpListener,
    port: String,
}

impl Target {
    fn new() -> Target {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port().to_string();
        Target { listener, port }
    }

    fn accept(&self) -> Client {
        Client::on(self.listener.accept().expect("the server connects").0).expect("a socket")
    }

    /// Sends a `MIGRATE` of `keys`, which is not answered yet, and gets to the moment when the target
    /// owes an answer to the first `RESTORE`.
    fn awaited(&self, client: &mut Client, keys: &[&str], options: &[&str]) -> Client {
        let mut words = vec!["MIGRATE", "127.0.0.1", &self.port, "", "0", LONG_MS];
        words.extend(options);
        words.push("KEYS");
        words.extend(keys);
        client.request(&words).expect("sent");
        let mut target = self.accept();
        assert_eq!(asked(&mut target), ["SELECT", "0"]);
        target.send(b"+OK\r\n").expect("sent");
        assert_eq!(asked(&mut target)[..2], ["RESTORE", keys[0]]);
        target
    }
}

/// The next request's words, payloads unreadably.
fn asked(target: &mut Client) -> Vec<String> {
    let Value::Array(words) = target.reply().expect("a request") else { panic!("no request") };
    let word =
        |word: &Value| String::from_utf8_lossy(word.as_bytes().expect("a word")).into_owned();
    words.iter().map(word).collect()
}

fn migrate(client: &mut Client, port: &str, rest: &[&str]) -> Value {
    let mut words = vec!["MIGRATE", "127.0.0.1", port];
    words.extend(rest);
    call(client, &words)
}

fn second_server(dir: &Path) -> Server {
    let arguments = ["--gate", "none", "--io-threads", "1"];
    Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir, &arguments).start().expect("starts")
}

#[test]
fn keys_of_every_type_go_to_another_ladon() {
    let dir = tempfile::tempdir().expect("a directory");
    let other = second_server(dir.path());
    let port = other.port.to_string();
    on_both_backends(&["--io-threads", "2"], |server| {
        let (mut here, mut there) = (server.connect().unwrap(), other.connect().unwrap());
        call(&mut there, &["FLUSHALL"]);
        for words in [
            &["SET", "text", "hello"][..],
            &["SET", "number", "12345", "PXAT", "4000000000000"],
            &["RPUSH", "list", "a", "b"],
            &["SADD", "set", "1", "2"],
            &["HSET", "hash", "f", "v"],
            &["ZADD", "sorted", "1.5", "m"],
            &["XADD", "stream", "1-1", "f", "v"],
        ] {
            call(&mut here, words);
        }
        let long = "x".repeat(3 << 20);
        call(&mut here, &["SET", "long", &long]);
        for n in 0..20 {
            let members: Vec<String> = (0..1000).map(|m| format!("member:{n}:{m}")).collect();
            let mut words = vec!["SADD", "large"];
            words.extend(members.iter().map(String::as_str));
            call(&mut here, &words);
        }
        let fields: Vec<String> = (0..6000).map(|n| format!("{n}")).collect();
        let mut words = vec!["HSET", "fields"];
        words.extend(fields.iter().map(String::as_str));
        call(&mut here, &words);
        let expiry = ["HPEXPIREAT", "fields", "4000000000000", "FIELDS", "1", "2"];
        call(&mut here, &expiry);
        let keys = [
            "text", "number", "list", "set", "hash", "sorted", "stream", "long", "large", "fields",
        ];
        let mut rest = vec!["", "3", LONG_MS, "KEYS", "missing"];
        rest.extend(keys);
        assert_eq!(migrate(&mut here, &port, &rest), ok());
        assert_eq!(call(&mut here, &["DBSIZE"]), Value::Integer(0));
        call(&mut there, &["SELECT", "3"]);
        assert_eq!(call(&mut there, &["DBSIZE"]), Value::Integer(keys.len() as i64));
        assert_eq!(call(&mut there, &["GET", "text"]), bulk("hello"));
        // As in Redis, the time that is left goes along: the way is added to it.
        let Value::Integer(at) = call(&mut there, &["PEXPIRETIME", "number"]) else {
            panic!("no time")
        };
        assert!((4_000_000_000_000..4_000_000_060_000).contains(&at), "{at}");
        assert_eq!(call(&mut there, &["GET", "long"]), bulk(&long));
        assert_eq!(call(&mut there, &["SCARD", "large"]), Value::Integer(20_000));
        assert_eq!(call(&mut there, &["SISMEMBER", "large", "member:7:999"]), Value::Integer(1));
        let times = call(&mut there, &["HPEXPIRETIME", "fields", "FIELDS", "2", "0", "2"]);
        let expected = [Value::Integer(-1), Value::Integer(4_000_000_000_000)];
        assert_eq!(times, Value::Array(expected.to_vec()));
        assert_eq!(call(&mut there, &["ZSCORE", "sorted", "m"]), bulk("1.5"));
        assert_eq!(call(&mut there, &["XLEN", "stream"]), Value::Integer(1));
        // The connection is kept, and it is nobody's who logs in.
        assert_eq!(info_number(&mut here, "stats", "migrate_cached_sockets"), 1);
        assert_eq!(
            migrate(&mut here, &port, &["text", "3", "9"]),
            Value::Simple(b"NOKEY".to_vec())
        );
    });
}

#[test]
fn options_and_errors_are_those_of_redis() {
    let dir = tempfile::tempdir().expect("a directory");
    let other = second_server(dir.path());
    let port = other.port.to_string();
    on_both_backends(&["--io-threads", "1"], |server| {
        let (mut here, mut there) = (server.connect().unwrap(), other.connect().unwrap());
        call(&mut there, &["FLUSHALL"]);
        call(&mut here, &["SET", "k", "new"]);
        call(&mut there, &["SET", "k", "old"]);
        let mut told = |rest: &[&str]| match migrate(&mut here, &port, rest) {
            Value::Error(text) => String::from_utf8(text).expect("UTF-8"),
            other => panic!("{rest:?}: {other:?}"),
        };
        let of_target = "ERR Target instance replied with error: ";
        let busy = format!("{of_target}BUSYKEY Target key name already exists.");
        assert_eq!(told(&["k", "0", "9999"]), busy);
        let database = format!("{of_target}ERR DB index is out of range");
        assert_eq!(told(&["k", "99", "9999"]), database);
        let password = told(&["k", "0", "9999", "AUTH2", "who", "secret"]);
        assert!(password.starts_with(&format!("{of_target}WRONGPASS ")), "{password}");
        assert_eq!(told(&["k", "0", "soon"]), "ERR value is not an integer or out of range");
        assert_eq!(told(&["k", "0", "9", "AUTH2", "who"]), "ERR syntax error");
        let both = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty \
                    string";
        assert_eq!(told(&["k", "0", "9", "KEYS", "k"]), both);
        let here = &mut here;
        assert_eq!(call(&mut there, &["GET", "k"]), bulk("old"));
        assert_eq!(migrate(here, &port, &["k", "0", "9999", "COPY", "REPLACE"]), ok());
        assert_eq!(call(&mut there, &["GET", "k"]), bulk("new"));
        assert_eq!(call(here, &["GET", "k"]), bulk("new"));
        assert_eq!(migrate(here, &port, &["k", "0", "9999", "REPLACE"]), ok());
        assert_eq!(call(here, &["EXISTS", "k"]), Value::Integer(0));
        let within = "ERR MIGRATE cannot run inside MULTI, scripts and functions: it waits for \
                      another server";
        call(here, &["SET", "k", "1"]);
        call(here, &["MULTI"]);
        migrate(here, &port, &["k", "0", "9"]);
        assert_eq!(call(here, &["EXEC"]), Value::Array(vec![error(within)]));
        assert_eq!(migrate(here, "1", &["k", "0", SHORT_MS]), error(WRITING));
        assert_eq!(migrate(here, "no port", &["k", "0", SHORT_MS]), error(WRITING));
        let nobody = call(here, &["MIGRATE", "no.host.invalid", "1", "k", "0", SHORT_MS]);
        assert_eq!(nobody, error(CONNECTING));
    });
}

/// The DEL is one as any other: watchers, subscribers and trackers learn of it, and a restart keeps
/// it.
#[test]
fn what_is_taken_is_deleted_as_by_del() {
    on_both_backends(&["--io-threads", "2", "--notify-keyspace-events", "KEA"], |server| {
        let target = Target::new();
        let [mut client, mut watcher, mut subscriber, mut tracker] =
            [(); 4].map(|()| server.connect().expect("connects"));
        call(&mut client, &["MSET", "a", "1", "b", "2"]);
        call(&mut watcher, &["WATCH", "a"]);
        call(&mut subscriber, &["SUBSCRIBE", "__keyevent@0__:del"]);
        call(&mut tracker, &["HELLO", "3"]);
        call(&mut tracker, &["CLIENT", "TRACKING", "ON"]);
        call(&mut tracker, &["GET", "a"]);
        let mut there = target.awaited(&mut client, &["a", "b"], &[]);
        assert_eq!(asked(&mut there)[..2], ["RESTORE", "b"]);
        // The target takes the first, and not the second.
        there.send(b"+OK\r\n-OOM no room\r\n").expect("sent");
        let refused = error("ERR Target instance replied with error: OOM no room");
        assert_eq!(client.reply().expect("a reply"), refused);
        assert_eq!(
            call(&mut client, &["MGET", "a", "b"]),
            Value::Array(vec![Value::Null, bulk("2")])
        );
        call(&mut watcher, &["MULTI"]);
        assert_eq!(call(&mut watcher, &["EXEC"]), Value::NullArray);
        let message = [bulk("message"), bulk("__keyevent@0__:del"), bulk("a")];
        assert_eq!(subscriber.reply().expect("a message"), Value::Array(message.to_vec()));
        let invalid = vec![bulk("invalidate"), Value::Array(vec![bulk("a")])];
        assert_eq!(tracker.reply().expect("a push"), Value::Push(invalid));
    });
}

#[test]
fn what_changes_on_the_way_is_kept() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let target = Target::new();
        let mut client = server.connect().expect("connects");
        let mut other = server.connect().expect("connects");
        let change: &[(&str, &[&str], bool)] = &[
            ("changed", &["INCR", "k"], true),
            ("changed and changed back", &["SET", "k", "1"], true),
            ("expiry", &["PEXPIRE", "k", "600000"], true),
            ("deleted", &["DEL", "k"], true),
            ("elsewhere", &["SWAPDB", "0", "1"], true),
            ("read", &["GET", "k"], false),
            ("another key", &["SET", "l", "1"], false),
        ];
        for (what, words, is_change) in change {
            call(&mut other, &["FLUSHALL"]);
            call(&mut other, &["SET", "k", "1"]);
            let mut there = target.awaited(&mut client, &["k"], &[]);
            call(&mut other, words);
            let after = call(&mut other, &["GET", "k"]);
            there.send(b"+OK\r\n").expect("sent");
            let reply = client.reply().expect("a reply");
            if *is_change {
                let Value::Error(text) = &reply else { panic!("{what}: {reply:?}") };
                let text = String::from_utf8_lossy(text);
                assert!(text.starts_with("ERR the target has taken 'k'"), "{what}: {text}");
                assert_eq!(call(&mut other, &["GET", "k"]), after, "{what}");
            } else {
                assert_eq!(reply, ok(), "{what}");
                assert_eq!(call(&mut other, &["EXISTS", "k"]), Value::Integer(0), "{what}");
            }
            drop(there);
        }
    });
}

/// Who expires on the way is gone on both sides: nothing was lost.
#[test]
fn what_expires_on_the_way_is_no_change() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let target = Target::new();
        let mut client = server.connect().expect("connects");
        let mut other = server.connect().expect("connects");
        call(&mut client, &["SET", "k", "1", "PX", "300"]);
        let mut there = target.awaited(&mut client, &["k"], &[]);
        while call(&mut other, &["EXISTS", "k"]) != Value::Integer(0) {
            thread::sleep(Duration::from_millis(5));
        }
        there.send(b"+OK\r\n").expect("sent");
        assert_eq!(client.reply().expect("a reply"), ok());
    });
}

#[test]
fn a_target_of_no_use_ends_in_an_error_and_keeps_the_key() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let mut client = server.connect().expect("connects");
        call(&mut client, &["SET", "k", "1"]);
        let answers: &[&[u8]] = &[
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            b":1\r\n",
            b"+QUEUED\r\n",
            b"$-1\r\n",
            &[b'x'; 100_000],
            b"+OK\r\n*1\r\n",
            b"",
        ];
        for answer in answers {
            let target = Target::new();
            client
                .request(&["MIGRATE", "127.0.0.1", &target.port, "k", "0", LONG_MS])
                .expect("sent");
            let (mut stream, _) = target.listener.accept().expect("the server connects");
            // It may hang up in the middle.
            let _ = stream.write_all(answer);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let shown = String::from_utf8_lossy(&answer[..answer.len().min(20)]).into_owned();
            assert_eq!(client.reply().expect("a reply"), error(READING), "{shown}");
            assert_eq!(call(&mut client, &["GET", "k"]), bulk("1"), "{shown}");
        }
        // Who says nothing has the timeout.
        let silent = Target::new();
        let reply = migrate(&mut client, &silent.port, &["k", "0", SHORT_MS]);
        assert_eq!(reply, error(READING));
        assert_eq!(call(&mut client, &["GET", "k"]), bulk("1"));
    });
}

/// A target without words costs nobody else anything, and later requests of the client wait.
#[test]
fn others_are_served_while_a_target_says_nothing() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let target = Target::new();
        let mut other = server.connect().expect("connects");
        call(&mut other, &["MSET", "k", "1", "l", "2"]);
        let words = ["MIGRATE", "127.0.0.1", &target.port, "k", "0", LONG_MS, "COPY"];
        let mut waiting: Vec<Client> = Vec::new();
        let mut refused = 0;
        while refused == 0 && waiting.len() < 100 {
            let mut client = server.connect().expect("connects");
            client.request(&words).expect("sent");
            client.request(&["ECHO", "behind"]).expect("sent");
            if client.has_reply_within(Duration::from_millis(20)).expect("is open") {
                let text = "ERR too many MIGRATE commands wait for this target, or for all targets \
                            together";
                assert_eq!(client.reply().expect("a reply"), error(text));
                assert_eq!(client.reply().expect("a reply"), bulk("behind"));
                refused += 1;
            } else {
                waiting.push(client);
            }
        }
        assert_eq!((refused, waiting.len()), (1, 64));
        assert_eq!(call(&mut other, &["PING"]), pong());
        assert_eq!(call(&mut other, &["INCR", "k"]), Value::Integer(2));
        // Another target has its own share.
        let elsewhere = Target::new();
        drop(elsewhere.awaited(&mut other, &["l"], &["COPY"]));
        drop(elsewhere.listener);
        assert_eq!(other.reply().expect("a reply"), error(READING));
        // One leaves, and the server ends the others' waits when the target ends.
        drop(waiting.pop());
        drop(target);
        for client in &mut waiting {
            assert_eq!(client.reply().expect("a reply"), error(READING));
            assert_eq!(client.reply().expect("a reply"), bulk("behind"));
        }
    });
}

/// No value goes to a server that refuses the login.
#[test]
fn the_login_is_answered_before_a_value_is_sent() {
    on_both_backends(&["--io-threads", "1", "--slowlog-log-slower-than", "0"], |server| {
        let target = Target::new();
        let mut client = server.connect().expect("connects");
        call(&mut client, &["SET", "k", "1"]);
        let words = ["k", "0", LONG_MS, "AUTH2", "somebody", "secret"];
        let mut all = vec!["MIGRATE", "127.0.0.1", &target.port];
        all.extend(words);
        client.request(&all).expect("sent");
        let mut there = target.accept();
        assert_eq!(asked(&mut there), ["AUTH", "somebody", "secret"]);
        assert!(!there.has_reply_within(Duration::from_millis(50)).expect("is open"));
        there.send(b"-WRONGPASS no\r\n").expect("sent");
        let refused = error("ERR Target instance replied with error: WRONGPASS no");
        assert_eq!(client.reply().expect("a reply"), refused);
        assert!(there.reply().is_err(), "it hangs up");
        let log = format!("{:?}", call(&mut client, &["SLOWLOG", "GET", "1"]));
        let text = |words: &str| format!("{:?}", bulk(words));
        assert!(log.contains(&text("(redacted)")) && log.contains(&text("AUTH2")), "{log}");
        assert!(!log.contains(&text("secret")) && !log.contains(&text("somebody")), "{log}");
    });
}

/// A target that ended since the last time costs no error: the connection is made anew.
#[test]
fn a_kept_connection_that_is_closed_is_made_anew() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let target = Target::new();
        let mut client = server.connect().expect("connects");
        call(&mut client, &["SET", "k", "1"]);
        let mut there = target.awaited(&mut client, &["k"], &["COPY"]);
        there.send(b"+OK\r\n").expect("sent");
        assert_eq!(client.reply().expect("a reply"), ok());
        drop(there);
        let mut there = target.awaited(&mut client, &["k"], &[]);
        there.send(b"+OK\r\n").expect("sent");
        assert_eq!(client.reply().expect("a reply"), ok());
    });
}

#[test]
fn a_restart_knows_what_was_migrated() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = Path::new(env!("CARGO_BIN_EXE_ladon"));
    let launch = Launch::new(program, dir.path(), &["--gate", "fsync"]);
    let target = Target::new();
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    call(&mut client, &["MSET", "gone", "1", "here", "2"]);
    let mut there = target.awaited(&mut client, &["gone"], &[]);
    there.send(b"+OK\r\n").expect("sent");
    assert_eq!(client.reply().expect("a reply"), ok());
    // The next one would use it again.
    drop(there);
    // Killed before the answer: the key is on both sides.
    let there = target.awaited(&mut client, &["here"], &[]);
    server.kill().expect("killed");
    drop(there);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    let both = call(&mut client, &["MGET", "gone", "here"]);
    assert_eq!(both, Value::Array(vec![Value::Null, bulk("2")]));
    assert!(server.terminate().expect("ends").success());
}
