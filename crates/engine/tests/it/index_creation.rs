//! Indexes that are built while their space is changed: what they hold in the end is what recovery,
//! which builds them at once, finds in the log.

use crate::spaces::{
    Node, array, dump, index_tuple, number, other_index_tuple, recounted, restored, space_tuple,
};
use ladon_engine::{Built, CommitPace, IndexCreation, Interactive};
use ladon_msgpack::write;
use ladon_record::{Lsn, Record};
use ladon_space::{BoxError, Space, Statement};
use ladon_system_spaces as system;
use ladon_testkit::Random;

const SPACE: u32 = 512;
const IDS: u64 = 600;

/// `b` may be that of other tuples, `c` is not.
fn tuple(id: u64, b: u64) -> Vec<u8> {
    let both = |out: &mut Vec<u8>| {
        write::array(out, 2);
        write::uint(out, b);
        write::uint(out, id);
    };
    array(&[&number(id), &number(b), &number(id * 100 + b), &both])
}

/// A space with a primary index of this kind.
fn filled(kind: &str) -> Node {
    let node = Node::new();
    node.write(system::SPACE, |s| s.insert(&space_tuple(SPACE.into(), "s".into()))).unwrap();
    let primary = index_tuple(SPACE.into(), 0, kind, true, 0);
    node.write(system::INDEX, |s| s.insert(&primary)).unwrap();
    for id in 0..IDS {
        node.write(SPACE, |s| s.insert(&tuple(id, id % 50))).unwrap();
    }
    node
}

/// Two indexes that are built at once.
fn definitions(random: &mut Random) -> [Vec<u8>; 2] {
    let space = u64::from(SPACE);
    let first = match random.below(3) {
        0 => index_tuple(space, 1, "tree", false, 1),
        1 => index_tuple(space, 1, "tree", true, 2),
        _ => index_tuple(space, 1, "hash", true, 2),
    };
    [first, other_index_tuple(space, 2 + random.below(3), false)]
}

/// A statement, a transaction, or a definition that breaks the noting off; that is rare.
fn change(node: &Node, random: &mut Random) {
    let (id, b) = (random.below(IDS + 100), random.below(100));
    let tuple = tuple(id, b);
    let key = array(&[&number(id)]);
    if random.chance(1, 120) {
        node.write(system::SPACE, |s| s.replace(&space_tuple(SPACE.into(), "s".into()))).unwrap();
        return;
    }
    if random.chance(1, 20) {
        let mut transaction = Interactive::new(&node.keyspace.spaces);
        transaction.write(&node.keyspace, SPACE, Statement::Replace(&tuple)).unwrap();
        let mut scratch = node.scratch.borrow_mut();
        let pace = CommitPace { work: usize::MAX, now_ms: 1 };
        let append = |record: Record<'_>| node.append(&record);
        transaction.commit(&node.keyspace, &mut scratch, pace, append).0.expect("commits");
        return;
    }
    // An insertion may fail: then nothing is to be followed.
    let _ = match random.below(3) {
        0 => node.write(SPACE, |s| s.replace(&tuple)),
        1 => node.write(SPACE, |s| s.insert(&tuple)),
        _ => node.write(SPACE, |s| s.delete(0, &key)),
    };
}

fn define(node: &Node, tuple: &[u8], creation: IndexCreation) -> Result<(), BoxError> {
    let mut scratch = node.scratch.borrow_mut();
    let append = |record: Record<'_>| node.append(&record);
    let replace = |space: &mut Space| space.replace(tuple);
    let keyspace = &node.keyspace;
    let (done, _) =
        keyspace.define_prepared(system::INDEX, &mut scratch, replace, append, creation);
    done.map(drop)
}

#[test]
fn an_index_that_was_built_beside_changes_is_the_one_that_recovery_builds() {
    let (mut broken, mut slices) = (0, 0);
    for seed in 0..150 {
        let random = &mut Random::new(seed);
        let node = filled(random.pick(&["tree", "hash"]));
        let definitions = definitions(random);
        // The first one gets another order later on.
        let other = index_tuple(SPACE.into(), 1, "tree", true, 0);
        let mut rebuilt = Some(other);
        let mut creations = definitions
            .map(|tuple| (node.keyspace.begin_index(&tuple, true).expect("it is large"), tuple))
            .into_iter()
            .collect::<Vec<_>>();
        while !creations.is_empty() {
            for _ in 0..random.below(4) {
                change(&node, random);
            }
            let at = random.below(creations.len() as u64) as usize;
            let (creation, tuple) = &mut creations[at];
            match creation.go_on(1 + random.below(40) as usize).expect("all fit") {
                Built::GoesOn => slices += 1,
                Built::Broken => {
                    broken += 1;
                    *creation = node.keyspace.begin_index(tuple, true).expect("it is large");
                }
                Built::Ready => {
                    // What comes in the last moment counts as well.
                    for _ in 0..random.below(4) {
                        change(&node, random);
                    }
                    let (creation, tuple) = creations.swap_remove(at);
                    define(&node, &tuple, creation).expect("a definition");
                    if creations.is_empty()
                        && let Some(other) = rebuilt.take()
                    {
                        let creation = node.keyspace.begin_index(&other, true);
                        creations.push((creation.expect("it is large"), other));
                    }
                }
            }
        }
        for _ in 0..20 {
            change(&node, random);
        }
        // What could not be added counts until it is dropped.
        node.scratch.borrow_mut().garbage.clear();
        assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), dump(&node.keyspace), "seed {seed}");
        assert_eq!(node.keyspace.spaces.bytes(), recounted(&node.keyspace), "seed {seed}");
    }
    assert!(broken > 20 && slices > 2_000, "{broken} {slices}");
}

/// Tuples that have one key end it, whether they were there or come while it is built. Nothing of
/// it is left.
#[test]
fn what_does_not_fit_ends_it() {
    for comes_late in [false, true] {
        let node = filled("tree");
        let definition = index_tuple(SPACE.into(), 1, "tree", true, 2);
        let twin = |id: u64| array(&[&number(id), &number(1), &number(7)]);
        let before = node.keyspace.spaces.bytes();
        let mut creation = node.keyspace.begin_index(&definition, true).expect("it is large");
        if !comes_late {
            node.write(SPACE, |s| s.replace(&twin(1))).unwrap();
            node.write(SPACE, |s| s.replace(&twin(2))).unwrap();
            creation = node.keyspace.begin_index(&definition, true).expect("it is large");
        }
        let mut slices = (0..100).map(|_| {
            if comes_late {
                node.write(SPACE, |s| s.replace(&twin(1))).unwrap();
                node.write(SPACE, |s| s.replace(&twin(2))).unwrap();
            }
            creation.go_on(50)
        });
        let error = slices.find_map(Result::err).expect("it does not fit");
        assert_eq!(error.code.0, 3, "{}", error.message);
        drop(slices);
        // Who is told of it knows what the last writer wrote.
        assert_eq!(creation.depends(), node.reserved());
        drop(creation);
        assert!(node.keyspace.spaces.bytes().abs_diff(before) < 2_000, "its memory is counted");
        assert_eq!(node.keyspace.spaces.bytes(), recounted(&node.keyspace));
        assert!(!dump(&node.keyspace).contains_key(&(SPACE, 1)));
    }
}

/// Definitions that it depends on break it off, and no others.
#[test]
fn some_definitions_break_it_off() {
    let definition = index_tuple(SPACE.into(), 1, "tree", false, 1);
    let other = index_tuple(SPACE.into(), 2, "tree", false, 2);
    let multikey = other_index_tuple(SPACE.into(), 2, false);
    let truncate = array(&[&number(SPACE.into()), &number(1)]);
    let key = array(&[&number(SPACE.into()), &number(2)]);
    let insert = |node: &Node, tuple: &[u8]| {
        drop(node.write(system::INDEX, |s| s.insert(tuple)).unwrap());
    };
    for which in 0..5 {
        let node = filled("tree");
        let mut creation = node.keyspace.begin_index(&definition, true).expect("it is large");
        let mut second = node.keyspace.begin_index(&other, true).expect("it is large");
        assert_eq!(creation.go_on(50), Ok(Built::GoesOn));
        match which {
            0 => insert(&node, &other),
            1 => {
                insert(&node, &other);
                node.write(system::INDEX, |s| s.delete(0, &key)).unwrap();
            }
            2 => insert(&node, &definition),
            3 => insert(&node, &multikey),
            _ => drop(node.write(system::TRUNCATE, |s| s.replace(&truncate)).unwrap()),
        }
        let goes_on = Ok(if which < 2 { Built::GoesOn } else { Built::Broken });
        assert_eq!(creation.go_on(50), goes_on, "{which}");
        assert_eq!(second.go_on(50) == Ok(Built::Broken), which != 2, "{which}");
        while creation.go_on(50) == Ok(Built::GoesOn) {}
        // Who adds it all the same gets what there is.
        define(&node, &definition, creation).expect("a definition");
        assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), dump(&node.keyspace));
    }
    let node = filled("tree");
    insert(&node, &definition);
    assert!(node.keyspace.begin_index(&definition, true).is_none(), "it is that already");
    let reordered = index_tuple(SPACE.into(), 1, "tree", false, 2);
    assert!(node.keyspace.begin_index(&reordered, false).is_none(), "there is one");
    assert!(node.keyspace.begin_index(&reordered, true).is_some());
    assert!(node.keyspace.begin_index(&index_tuple(513, 1, "tree", false, 1), true).is_none());
    assert!(node.keyspace.begin_index(b"\x91\x01", true).is_none());
}

/// What another index demanded of tuples when it was begun is not demanded for ever.
#[test]
fn an_index_that_is_dropped_meanwhile_demands_nothing() {
    let node = filled("tree");
    node.write(system::INDEX, |s| s.insert(&index_tuple(SPACE.into(), 2, "tree", false, 2)))
        .unwrap();
    let definition = index_tuple(SPACE.into(), 1, "tree", false, 1);
    let mut creation = node.keyspace.begin_index(&definition, true).expect("it is large");
    assert_eq!(creation.go_on(50), Ok(Built::GoesOn));
    let key = array(&[&number(SPACE.into()), &number(2)]);
    node.write(system::INDEX, |s| s.delete(0, &key)).unwrap();
    let text = |out: &mut Vec<u8>| write::str(out, b"no number");
    node.write(SPACE, |s| s.replace(&array(&[&number(5), &number(1), &text]))).unwrap();
    while creation.go_on(50).expect("all fit") == Built::GoesOn {}
    define(&node, &definition, creation).expect("a definition");
    assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), dump(&node.keyspace));
}
