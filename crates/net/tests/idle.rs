//! What connections cost that do nothing. A test binary of its own with one test, as it measures
//! its whole process.
#![cfg(target_os = "linux")]

#[path = "it/common/mod.rs"]
mod common;
#[path = "it/common/limits.rs"]
mod limits;

use common::{Rig, open};
use ladon_net::*;
use limits::*;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// The target, of the server as a whole; what is left here is its other layers'.
const BYTES_PER_CONNECTION_MAX: u64 = 1024;

#[test]
fn idle_connections_cost_little() {
    let descriptors = limit_descriptors(21_000);
    // Both ends are in this process.
    let connections = 10_000.min((descriptors - 200) / 2) as usize;
    for choice in [BackendChoice::IoUring, BackendChoice::Mio] {
        if let Some(backend) = open(choice) {
            check(backend, connections);
        }
    }
}

fn check(backend: AnyBackend, connections: usize) {
    let name = backend.name();
    let mut rig = Rig::new(backend);
    let address = rig.listen();
    // What the first of all costs is not the price of one more.
    let (_, mut first) = rig.connect(address);
    first.write_all(b"warm").expect("write");
    rig.until("it is warm", |seen| !seen.received.is_empty());
    rig.seen.received.clear();
    rig.seen.live.reserve(connections);
    rig.seen.received.reserve(connections);

    let before = resident_bytes();
    let mut peers = Vec::with_capacity(connections);
    let mut conns = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (conn, peer) = rig.connect(address);
        conns.push(conn);
        peers.push(peer);
    }
    let idle = resident_bytes().saturating_sub(before) / connections as u64;

    // Each says something once; the recorder's copy of that is not the backend's.
    for (number, peer) in peers.iter_mut().enumerate() {
        peer.write_all(b"something").expect("write");
        rig.until("it is heard", |seen| seen.received.contains_key(&conns[number]));
        rig.seen.received.clear();
        rig.backend.send_last(conns[number], b"an answer".to_vec());
        rig.poll(Duration::ZERO);
        peer.read_exact(&mut [0; 9]).expect("read");
        rig.seen.sent.clear();
    }
    let used = resident_bytes().saturating_sub(before) / connections as u64;

    let cpu_before = on_cpu_ns();
    let started = Instant::now();
    let mut polls = 0;
    while started.elapsed() < Duration::from_millis(500) {
        rig.poll(Duration::from_millis(100));
        polls += 1;
    }
    let cpu_us = (on_cpu_ns() - cpu_before) / 1000;
    println!(
        "{name}: {connections} connections: {idle} bytes each when new, {used} after use; idle for \
         half a second: {polls} polls, {cpu_us} us of CPU"
    );
    assert!(idle <= BYTES_PER_CONNECTION_MAX && used <= BYTES_PER_CONNECTION_MAX);
    // A spinning loop would use half a second, or as much of it as a busy machine gives.
    assert!(polls <= 10 && cpu_us < 50_000);

    drop(peers);
    rig.until("all are closed", |seen| seen.closed.len() == connections);
}
