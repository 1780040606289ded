//! A server to which nothing happens sleeps, and still does what goes by the clock.
#![cfg(target_os = "linux")]

use crate::live::{call, info_number, ok, on_both_backends};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often threads of the server have gone to sleep so far.
fn sleeps(server: &Server) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let statuses = tasks.flatten().flat_map(|task| fs::read_to_string(task.path().join("status")));
    let counts = statuses.map(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a count")
    });
    counts.sum()
}

#[test]
fn connections_that_do_nothing_wake_nobody() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut clients: Vec<_> = (0..200).map(|_| server.connect().expect("connects")).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            // What expires in a day is no reason to be awake.
            let key = number.to_string();
            assert_eq!(call(client, &["SET", &key, "value", "EX", "86400"]), ok());
        }
        // Buffers are given back, and the log comes to rest.
        sleep(Duration::from_secs(3));
        let before = sleeps(server);
        sleep(Duration::from_secs(4));
        let woken = sleeps(server) - before;
        // Two threads, the checkpointer and the log's look once a second each. With housekeeping
        // ten times a second it would be over a hundred.
        assert!(woken <= 40, "woken {woken} times in four seconds");
    });
}

/// Bytes of the log.
fn log_bytes(server: &Server) -> u64 {
    let files = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs").flatten();
    let paths = files.flat_map(|file| fs::read_link(file.path()));
    let logs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.flat_map(fs::metadata).map(|file| file.len()).sum()
}

#[test]
fn what_expires_leaves_a_sleeping_server_in_time() {
    on_both_backends(&["--gate", "write", "--io-threads", "2"], |server| {
        let mut client = server.connect().expect("connects");
        // Names so long that a mark of the log is small beside the record of a removal.
        let [key, hash, set] = ["k", "h", "s"].map(|letter| letter.repeat(1000));
        assert_eq!(call(&mut client, &["SET", &key, "value", "PX", "2500"]), ok());
        assert_eq!(call(&mut client, &["HSET", &hash, "field", "value"]), Value::Integer(1));
        let expires = call(&mut client, &["HPEXPIRE", &hash, "2500", "FIELDS", "1", "field"]);
        assert_eq!(expires, Value::Array(vec![Value::Integer(1)]));
        let added = call(&mut client, &["SADDEX", &set, "PX", "2500", "MEMBERS", "1", "member"]);
        assert_eq!(added, Value::Integer(1));
        // Nobody asks from here on: only the log tells.
        let (began, before) = (Instant::now(), log_bytes(server));
        assert!(before > 0, "where is the log?");
        let mut grown = 0;
        while grown < 3 {
            assert!(began.elapsed() < Duration::from_secs(30), "{grown} of 3 have expired");
            sleep(Duration::from_millis(20));
            grown = (log_bytes(server) - before) / 1000;
        }
        // A thread shows its counts when its turn has ended: it may have written just now.
        let counted = |client: &mut Client| {
            ["expired_keys", "expired_subkeys"].map(|field| info_number(client, "stats", field))
        };
        while counted(&mut client) != [1, 2] {
            let counts = counted(&mut client);
            assert!(began.elapsed() < Duration::from_secs(30), "[keys, subkeys]: {counts:?}");
            sleep(Duration::from_millis(20));
        }
        assert_eq!(call(&mut client, &["DBSIZE"]), Value::Integer(0));
    });
}
