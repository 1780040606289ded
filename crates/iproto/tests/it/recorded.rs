//! Bytes that a real server sent and took (`fixtures/recorded.txt`, made by
//! `scripts/record-iproto.py`).

use crate::check;
use ladon_iproto::auth::{Credentials, StoredPassword, scramble};
use ladon_iproto::client::Reply;
use ladon_iproto::frame::{self, PACKET_BYTES_MAX};
use ladon_iproto::greeting::{self, Greeting};
use ladon_iproto::{Header, Progress, Request, RequestError, reply};
use ladon_testkit::Random;

/// One exchange: its name, what was sent and what came back.
pub struct Exchange {
    pub name: &'static str,
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
}

pub fn exchanges() -> Vec<Exchange> {
    let text = include_str!("../fixtures/recorded.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let exchanges = lines.map(|line| {
        let [name, sent, received] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}");
        };
        Exchange { name, sent: bytes(sent), received: bytes(received) }
    });
    exchanges.collect()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn packet(bytes: &[u8]) -> &[u8] {
    match frame::next(bytes, PACKET_BYTES_MAX) {
        Progress::Complete { start, end } if end == bytes.len() => &bytes[start..],
        other => panic!("{other:?}: {bytes:x?}"),
    }
}

fn recorded_greeting(exchanges: &[Exchange]) -> Greeting {
    let bytes = exchanges[0].received.as_slice().try_into().expect("128 bytes");
    greeting::read(bytes).expect("a greeting")
}

/// What a server replies to bytes that are no request: the sync and the error.
fn refusal(sent: &[u8]) -> Option<(u64, RequestError)> {
    let packet = match frame::next(sent, PACKET_BYTES_MAX) {
        Progress::Complete { start, end } => &sent[start..end],
        Progress::Invalid(error) => return Some((0, error)),
        Progress::Incomplete { .. } => panic!("incomplete: {sent:x?}"),
    };
    let (header, body) = match Header::decode(packet) {
        Ok(decoded) => decoded,
        Err(error) => return Some((error.sync, error.error)),
    };
    let refused = match Request::decode(&header, body) {
        Ok(Request::Auth(auth)) => Credentials::decode(auth.tuple).err(),
        other => other.err(),
    };
    refused.map(|error| (header.sync, error))
}

#[test]
fn the_greeting_is_the_servers() {
    let exchanges = exchanges();
    let greeting = recorded_greeting(&exchanges);
    let written = greeting::write(&greeting.version, &greeting.instance_uuid, &greeting.salt);
    assert_eq!(written[..], exchanges[0].received);
}

/// Where 2.11 decides otherwise than the recorded 2.6.
fn expected_of(exchange: &Exchange) -> Option<&'static str> {
    Some(match exchange.name {
        // New since.
        "nop" => "",
        // A type is 32 bits wide there, and the rest of the number is lost.
        "unknown large type" => "Unknown request type 4294967295",
        // The method is looked at, and has its own errors.
        "auth of an unknown method" => "Unknown authentication method 'md5'",
        "auth with a short scramble" => "Invalid 'chap-sha1' request: invalid scramble size",
        // No method refuses it; the user is not `guest`.
        "auth with an empty tuple" => "",
        _ => return None,
    })
}

#[test]
fn requests_are_refused_as_the_server_does() {
    let mut refused = 0;
    for exchange in &exchanges()[1..] {
        let reply = Reply::decode(packet(&exchange.received)).expect("a reply");
        let ours = refusal(&exchange.sent);
        let text = ours.as_ref().map_or(String::new(), |(_, error)| error.to_string());
        // Messages show the keys' names since 2.11 as the constants have them.
        let text = match &ours {
            Some((_, RequestError::MissingField(field))) => {
                let old = field.to_lowercase().replace('_', " ").replace("expr", "expression");
                text.replace(field, &old)
            }
            _ => text,
        };
        match expected_of(exchange) {
            Some(expected) => assert_eq!(text, expected, "{}", exchange.name),
            None => {
                let decided_here = matches!(reply.error_code(), Some(20 | 48 | 69));
                let theirs = reply.error.filter(|_| decided_here).unwrap_or_default();
                assert_eq!(text, String::from_utf8_lossy(theirs), "{}", exchange.name);
                if let Some((sync, error)) = ours {
                    refused += 1;
                    assert_eq!(sync, reply.header.sync, "{}", exchange.name);
                    assert_eq!(Some(error.code()), reply.error_code(), "{}", exchange.name);
                }
            }
        }
    }
    assert!(refused >= 15, "only {refused} refusals");
}

/// The reply that we would make. The recorded server has a schema version of 32 bits.
fn ours(reply: &Reply<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let Header { sync, schema_version, .. } = reply.header;
    if reply.error.is_some() {
        reply::error(&mut out, sync, schema_version, &reply.stack);
    } else if let Some(mut data) = reply.data {
        let count = ladon_msgpack::read_array(&mut data).unwrap();
        let begun = reply::begin_data(&mut out, sync, schema_version);
        out.extend_from_slice(data);
        begun.finish(&mut out, count).unwrap();
    } else {
        reply::ok(&mut out, sync, schema_version);
    }
    out
}

#[test]
fn replies_are_the_servers() {
    for exchange in &exchanges()[1..] {
        let reply = Reply::decode(packet(&exchange.received)).expect("a reply");
        let ours = ours(&reply);
        let mut wide = exchange.received.clone();
        assert_eq!(wide[22..24], [0x05, 0xce], "{}", exchange.name);
        wide[23] = 0xcf;
        wide.splice(24..24, [0; 4]);
        let length = wide.len() as u32 - 5;
        wide[1..5].copy_from_slice(&length.to_be_bytes());
        assert_eq!(ours, wide, "{}", exchange.name);
    }
}

#[test]
fn the_scramble_is_the_clients() {
    let exchanges = exchanges();
    let salt = recorded_greeting(&exchanges).salt;
    let stored = StoredPassword::chap_sha1(b"secret");
    let accepted = |name: &str| {
        let exchange = exchanges.iter().find(|exchange| exchange.name == name).expect(name);
        let (header, body) = Header::decode(packet(&exchange.sent)).expect("a header");
        let Ok(Request::Auth(auth)) = Request::decode(&header, body) else { panic!("{name}") };
        assert_eq!(auth.user_name, b"alice");
        let credentials = Credentials::decode(auth.tuple).unwrap().expect("credentials");
        (stored.accepts(&credentials, &salt), credentials)
    };
    let right = Credentials::ChapSha1(scramble(b"secret", &salt));
    assert_eq!(accepted("auth"), (true, right));
    assert!(!accepted("auth with a wrong scramble").0);
}

#[test]
fn nothing_panics_on_changed_bytes() {
    let mut random = Random::new(12);
    for exchange in exchanges() {
        for original in [exchange.sent, exchange.received] {
            for _ in 0..300 {
                let mut changed = original.clone();
                for _ in 0..=random.below(3) {
                    if changed.is_empty() {
                        break;
                    }
                    let at = random.below(changed.len() as u64) as usize;
                    match random.below(3) {
                        0 => changed[at] = random.below(256) as u8,
                        1 => changed.truncate(at),
                        _ => changed.insert(at, random.below(256) as u8),
                    }
                }
                check::check(&changed);
                check::check(changed.get(5..).unwrap_or_default());
            }
        }
    }
}
