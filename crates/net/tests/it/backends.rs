//! One suite for both backends.

use crate::common::*;
use ladon_net::*;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

macro_rules! for_both {
    ($($case:ident),* $(,)?) => {
        mod io_uring {
            $(#[test] fn $case() {
                if let Some(backend) = super::open(super::BackendChoice::IoUring) {
                    super::$case(super::Rig::new(backend));
                }
            })*
        }
        mod mio {
            $(#[test] fn $case() {
                let backend = super::open(super::BackendChoice::Mio).expect("mio always works");
                super::$case(super::Rig::new(backend));
            })*
        }
    };
}

for_both!(
    many_connections_echo,
    a_slow_reader_gets_a_huge_send,
    many_sends_to_a_slow_reader_stay_in_order,
    a_peer_disappears_during_a_send,
    a_close_abandons_a_send,
    closing_the_idle,
    a_pause_is_felt_by_the_peer,
    a_connection_that_ends_while_paused,
    who_sends_too_fast_is_read_a_little_at_a_time,
    a_socket_is_handed_over_to_another_thread,
    slots_come_back_under_a_new_generation,
    no_wake_up_is_lost,
    a_wake_up_before_the_wait_counts,
    unix_sockets,
    more_bytes_than_receive_buffers,
    more_sends_than_a_queue_holds,
    half_closed_peers_get_their_reply,
    accepted_sockets_inherit_the_options,
    after_stop_listening_nobody_gets_in,
    a_listener_goes_and_its_neighbours_stay,
    a_flood_does_not_starve_the_others,
    dropping_a_busy_backend_hangs_up,
    a_last_send_is_reported_with_the_next_event,
    another_thread_sends_and_the_end_is_felt_all_the_same,
    ipv6,
);

fn many_connections_echo(mut rig: Rig) {
    const CLIENTS: u64 = 100;
    let address = rig.listen();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            thread::spawn(move || {
                let mut peer = TcpStream::connect(address).expect("connect");
                for round in 0..20 {
                    let bytes = pattern(1 + (number as usize * 37 + round * 911) % 5000, number);
                    peer.write_all(&bytes).expect("write");
                    let mut back = vec![0; bytes.len()];
                    peer.read_exact(&mut back).expect("read");
                    assert!(back == bytes, "client {number}, round {round}");
                }
            })
        })
        .collect();
    rig.echo_until("all clients are gone", |seen| seen.closed.len() == CLIENTS as usize);
    for client in clients {
        client.join().expect("a client");
    }
    assert!(rig.seen.closed.values().all(|reason| matches!(reason, CloseReason::PeerClosed)));
}

fn a_slow_reader_gets_a_huge_send(mut rig: Rig) {
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    let bytes = pattern(48 << 20, 1);
    let expected = bytes.clone();
    let reader = thread::spawn(move || {
        let mut got = vec![0; expected.len()];
        let mut at = 0;
        while at < got.len() {
            let end = got.len().min(at + 1_000_003);
            at += peer.read(&mut got[at..end]).expect("read");
            if at < 4 << 20 {
                thread::sleep(Duration::from_millis(2));
            }
        }
        assert!(got == expected);
        peer
    });
    rig.backend.send(conn, bytes.clone());
    rig.until("everything is sent", |seen| !seen.sent.is_empty());
    assert!(rig.seen.sent == [(conn, bytes.into())]);
    reader.join().expect("the reader");
}

fn many_sends_to_a_slow_reader_stay_in_order(mut rig: Rig) {
    const SENDS: usize = 400;
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    let bytes = Arc::new(pattern(SENDS * 40_000, 2));
    let expected = Arc::clone(&bytes);
    let reader = thread::spawn(move || {
        let mut got = vec![0; expected.len()];
        for (number, piece) in got.chunks_mut(333_333).enumerate() {
            peer.read_exact(piece).expect("read");
            if number % 8 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
        }
        assert!(got == *expected);
        peer
    });
    for (number, piece) in bytes.chunks(40_000).enumerate() {
        let range = number * 40_000..(number + 1) * 40_000;
        let part = Outgoing::Part { whole: Arc::clone(&bytes), range };
        let outgoing = if number % 3 == 0 { part } else { piece.to_vec().into() };
        if number % 2 == 0 {
            rig.backend.send(conn, outgoing);
        } else {
            rig.backend.send_last(conn, outgoing);
            // Without it, the report may wait for as long as a poll does.
            rig.backend.waker().wake();
        }
        rig.until("a piece is sent", |seen| seen.sent.len() == number + 1);
        assert!(rig.seen.sent[number].1[..] == *piece);
    }
    reader.join().expect("the reader");
}

fn a_peer_disappears_during_a_send(mut rig: Rig) {
    let address = rig.listen();
    for reset in [true, false] {
        let (conn, peer) = rig.connect(address);
        rig.backend.send(conn, vec![b'x'; 32 << 20]);
        for _ in 0..3 {
            rig.poll(Duration::from_millis(1));
        }
        if reset {
            SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("linger");
        }
        drop(peer);
        rig.until("the end is noticed", |seen| seen.closed.contains_key(&conn));
        assert!(rig.seen.sent.is_empty());
        // A reset looks like an end to the second that asks, the send or the receive.
        assert!(!matches!(rig.seen.closed[&conn], CloseReason::Requested));
    }
}

fn a_close_abandons_a_send(mut rig: Rig) {
    let address = rig.listen();
    for turns in 0..3 {
        let (conn, mut peer) = rig.connect(address);
        rig.backend.send(conn, vec![b'x'; 32 << 20]);
        for _ in 0..turns {
            rig.poll(Duration::from_millis(1));
        }
        rig.backend.close(conn);
        rig.backend.close(conn);
        rig.until("it is closed", |seen| seen.closed.contains_key(&conn));
        assert!(matches!(rig.seen.closed[&conn], CloseReason::Requested));
        assert!(rig.seen.sent.is_empty());
        let mut got = Vec::new();
        let _ = peer.read_to_end(&mut got);
        assert!(got.len() < 32 << 20);
    }
}

fn closing_the_idle(mut rig: Rig) {
    let address = rig.listen();
    let (mut conns, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let (conn, peer) = rig.connect(address);
        conns.push(conn);
        peers.push(peer);
    }
    for conn in conns {
        rig.backend.close(conn);
        // What comes after a close goes nowhere.
        rig.backend.send(conn, vec![1]);
        rig.backend.pause_receive(conn, true);
        rig.backend.pause_receive(conn, false);
    }
    rig.until("all are closed", |seen| seen.closed.len() == 50);
    for mut peer in peers {
        assert_eq!(peer.read(&mut [0]).expect("end of stream"), 0);
    }
}

fn a_pause_is_felt_by_the_peer(mut rig: Rig) {
    const BYTES: usize = 64 << 20;
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    let bytes = pattern(BYTES, 3);
    let expected = bytes.clone();
    rig.backend.pause_receive(conn, true);
    let writer = thread::spawn(move || {
        peer.write_all(&bytes).expect("write");
        peer
    });
    // What was under way may come, no more.
    for _ in 0..10 {
        rig.poll(Duration::from_millis(20));
    }
    let before = rig.seen.received.get(&conn).map_or(0, Vec::len);
    for _ in 0..5 {
        rig.poll(Duration::from_millis(20));
    }
    assert_eq!(rig.seen.received.get(&conn).map_or(0, Vec::len), before);
    assert!(before <= 1 << 20, "{before} bytes came during a pause");
    assert!(!writer.is_finished(), "the peer felt nothing");

    // Quick changes of mind lose nothing.
    for turn in 0..40 {
        rig.backend.pause_receive(conn, turn % 2 == 0);
        if turn % 3 == 0 {
            rig.poll(Duration::from_millis(1));
        }
    }
    rig.backend.pause_receive(conn, false);
    rig.until("everything has come", |seen| {
        seen.received.get(&conn).is_some_and(|bytes| bytes.len() == BYTES)
    });
    assert!(rig.seen.received[&conn] == expected);
    drop(writer.join().expect("the writer"));
    rig.until("it is closed", |seen| seen.closed.contains_key(&conn));
}

fn who_sends_too_fast_is_read_a_little_at_a_time(mut rig: Rig) {
    const BYTES: usize = 16 << 20;
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    let bytes = pattern(BYTES, 5);
    let expected = bytes.clone();
    rig.backend.pause_receive(conn, true);
    rig.poll(Duration::from_millis(10));
    let mut reader = peer.try_clone().expect("clone");
    let writer = thread::spawn(move || peer.write_all(&bytes).expect("write"));
    rig.backend.pause_receive(conn, false);
    let mut replies = 0;
    let (mut sending, mut polls_without_report) = (false, 0);
    let deadline = Instant::now() + PATIENCE;
    while rig.seen.received.get(&conn).map_or(0, Vec::len) < BYTES {
        assert!(Instant::now() < deadline, "the rest never came");
        if !sending {
            rig.backend.send(conn, b"reply".to_vec());
            sending = true;
            polls_without_report = 0;
        }
        let before = rig.seen.received.get(&conn).map_or(0, Vec::len);
        rig.poll(Duration::from_millis(50));
        let share = rig.seen.received.get(&conn).map_or(0, Vec::len) - before;
        assert!(share <= 64 << 10, "{share} bytes of one connection in one poll");
        if rig.seen.sent.pop().is_some() {
            sending = false;
            replies += 1;
        }
        // As long as more comes, too.
        polls_without_report += 1;
        assert!(polls_without_report <= 2, "a send is not reported while its peer sends on");
    }
    writer.join().expect("the writer");
    assert!(rig.seen.received[&conn] == expected);
    let mut got = vec![0; replies * b"reply".len()];
    reader.read_exact(&mut got).expect("the replies");
}

fn a_connection_that_ends_while_paused(mut rig: Rig) {
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    rig.backend.pause_receive(conn, true);
    rig.poll(Duration::from_millis(10));
    peer.write_all(b"last words").expect("write");
    drop(peer);
    rig.poll(Duration::from_millis(10));
    rig.poll(Duration::from_millis(10));
    rig.backend.pause_receive(conn, false);
    rig.until("it is closed", |seen| seen.closed.contains_key(&conn));
    assert_eq!(rig.seen.received[&conn], b"last words");

    let (conn, _peer) = rig.connect(address);
    rig.backend.pause_receive(conn, true);
    rig.backend.close(conn);
    rig.until("it is closed", |seen| seen.closed.contains_key(&conn));
}

fn a_socket_is_handed_over_to_another_thread(mut rig: Rig) {
    const CLIENTS: usize = 20;
    let address = rig.listen();
    let choice = match rig.backend.name() {
        "mio" => BackendChoice::Mio,
        _ => BackendChoice::IoUring,
    };
    let (sender, inbox) = mpsc::channel();
    // Opened here, used there.
    let mut other = Rig::new(open(choice).expect("the first one worked"));
    let waker = other.backend.waker();
    let worker = thread::spawn(move || {
        let deadline = Instant::now() + PATIENCE;
        while other.seen.closed.len() < CLIENTS {
            assert!(Instant::now() < deadline, "waited in vain for connections");
            while let Ok(socket) = inbox.try_recv() {
                other.adopt(socket);
            }
            other.backend.poll(&mut other.seen, Some(PATIENCE)).expect("poll");
            for (conn, bytes) in other.seen.received.drain() {
                other.backend.send(conn, bytes);
            }
        }
    });
    let clients = thread::spawn(move || {
        for number in 0..CLIENTS as u64 {
            let mut peer = TcpStream::connect(address).expect("connect");
            let bytes = pattern(100, number);
            peer.write_all(&bytes).expect("write");
            let mut back = vec![0; bytes.len()];
            peer.read_exact(&mut back).expect("read");
            assert!(back == bytes);
        }
    });
    for _ in 0..CLIENTS {
        rig.until("a connection comes in", |seen| !seen.incoming.is_empty());
        let (socket, _) = rig.seen.incoming.remove(0);
        sender.send(socket).expect("the worker lives");
        waker.wake();
    }
    clients.join().expect("the clients");
    worker.join().expect("the worker");
}

fn slots_come_back_under_a_new_generation(mut rig: Rig) {
    let address = rig.listen();
    let (first, peer) = rig.connect(address);
    drop(peer);
    rig.until("the first is gone", |seen| seen.closed.contains_key(&first));
    let (second, mut peer) = rig.connect(address);
    assert_eq!(second.slot, first.slot);
    assert_ne!(second.generation, first.generation);
    // The old name reaches nobody.
    rig.backend.send(first, b"for the first".to_vec());
    rig.backend.close(first);
    rig.backend.send(second, b"for the second".to_vec());
    rig.until("it is sent", |seen| !seen.sent.is_empty());
    rig.backend.close(second);
    rig.until("the second is gone", |seen| seen.closed.contains_key(&second));
    let mut got = Vec::new();
    peer.read_to_end(&mut got).expect("read");
    assert_eq!(got, b"for the second");
    for _ in 0..200 {
        let (conn, peer) = rig.connect(address);
        assert_eq!(conn.slot, first.slot);
        rig.backend.send_last(conn, vec![7; 10]);
        drop(peer);
        rig.until("it is gone", |seen| seen.closed.contains_key(&conn));
    }
}

fn no_wake_up_is_lost(mut rig: Rig) {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    let (sender, inbox) = mpsc::channel();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (sender, waker) = (sender.clone(), rig.backend.waker());
            thread::spawn(move || {
                for number in 0..EACH {
                    sender.send(()).expect("the test lives");
                    waker.wake();
                    if number % 64 == 0 {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut count = 0;
    while count < THREADS * EACH {
        let started = Instant::now();
        rig.poll(PATIENCE);
        assert!(started.elapsed() < PATIENCE, "a wake-up was lost");
        count += inbox.try_iter().count() as u64;
    }
    for thread in threads {
        thread.join().expect("a thread");
    }
}

fn a_wake_up_before_the_wait_counts(mut rig: Rig) {
    rig.poll(Duration::ZERO);
    rig.backend.waker().wake();
    rig.backend.waker().wake();
    let started = Instant::now();
    rig.poll(PATIENCE);
    assert!(started.elapsed() < PATIENCE / 2);
    // Used up: the next one waits.
    let started = Instant::now();
    rig.poll(Duration::from_millis(30));
    rig.poll(Duration::from_millis(30));
    assert!(started.elapsed() >= Duration::from_millis(30));
}

fn unix_sockets(mut rig: Rig) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ladon.sock");
    let address = ListenAddress::Unix(path.clone());
    let options = ListenOptions { unix_mode: Some(0o600), ..ListenOptions::default() };

    std::fs::write(&path, "precious").expect("a file");
    let error = Listener::bind(&address, &options, 0).expect_err("not a socket");
    assert!(matches!(error, ListenError::NotASocket(_)), "{error}");
    // An empty one keeps the place only, as those that `mkstemp` makes.
    std::fs::write(&path, "").expect("a file");
    drop(Listener::bind(&address, &options, 0).expect("replaces the empty file"));

    // What a killed server leaves behind.
    drop(UnixListener::bind(&path).expect("bind"));
    assert!(path.exists());
    let listener = Listener::bind(&address, &options, 3).expect("replaces the stale one");
    let mode = std::fs::metadata(&path).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = Listener::bind(&address, &options, 0).expect_err("in use");
    assert!(matches!(error, ListenError::InUse(_)), "{error}");

    rig.backend.listen(listener).expect("listen");
    // The probe of the attempt above is gone already, or comes first.
    let mut peer = UnixStream::connect(&path).expect("connect");
    peer.write_all(b"hello").expect("write");
    rig.until("both are in", |seen| seen.incoming.len() == 2);
    assert_eq!(rig.seen.incoming[1].1.listener, 3);
    assert_eq!(rig.seen.incoming[1].1.peer.to_string(), path.display().to_string());
    rig.echo_until("it comes back", |seen| !seen.sent.is_empty());
    let mut back = [0; 5];
    peer.read_exact(&mut back).expect("read");
    assert_eq!(&back, b"hello");

    rig.backend.stop_listening();
    assert!(!path.exists(), "the file is removed");
}

fn more_bytes_than_receive_buffers(mut rig: Rig) {
    const CLIENTS: usize = 120;
    let address = rig.listen();
    let mut expected = Vec::new();
    let mut writers = Vec::new();
    for number in 0..CLIENTS {
        let (conn, mut peer) = rig.connect(address);
        let bytes = pattern(200_000 + number, number as u64);
        expected.push((conn, bytes.clone()));
        writers.push(thread::spawn(move || {
            peer.write_all(&bytes).expect("write");
            peer
        }));
    }
    thread::sleep(Duration::from_millis(50));
    let total: usize = expected.iter().map(|(_, bytes)| bytes.len()).sum();
    rig.until("everything has come", |seen| {
        seen.received.values().map(Vec::len).sum::<usize>() == total
    });
    for (conn, bytes) in expected {
        assert!(rig.seen.received[&conn] == bytes);
    }
}

fn more_sends_than_a_queue_holds(mut rig: Rig) {
    const CLIENTS: usize = 1200;
    let address = rig.listen();
    let mut peers = Vec::new();
    let mut conns = Vec::new();
    for _ in 0..CLIENTS {
        let (conn, peer) = rig.connect(address);
        conns.push(conn);
        peers.push(peer);
    }
    for round in 0..5u8 {
        for conn in &conns {
            rig.backend.send_last(*conn, vec![round; 100]);
        }
        rig.backend.waker().wake();
        rig.until("all are sent", |seen| seen.sent.len() == CLIENTS);
        rig.seen.sent.clear();
        for peer in &mut peers {
            let mut got = [0; 100];
            peer.read_exact(&mut got).expect("read");
            assert_eq!(got, [round; 100]);
        }
    }
}

fn half_closed_peers_get_their_reply(mut rig: Rig) {
    rig.seen.keep_sending = true;
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    peer.write_all(b"one question").expect("write");
    peer.shutdown(Shutdown::Write).expect("shutdown");
    rig.until("the end of input", |seen| seen.ended.contains(&conn));
    assert_eq!(rig.seen.received[&conn], b"one question");
    rig.backend.send(conn, b"one answer".to_vec());
    rig.until("the answer is sent", |seen| seen.sent.len() == 1);
    rig.backend.close(conn);
    rig.until("it is closed", |seen| seen.closed.contains_key(&conn));
    let mut got = Vec::new();
    peer.read_to_end(&mut got).expect("read");
    assert_eq!(got, b"one answer");
}

fn accepted_sockets_inherit_the_options(mut rig: Rig) {
    let options =
        ListenOptions { keepalive: Some(Duration::from_secs(300)), ..ListenOptions::default() };
    let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let listener = Listener::bind(&any, &options, 7).expect("bind");
    let address = tcp(listener.local());
    rig.backend.listen(listener).expect("listen");
    let _peer = TcpStream::connect(address).expect("connect");
    rig.until("a connection comes in", |seen| !seen.incoming.is_empty());
    let (socket, info) = &rig.seen.incoming[0];
    assert_eq!(info.listener, 7);
    assert_eq!(tcp(&info.local), address);
    let socket_ref = SockRef::from(socket);
    assert!(socket_ref.tcp_nodelay().expect("nodelay"));
    assert!(socket_ref.keepalive().expect("keepalive"));
    assert_eq!(socket_ref.tcp_keepalive_time().expect("time"), Duration::from_secs(300));
    assert_eq!(socket_ref.tcp_keepalive_interval().expect("interval"), Duration::from_secs(100));
    set_keepalive(socket, None).expect("off");
    assert!(!socket_ref.keepalive().expect("keepalive"));
}

fn after_stop_listening_nobody_gets_in(mut rig: Rig) {
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    rig.backend.stop_listening();
    rig.poll(Duration::from_millis(10));
    let error = TcpStream::connect(address).expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    // Who is in stays in.
    peer.write_all(b"still here").expect("write");
    rig.until("it is heard", |seen| seen.received.contains_key(&conn));
    let again = rig.listen();
    rig.connect(again);
}

fn a_listener_goes_and_its_neighbours_stay(mut rig: Rig) {
    let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let bind = || Listener::bind(&any, &ListenOptions::default(), 0).expect("bind");
    let (goes, stays, comes) = (bind(), bind(), bind());
    assert!(goes == goes.clone() && goes != stays);
    for listener in [&goes, &stays] {
        rig.backend.listen(listener.clone()).expect("listen");
    }
    let (conn, mut peer) = rig.connect(tcp(goes.local()));
    // Several times, as descriptors and numbers come back.
    for _ in 0..3 {
        rig.backend.retain_listeners(|listener| *listener == stays);
        rig.poll(Duration::from_millis(10));
        rig.connect(tcp(stays.local()));
        rig.backend.listen(comes.clone()).expect("listen");
        rig.connect(tcp(comes.local()));
        rig.connect(tcp(stays.local()));
    }
    // A clone keeps the address taken until it is shut down.
    let again = ListenAddress::Tcp(tcp(goes.local()));
    let at_once = ListenOptions { in_use_patience: Duration::ZERO, ..ListenOptions::default() };
    let error = Listener::bind(&again, &at_once, 0).expect_err("taken");
    assert!(matches!(error, ListenError::InUse(_)), "{error}");
    goes.shut_down();
    let error = TcpStream::connect(tcp(goes.local())).expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let back = Listener::bind(&again, &at_once, 0).expect("free again");
    assert_eq!(*back.asked(), again);
    rig.backend.listen(back).expect("listen");
    rig.connect(tcp(goes.local()));
    // Who is in stays in.
    peer.write_all(b"still here").expect("write");
    rig.until("it is heard", |seen| seen.received.contains_key(&conn));
}

fn a_flood_does_not_starve_the_others(mut rig: Rig) {
    let address = rig.listen();
    let (flood, mut flooding) = rig.connect(address);
    let (quiet, mut peer) = rig.connect(address);
    let flooder = thread::spawn(move || while flooding.write_all(&[0; 1 << 20]).is_ok() {});
    rig.until("the flood is here", |seen| {
        seen.received.get(&flood).is_some_and(|bytes| bytes.len() > 4 << 20)
    });
    for round in 0..20 {
        rig.seen.received.clear();
        peer.write_all(b"ping").expect("write");
        let mut polls = 0;
        while !rig.seen.received.contains_key(&quiet) {
            rig.poll(Duration::from_millis(50));
            polls += 1;
        }
        assert!(polls <= 50, "round {round}: {polls} polls");
        let flooded = rig.seen.received.get(&flood).map_or(0, Vec::len);
        assert!(flooded / polls <= 9 << 20, "round {round}: {flooded} bytes in {polls} polls");
    }
    rig.backend.close(flood);
    rig.until("it is closed", |seen| seen.closed.contains_key(&flood));
    flooder.join().expect("the flooder");
}

fn dropping_a_busy_backend_hangs_up(mut rig: Rig) {
    let address = rig.listen();
    let (idle, mut idle_peer) = rig.connect(address);
    let (busy, mut busy_peer) = rig.connect(address);
    rig.backend.send(busy, vec![b'x'; 32 << 20]);
    rig.poll(Duration::from_millis(1));
    idle_peer.write_all(b"unread").expect("write");
    assert_ne!(idle, busy);
    drop(rig);
    let mut got = Vec::new();
    let _ = busy_peer.read_to_end(&mut got);
    assert!(got.len() < 32 << 20);
    let _ = idle_peer.read_to_end(&mut got);
    assert!(TcpStream::connect(address).is_err());
}

fn a_last_send_is_reported_with_the_next_event(mut rig: Rig) {
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    rig.backend.send_last(conn, b"pong".to_vec());
    // On the wire without any event, though perhaps not reported.
    rig.poll(Duration::from_millis(1));
    let mut got = [0; 4];
    peer.read_exact(&mut got).expect("read");
    assert_eq!(&got, b"pong");
    peer.write_all(b"ping").expect("write");
    rig.until("it is heard", |seen| seen.received.contains_key(&conn));
    rig.until("it is reported", |seen| seen.sent == [(conn, b"pong".to_vec().into())]);
}

fn another_thread_sends_and_the_end_is_felt_all_the_same(mut rig: Rig) {
    let address = rig.listen();
    let (conn, mut peer) = rig.connect(address);
    let sender = rig.backend.direct_sender(conn).expect("it is open");
    let elsewhere = sender.clone();
    assert_eq!(thread::spawn(move || elsewhere.send(b"direct")).join().expect("sent"), 6);
    let mut got = [0; 6];
    peer.read_exact(&mut got).expect("arrives");
    assert_eq!(&got, b"direct");
    // What the socket has no room for is not waited for.
    let huge = vec![b'x'; 64 << 20];
    let taken = sender.send(&huge);
    assert!(taken < huge.len());
    rig.backend.close(conn);
    assert!(rig.backend.direct_sender(conn).is_none());
    rig.until("it is closed", |seen| seen.closed.contains_key(&conn));
    // The sender keeps the descriptor, and with it no one else's connection is reached.
    let (next, mut next_peer) = rig.connect(address);
    assert_eq!(sender.send(b"nobody"), 0);
    rig.backend.send(next, b"next".to_vec());
    rig.until("the next is served", |seen| !seen.sent.is_empty());
    let mut got = [0; 4];
    next_peer.read_exact(&mut got).expect("arrives");
    assert_eq!(&got, b"next");
    let mut rest = Vec::new();
    let _ = peer.read_to_end(&mut rest);
    assert!(rest.len() <= taken);
}

fn ipv6(mut rig: Rig) {
    let any = ListenAddress::Tcp((std::net::Ipv6Addr::LOCALHOST, 0).into());
    let Ok(listener) = Listener::bind(&any, &ListenOptions::default(), 0) else {
        eprintln!("*** NOT TESTED: this machine has no IPv6 ***");
        return;
    };
    let address = tcp(listener.local());
    rig.backend.listen(listener).expect("listen");
    let (conn, mut peer) = rig.connect(address);
    peer.write_all(b"six").expect("write");
    rig.until("it is heard", |seen| seen.received.contains_key(&conn));
}

#[test]
fn a_port_that_is_about_to_be_free_is_waited_for() {
    let busy = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = ListenAddress::Tcp(busy.local_addr().expect("address"));
    let error = Listener::bind(&address, &ListenOptions::default(), 0).expect_err("in use");
    assert!(matches!(error, ListenError::InUse(_)), "{error}");
    let holder = thread::spawn(move || {
        thread::sleep(Duration::from_millis(700));
        drop(busy);
    });
    Listener::bind(&address, &ListenOptions::default(), 0).expect("free by now");
    holder.join().expect("the holder");
}
