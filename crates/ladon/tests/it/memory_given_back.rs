//! Memory that data has left goes back to the system, though nobody asks for any.
#![cfg(target_os = "linux")]

use crate::live::large::{connect, fill};
use crate::live::{call, ok, on_both_backends, rss_bytes};
use ladon_crash::{Client, Server};
use std::thread::sleep;
use std::time::{Duration, Instant};

const KEYS: usize = 40_000;

/// Some 35 MB of values of all sizes.
fn fill_up(client: &mut Client) {
    const SIZES: [usize; 6] = [20, 100, 300, 700, 1500, 3000];
    fill(client, "MSET", 0..KEYS, |n| vec![format!("key:{n}"), "x".repeat(SIZES[n % SIZES.len()])]);
}

/// Waits until the process holds no more than it began with and a part of what it held.
fn wait_until_small(server: &Server, began: u64, full: u64) {
    let most = began + (full - began) * 2 / 5;
    let start = Instant::now();
    while rss_bytes(server) > most {
        let now = rss_bytes(server);
        assert!(start.elapsed() < Duration::from_secs(30), "{began}, {full}, and now {now}");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn of_deleted_keys() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = connect(server);
        let began = rss_bytes(server);
        fill_up(&mut client);
        let full = rss_bytes(server);
        fill(&mut client, "DEL", 0..KEYS, |n| vec![format!("key:{n}")]);
        wait_until_small(server, began, full);
    });
}

#[test]
fn of_databases_that_another_thread_drops() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = connect(server);
        let began = rss_bytes(server);
        fill_up(&mut client);
        let full = rss_bytes(server);
        assert_eq!(call(&mut client, &["FLUSHALL"]), ok());
        wait_until_small(server, began, full);
    });
}
