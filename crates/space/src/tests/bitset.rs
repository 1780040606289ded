//! BITSET indexes: Tarantool's replies as data, and random statements against a model.

use super::{Val, array, index_def, map, part, space_def};
use crate::{BoxError, IteratorType, Looked, Space, Tuple};
use ladon_testkit::Random;
use std::collections::BTreeMap;

const ITERATORS: [IteratorType; 5] = [
    IteratorType::Eq,
    IteratorType::All,
    IteratorType::BitsAllSet,
    IteratorType::BitsAnySet,
    IteratorType::BitsAllNotSet,
];

fn space_with(kind: &str) -> Space {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    let primary = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(primary.expect("a definition")).expect("an index");
    let bits = index_def(space.def(), 1, "bitset", false, vec![part(1, kind)]);
    space.create_index(bits.expect("a definition")).expect("an index");
    space
}

fn selected(space: &Space, iterator: IteratorType, key: &[Val]) -> Result<Vec<u64>, BoxError> {
    let id = |tuple: &Tuple| ladon_msgpack::read_uint(&mut tuple.field(0).unwrap()).unwrap();
    let key = array(key);
    let found = space.select(1, iterator, &key, 0, u64::MAX, None).map(|all| {
        let mut ids: Vec<u64> = all.map(id).collect();
        ids.sort_unstable();
        ids
    });
    let count = found.as_ref().map(|found| found.len() as u64).map_err(Clone::clone);
    assert_eq!(space.count(1, iterator, &key), count);
    found
}

#[test]
fn strings_are_selected_as_tarantool_selects_them() {
    let mut space = space_with("string");
    for (id, text) in (1u64..).zip(["a", "ab", "", "\0", "abc\0", "b"]) {
        space.insert(&array(&[id.into(), text.into()])).unwrap();
    }
    let all = vec![1, 2, 3, 4, 5, 6];
    // By key: what EQ, ALL, BITS_ALL_SET, BITS_ANY_SET and BITS_ALL_NOT_SET select.
    for (key, expected) in [
        ("", [all.clone(), all.clone(), vec![], vec![], all.clone()]),
        ("a", [vec![1, 2, 5], all.clone(), vec![1, 2, 5], vec![1, 2, 5, 6], vec![3, 4]]),
        ("ab", [vec![2, 5], all.clone(), vec![2, 5], vec![1, 2, 5, 6], vec![3, 4]]),
        ("\0", [vec![3, 4], all.clone(), vec![], vec![], all.clone()]),
        ("b", [vec![6], all.clone(), vec![6], vec![1, 2, 5, 6], vec![3, 4]]),
    ] {
        for (iterator, expected) in ITERATORS.into_iter().zip(expected) {
            assert_eq!(
                selected(&space, iterator, &[key.into()]),
                Ok(expected),
                "{key:?} {iterator:?}"
            );
        }
    }
}

#[test]
fn what_it_does_not_do_is_refused_as_in_tarantool() {
    let mut space = space_with("unsigned");
    space.insert(&array(&[1.into(), 3.into()])).unwrap();
    let no =
        |what: &str| format!("Index 'i1' (BITSET) of space 's' (memtx) does not support {what}");
    let message = |result: Result<Vec<u64>, BoxError>| result.unwrap_err().message;
    for iterator in [IteratorType::Req, IteratorType::Lt, IteratorType::Ge, IteratorType::Neighbor]
    {
        let refused = message(selected(&space, iterator, &[1.into()]));
        assert_eq!(refused, no("requested iterator type"));
    }
    let partial = message(selected(&space, IteratorType::Eq, &[]));
    assert!(partial.starts_with("BITSET index  does not support selects via a partial key"));
    let long = message(selected(&space, IteratorType::All, &[1.into(), 2.into()]));
    assert_eq!(long, "Invalid key part count (expected [0..1], got 2)");
    let wrong = message(selected(&space, IteratorType::All, &["a".into()]));
    assert!(wrong.ends_with("index part type: expected unsigned"), "{wrong}");
    assert_eq!(space.min(1, &[0x90]).unwrap_err().message, no("min()"));
    assert_eq!(space.max(1, &[0x90]).unwrap_err().message, no("max()"));
    assert_eq!(space.random(1, 5).unwrap_err().message, no("random()"));
    assert_eq!(space.get(1, &array(&[3.into()])).unwrap_err().code.0, 41);
    let after = space.select(1, IteratorType::All, &[0x90], 0, 1, Some(&[0x90])).err().unwrap();
    assert_eq!(after.message, no("pagination"));
    let modify = |why: &str| format!("Can't create or modify index 'i2' in space 's': {why}");
    let nullable =
        map(&[("field", 1.into()), ("type", "unsigned".into()), ("is_nullable", "true".into())]);
    let each = map(&[("field", 1.into()), ("type", "unsigned".into()), ("path", "[*]".into())]);
    for (unique, parts, expected) in [
        (true, vec![part(1, "unsigned")], modify("BITSET can not be unique")),
        (
            false,
            vec![part(1, "unsigned"), part(2, "unsigned")],
            modify("BITSET index key can not be multipart"),
        ),
        (false, vec![part(1, "integer")], modify("BITSET index field type must be NUM or STR")),
        (false, vec![nullable], "BITSET does not support nullable parts".to_owned()),
        (false, vec![each], modify("BITSET index cannot be multikey")),
    ] {
        let refused = index_def(space.def(), 2, "bitset", unique, parts).unwrap_err();
        assert_eq!(refused.message, expected);
    }
}

/// The bytes of a value, without the zeros at its end, and how a key selects it.
fn is_selected(iterator: IteratorType, key: &[u8], value: &[u8]) -> bool {
    let byte = |at: usize| value.get(at).copied().unwrap_or(0);
    let mut bits = (0..key.len() * 8).map(|bit| {
        let mask = 1 << (bit % 8);
        (key[bit / 8] & mask != 0, byte(bit / 8) & mask != 0)
    });
    match iterator {
        IteratorType::Eq => bits.all(|(key, value)| key == value),
        IteratorType::BitsAllSet => {
            let asked: Vec<bool> = bits.filter(|(key, _)| *key).map(|(_, value)| value).collect();
            !asked.is_empty() && asked.iter().all(|value| *value)
        }
        IteratorType::BitsAnySet => bits.any(|(key, value)| key && value),
        IteratorType::BitsAllNotSet => !bits.any(|(key, value)| key && value),
        _ => true,
    }
}

fn random_value(random: &mut Random, kind: &str) -> (Val, Vec<u8>) {
    if kind == "string" {
        let pieces = ["", "\0", "a", "ab", "\u{1}\u{2}", "zzzzzzzzzz", "b\0"];
        let text = format!("{}{}", random.pick(&pieces), random.pick(&pieces));
        return (text.as_str().into(), text.into_bytes());
    }
    let shift = random.below(64);
    let number = (random.below(16) << shift) | random.below(8);
    (number.into(), number.to_le_bytes().to_vec())
}

fn run(kind: &str, seed: u64) {
    let mut random = Random::new(seed);
    let mut space = space_with(kind);
    let mut rows: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for step in 0..1500 {
        let id = random.below(80);
        let (value, bytes) = random_value(&mut random, kind);
        let before = (space.clone(), rows.clone());
        let written = if random.chance(1, 3) {
            rows.remove(&id);
            space.delete(0, &array(&[id.into()])).unwrap()
        } else {
            rows.insert(id, bytes);
            space.replace(&array(&[id.into(), value])).unwrap()
        };
        if random.chance(1, 5) {
            space.undo(&written);
            rows.clone_from(&before.1);
        }
        if step % 100 == 0 {
            // Built anew, over data.
            let def = space.index(1).unwrap().def().clone();
            space.drop_index(1).unwrap();
            space.create_index(def).unwrap();
        }
        let (key, key_bytes) = random_value(&mut random, kind);
        for (space, rows) in [(&space, &rows), (&before.0, &before.1)] {
            for iterator in ITERATORS {
                let selects = |value: &Vec<u8>| is_selected(iterator, &key_bytes, value);
                let expected = rows.iter().filter(|(_, value)| selects(value)).map(|(id, _)| *id);
                let found = selected(space, iterator, std::slice::from_ref(&key));
                assert_eq!(found, Ok(expected.collect()), "step {step} {iterator:?} {key:?}");
            }
        }
    }
    assert!(rows.len() > 20);
}

#[test]
fn bits_are_selected_as_a_model_selects_them() {
    for seed in 1..4 {
        run("unsigned", seed);
        run("string", seed);
    }
}

/// However many entries a search passes over, it stops again and again, for others to have a turn.
#[test]
fn a_search_that_finds_little_stops_often() {
    const TUPLES: u64 = 10_000;
    let mut space = space_with("unsigned");
    for id in 0..TUPLES {
        space.insert(&array(&[id.into(), (id << 1).into()])).unwrap();
    }
    for (offset, expected) in [(0, 5_000), (4_990, 10), (5_000, 0)] {
        let (mut found, mut stops) = (0, 0);
        let key = array(&[2.into()]);
        let selection = space.select(1, IteratorType::BitsAnySet, &key, offset, u64::MAX, None);
        let mut selection = selection.expect("a selection");
        loop {
            match selection.look() {
                Looked::Found(_) => found += 1,
                Looked::AtSome => stops += 1,
                Looked::AtAll => break,
            }
        }
        assert_eq!(found, expected, "{offset}");
        assert!(stops >= offset / 64, "{stops} stops where {offset} are left out");
    }
    let mut stops = 0;
    let key = array(&[1.into()]);
    let mut nothing = space.select(1, IteratorType::BitsAnySet, &key, 0, 1, None).unwrap();
    while let Looked::AtSome = nothing.look() {
        stops += 1;
    }
    assert!(stops >= TUPLES / 64 - 1, "{stops}");
}
