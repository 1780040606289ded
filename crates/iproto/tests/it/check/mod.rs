//! What must hold for any bytes. Shared by the tests, the corpus' replay and the fuzz target
//! `iproto_packets`.

use ladon_iproto::auth::Credentials;
use ladon_iproto::client::{Reply, write_request};
use ladon_iproto::frame::{self, PACKET_BYTES_MAX};
use ladon_iproto::{Header, Progress, Request, greeting, reply};

/// Takes the bytes as everything that they could be.
pub fn check(bytes: &[u8]) {
    stream(bytes);
    packet(bytes);
    let _ = Credentials::decode(bytes);
    if let Some(bytes) = bytes.first_chunk() {
        let _ = greeting::read(bytes);
    }
}

/// The bytes as packets with lengths.
fn stream(mut bytes: &[u8]) {
    loop {
        match frame::next(bytes, PACKET_BYTES_MAX) {
            Progress::Complete { start, end } => {
                assert!(start >= 1 && start <= end && end <= bytes.len());
                for cut in [0, 1, start - 1, end - 1].into_iter().filter(|cut| *cut < end) {
                    let Progress::Incomplete { needed } =
                        frame::next(&bytes[..cut], PACKET_BYTES_MAX)
                    else {
                        panic!("{cut} bytes of {end} are a packet");
                    };
                    assert!((1..=end - cut).contains(&needed));
                }
                packet(&bytes[start..end]);
                bytes = &bytes[end..];
            }
            Progress::Incomplete { needed } => {
                assert!(needed >= 1 && needed <= bytes.len().max(16 * 1024));
                return;
            }
            Progress::Invalid(_) => return,
        }
    }
}

/// The bytes as a request and as a reply, without a length.
fn packet(bytes: &[u8]) {
    if let Ok((header, body)) = Header::decode(bytes) {
        assert!(bytes.ends_with(body));
        if let Ok(request) = Request::decode(&header, body) {
            sent_again(&header, &request);
        }
    }
    if let Ok(reply) = Reply::decode(bytes) {
        replied_again(&reply);
    }
}

/// A request that was decoded is the same after it was sent once more.
pub fn sent_again(header: &Header, request: &Request<'_>) {
    let mut out = Vec::new();
    write_request(&mut out, header.sync, header.stream_id, request);
    let expected = Progress::Complete { start: 5, end: out.len() };
    assert_eq!(frame::next(&out, PACKET_BYTES_MAX), expected);
    let (again, body) = Header::decode(&out[5..]).expect("a header");
    assert_eq!(again, Header { schema_version: 0, ..*header });
    let again = Request::decode(&again, body).expect("a request");
    // A timeout may be no number, which is not equal to itself.
    assert_eq!(format!("{again:?}"), format!("{request:?}"));
}

/// A reply that was decoded is the same after it was made once more.
fn replied_again(decoded: &Reply<'_>) {
    let mut out = b"before".to_vec();
    let Header { sync, schema_version, .. } = decoded.header;
    match (decoded.error_code(), decoded.data) {
        (Some(_), _) if !decoded.stack.is_empty() => {
            reply::error(&mut out, sync, schema_version, &decoded.stack);
        }
        (None, Some(_)) => {
            let tuples = decoded.tuples();
            let data = reply::begin_data(&mut out, sync, schema_version);
            tuples.iter().for_each(|tuple| out.extend_from_slice(tuple));
            data.finish(&mut out, tuples.len() as u32).expect("a short reply");
        }
        _ => return,
    }
    let bytes = out.strip_prefix(b"before").expect("what was there before");
    let expected = Progress::Complete { start: 5, end: bytes.len() };
    assert_eq!(frame::next(bytes, PACKET_BYTES_MAX), expected);
    let again = Reply::decode(&bytes[5..]).expect("a reply");
    assert_eq!(again.stack, if again.error.is_some() { decoded.stack.clone() } else { vec![] });
    assert_eq!(again.tuples(), if again.error.is_some() { vec![] } else { decoded.tuples() });
    assert_eq!((again.header.sync, again.header.schema_version), (sync, schema_version));
}
