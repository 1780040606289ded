//! Keys that are more than fields compared by bytes: collations.

use super::{Val, array, index_def, map, part, space_def};
use crate::{ErrorCode, IteratorType, Space};

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
