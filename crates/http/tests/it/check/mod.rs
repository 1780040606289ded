//! Any bytes from a client, and any from the server: what holds of a connection. For the fuzz target
//! `http_connections`.
//!
//! What a client sends is in front of the first byte 0xff, what the server answers behind it.

use ladon_http::connection::{Connection, Now, Step};
use ladon_http::{Rules, Sites};
use ladon_resp::{Limits, Parser, Progress};

/// Bytes of a body.
const BODY_BYTES_MAX: u64 = 4096;

/// What a connection may hold, however little or much has come.
const HELD_BYTES_MAX: usize = 256 << 10;

/// What came of some bytes.
#[derive(Debug, PartialEq)]
struct Outcome {
    asked: Vec<u8>,
    answered: Vec<u8>,
    ends: bool,
}

/// Checks that any bytes are survived, with the same result however they are cut.
pub fn check(data: &[u8]) {
    let split = data.iter().position(|&byte| byte == 0xff).unwrap_or(data.len());
    let (client, server) = (&data[..split], data.get(split + 1..).unwrap_or_default());
    let whole = run(client, server, usize::MAX);
    for at_once in [1, 7] {
        assert_eq!(run(client, server, at_once), whole, "cut by {at_once}");
    }
    check_requests(&whole.asked);
}

fn run(client: &[u8], server: &[u8], at_once: usize) -> Outcome {
    let rules = Rules { sites: Sites::parse("https://a.b"), body_bytes_max: BODY_BYTES_MAX };
    let now = Now { rules: &rules, date: "now", seconds: 0 };
    let mut connection = Connection::default();
    let mut outcome = Outcome { asked: Vec::new(), answered: Vec::new(), ends: false };
    let mut input: Vec<u8> = Vec::new();
    for part in pieces(client, at_once) {
        input.extend_from_slice(part);
        go_on(&mut connection, &mut input, &now, &mut outcome);
    }
    // What the server answers follows from what it is asked, so it comes by bytes in each run.
    for mut part in pieces(server, 1) {
        while !part.is_empty() {
            let taken = connection.replied(part, &now);
            part = &part[taken..];
            go_on(&mut connection, &mut input, &now, &mut outcome);
        }
    }
    assert!(connection.bytes() < HELD_BYTES_MAX, "{} bytes are held", connection.bytes());
    outcome.ends = connection.ends();
    outcome
}

fn pieces(bytes: &[u8], at_once: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(at_once.min(bytes.len().max(1)))
}

fn go_on(connection: &mut Connection, input: &mut Vec<u8>, now: &Now<'_>, outcome: &mut Outcome) {
    loop {
        let mut requests = Vec::new();
        let (taken, step) = connection.step(input, &mut requests, now);
        input.drain(..taken);
        outcome.asked.extend(requests);
        outcome.answered.extend(connection.take_out(Vec::new()));
        if step == Step::Wait {
            return;
        }
    }
}

/// What the server is asked is requests of RESP, the last one perhaps incomplete, and none of them
/// changes what the connection is.
fn check_requests(asked: &[u8]) {
    let limits = Limits::default();
    let mut at = 0;
    while at < asked.len() {
        let mut args = Vec::new();
        match Parser::new().parse(&asked[at..], &limits, &mut args) {
            Ok(Progress::Complete { consumed, .. }) => {
                let name = args.first().map(|arg| arg.of(&asked[at..]).to_ascii_uppercase());
                let name = name.unwrap_or_default();
                let is_refused = matches!(&name[..], b"SELECT" | b"QUIT" | b"WATCH");
                assert!(!is_refused, "it changes the connection");
                at += consumed;
            }
            Ok(Progress::Incomplete { .. }) => return,
            Ok(Progress::Inline { .. }) => panic!("no request of ours: {}", asked.escape_ascii()),
            Err(error) => panic!("{error:?} at {at} of {}", asked.escape_ascii()),
        }
    }
}
