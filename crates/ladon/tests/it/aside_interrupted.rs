//! What comes in the middle of a result that is computed aside: the end of the server, and a pause
//! of its clients.

use crate::live::large::{array, connect, large_sets, run, wait_for_jobs, words};
use crate::live::{info_number, ok, on_both_backends};
use ladon_crash::{Launch, Server};
use ladon_resp::client::Value;
use nix::sys::signal::Signal;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const MEMBERS: i64 = 120_000;

/// How the server is told to end.
#[derive(Clone, Copy, Debug)]
enum End {
    Shutdown,
    Now,
    Signal,
}

fn end(server: &Server, how: End) {
    match how {
        End::Shutdown => connect(server).request(&["SHUTDOWN"]).expect("sent"),
        End::Now => connect(server).request(&["SHUTDOWN", "NOW"]).expect("sent"),
        End::Signal => server.signal(Signal::SIGTERM).expect("sent"),
    }
}

#[test]
fn the_end_of_the_server_leaves_a_store_done_or_not_begun() {
    let (mut done, mut cut_off) = (0, 0);
    for (turn, how) in
        [End::Shutdown, End::Now, End::Signal].into_iter().cycle().take(12).enumerate()
    {
        let text = ["SUNIONSTORE d a b", "RENAME a d", "SUNION a b", "COPY a d"][turn % 4];
        let dir = tempfile::tempdir().expect("a directory");
        let arguments = ["--gate", ["none", "write", "fsync"][turn / 4], "--io-threads", "2"];
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
        let mut server = launch.start().expect("starts");
        let (mut client, mut other) = (connect(&server), connect(&server));
        large_sets(&mut other);
        let jobs = info_number(&mut other, "ladon", "aside_jobs");
        client.request(&words(text)).expect("sent");
        wait_for_jobs(&mut other, jobs + 1);
        end(&server, how);
        let reply = client.reply();
        let status = server.wait().expect("it ends");
        let output = server.output();
        assert!(status.success() && !output.contains("panicked"), "{text}, {how:?}: {output}");

        let mut server = launch.start().expect("starts again");
        let mut client = connect(&server);
        let mut count = |key: &str| run(&mut client, &format!("SCARD {key}"));
        let (a, b, d) = (count("a"), count("b"), count("d"));
        let (none, all) = (Value::Integer(0), Value::Integer(80_000));
        assert_eq!(b, all);
        let stored =
            if text.starts_with("SUNIONSTORE") { Value::Integer(MEMBERS) } else { all.clone() };
        let is_there = d == stored;
        assert!(is_there || d == none, "{text}, {how:?}: half of it: {d:?}");
        let has_moved = is_there && text.starts_with("RENAME");
        assert_eq!(a, if has_moved { none } else { all }, "{text}, {how:?}");
        match reply {
            Err(_) => cut_off += 1,
            Ok(Value::Array(members)) => assert_eq!(members.len() as i64, MEMBERS),
            Ok(reply) => {
                done += 1;
                let expected = match text.split(' ').next() {
                    Some("RENAME") => ok(),
                    Some("COPY") => Value::Integer(1),
                    _ => stored,
                };
                assert_eq!(reply, expected, "{text}, {how:?}");
                assert!(is_there, "{text}, {how:?}: acknowledged and lost");
            }
        }
        assert!(server.terminate().expect("ends").success());
    }
    assert!(cut_off > 0, "some were in the middle: {done} were done");
}

/// How clients are paused: one that pauses all of them holds its own end back as well.
const MODES: [&str; 2] = ["60000 WRITE", "200 ALL"];

#[test]
fn a_store_does_not_come_in_while_writes_are_paused() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let (mut client, mut other) = (connect(server), connect(server));
        large_sets(&mut other);
        let mut held_back = 0;
        for turn in 0..24 {
            let (text, reply) = [
                ("SUNIONSTORE d a b", Value::Integer(MEMBERS)),
                ("COPY a d", Value::Integer(1)),
                ("RENAME a d", ok()),
            ][turn % 3]
                .clone();
            let jobs = info_number(&mut other, "ladon", "aside_jobs");
            client.request(&words(text)).expect("sent");
            wait_for_jobs(&mut other, jobs + 1);
            let mode = MODES[turn / 3 % 2];
            assert_eq!(run(&mut other, &format!("CLIENT PAUSE {mode}")), ok());
            // A pause of writes leaves reads alone, so it can be seen whether it came in before.
            let was_before = client.has_reply_within(Duration::from_millis(1)).expect("no end")
                || mode == MODES[0] && run(&mut other, "EXISTS d") == Value::Integer(1);
            if mode == MODES[0] && !was_before {
                held_back += 1;
                wait_until_held_back(server);
                assert_eq!(run(&mut other, "EXISTS d"), Value::Integer(0), "{text}");
                assert!(
                    !client.has_reply_within(Duration::from_millis(1)).expect("no end"),
                    "{text}"
                );
            }
            assert_eq!(run(&mut other, "CLIENT UNPAUSE"), ok());
            assert_eq!(client.reply().expect("a reply"), reply, "{text}, {mode}");
            let there = if turn % 3 == 0 { MEMBERS } else { 80_000 };
            assert_eq!(run(&mut other, "SCARD d"), Value::Integer(there), "{text}, {mode}");
            let back = if text.starts_with("RENAME") { "RENAME d a" } else { "DEL d" };
            run(&mut other, back);
        }
        assert!(held_back > 0, "some were in the middle");
    });
}

/// Until a client counts as blocked, as those do that a pause holds back.
fn wait_until_held_back(server: &Server) {
    let mut client = connect(server);
    let began = Instant::now();
    while info_number(&mut client, "clients", "blocked_clients") == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "a request is held back");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_reply_that_was_begun_before_a_pause_is_right() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let (mut client, mut other) = (connect(server), connect(server));
        large_sets(&mut other);
        let mut held_back = 0;
        for mode in MODES.into_iter().cycle().take(6) {
            let jobs = info_number(&mut other, "ladon", "aside_jobs");
            client.request(&words("SUNION a b")).expect("sent");
            client.request(&words("DEL a")).expect("sent");
            wait_for_jobs(&mut other, jobs + 1);
            assert_eq!(run(&mut other, &format!("CLIENT PAUSE {mode}")), ok());
            // Its command ran before the pause; what is behind it has not.
            assert_eq!(array(client.reply().expect("a reply")).len() as i64, MEMBERS, "{mode}");
            let was_before = client.has_reply_within(Duration::from_millis(50)).expect("no end");
            held_back += u32::from(!was_before);
            assert_eq!(run(&mut other, "CLIENT UNPAUSE"), ok());
            assert_eq!(client.reply().expect("a reply"), Value::Integer(1), "{mode}");
            large_sets(&mut other);
        }
        assert!(held_back > 0, "some were in the middle");
    });
}
