//! Users: who has to log in, how, and what rights they have.

use super::{Memcached, Node, stop};
use crate::live::{call, ok};
use std::io::Read;

/// A SASL packet: PLAIN, with a user's name and password.
fn plain(user: &str, password: &str) -> Vec<u8> {
    let value = format!("\0{user}\0{password}");
    let mut bytes = vec![0x80, 0x21, 0, 5, 0, 0, 0, 0];
    bytes.extend_from_slice(&(5 + value.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&[0; 12]);
    [&bytes[..], b"PLAIN", value.as_bytes()].concat()
}

fn packet(opcode: u8, key: &str) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode, 0, key.len() as u8, 0, 0, 0, 0, 0, 0, 0, key.len() as u8];
    bytes.extend_from_slice(&[0; 12]);
    [&bytes[..], key.as_bytes()].concat()
}

/// The status of the next binary reply.
fn status(client: &mut Memcached) -> u16 {
    let mut head = [0; 24];
    client.0.read_exact(&mut head).expect("a reply");
    let length = u32::from_be_bytes(head[8..12].try_into().expect("four"));
    client.0.read_exact(&mut vec![0; length as usize]).expect("a body");
    u16::from_be_bytes([head[6], head[7]])
}

#[test]
fn who_has_to_log_in_does_so_with_a_set() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "requirepass", "secret"]), ok());
    let words = ["ACL", "SETUSER", "bob", "on", ">pw", "~b:*", "+get", "+set", "+incrby"];
    assert_eq!(call(&mut redis, &words), ok());
    let mut client = node.connect();
    let mut ask = |request: &str| {
        client.send(request);
        String::from_utf8(client.until(b"\r\n")).expect("text")
    };
    assert_eq!(ask("get b:1\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(ask("version\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    let failure = "CLIENT_ERROR authentication failure\r\n";
    assert_eq!(ask("set x 0 0 9\r\nbob wrong\r\n"), failure);
    assert_eq!(ask("set x 0 0 7\r\nnobo pw\r\n"), failure);
    assert_eq!(ask("set x 0 0 3\r\nbob\r\n"), "CLIENT_ERROR bad authentication token format\r\n");
    assert_eq!(ask("set x 0 0 6\r\nbob pw\r\n"), "STORED\r\n");
    assert_eq!(ask("set b:1 0 0 1\r\n1\r\n"), "STORED\r\n");
    assert_eq!(ask("incr b:1 1\r\n"), "2\r\n");
    for refused in ["get a\r\n", "set a 0 0 1\r\n1\r\n", "delete b:1\r\n", "flush_all\r\n"] {
        assert!(ask(refused).starts_with("SERVER_ERROR NOPERM"), "{refused}");
    }
    assert!(ask("stats\r\n").starts_with("SERVER_ERROR NOPERM"));
    let mut other = node.connect();
    other.send("set x 0 0 14\r\ndefault secret\r\nset a 0 0 1\r\n1\r\nget a\r\n");
    let end = String::from_utf8(other.until(b"END\r\n")).expect("text");
    assert_eq!(end, "STORED\r\nSTORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
    let log = call(&mut redis, &["ACL", "LOG"]);
    assert!(format!("{log:?}").len() > 100, "nothing was written down");
    stop(server);
}

#[test]
fn sasl_logs_in_over_the_binary_protocol() {
    const AUTH_ERROR: u16 = 0x20;
    let node = Node::new(&[]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "requirepass", "secret"]), ok());
    let mut client = node.connect();
    client.send(packet(0x20, ""));
    assert_eq!(status(&mut client), 0);
    client.send(plain("default", "wrong"));
    assert_eq!(status(&mut client), AUTH_ERROR);
    client.send(plain("default", "secret"));
    assert_eq!(status(&mut client), 0);
    client.send(packet(0x00, "missing"));
    assert_eq!(status(&mut client), 1);
    let mut stranger = node.connect();
    stranger.send(packet(0x00, "missing"));
    assert_eq!(status(&mut stranger), AUTH_ERROR);
    assert_eq!(stranger.rest(), b"");
    stop(server);
}
