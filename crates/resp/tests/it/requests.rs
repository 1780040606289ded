//! Property tests: any split of any stream of requests means the same.

use crate::check::{Request, Stream, check, check_round_trip, parse_stream};
use ladon_resp::client::write_request;
use ladon_resp::{Limits, Parser, Progress, ProtocolError};
use proptest::collection::vec;
use proptest::prelude::*;

fn argument() -> impl Strategy<Value = Vec<u8>> {
    let sizes = prop_oneof![8 => 0..20usize, 2 => 90..120usize, 1 => 990..1100usize];
    sizes.prop_flat_map(|size| vec(any::<u8>(), size))
}

/// Bytes that look enough like requests to get deep into the parser.
fn nearly_requests() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(b"*".to_vec()),
        Just(b"$".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"'\\x4".to_vec()),
        Just(b"*1\r\n$".to_vec()),
        Just(b"*2\r\n$3\r\nGET\r\n$".to_vec()),
        (-2..40i64).prop_map(|number| number.to_string().into_bytes()),
        (any::<i64>()).prop_map(|number| number.to_string().into_bytes()),
        vec(any::<u8>(), 0..6),
    ];
    vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn requests_round_trip(requests in vec(vec(argument(), 1..6), 0..5)) {
        check_round_trip(&requests);
    }

    #[test]
    fn any_split_means_the_same(
        requests in vec(vec(argument(), 1..12), 1..4),
        pieces in vec(1..200usize, 1..5),
    ) {
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| write_request(&mut bytes, request));
        let expected = Stream { requests, error: None, rest: 0 };
        prop_assert_eq!(parse_stream(&bytes, &pieces, &Limits::default()), expected);
    }

    #[test]
    fn no_bytes_break_it(options in any::<u8>(), bytes in nearly_requests()) {
        check(&[&[options][..], &bytes].concat());
    }
}

#[test]
fn split_at_every_byte() {
    let request = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let long = "v".repeat(12_345);
    let requests: Vec<Request> = vec![
        request(&["SET", "key:000000000001", &"x".repeat(64)]),
        vec![],
        request(&["GET", "a b"]),
        request(&["MSET", "", "", &long, &"y".repeat(1000)]),
        request(&["PING"]),
    ];
    let mut bytes = Vec::new();
    write_request(&mut bytes, &requests[0]);
    bytes.extend_from_slice(b"*-1\r\nGET \"a b\"\n");
    write_request(&mut bytes, &requests[3]);
    bytes.extend_from_slice(b" PING \r\n");
    let expected = Stream { requests, error: None, rest: 0 };
    assert_eq!(parse_stream(&bytes, &[1], &Limits::default()), expected);
    for first in 1..bytes.len() {
        assert_eq!(parse_stream(&bytes, &[first, bytes.len()], &Limits::default()), expected);
    }
}

#[track_caller]
fn refused(bytes: &[u8], text: &str) {
    let stream = parse_stream(bytes, &[], &Limits::default());
    assert_eq!(stream.error.map(|error| error.to_string()).as_deref(), Some(text));
}

#[test]
fn errors_have_redis_words() {
    let endless = vec![b'1'; 70_000];
    refused(&endless, "Protocol error: too big inline request");
    refused(&[b"*", &endless[..]].concat(), "Protocol error: too big mbulk count string");
    refused(&[b"*1\r\n$", &endless[..]].concat(), "Protocol error: too big bulk count string");
    refused(b"GET \"a\r\n", "Protocol error: unbalanced quotes in request");
    for count in ["", "a", "2147483648", "99999999999999999999", "01", "1 "] {
        refused(format!("*{count}\r\n").as_bytes(), "Protocol error: invalid multibulk length");
    }
    for length in ["", "a", "-1", "536870913", "99999999999999999999", "03", " 3"] {
        let bytes = format!("*1\r\n${length}\r\n");
        refused(bytes.as_bytes(), "Protocol error: invalid bulk length");
    }
    refused(b"*1\r\nfoo\r\n", "Protocol error: expected '$', got 'f'");
    refused(b"*1\r\n\r\n", "Protocol error: expected '$', got ' '");
}

#[test]
fn strangers_send_little() {
    let limits = Limits::default().with_authenticated(false);
    let error = |bytes: &[u8]| parse_stream(bytes, &[], &limits).error;
    assert_eq!(error(b"*10\r\n"), None);
    assert_eq!(error(b"*11\r\n"), Some(ProtocolError::UnauthenticatedMultibulkLength));
    assert_eq!(error(b"*1\r\n$16384\r\n"), None);
    assert_eq!(error(b"*1\r\n$16385\r\n"), Some(ProtocolError::UnauthenticatedBulkLength));
    assert_eq!(
        ProtocolError::UnauthenticatedBulkLength.to_string(),
        "Protocol error: unauthenticated bulk length"
    );
}

/// A header's announcement alone reserves next to nothing; room for a request that really comes
/// doubles with each step.
#[test]
fn room_follows_what_arrived() {
    let header = b"*2\r\n$3\r\nSET\r\n$67108864\r\n";
    let mut buffer = header.to_vec();
    let (mut parser, mut args, mut steps) = (Parser::new(), Vec::new(), 0);
    loop {
        match parser.parse(&buffer, &Limits::default(), &mut args) {
            Ok(Progress::Incomplete { needed }) => {
                assert!(needed <= buffer.len().max(1 << 14));
                buffer.resize(buffer.len() + needed, b'x');
                steps += 1;
            }
            Ok(Progress::Complete { consumed }) => break assert_eq!(consumed, buffer.len()),
            other => panic!("{other:?}"),
        }
    }
    assert!(steps <= 14, "{steps}");
    assert_eq!(args[1].len(), 67_108_864);
    assert!(matches!(
        parser.parse(b"*2000000000\r\n", &Limits::default(), &mut args),
        Ok(Progress::Incomplete { needed: 1..=13 })
    ));
}

/// A million arguments, one byte at a time: linear, or this would not end.
#[test]
fn fine_pieces_cost_linear_work() {
    let request: Request = vec![b"a".to_vec(); 1_000_000];
    let mut bytes = Vec::new();
    write_request(&mut bytes, &request);
    let stream = parse_stream(&bytes, &[1], &Limits::default());
    assert_eq!(stream.requests[0].len(), request.len());
    let line = vec![b' '; 64 * 1024];
    assert_eq!(parse_stream(&line, &[1], &Limits::default()).rest, line.len());
}
