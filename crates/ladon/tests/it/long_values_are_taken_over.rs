//! Strings so long that the memory of their request becomes the value, while others are served:
//! what is written is what was sent, whatever happens meanwhile.

use crate::live::large::{connect, run, wait_for_jobs};
use crate::live::{bulk, call, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Launch};
use ladon_resp::client::Value;
use std::path::Path;

const TWO_THREADS: &[&str] = &["--io-threads", "2"];

const MIB: usize = 1 << 20;

/// Text of this length, in which every place shows.
fn text(length: usize, mark: char) -> String {
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        text.push_str(&format!("{:07}{mark}", text.len()));
    }
    text.truncate(length);
    text
}

fn is(client: &mut Client, key: &str, expected: &str) {
    let value = call(client, &["GET", key]);
    assert!(value.as_bytes() == Some(expected.as_bytes()), "{key}: {} bytes", expected.len());
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

#[test]
fn every_way_to_write_one_string() {
    on_both_backends(TWO_THREADS, |server| {
        let mut client = connect(server);
        let (a, b) = (text(5 * MIB, '.'), text(6 * MIB + 77, ':'));
        assert_eq!(call(&mut client, &["SET", "k", &a]), ok());
        is(&mut client, "k", &a);
        assert_eq!(call(&mut client, &["SET", "k", &b, "NX"]), Value::Null);
        assert_eq!(call(&mut client, &["SETNX", "k", &b]), Value::Integer(0));
        is(&mut client, "k", &a);
        let old = call(&mut client, &["SET", "k", &b, "XX", "GET", "EX", "1000"]);
        assert!(old.as_bytes() == Some(a.as_bytes()));
        is(&mut client, "k", &b);
        assert!(matches!(call(&mut client, &["TTL", "k"]), Value::Integer(900..=1000)));
        assert_eq!(call(&mut client, &["SET", "k", &a, "KEEPTTL"]), ok());
        assert!(matches!(call(&mut client, &["TTL", "k"]), Value::Integer(900..=1000)));
        assert!(call(&mut client, &["GETSET", "k", &b]).as_bytes() == Some(a.as_bytes()));
        assert_eq!(call(&mut client, &["TTL", "k"]), Value::Integer(-1));
        assert_eq!(call(&mut client, &["SET", "k", &a, "IFEQ", &b]), ok());
        assert_eq!(call(&mut client, &["SET", "k", &b, "IFEQ", &b]), Value::Null);
        is(&mut client, "k", &a);
        assert_eq!(call(&mut client, &["SETEX", "e", "1000", &b]), ok());
        assert_eq!(call(&mut client, &["PSETEX", "p", "4000000", &a]), ok());
        assert_eq!(call(&mut client, &["SETNX", "n", &b]), Value::Integer(1));
        is(&mut client, "e", &b);
        is(&mut client, "p", &a);
        is(&mut client, "n", &b);
        assert!(matches!(call(&mut client, &["TTL", "p"]), Value::Integer(3900..=4000)));
        assert!(matches!(call(&mut client, &["SET", "k", &a, "EX", "no"]), Value::Error(_)));
        run(&mut client, "SADD set x");
        assert!(matches!(call(&mut client, &["GETSET", "set", &a]), Value::Error(_)));
        assert_eq!(call(&mut client, &["SET", "set", &a]), ok());
        is(&mut client, "set", &a);
        let before = info_number(&mut client, "ladon", "aside_jobs");
        run(&mut client, "EXPIRE k 1000");
        assert_eq!(call(&mut client, &["SET", "k", &a, "KEEPTTL"]), ok());
        assert!(matches!(call(&mut client, &["TTL", "k"]), Value::Integer(900..=1000)));
        is(&mut client, "k", &a);
        let jobs = info_number(&mut client, "ladon", "aside_jobs");
        assert_eq!(jobs, before + 1, "the expiry that is kept is looked up first");
        assert!(jobs >= 10, "{jobs} were done aside");
        assert_eq!(call(&mut client, &["MSET", "one", &b]), ok());
        is(&mut client, "one", &b);
        assert_eq!(call(&mut client, &["MSETNX", "one", &a]), Value::Integer(0));
        assert_eq!(call(&mut client, &["MSETNX", "other", &a]), Value::Integer(1));
        is(&mut client, "other", &a);
        let jobs = info_number(&mut client, "ladon", "aside_jobs");
        assert_eq!(jobs, before + 4, "a pair is set as one value is");
        run(&mut client, "MULTI");
        call(&mut client, &["SET", "k", &b]);
        call(&mut client, &["SETRANGE", "k", "0", "x"]);
        assert!(matches!(run(&mut client, "EXEC"), Value::Array(replies) if replies.len() == 2));
        assert_eq!(info_number(&mut client, "ladon", "aside_jobs"), jobs);
        is(&mut client, "k", &format!("x{}", &b[1..]));
        assert_eq!(call(&mut client, &["OBJECT", "ENCODING", "p"]), bulk("raw"));
        let used = run(&mut client, "MEMORY USAGE p");
        assert!(matches!(used, Value::Integer(n) if n < (5 * MIB + MIB / 4) as i64), "{used:?}");
    });
}

/// Whatever comes behind a long value is read in its place: all of it there, cut anywhere,
/// or more than the value itself.
#[test]
fn what_follows_in_the_pipeline_is_not_lost() {
    on_both_backends(TWO_THREADS, |server| {
        let (a, b) = (text(4 * MIB, '.'), text(9 * MIB, ':'));
        for cut in [1usize, 20, 4 * MIB, 9 * MIB + 30, 9 * MIB + 90] {
            let mut client = connect(server);
            let all = [
                request(&["SET", "n", "1"]),
                request(&["SET", "a", &a]),
                request(&["SET", "b", &b]),
                request(&["INCR", "n"]),
                request(&["SET", "a b", &a[7..]]),
                request(&["GET", "a b"]),
                request(&["PING"]),
            ]
            .concat();
            let cut = all.len() - cut;
            client.send(&all[..cut]).expect("sent");
            assert_eq!(client.reply().expect("SET n"), ok());
            client.send(&all[cut..]).expect("sent");
            assert_eq!(client.reply().expect("SET a"), ok());
            assert_eq!(client.reply().expect("SET b"), ok());
            assert_eq!(client.reply().expect("INCR"), Value::Integer(2));
            assert_eq!(client.reply().expect("SET"), ok());
            assert!(client.reply().expect("GET").as_bytes() == Some(&a.as_bytes()[7..]));
            assert_eq!(client.reply().expect("PING"), pong());
            is(&mut client, "a", &a);
            is(&mut client, "b", &b);
        }
    });
}

#[test]
fn what_others_do_meanwhile_comes_before_or_after() {
    on_both_backends(TWO_THREADS, |server| {
        let (mut writer, mut other) = (connect(server), connect(server));
        let (a, b) = (text(24 * MIB, '.'), text(30 * MIB, ':'));
        let mut jobs = 0;
        let mut begin = |writer: &mut Client, other: &mut Client| {
            writer.request(&["SET", "k", &a]).expect("sent");
            jobs += 1;
            wait_for_jobs(other, jobs);
        };
        call(&mut other, &["SET", "k", "short"]);
        begin(&mut writer, &mut other);
        call(&mut other, &["APPEND", "k", "er"]);
        assert_eq!(writer.reply().expect("SET"), ok());
        let end = call(&mut other, &["GETRANGE", "k", "-3", "-1"]);
        assert!(end == bulk(&a[a.len() - 3..]) || end == bulk(&format!("{}er", &a[a.len() - 1..])));
        begin(&mut writer, &mut other);
        call(&mut other, &["SWAPDB", "0", "1"]);
        assert_eq!(writer.reply().expect("SET"), ok());
        // Both clients look at the first database, whichever data that is.
        let length = run(&mut writer, "STRLEN k");
        run(&mut writer, "SELECT 1");
        let elsewhere = run(&mut writer, "STRLEN k");
        let whole = Value::Integer(a.len() as i64);
        assert!(length == whole || elsewhere == whole, "{length:?}, {elsewhere:?}");
        run(&mut writer, "SELECT 0");
        begin(&mut writer, &mut other);
        call(&mut other, &["CLIENT", "PAUSE", "10000", "WRITE"]);
        call(&mut other, &["CLIENT", "UNPAUSE"]);
        assert_eq!(writer.reply().expect("SET"), ok());
        is(&mut other, "k", &a);
        // Who is gone by the time has written all or nothing.
        call(&mut other, &["SET", "k", "short"]);
        begin(&mut writer, &mut other);
        call(&mut other, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        let length = run(&mut other, "STRLEN k");
        assert!(length == Value::Integer(5) || length == whole, "{length:?}");
        let mut writer = connect(server);
        assert_eq!(call(&mut writer, &["SET", "k", &b]), ok());
        is(&mut other, "k", &b);
    });
}

#[test]
fn what_was_taken_over_survives_the_process() {
    for gate in ["write", "fsync"] {
        let dir = tempfile::tempdir().expect("a directory");
        let arguments = ["--gate", gate, "--io-threads", "2"];
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
        let mut server = launch.start().expect("starts");
        let mut client = connect(&server);
        let (a, b) = (text(5 * MIB, '.'), text(6 * MIB + 77, ':'));
        assert_eq!(call(&mut client, &["SET", "a", &b]), ok());
        assert_eq!(call(&mut client, &["SET", "a", &a]), ok());
        assert_eq!(call(&mut client, &["SET", "b", &b, "PXAT", "4000000000000"]), ok());
        assert_eq!(
            call(&mut client, &["SETRANGE", "b", "3", "---"]),
            Value::Integer(b.len() as i64)
        );
        server.kill().expect("killed");
        let mut server = launch.start().expect("starts again");
        let mut client = connect(&server);
        is(&mut client, "a", &a);
        is(&mut client, "b", &format!("{}---{}", &b[..3], &b[6..]));
        let at = run(&mut client, "PEXPIRETIME b");
        assert_eq!(at, Value::Integer(4_000_000_000_000), "{gate}");
        assert!(server.terminate().expect("ends").success());
    }
}
