//! A transcript of a real tarantool (`scripts/record-iproto-transcript.py`): every type of request,
//! iterator, kind of index and update operation, malformed packets and logins. Ladon gets the same
//! packets.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ladon_conformance::iproto::{Client, Reply, Value};
use ladon_conformance::random::rules::{Rules, Verdict};
use ladon_conformance::server::ADMIN_PASSWORD;
use ladon_conformance::{Server, locate};

const TRANSCRIPT: &str = include_str!("../../recorded/iproto_transcript.txt");
/// What differs on purpose: first what is known of all requests, then what only this needs.
const KNOWN: &str = concat!(
    include_str!("../../grammar/iproto_known.txt"),
    include_str!("../../recorded/iproto_transcript_known.txt")
);
/// The errors in it, by Tarantool's numbers: all that a client of Ladon's requests can get of 2.6.
const CODES: [i128; 70] = [
    1, 3, 5, 9, 11, 12, 13, 14, 15, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 31, 32, 33, 35,
    36, 37, 38, 39, 41, 42, 43, 44, 45, 47, 48, 49, 50, 51, 57, 69, 70, 71, 72, 82, 84, 87, 88, 94,
    95, 96, 100, 101, 107, 108, 109, 110, 111, 112, 113, 136, 137, 144, 145, 149, 152, 160, 194,
    201, 209,
];

/// The bytes of hexadecimal digits, where `XX{N}` is N times the byte XX.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((digits, after)) = rest.split_at_checked(2) {
        rest = after;
        if let Some(count) = digits.strip_prefix('{') {
            let (more, after) = rest.split_once('}').expect("a count ends");
            let count: usize = format!("{count}{more}").parse().expect("a count");
            let last = *bytes.last().expect("a byte to repeat");
            bytes.extend(std::iter::repeat_n(last, count - 1));
            rest = after;
        } else {
            bytes.push(u8::from_str_radix(digits, 16).expect("digits"));
        }
    }
    bytes
}

/// The request as a line, for rules.
fn shown(packet: &[u8]) -> String {
    let mut rest = packet;
    let Some(Value::Map(header)) = Value::decode(&mut rest) else { return String::new() };
    let request_type = header.iter().find(|(key, _)| *key == Value::int(0));
    let Some((_, Value::Int(request_type))) = request_type else { return String::new() };
    ladon_conformance::iproto::request::line_of(*request_type as u8, rest)
}

#[test]
fn ladon_replies_as_in_the_transcript() {
    let ladon = locate::must("ladon", locate::ladon());
    let server = locate::must("ladon", Server::ladon_with_iproto(&ladon, &[]));
    let mut client = locate::must("ladon", Client::connect(server.iproto.expect("an address")));
    locate::must("the login", client.log_in("admin", ADMIN_PASSWORD));
    let mut known = Rules::parse("known", KNOWN, "tarantool-2.6").expect("rules");
    let (mut report, mut count, mut codes) = (String::new(), 0, BTreeSet::new());
    for line in TRANSCRIPT.lines().filter(|line| !line.starts_with('#')) {
        let [name, sent, received] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}");
        };
        let wanted = Reply::of_packet(&bytes(received)).expect("a recorded reply").1;
        if let Reply::Error(code, _) = &wanted {
            codes.insert(*code);
        }
        count += 1;
        let (line, got) = match sent.strip_prefix('@').and_then(|login| login.split_once(':')) {
            Some((user, password)) => (format!("LOGIN {user}"), client.try_log_in(user, password)),
            None => {
                let sent = bytes(sent);
                (shown(&sent), client.ask_raw(&sent))
            }
        };
        let mut is_known = || known.verdict(&line, &wanted.show(), &got.show()) != Verdict::Unknown;
        if wanted != got && !is_known() {
            let cut = |text: String| text.chars().take(300).collect::<String>();
            let (line, wanted, got) = (cut(line.clone()), cut(wanted.show()), cut(got.show()));
            let _ = writeln!(report, "{name}: {line}\n  wanted {wanted}\n  got    {got}");
        }
    }
    assert!(report.is_empty(), "{report}\n{}", server.output());
    assert!(count > 3_000, "{count} requests");
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), CODES);
}
