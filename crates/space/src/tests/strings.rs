//! Trees of strings that begin alike: what hints show may change, and neither the order nor what is
//! found does.

use super::{Val, array, field, index_def, part, space_def};
use crate::index::Store;
use crate::{IteratorType, Sought, Space};
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

fn new_space() -> Space {
    let format = vec![field("key", "string", false), field("group", "string", false)];
    let mut space = Space::new(space_def(format).expect("a definition"));
    let primary = index_def(space.def(), 0, "tree", true, vec![part(0, "string")]);
    space.create_index(primary.expect("a definition")).expect("an index");
    let group = index_def(space.def(), 1, "tree", false, vec![part(1, "string")]);
    space.create_index(group.expect("a definition")).expect("an index");
    space
}

fn tuple(key: &str, group: &str) -> Vec<u8> {
    array(&[key.into(), group.into()])
}

fn random_key(random: &mut Random) -> String {
    let number = random.below(9_000);
    match random.below(12) {
        0..=3 => format!("key:{number:016}"),
        4 => format!("key:{number}"),
        5 => format!("key:00000000{}", "0".repeat(number as usize % 40)),
        6 => format!("user:{}:of the house of {number}", number % 50),
        7 => format!("key-new:{}:{number}", number % 50),
        8 => format!("counter:{number}"),
        9 => format!("key\u{ff}:{number}"),
        10 => "k".repeat(number as usize % 5),
        _ => format!("{number}"),
    }
}

fn check(space: &Space, rows: &BTreeMap<String, String>, random: &mut Random) {
    for index in space.indexes() {
        let Store::Tree(tree) = &index.store else { panic!("it is a tree") };
        tree.check(|a, b| {
            assert_eq!(a.hint, index.key.hint(a.tuple.bytes()));
            index.key.compare(a.hint, &a.tuple, b.hint, b.tuple.bytes())
        });
        assert_eq!(tree.len(), rows.len() as u64);
    }
    for _ in 0..20 {
        let key = random_key(random);
        let sought = array(&[Val::Str(key.clone())]);
        let soon =
            [Sought::Key(&sought), Sought::Key(&[0x90]), Sought::Key(&[]), Sought::Tuple(&[])];
        space.indexes.iter().for_each(|index| index.fetch_ahead(&soon));
        let found = space.get(0, &sought).expect("a key").map(|tuple| tuple.bytes().to_vec());
        assert_eq!(found, rows.get(&key).map(|group| tuple(&key, group)));
        let from = space.select(0, IteratorType::Ge, &sought, 0, 3, None).expect("a selection");
        let from: Vec<Vec<u8>> = from.map(|tuple| tuple.bytes().to_vec()).collect();
        let expected = rows.range(key..).take(3).map(|(key, group)| tuple(key, group));
        assert_eq!(from, expected.collect::<Vec<_>>());
    }
}

#[test]
fn strings_that_begin_alike_agree_with_a_model() {
    for seed in 1..4 {
        let mut random = Random::new(seed);
        let (mut space, mut rows) = (new_space(), BTreeMap::new());
        let mut most = 0;
        for step in 0..20_000 {
            let key = random_key(&mut random);
            // At first all keys begin alike, so what they share is long.
            let key = if step < 2_000 { format!("key:{:016}", step / 2) } else { key };
            if random.chance(1, 4) {
                let deleted = space.delete(0, &array(&[Val::Str(key.clone())])).expect("a key");
                assert_eq!(deleted.old.is_some(), rows.remove(&key).is_some());
            } else {
                let group = format!("group:{}", random.below(50));
                space.replace(&tuple(&key, &group)).expect("a tuple");
                rows.insert(key, group);
            }
            most = most.max(rows.len());
            if step % 2_500 == 0 {
                check(&space, &rows, &mut random);
            }
        }
        check(&space, &rows, &mut random);
        assert!(most > 5_000);
    }
}

/// How many hints the primary index's tuples have.
fn hints(space: &Space) -> usize {
    let Some(Store::Tree(tree)) = space.index(0).map(|index| &index.store) else {
        panic!("it is a tree")
    };
    (0..tree.len())
        .filter_map(|rank| tree.at(rank))
        .map(|entry| entry.hint)
        .collect::<BTreeSet<_>>()
        .len()
}

#[test]
fn hints_tell_apart_keys_that_begin_alike() {
    let mut space = new_space();
    for number in 0..20_000 {
        space.insert(&tuple(&format!("key:{number:016}"), "group")).expect("a tuple");
    }
    assert_eq!(hints(&space), 20_000);
    // A checkpoint brings them in order; the last one begins differently.
    let mut loaded = new_space();
    loaded.begin_loading();
    space.index(0).expect("an index").tuples().for_each(|tuple| loaded.load(tuple.clone()));
    let other = tuple("kez", "group");
    loaded.load(crate::Tuple::new(&other));
    loaded.finish_loading().expect("no duplicates");
    assert_eq!(hints(&loaded), 20_001);
    assert_eq!(loaded.len(), 20_001);
}

#[test]
fn hints_tell_apart_keys_that_begin_otherwise_than_most() {
    let mut space = new_space();
    for number in 0..20_000 {
        space.insert(&tuple(&format!("key:{number:010}"), "group")).expect("a tuple");
    }
    let grown = hints(&space);
    for number in 0..3_000 {
        // Before most, and after them.
        for name in ["key-new", "user"] {
            let key = format!("{name}:{}:{}", number % 50, number / 50);
            space.insert(&tuple(&key, "group")).expect("a tuple");
        }
    }
    assert_eq!(hints(&space), grown + 6_000);
    let mut loaded = new_space();
    loaded.begin_loading();
    space.index(0).expect("an index").tuples().for_each(|tuple| loaded.load(tuple.clone()));
    loaded.finish_loading().expect("no duplicates");
    assert_eq!(hints(&loaded), grown + 6_000);
}

#[test]
fn an_insert_that_is_refused_leaves_what_was_there() {
    let mut space = new_space();
    space.insert(&tuple("a", "one")).expect("a tuple");
    space.insert(&tuple("a", "two")).expect_err("a duplicate");
    let all = |index| {
        let tuples = space.index(index).expect("an index").tuples();
        tuples.map(|tuple| tuple.bytes().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!([all(0), all(1)], [vec![tuple("a", "one")], vec![tuple("a", "one")]]);
    assert_eq!(space.bsize(), tuple("a", "one").len() as u64);
}
