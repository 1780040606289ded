//! Multikey indexes: Tarantool's replies as data, and random statements against a model.

use super::{Val, array, create, field, index_def, map, new_space, numbers, part, space_def};
use crate::index::Store;
use crate::{BoxError, ErrorCode, IteratorType, Space};
use ladon_testkit::Random;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A part of field 1: its path, type, and whether it may be nil.
fn each(path: &str, kind: &str, is_nullable: bool) -> Val {
    let is_nullable = is_nullable.to_string();
    map(&[
        ("field", 1.into()),
        ("type", kind.into()),
        ("path", path.into()),
        ("is_nullable", is_nullable.as_str().into()),
    ])
}

fn row(id: u64, field: Val) -> Vec<u8> {
    array(&[id.into(), field])
}

fn ids(space: &Space, index: u32, iterator: IteratorType, key: &[Val]) -> Vec<u64> {
    let selected = space.select(index, iterator, &array(key), 0, u64::MAX, None);
    selected.expect("a selection").map(id_of).collect()
}

fn id_of(tuple: &crate::Tuple) -> u64 {
    ladon_msgpack::read_uint(&mut tuple.field(0).expect("an id")).expect("a number")
}

fn code<T>(result: Result<T, BoxError>) -> (u32, String) {
    result.map_or_else(|error| (error.code.0, error.message), |_| (0, String::new()))
}

#[test]
fn definitions_are_refused_as_tarantool_refuses_them() {
    let modify = |why: &str| (14, format!("Can't create or modify index 'i1' in space 's': {why}"));
    let options = |at: u32, why: &str| (108, format!("Wrong index options (field {at}): {why}"));
    let mut space = new_space(vec![]);
    let one = || each("[*]", "unsigned", false);
    let primary = index_def(space.def(), 0, "tree", true, vec![one()]).unwrap_err();
    assert!(primary.message.ends_with("primary key cannot be multikey"), "{primary}");
    let on_field_2 =
        map(&[("field", 2.into()), ("type", "unsigned".into()), ("path", "[*]".into())]);
    let placeholder = "no more than one array index placeholder [*] is allowed in JSON path";
    let incompatible = "incompatable multikey index path";
    let cases = [
        ("hash", true, vec![one()], modify("HASH index cannot be multikey")),
        ("tree", true, vec![one(), on_field_2], options(2, incompatible)),
        (
            "tree",
            true,
            vec![each("a[*]", "unsigned", false), each("b[*]", "unsigned", false)],
            options(2, incompatible),
        ),
        ("tree", true, vec![each("[*][*]", "unsigned", false)], options(1, placeholder)),
        ("tree", true, vec![each("[*].a[*]", "unsigned", false)], options(1, placeholder)),
        (
            "tree",
            true,
            vec![each("[*].a", "unsigned", false), each("[*].b", "string", false)],
            (0, String::new()),
        ),
    ];
    for (kind, unique, parts, expected) in cases {
        assert_eq!(code(create(&mut space, 1, kind, unique, parts)), expected);
    }
    let mismatch = "Field 2 is used as multikey in one index and as single key in another";
    let single = code(create(&mut space, 2, "tree", true, vec![each("[1].a", "unsigned", false)]));
    assert_eq!(single, (194, mismatch.to_owned()));
    let (code_of_type, message) =
        code(create(&mut space, 2, "tree", true, vec![each("[*].a", "string", false)]));
    assert_eq!(code_of_type, 24);
    assert!(message.starts_with("Field [2][*][\"a\"] has type 'unsigned'"), "{message}");
}

#[test]
fn tuples_are_checked_as_tarantool_checks_them() {
    let wrong = "type does not match one required by operation: expected";
    let mut space = new_space(vec![]);
    create(&mut space, 1, "tree", true, vec![each("[*]", "unsigned", false)]).unwrap();
    for (id, value, expected) in [
        (1, numbers(&[1, 2, 3]), (0, String::new())),
        (2, numbers(&[5, 5, 6]), (0, String::new())),
        (4, numbers(&[]), (0, String::new())),
        (
            5,
            Val::Array(vec![8.into(), Val::Nil]),
            (23, format!("[2][*] {wrong} unsigned, got nil")),
        ),
        (5, Val::Array(vec![8.into(), "x".into()]), (23, format!("[2][*] {wrong} unsigned"))),
        (5, 9.into(), (23, format!("2 {wrong} array, got unsigned"))),
    ] {
        let (found, message) = code(space.insert(&row(id, value)));
        assert_eq!(found, expected.0, "{message}");
        assert!(message.contains(&expected.1), "{message}");
    }
    assert_eq!(code(space.insert(&row(3, numbers(&[7, 1])))).0, ErrorCode::TUPLE_FOUND.0);
    space.insert(&array(&[7.into()])).expect("the array may be absent");
    assert_eq!(ids(&space, 1, IteratorType::All, &[]), [1, 1, 1, 2, 2]);
    assert_eq!(space.index(1).map(crate::Index::len), Some(5));
    let mut space = new_space(vec![]);
    let parts = vec![each("x[*].a", "unsigned", false), each("x[*].b", "string", false)];
    create(&mut space, 1, "tree", false, parts).unwrap();
    let x = |value: Val| map(&[("x", value)]);
    let element = |pairs: &[(&str, Val)]| x(Val::Array(vec![map(pairs)]));
    let missing = "required by space format is missing";
    for (value, expected) in [
        (element(&[("a", 1.into())]), format!("Tuple field [2][\"x\"][*][\"b\"] {missing}")),
        (element(&[("b", "q".into())]), format!("Tuple field [2][\"x\"][*][\"a\"] {missing}")),
        (x(numbers(&[1])), format!("Tuple field [2][\"x\"][*] {wrong} map, got unsigned")),
        (x(numbers(&[])), String::new()),
        (map(&[("y", 1.into())]), String::new()),
        (x(3.into()), format!("Tuple field [2][\"x\"] {wrong} array, got unsigned")),
    ] {
        let (_, message) = code(space.replace(&row(1, value)));
        assert_eq!(message, expected);
    }
}

#[test]
fn nil_elements_of_a_tuple_are_one_key_and_break_no_uniqueness() {
    let mut space = new_space(vec![]);
    create(&mut space, 1, "tree", true, vec![each("[*]", "unsigned", true)]).unwrap();
    let values = |values: &[Val]| Val::Array(values.to_vec());
    space.insert(&row(1, values(&[1.into(), Val::Nil, Val::Nil]))).unwrap();
    space.insert(&row(2, values(&[Val::Nil]))).unwrap();
    assert_eq!(code(space.insert(&row(6, numbers(&[2, 1])))).0, ErrorCode::TUPLE_FOUND.0);
    assert_eq!(ids(&space, 1, IteratorType::All, &[]), [1, 2, 1]);
    assert_eq!(ids(&space, 1, IteratorType::Eq, &[Val::Nil]), [1, 2]);
    let excluding = map(&[
        ("field", 1.into()),
        ("type", "unsigned".into()),
        ("path", "[*]".into()),
        ("exclude_null", "true".into()),
    ]);
    create(&mut space, 2, "tree", false, vec![excluding]).unwrap();
    assert_eq!(ids(&space, 2, IteratorType::All, &[]), [1]);
    space.replace(&row(2, values(&[Val::Nil, 7.into()]))).unwrap();
    assert_eq!(ids(&space, 2, IteratorType::All, &[]), [1, 2]);
}

#[test]
fn a_tuple_has_a_bounded_number_of_keys() {
    let mut space = new_space(vec![]);
    let unsorted: Vec<u64> = (0..100_000u64).map(|at| at * 7919 % 100_000).collect();
    space.insert(&row(1, numbers(&unsorted))).expect("no index has keys of it");
    let created = code(create(&mut space, 1, "tree", false, vec![each("[*]", "unsigned", false)]));
    let message = "Can't create tuple: metadata size 400000 is too big";
    assert_eq!(created, (218, message.to_owned()));
    space.delete(0, &array(&[1.into()])).unwrap();
    create(&mut space, 1, "tree", false, vec![each("[*]", "unsigned", false)]).unwrap();
    assert_eq!(code(space.insert(&row(1, numbers(&unsorted)))), (218, message.to_owned()));
    space.insert(&row(1, numbers(&unsorted[..65_536]))).expect("it is within the limit");
    assert_eq!(space.index(1).map(crate::Index::len), Some(65_536));
    assert_eq!(
        code(create(&mut space, 2, "tree", false, vec![each("[*]", "unsigned", false)])).0,
        218
    );
    space.update(0, &array(&[1.into()]), &array(&[]), 0).unwrap();
    space.delete(0, &array(&[1.into()])).unwrap();
    assert!(space.index(1).is_some_and(crate::Index::is_empty));
}

/// Elements of a row: a number that may be nil, and a string.
type Elements = Vec<(Option<u64>, &'static str)>;

const STRINGS: [&str; 4] = ["", "a", "abcdefgh", "abcdefghi"];

fn tuple_of(id: u64, elements: &Elements) -> Vec<u8> {
    let element = |(n, s): &(Option<u64>, &str)| {
        let mut pairs = vec![("z", numbers(&[1, 2])), ("s", (*s).into())];
        if let Some(n) = n {
            pairs.push(("n", (*n).into()));
        }
        map(&pairs)
    };
    let all = Val::Array(elements.iter().map(element).collect());
    array(&[id.into(), map(&[("y", 1.into()), ("x", all)]), "end".into()])
}

/// A string, a number, and the id of their row.
type StringKey<'a> = (&'a str, Option<u64>, u64);

/// The keys of index 1, and of index 2: number, id.
fn keys(rows: &BTreeMap<u64, Elements>) -> (Vec<StringKey<'_>>, Vec<(u64, u64)>) {
    let all = || rows.iter().flat_map(|(id, all)| all.iter().map(|(n, s)| (*n, *s, *id)));
    let mut strings: Vec<_> = all().map(|(n, s, id)| (s, n, id)).collect();
    let mut numbers: Vec<_> = all().filter_map(|(n, _, id)| Some((n?, id))).collect();
    strings.sort_unstable();
    strings.dedup();
    numbers.sort_unstable();
    numbers.dedup();
    (strings, numbers)
}

fn random_elements(random: &mut Random) -> Elements {
    let element = |random: &mut Random| {
        let n = (!random.chance(1, 4)).then(|| random.below(120));
        (n, random.pick::<&str>(&STRINGS))
    };
    (0..random.below(5)).map(|_| element(random)).collect()
}

fn model_space() -> Space {
    let mut space = new_space(vec![]);
    let strings = vec![each("x[*].s", "string", false), each("x[*].n", "unsigned", true)];
    create(&mut space, 1, "tree", false, strings).expect("an index");
    let excluding = map(&[
        ("field", 1.into()),
        ("type", "unsigned".into()),
        ("path", "x[*].n".into()),
        ("exclude_null", "true".into()),
    ]);
    create(&mut space, 2, "tree", true, vec![excluding]).expect("an index");
    space
}

fn check(space: &Space, rows: &BTreeMap<u64, Elements>, random: &mut Random) {
    let (strings, numbers) = keys(rows);
    for index in space.indexes() {
        let Store::Tree(tree) = &index.store else { continue };
        tree.check(|a, b| index.key.compare(a.hint, &a.tuple, b.hint, b.tuple.bytes()));
    }
    let found = |index, iterator, key: &[Val]| ids(space, index, iterator, key);
    let all = |keys: &[StringKey<'_>]| -> Vec<u64> { keys.iter().map(|(_, _, id)| *id).collect() };
    assert_eq!(found(1, IteratorType::All, &[]), all(&strings));
    let ids_of_numbers: Vec<u64> = numbers.iter().map(|(_, id)| *id).collect();
    assert_eq!(found(2, IteratorType::All, &[]), ids_of_numbers);
    let pick = random.pick(&STRINGS);
    for (iterator, orders) in [
        (IteratorType::Eq, &[Ordering::Equal][..]),
        (IteratorType::Ge, &[Ordering::Equal, Ordering::Greater]),
        (IteratorType::Gt, &[Ordering::Greater]),
        (IteratorType::Lt, &[Ordering::Less]),
        (IteratorType::Le, &[Ordering::Less, Ordering::Equal]),
        (IteratorType::Req, &[Ordering::Equal]),
    ] {
        let mut expected: Vec<_> =
            strings.iter().filter(|key| orders.contains(&key.0.cmp(pick))).copied().collect();
        if matches!(iterator, IteratorType::Lt | IteratorType::Le | IteratorType::Req) {
            expected.reverse();
        }
        let key = array(&[pick.into()]);
        assert_eq!(found(1, iterator, &[pick.into()]), all(&expected), "{iterator:?}");
        assert_eq!(space.count(1, iterator, &key), Ok(expected.len() as u64));
        // Page by page: each begins behind the last entry, not behind the last tuple.
        let (mut pages, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let mut page = space.select(1, iterator, &key, 0, 2, after.as_deref()).unwrap();
            let tuples: Vec<_> = page.by_ref().collect();
            let Some(last) = tuples.last() else { break };
            let index = space.index(1).unwrap();
            after = Some(index.position_at(last.bytes(), page.hint()));
            pages.extend(tuples.iter().map(|tuple| id_of(tuple)));
        }
        assert_eq!(pages, all(&expected), "{iterator:?} in pages");
    }
    let n = random.below(120);
    let with_n = numbers.iter().find(|(other, _)| *other == n).map(|(_, id)| *id);
    let got = space.get(2, &array(&[n.into()])).unwrap();
    assert_eq!(got.as_ref().map(id_of), with_n);
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let mut space = model_space();
    let mut rows: BTreeMap<u64, Elements> = BTreeMap::new();
    let mut refused = 0;
    for step in 0..2000 {
        let id = random.below(40);
        let elements = random_elements(&mut random);
        let before = (space.clone(), rows.clone());
        let is_taken = rows.iter().filter(|(other, _)| **other != id).any(|(_, other)| {
            other.iter().any(|(n, _)| n.is_some() && elements.iter().any(|(m, _)| m == n))
        });
        let written = match random.below(4) {
            0 => {
                rows.remove(&id);
                space.delete(0, &array(&[id.into()])).expect("a key")
            }
            _ => match space.replace(&tuple_of(id, &elements)) {
                Ok(written) => {
                    assert!(!is_taken);
                    rows.insert(id, elements);
                    written
                }
                Err(error) => {
                    assert!(is_taken && error.code == ErrorCode::TUPLE_FOUND, "{error}");
                    refused += 1;
                    continue;
                }
            },
        };
        if random.chance(1, 4) {
            space.undo(&written);
            rows.clone_from(&before.1);
        }
        check(&before.0, &before.1, &mut random);
        if step % 50 == 0 {
            check_rebuilt(&space, &rows, &mut random);
        }
    }
    assert!(refused > 100 && rows.len() > 10);
}

/// Indexes that are built over data, and again for another primary key, are the same.
fn check_rebuilt(space: &Space, rows: &BTreeMap<u64, Elements>, random: &mut Random) {
    let mut built = new_space(vec![]);
    for (id, elements) in rows {
        built.insert(&tuple_of(*id, elements)).expect("a tuple");
    }
    let mut loading = built.clone();
    for index in [1, 2] {
        let def = space.index(index).expect("an index").def().clone();
        built.create_index(def.clone()).expect("it is unique");
        loading.begin_loading();
        loading.create_index(def).expect("it is built later");
    }
    loading.finish_loading().expect("it is unique");
    check(&built, rows, random);
    check(&loading, rows, random);
    let parts = vec![part(0, "unsigned"), part(2, "string")];
    let primary = index_def(built.def(), 0, "tree", true, parts).expect("a definition");
    built.replace_index(primary).expect("it is unique");
    check(&built, rows, random);
    assert!(built.drop_index(1).is_ok() && built.drop_index(2).is_ok());
    assert!(!built.has_multikey);
}

#[test]
fn multikey_indexes_agree_with_a_model() {
    (1..4).for_each(run);
}

#[test]
fn a_position_by_tuple_is_refused() {
    let mut space = model_space();
    let tuple = tuple_of(1, &vec![(Some(1), "a")]);
    space.insert(&tuple).unwrap();
    let refused = space.index(1).unwrap().position_of(&tuple).unwrap_err();
    assert_eq!(refused.message, "Multikey index does not support position by tuple");
}

#[test]
fn a_format_and_a_multikey_index_agree_on_the_array() {
    let mut space = new_space(vec![]);
    create(&mut space, 1, "tree", true, vec![each("[*]", "unsigned", false)]).unwrap();
    let with = |kind: &str| {
        space_def(vec![field("id", "unsigned", false), field("tags", kind, false)]).unwrap()
    };
    assert_eq!(code(space.alter(with("any"))).0, 0);
    assert_eq!(code(space.alter(with("map"))).0, 24);
}
