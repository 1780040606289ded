//! Foreign keys of spaces with many tuples: they are checked beside writers of both spaces, hold from
//! then on, and are there or not after a crash.

use super::client::{Iproto, array, best_of_rounds, int, map, text};
use super::{Node, SickNode, row};
use ladon_iproto::Request;
use ladon_iproto::request::{Delete, IndexRef, Put, SpaceRef};
use ladon_msgpack::{read_array, take};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

const CITIES: u32 = 512;
const USERS: u32 = 513;
const ROWS: u64 = 20_000;
/// `ER_FIELD_FOREIGN_KEY_FAILED`.
const FAILED: u32 = 239;

fn replace(space: u32, tuple: &[u8]) -> Request<'_> {
    Request::Replace(Put { space: SpaceRef::Id(space), tuple })
}

/// A tuple of `_space`, with keys of these names from the second field to the cities.
fn defined(space: u32, keys: &[&str]) -> Vec<u8> {
    let id = map(&[(text("name"), text("id")), (text("type"), text("unsigned"))]);
    let names = [(text("space"), int(CITIES.into())), (text("field"), int(0))];
    let keys: Vec<_> = keys.iter().map(|key| (text(key), map(&names))).collect();
    let mut of = vec![(text("name"), text("of")), (text("type"), text("any"))];
    if !keys.is_empty() {
        of.push((text("foreign_key"), map(&keys)));
    }
    let name = text(&format!("s{space}"));
    let format = array(&[id, map(&of)]);
    array(&[int(space.into()), int(1), name, text("memtx"), int(0), map(&[]), format])
}

fn index(space: u32, id: u64, field: u64) -> Vec<u8> {
    let unique = map(&[(text("unique"), vec![if id == 0 { 0xc3 } else { 0xc2 }])]);
    let parts = array(&[array(&[int(field), text("unsigned")])]);
    array(&[int(space.into()), int(id), text(&format!("i{id}")), text("tree"), unique, parts])
}

fn user(id: u64, city: u64) -> Vec<u8> {
    array(&[int(id), int(city)])
}

fn put_all(client: &mut Iproto, space: u32, tuples: &[Vec<u8>]) {
    let all: Vec<Request<'_>> = tuples.iter().map(|tuple| replace(space, tuple)).collect();
    assert!(client.ask_all(&all).iter().all(Result::is_ok));
}

/// Users name the cities with an even number.
fn make_spaces(admin: &mut Iproto) {
    for space in [CITIES, USERS] {
        admin.insert(280, &defined(space, &[]));
        admin.insert(288, &index(space, 0, 0));
    }
    admin.insert(288, &index(USERS, 1, 1));
    let cities: Vec<Vec<u8>> = (0..ROWS).map(|id| row(id, "city")).collect();
    let users: Vec<Vec<u8>> = (0..ROWS).map(|id| user(id, id / 2 * 2)).collect();
    put_all(admin, CITIES, &cities);
    put_all(admin, USERS, &users);
}

/// The fields with this number of all tuples.
fn fields(client: &mut Iproto, space: u32, at: usize) -> BTreeSet<Vec<u8>> {
    let field = |tuple: Vec<u8>| {
        let mut rest = &tuple[..];
        let count = read_array(&mut rest).expect("a tuple");
        let mut fields = (0..count).map(|_| take(&mut rest).expect("a field").to_vec());
        fields.nth(at).expect("a field")
    };
    client.select(space, 0, &array(&[])).into_iter().map(field).collect()
}

/// Whether a user may name no city.
fn takes_strangers(client: &mut Iproto) -> bool {
    let stranger = user(ROWS * 9, ROWS * 9);
    let taken = match client.ask(&replace(USERS, &stranger)) {
        Ok(_) => true,
        Err((code, _)) => {
            assert_eq!(code, FAILED);
            false
        }
    };
    client.delete(USERS, &array(&[int(ROWS * 9)]));
    taken
}

/// If the key is there, all users name cities.
fn assert_key_holds(client: &mut Iproto) {
    if !takes_strangers(client) {
        let cities = fields(client, CITIES, 0);
        assert!(fields(client, USERS, 1).is_subset(&cities));
    }
}

#[test]
fn it_leaves_turns_to_others() {
    /// A key that is checked in one turn lets two at most pass; one in slices hundreds.
    const OTHERS_MIN: u64 = 20;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let (mut admin, mut polite) = (node.admin(), node.admin());
    make_spaces(&mut admin);
    let others = best_of_rounds(OTHERS_MIN, |round| {
        let key = format!("key {round}");
        admin.tell(&replace(280, &defined(USERS, &[&key])));
        let others = admin.steps_meanwhile(|_| assert_eq!(polite.ask(&Request::Ping), Ok(vec![])));
        assert!(admin.receive().expect("a reply").is_ok());
        others
    });
    assert!(others >= OTHERS_MIN, "{others} requests of another client in between");
    assert!(!takes_strangers(&mut admin));
    server.kill().expect("killed");
}

#[test]
fn it_comes_beside_writers_of_both_spaces_and_survives_a_crash() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_spaces(&mut admin);
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let mut definer = node.admin();
        for space in [CITIES, USERS] {
            let (node, is_over, written) = (&node, &is_over, &written);
            scope.spawn(move || {
                let mut writer = node.admin();
                for at in 0.. {
                    if is_over.load(Relaxed) {
                        return;
                    }
                    let id = at * 7_919 % ROWS;
                    match (space, at % 3) {
                        // Nobody names it.
                        (CITIES, 0) => drop(writer.delete(CITIES, &array(&[int(id | 1)]))),
                        (CITIES, _) => put_all(&mut writer, CITIES, &[row(id, "again")]),
                        (_, 0) => drop(writer.delete(USERS, &array(&[int(id)]))),
                        _ => put_all(&mut writer, USERS, &[user(id, at * 31 % ROWS / 2 * 2)]),
                    }
                    written.fetch_add(1, Relaxed);
                }
            });
        }
        while written.load(Relaxed) < 100 {
            thread::yield_now();
        }
        for round in 0..5 {
            let keys = [["a"], ["b"]];
            let keys = if round % 2 == 0 { &keys[0] } else { &keys[1] };
            definer.ask(&replace(280, &defined(USERS, keys))).expect("a definition");
            assert!(!takes_strangers(&mut definer));
        }
        is_over.store(true, Relaxed);
    });
    assert_key_holds(&mut admin);
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert!(!takes_strangers(&mut admin));
    assert_key_holds(&mut admin);
    let key = array(&[fields(&mut admin, USERS, 1).pop_first().expect("a user")]);
    let delete = Delete { space: SpaceRef::Id(CITIES), index: IndexRef::Id(0), key: &key };
    let (code, message) = admin.ask(&Request::Delete(delete)).unwrap_err();
    assert_eq!(
        (code, &*message),
        (238, "Foreign key 'a' integrity check failed: tuple is referenced")
    );
    server.kill().expect("killed");
}

#[test]
fn it_may_be_refused_or_given_up() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    make_spaces(&mut admin);
    // The last one that is looked at.
    put_all(&mut admin, USERS, &[user(ROWS, ROWS)]);
    let (code, message) = admin.ask(&replace(280, &defined(USERS, &["k"]))).unwrap_err();
    assert_eq!(code, FAILED);
    assert_eq!(
        message,
        "Foreign key constraint 'k' failed for field '2 (of)': foreign tuple was not found"
    );
    assert!(takes_strangers(&mut admin));
    admin.delete(USERS, &array(&[int(ROWS)]));
    for _ in 0..50 {
        node.admin().tell(&replace(280, &defined(USERS, &["k"])));
    }
    admin.ask(&replace(280, &defined(USERS, &["other"]))).expect("it waits for none of them");
    assert_key_holds(&mut admin);
    server.kill().expect("killed");
}

#[test]
fn a_kill_in_the_midst_leaves_it_whole_or_not_there() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_spaces(&mut admin);
    for round in 0..4u64 {
        let mut definer = node.admin();
        definer.tell(&replace(280, &defined(USERS, &[&format!("k{round}")])));
        for id in 0..round * 100 {
            let _ = admin.ask(&replace(USERS, &user(id, ROWS - 2)));
        }
        server.kill().expect("killed");
        server = node.start();
        admin = node.admin();
        assert_key_holds(&mut admin);
    }
    server.kill().expect("killed");
}

/// A key that the log does not take is not there, and can be had as soon as it does.
#[test]
fn a_full_disk_refuses_it() {
    let node = SickNode::new("write");
    let mut server = node.disk.start();
    let mut admin = node.admin();
    make_spaces(&mut admin);
    let definition = defined(USERS, &["k"]);
    node.ask_while_full(&server, &mut admin, &replace(280, &definition));
    assert_key_holds(&mut admin);
    admin.ask(&replace(280, &definition)).expect("it is had");
    assert!(!takes_strangers(&mut admin));
    server.kill().expect("killed");
}
