//! Commits of long transactions that others overtake: what the others wait for is counted in
//! requests, never in time. And what transactions hold, and when the log takes nothing.

use super::client::{Iproto, array, best_of_rounds, int, text};
use super::{Node, SickNode, WAL_IO, make_space, row};
use crate::live::info_number;
use crate::sick_disk::until;
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, IndexRef, Put, SpaceRef, Update};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

const SPACE: SpaceRef<'static> = SpaceRef::Id(512);

fn replace(client: &mut Iproto, tuple: &[u8]) {
    client.ask(&Request::Replace(Put { space: SPACE, tuple })).expect("replaces");
}

/// Begins a transaction that gives the tuples of these numbers a name.
pub(super) fn begin_naming(client: &mut Iproto, ids: std::ops::Range<u64>, name: &str) {
    client.ask(&Request::Begin(Begin::default())).expect("begins");
    let operations = array(&[array(&[text("="), int(1), text(name)])]);
    let keys: Vec<Vec<u8>> = ids.map(|id| array(&[int(id)])).collect();
    let updates: Vec<Request<'_>> = keys
        .iter()
        .map(|key| {
            let index = IndexRef::Id(0);
            Request::Update(Update {
                space: SPACE,
                index,
                index_base: 0,
                key,
                operations: &operations,
            })
        })
        .collect();
    for reply in client.ask_all(&updates) {
        assert_eq!(reply.expect("updates").len(), 1);
    }
}

pub(super) fn insert_all(client: &mut Iproto, ids: std::ops::Range<u64>) {
    let rows: Vec<Vec<u8>> = ids.map(|id| row(id, "before")).collect();
    let inserts: Vec<Request<'_>> =
        rows.iter().map(|tuple| Request::Insert(Put { space: SPACE, tuple })).collect();
    assert!(client.ask_all(&inserts).iter().all(Result::is_ok));
}

/// How many are named so.
fn named(client: &mut Iproto, name: &str) -> u64 {
    client.select(512, 1, &array(&[text(name)])).len() as u64
}

#[test]
fn a_long_commit_leaves_turns_to_others() {
    const TUPLES: u64 = 20_000;
    /// A commit in one turn lets two at most pass; one in slices hundreds.
    const OTHERS_MIN: u64 = 20;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let (mut client, mut polite) = (node.admin(), node.admin());
    make_space(&mut client, 512, "rows");
    insert_all(&mut client, 0..TUPLES);
    client.stream_id = 1;
    let others = best_of_rounds(OTHERS_MIN, |round| {
        let (after, other) = (format!("after {round}"), format!("other {round}"));
        begin_naming(&mut client, 0..TUPLES, &after);
        replace(&mut polite, &row(TUPLES, &other));
        client.tell(&Request::Commit(None));
        let others = client.steps_meanwhile(|_| assert_eq!(polite.ask(&Request::Ping), Ok(vec![])));
        assert_eq!(client.receive(), Some(Ok(vec![])));
        assert_eq!(named(&mut polite, &after), TUPLES);
        assert_eq!(named(&mut polite, &other), 1);
        others
    });
    assert!(others >= OTHERS_MIN, "{others} requests of another client in between");
    server.kill().expect("killed");
}

/// Writers that change the space all the time neither fail nor keep long transactions from their
/// commits.
#[test]
fn long_commits_succeed_beside_writers() {
    const TUPLES: u64 = 1_000;
    const CLIENTS: u64 = 3;
    const ROUNDS: u64 = 4;
    for io_threads in [1, 3] {
        let node = Node { io_threads, ..Node::new("write") };
        let mut server = node.start();
        let mut admin = node.admin();
        make_space(&mut admin, 512, "rows");
        insert_all(&mut admin, 0..TUPLES * CLIENTS);
        let (over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let (node, over, written) = (&node, &over, &written);
            for at in 0..2 {
                scope.spawn(move || {
                    let mut writer = node.admin();
                    while !over.load(SeqCst) {
                        replace(&mut writer, &row(TUPLES * CLIENTS + at, "other"));
                        written.fetch_add(1, SeqCst);
                    }
                });
            }
            let committers: Vec<_> = (0..CLIENTS)
                .map(|at| scope.spawn(move || commit_rounds(node, at * TUPLES, TUPLES, ROUNDS)))
                .collect();
            committers.into_iter().for_each(|thread| thread.join().expect("all commit"));
            over.store(true, SeqCst);
        });
        let last = format!("round {}", ROUNDS - 1);
        assert_eq!(named(&mut admin, &last), TUPLES * CLIENTS, "{io_threads} threads");
        assert!(written.load(SeqCst) > 100, "{written:?}");
        server.kill().expect("killed");
        let mut server = node.start();
        assert_eq!(named(&mut node.admin(), &last), TUPLES * CLIENTS, "after the kill");
        server.kill().expect("killed");
    }
}

fn commit_rounds(node: &Node, first: u64, tuples: u64, rounds: u64) {
    let mut client = node.admin();
    client.stream_id = 1;
    for round in 0..rounds {
        begin_naming(&mut client, first..first + tuples, &format!("round {round}"));
        client.ask(&Request::Commit(None)).expect("commits");
    }
}

/// Who does not wait for the end of a commit leaves nothing of it behind, and nobody waiting.
#[test]
fn a_client_that_leaves_its_commit_is_no_burden() {
    const TUPLES: u64 = 5_000;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "rows");
    insert_all(&mut admin, 0..TUPLES);
    let mut whole = 0;
    for round in 0..10 {
        let name = format!("round {round}");
        let mut client = node.admin();
        client.stream_id = 1;
        begin_naming(&mut client, 0..TUPLES, &name);
        replace(&mut admin, &row(TUPLES, "other"));
        client.tell(&Request::Commit(None));
        drop(client);
        replace(&mut admin, &row(TUPLES, "another"));
        let count = named(&mut admin, &name);
        assert!(count == 0 || count == TUPLES, "{count}");
        whole += count / TUPLES;
    }
    // The commit is for the server to end: it may, or not.
    assert!(whole <= 10);
    server.kill().expect("killed");
}

/// A transaction that has timed out holds nothing, also if its client says nothing more.
#[test]
fn a_timed_out_transaction_holds_no_memory() {
    const BYTES: u64 = 16 << 20;
    let node = Node::new("none");
    let mut server = node.start();
    let (mut admin, mut redis) = (node.admin(), server.connect().expect("connects"));
    make_space(&mut admin, 512, "users");
    let before = info_number(&mut redis, "memory", "used_memory");
    admin.stream_id = 1;
    let begin = Begin { timeout_seconds: Some(1.5), ..Begin::default() };
    admin.ask(&Request::Begin(begin)).expect("begins");
    let name = "x".repeat(1 << 20 >> 1);
    for id in 0..BYTES / (1 << 20) {
        admin.insert(512, &row(id, &name));
    }
    assert!(info_number(&mut redis, "memory", "used_memory") > before + BYTES / 2, "it holds them");
    until(&mut redis, &["INFO", "memory"], |info| {
        let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        used.and_then(|used| used.trim().parse().ok())
            .is_some_and(|used: u64| used < before + BYTES / 2)
    });
    let timeout = Err((231, "Transaction has been aborted by timeout".to_owned()));
    assert_eq!(admin.ask(&Request::Commit(None)), timeout);
    assert_eq!(admin.ask(&Request::Commit(None)), Ok(vec![]), "it is over");
    server.kill().expect("killed");
}

/// A statement in a transaction is refused while the log takes nothing: it would log the number of
/// its sequence at once.
#[test]
fn a_full_disk_refuses_statements_in_transactions() {
    let node = SickNode::new("write");
    let disk = &node.disk;
    let mut server = disk.start();
    let mut redis = server.connect().expect("connects");
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    let no = vec![0xc2];
    let limits = [int(1), int(1), int(100), int(1), int(0), no.clone()];
    admin.insert(284, &array(&[&[int(1), int(1), text("ids")][..], &limits].concat()));
    admin.insert(340, &array(&[int(512), int(1), no, int(0), text("")]));
    let unnumbered = array(&[vec![0xc0], text("ada")]);
    let insert = Request::Insert(Put { space: SPACE, tuple: &unnumbered });
    admin.stream_id = 1;
    admin.ask(&Request::Begin(Begin::default())).expect("begins");
    assert_eq!(admin.ask(&insert), Ok(vec![row(1, "ada")]));

    let _pending = disk.fill(&server, &mut redis);
    assert_eq!(admin.ask(&insert).expect_err("a full disk").0, WAL_IO);
    // No number was used.
    admin.stream_id = 0;
    assert_eq!(admin.select(285, 0, &array(&[int(1)])), [array(&[int(1), int(1)])]);
    admin.stream_id = 1;

    disk.drain(&mut redis);
    assert_eq!(admin.ask(&insert), Ok(vec![row(2, "ada")]), "it goes on");
    assert_eq!(admin.ask(&Request::Commit(None)), Ok(vec![]));
    server.kill().expect("killed");
}
