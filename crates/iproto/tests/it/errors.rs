//! Bodies that lack something, have something of another type, or something unknown.

use ladon_iproto::{Header, Request, request_type};
use ladon_msgpack::write;

/// A body from pairs of key and MessagePack value.
fn body(pairs: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    write::map(&mut out, pairs.len() as u32);
    for (key, value) in pairs {
        write::uint(&mut out, *key);
        out.extend_from_slice(value);
    }
    out
}

const ARRAY: &[u8] = &[0x90];
const NUMBER: &[u8] = &[7];
const TEXT: &[u8] = b"\xa1x";

fn check(request_type: u32, pairs: &[(u64, &[u8])], expected: Result<(), &str>) {
    let header = Header { request_type, ..Header::default() };
    let body = body(pairs);
    let result = Request::decode(&header, &body).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(result, expected.map_err(str::to_owned), "{request_type} {pairs:x?}");
}

#[test]
fn the_first_missing_key_is_named() {
    let missing = |request_type, pairs: &[(u64, &[u8])], name: &str| {
        let text = format!("Missing mandatory field '{name}' in request");
        check(request_type, pairs, Err(&text));
    };
    missing(request_type::SELECT, &[], "SPACE_ID");
    missing(request_type::SELECT, &[(0x10, NUMBER)], "LIMIT");
    missing(request_type::SELECT, &[(0x10, NUMBER), (0x12, NUMBER)], "KEY");
    missing(request_type::INSERT, &[(0x21, ARRAY)], "SPACE_ID");
    missing(request_type::REPLACE, &[(0x10, NUMBER)], "TUPLE");
    missing(request_type::UPDATE, &[(0x10, NUMBER), (0x21, ARRAY)], "KEY");
    missing(request_type::UPDATE, &[(0x10, NUMBER), (0x20, ARRAY)], "TUPLE");
    missing(request_type::DELETE, &[(0x10, NUMBER)], "KEY");
    missing(request_type::UPSERT, &[(0x10, NUMBER), (0x21, ARRAY)], "OPS");
    missing(request_type::CALL, &[(0x27, TEXT)], "FUNCTION_NAME");
    missing(request_type::EVAL, &[(0x22, TEXT)], "EXPR");
    missing(request_type::EXECUTE, &[], "SQL_TEXT or STMT_ID");
    missing(request_type::AUTH, &[(0x21, ARRAY)], "USER_NAME");
    missing(request_type::AUTH, &[(0x23, TEXT)], "TUPLE");
    missing(request_type::WATCH, &[], "EVENT_KEY");
    // A name stands for the id.
    missing(request_type::SELECT, &[(0x5e, TEXT)], "LIMIT");
    check(request_type::DELETE, &[(0x5e, TEXT), (0x20, ARRAY)], Ok(()));
}

#[test]
fn types_are_checked() {
    let packet = Err("Invalid MsgPack - packet body");
    let request = Err("Invalid MsgPack - request body");
    check(request_type::SELECT, &[(0x10, TEXT), (0x12, NUMBER), (0x20, ARRAY)], packet);
    check(request_type::SELECT, &[(0x10, &[0xff]), (0x12, NUMBER), (0x20, ARRAY)], packet);
    check(request_type::DELETE, &[(0x10, NUMBER), (0x20, NUMBER)], packet);
    // On data, every known key is checked; a call looks at its own.
    check(request_type::DELETE, &[(0x10, NUMBER), (0x20, ARRAY), (0x22, NUMBER)], packet);
    check(request_type::CALL, &[(0x22, TEXT), (0x10, TEXT)], Ok(()));
    check(request_type::CALL, &[(0x22, NUMBER)], packet);
    check(request_type::CALL, &[(0x22, TEXT), (0x21, NUMBER)], packet);
    check(request_type::AUTH, &[(0x23, TEXT), (0x21, TEXT)], packet);
    check(request_type::WATCH, &[(0x57, NUMBER)], packet);
    check(request_type::ID, &[(0x54, TEXT)], request);
    check(request_type::ID, &[(0x55, &[0x91, 0xa0])], request);
    check(request_type::BEGIN, &[(0x56, NUMBER)], request);
    check(request_type::BEGIN, &[(0x59, NUMBER)], Ok(()));
    let both = "Invalid MsgPack - SQL text and statement id are incompatible options in one \
                request: choose one";
    check(request_type::EXECUTE, &[(0x40, TEXT), (0x43, NUMBER)], Err(both));
}

#[test]
fn unknown_keys_are_passed_over() {
    let nested: &[u8] = &[0x92, 0x81, 1, 0x90, 0xc0];
    for key in [0x16, 0x7f, 0x80, 300, u64::MAX] {
        check(request_type::DELETE, &[(key, nested), (0x10, NUMBER), (0x20, ARRAY)], Ok(()));
        check(request_type::ID, &[(key, nested), (0x54, NUMBER)], Ok(()));
        check(request_type::CALL, &[(0x22, TEXT), (key, nested)], Ok(()));
    }
}

#[test]
fn types_that_nobody_knows() {
    for request_type in [0, 17, 30, 63, 76, 78, 128, u32::MAX] {
        let text = format!("Unknown request type {request_type}");
        check(request_type, &[], Err(&text));
    }
}

#[test]
fn bodies_that_must_be_there() {
    let check = |request_type, expected: Result<(), &str>| {
        let header = Header { request_type, ..Header::default() };
        let result = Request::decode(&header, &[]).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(result, expected.map_err(str::to_owned), "{request_type}");
    };
    let missing = Err("Invalid MsgPack - missing request body");
    for request_type in [request_type::CALL, request_type::EXECUTE, request_type::AUTH] {
        check(request_type, missing);
    }
    check(request_type::WATCH, missing);
    check(request_type::ID, Err("Invalid MsgPack - request body"));
    check(request_type::INSERT, Err("Missing mandatory field 'SPACE_ID' in request"));
    for request_type in [request_type::PING, request_type::BEGIN, request_type::COMMIT] {
        check(request_type, Ok(()));
    }
}
