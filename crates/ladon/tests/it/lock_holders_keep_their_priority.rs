//! A thread that takes partitions' locks has the priority of those that wait for them: with a lower
//! one it keeps a lock, and with it every client of an IO thread, for as long as others keep the
//! cores busy.
#![cfg(target_os = "linux")]

use crate::live::{call, info_number, ok, on_both_backends};
use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// The `nice` value of each thread of a process, by the thread's name, which the kernel cuts.
fn nice_values(pid: u32) -> BTreeMap<String, i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let stats =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let name = stat[stat.find('(')? + 1..stat.rfind(')')?].to_owned();
            // Field 19; the name is field 2.
            let nice = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(16)?;
            Some((name, nice.parse().ok()?))
        })
        .collect()
}

#[test]
fn the_checkpointer_and_the_io_threads_are_equals() {
    on_both_backends(&["--io-threads", "2"], |server| {
        // Both threads have run then.
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["SET", "key", "value"]), ok());
        call(&mut client, &["BGSAVE"]);
        while info_number(&mut client, "persistence", "rdb_bgsave_in_progress") != 0 {
            sleep(Duration::from_millis(5));
        }
        let nice = nice_values(server.pid());
        let io_threads: Vec<i32> = ["ladon-io-0", "ladon-io-1"].map(|name| nice[name]).into();
        assert_eq!(nice["ladon-checkpoin"], io_threads[0], "{nice:?}");
        assert_eq!(io_threads[0], io_threads[1], "{nice:?}");
    });
}
