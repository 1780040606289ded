//! Every request as the client writes it, cut at every byte; replies that a server makes.

use crate::check;
use ladon_iproto::client::{Reply, write_request};
use ladon_iproto::frame::{self, PACKET_BYTES_MAX};
use ladon_iproto::reply::{self, ServerId, feature};
use ladon_iproto::request::{
    Auth, Begin, Call, Delete, Execute, Id, IndexRef, Put, Select, SpaceRef, Statement, Update,
    Upsert,
};
use ladon_iproto::{Header, Progress, Request, request_type};

/// `[1, "x"]`.
const ARRAY: &[u8] = &[0x92, 1, 0xa1, b'x'];

fn requests() -> Vec<Request<'static>> {
    let (space, index) = (SpaceRef::Id(512), IndexRef::Id(1));
    let by_name = SpaceRef::Name(b"users");
    let select = Select {
        space,
        index,
        iterator: 2,
        offset: 3,
        limit: u32::MAX,
        key: ARRAY,
        fetch_position: false,
        after_position: None,
        after_tuple: None,
    };
    let call = Call { name: b"box.space.users:select", arguments: ARRAY };
    let execute = Execute { statement: Statement::Text(b"SELECT 1"), bind: Some(ARRAY) };
    let mut requests = vec![
        Request::Ping,
        Request::Select(select),
        Request::Select(Select {
            space: by_name,
            index: IndexRef::Name(b"by name"),
            fetch_position: true,
            after_position: Some(b"\x00\xffposition"),
            after_tuple: Some(ARRAY),
            ..select
        }),
        Request::Insert(Put { space, tuple: ARRAY }),
        Request::Replace(Put { space: by_name, tuple: ARRAY }),
        Request::Update(Update { space, index, index_base: 1, key: ARRAY, operations: &[0x90] }),
        Request::Delete(Delete { space, index, key: ARRAY }),
        Request::Upsert(Upsert { space, index_base: 0, tuple: ARRAY, operations: &[0x90] }),
        Request::Call(call),
        Request::Call16(call),
        Request::Eval(call),
        Request::Execute(execute),
        Request::Prepare(Execute { statement: Statement::Id(7), bind: None }),
        Request::Auth(Auth { user_name: b"alice", tuple: ARRAY }),
        Request::Id(Id {
            version: 4,
            features: 0x8000_0000_0000_0013,
            auth_type: Some(b"chap-sha1"),
        }),
        Request::Nop,
        Request::Begin(Begin::default()),
        Request::Begin(Begin { timeout_seconds: Some(1.5), isolation: 3, is_sync: Some(true) }),
        Request::Commit(None),
        Request::Commit(Some(false)),
        Request::Rollback,
        Request::Watch(b"box.status"),
        Request::Unwatch(b"box.status"),
        Request::WatchOnce(b""),
    ];
    requests.extend((request_type::JOIN..=request_type::JOIN_SNAPSHOT).map(Request::Replication));
    requests
}

#[test]
fn every_request_arrives_as_sent() {
    let types: std::collections::BTreeSet<_> =
        requests().iter().map(|request| request.request_type()).collect();
    let known = (0..=request_type::CHUNK).filter(|t| request_type::name(*t).is_some());
    let never_sent = [request_type::OK, request_type::EVENT, request_type::CHUNK];
    assert!(known.filter(|t| !never_sent.contains(t)).eq(types.iter().copied()));
    for request in requests() {
        for (sync, stream_id) in [(0, 0), (u64::MAX, 1)] {
            let request_type = request.request_type();
            let header = Header { request_type, sync, stream_id, schema_version: 0 };
            check::sent_again(&header, &request);
        }
    }
}

#[test]
fn a_request_cut_anywhere_is_none() {
    for request in requests() {
        let mut bytes = Vec::new();
        write_request(&mut bytes, 300, 9, &request);
        for cut in 0..bytes.len() {
            let progress = frame::next(&bytes[..cut], PACKET_BYTES_MAX);
            assert!(matches!(progress, Progress::Incomplete { .. }), "{request:?} {cut}");
        }
        // The same with a length that hides the cut.
        for cut in 5..bytes.len() {
            let Ok((header, body)) = Header::decode(&bytes[5..cut]) else { continue };
            // NOP's body is not looked at; other requests may do without one.
            if !body.is_empty() && header.request_type != request_type::NOP {
                let decoded = Request::decode(&header, body);
                let error = decoded.expect_err("half a body").to_string();
                assert_eq!(error, "Invalid MsgPack - packet body", "{request:?} {cut}");
            }
        }
    }
}

fn decode(out: &[u8]) -> Reply<'_> {
    Reply::decode(&out[5..]).expect("a reply")
}

#[test]
fn tuples_are_appended_in_place() {
    let mut out = Vec::new();
    let data = reply::begin_data(&mut out, 7, 80);
    out.extend_from_slice(ARRAY);
    out.extend_from_slice(ARRAY);
    data.finish_with_position(&mut out, 2, b"position").unwrap();
    let decoded = decode(&out);
    assert_eq!(decoded.tuples(), [ARRAY, ARRAY]);
    assert_eq!(decoded.position, Some(&b"position"[..]));
    let header = Header { request_type: 0, sync: 7, schema_version: 80, stream_id: 0 };
    assert_eq!(decoded.header, header);
    // An error in the place of half a reply.
    let before = out.len();
    let data = reply::begin_data(&mut out, 8, 80);
    out.extend_from_slice(ARRAY);
    data.abandon(&mut out);
    assert_eq!(out.len(), before);
}

#[test]
fn id_and_events() {
    let mut out = Vec::new();
    let features = &[feature::STREAMS, feature::TRANSACTIONS, feature::PAGINATION];
    let server = ServerId { version: 4, features, auth_type: "chap-sha1" };
    reply::id(&mut out, 1, 80, &server);
    let decoded = decode(&out);
    assert_eq!((decoded.version, decoded.features), (Some(4), Some(0b1_0011)));
    assert_eq!(decoded.auth_type, Some(&b"chap-sha1"[..]));

    out.clear();
    reply::event(&mut out, 9, b"box.status", Some(ARRAY)).unwrap();
    assert_eq!(out[5..10], [0x82, 0x00, 76, 0x01, 9]);
    let decoded = decode(&out);
    assert_eq!(decoded.header.request_type, request_type::EVENT);
    assert_eq!((decoded.event_key, decoded.event_data), (Some(&b"box.status"[..]), Some(ARRAY)));

    out.clear();
    reply::event(&mut out, 9, b"nothing", None).unwrap();
    assert_eq!(decode(&out).event_data, None);
}
