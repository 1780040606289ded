//! `CONFIG SET` of `port`, `bind` and `resp` on a running server, on both backends.

use crate::live::{self, call, error, ok, on_both_backends, pong};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use ladon_testkit::Ports;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

fn reach(host: &str, port: u16) -> Option<Client> {
    let mut client = Client::on(TcpStream::connect((host, port)).ok()?).ok()?;
    assert_eq!(call(&mut client, &["PING"]), pong());
    Some(client)
}

fn set(client: &mut Client, words: &[&str]) -> Value {
    call(client, &[&["CONFIG", "SET"], words].concat())
}

fn get(client: &mut Client, name: &str) -> String {
    let Value::Array(pair) = call(client, &["CONFIG", "GET", name]) else { panic!("{name}") };
    String::from_utf8_lossy(pair[1].as_bytes().expect("a text")).into_owned()
}

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

#[test]
fn the_port_changes_and_nobody_is_hung_up_on() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut clients = [connect(server), connect(server), connect(server)];
        for client in &mut clients {
            assert_eq!(call(client, &["PING"]), pong(), "it was let in, not only queued");
        }
        let other = Ports::take(1).expect("a port");
        let (first, second) = (server.port, other.first());
        let mut here = first;
        // There and back, several times: no address stays taken by what has gone.
        for next in [second, first, second, second, first] {
            assert_eq!(set(&mut clients[0], &["port", &next.to_string()]), ok());
            assert!(reach("127.0.0.1", next).is_some(), "the new port answers at once");
            assert!(next == here || reach("127.0.0.1", here).is_none(), "the old one is closed");
            assert_eq!(get(&mut clients[1], "port"), next.to_string());
            assert_eq!(get(&mut clients[1], "resp"), format!("127.0.0.1:{next}"));
            let known = live::info_number(&mut clients[2], "server", "tcp_port");
            assert_eq!(known, u64::from(next));
            here = next;
        }
        for client in &mut clients {
            assert_eq!(call(client, &["PING"]), pong(), "who was in stays in");
        }
        // In one batch, before the accepting thread has taken over.
        let both = format!("CONFIG SET port {second}\r\nCONFIG SET port {first}\r\n");
        clients[0].send(both.as_bytes()).expect("sent");
        assert_eq!(clients[0].reply().expect("a reply"), ok());
        assert_eq!(clients[0].reply().expect("a reply"), ok());
        assert!(reach("127.0.0.1", first).is_some() && reach("127.0.0.1", second).is_none());
    });
}

#[test]
fn what_cannot_be_bound_changes_nothing() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = connect(server);
        let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = taken.local_addr().expect("an address").port().to_string();
        let failed = |name: &str, reason: &str| {
            let related = format!("possibly related to argument '{name}'");
            error(&format!("ERR CONFIG SET failed ({related}) - {reason}"))
        };
        let no_port = failed("port", "Unable to listen on this port. Check server logs.");
        assert_eq!(set(&mut client, &["port", &port]), no_port);
        assert_eq!(set(&mut client, &["maxmemory", "77mb", "port", &port]), no_port);
        assert_eq!(get(&mut client, "maxmemory"), "0", "all or nothing");
        let no_address = failed("bind", "Failed to bind to specified addresses.");
        // TEST-NET-1 is nobody's address.
        assert_eq!(set(&mut client, &["bind", "127.0.0.1 192.0.2.1"]), no_address);
        assert_eq!(set(&mut client, &["bind", "127.0.0.1 -192.0.2.1"]), ok(), "an optional one");
        assert_eq!(set(&mut client, &["bind", "127.0.0.1"]), ok());
        assert_eq!(get(&mut client, "port"), server.port.to_string());
        assert_eq!(get(&mut client, "bind"), "127.0.0.1");
        assert!(reach("127.0.0.1", server.port).is_some(), "and it is still here");
        assert!(server.output().contains("in use"), "the log says why: {}", server.output());
    });
}

#[test]
fn addresses_come_and_go_and_the_others_stay() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ladon.sock");
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut client = connect(server);
        let port = server.port;
        assert_eq!(set(&mut client, &["bind", "127.0.0.1 127.0.0.2"]), ok());
        assert!(reach("127.0.0.1", port).is_some() && reach("127.0.0.2", port).is_some());
        assert_eq!(set(&mut client, &["bind", "127.0.0.2"]), ok());
        assert!(reach("127.0.0.1", port).is_none() && reach("127.0.0.2", port).is_some());
        let all = format!("127.0.0.1:{port} unix:{}", path.display());
        assert_eq!(set(&mut client, &["resp", &all]), ok());
        assert!(reach("127.0.0.1", port).is_some() && reach("127.0.0.2", port).is_none());
        assert!(UnixStream::connect(&path).is_ok());
        assert_eq!(set(&mut client, &["port", "0"]), ok(), "the unix socket alone");
        assert!(reach("127.0.0.1", port).is_none() && UnixStream::connect(&path).is_ok());
        assert_eq!(set(&mut client, &["resp", &format!("127.0.0.1:{port}")]), ok());
        assert!(UnixStream::connect(&path).is_err());
        assert!(reach("127.0.0.1", port).is_some());
    });
    assert!(!path.exists(), "the socket's file is gone");
}

#[test]
fn keepalive_holds_for_connections_to_come() {
    on_both_backends(&["--io-threads", "1", "--tcp-keepalive", "100"], |server| {
        let mut before = connect(server);
        assert_eq!(set(&mut before, &["tcp-keepalive", "7"]), ok());
        let mut after = connect(server);
        assert_eq!(call(&mut after, &["PING"]), pong());
        let seconds = |client: &mut Client| {
            let port = client.stream().local_addr().expect("an address").port();
            keepalive_timer_seconds(server, port)
        };
        let (before, after) = (seconds(&mut before), seconds(&mut after));
        assert!((8.0..=100.0).contains(&before), "{before}");
        assert!((0.0..=7.0).contains(&after), "{after}");
    });
}

/// Seconds until the kernel probes the peer on this port, out of `/proc/net/tcp`.
fn keepalive_timer_seconds(server: &Server, peer: u16) -> f64 {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let (ours, theirs) = (format!(":{:04X}", server.port), format!(":{peer:04X}"));
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = fields.into_iter().find(|it| it[1].ends_with(&ours) && it[2].ends_with(&theirs));
    let timer = line.expect("the connection")[5];
    let (kind, jiffies) = timer.split_once(':').expect("a timer");
    assert_eq!(kind, "02", "a keepalive timer runs");
    i64::from_str_radix(jiffies, 16).expect("a number") as f64 / 100.0
}
