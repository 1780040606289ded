//! What takes long on a connection lets requests of other streams pass, and those of none: connectors
//! send the requests of many users on one connection. In a stream, everything keeps its order.

use super::client::{Iproto, array, best_of_rounds, int, map, text};
use super::long_commits::{begin_naming, insert_all};
use super::{Node, make_space, row};
use crate::live::info_number;
use ladon_iproto::Request;
use ladon_iproto::request::{Auth, Begin, Call, Put, SpaceRef};
use std::time::Duration;

const TUPLES: u64 = 20_000;
const SPACE: SpaceRef<'static> = SpaceRef::Id(512);
const BACKENDS: [&str; 2] = ["io_uring", "mio"];

fn node(io_backend: &'static str) -> Node {
    Node { io_threads: 1, io_backend, ..Node::new("none") }
}

fn replace(tuple: &[u8]) -> Request<'_> {
    Request::Replace(Put { space: SPACE, tuple })
}

/// The next request is of this stream.
fn of_stream(client: &mut Iproto, stream: u64) -> &mut Iproto {
    client.stream_id = stream;
    client
}

/// Opens a transaction in stream 1 whose commit takes long.
fn prepare_commit(client: &mut Iproto, other: &mut Iproto, round: u64) {
    begin_naming(of_stream(client, 1), 0..TUPLES, &format!("round {round}"));
    let changed = row(TUPLES, &format!("other {round}"));
    other.ask(&replace(&changed)).expect("replaces");
}

#[test]
fn requests_pass_a_long_commit() {
    const PASSED_MIN: u64 = 20;
    for backend in BACKENDS {
        let node = node(backend);
        let mut server = node.start();
        let (mut client, mut other) = (node.admin(), node.admin());
        make_space(&mut client, 512, "rows");
        make_space(&mut client, 513, "others");
        insert_all(&mut client, 0..TUPLES);
        let passed = best_of_rounds(PASSED_MIN, |round| {
            prepare_commit(&mut client, &mut other, round);
            client.tell(&Request::Commit(None));
            let commit = client.last_sync();
            let passed = client.asked_meanwhile(|client, at| {
                assert_eq!(of_stream(client, 0).ask(&Request::Ping), Ok(vec![]));
                let tuple = row(at, "passes");
                let put = Put { space: SpaceRef::Id(513), tuple: &tuple };
                assert!(of_stream(client, 2).ask(&Request::Replace(put)).is_ok());
                assert_eq!(of_stream(client, 0).select(513, 0, &array(&[int(at)])), [tuple]);
            });
            assert_eq!(client.receive_of(commit), Some(Ok(vec![])));
            passed
        });
        assert!(passed >= PASSED_MIN, "{passed} requests on each way passed, {backend}");
        server.kill().expect("killed");
    }
}

/// What follows a long commit in its stream waits for it, also if it is told at once.
#[test]
fn a_stream_keeps_its_order_behind_a_long_commit() {
    const ROUNDS: u64 = 5;
    let node = node("auto");
    let mut server = node.start();
    let (mut client, mut other) = (node.admin(), node.admin());
    make_space(&mut client, 512, "rows");
    insert_all(&mut client, 0..TUPLES);
    for round in 0..ROUNDS {
        prepare_commit(&mut client, &mut other, round);
        client.tell(&Request::Commit(None));
        let first = client.last_sync();
        // Without the order, BEGIN would meet an open transaction.
        let last = row(0, &format!("last {round}"));
        for request in [Request::Begin(Begin::default()), replace(&last), Request::Commit(None)] {
            client.tell(&request);
            of_stream(&mut client, 0).tell(&Request::Ping);
            client.stream_id = 1;
        }
        for sync in first..=client.last_sync() {
            assert!(client.receive_of(sync).expect("a reply").is_ok(), "{sync}");
        }
        let in_stream: Vec<u64> = [0, 1, 3, 5].map(|behind| first + behind).into();
        let came = client.came.iter().copied().filter(|sync| in_stream.contains(sync));
        assert_eq!(came.collect::<Vec<_>>(), in_stream);
        assert_eq!(of_stream(&mut client, 0).select(512, 0, &array(&[int(0)])), [last]);
    }
    server.kill().expect("killed");
}

/// More than may be set aside: everything is answered all the same, in the order of its stream.
#[test]
fn many_requests_wait_behind_a_long_commit() {
    const MANY: usize = 20_000;
    let node = node("auto");
    let mut server = node.start();
    let (mut client, mut other) = (node.admin(), node.admin());
    make_space(&mut client, 512, "rows");
    insert_all(&mut client, 0..TUPLES);
    prepare_commit(&mut client, &mut other, 0);
    client.tell(&Request::Commit(None));
    let commit = client.last_sync();
    let replies = client.ask_all(&vec![Request::Ping; MANY]);
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(client.receive_of(commit), Some(Ok(vec![])));
    let behind: Vec<u64> = client.came.iter().copied().filter(|sync| *sync >= commit).collect();
    assert!(behind.is_sorted(), "replies of a stream come in its order");
    server.kill().expect("killed");
}

/// A count by a BITSET index looks at every tuple; a selection first measures its reply.
#[test]
fn requests_pass_long_counts_and_selections() {
    const PASSED_MIN: u64 = 3;
    let node = node("auto");
    let mut server = node.start();
    let mut client = node.admin();
    make_space(&mut client, 512, "rows");
    let options = map(&[(text("unique"), vec![0xc2])]);
    let bits = [int(512), int(2), text("bits"), text("bitset"), options];
    let parts = array(&[array(&[int(0), text("unsigned")])]);
    client.insert(288, &array(&[&bits[..], &[parts]].concat()));
    insert_all(&mut client, 0..TUPLES);
    let arguments = array(&[array(&[int(1 << 40)]), text("BITS_ALL_NOT_SET")]);
    let count = Call { name: b"box.space.rows.index.bits:count", arguments: &arguments };
    let ping = |client: &mut Iproto, _| {
        assert_eq!(of_stream(client, 0).ask(&Request::Ping), Ok(vec![]));
    };
    for stream in [0, 1] {
        let passed = best_of_rounds(PASSED_MIN, |_| {
            of_stream(&mut client, stream).tell(&Request::Call(count));
            let counts = client.last_sync();
            let passed = client.asked_meanwhile(ping);
            assert_eq!(client.receive_of(counts), Some(Ok(vec![int(TUPLES)])));
            passed
        });
        assert!(passed >= PASSED_MIN, "{passed} requests passed a count");
        let passed = best_of_rounds(PASSED_MIN, |_| {
            of_stream(&mut client, stream).send_select(512);
            let selects = client.last_sync();
            let passed = client.asked_meanwhile(ping);
            let all = client.receive_of(selects).expect("a reply").expect("selects");
            assert_eq!(all.len() as u64, TUPLES);
            passed
        });
        assert!(passed >= PASSED_MIN, "{passed} requests passed a selection");
    }
    several_at_once(&mut client, &Request::Call(count));
    server.kill().expect("killed");
}

/// One long reply is made at a time; in a stream, what follows it waits.
fn several_at_once(client: &mut Iproto, count: &Request<'_>) {
    const ROUNDS: u64 = 5;
    for round in 0..ROUNDS {
        let new = row(TUPLES + round, "new");
        let first = client.last_sync() + 1;
        for stream in [3, 0, 4] {
            of_stream(client, stream).tell(count);
            client.send_select(512);
        }
        of_stream(client, 3).tell(&replace(&new));
        let counted = |reply: Option<Result<Vec<Vec<u8>>, _>>| reply.expect("a reply").expect("ok");
        for at in [0, 2, 4] {
            let [count] = &counted(client.receive_of(first + at))[..] else { panic!("a number") };
            let least = TUPLES + round;
            assert!([int(least), int(least + 1)].contains(count), "{count:?}");
            let selected = counted(client.receive_of(first + at + 1)).len() as u64;
            assert!((least..=least + 1).contains(&selected));
        }
        assert!(client.receive_of(first + 6).expect("a reply").is_ok());
        // It follows both in its stream: neither shows it.
        let in_stream = [first, first + 1, first + 6];
        let came = client.came.iter().copied().filter(|sync| in_stream.contains(sync));
        assert_eq!(came.collect::<Vec<_>>(), in_stream);
    }
}

fn index(id: u64, name: &str) -> Vec<u8> {
    let unique = map(&[(text("unique"), vec![0xc2])]);
    let parts = array(&[array(&[int(1), text("string")])]);
    array(&[int(512), int(id), text(name), text("tree"), unique, parts])
}

/// A definition that takes long is passed by all but definitions, and by who logs in.
#[test]
fn requests_pass_a_long_definition() {
    const PASSED_MIN: u64 = 20;
    let node = node("auto");
    let mut server = node.start();
    let mut client = node.admin();
    make_space(&mut client, 512, "rows");
    insert_all(&mut client, 0..TUPLES);
    let create = |name| index(if name == "second" { 3 } else { 2 }, name);
    let (first, second) = (create("first"), create("second"));
    let define = |tuple| Request::Insert(Put { space: SpaceRef::Id(288), tuple });
    let passed = best_of_rounds(PASSED_MIN, |round| {
        client.tell(&define(&second));
        let before = client.last_sync();
        client.tell(&define(&first));
        let passed = client.asked_meanwhile(|client, at| {
            assert_eq!(client.ask(&Request::Ping), Ok(vec![]));
            // Of a stream: outside, it would not pass the definition that waits for the first.
            let tuple = row(at, &format!("round {round}"));
            assert!(of_stream(client, 5).ask(&replace(&tuple)).is_ok());
            client.stream_id = 0;
        });
        for sync in [before, before + 1] {
            assert_eq!(client.receive_of(sync).expect("a reply").expect("defines").len(), 1);
        }
        assert!(
            client.came.iter().rposition(|it| *it == before)
                < client.came.iter().rposition(|it| *it == before + 1)
        );
        for id in [2, 3] {
            assert_eq!(client.select(512, id, &array(&[])).len() as u64, TUPLES);
            client.delete(288, &array(&[int(512), int(id.into())]));
        }
        passed
    });
    assert!(passed >= PASSED_MIN, "{passed} requests on each way passed");

    // A login waits for what was asked before it, and is waited for.
    client.tell(&define(&first));
    let defined = client.last_sync();
    client.tell(&Request::Auth(Auth { user_name: b"guest", tuple: &array(&[]) }));
    client.tell(&replace(&row(1, "denied")));
    assert_eq!(client.receive_of(defined).expect("a reply").expect("an admin may").len(), 1);
    assert_eq!(client.receive_of(defined + 1), Some(Ok(vec![])));
    assert_eq!(client.receive_of(defined + 2).expect("a reply").expect_err("denied").0, 42);
    server.kill().expect("killed");
}

/// Who leaves while so much waits behind its definition that it is not read gets none either.
#[test]
fn who_leaves_unread_gets_no_index() {
    const CLIENTS: u64 = 5;
    const LEFT_OUT_MIN: u64 = 3;
    // More than is read, and less than the kernel keeps.
    const BEHIND: usize = 12_000;
    for backend in BACKENDS {
        let node = node(backend);
        let mut server = node.start();
        let (mut admin, mut redis) = (node.admin(), server.connect().expect("connects"));
        make_space(&mut admin, 512, "rows");
        insert_all(&mut admin, 0..TUPLES);
        let mut clients = || info_number(&mut redis, "clients", "connected_clients");
        let before = clients();
        let left_out = best_of_rounds(LEFT_OUT_MIN, |_| {
            for id in 0..CLIENTS {
                let mut creator = node.admin();
                creator.stream_id = 1;
                let tuple = index(2 + id, &format!("index {id}"));
                creator.tell(&Request::Insert(Put { space: SpaceRef::Id(288), tuple: &tuple }));
                creator.send_some(&vec![Request::Ping; BEHIND], Duration::from_secs(5));
            }
            let mut looks = 0;
            while clients() > before {
                looks += 1;
                assert!(looks < 1_000_000, "they stay");
            }
            let delete = |id| admin.delete(288, &array(&[int(512), int(2 + id)])).len() as u64;
            CLIENTS - (0..CLIENTS).map(delete).sum::<u64>()
        });
        assert!(left_out >= LEFT_OUT_MIN, "{left_out} indexes of those who left, {backend}");
        server.kill().expect("killed");
    }
}
