//! Open transactions' memory is counted and bounded: tuples that they have written, and those that
//! changed spaces keep for their copies.

use crate::spaces::{Node, array, index_tuple, number, space_tuple};
use ladon_engine::{Interactive, TransactionLimits};
use ladon_msgpack::write;
use ladon_space::{BoxError, Statement};
use ladon_system_spaces as system;

const SPACE: u32 = 512;
const TUPLES: u64 = 1_000;
const TEXT_BYTES: usize = 1_000;
/// Bytes of all tuples, about.
const ALL: u64 = TUPLES * TEXT_BYTES as u64;
const NO_LIMITS: TransactionLimits = TransactionLimits { all: u64::MAX, of_client: u64::MAX };

fn tuple(id: u64, letter: u8) -> Vec<u8> {
    let text = move |out: &mut Vec<u8>| write::str(out, &[letter; TEXT_BYTES]);
    array(&[&number(id), &text])
}

fn put_all(node: &Node, letter: u8) {
    for id in 0..TUPLES {
        node.write(SPACE, |space| space.replace(&tuple(id, letter))).unwrap();
    }
}

fn node() -> Node {
    let node = Node::new();
    node.write(system::SPACE, |s| s.insert(&space_tuple(SPACE.into(), "s".to_owned()))).unwrap();
    node.write(system::INDEX, |s| s.insert(&index_tuple(SPACE.into(), 0, "tree", true, 0)))
        .unwrap();
    put_all(&node, b'a');
    node
}

/// A transaction that has read the space.
fn reader(node: &Node, client: u64) -> Interactive {
    let spaces = &node.keyspace.spaces;
    let mut transaction = Interactive::opened_by(client, spaces, NO_LIMITS);
    transaction.space(&node.keyspace, SPACE).unwrap();
    transaction
}

fn kept(node: &Node, limits: TransactionLimits) -> u64 {
    node.keyspace.spaces.look_at_transactions(limits);
    node.keyspace.spaces.transaction_bytes()
}

#[track_caller]
fn assert_about(bytes: u64, expected: u64) {
    assert!(bytes >= expected && bytes < expected + expected / 4 + 10_000, "{bytes} of {expected}");
}

#[test]
fn what_old_copies_keep_is_counted_once() {
    let node = node();
    let first = [reader(&node, 1), reader(&node, 2)];
    assert_eq!(kept(&node, NO_LIMITS), 0, "they share everything with the space");
    put_all(&node, b'b');
    assert_about(kept(&node, NO_LIMITS), ALL);
    let second = reader(&node, 3);
    put_all(&node, b'c');
    assert_about(kept(&node, NO_LIMITS), 2 * ALL);
    drop(first);
    assert_about(kept(&node, NO_LIMITS), ALL);
    drop(second);
    assert_eq!(kept(&node, NO_LIMITS), 0);
}

/// A tuple that is replaced again and again leaves one behind: the others were never copied.
#[test]
fn a_tuple_that_changes_often_is_kept_once() {
    let node = node();
    let _reader = reader(&node, 1);
    for _ in 0..10_000 {
        node.write(SPACE, |space| space.replace(&tuple(7, b'z'))).unwrap();
    }
    let bytes = kept(&node, NO_LIMITS);
    assert!(bytes < 10_000, "a tuple and the nodes above it: {bytes}");
}

#[test]
fn those_opened_first_end_when_too_much_is_kept() {
    let node = node();
    let mut open = Vec::new();
    for client in 0..6 {
        open.push(reader(&node, client));
        put_all(&node, b'b' + client as u8);
    }
    assert_about(kept(&node, NO_LIMITS), 6 * ALL);
    let limits = TransactionLimits { all: 4 * ALL, of_client: u64::MAX };
    assert_eq!(node.keyspace.spaces.look_at_transactions(limits), 3);
    assert!(node.keyspace.spaces.asks_transactions_to_end());
    let asked: Vec<bool> = open.iter().map(Interactive::has_to_end).collect();
    assert_eq!(asked, [true, true, true, false, false, false]);
    // They still hold it, and nobody else has to end for that.
    assert_eq!(node.keyspace.spaces.look_at_transactions(limits), 0);
    assert_about(node.keyspace.spaces.transaction_bytes(), 6 * ALL);
    let mut scratch = node.scratch.borrow_mut();
    open.drain(..3).for_each(|transaction| transaction.roll_back(&mut scratch));
    assert!(!node.keyspace.spaces.asks_transactions_to_end());
    assert_about(kept(&node, limits), 3 * ALL);
}

#[test]
fn a_client_has_a_limit_of_its_own() {
    let node = node();
    let mut open = vec![reader(&node, 1)];
    for client in [2, 2, 2, 3] {
        put_all(&node, b'b');
        open.push(reader(&node, client));
    }
    put_all(&node, b'c');
    let limits = TransactionLimits { all: u64::MAX, of_client: 5 * ALL / 2 };
    assert_eq!(node.keyspace.spaces.look_at_transactions(limits), 1);
    let asked: Vec<bool> = open.iter().map(Interactive::has_to_end).collect();
    assert_eq!(asked, [false, true, false, false, false]);
}

fn put(node: &Node, open: &mut Interactive, id: u64) -> Result<(), BoxError> {
    open.check_room(0)?;
    let tuple = tuple(id, b'x');
    open.write(&node.keyspace, SPACE, Statement::Replace(&tuple)).map(drop)
}

/// Uncommitted data has bounds, which others' data does not feel.
#[test]
fn uncommitted_data_is_refused_at_its_own_bounds() {
    let node = node();
    let spaces = &node.keyspace.spaces;
    let before = spaces.bytes();
    let limits = TransactionLimits { all: 300_000, of_client: 200_000 };
    let mut open = [1, 2].map(|client| Interactive::opened_by(client, spaces, limits));
    let put_until_refused = |open: &mut Interactive| {
        let refused = (0..1_000).find_map(|id| put(&node, open, id).err()).expect("a bound");
        assert_eq!(refused.code.0, 2, "{refused}");
        (open.bytes(), refused.message)
    };
    let (first, why) = put_until_refused(&mut open[0]);
    assert!(first > 200_000 && why.contains("client-transaction-memory"), "{first} {why}");
    let (second, why) = put_until_refused(&mut open[1]);
    assert!(second < 150_000 && why.contains("(transaction-memory)"), "{second} {why}");
    // A little is left to everybody.
    let mut third = Interactive::opened_by(3, spaces, limits);
    put(&node, &mut third, 1).unwrap();
    assert_eq!(spaces.bytes(), before, "it is no data yet");
    assert!(spaces.transaction_bytes() > 300_000);
    node.write(SPACE, |space| space.replace(&tuple(1, b'y'))).unwrap();
    drop((open, third));
    assert_eq!(spaces.transaction_bytes(), 0);
    assert_eq!(spaces.bytes(), before);
}
