//! Long selections over indexes without an order: whole, of one moment, and in nobody's way.

use super::Node;
use super::client::{Iproto, array, best_of_rounds, int, map, text};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Call, IndexRef, Put, Select, SpaceRef};
use std::collections::BTreeSet;

const SPACE: u32 = 512;
const ROWS: u64 = 20_000;

fn make_space(admin: &mut Iproto) {
    let format = array(&[]);
    let space = [int(512), int(1), text("rows"), text("memtx"), int(0), map(&[]), format];
    admin.insert(280, &array(&space));
    let mut index = |number, name, kind, is_unique: bool, field, of| {
        let unique = map(&[(text("unique"), vec![if is_unique { 0xc3 } else { 0xc2 }])]);
        let parts = array(&[array(&[int(field), text(of)])]);
        admin.insert(288, &array(&[int(512), int(number), text(name), text(kind), unique, parts]));
    };
    index(0, "pk", "hash", true, 0, "unsigned");
    index(1, "bits", "bitset", false, 0, "unsigned");
    index(2, "boxes", "rtree", false, 2, "array");
}

fn tuple(id: u64) -> Vec<u8> {
    array(&[int(id), text(&format!("name {id}")), array(&[int(id % 100), int(id / 100)])])
}

/// What an index selects, after `offset` tuples, at most so many.
fn select(
    admin: &mut Iproto,
    (index, iterator): (u32, u32),
    key: &[u8],
    (offset, limit): (u32, u32),
) -> Vec<Vec<u8>> {
    let select = Select {
        space: SpaceRef::Id(SPACE),
        index: IndexRef::Id(index),
        iterator,
        offset,
        limit,
        key,
        fetch_position: false,
        after_position: None,
        after_tuple: None,
    };
    admin.ask(&Request::Select(select)).expect("selects")
}

/// Every kind, with offsets: as many tuples as there are, each of them once.
#[test]
fn they_come_whole_whatever_the_index() {
    const ALL: u32 = 2;
    const BITS_ANY_SET: u32 = 8;
    const NEIGHBOR: u32 = 11;
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin);
    insert_all(&mut admin);
    let middle = array(&[array(&[int(50), int(100)])]);
    for (index, iterator, key, count) in [
        (0, ALL, array(&[]), ROWS),
        (1, ALL, array(&[]), ROWS),
        (1, BITS_ANY_SET, array(&[int(1)]), ROWS / 2),
        (1, BITS_ANY_SET, array(&[int(1 << 40)]), 0),
        (2, ALL, array(&[]), ROWS),
        (2, NEIGHBOR, middle, ROWS),
    ] {
        let what = (index, iterator);
        let whole = select(&mut admin, what, &key, (0, u32::MAX));
        let different: BTreeSet<&Vec<u8>> = whole.iter().collect();
        assert_eq!((whole.len() as u64, different.len() as u64), (count, count), "{what:?}");
        for (offset, limit) in [(1, 5), (300, 1000), (9_990, 50), (30_000, 10)] {
            let from = whole.len().min(offset as usize);
            let to = whole.len().min(from + limit as usize);
            let part = select(&mut admin, what, &key, (offset, limit));
            assert!(part == whole[from..to], "{what:?} from {offset} on");
        }
    }
    server.kill().expect("killed");
}

/// What others change while a reply is made is not in it.
#[test]
fn they_show_one_moment() {
    let node = Node::new("none");
    let mut server = node.start();
    let (mut reader, mut writer) = (node.admin(), node.admin());
    make_space(&mut reader);
    insert_all(&mut reader);
    for round in 0..10 {
        reader.send_select(SPACE);
        // Each moment has one row fewer, and another one more.
        for id in round * 20..round * 20 + 20 {
            writer.delete(SPACE, &array(&[int(id + 1)]));
            writer.insert(SPACE, &tuple(ROWS + id + 1));
        }
        let shown = reader.receive().expect("a reply").expect("selects").len() as u64;
        assert!((ROWS - 1..=ROWS).contains(&shown), "{shown} rows");
    }
    server.kill().expect("killed");
}

fn insert_all(admin: &mut Iproto) {
    let tuples: Vec<Vec<u8>> = (1..=ROWS).map(tuple).collect();
    let space = SpaceRef::Id(SPACE);
    let inserts: Vec<Request<'_>> =
        tuples.iter().map(|tuple| Request::Insert(Put { space, tuple })).collect();
    assert!(admin.ask_all(&inserts).iter().all(Result::is_ok));
}

/// `index:count(key, {iterator = iterator})`, and the number as a reply has it.
fn count(admin: &mut Iproto, index: &str, iterator: &str, key: Vec<u8>) -> Vec<Vec<u8>> {
    let arguments = array(&[key, map(&[(text("iterator"), text(iterator))])]);
    admin.call(&format!("box.space.rows.index.{index}:count"), &arguments).expect("counts")
}

/// Counts that have to look at tuples are what a selection finds; others have their turns beside
/// them.
#[test]
fn long_counts_are_exact_and_leave_turns_to_others() {
    /// A count in one turn lets two at most pass.
    const OTHERS_MIN: u64 = 5;
    let node = Node { io_threads: 1, ..Node::new("none") };
    let mut server = node.start();
    let (mut admin, mut polite) = (node.admin(), node.admin());
    make_space(&mut admin);
    insert_all(&mut admin);
    let boxed = |left: u64, right: u64| array(&[array(&[left, 0, right, 1_000].map(int))]);
    for (index, (number, iterator), named, key) in [
        ("pk", (0, 6), "GT", array(&[int(7)])),
        ("bits", (1, 8), "BITS_ANY_SET", array(&[int(3)])),
        ("bits", (1, 9), "BITS_ALL_NOT_SET", array(&[int(1 << 40)])),
        ("bits", (1, 7), "BITS_ALL_SET", array(&[int(1 << 13 | 1 << 12)])),
        ("boxes", (2, 10), "OVERLAPS", boxed(10, 59)),
        ("boxes", (2, 11), "NEIGHBOR", array(&[array(&[int(50), int(100)])])),
    ] {
        let found = select(&mut admin, (number, iterator), &key, (0, u32::MAX)).len() as u64;
        assert_eq!(count(&mut admin, index, named, key), [int(found)], "{index} {named}");
    }
    let arguments = array(&[array(&[int(1 << 40)]), text("BITS_ALL_NOT_SET")]);
    let name = b"box.space.rows.index.bits:count";
    let counts = Call { name, arguments: &arguments };
    assert_eq!(admin.ask(&Request::Call16(counts)), Ok(vec![array(&[int(ROWS)])]));
    let others = best_of_rounds(OTHERS_MIN, |_| {
        admin.tell(&Request::Call(counts));
        let others = admin.steps_meanwhile(|_| assert_eq!(polite.ask(&Request::Ping), Ok(vec![])));
        assert_eq!(admin.receive(), Some(Ok(vec![int(ROWS)])));
        others
    });
    assert!(others >= OTHERS_MIN, "{others} requests of another client in between");
    server.kill().expect("killed");
}

/// A count is of one moment, and in a transaction it stays true until the commit.
#[test]
fn long_counts_are_of_one_moment() {
    let node = Node::new("none");
    let mut server = node.start();
    let (mut admin, mut writer) = (node.admin(), node.admin());
    make_space(&mut admin);
    insert_all(&mut admin);
    let all = || (array(&[int(1 << 40)]), "BITS_ALL_NOT_SET");
    admin.stream_id = 1;
    for is_changed in [false, true] {
        admin.ask(&Request::Begin(Begin::default())).expect("begins");
        let (key, iterator) = all();
        assert_eq!(count(&mut admin, "bits", iterator, key), [int(ROWS)]);
        admin.insert(SPACE, &tuple(ROWS + 1));
        let (key, iterator) = all();
        assert_eq!(count(&mut admin, "bits", iterator, key), [int(ROWS + 1)], "its own change");
        if is_changed {
            writer.insert(SPACE, &tuple(ROWS + 2));
        }
        let committed = admin.ask(&Request::Commit(None));
        assert_eq!(committed.is_err_and(|(code, _)| code == 97), is_changed);
        if !is_changed {
            writer.delete(SPACE, &array(&[int(ROWS + 1)]));
        }
    }
    server.kill().expect("killed");
}
