//! Definitions of spaces with many tuples: an index, another primary key, another format. They are
//! prepared beside readers and writers, whole in the end, and after a crash.

use super::client::{Iproto, array, best_of_rounds, int, map, text};
use super::{Node, SickNode, row};
use crate::live::info_number;
use crate::sick_disk::{SOON, WHILE};
use ladon_iproto::Request;
use ladon_iproto::request::{Put, SpaceRef};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

const SPACE: u32 = 512;
const ROWS: u64 = 30_000;

fn index(id: u64, name: &str, is_unique: bool, field: u64, kind: &str) -> Vec<u8> {
    let unique = map(&[(text("unique"), vec![if is_unique { 0xc3 } else { 0xc2 }])]);
    let parts = array(&[array(&[int(field), text(kind)])]);
    array(&[int(SPACE.into()), int(id), text(name), text("tree"), unique, parts])
}

fn make_empty_space(admin: &mut Iproto) {
    let format = array(&[]);
    let space = [int(SPACE.into()), int(1), text("rows"), text("memtx"), int(0), map(&[]), format];
    admin.insert(280, &array(&space));
    admin.insert(288, &index(0, "pk", true, 0, "unsigned"));
}

fn make_space(admin: &mut Iproto) {
    make_empty_space(admin);
    (1..=ROWS).for_each(|id| drop(admin.insert(SPACE, &row(id, &format!("n{id}")))));
}

fn all(admin: &mut Iproto, index: u32) -> BTreeSet<Vec<u8>> {
    admin.select(SPACE, index, &array(&[])).into_iter().collect()
}

#[test]
fn it_is_built_beside_writers_and_survives_a_crash() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let mut writer = node.admin();
        scope.spawn(|| {
            let mut writer = node.admin();
            for at in 0.. {
                if is_over.load(Relaxed) {
                    return;
                }
                let id = at * 7_919 % (ROWS + 1_000) + 1;
                match at % 3 {
                    0 => drop(writer.delete(SPACE, &array(&[int(id)]))),
                    _ => {
                        let tuple = row(id, &format!("w{at}"));
                        let put = Put { space: SpaceRef::Id(SPACE), tuple: &tuple };
                        writer.ask(&Request::Replace(put)).expect("replaces");
                    }
                }
                written.fetch_add(1, Relaxed);
            }
        });
        while written.load(Relaxed) < 100 {
            thread::yield_now();
        }
        // How many depends on how the machine is shared: on a busy one, it may take another try. Built
        // in one go, it would be those on their way each time.
        let mut during = 0;
        for round in 0..20 {
            if round > 0 {
                assert_eq!(writer.delete(288, &array(&[int(SPACE.into()), int(1)])).len(), 1);
            }
            let before = written.load(Relaxed);
            writer.insert(288, &index(1, "by_name", false, 1, "string"));
            during = written.load(Relaxed) - before;
            if during > 2 {
                break;
            }
        }
        is_over.store(true, Relaxed);
        assert!(during > 2, "{during} writes while the index was built");
    });
    assert!(all(&mut admin, 1) == all(&mut admin, 0), "every row by its name");
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert!(all(&mut admin, 1) == all(&mut admin, 0), "after a crash as well");
    server.kill().expect("killed");
}

/// The space with a format.
fn formatted(names: &[(&str, &str)]) -> Vec<u8> {
    let field = |(name, kind): &(&str, &str)| {
        map(&[(text("name"), text(name)), (text("type"), text(kind))])
    };
    let fields: Vec<Vec<u8>> = names.iter().map(field).collect();
    let head = [int(SPACE.into()), int(1), text("rows"), text("memtx"), int(0), map(&[])];
    array(&[&head[..], &[array(&fields)]].concat())
}

fn replace(space: u32, tuple: &[u8]) -> Request<'_> {
    Request::Replace(Put { space: SpaceRef::Id(space), tuple })
}

/// A tuple whose fields are both keys.
fn paired(id: u64) -> Vec<u8> {
    row(id, &format!("n{id}"))
}

/// Another primary key and a stricter format come while tuples are written, and hold after a crash.
#[test]
fn a_primary_key_and_a_format_change_beside_writers() {
    let node = Node { io_threads: 1, ..Node::new("write") };
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    admin.insert(288, &index(1, "by_name", false, 1, "string"));
    let definitions = [
        (288, index(0, "pk", true, 1, "string")),
        (280, formatted(&[("id", "unsigned"), ("name", "string")])),
    ];
    let mut writer = node.admin();
    let mut written = ROWS;
    for (space, definition) in &definitions {
        admin.tell(&replace(*space, definition));
        let before = written;
        while !admin.has_reply() {
            // The tuples that there are, and new ones.
            let id = if written.is_multiple_of(2) { written } else { written % ROWS + 1 };
            writer.ask(&replace(SPACE, &paired(id))).expect("replaces");
            written += 1;
        }
        assert_eq!(admin.receive(), Some(Ok(vec![definition.clone()])));
        // A format is checked in a millisecond.
        let meanwhile = written - before;
        assert!(meanwhile > 10 || *space == 280, "{meanwhile} writes meanwhile");
    }
    let (code, message) = writer.ask(&replace(SPACE, &array(&[int(1), int(1)]))).unwrap_err();
    assert_eq!(code, 23, "{message}");
    let found = all(&mut admin, 0);
    assert!(found.len() as u64 > ROWS && all(&mut admin, 1) == found);
    assert_eq!(admin.select(SPACE, 0, &array(&[text("n7")])), [paired(7)], "by the new key");
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert!(all(&mut admin, 0) == found && all(&mut admin, 1) == found, "after a crash as well");
    assert_eq!(admin.select(SPACE, 0, &array(&[text("n7")])), [paired(7)]);
    server.kill().expect("killed");
}

/// A format that tuples do not have, and a key that two of them have, are refused.
#[test]
fn a_format_or_a_primary_key_may_be_refused() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    let twin = row(ROWS, "n1");
    admin.ask(&replace(SPACE, &twin)).expect("replaces");
    let names = index(0, "pk", true, 1, "string");
    let (code, message) = admin.ask(&replace(288, &names)).unwrap_err();
    assert_eq!(code, 3, "{message}");
    let numbers = formatted(&[("id", "unsigned"), ("name", "unsigned")]);
    let (code, message) = admin.ask(&replace(280, &numbers)).unwrap_err();
    assert_eq!(code, 23, "{message}");
    assert!(message.contains("2 (name)"), "{message}");
    assert_eq!(all(&mut admin, 0).len() as u64, ROWS);
    server.kill().expect("killed");
}

/// Definitions of one space that break each other's preparations off come to their ends all the
/// same, one after the other.
#[test]
fn definitions_that_break_each_other_off_come_to_their_ends() {
    const CLIENTS: u64 = 12;
    const TIMES: u64 = 2;
    let node = Node { io_threads: 2, ..Node::new("none") };
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let node = &node;
            scope.spawn(move || {
                let mut one = node.admin();
                for time in 0..TIMES {
                    let is_first = (client + time).is_multiple_of(2);
                    let (key, kind) = if is_first { (0, "unsigned") } else { (1, "string") };
                    let (space, definition) = match client % 3 {
                        0 => (288, index(0, "pk", true, key, kind)),
                        1 => (288, index(client, &format!("i{client}"), is_first, key, kind)),
                        _ if is_first => (280, formatted(&[("id", "number")])),
                        _ => (280, formatted(&[("id", "unsigned"), ("name", "string")])),
                    };
                    one.ask(&replace(space, &definition)).expect("a definition");
                    one.ask(&replace(SPACE, &paired(ROWS + client + 1))).expect("replaces");
                }
            });
        }
    });
    let found = all(&mut admin, 0);
    assert_eq!(found.len() as u64, ROWS + CLIENTS);
    for id in (0..CLIENTS).filter(|client| client % 3 == 1) {
        assert!(all(&mut admin, id as u32) == found, "index {id}");
    }
    server.kill().expect("killed");
}

/// What does not fit is told, as if the index had been built at once; who leaves leaves nothing.
#[test]
fn it_may_be_refused_or_given_up() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    let last = format!("n{}", ROWS - 1);
    let put = Put { space: SpaceRef::Id(SPACE), tuple: &row(ROWS, &last) };
    admin.ask(&Request::Replace(put)).expect("replaces");
    let create = |admin: &mut Iproto, index: &[u8]| {
        admin.ask(&Request::Insert(Put { space: SpaceRef::Id(288), tuple: index }))
    };
    let (code, message) = create(&mut admin, &index(1, "names", true, 1, "string")).unwrap_err();
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("\"names\""), "{message}");
    let (code, message) = create(&mut admin, &index(1, "names", false, 1, "unsigned")).unwrap_err();
    assert_eq!(code, 23, "{message}");
    let mut guest = node.guest();
    let (code, _) = create(&mut guest, &index(1, "names", false, 1, "string")).unwrap_err();
    assert_eq!(code, 42, "a guest has no right to");
    for _ in 0..20 {
        let mut hasty = node.admin();
        let tuple = index(1, "names", false, 1, "string");
        hasty.tell(&Request::Insert(Put { space: SpaceRef::Id(288), tuple: &tuple }));
    }
    // One of them may have come to its end.
    let created = create(&mut admin, &index(1, "names", false, 1, "string"));
    assert!(created.is_ok() || created.is_err_and(|(code, _)| code == 3));
    assert!(all(&mut admin, 1) == all(&mut admin, 0));
    server.kill().expect("killed");
}

/// A refusal shows tuples, and passes no earlier than the disk has them.
#[test]
fn its_refusal_waits_for_the_tuples_that_it_shows() {
    let node = SickNode::new("fsync");
    let disk = &node.disk;
    let mut server = disk.start();
    let (mut admin, mut writer) = (node.admin(), node.admin());
    let rows: Vec<Vec<u8>> = (1..=1_000).map(|id| row(id, &format!("n{id}"))).collect();
    let into = |space: u32, tuple| Request::Replace(Put { space: SpaceRef::Id(space), tuple });
    make_empty_space(&mut admin);
    let inserts: Vec<Request<'_>> = rows.iter().map(|tuple| into(SPACE, tuple)).collect();
    assert!(admin.ask_all(&inserts).iter().all(Result::is_ok));
    disk.set("hold-sync");
    let second = row(2, "n1");
    writer.tell(&into(SPACE, &second));
    assert!(!writer.has_reply_within(WHILE), "the writer waits for the disk");
    // The first slice meets both tuples.
    let names = index(1, "names", true, 1, "string");
    admin.tell(&Request::Insert(Put { space: SpaceRef::Id(288), tuple: &names }));
    assert!(!admin.has_reply_within(WHILE * 3), "so does the refusal");
    disk.unset("hold-sync");
    assert!(admin.has_reply_within(SOON));
    let (code, message) = admin.receive().expect("a reply").expect_err("a duplicate");
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("[2, \"n1\"]"), "{message}");
    assert_eq!(writer.receive(), Some(Ok(vec![second.clone()])));
    server.kill().expect("killed");
}

/// Each of them asks for an index of the names; the first index has this number.
fn tell_indexes(creators: &mut [Iproto], first: u64) {
    for (id, creator) in (first..).zip(creators) {
        let tuple = index(id, &format!("by_name_{id}"), false, 1, "string");
        creator.tell(&Request::Insert(Put { space: SpaceRef::Id(288), tuple: &tuple }));
    }
}

/// How many tuples a client replaces before all indexes are there.
fn write_until_created(creators: &mut [Iproto], writer: &mut Iproto) -> u64 {
    let mut written = 0;
    while creators.iter_mut().any(|creator| !creator.has_reply()) {
        let tuple = row(written % ROWS + 1, &format!("w{written}"));
        let put = Put { space: SpaceRef::Id(SPACE), tuple: &tuple };
        writer.ask(&Request::Replace(put)).expect("replaces");
        written += 1;
    }
    for creator in creators {
        assert!(creator.receive().expect("a reply").is_ok());
    }
    written
}

/// Many connections create indexes of one space at once, beside a writer. They do not keep each
/// other from their ends, and after a kill in the midst of it, each index is whole or not there.
#[test]
fn many_at_once_come_to_their_ends() {
    const INDEXES: u64 = 10;
    /// Built in one go, each would let a request of the writer pass or two.
    const WRITES_MIN: u64 = 10 * INDEXES;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    let mut writer = node.admin();
    let mut creators: Vec<Iproto> = (0..INDEXES).map(|_| node.admin()).collect();
    let written = best_of_rounds(WRITES_MIN, |round| {
        for id in 1..=INDEXES {
            let index_key = array(&[int(SPACE.into()), int(id)]);
            assert_eq!(admin.delete(288, &index_key).len(), usize::from(round > 0));
        }
        tell_indexes(&mut creators, 1);
        let written = write_until_created(&mut creators, &mut writer);
        let found = all(&mut admin, 0);
        (1..=INDEXES as u32).for_each(|id| assert!(all(&mut admin, id) == found, "index {id}"));
        written
    });
    assert!(written >= WRITES_MIN, "{written} writes meanwhile");

    tell_indexes(&mut creators, INDEXES + 1);
    (1..=INDEXES).for_each(|id| drop(writer.insert(SPACE, &row(ROWS + id, "late"))));
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    let found = all(&mut admin, 0);
    let key = array(&[int(SPACE.into())]);
    for described in 0..admin.select(288, 0, &key).len() as u32 {
        assert!(all(&mut admin, described) == found, "index {described} after the kill");
    }
    server.kill().expect("killed");
}

/// An index that the log does not take is not there, and can be created as soon as it does.
#[test]
fn a_full_disk_refuses_it() {
    let node = SickNode::new("write");
    let mut server = node.disk.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    let names = index(1, "names", false, 1, "string");
    let create = Request::Insert(Put { space: SpaceRef::Id(288), tuple: &names });
    node.ask_while_full(&server, &mut admin, &create);
    match admin.ask(&create) {
        Ok(_) => {}
        Err((code, message)) => assert_eq!(code, 3, "{message}"),
    }
    assert!(all(&mut admin, 1) == all(&mut admin, 0));
    server.kill().expect("killed");
}

/// Definitions that take long come one after the other: who waits has built nothing.
#[test]
fn who_waits_for_a_turn_holds_no_memory() {
    const INDEXES: u64 = 10;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let (mut admin, mut redis) = (node.admin(), server.connect().expect("connects"));
    make_space(&mut admin);
    let mut used = || info_number(&mut redis, "memory", "used_memory");
    let before = used();
    admin.insert(288, &index(INDEXES + 1, "first", false, 1, "string"));
    let of_one = used() - before;
    let mut creators: Vec<Iproto> = (0..INDEXES).map(|_| node.admin()).collect();
    let before = used();
    tell_indexes(&mut creators, 1);
    let mut most = 0;
    while creators.iter_mut().all(|creator| !creator.has_reply()) {
        most = most.max(used().saturating_sub(before));
    }
    creators.iter_mut().for_each(|creator| assert!(creator.receive().expect("a reply").is_ok()));
    assert!(most < 3 * of_one, "{most} bytes, one index takes {of_one}");
    server.kill().expect("killed");
}

/// Who leaves while a definition is prepared, or waits for its turn, does not get it, and nobody
/// waits for it.
#[test]
fn who_leaves_gets_no_index() {
    const CLIENTS: u64 = 20;
    const LEFT_OUT_MIN: u64 = CLIENTS / 2;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let (mut admin, mut redis) = (node.admin(), server.connect().expect("connects"));
    make_space(&mut admin);
    let mut clients = || info_number(&mut redis, "clients", "connected_clients");
    let before = clients();
    let left_out = best_of_rounds(LEFT_OUT_MIN, |_| {
        let mut creators: Vec<Iproto> = (0..CLIENTS).map(|_| node.admin()).collect();
        tell_indexes(&mut creators, 1);
        drop(creators);
        let mut looks = 0;
        while clients() > before {
            looks += 1;
            assert!(looks < 1_000_000, "they stay");
        }
        let delete = |id| admin.delete(288, &array(&[int(SPACE.into()), int(id)])).len() as u64;
        CLIENTS - (1..=CLIENTS).map(delete).sum::<u64>()
    });
    assert!(left_out >= LEFT_OUT_MIN, "{left_out} indexes of those who left are not there");
    server.kill().expect("killed");
}
