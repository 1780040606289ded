//! What an index that cannot be made is refused for: in Tarantool's order.

use super::{Val, array, create, field, map, new_space, numbers, part, space_def};
use crate::IndexBuild;

fn each() -> Vec<Val> {
    vec![map(&[("field", 1.into()), ("type", "unsigned".into()), ("path", "[*]".into())])]
}

/// The error's code of an index over field 1 of tuples with these values, built at once and in
/// slices.
fn refused(kind: &str, unique: bool, parts: Vec<Val>, values: &[Val]) -> (u32, u32) {
    let mut space = new_space(vec![]);
    for (id, value) in values.iter().enumerate() {
        let row: &[Val] = &[(id as u64).into(), value.clone()];
        // Nil for a field that is missing.
        let row = if matches!(value, Val::Nil) { &row[..1] } else { row };
        space.insert(&array(row)).expect("a tuple");
    }
    let unique_text = unique.to_string();
    let tuple = array(&[
        512.into(),
        1.into(),
        "i1".into(),
        kind.into(),
        map(&[("unique", unique_text.as_str().into())]),
        Val::Array(parts.clone()),
    ]);
    let mut build = IndexBuild::begin(&space, &tuple).expect("a definition").expect("a new index");
    let sliced = loop {
        match build.go_on(1) {
            Ok(true) => break 0,
            Ok(false) => {}
            Err(error) => break error.code.0,
        }
    };
    (create(&mut space, 1, kind, unique, parts).map_or_else(|error| error.code.0, |()| 0), sliced)
}

/// As Tarantool builds it a tuple after the other, the first tuple that does not fit is named.
#[test]
fn the_first_misfit_is_named() {
    let tree = || vec![part(1, "unsigned")];
    let duplicate = refused("tree", true, tree(), &[7.into(), 7.into(), "a".into()]);
    assert_eq!(duplicate, (3, 3));
    let of_another_type = refused("tree", true, tree(), &[7.into(), "a".into(), 7.into()]);
    assert_eq!(of_another_type, (23, 23));
    let boxes = || vec![part(1, "array")];
    let (odd, none) = (numbers(&[1, 2, 3]), Val::Nil);
    assert_eq!(refused("rtree", false, boxes(), &[odd.clone(), none.clone()]), (101, 101));
    assert_eq!(refused("rtree", false, boxes(), &[none, odd]), (39, 39));
    let elements = [numbers(&[6, 0]), numbers(&[0, 0]), numbers(&[9])];
    assert_eq!(refused("tree", true, each(), &elements), (3, 3));
    let once = [numbers(&[6, 0]), numbers(&[1, 1])];
    assert_eq!(refused("tree", true, each(), &once), (0, 0));
}

/// An index that is added comes after those that there are, whatever its number is.
#[test]
fn a_type_is_refused_beside_the_indexes_before() {
    let message = |format: Vec<Val>| {
        let mut space = new_space(format);
        create(&mut space, 3, "rtree", false, vec![part(1, "array")]).expect("an index");
        let refused = create(&mut space, 2, "tree", false, vec![part(1, "scalar")]);
        refused.expect_err("another type").message
    };
    let wanted = |field: &str| {
        format!("Field {field} has type 'array' in one index, but type 'scalar' in another")
    };
    assert_eq!(message(vec![]), wanted("2"));
    let format = vec![field("a", "unsigned", false), field("b", "array", false)];
    assert_eq!(message(format), wanted("2 (b)"));
}

/// The number of dimensions is looked at when all else is right.
#[test]
fn dimensions_are_checked_last() {
    let mut space = new_space(vec![]);
    create(&mut space, 1, "tree", false, vec![part(1, "scalar")]).expect("an index");
    let tuple = |field: u64| {
        array(&[
            512.into(),
            2.into(),
            "i2".into(),
            "rtree".into(),
            map(&[("unique", "false".into()), ("dimension", 21.into())]),
            Val::Array(vec![part(field, "array")]),
        ])
    };
    let mut code = |field| {
        let def = space.new_index_def(&tuple(field)).expect("a definition");
        space.create_index(def).expect_err("refused").code.0
    };
    assert_eq!((code(1), code(2)), (24, 112));
}

/// A multikey index lets in a tuple without its array, whatever the format says. When the index is
/// gone, a format that demands no more is not held against the tuple, and another one is.
#[test]
fn a_format_that_demands_no_more_is_not_checked() {
    let format = |kind| vec![field("a", "unsigned", false), field("b", kind, false)];
    let mut space = new_space(format("array"));
    create(&mut space, 1, "tree", true, each()).expect("an index");
    space.insert(&array(&[1.into()])).expect("a tuple without the array");
    space.drop_index(1).expect("it is there");
    let mut alter = |kind| space.alter(space_def(format(kind)).expect("a definition"));
    alter("array").expect("the same format");
    assert_eq!(alter("map").expect_err("a field is missing").code.0, 39);
    alter("any").expect("a wider format");
}
