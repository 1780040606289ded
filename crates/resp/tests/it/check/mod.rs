//! What must hold for any bytes. Shared by the property tests, the corpus' replay and the fuzz
//! target `resp_parser`.

use ladon_resp::client::{DecodeLimits, Decoder, Value, write_request};
use ladon_resp::{Limits, LongDouble, Parser, Progress, ProtocolError, parse_i64};

/// One request's arguments.
pub type Request = Vec<Vec<u8>>;

/// Everything a stream of requests amounts to.
#[derive(Debug, PartialEq)]
pub struct Stream {
    pub requests: Vec<Request>,
    pub error: Option<ProtocolError>,
    /// Bytes of an unfinished request at the end.
    pub rest: usize,
}

/// Parses `bytes` as they would come in through a socket, in pieces of the given sizes (used in
/// turn; empty means all at once).
pub fn parse_stream(bytes: &[u8], pieces: &[usize], limits: &Limits) -> Stream {
    let mut parser = Parser::new();
    let mut stream = Stream { requests: Vec::new(), error: None, rest: 0 };
    let mut sizes = pieces.iter().cycle();
    let (mut from, mut arrived) = (0, 0);
    loop {
        arrived =
            bytes.len().min(arrived + sizes.next().map_or(bytes.len(), |size| (*size).max(1)));
        loop {
            let buffer = &bytes[from..arrived];
            let mut args = Vec::new();
            match parser.parse(buffer, limits, &mut args) {
                Ok(Progress::Complete { consumed }) => {
                    assert!(consumed > 0 && consumed <= buffer.len());
                    assert!(!parser.in_request());
                    from += consumed;
                    stream.requests.push(args.iter().map(|arg| arg.of(buffer).to_vec()).collect());
                }
                Ok(Progress::Inline { consumed, arguments }) => {
                    assert!(consumed > 0 && consumed <= buffer.len());
                    assert!(args.is_empty() && !arguments.is_empty());
                    from += consumed;
                    stream.requests.push(arguments);
                }
                Ok(Progress::Incomplete { needed }) => {
                    assert!(args.is_empty());
                    assert!(needed >= 1 && needed <= buffer.len().max(16 * 1024));
                    break;
                }
                Err(error) => {
                    assert!(args.is_empty());
                    stream.error = Some(error);
                    return stream;
                }
            }
        }
        if arrived == bytes.len() {
            stream.rest = arrived - from;
            return stream;
        }
    }
}

/// Checks everything that must hold for `data`, whatever it is.
pub fn check(data: &[u8]) {
    let Some((options, bytes)) = data.split_first() else { return };
    let limits = Limits {
        authenticated: options & 1 == 0,
        inline_bytes_max: if options & 2 == 0 { 64 * 1024 } else { 32 },
        bulk_bytes_max: if options & 4 == 0 { 512 * 1024 * 1024 } else { 16 },
        ..Limits::default()
    };
    let whole = parse_stream(bytes, &[], &limits);
    for pieces in [&[1][..], &[3], &[1, 7, 2], &[usize::from(*options)]] {
        assert_eq!(parse_stream(bytes, pieces, &limits), whole, "in pieces of {pieces:?}");
    }
    check_round_trip(&whole.requests);
    check_decoder(bytes);
    check_numbers(bytes);
}

/// Requests that are written come back, from the parser and, as arrays of strings, from the
/// reply decoder.
pub fn check_round_trip(requests: &[Request]) {
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| write_request(&mut bytes, request));
    let again = parse_stream(&bytes, &[], &Limits::default());
    assert_eq!((again.requests.as_slice(), again.error, again.rest), (requests, None, 0));

    let mut decoder = Decoder::default();
    let mut from = 0;
    for request in requests {
        let decoded = decoder.decode(&bytes[from..]).expect("a request is a valid reply");
        let strings = request.iter().cloned().map(Value::Bulk).collect();
        assert_eq!(decoded.value, Some(Value::Array(strings)));
        from += decoded.consumed;
    }
}

/// However the input is cut, the decoder gives the same values and the same error.
fn check_decoder(bytes: &[u8]) {
    let decode = |size: usize| {
        let mut decoder = Decoder::new(DecodeLimits { depth_max: 8, ..DecodeLimits::default() });
        let (mut values, mut from, mut arrived) = (Vec::new(), 0, 0);
        loop {
            arrived = bytes.len().min(arrived + size);
            loop {
                match decoder.decode(&bytes[from..arrived]) {
                    Ok(decoded) => {
                        from += decoded.consumed;
                        match decoded.value {
                            // Not compared by value: NaN is not equal to itself.
                            Some(value) => values.push(format!("{value:?}")),
                            None => break,
                        }
                    }
                    Err(error) => return (values, Err(error)),
                }
            }
            if arrived == bytes.len() {
                return (values, Ok(from));
            }
        }
    };
    let whole = decode(usize::MAX);
    assert_eq!(decode(1), whole);
    assert_eq!(decode(5), whole);
}

/// Integers come back as they were written; printed long doubles are read again.
fn check_numbers(bytes: &[u8]) {
    if let Some(value) = parse_i64(bytes) {
        assert_eq!(value.to_string().as_bytes(), bytes);
    }
    let [one, other] = {
        let (left, right) = bytes.split_at(bytes.len() / 2);
        [left, right].map(LongDouble::parse)
    };
    for number in [LongDouble::parse(bytes), one, other].into_iter().flatten() {
        let mut text = Vec::new();
        number.write_human(&mut text);
        assert!(LongDouble::parse(&text).is_some(), "{number:?}");
        assert!(number.checked_add(number).is_some());
    }
    if let (Some(one), Some(other)) = (one, other) {
        assert_eq!(one.checked_add(other), other.checked_add(one));
    }
}
