//! Running out of file descriptors. A test binary of its own: the limit is the process's.
#![cfg(target_os = "linux")]

#[path = "it/common/mod.rs"]
mod common;
#[path = "it/common/limits.rs"]
mod limits;

use common::{Rig, open, tcp};
use ladon_net::*;
use limits::*;
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn running_out_of_descriptors_pauses_accepting() {
    for choice in [BackendChoice::IoUring, BackendChoice::Mio] {
        if let Some(backend) = open(choice) {
            check(backend);
        }
    }
}

fn check(backend: AnyBackend) {
    let mut rig = Rig::new(backend);
    let address = rig.listen();
    let (conn, mut working) = rig.connect(address);
    let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let listener = Listener::bind(&any, &ListenOptions::default(), 0).expect("bind");
    let address = tcp(listener.local());
    let peers: Vec<_> = (0..30).map(|_| TcpStream::connect(address).expect("connect")).collect();
    limit_descriptors(open_descriptors() + 10);
    // Only now: an accept in flight keeps the limit of its beginning.
    rig.backend.listen(listener).expect("listen");
    rig.until("the first are in", |seen| seen.incoming.len() >= 9);
    rig.poll(Duration::from_millis(10));
    let first = rig.seen.incoming.len();
    assert!(first < peers.len(), "the limit was not felt");

    // No spinning while nothing can be done.
    let (started, mut polls) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_millis(350) {
        rig.poll(Duration::from_secs(1));
        polls += 1;
    }
    assert!(polls <= 10, "{polls} polls");
    assert_eq!(rig.seen.incoming.len(), first);

    // Who is in is served meanwhile.
    std::io::Write::write_all(&mut working, b"hello").expect("write");
    rig.until("it is heard", |seen| seen.received.contains_key(&conn));

    // Who leaves makes room.
    rig.seen.incoming.truncate(4);
    rig.until("as many others are in", |seen| seen.incoming.len() == first);
    limit_descriptors(u64::MAX);
    rig.until("all are in", |seen| seen.incoming.len() == peers.len() - (first - 4));
}
