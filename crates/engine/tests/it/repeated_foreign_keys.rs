//! A statement that a commit repeats may do something else than it did: a REPLACE then finds a tuple
//! where there was none. Foreign keys, of other fields than primary keys, hold all the same.

use crate::foreign_keys::{CITY, USER, city, define, defined, format_with, index, nullable_index};
use crate::foreign_keys::{map, row};
use crate::spaces::{Node, Part, array, dump, index_tuple, number};
use ladon_engine::{Commit, CommitPace, Interactive};
use ladon_msgpack::write;
use ladon_record::Record;
use ladon_space::{BoxError, OwnedStatement, Statement};
use ladon_testkit::Random;
use std::collections::BTreeSet;

/// The field `x` is unique in both spaces, and `ref` names the one of `parent`.
fn bound_to(parent: u32) -> Node {
    let node = Node::new();
    let (space, field) = (number(parent.into()), number(2));
    let key: [(&str, Part<'_>); 2] = [("space", &space), ("field", &field)];
    let key = map(&key);
    let named: [(&str, Part<'_>); 1] = [("named", &key)];
    let named = map(&named);
    let option: [(&str, Part<'_>); 1] = [("foreign_key", &named)];
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    let unbound = defined(USER, &none, &format_with(&[]));
    let user = defined(USER, &none, &format_with(&option));
    for tuple in [city(), unbound, user] {
        assert_eq!(define(&node, &tuple), "ok");
    }
    for space in [CITY, USER] {
        assert_eq!(index(&node, &index_tuple(space.into(), 0, "tree", true, 0)), "ok");
        assert_eq!(index(&node, &nullable_index(space)), "ok");
        assert_eq!(index(&node, &index_tuple(space.into(), 2, "tree", true, 2)), "ok");
    }
    node
}

fn dangling(node: &Node, parent: u32) -> usize {
    let all = dump(&node.keyspace);
    let field = |tuple: &Vec<u8>, at| {
        let value = ladon_space::fields::field(tuple, at).expect("a field");
        ladon_msgpack::read_uint(&mut { value }).ok()
    };
    let there: BTreeSet<_> = all[&(parent, 0)].iter().map(|tuple| field(tuple, 2)).collect();
    let named = all[&(USER, 0)].iter().map(|tuple| field(tuple, 1));
    named.filter(|of| of.is_some() && !there.contains(of)).count()
}

/// `[["=", field, value]]`.
fn set(field: u64, value: u64) -> Vec<u8> {
    let operation = move |out: &mut Vec<u8>| {
        write::array(out, 3);
        write::str(out, b"=");
        write::uint(out, field);
        write::uint(out, value);
    };
    array(&[&operation])
}

fn statement(random: &mut Random) -> (u32, OwnedStatement) {
    let (id, x) = (random.below(4), random.below(4));
    let space = random.pick(&[USER, CITY]);
    let of = (space == USER && random.chance(2, 3)).then(|| random.below(4));
    let (tuple, key) = (row(id, of, x), array(&[&number(id)]));
    let field = if space == USER { 1 + random.below(2) } else { 2 };
    let operations = set(field, random.below(4));
    let statement = match random.below(6) {
        0 | 1 => Statement::Replace(&tuple),
        2 => Statement::Insert(&tuple),
        3 => Statement::Update { index: 0, key: &key, operations: &operations, index_base: 0 },
        4 => Statement::Upsert { tuple: &tuple, operations: &operations, index_base: 0 },
        _ => Statement::Delete { index: 0, key: &key },
    };
    (space, statement.into())
}

fn write(node: &Node, open: &mut Interactive, of: (u32, Statement<'_>)) -> Result<(), BoxError> {
    open.write(&node.keyspace, of.0, of.1).map(drop)
}

fn commit(node: &Node, open: &mut Interactive, work: usize) -> Result<Commit, BoxError> {
    let mut scratch = node.scratch.borrow_mut();
    let append = |record: Record<'_>| node.append(&record);
    open.commit(&node.keyspace, &mut scratch, CommitPace { work, now_ms: 1 }, append).0
}

/// A transaction runs first, another one commits, then it is to commit.
#[track_caller]
fn check(there: &[(u32, Vec<u8>)], first: (u32, Statement<'_>), other: &[(u32, Statement<'_>)]) {
    let node = bound_to(CITY);
    for (space, tuple) in there {
        assert_eq!(crate::foreign_keys::put(&node, *space, tuple), "ok");
    }
    let mut opens = [(); 2].map(|()| Interactive::new(&node.keyspace.spaces));
    write(&node, &mut opens[0], first).unwrap();
    other.iter().for_each(|of| write(&node, &mut opens[1], *of).unwrap());
    assert!(matches!(commit(&node, &mut opens[1], 9), Ok(Commit::Done)));
    let error = commit(&node, &mut opens[0], 9).expect_err("a conflict");
    assert_eq!((error.code.0, dangling(&node, CITY)), (97, 0));
}

#[test]
fn a_parent_that_a_repeated_statement_replaces_is_not_left_named() {
    let (x, y, child) = (row(5, None, 1), row(5, None, 2), row(7, Some(2), 0));
    let put = Statement::Replace;
    check(&[], (CITY, put(&x)), &[(CITY, put(&y)), (USER, put(&child))]);
    let (key, to_x) = (array(&[&number(5)]), set(2, 1));
    let (index, operations, index_base) = (0, &to_x[..], 0);
    let update = Statement::Update { index, key: &key, operations, index_base };
    let before = [(CITY, row(5, None, 3))];
    check(&before, (CITY, update), &[(CITY, put(&y)), (USER, put(&child))]);
    let upsert = Statement::Upsert { tuple: &x, operations, index_base };
    check(&[], (CITY, upsert), &[(CITY, put(&y)), (USER, put(&child))]);
}

#[test]
fn a_child_that_a_repeated_upsert_changes_names_somebody() {
    let (child, other, to_nobody) = (row(7, None, 0), row(7, None, 1), set(1, 3));
    let upsert = Statement::Upsert { tuple: &child, operations: &to_nobody, index_base: 0 };
    check(&[], (USER, upsert), &[(USER, Statement::Replace(&other))]);
}

/// Statements that leave what keys read as it is do not conflict.
#[test]
fn a_repeated_statement_may_replace_what_no_key_reads() {
    let node = bound_to(CITY);
    let city = row(5, None, 1);
    assert_eq!(crate::foreign_keys::put(&node, CITY, &city), "ok");
    let mut opens = [(); 2].map(|()| Interactive::new(&node.keyspace.spaces));
    let others = [row(7, Some(1), 4), row(7, None, 5)];
    for (open, other) in opens.iter_mut().zip(&others) {
        write(&node, open, (USER, Statement::Replace(other))).unwrap();
        write(&node, open, (CITY, Statement::Replace(&city))).unwrap();
    }
    for open in &mut opens {
        assert!(matches!(commit(&node, open, 9), Ok(Commit::Done)));
    }
}

struct Open {
    transaction: Interactive,
    /// With what was shown: the code of the error.
    shown: Vec<(u32, OwnedStatement, u32)>,
    is_ending: bool,
}

/// Whatever open transactions did on their copies: what is committed keeps the key, and is what the
/// same statements do one transaction after the other.
#[test]
fn random_transactions_keep_the_key() {
    let (mut committed, mut conflicts) = (0, 0);
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        // Of another space, and of its own.
        let parent = random.pick(&[CITY, USER]);
        let (node, oracle) = (bound_to(parent), bound_to(parent));
        let mut open: Vec<Open> = Vec::new();
        for _ in 0..120 {
            if open.len() < 3 && random.chance(1, 3) {
                let transaction = Interactive::new(&node.keyspace.spaces);
                open.push(Open { transaction, shown: Vec::new(), is_ending: false });
            }
            let Some(at) = (random.below(6) as usize).checked_rem(open.len()) else { continue };
            if !open[at].is_ending && !random.chance(1, 3) {
                let (space, kept) = statement(random);
                let done = write(&node, &mut open[at].transaction, (space, kept.get()));
                let code = done.err().map_or(0, |error| error.code.0);
                open[at].shown.push((space, kept, code));
                continue;
            }
            let work = 1 + random.below(4) as usize;
            match commit(&node, &mut open[at].transaction, work) {
                Ok(Commit::GoesOn | Commit::Waits) => open[at].is_ending = true,
                Err(_) => {
                    conflicts += 1;
                    open.swap_remove(at);
                }
                Ok(Commit::Done) => {
                    committed += 1;
                    let shown = open.swap_remove(at).shown;
                    if shown.iter().all(|(.., code)| *code != 0) {
                        // It has written nothing: its moment is that of its copy.
                        continue;
                    }
                    for (space, kept, code) in shown {
                        let done = oracle.write(space, |space| kept.get().run(space));
                        let found = done.err().map_or(0, |error| error.code.0);
                        assert_eq!(found, code, "seed {seed}: {kept:?}");
                    }
                }
            }
            assert_eq!(dangling(&node, parent), 0, "seed {seed}");
        }
        drop(open);
        assert_eq!(dump(&node.keyspace), dump(&oracle.keyspace), "seed {seed}");
    }
    assert!(committed > 500 && conflicts > 200, "{committed} {conflicts}");
}
