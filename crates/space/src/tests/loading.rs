//! Spaces that are loaded from a checkpoint and a log, against a map.

use super::{Val, array, field, index_def, part, space_def};
use crate::index::Store;
use crate::{Space, Tuple};
use ladon_testkit::Random;
use std::collections::BTreeMap;

type Rows = BTreeMap<Val, Vec<u8>>;

/// Of which type the primary key is, and a key from a number.
#[derive(Clone, Copy)]
struct Keys(&'static str, fn(u64) -> Val);

const NUMBERS: Keys = Keys("unsigned", |number| number.into());
/// Most share a beginning.
const STRINGS: Keys = Keys("string", |number| match number % 50 {
    0 => Val::Str(format!("a:{number}")),
    1 => Val::Str(format!("z:{number}")),
    _ => Val::Str(format!("key:{number:012}")),
});

fn new_space(kind: &str, keys: Keys) -> Space {
    let format = vec![field("id", keys.0, false), field("group", "unsigned", false)];
    let mut space = Space::new(space_def(format).expect("a definition"));
    let primary = index_def(space.def(), 0, kind, true, vec![part(0, keys.0)]);
    let second = index_def(space.def(), 1, "tree", false, vec![part(1, "unsigned")]);
    for def in [primary, second] {
        space.create_index(def.expect("a definition")).expect("an index");
    }
    space
}

/// The tuples have different lengths.
fn tuple(keys: Keys, number: u64, group: u64) -> (Val, Tuple) {
    let key = (keys.1)(number);
    (key.clone(), Tuple::new(&array(&[key, (1u64 << (group % 60)).into()])))
}

fn check(mut space: Space, rows: &Rows) {
    let primary = space.index(0).expect("an index");
    if let Store::Tree(tree) = &primary.store {
        tree.check(|a, b| primary.key.order(a, b));
        let found: Vec<_> = primary.tuples().map(|tuple| tuple.bytes().to_vec()).collect();
        assert!(found.iter().eq(rows.values()));
    }
    assert_eq!(space.len(), rows.len() as u64);
    assert_eq!(space.bsize(), rows.values().map(|bytes| bytes.len() as u64).sum::<u64>());
    for (key, bytes) in rows {
        let found = space.get(0, &array(std::slice::from_ref(key))).expect("a key");
        assert_eq!(found.as_ref().map(Tuple::bytes), Some(&bytes[..]));
    }
    space.finish_loading().expect("no duplicates");
    assert_eq!(space.index(1).map(crate::Index::len), Some(space.len()));
}

/// Tuples of these numbers, in runs, as a checkpoint of the primary index has them.
fn runs(keys: Keys, numbers: impl Iterator<Item = u64>, rows: &mut Rows) -> Vec<Vec<Tuple>> {
    let mut tuples: Vec<_> = numbers.map(|number| tuple(keys, number, number)).collect();
    tuples.sort_by(|(a, _), (b, _)| a.cmp(b));
    rows.extend(tuples.iter().map(|(key, tuple)| (key.clone(), tuple.bytes().to_vec())));
    let tuples: Vec<Tuple> = tuples.into_iter().map(|(_, tuple)| tuple).collect();
    tuples.chunks(100).map(<[Tuple]>::to_vec).collect()
}

#[test]
fn a_checkpoint_comes_back_whatever_the_order_of_its_blocks() {
    for (kind, keys) in [("tree", NUMBERS), ("tree", STRINGS), ("hash", STRINGS)] {
        for len in [0, 1, 54, 55, 62, 63, 3348, 3349, 20_000] {
            let mut rows = Rows::new();
            let mut runs = runs(keys, (0..len).map(|number| number * 3), &mut rows);
            runs.reverse();
            runs.push(Vec::new());
            let mut space = new_space(kind, keys);
            space.begin_loading();
            space.load_runs(runs);
            check(space, &rows);
        }
    }
}

/// No checkpoint has them; if one has, the later tuple of a key stays, and nothing is counted twice.
#[test]
fn blocks_that_overlap_are_loaded_too() {
    for keys in [NUMBERS, STRINGS] {
        let mut rows = Rows::new();
        let mut all = runs(keys, 0..5_000, &mut rows);
        for number in (0..5_000).step_by(7) {
            let (key, other) = tuple(keys, number, number + 1);
            rows.insert(key, other.bytes().to_vec());
            all.push(vec![other]);
        }
        let mut space = new_space("tree", keys);
        space.begin_loading();
        space.load_runs(all);
        check(space, &rows);
    }
}

#[test]
fn runs_of_a_log_agree_with_a_map() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let (kind, keys) = random.pick(&[("tree", NUMBERS), ("tree", STRINGS), ("hash", NUMBERS)]);
        let mut rows = Rows::new();
        let mut space = new_space(kind, keys);
        space.begin_loading();
        let loaded = random.below(3) * 5_000;
        space.load_runs(runs(keys, (0..loaded).map(|number| number * 2), &mut rows));
        let mut next = 0;
        for _ in 0..40 {
            let way = random.below(4);
            let mut run = Vec::new();
            for _ in 0..random.below(2_000) {
                next += 1;
                let number = match way {
                    0 => next,
                    1 => 1_000_000 - next,
                    2 => random.below(30_000),
                    // Beside each other, and often the same one.
                    _ => 5_000 + random.below(100),
                };
                let (key, tuple) = tuple(keys, number, random.below(60));
                rows.insert(key, tuple.bytes().to_vec());
                run.push(tuple);
            }
            space.put_run(&mut run);
            assert!(run.is_empty());
            for number in 0..random.below(300) {
                let key = (keys.1)(number * random.below(100));
                space.apply_delete(&array(std::slice::from_ref(&key))).expect("a key");
                rows.remove(&key);
            }
        }
        check(space, &rows);
    }
}

/// A run that ascends fills leaves completely, as single inserts do.
#[test]
fn ascending_runs_take_no_more_memory_than_single_inserts() {
    let mut spaces = [new_space("tree", NUMBERS), new_space("tree", NUMBERS)];
    spaces.iter_mut().for_each(Space::begin_loading);
    let tuples: Vec<Tuple> = (0..50_000).map(|number| tuple(NUMBERS, number, 0).1).collect();
    tuples.iter().for_each(|tuple| spaces[0].load(tuple.clone()));
    tuples.chunks(1_000).for_each(|chunk| spaces[1].put_run(&mut chunk.to_vec()));
    let bytes = spaces.each_ref().map(|space| space.index(0).map(crate::Index::bytes));
    assert_eq!(bytes[0], bytes[1]);
}
