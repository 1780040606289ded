//! Transactions on spaces that lock more of them as they go on: in any order, by several threads, and
//! with a part taken back.

use crate::spaces::{Node, array, index_tuple, number, space_tuple};
use ladon_engine::{Catalog, Grown, Keyspace, Scratch, SpaceTx};
use ladon_record::{Lsn, Record};
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::sync::Mutex;
use std::thread::scope;

const FIRST: u32 = 512;
const SPACES: u32 = 4;
const MONEY: u64 = 1_000_000;

fn row(value: u64) -> Vec<u8> {
    array(&[&number(1), &number(value)])
}

/// Spaces with one tuple each.
fn node() -> Node {
    let node = Node::new();
    for id in FIRST..FIRST + SPACES {
        let tuple = space_tuple(id.into(), format!("s{id}"));
        node.write(system::SPACE, |space| space.insert(&tuple)).expect("a space");
        let tuple = index_tuple(id.into(), 0, "tree", true, 0);
        node.write(system::INDEX, |space| space.insert(&tuple)).expect("an index");
        node.write(id, |space| space.insert(&row(MONEY))).expect("a tuple");
    }
    node
}

fn value(tx: &mut SpaceTx<'_>, id: u32) -> u64 {
    let tuple = tx.space(id).get(0, &[0x91, 1]).expect("an index").expect("a tuple");
    let mut field = ladon_space::fields::field(tuple.bytes(), 1).expect("a field");
    ladon_msgpack::read_uint(&mut field).expect("a number")
}

fn put(tx: &mut SpaceTx<'_>, id: u32, value: u64) {
    tx.write(id, |space| space.replace(&row(value))).expect("a tuple");
}

/// Moves one from each space to the next, growing at each; whether it was not refused.
fn transfer(tx: &mut SpaceTx<'_>, path: &[u32]) -> bool {
    for pair in path.windows(2) {
        for id in pair {
            if tx.grow(&[*id]).expect("a space") != Grown::Held {
                return false;
            }
        }
        let from = value(tx, pair[0]);
        put(tx, pair[0], from - 1);
        let to = value(tx, pair[1]);
        put(tx, pair[1], to + 1);
    }
    true
}

#[test]
fn threads_that_grow_in_any_order_keep_the_sum() {
    let node = node();
    let keyspace: &Keyspace = &node.keyspace;
    let records = Mutex::new(Vec::new());
    let append = |record: Record<'_>| {
        let mut records = records.lock().expect("the records");
        records.push(record.changes().to_vec());
        Lsn(1_000_000 + records.len() as u64)
    };
    scope(|threads| {
        for seed in 0..4 {
            let append = &append;
            threads.spawn(move || {
                let (mut random, mut scratch) = (Random::new(seed), Scratch::default());
                let catalog = keyspace.spaces.catalog_to_keep();
                for _ in 0..500 {
                    let path: Vec<u32> =
                        (0..3).map(|_| FIRST + random.below(SPACES.into()) as u32).collect();
                    let mut locks = Vec::new();
                    loop {
                        let mut tx = begin(keyspace, &catalog, &locks, &mut scratch);
                        if transfer(&mut tx, &path) {
                            tx.commit(append);
                            break;
                        }
                        tx.abort();
                        locks = path.clone();
                        locks.sort_unstable();
                        locks.dedup();
                    }
                }
            });
        }
        threads.spawn(|| {
            let (all, catalog) =
                ((FIRST..FIRST + SPACES).collect::<Vec<_>>(), keyspace.spaces.catalog_to_keep());
            let mut scratch = Scratch::default();
            for _ in 0..500 {
                let mut tx = begin(keyspace, &catalog, &all, &mut scratch);
                let sum: u64 = all.iter().map(|id| value(&mut tx, *id)).sum();
                tx.abort();
                assert_eq!(sum, MONEY * u64::from(SPACES));
            }
        });
    });
    for record in records.into_inner().expect("the records") {
        node.append(&Record::Changes(&record));
    }
}

fn begin<'a>(
    keyspace: &'a Keyspace,
    catalog: &'a Catalog,
    ids: &[u32],
    scratch: &'a mut Scratch,
) -> SpaceTx<'a> {
    keyspace.begin_on_spaces(catalog, ids, scratch).expect("spaces")
}

#[test]
fn what_is_taken_back_in_the_middle_is_in_no_record() {
    let node = node();
    let catalog = node.keyspace.spaces.catalog_to_keep();
    let mut scratch = Scratch::default();
    let mut tx = begin(&node.keyspace, &catalog, &[], &mut scratch);
    assert_eq!(tx.grow(&[513]).expect("a space"), Grown::Held);
    put(&mut tx, 513, 7);
    let mark = tx.mark();
    // Below the one that is held.
    assert_eq!(tx.grow(&[512]).expect("a space"), Grown::Held);
    put(&mut tx, 512, 8);
    put(&mut tx, 513, 9);
    tx.go_back(mark);
    assert_eq!((value(&mut tx, 512), value(&mut tx, 513)), (MONEY, 7));
    put(&mut tx, 512, 10);
    assert_eq!(tx.spaces().collect::<Vec<_>>(), [512, 513]);
    assert!(tx.grow(&[600]).is_err(), "there is no such space");
    let records = node.records();
    tx.commit(|record| node.append(&record));
    assert_eq!(node.records(), records + 1);
    // Who follows the records comes to the same spaces: `Node` looks when it is dropped.
}
