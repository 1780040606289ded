//! A panic in the middle of a transaction, on the real binary: nobody sees or logs what was not
//! committed, nothing acknowledged is lost, and the log does not claim a clean end.
//!
//! `DEBUG PANIC PLANTED` exists in builds with debug assertions only.
#![cfg(debug_assertions)]

use ladon_crash::{Client, Launch, ladon_check};
use ladon_resp::client::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::thread;

const SIGABRT: i32 = 6;

fn call(client: &mut Client, words: &[&str]) -> Value {
    client.call(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

#[test]
fn what_was_not_committed_is_neither_shown_nor_logged() {
    for gate in ["write", "everysec", "fsync"] {
        let dir = tempfile::tempdir().expect("a directory");
        let arguments = ["--gate", gate, "--io-threads", "2", "--enable-debug-command", "yes"];
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
        let mut server = launch.start().expect("starts");
        let (mut one, mut other) =
            (server.connect().expect("connects"), server.connect().expect("connects"));
        assert_eq!(call(&mut one, &["SET", "half", "old"]), Value::Simple(b"OK".to_vec()));
        // On the other thread, which outlives the panic if anything does.
        let reader = thread::spawn(move || {
            let mut acknowledged = 0;
            loop {
                match other.call(&["GET", "half"]) {
                    Ok(Value::Bulk(seen)) => assert_eq!(seen, b"old", "it was never committed"),
                    _ => return acknowledged,
                }
                match other.call(&["INCR", "count"]) {
                    Ok(Value::Integer(count)) => acknowledged = count,
                    _ => return acknowledged,
                }
            }
        });
        while call(&mut one, &["GET", "count"]) == Value::Null {}
        let half = [&["MULTI"] as &[&str], &["SET", "half", "new"], &["DEBUG", "PANIC", "PLANTED"]];
        for words in half {
            call(&mut one, words);
        }
        one.request(&["EXEC"]).expect("sent");
        let status = server.wait().expect("ends");
        assert_eq!(status.signal(), Some(SIGABRT), "{status}: {}", server.output());
        assert!(server.output().contains("Start it again"), "{}", server.output());
        let acknowledged = reader.join().expect("only what was committed");

        let (code, report) = ladon_check(&launch.program, &launch.data).expect("checks");
        assert_eq!(code, Some(0), "{report}");
        assert!(!report.contains("sound; closed in good order"), "{gate}: {report}");
        let server = launch.start().expect("starts again");
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["GET", "half"]), Value::Bulk(b"old".to_vec()), "{gate}");
        let count = call(&mut client, &["INCRBY", "count", "0"]);
        assert!(
            matches!(count, Value::Integer(found) if found >= acknowledged),
            "{gate} {count:?}"
        );
    }
}
