//! Long arguments of commands that copy them: the memory of the copies is prepared aside, and what is
//! stored is what was sent, also after a crash.

use crate::live::large::{connect, run};
use crate::live::{bulk, call, info_number};
use ladon_crash::{Client, Launch};
use ladon_resp::client::Value;
use std::path::Path;

const LENGTH: usize = 5 << 20;

/// Text in which every place shows.
fn text(mark: char) -> String {
    (0..LENGTH / 8).map(|at| format!("{at:07}{mark}")).collect()
}

/// Writes that copy a long argument, and reads that answer it.
fn writes_and_reads<'t>(a: &'t str, b: &'t str) -> Vec<(Vec<&'t str>, Vec<&'t str>, &'t str)> {
    vec![
        (vec!["HSET", "hash", "f", a], vec!["HGET", "hash", "f"], a),
        (vec!["HSET", "hash", "f", b], vec!["HGET", "hash", "f"], b),
        (vec!["HSETNX", "hash", "g", a], vec!["HGET", "hash", "g"], a),
        (vec!["RPUSH", "list", "x", a], vec!["LINDEX", "list", "1"], a),
        (vec!["LPUSH", "list", b], vec!["LINDEX", "list", "0"], b),
        (vec!["LSET", "list", "1", a], vec!["LINDEX", "list", "1"], a),
        (vec!["LINSERT", "list", "BEFORE", "nosuch", a], vec!["LINDEX", "list", "-1"], a),
        (vec!["SADD", "set", a], vec!["SRANDMEMBER", "set"], a),
        (vec!["APPEND", "string", a], vec!["GET", "string"], a),
        (vec!["SETRANGE", "string", "0", b], vec!["GET", "string"], b),
        (vec!["MSET", "one", a, "two", "x"], vec!["GET", "one"], a),
    ]
}

fn check(client: &mut Client, read: &[&str], expected: &str) {
    let found = call(client, read);
    assert!(found.as_bytes() == Some(expected.as_bytes()), "{read:?}");
}

#[test]
fn they_wait_for_memory_once_and_are_stored_as_sent() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--io-threads", "2", "--gate", "write"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let mut server = launch.start().expect("starts");
    let mut client = connect(&server);
    let (a, b) = (text('.'), text(':'));
    for (write, read, expected) in writes_and_reads(&a, &b) {
        let jobs = info_number(&mut client, "ladon", "aside_jobs");
        let done = call(&mut client, &write);
        assert!(!matches!(done, Value::Error(_)), "{:?}: {done:?}", write[0]);
        // Before the read, which may itself be done aside.
        assert_eq!(info_number(&mut client, "ladon", "aside_jobs"), jobs + 1, "{:?}", write[0]);
        check(&mut client, &read, expected);
    }
    let entry = call(&mut client, &["XADD", "stream", "1-1", "f", &a]);
    assert_eq!(entry, bulk("1-1"));
    call(&mut client, &["ZADD", "sorted", "1", &a]);
    // In a transaction nothing waits.
    let jobs = info_number(&mut client, "ladon", "aside_jobs");
    run(&mut client, "MULTI");
    call(&mut client, &["HSET", "hash", "h", &a]);
    run(&mut client, "EXEC");
    assert_eq!(info_number(&mut client, "ladon", "aside_jobs"), jobs);
    server.kill().expect("killed");
    let mut server = launch.start().expect("starts again");
    let mut client = connect(&server);
    for (key, read, expected) in [
        ("hash", vec!["HGET", "hash", "f"], &b),
        ("hash", vec!["HGET", "hash", "h"], &a),
        ("list", vec!["LINDEX", "list", "1"], &a),
        ("set", vec!["SRANDMEMBER", "set"], &a),
        ("string", vec!["GET", "string"], &b),
    ] {
        let found = call(&mut client, &read);
        assert!(found.as_bytes() == Some(expected.as_bytes()), "{key} after a crash");
    }
    assert_eq!(call(&mut client, &["ZSCORE", "sorted", &a]), bulk("1"));
    assert_eq!(run(&mut client, "XLEN stream"), Value::Integer(1));
    assert!(server.terminate().expect("ends").success());
}
