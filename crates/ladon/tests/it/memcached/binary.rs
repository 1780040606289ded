//! The binary protocol.

use super::{Memcached, Node, stop};
use ladon_memcache::binary::{REQUEST, opcode, status};
use std::io::Read;

/// A request.
#[derive(Clone, Copy, Default)]
struct Packet<'a> {
    opcode: u8,
    extras: &'a [u8],
    key: &'a [u8],
    value: &'a [u8],
    cas: u64,
}

/// A reply: opcode, status, version, extras, key, value.
#[derive(Debug, PartialEq)]
struct Reply(u8, u16, u64, Vec<u8>, Vec<u8>, Vec<u8>);

fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    let Packet { opcode, extras, key, value, cas } = *packet;
    let mut bytes = vec![REQUEST, opcode];
    bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    let body = extras.len() + key.len() + value.len();
    bytes.extend_from_slice(&(body as u32).to_be_bytes());
    bytes.extend_from_slice(b"opaq");
    bytes.extend_from_slice(&cas.to_be_bytes());
    [&bytes[..], extras, key, value].concat()
}

fn reply(client: &mut Memcached) -> Reply {
    let mut head = [0; 24];
    client.0.read_exact(&mut head).expect("a reply");
    assert_eq!((head[0], &head[12..16]), (0x81, &b"opaq"[..]));
    let key = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let extras = usize::from(head[4]);
    let length = u32::from_be_bytes(head[8..12].try_into().expect("four"));
    let mut body = vec![0; length as usize];
    client.0.read_exact(&mut body).expect("a body");
    let value = body.split_off(extras + key);
    let key = body.split_off(extras);
    let cas = u64::from_be_bytes(head[16..].try_into().expect("eight"));
    Reply(head[1], u16::from_be_bytes([head[6], head[7]]), cas, body, key, value)
}

fn ask(client: &mut Memcached, packet: Packet<'_>) -> Reply {
    client.send(bytes(&packet));
    let reply = reply(client);
    assert_eq!(reply.0, packet.opcode);
    reply
}

const FLAGS_7: &[u8] = &[0, 0, 0, 7, 0, 0, 0, 0];

fn get<'a>(key: &'a [u8]) -> Packet<'a> {
    Packet { opcode: opcode::GET, key, ..Packet::default() }
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Packet<'a> {
    Packet { opcode: opcode::SET, extras: FLAGS_7, key, value, cas: 0 }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story of one client")]
fn every_request_is_answered() {
    let node = Node::new(&[]);
    let server = node.start();
    let (client, text) = (&mut node.connect(), &mut node.connect());
    let Reply(_, code, first, ..) = ask(client, set(b"k", b"value"));
    assert!(code == status::OK && first != 0);
    let Reply(_, 0, cas, extras, key, value) = ask(client, get(b"k")) else { panic!() };
    assert_eq!((cas, extras, key), (first, vec![0, 0, 0, 7], vec![]));
    assert_eq!(value, b"value");
    assert_eq!(text.ask("get k\r\n"), "VALUE k 7 5\r\nvalue\r\nEND\r\n");
    let getk = Packet { opcode: opcode::GETK, ..get(b"k") };
    assert_eq!(ask(client, getk).4, b"k");
    let miss = ask(client, get(b"none"));
    assert_eq!((miss.1, miss.5), (status::NOT_FOUND, b"Not found".to_vec()));
    // Versions.
    assert_eq!(ask(client, Packet { cas: first + 1, ..set(b"k", b"x") }).1, status::EXISTS);
    assert_eq!(ask(client, Packet { cas: first, ..set(b"k", b"new") }).1, status::OK);
    assert_eq!(ask(client, Packet { cas: 1, ..set(b"none", b"x") }).1, status::NOT_FOUND);
    let add = Packet { opcode: opcode::ADD, ..set(b"k", b"x") };
    assert_eq!(ask(client, add).1, status::EXISTS);
    let replace = Packet { opcode: opcode::REPLACE, ..set(b"none", b"x") };
    assert_eq!(ask(client, replace).1, status::NOT_FOUND);
    let append = Packet { opcode: opcode::APPEND, extras: &[], ..set(b"k", b"!") };
    assert_eq!(ask(client, append).1, status::OK);
    let prepend = Packet { opcode: opcode::PREPEND, extras: &[], ..set(b"k", b"?") };
    assert_eq!(ask(client, prepend).1, status::OK);
    assert_eq!(ask(client, Packet { key: b"none", ..append }).1, status::NOT_STORED);
    assert_eq!(ask(client, get(b"k")).5, b"?new!");
    // Counting: by 5, from 40, for ever.
    let counting: Vec<u8> =
        [&5u64.to_be_bytes()[..], &40u64.to_be_bytes(), &0u32.to_be_bytes()].concat();
    let mut count =
        Packet { opcode: opcode::INCREMENT, extras: &counting, key: b"n", value: b"", cas: 0 };
    assert_eq!(ask(client, count).5, 40u64.to_be_bytes());
    assert_eq!(ask(client, count).5, 45u64.to_be_bytes());
    count.opcode = opcode::DECREMENT;
    assert_eq!(ask(client, count).5, 40u64.to_be_bytes());
    assert_eq!(ask(client, Packet { key: b"k", ..count }).1, status::NON_NUMERIC);
    let not_made: Vec<u8> = [&[0; 16][..], &u32::MAX.to_be_bytes()].concat();
    let missing = Packet { extras: &not_made, key: b"none", ..count };
    assert_eq!(ask(client, missing).1, status::NOT_FOUND);
    // Times.
    let hundred = 100u32.to_be_bytes();
    let touch = Packet { opcode: opcode::TOUCH, extras: &hundred, ..get(b"k") };
    assert_eq!(ask(client, touch).1, status::OK);
    assert_eq!(text.ask("mg k t\r\n"), "HD t100\r\n");
    let gat = Packet { opcode: opcode::GAT, extras: &[0; 4], ..get(b"k") };
    assert_eq!(ask(client, gat).5, b"?new!");
    assert_eq!(text.ask("mg k t\r\n"), "HD t-1\r\n");
    // The quiet ones, up to the next that is not.
    for (opcode, key) in [(opcode::GETQ, &b"none"[..]), (opcode::GETKQ, b"none")] {
        client.send(bytes(&Packet { opcode, ..get(key) }));
    }
    client.send(bytes(&Packet { opcode: opcode::SETQ, ..set(b"q", b"quiet") }));
    client.send(bytes(&Packet { opcode: 0x14, ..get(b"n") }));
    client.send(bytes(&Packet { opcode: opcode::GETKQ, ..get(b"q") }));
    let noop = Packet { opcode: opcode::NOOP, ..Packet::default() };
    client.send(bytes(&noop));
    let (quiet, end) = (reply(client), reply(client));
    assert_eq!((quiet.0, quiet.5, end.0), (opcode::GETKQ, b"quiet".to_vec(), opcode::NOOP));
    assert_eq!(text.ask("get n\r\n"), "END\r\n");
    // The rest.
    let bare = |opcode| Packet { opcode, ..Packet::default() };
    assert_eq!(ask(client, bare(opcode::VERSION)).5, b"1.6.18");
    assert_eq!(ask(client, bare(opcode::SASL_LIST)).5, b"PLAIN");
    client.send(bytes(&bare(opcode::STAT)));
    let mut facts = 0;
    while !reply(client).4.is_empty() {
        facts += 1;
    }
    assert!(facts > 10);
    assert_eq!(ask(client, Packet { opcode: opcode::DELETE, ..get(b"k") }).1, status::OK);
    assert_eq!(ask(client, bare(opcode::FLUSH)).1, status::OK);
    assert_eq!(text.ask("get q\r\n"), "END\r\n");
    assert_eq!(ask(client, bare(0x7f)).1, status::UNKNOWN_COMMAND);
    let long = vec![b'x'; 3 << 20];
    assert_eq!(ask(client, set(b"long", &long)).1, status::OK);
    assert!(ask(client, get(b"long")).5 == long);
    assert_eq!(ask(client, bare(opcode::QUIT)).1, status::OK);
    assert_eq!(client.rest(), b"");
    stop(server);
}

#[test]
fn a_packet_that_is_none_ends_the_connection() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut short = bytes(&get(b"key"));
    short[3] = 9;
    for (packet, code) in [
        (short, status::INVALID),
        (bytes(&Packet { extras: &[1], ..get(b"key") }), status::INVALID),
    ] {
        let mut client = node.connect();
        client.send(packet);
        assert_eq!(reply(&mut client).1, code);
        assert_eq!(client.rest(), b"");
    }
    let mut client = node.connect();
    client.send([&bytes(&get(b"k"))[..], b"get k\r\n"].concat());
    assert_eq!(reply(&mut client).1, status::NOT_FOUND);
    assert_eq!(client.rest(), b"");
    stop(server);
}

#[test]
fn a_value_that_is_too_large_takes_the_one_before_with_it() {
    let node = Node::new(&["--proto-max-bulk-len", "1mb"]);
    let server = node.start();
    let mut client = node.connect();
    let set = |value| Packet {
        opcode: opcode::SET,
        extras: FLAGS_7,
        key: b"large",
        value,
        ..Packet::default()
    };
    let (most, more) = (vec![b'x'; 1 << 20], vec![b'x'; (1 << 20) + 1]);
    assert_eq!(ask(&mut client, set(&most)).1, status::OK);
    let add = Packet { opcode: opcode::ADD, ..set(&more) };
    assert_eq!(ask(&mut client, add).1, status::TOO_LARGE);
    assert_eq!(ask(&mut client, get(b"large")).5.len(), 1 << 20, "only a set takes it");
    assert_eq!(ask(&mut client, set(&more)).1, status::TOO_LARGE);
    assert_eq!(ask(&mut client, get(b"large")).1, status::NOT_FOUND);
    stop(server);
}
