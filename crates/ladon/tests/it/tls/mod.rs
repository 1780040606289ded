//! TLS from outside, with rustls as the client, on both backends.

mod attacks;
pub mod certificates;
mod client;
mod handshakes;
mod other_protocols;
mod reload;
mod replication;
mod tools;
mod users;

use crate::live::{bulk, ok, on_both_backends, pong};
use certificates::{Authority, Identity, text};
use client::{BOTH, TlsClient, config};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use ladon_testkit::Ports;

/// An authority, and the ports and files of a server.
struct Door {
    authority: Authority,
    server: Identity,
    ports: Ports,
}

impl Door {
    fn new() -> Door {
        let authority = Authority::new();
        let server = authority.server("server");
        Door { authority, server, ports: Ports::take(4).expect("ports") }
    }

    fn port(&self) -> u16 {
        self.ports.first()
    }

    fn iproto_port(&self) -> u16 {
        self.ports.first() + 1
    }

    /// Runs a test on servers of both backends with these settings besides.
    fn on_both(&self, more: &[&str], test: impl Fn(&Server)) {
        let (port, iproto) = (self.port().to_string(), format!("127.0.0.1:{}", self.iproto_port()));
        let ca = self.authority.ca_file();
        let mut arguments = vec!["--io-threads", "2", "--tls-port", &port, "--iproto-tls", &iproto];
        arguments.extend(["--tls-cert-file", text(&self.server.cert_file)]);
        arguments.extend(["--tls-key-file", text(&self.server.key_file)]);
        arguments.extend(["--tls-ca-cert-file", text(&ca)]);
        arguments.extend(more);
        on_both_backends(&arguments, test);
    }
}

const NO_CLIENTS: &[&str] = &["--tls-auth-clients", "no"];

/// Waits for a line in the server's log; fails after a minute.
#[track_caller]
fn await_log(server: &Server, words: &str) {
    for _ in 0..6_000 {
        if server.output().contains(words) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{words:?} is not in {}", server.output());
}

#[test]
fn requests_of_any_length_are_served_in_both_versions() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        for versions in [&BOTH[..1], &BOTH[1..]] {
            let config = config(&door.authority, None, versions);
            let mut client = TlsClient::connect(door.port(), &config);
            assert_eq!(client.call(&["SET", "a", "b"]).unwrap(), ok());
            assert_eq!(client.call(&["GET", "a"]).unwrap(), bulk("b"));
            assert_eq!(client.tls.protocol_version(), Some(versions[0].version));
            // Around the lengths of records and of the server's chunks.
            for length in [1, 16_383, 16_384, 16_385, 49_151, 49_152, 49_153, 70_000, 3_000_000] {
                let value: String =
                    (0..length).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
                assert_eq!(client.call(&["SET", "long", &value]).unwrap(), ok());
                assert!(client.call(&["GET", "long"]).unwrap() == bulk(&value), "{length}");
                // The plain port shows the same.
                let mut plain = server.connect().expect("connects");
                assert!(plain.call(&["GET", "long"]).expect("a reply") == bulk(&value));
            }
            let pings = b"PING\r\n".repeat(20_000);
            client.send(&pings).unwrap();
            for _ in 0..20_000 {
                assert_eq!(client.reply().unwrap(), pong());
            }
        }
    });
}

#[test]
fn waits_and_messages_reach_a_client_of_tls() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        let config = config(&door.authority, None, BOTH);
        let mut waiting = TlsClient::connect(door.port(), &config);
        let mut plain = server.connect().expect("connects");
        for round in 0..50 {
            waiting.send(b"BLPOP queue 0\r\n").unwrap();
            let value = round.to_string();
            plain.call(&["RPUSH", "queue", &value]).expect("a reply");
            assert_eq!(waiting.reply().unwrap(), Value::Array(vec![bulk("queue"), bulk(&value)]));
        }
        waiting.send(b"SUBSCRIBE news\r\n").unwrap();
        waiting.reply().unwrap();
        for _ in 0..50 {
            plain.call(&["PUBLISH", "news", "it works"]).expect("a reply");
            let message = [bulk("message"), bulk("news"), bulk("it works")];
            assert_eq!(waiting.reply().unwrap(), Value::Array(message.into()));
        }
    });
}

#[test]
fn an_end_is_said() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        let config = config(&door.authority, None, BOTH);
        let mut client = TlsClient::connect(door.port(), &config);
        assert_eq!(client.call(&["QUIT"]).unwrap(), ok());
        // Without close_notify this is an error of rustls: the end may be somebody else's.
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);

        // A client that says its end gets the replies that it is owed.
        let mut client = TlsClient::connect(door.port(), &config);
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        client.send(b"INCR n\r\nINCR n\r\n").unwrap();
        client.tls.send_close_notify();
        client.tls.write_tls(&mut client.socket).unwrap();
        assert!(matches!(client.reply(), Ok(Value::Integer(_))));
        assert!(matches!(client.reply(), Ok(Value::Integer(_))));
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);

        // One that is killed learns it as well.
        let mut client = TlsClient::connect(door.port(), &config);
        let Ok(Value::Integer(id)) = client.call(&["CLIENT", "ID"]) else { panic!("an id") };
        let mut plain = server.connect().expect("connects");
        let killed = plain.call(&["CLIENT", "KILL", "ID", &id.to_string()]).expect("a reply");
        assert_eq!(killed, Value::Integer(1));
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    });
}

#[test]
fn iproto_is_spoken_inside_tls_too() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |_| {
        let config = config(&door.authority, None, BOTH);
        let mut client = TlsClient::connect(door.iproto_port(), &config);
        let mut greeting = [0; 128];
        let mut read = 0;
        while read < greeting.len() {
            read += client.read(&mut greeting[read..]).expect("a greeting");
        }
        assert!(greeting.starts_with(b"Tarantool 2."), "{}", String::from_utf8_lossy(&greeting));
        // IPROTO_PING: a header of {type: 64, sync: 7}.
        client.send(b"\x05\x82\x00\x40\x01\x07").expect("sent");
        let mut reply = [0; 64];
        let read = client.read(&mut reply).expect("a reply");
        let is_ok = reply[..read].starts_with(b"\xce\0\0\0\x1c\x83\0\xce\0\0\0\0");
        let answers = reply[..read].windows(10).any(|bytes| bytes == b"\x01\xcf\0\0\0\0\0\0\0\x07");
        assert!(is_ok && answers, "{:x?}", &reply[..read]);
    });
}

#[test]
fn clients_at_the_wrong_port_are_told_of_in_the_log() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        let mut plain = Client::connect(door.port()).expect("connects");
        assert!(plain.call(&["PING"]).is_err(), "TLS answers no PING");
        await_log(server, "it does not speak TLS; clients without TLS have another port");
        let config = config(&door.authority, None, BOTH);
        let mut confused = TlsClient::connect(server.port, &config);
        assert!(confused.call(&["PING"]).is_err());
        await_log(server, "it speaks TLS, and its port does not; tls-port does");
        let mut right = TlsClient::connect(door.port(), &config);
        assert_eq!(right.call(&["PING"]).unwrap(), pong());
    });
}

#[test]
fn info_lists_the_listeners() {
    let door = Door::new();
    door.on_both(NO_CLIENTS, |server| {
        let mut plain = server.connect().expect("connects");
        let info = plain.call(&["INFO", "server"]).expect("a reply");
        let info = String::from_utf8_lossy(info.as_bytes().expect("text")).into_owned();
        for (index, name, port) in [(1, "tls", door.port()), (2, "iproto-tls", door.iproto_port())]
        {
            let line = format!("listener{index}:name={name},bind=127.0.0.1,port={port}");
            assert!(info.contains(&line), "{line} is not in {info}");
        }
        // As in Redis, without another port it is the port.
        assert_eq!(plain.call(&["CONFIG", "SET", "port", "0"]).expect("a reply"), ok());
        let port = crate::live::info_number(&mut plain, "server", "tcp_port");
        assert_eq!(port, u64::from(door.port()));
        let mut back = plain;
        let port = server.port.to_string();
        assert_eq!(back.call(&["CONFIG", "SET", "port", &port]).expect("a reply"), ok());
    });
}
