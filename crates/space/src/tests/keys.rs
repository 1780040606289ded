//! Keys that are more than fields compared by bytes: collations and paths into fields.

use super::{Val, array, field, index_def, map, part, space_def};
use crate::{BoxError, ErrorCode, IteratorType, Space};
use ladon_testkit::Random;
use std::collections::BTreeMap;

fn collated(field: u64, kind: &str, collation: u64) -> Val {
    map(&[("field", field.into()), ("type", kind.into()), ("collation", collation.into())])
}

fn space_with(indexes: &[(&str, bool, Vec<Val>)]) -> Space {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    let primary = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(primary.expect("a definition")).expect("an index");
    for (id, (kind, unique, parts)) in (1..).zip(indexes) {
        let def = index_def(space.def(), id, kind, *unique, parts.clone());
        space.create_index(def.expect("a definition")).expect("an index");
    }
    space
}

fn ids(space: &Space, index: u32, iterator: IteratorType, key: &[Val]) -> Vec<u64> {
    let selected = space.select(index, iterator, &array(key), 0, u64::MAX, None);
    let id = |tuple: &crate::Tuple| {
        let mut id = tuple.field(0).expect("an id");
        ladon_msgpack::read_uint(&mut id).expect("a number")
    };
    selected.expect("a selection").map(id).collect()
}

#[test]
fn strings_are_found_and_unique_by_their_collation() {
    for kind in ["tree", "hash"] {
        let mut space = space_with(&[(kind, true, vec![collated(1, "string", 2)])]);
        let strings = ["b", "Á", "", "c"];
        for (id, string) in (0u64..).zip(strings) {
            space.insert(&array(&[id.into(), string.into()])).expect("a tuple");
        }
        let error = space.insert(&array(&[9.into(), "a".into()])).expect_err("a duplicate");
        assert_eq!(error.code, ErrorCode::TUPLE_FOUND);
        space.replace(&array(&[1.into(), "a".into()])).expect("the same key");
        assert_eq!(ids(&space, 1, IteratorType::Eq, &["A".into()]), [1]);
        assert_eq!(ids(&space, 1, IteratorType::Eq, &["B".into()]), [0]);
        space.delete(1, &array(&["C".into()])).expect("a key");
        assert_eq!(space.index(1).map(crate::Index::len), Some(3));
        if kind == "tree" {
            assert_eq!(ids(&space, 1, IteratorType::Ge, &["À".into()]), [1, 0]);
            assert_eq!(ids(&space, 1, IteratorType::All, &[]), [2, 1, 0]);
        }
    }
}

#[test]
fn a_primary_key_orders_what_a_collation_takes_for_equal() {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    let primary = index_def(space.def(), 0, "tree", true, vec![part(1, "string")]);
    space.create_index(primary.expect("a definition")).expect("an index");
    let def = index_def(space.def(), 1, "tree", false, vec![collated(1, "string", 2)]);
    space.create_index(def.expect("a definition")).expect("an index");
    for (id, string) in (0u64..).zip(["a", "A", "á", "b"]) {
        space.insert(&array(&[id.into(), string.into()])).expect("a tuple");
    }
    assert_eq!(ids(&space, 1, IteratorType::All, &[]), [1, 0, 2, 3]);
    assert_eq!(ids(&space, 1, IteratorType::Eq, &["Á".into()]), [1, 0, 2]);
}

#[test]
fn a_scalar_part_collates_its_strings_only() {
    let mut space = space_with(&[("tree", false, vec![collated(1, "scalar", 2)])]);
    let values: [Val; 5] = ["b".into(), 7.into(), "A".into(), "true".into(), "a".into()];
    for (id, value) in (0u64..).zip(values) {
        space.insert(&array(&[id.into(), value])).expect("a tuple");
    }
    assert_eq!(ids(&space, 1, IteratorType::All, &[]), [3, 1, 2, 4, 0]);
}

#[test]
fn collations_without_data_are_refused() {
    let space = space_with(&[]);
    let refused =
        |id| index_def(space.def(), 1, "tree", true, vec![collated(1, "string", id)]).unwrap_err();
    let message = "Ladon does not support the collation number 187 in an index";
    assert_eq!(refused(187).message, message);
    let unknown = refused(277);
    assert_eq!(unknown.message, "Wrong index options (field 1): collation was not found by ID");
    assert_eq!(unknown.code, ErrorCode::WRONG_INDEX_OPTIONS);
}

fn inside(path: &str, kind: &str, is_nullable: bool) -> Val {
    let is_nullable = is_nullable.to_string();
    map(&[
        ("field", 1.into()),
        ("type", kind.into()),
        ("path", path.into()),
        ("is_nullable", is_nullable.as_str().into()),
    ])
}

fn indexed(format: Vec<Val>, kind: &str, parts: &[Vec<Val>]) -> Result<Space, BoxError> {
    let mut space = Space::new(space_def(format)?);
    space.create_index(index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")])?)?;
    for (id, parts) in (1..).zip(parts) {
        space.create_index(index_def(space.def(), id, kind, true, parts.clone())?)?;
    }
    Ok(space)
}

fn message<T>(result: Result<T, BoxError>) -> String {
    result.map_or_else(|error| error.message, |_| "ok".to_owned())
}

#[test]
fn values_inside_of_fields_are_checked_as_tarantool_does() {
    let missing = |what: &str| format!("Tuple field {what} required by space format is missing");
    let wrong = |what: &str, expected: &str| {
        format!(
            "Tuple field {what} type does not match one required by operation: expected {expected}"
        )
    };
    let a = |value: Val| map(&[("a", value)]);
    let mut required = indexed(vec![], "tree", &[vec![inside("a.b", "unsigned", false)]]).unwrap();
    let mut nullable = indexed(vec![], "tree", &[vec![inside("a.b", "unsigned", true)]]).unwrap();
    let b = "[2][\"a\"][\"b\"]";
    for (second, of_required, of_nullable) in [
        (None, missing(b), "ok".to_owned()),
        (Some(map(&[])), missing(b), "ok".to_owned()),
        (Some(a(map(&[("c", 1.into())]))), missing(b), "ok".to_owned()),
        (Some(a(map(&[("b", 1.into())]))), "ok".to_owned(), "ok".to_owned()),
        (Some(a(map(&[("b", Val::Nil)]))), wrong(b, "unsigned, got nil"), "ok".to_owned()),
        // Tarantool 2.11 lets what is around the value be nil.
        (Some(Val::Nil), missing(b), "ok".to_owned()),
        (Some(a(Val::Nil)), missing(b), "ok".to_owned()),
        (Some(5.into()), wrong("2", "map, got unsigned"), wrong("2", "map, got unsigned")),
        (Some(a(3.into())), wrong("[2][\"a\"]", "map"), wrong("[2][\"a\"]", "map")),
        (Some(a(map(&[("b", "x".into())]))), wrong(b, "unsigned"), wrong(b, "unsigned")),
    ] {
        for (space, expected) in [(&mut required, of_required), (&mut nullable, of_nullable)] {
            let id = space.len().into();
            let row: Vec<Val> = std::iter::once(id).chain(second.clone()).collect();
            let found = message(space.insert(&array(&row)));
            assert!(found.starts_with(&expected), "{row:?}: {found}, not {expected}");
        }
    }
}

#[test]
fn definitions_with_paths_err_as_tarantool_does() {
    let with = |parts: &[Vec<Val>]| message(indexed(vec![], "tree", parts));
    let on = |kind: &str, path: &str| {
        let format = vec![field("id", "unsigned", false), field("m", kind, false)];
        message(indexed(format, "tree", &[vec![inside(path, "unsigned", false)]]))
    };
    let types = |what: &str, one: &str, other: &str| {
        format!("Field {what} has type '{one}' in one index, but type '{other}' in another")
    };
    let x = || vec![inside("[1].x", "unsigned", false)];
    assert_eq!(with(&[x(), x()]), "ok");
    assert_eq!(
        with(&[vec![inside("[1].x", "unsigned", false), inside("[1]['x']", "unsigned", false)]]),
        "Can't create or modify index 'i1' in space 's': same key part is indexed twice"
    );
    assert_eq!(
        with(&[x(), vec![inside("[1].x", "string", false)]]),
        types("[2][1][\"x\"]", "unsigned", "string")
    );
    assert_eq!(with(&[x(), vec![inside("y", "string", false)]]), types("2", "array", "map"));
    assert_eq!(
        with(&[x(), vec![inside("[1]", "string", false)]]),
        types("[2][1]", "map", "string")
    );
    assert_eq!(with(&[x(), vec![part(1, "unsigned")]]), types("2", "array", "unsigned"));
    assert_eq!(on("string", "a"), types("2 (m)", "string", "map"));
    assert_eq!(on("map", "[1]"), types("2 (m)", "map", "array"));
    assert_eq!(on("any", "[1]"), "ok");
    assert_eq!(on("any", "a..b"), "Wrong index options (field 1): invalid path");
    assert_eq!(on("any", "[*]"), "ok");
    assert_eq!(
        message(indexed(vec![], "hash", &[vec![inside("a", "unsigned", true)]])),
        "HASH does not support nullable parts"
    );
}

type Row = (Val, Val, u64);

/// The tuple of a row: what the paths lead to, and other values around it.
fn tuple_of(id: u64, (s, n, x): &Row) -> Vec<u8> {
    let mut pairs = vec![("z", Val::Array(vec![1.into()])), ("s", s.clone())];
    if *n != Val::Nil || id.is_multiple_of(2) {
        pairs.push(("n", Val::Array(vec![map(&[]), n.clone()])));
    }
    pairs.push(("x", (*x).into()));
    array(&[id.into(), map(&[("in", map(&pairs)), ("x", 7.into())]), "end".into()])
}

/// Random statements on a space with paths, against rows in a map.
fn run_paths(seed: u64) {
    let mut random = Random::new(seed);
    let collated = map(&[
        ("field", 1.into()),
        ("type", "string".into()),
        ("path", "in.s".into()),
        ("collation", 2.into()),
    ]);
    let tree = [collated, inside("in.n[2]", "unsigned", true)];
    let mut space = indexed(vec![], "tree", &[tree.to_vec()]).expect("a space");
    let hash = vec![inside("in.x", "unsigned", false)];
    space.create_index(index_def(space.def(), 2, "hash", true, hash).unwrap()).unwrap();
    // By rank, as `unicode_ci` orders: some are equal.
    let strings = [("", 0), ("a", 1), ("Á", 1), ("b", 2), ("č", 3), ("D", 4), ("d", 4)];
    let rank = |s: &Val| strings.iter().find(|(text, _)| *s == Val::from(*text)).unwrap().1;
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    for step in 0..2500 {
        let id = random.below(60);
        let n = if random.chance(1, 3) { Val::Nil } else { random.below(20).into() };
        let row: Row = (random.pick(&strings).0.into(), n, random.below(200));
        let key = |row: &Row| (rank(&row.0), row.1.clone());
        let others = || rows.iter().filter(|(other, _)| **other != id).map(|(_, row)| row);
        let is_taken = others()
            .any(|other| other.2 == row.2 || (key(other) == key(&row) && row.1 != Val::Nil));
        match random.below(3) {
            0 => {
                space.delete(0, &array(&[id.into()])).expect("a key");
                rows.remove(&id);
            }
            _ => {
                let written = space.replace(&tuple_of(id, &row));
                assert_eq!(written.is_err(), is_taken, "step {step}: {written:?}");
                if written.is_ok() {
                    rows.insert(id, row.clone());
                }
            }
        }
        let mut ordered: Vec<_> = rows.iter().map(|(id, row)| (key(row), *id)).collect();
        ordered.sort();
        let found = |index, iterator, key: &[Val]| ids(&space, index, iterator, key);
        let all: Vec<u64> = ordered.iter().map(|(_, id)| *id).collect();
        assert_eq!(found(1, IteratorType::All, &[]), all);
        let from: Vec<u64> =
            ordered.iter().filter(|(other, _)| *other >= key(&row)).map(|(_, id)| *id).collect();
        assert_eq!(found(1, IteratorType::Ge, &[row.0.clone(), row.1.clone()]), from);
        let like: Vec<u64> = ordered
            .iter()
            .filter(|(other, _)| other.0 == rank(&row.0))
            .map(|(_, id)| *id)
            .collect();
        assert_eq!(found(1, IteratorType::Eq, std::slice::from_ref(&row.0)), like);
        let with_x = rows.iter().filter(|(_, other)| other.2 == row.2).map(|(id, _)| *id);
        assert_eq!(found(2, IteratorType::Eq, &[row.2.into()]), with_x.collect::<Vec<_>>());
        if let Some(at) = random.below(30).checked_rem(all.len() as u64) {
            let tuple = space.get(0, &array(&[all[at as usize].into()])).unwrap().unwrap();
            let after = space.index(1).unwrap().position_of(tuple.bytes()).unwrap();
            let rest = space.select(1, IteratorType::All, &array(&[]), 0, 1 << 40, Some(&after));
            assert_eq!(rest.unwrap().count(), all.len() - 1 - at as usize);
        }
    }
}

#[test]
fn indexes_of_paths_agree_with_a_model() {
    (1..4).for_each(run_paths);
}

#[test]
fn a_sequence_does_not_fill_in_what_is_inside_of_a_field() {
    let sequence = crate::SpaceSequence { space: 512, sequence: 1, is_generated: false, field: 1 };
    let space = space_def(vec![]).expect("a definition");
    let index = |part| index_def(&space, 0, "tree", true, vec![part]).expect("a definition");
    assert_eq!(sequence.check(&index(part(1, "unsigned")), "s"), Ok(()));
    let found = message(sequence.check(&index(inside("a", "unsigned", false)), "s"));
    let why = "sequence field must be a part of the index";
    assert_eq!(found, format!("Can't create or modify index 'i0' in space 's': {why}"));
}
