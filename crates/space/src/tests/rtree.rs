//! RTREE indexes: Tarantool's replies as data, and random statements against a model that looks at
//! every box.

use super::{Val, array, index_def, map, part, space_def};
use crate::index::Store;
use crate::{BoxError, Distance, IndexDef, IteratorType, Looked, Space, Tuple};
use ladon_msgpack::write;
use ladon_testkit::Random;
use std::collections::BTreeMap;

const ITERATORS: [IteratorType; 8] = [
    IteratorType::All,
    IteratorType::Eq,
    IteratorType::Gt,
    IteratorType::Ge,
    IteratorType::Lt,
    IteratorType::Le,
    IteratorType::Overlaps,
    IteratorType::Neighbor,
];
const INFINITY: f64 = f64::INFINITY;

fn definition(
    space: &Space,
    options: &[(&str, Val)],
    parts: Vec<Val>,
) -> Result<IndexDef, BoxError> {
    let mut all = vec![("unique", "false".into())];
    all.extend_from_slice(options);
    let tuple =
        array(&[512.into(), 1.into(), "i1".into(), "rtree".into(), map(&all), Val::Array(parts)]);
    IndexDef::from_tuple(&tuple, space.def())
}

fn new_space() -> Space {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    let primary = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(primary.expect("a definition")).expect("an index");
    space
}

fn space_with(dimension: u64, distance: &str) -> Space {
    let mut space = new_space();
    let options = [("dimension", dimension.into()), ("distance", distance.into())];
    let def = definition(&space, &options, vec![part(1, "array")]).expect("a definition");
    space.create_index(def).expect("an index");
    space
}

fn coordinates(out: &mut Vec<u8>, numbers: &[f64]) {
    write::array(out, numbers.len() as u32);
    numbers.iter().for_each(|number| write::double(out, *number));
}

fn row(id: u64, numbers: &[f64]) -> Vec<u8> {
    let mut tuple = vec![0x92];
    write::uint(&mut tuple, id);
    coordinates(&mut tuple, numbers);
    tuple
}

fn key(numbers: &[f64]) -> Vec<u8> {
    let mut key = vec![0x91];
    coordinates(&mut key, numbers);
    key
}

fn id_of(tuple: &Tuple) -> u64 {
    ladon_msgpack::read_uint(&mut tuple.field(0).expect("an id")).expect("a number")
}

fn selected(space: &Space, iterator: IteratorType, key: &[u8]) -> Result<Vec<u64>, BoxError> {
    let found = space.select(1, iterator, key, 0, u64::MAX, None)?;
    let ids: Vec<u64> = found.map(id_of).collect();
    assert_eq!(space.count(1, iterator, key), Ok(ids.len() as u64));
    Ok(ids)
}

fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}

/// The tuples of the transcript of a real Tarantool.
fn transcript_space() -> Space {
    let mut space = space_with(2, "euclid");
    for (id, numbers) in [
        (1, &[0.0, 0.0][..]),
        (2, &[0.0, 0.0, 10.0, 10.0]),
        (3, &[5.0, 5.0, 1.0, 1.0]),
        (7, &[f64::NAN, 1.0]),
        (8, &[INFINITY, -INFINITY]),
        (13, &[2.0, 3.0]),
        (17, &[-3.0, -3.0, -1.0, -1.0]),
        (18, &[5.0, 5.0]),
    ] {
        space.insert(&row(id, numbers)).expect("a box");
    }
    space
}

#[test]
fn boxes_are_selected_as_tarantool_selects_them() {
    let space = transcript_space();
    let all = [1, 2, 3, 7, 8, 13, 17, 18];
    let nan = f64::NAN;
    use IteratorType::{Eq, Ge, Gt, Le, Lt, Overlaps};
    for (numbers, iterator, expected) in [
        (&[0.0, 0.0][..], Eq, &[1][..]),
        (&[0.0, 0.0], Lt, &[]),
        (&[0.0, 0.0], Le, &[1]),
        (&[0.0, 0.0], Ge, &[1, 2]),
        (&[0.0, 0.0], Gt, &[]),
        (&[0.0, 0.0], Overlaps, &[1, 2]),
        (&[0.0, 0.0, 10.0, 10.0], Eq, &[2]),
        (&[0.0, 0.0, 10.0, 10.0], Lt, &[3, 7, 13, 18]),
        (&[0.0, 0.0, 10.0, 10.0], Le, &[1, 2, 3, 7, 13, 18]),
        (&[0.0, 0.0, 10.0, 10.0], Overlaps, &[1, 2, 3, 7, 13, 18]),
        (&[nan, nan], Eq, &[]),
        (&[nan, nan], Lt, &all),
        (&[nan, nan], Gt, &all),
        (&[0.0, 0.0, INFINITY, INFINITY], Lt, &[3, 7, 13, 18]),
        (&[-INFINITY, -INFINITY, INFINITY, INFINITY], Lt, &[1, 2, 3, 7, 13, 17, 18]),
        (&[-INFINITY, -INFINITY, INFINITY, INFINITY], Le, &all),
        (&[2.0, 2.0, 5.0, 5.0], Ge, &[2, 3]),
        (&[5.0, 5.0, 2.0, 2.0], Gt, &[2]),
        (&[5.0, 5.0, 2.0, 2.0], Le, &[13, 18]),
    ] {
        let found = selected(&space, iterator, &key(numbers)).map(sorted);
        assert_eq!(found.as_deref(), Ok(expected), "{iterator:?} {numbers:?}");
    }
    // Those that are equally near have no order in Tarantool.
    let near = selected(&space, IteratorType::Neighbor, &key(&[0.0, 0.0])).unwrap();
    assert_eq!(near[2..], [7, 3, 17, 13, 18, 8]);
    assert_eq!(selected(&space, IteratorType::All, &[0x90]).map(sorted).as_deref(), Ok(&all[..]));
    let offset = space.select(1, IteratorType::Neighbor, &key(&[0.0, 0.0]), 2, 2, None).unwrap();
    assert_eq!(offset.map(id_of).collect::<Vec<_>>(), [7, 3]);
}

#[test]
fn what_is_no_box_is_refused_as_in_tarantool() {
    let mut space = space_with(2, "euclid");
    let rect = |what: &str| {
        format!(
            "RTree: {what} must be an array with 2 (point) or 4 (rectangle/box) numeric coordinates"
        )
    };
    let number = |at: u32, got: &str| {
        let what = "type does not match one required by operation: expected number, got";
        format!("Tuple field {at} {what} {got}")
    };
    let numbers = |values: &[Val]| Val::Array(values.to_vec());
    for (value, code, expected) in [
        (numbers(&[3.into()]), 101, rect("Field")),
        (numbers(&[]), 101, rect("Field")),
        (numbers(&[1.into(), 2.into(), 3.into()]), 101, rect("Field")),
        (numbers(&["a".into(), 1.into()]), 23, number(1, "string")),
        (numbers(&[1.into(), Val::Nil]), 23, number(2, "nil")),
        (numbers(&[u64::MAX.into(), 5.into()]), 23, number(1, "unsigned")),
    ] {
        let tuple = array(&[1.into(), value]);
        for refused in [space.insert(&tuple), space.replace(&tuple)] {
            let error = refused.unwrap_err();
            assert_eq!((error.code.0, error.message), (code, expected.clone()));
        }
    }
    assert!(space.is_empty() && space.index(1).unwrap().is_empty());
    // Its key is there: that comes first.
    space.insert(&row(1, &[1.0, 2.0])).expect("a tuple");
    let twice = space.insert(&array(&[1.into(), numbers(&[])])).unwrap_err();
    assert_eq!(twice.code.0, 3);
    let no =
        |what: &str| format!("Index 'i1' (RTREE) of space 's' (memtx) does not support {what}");
    let a = |values: &[Val]| array(&[numbers(values)]);
    let part_type = |expected: &str| {
        format!("Supplied key type of part 0 does not match index part type: expected {expected}")
    };
    let count = |got: u32| format!("Invalid key part count (expected [0..4], got {got})");
    for (iterator, key, expected) in [
        (IteratorType::Eq, array(&[]), count(0)),
        (IteratorType::Req, array(&[]), count(0)),
        (IteratorType::Eq, array(&[1.into(), 2.into(), 3.into()]), count(3)),
        (IteratorType::Eq, array(&[1.into()]), part_type("array")),
        (IteratorType::Req, a(&[1.into(), 2.into(), 3.into()]), rect("Key")),
        (IteratorType::Eq, a(&["a".into(), 1.into()]), part_type("number")),
        (IteratorType::Eq, array(&[Val::Nil, 1.into()]), part_type("number")),
        (
            IteratorType::Eq,
            array(&[1.into(), "a".into()]),
            part_type("number").replace("part 0", "part 1"),
        ),
        (IteratorType::Req, a(&[1.into(), 2.into()]), no("requested iterator type")),
        (IteratorType::BitsAllSet, a(&[1.into(), 2.into()]), no("requested iterator type")),
    ] {
        let refused = selected(&space, iterator, &key).unwrap_err();
        assert_eq!(refused.message, expected, "{iterator:?}");
    }
    assert_eq!(space.min(1, &[0x90]).unwrap_err().message, no("min()"));
    assert_eq!(space.random(1, 5).unwrap_err().message, no("random()"));
    let mut other = new_space();
    other.insert(&array(&[1.into(), numbers(&[1.into()])])).unwrap();
    let def = definition(&other, &[], vec![part(1, "array")]).unwrap();
    assert_eq!(other.create_index(def).unwrap_err().message, rect("Field"));
}

#[test]
fn definitions_are_refused_as_in_tarantool() {
    let space = new_space();
    let refused = |options: &[(&str, Val)], parts: Vec<Val>| {
        let def = definition(&space, options, parts);
        let made = def.and_then(|def| space.clone().create_index(def));
        made.map_or_else(|error| error.message, |()| "ok".to_owned())
    };
    let a = || vec![part(1, "array")];
    let modify = |why: &str| format!("Can't create or modify index 'i1' in space 's': {why}");
    let options = |why: &str| format!("Wrong index options (field 4): {why}");
    let dimension = |got: &str| {
        format!(
            "Index 'i1' (RTREE) of space 's' (memtx) does not support dimension ({got}): must belong to range [1, 20]"
        )
    };
    for (given, parts, expected) in [
        (vec![("unique", "true".into())], a(), modify("RTREE index can not be unique")),
        (
            vec![],
            vec![part(1, "array"), part(2, "array")],
            modify("RTREE index key can not be multipart"),
        ),
        (vec![], vec![part(1, "unsigned")], modify("RTREE index field type must be ARRAY")),
        (vec![("dimension", 0.into())], a(), dimension("0")),
        (vec![("dimension", 21.into())], a(), dimension("21")),
        (vec![("dimension", Val::Int(-1))], a(), dimension("-1")),
        (vec![("dimension", "a".into())], a(), options("'dimension' must be integer")),
        (vec![("dimension", 20.into())], a(), "ok".to_owned()),
        (
            vec![("distance", "x".into())],
            a(),
            options("distance must be either 'euclid' or 'manhattan'"),
        ),
        (vec![("distance", 1.into())], a(), options("'distance' must be enum")),
        (vec![("distance", "EUCLID".into())], a(), "ok".to_owned()),
    ] {
        assert_eq!(refused(&given, parts), expected);
    }
}

type Boxes = BTreeMap<u64, Vec<f64>>;

/// Lows and highs.
fn sides(numbers: &[f64], dimension: usize) -> Vec<(f64, f64)> {
    let upper = if numbers.len() == dimension { 0 } else { dimension };
    let side = |at: usize| (numbers[at], numbers[upper + at]);
    (0..dimension).map(side).map(|(a, b)| if a <= b { (a, b) } else { (b, a) }).collect()
}

fn is_selected(iterator: IteratorType, a: &[(f64, f64)], key: &[(f64, f64)]) -> bool {
    a.iter().zip(key).all(|(a, key)| match iterator {
        IteratorType::Eq => a == key,
        IteratorType::Overlaps => !(a.0 > key.1 || a.1 < key.0),
        IteratorType::Le => !(a.0 < key.0 || a.1 > key.1),
        IteratorType::Lt => !(a.0 <= key.0 || a.1 >= key.1),
        IteratorType::Ge => !(key.0 < a.0 || key.1 > a.1),
        IteratorType::Gt => !(key.0 <= a.0 || key.1 >= a.1),
        _ => true,
    })
}

fn distance(kind: Distance, a: &[(f64, f64)], key: &[(f64, f64)]) -> f64 {
    let apart = a.iter().zip(key).map(|(a, key)| {
        let by = if key.0 < a.0 {
            a.0 - key.0
        } else if key.0 > a.1 {
            key.0 - a.1
        } else {
            0.0
        };
        if kind == Distance::Euclid { by * by } else { by }
    });
    apart.sum()
}

fn random_numbers(random: &mut Random, dimension: usize) -> Vec<f64> {
    let wild = [INFINITY, -INFINITY, f64::NAN, f64::MAX, f64::MIN, -0.0, 1e-300];
    let count = if random.chance(1, 2) { dimension } else { 2 * dimension };
    let number = |random: &mut Random| match random.below(30) {
        0 => random.pick(&wild),
        _ => random.below(20) as f64 - 10.0,
    };
    (0..count).map(|_| number(random)).collect()
}

fn check(space: &Space, boxes: &Boxes, random: &mut Random, dimension: usize) {
    let index = space.index(1).expect("an index");
    let Store::Rtree(tree) = &index.store else { panic!("an R-tree") };
    tree.check();
    assert_eq!(index.len(), boxes.len() as u64);
    let numbers = match boxes.values().nth(random.below(200) as usize) {
        Some(numbers) => numbers.clone(),
        None => random_numbers(random, dimension),
    };
    let wanted = sides(&numbers, dimension);
    for iterator in ITERATORS {
        let found = selected(space, iterator, &key(&numbers)).expect("a selection");
        let selects =
            |numbers: &Vec<f64>| is_selected(iterator, &sides(numbers, dimension), &wanted);
        let expected = boxes.iter().filter(|(_, numbers)| selects(numbers)).map(|(id, _)| *id);
        assert_eq!(sorted(found.clone()), expected.collect::<Vec<_>>(), "{iterator:?} {numbers:?}");
        if iterator == IteratorType::Neighbor {
            let far =
                |id: &u64| distance(index.def().distance, &sides(&boxes[id], dimension), &wanted);
            assert!(found.is_sorted_by(|a, b| far(a) <= far(b)), "{numbers:?}");
        }
    }
}

fn run(dimension: u64, name: &str, seed: u64) {
    let mut random = Random::new(seed);
    let mut space = space_with(dimension, name);
    let dimension = dimension as usize;
    let mut boxes = Boxes::new();
    for step in 0..1200 {
        let before = (space.clone(), boxes.clone());
        let id = random.below(if step < 600 { 400 } else { 60 });
        let written = if random.chance(1, if step < 600 { 5 } else { 2 }) {
            boxes.remove(&id);
            space.delete(0, &array(&[id.into()])).expect("a key")
        } else {
            let numbers = random_numbers(&mut random, dimension);
            let written = space.replace(&row(id, &numbers)).expect("a box");
            boxes.insert(id, numbers);
            written
        };
        if random.chance(1, 5) {
            space.undo(&written);
            boxes.clone_from(&before.1);
        }
        if step % 20 == 0 {
            check(&before.0, &before.1, &mut random, dimension);
            check(&space, &boxes, &mut random, dimension);
        }
        if step % 200 == 0 {
            let def = space.index(1).expect("an index").def().clone();
            space.drop_index(1).expect("an index");
            space.create_index(def).expect("an index");
            check(&space, &boxes, &mut random, dimension);
        }
    }
    let all: Vec<u64> = boxes.keys().copied().collect();
    for id in all {
        space.delete(0, &array(&[id.into()])).expect("a key");
        boxes.remove(&id);
        check(&space, &boxes, &mut random, dimension);
    }
    assert_eq!(space.index(1).map(crate::Index::bytes), Some(empty_bytes(dimension as u64, name)));
}

fn empty_bytes(dimension: u64, name: &str) -> usize {
    space_with(dimension, name).index(1).expect("an index").bytes()
}

#[test]
fn boxes_are_selected_as_a_model_selects_them() {
    for (dimension, distance) in [(1, "euclid"), (2, "manhattan"), (3, "euclid"), (20, "euclid")] {
        run(dimension, distance, dimension);
    }
}

/// One box for all: a tuple is found without a look at the others.
#[test]
fn equal_boxes_are_told_apart() {
    let mut space = space_with(2, "euclid");
    for id in 0..3000 {
        space.insert(&row(id, &[1.0, 2.0, 3.0, 4.0])).expect("a box");
    }
    let Store::Rtree(tree) = &space.index(1).expect("an index").store else { panic!("an R-tree") };
    tree.check();
    let visited = tree
        .visited_to_find(&space.index(1).unwrap().box_of(&row(7, &[1.0, 2.0, 3.0, 4.0])).unwrap());
    assert!(visited < 30, "{visited} of the nodes may have it");
    for id in 0..3000 {
        space.delete(0, &array(&[id.into()])).expect("a key");
    }
    assert!(space.index(1).is_some_and(crate::Index::is_empty));
}

#[test]
fn another_distance_or_dimension_builds_the_index_anew() {
    let mut space = transcript_space();
    let def = definition(&space, &[("distance", "manhattan".into())], vec![part(1, "array")]);
    space.replace_index(def.expect("a definition")).expect("an index");
    // 3 + 0 is as near as 0 + 3, and nearer than 2 + 2.
    let mut space = space_with(2, "manhattan");
    space.insert(&row(1, &[3.0, 0.0])).unwrap();
    space.insert(&row(2, &[2.0, 2.0])).unwrap();
    let near = |space: &Space| selected(space, IteratorType::Neighbor, &key(&[0.0, 0.0])).unwrap();
    assert_eq!(near(&space), [1, 2]);
    let def = definition(&space, &[], vec![part(1, "array")]).unwrap();
    space.replace_index(def).unwrap();
    assert_eq!(near(&space), [2, 1]);
    let def = definition(&space, &[("dimension", 1.into())], vec![part(1, "array")]).unwrap();
    space.replace_index(def).unwrap();
    let one = selected(&space, IteratorType::Eq, &key(&[2.0])).unwrap();
    assert_eq!(one, [2]);
    let def = definition(&space, &[("dimension", 3.into())], vec![part(1, "array")]).unwrap();
    assert_eq!(space.replace_index(def).unwrap_err().code.0, 101);
}

/// A search stops again and again, and leaves out what an offset says, whatever the kind.
#[test]
fn searches_stop_often() {
    let mut space = space_with(2, "euclid");
    for id in 0..3000u64 {
        space.insert(&row(id, &[(id % 50) as f64, (id / 50) as f64])).expect("a tuple");
    }
    let key = |numbers: &[f64]| {
        let mut key = vec![0x91];
        coordinates(&mut key, numbers);
        key
    };
    for (iterator, numbers, all) in [
        (IteratorType::Overlaps, [10.0, 10.0, 30.0, 30.0], 441),
        (IteratorType::Neighbor, [20.0, 20.0, 20.0, 20.0], 3000),
    ] {
        let key = key(&numbers);
        let whole: Vec<u64> =
            space.select(1, iterator, &key, 0, u64::MAX, None).unwrap().map(id_of).collect();
        assert_eq!(whole.len(), all);
        for offset in [1, 63, 64, 65, 128, 440] {
            let mut selection = space.select(1, iterator, &key, offset, 7, None).unwrap();
            let (mut found, mut stops) = (Vec::new(), 0);
            loop {
                match selection.look() {
                    Looked::Found((_, tuple)) => found.push(id_of(tuple)),
                    Looked::AtSome => stops += 1,
                    Looked::AtAll => break,
                }
            }
            let end = whole.len().min(offset as usize + 7);
            assert_eq!(found, whole[offset as usize..end], "{iterator:?} {offset}");
            assert!(stops >= offset.div_ceil(64), "{iterator:?} {offset}: {stops}");
        }
    }
}
