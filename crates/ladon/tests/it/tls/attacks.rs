//! Clients that break TLS, or use it against the server. What the others get is counted, never
//! timed.

use super::client::{BOTH, TlsClient, config, connection, socket};
use super::{Door, NO_CLIENTS, await_log};
use crate::live::{bulk, ok, peak_bytes, pong, rss_bytes};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The first message of a handshake.
fn client_hello(door: &Door) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut tls = connection(&config(&door.authority, None, BOTH));
    tls.write_tls(&mut bytes).expect("a message");
    bytes
}

/// It comes from where the attack comes from, so on a busy machine it may be taken for a part of that,
/// and has to come again.
fn is_served(door: &Door) {
    const ATTEMPTS: usize = 3;
    let mut attempts = (0..ATTEMPTS).map(|_| {
        let mut client = TlsClient::connect(door.port(), &config(&door.authority, None, BOTH));
        client.call(&["PING"])
    });
    let answered = attempts.find_map(Result::ok).expect("a reply");
    assert_eq!(answered, pong());
}

/// Whether the server hangs up, whatever it says before.
fn hangs_up(socket: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    // A reset is an end too; a timeout is none.
    match socket.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn half_open_handshakes_are_bounded_and_hold_up_nobody() {
    /// More than may be half open.
    const MANY: usize = 1_300;
    let door = Door::new();
    let hello = client_hello(&door);
    door.on_both(NO_CLIENTS, |server| {
        let mut plain = server.connect().expect("connects");
        is_served(&door);
        let before = rss_bytes(server);
        for begun in [&b""[..], &hello[..5], &hello[..hello.len() - 1], &hello] {
            let mut half_open: Vec<TcpStream> = Vec::new();
            for _ in 0..MANY {
                let mut socket = socket(door.port());
                // The oldest may be closed already.
                let _ = socket.write_all(begun);
                half_open.push(socket);
            }
            is_served(&door);
            assert_eq!(plain.call(&["PING"]).expect("a reply"), pong());
            assert!(hangs_up(&mut half_open[0]), "the oldest has to make room");
        }
        await_log(server, "there are too many others that wait as well");
        let grown = rss_bytes(server).saturating_sub(before);
        assert!(grown < 64 << 20, "{grown} bytes");
    });
}

#[test]
fn requests_may_come_in_pieces_of_any_size() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |_| {
        for versions in [&BOTH[..1], &BOTH[1..]] {
            let mut client =
                TlsClient::connect(door.port(), &config(&door.authority, None, versions));
            assert_eq!(client.call(&["PING"]).unwrap(), pong());
            // Records byte by byte.
            let mut records = Vec::new();
            for request in [&b"SET a "[..], b"1\r\n", b"GET a\r\nPING\r\n"] {
                client.tls.writer().write_all(request).unwrap();
                client.tls.write_tls(&mut records).unwrap();
            }
            for byte in &records {
                client.socket.write_all(std::slice::from_ref(byte)).unwrap();
            }
            assert_eq!(client.reply().unwrap(), ok());
            assert_eq!(client.reply().unwrap(), bulk("1"));
            assert_eq!(client.reply().unwrap(), pong());
        }
    });
}

#[test]
fn tiny_records_are_all_opened_and_leave_turns_to_others() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        let mut client = TlsClient::connect(door.port(), &config(&door.authority, None, BOTH));
        assert_eq!(client.call(&["SET", "n", "0"]).unwrap(), ok());
        let mut records = Vec::new();
        for byte in b"INCR n\r\n".repeat(3_000) {
            client.tls.writer().write_all(&[byte]).unwrap();
            client.tls.write_tls(&mut records).unwrap();
        }
        let mut sender = client.socket.try_clone().expect("a socket");
        let sending = std::thread::spawn(move || sender.write_all(&records));
        let mut plain = server.connect().expect("connects");
        for count in 1..=3_000 {
            assert_eq!(client.reply().unwrap(), ladon_resp::client::Value::Integer(count));
            if count % 100 == 0 {
                assert_eq!(plain.call(&["PING"]).expect("a reply"), pong());
            }
        }
        sending.join().expect("ends").expect("sent");
    });
}

#[test]
fn junk_ends_its_own_connection_only() {
    let door = Door::new();
    let hello = client_hello(&door);
    door.on_both(NO_CLIENTS, |_| {
        let mut polite = TlsClient::connect(door.port(), &config(&door.authority, None, BOTH));
        assert_eq!(polite.call(&["PING"]).unwrap(), pong());
        let mut check = |junk: &[u8], after_a_handshake: bool| {
            let mut socket = if after_a_handshake {
                let config = config(&door.authority, None, BOTH);
                let mut client = TlsClient::connect(door.port(), &config);
                assert_eq!(client.call(&["PING"]).unwrap(), pong());
                client.socket
            } else {
                socket(door.port())
            };
            socket.write_all(junk).expect("sent");
            assert!(hangs_up(&mut socket), "{junk:x?}");
            assert_eq!(polite.call(&["PING"]).unwrap(), pong());
        };
        let long = [&b"\x16\x03\x01\xff\xff"[..], &[7; 70_000]].concat();
        for junk in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"\x00",
            b"\x16\x03\x01\x00\x04abcd",
            b"\x17\x03\x03\x00\x04abcd",
            b"\x15\x03\x03\x00\x02\x02\x28",
            &b"\x14\x03\x03\x00\x01\x01".repeat(4),
            &long,
        ] {
            check(junk, false);
            if junk[0] != 0x14 {
                check(junk, true);
            }
        }
        // A second handshake in the middle of the first, and after it.
        check(&hello.repeat(2), false);
        check(&hello, true);
        is_served(&door);
    });
}

#[test]
fn key_updates_are_followed_and_a_flood_of_them_ends() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |_| {
        let config = config(&door.authority, None, &BOTH[1..]);
        let mut client = TlsClient::connect(door.port(), &config);
        for _ in 0..50 {
            assert_eq!(client.call(&["PING"]).unwrap(), pong());
            client.tls.refresh_traffic_keys().unwrap();
        }
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        let mut ends = false;
        for _ in 0..1_000 {
            client.tls.refresh_traffic_keys().unwrap();
            ends |= client.tls.write_tls(&mut client.socket).is_err();
        }
        assert!(ends || hangs_up(&mut client.socket));
        is_served(&door);
    });
}

#[test]
fn who_never_reads_holds_up_nobody_and_costs_what_it_was_sent() {
    const VALUE: usize = 3 << 20;
    let door = Door::new();
    let limit = ["--client-output-buffer-limit", "normal 64mb 0 0"];
    door.on_both(&[NO_CLIENTS, &limit].concat(), |server| {
        let config = config(&door.authority, None, BOTH);
        let mut polite = TlsClient::connect(door.port(), &config);
        assert_eq!(polite.call(&["SET", "long", &"x".repeat(VALUE)]).unwrap(), ok());
        let before = peak_bytes(server);
        let mut deaf: Vec<TlsClient> =
            (0..20).map(|_| TlsClient::connect(door.port(), &config)).collect();
        for client in &mut deaf {
            assert_eq!(client.call(&["PING"]).unwrap(), pong());
            client.send(&b"GET long\r\n".repeat(10)).unwrap();
        }
        for _ in 0..200 {
            assert_eq!(polite.call(&["PING"]).unwrap(), pong());
        }
        let grown = peak_bytes(server).saturating_sub(before);
        assert!(grown < 256 << 20, "{grown} bytes");
        // Each of them may still read all of it.
        let mut read = 0;
        let mut buffer = vec![0; 64 << 10];
        let first = &mut deaf[0];
        first.socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        while read < 10 * (VALUE + b"$3145728\r\n\r\n".len()) {
            read += first.read(&mut buffer).expect("bytes");
        }
        drop(deaf);
        is_served(&door);
    });
}

/// Memory of the client of this name, as `CLIENT LIST` shows it.
fn total_memory(list: &ladon_resp::client::Value, name: &str) -> usize {
    let text = String::from_utf8_lossy(list.as_bytes().expect("a text")).into_owned();
    let line = text.lines().find(|line| line.contains(&format!(" name={name} "))).expect("a line");
    let word = line.split(' ').find_map(|word| word.strip_prefix("tot-mem=")).expect("a field");
    word.parse().expect("a number")
}

#[test]
fn what_tls_holds_counts_as_the_clients_memory() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        let mut plain = server.connect().expect("connects");
        let mut sealed = TlsClient::connect(door.port(), &config(&door.authority, None, BOTH));
        assert_eq!(plain.call(&["CLIENT", "SETNAME", "open"]).expect("a reply"), ok());
        assert_eq!(sealed.call(&["CLIENT", "SETNAME", "shut"]).unwrap(), ok());
        let mut memory = |name| {
            let list = plain.call(&["CLIENT", "LIST"]).expect("a reply");
            total_memory(&list, name)
        };
        let began = std::time::Instant::now();
        // Its last request's buffer is given back at the end of a turn.
        let idle = loop {
            let bytes = memory("shut");
            if bytes < 8 << 10 {
                break bytes;
            }
            assert!(began.elapsed().as_secs() < 20, "{bytes}");
        };
        assert!(idle > 3_900, "{idle}");
        // The head of a record of 16 kB, and half of it.
        sealed.socket.write_all(b"\x17\x03\x03\x40\x00").expect("sent");
        sealed.socket.write_all(&[0; 8 << 10]).expect("sent");
        while memory("shut") < idle + (8 << 10) {
            assert!(began.elapsed().as_secs() < 20, "{} after {idle}", memory("shut"));
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
