//! Update operations and definitions, with the replies of a real Tarantool.

use super::{Val, array, field, index_def, map, part, space_def};
use crate::{Space, SpaceDef};

fn space() -> Space {
    let format = vec![
        field("id", "unsigned", false),
        field("a", "string", true),
        field("b", "unsigned", true),
        field("c", "number", true),
    ];
    let mut space = Space::new(space_def(format).expect("a definition"));
    let def = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(def.expect("a definition")).expect("the first index");
    space.replace(&array(&[1.into(), "hello".into()])).expect("a tuple");
    space
}

fn op(parts: &[Val]) -> Val {
    Val::Array(parts.to_vec())
}

/// What the operations make of `[1, "hello"]`, or the code and text of the error.
fn update(operations: &[Val]) -> String {
    let mut space = space();
    let before = space.clone();
    match space.update(0, &array(&[1.into()]), &array(operations), 1) {
        Ok(written) => written.new.map_or("nil".to_owned(), |new| format!("{new:?}")),
        Err(error) => {
            let unchanged = space.get(0, &array(&[1.into()])).expect("a key");
            assert_eq!(unchanged, before.get(0, &array(&[1.into()])).expect("a key"));
            format!("{} {}", error.code.0, error.message)
        }
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn operations_reply_as_tarantool_does() {
    let neg = |value: i64| Val::Int(value);
    let cases: Vec<(Vec<Val>, &str)> = vec![
        (vec![op(&["+".into(), 3.into(), 1.into()])], "37 Field 3 was not found in the tuple"),
        (
            vec![op(&["=".into(), "zz".into(), 1.into()])],
            "201 Field 'zz' was not found in the tuple",
        ),
        (
            vec![op(&["+".into(), "a".into(), 1.into()])],
            "26 Argument type in operation '+' on field 'a' does not match field type: expected a number",
        ),
        (
            vec![op(&["=".into(), "z\0z".into(), 1.into()])],
            "201 Field 'z' was not found in the tuple",
        ),
        (vec![op(&["x".into(), 1.into(), 1.into()])], "28 Unknown UPDATE operation #1: \"x\""),
        (vec![op(&["x\0y".into(), 1.into()])], "28 Unknown UPDATE operation #1: \"x\""),
        (
            vec![op(&["=".into(), 1.into()])],
            "28 Unknown UPDATE operation #1: wrong number of arguments, expected 3, got 2",
        ),
        (
            vec![op(&[])],
            "1 Illegal parameters, update operation must be an array {op,..}, got empty array",
        ),
        (vec![1.into()], "1 Illegal parameters, update operation must be an array {op,..}"),
        (
            vec![op(&[1.into(), 2.into(), 3.into()])],
            "1 Illegal parameters, update operation name must be a string",
        ),
        (vec![op(&["=".into(), 0.into(), 1.into()])], "37 Field 0 was not found in the tuple"),
        (
            vec![op(&["=".into(), 1.into(), 2.into()])],
            "94 Attempt to modify a tuple field which is part of primary index in space 's'",
        ),
        (vec![op(&["#".into(), 2.into(), 1.into()])], "[1]"),
        (
            vec![op(&["#".into(), 2.into(), 0.into()])],
            "29 Field 2 UPDATE error: cannot delete 0 fields",
        ),
        (
            vec![op(&["#".into(), 2.into(), (1u64 << 32).into()])],
            "29 Field 2 UPDATE error: cannot delete 0 fields",
        ),
        (vec![op(&["#".into(), neg(-1), 1.into()])], "[1]"),
        // Since 2.8, what is not there can be deleted.
        (vec![op(&["#".into(), 5.into(), 1.into()])], "[1, \"hello\"]"),
        (vec![op(&["=".into(), neg(-1), "x".into()])], "[1, \"x\"]"),
        (vec![op(&["=".into(), neg(-9), "x".into()])], "37 Field -9 was not found in the tuple"),
        (
            vec![op(&[":".into(), 2.into(), neg(-10), 1.into(), "x".into()])],
            "25 SPLICE error on field 2: offset is out of bound",
        ),
        (vec![op(&[":".into(), 2.into(), neg(-2), 1.into(), "x".into()])], "[1, \"hellx\"]"),
        (
            vec![op(&[":".into(), 2.into(), 0.into(), 1.into(), "x".into()])],
            "25 SPLICE error on field 2: offset is out of bound",
        ),
        (
            vec![op(&["|".into(), 1.into(), neg(-1)])],
            "26 Argument type in operation '|' on field 1 does not match field type: expected a positive integer",
        ),
        (
            vec![op(&["-".into(), 1.into(), 2.into()])],
            "23 Tuple field 1 (id) type does not match one required by operation: expected unsigned, got integer",
        ),
        (vec![op(&["!".into(), "b".into(), 3.into()])], "[1, \"hello\", 3]"),
        // Since 2.10, nil fills the gap.
        (vec![op(&["=".into(), "c".into(), 3.into()])], "[1, \"hello\", null, 3]"),
        (
            vec![op(&["=".into(), Val::Nil, "q".into()])],
            "1 Illegal parameters, field id must be a number or a string",
        ),
        (
            vec![op(&["=".into(), 2.into(), "a".into()]), op(&["=".into(), 2.into(), "b".into()])],
            "[1, \"b\"]",
        ),
        (
            vec![op(&["!".into(), 3.into(), 5.into()]), op(&["+".into(), 3.into(), 1.into()])],
            "[1, \"hello\", 6]",
        ),
        (
            vec![
                op(&["=".into(), 3.into(), 5.into()]),
                op(&["+".into(), 3.into(), 1.into()]),
                op(&["+".into(), 3.into(), 1.into()]),
            ],
            "29 Field 3 UPDATE error: double update of the same field",
        ),
        (
            vec![
                op(&["=".into(), 3.into(), u64::MAX.into()]),
                op(&["+".into(), 3.into(), 1.into()]),
            ],
            "95 Integer overflow when performing '+' operation on field 3",
        ),
    ];
    for (operations, expected) in cases {
        assert_eq!(update(&operations), expected, "{operations:?}");
    }
}

/// The bytes of the second field, `left + right` or `left - right`, in a space without a format;
/// the index is of the field's type, if there is one.
fn sum(left: &[u8], operator: &str, right: &[u8], index: Option<&str>) -> Vec<u8> {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    let of = |id, field, kind| index_def(space.def(), id, "tree", true, vec![part(field, kind)]);
    let (first, second) = (of(0, 0, "unsigned"), index.map(|kind| of(1, 1, kind)));
    space.create_index(first.expect("a definition")).expect("an index");
    if let Some(second) = second {
        space.create_index(second.expect("a definition")).expect("an index");
    }
    space.replace(&[&[0x92, 1], left].concat()).expect("a tuple");
    let operations = [&[0x91, 0x93, 0xa1, operator.as_bytes()[0], 2], right].concat();
    let written = space.update(0, &[0x91, 1], &operations, 1).expect("a sum");
    written.new.expect("a tuple").bytes()[2..].to_vec()
}

#[test]
fn sums_have_the_types_that_a_real_tarantool_gives_them() {
    let float = |value: f32| [&[0xca], &value.to_be_bytes()[..]].concat();
    let double = |value: f64| [&[0xcb], &value.to_be_bytes()[..]].concat();
    let two = [2];
    let inexact = f64::from(0.1f32) + f64::from(0.2f32);
    let cases = [
        // A float, if it is one exactly, whatever both are.
        (float(0.1), float(0.2), double(inexact)),
        (float(0.1), double(0.2), double(f64::from(0.1f32) + 0.2)),
        (float(0.5), double(0.25), float(0.75)),
        (double(0.1), double(0.2), double(0.1 + 0.2)),
        (double(0.5), double(0.25), float(0.75)),
        (double(0.5), two.to_vec(), float(2.5)),
        (two.to_vec(), double(0.5), float(2.5)),
        (double(0.1), two.to_vec(), double(2.1)),
        (float(3e38), float(3e38), double(2.0 * f64::from(3e38f32))),
        (double(1e300), two.to_vec(), double(1e300)),
        (float(f32::INFINITY), two.to_vec(), double(f64::INFINITY)),
    ];
    for (left, right, expected) in cases {
        assert_eq!(sum(&left, "+", &right, None), expected, "{left:?} + {right:?}");
    }
    assert_eq!(sum(&float(0.75), "-", &double(0.5), None), float(0.25));
    // An index of doubles takes no float, so none is written.
    assert_eq!(sum(&double(0.5), "+", &two, Some("double")), double(2.5));
    assert_eq!(sum(&double(0.5), "+", &two, Some("number")), float(2.5));
}

#[test]
fn upsert_leaves_out_what_fails() {
    let mut space = space();
    let tuple = array(&[1.into(), "q".into()]);
    let get = |space: &Space| format!("{:?}", space.get(0, &array(&[1.into()])).expect("a key"));
    let operations = array(&[
        op(&["+".into(), 2.into(), 1.into()]),
        op(&["=".into(), 3.into(), 4.into()]),
        op(&["+".into(), 9.into(), 1.into()]),
    ]);
    space.upsert(&tuple, &operations, 1).expect("errors are left out");
    assert_eq!(get(&space), "Some([1, \"hello\", 4])");
    let moves = array(&[op(&["=".into(), 1.into(), 4.into()])]);
    assert_eq!(space.upsert(&tuple, &moves, 1), Ok(crate::Written::default()));
    let spoils = array(&[op(&["=".into(), 2.into(), 4.into()])]);
    assert!(space.upsert(&tuple, &spoils, 1).is_err());
    assert_eq!(get(&space), "Some([1, \"hello\", 4])");
    let written = space.upsert(&array(&[7.into()]), &operations, 1).expect("inserted");
    assert_eq!(format!("{:?}", written.new), "Some([7])");
}

fn text<T>(result: Result<T, crate::BoxError>) -> String {
    result.map_or_else(|error| format!("{} {}", error.code.0, error.message), |_| "ok".to_owned())
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn statements_err_as_tarantool_does() {
    let mut space = space();
    let hash = index_def(space.def(), 1, "hash", true, vec![part(0, "unsigned")]);
    space.create_index(hash.expect("a definition")).expect("an index");
    let n = index_def(space.def(), 2, "tree", false, vec![part(1, "string")]);
    space.create_index(n.expect("a definition")).expect("an index");
    let one = array(&[1.into()]);
    let select = |index, iterator, key: &[u8]| {
        let iterator = crate::IteratorType::of_number(iterator).expect("an iterator");
        text(space.select(index, iterator, key, 0, 1, None))
    };
    let unsupported =
        "112 Index 'i1' (HASH) of space 's' (memtx) does not support requested iterator type";
    let partial = "136 HASH index  does not support selects via a partial key (expected 1 parts, \
                   got 0). Please Consider changing index type to TREE.";
    assert_eq!(select(1, 5, &one), unsupported);
    assert_eq!(select(1, 1, &one), unsupported);
    assert_eq!(select(1, 0, &array(&[])), partial);
    assert_eq!(select(1, 6, &array(&[])), "ok");
    assert_eq!(
        select(0, 0, &array(&["a".into()])),
        "18 Supplied key type of part 0 does not match index part type: expected unsigned"
    );
    assert_eq!(
        select(0, 0, &array(&[1.into(), 2.into()])),
        "31 Invalid key part count (expected [0..1], got 2)"
    );
    assert_eq!(select(9, 0, &one), "35 No index #9 is defined in space 's'");
    assert_eq!(
        text(space.get(0, &array(&[]))),
        "19 Invalid key part count in an exact match (expected 1, got 0)"
    );
    assert_eq!(
        text(space.get(2, &one)),
        "41 Get() doesn't support partial keys and non-unique indexes"
    );
    assert_eq!(text(space.get(0, &[1])), "22 Tuple/Key must be MsgPack array");
    assert_eq!(
        text(space.insert(&array(&[1.into(), "q".into()]))),
        "3 Duplicate key exists in unique index \"i0\" in space \"s\" with old tuple - [1, \"hello\"] \
         and new tuple - [1, \"q\"]"
    );
    assert_eq!(
        text(space.insert(&array(&[2.into(), 5.into()]))),
        "23 Tuple field 2 (a) type does not match one required by operation: expected string, got unsigned"
    );
    assert_eq!(
        text(space.insert(&array(&[]))),
        "39 Tuple field 1 (id) required by space format is missing"
    );
    assert_eq!(
        text(space.insert(&[0x91])),
        "20 Invalid MsgPack - the MessagePack ends inside a value"
    );
    assert_eq!(
        text(space.drop_index(0)),
        "17 Can't drop primary key in space 's' while secondary keys exist"
    );
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn definitions_err_as_tarantool_does() {
    let mut empty = Space::new(space_def(vec![]).expect("a definition"));
    let create = |space: &mut Space, id, kind: &str, unique, parts: Vec<Val>| {
        text(
            index_def(space.def(), id, kind, unique, parts).and_then(|def| space.create_index(def)),
        )
    };
    let id = || vec![part(0, "unsigned")];
    let nullable =
        map(&[("field", 1.into()), ("type", "string".into()), ("is_nullable", "true".into())]);
    assert_eq!(text(empty.insert(&array(&[1.into()]))), "35 No index #0 is defined in space 's'");
    assert_eq!(
        create(&mut empty, 1, "tree", true, id()),
        "12 Can't modify space 's': can not add a secondary key before primary"
    );
    assert_eq!(
        create(&mut empty, 0, "tree", true, vec![nullable.clone()]),
        "152 Primary index of space 's' can not contain nullable parts"
    );
    assert_eq!(
        create(&mut empty, 0, "tree", false, id()),
        "14 Can't create or modify index 'i0' in space 's': primary key must be unique"
    );
    let mut space = space();
    let cases: Vec<(&str, bool, Vec<Val>, &str)> = vec![
        (
            "hash",
            false,
            id(),
            "14 Can't create or modify index 'i3' in space 's': HASH index must be unique",
        ),
        ("hash", true, vec![nullable], "5 HASH does not support nullable parts"),
        (
            "tree",
            true,
            [id(), id()].concat(),
            "14 Can't create or modify index 'i3' in space 's': same key part is indexed twice",
        ),
        (
            "tree",
            true,
            vec![part(6, "array")],
            "14 Can't create or modify index 'i3' in space 's': field type 'array' is not supported",
        ),
        (
            "tree",
            true,
            vec![part(6, "unsigned")],
            "39 Tuple field 7 required by space format is missing",
        ),
        (
            "tree",
            true,
            vec![],
            "14 Can't create or modify index 'i3' in space 's': part count must be positive",
        ),
        ("zree", true, id(), "13 Unsupported index type supplied for index 'i3' in space 's'"),
        (
            "rtree",
            true,
            id(),
            "14 Can't create or modify index 'i3' in space 's': RTREE index can not be unique",
        ),
        (
            "tree",
            true,
            vec![Val::Array(vec![0.into()])],
            "107 Wrong index parts: a field type is missing; expected field1 id (number), field1 type (string), ...",
        ),
        (
            "tree",
            true,
            vec![map(&[("field", 0.into()), ("type", "unsigned".into()), ("foo", 1.into())])],
            "108 Wrong index options (field 1): unexpected option 'foo'",
        ),
    ];
    for (kind, unique, parts, expected) in cases {
        assert_eq!(create(&mut space, 3, kind, unique, parts), expected);
    }
    let twice = vec![field("a", "any", false), field("a", "any", false)];
    assert_eq!(text(space_def(twice)), "149 Space field 'a' is duplicate");
    let required = vec![
        field("id", "unsigned", false),
        field("a", "string", true),
        field("b", "unsigned", false),
    ];
    let altered = space.alter(space_def(required).expect("a definition"));
    assert_eq!(text(altered), "39 Tuple field 3 (b) required by space format is missing");
    // The count of fields is looked at before the engine, and messages know what is altered.
    let narrow = |engine: &str| {
        let format = Val::Array(vec![field("a", "any", false), field("b", "any", false)]);
        let id = [512.into(), 1.into(), "s".into(), engine.into(), 1.into(), map(&[]), format];
        array(&id)
    };
    let why = "exact_field_count must be either 0 or >= formatted field count";
    let created = text(SpaceDef::from_tuple(&narrow("mem")));
    assert_eq!(created, format!("9 Failed to create space 's': {why}"));
    let altered = text(SpaceDef::from_new_tuple(&narrow("memtx")));
    assert_eq!(altered, format!("12 Can't modify space 's': {why}"));
    let other = vec![field("id", "string", false)];
    assert_eq!(
        text(space.alter(space_def(other).expect("a definition"))),
        "27 Field 1 (id) has type 'string' in space format, but type 'unsigned' in index definition"
    );
}

#[test]
fn what_a_hunt_beside_a_real_tarantool_found() {
    let mut space = space();
    let one = array(&[1.into()]);
    space.replace(&array(&[2.into(), "b".into()])).expect("a tuple");
    // Nobody looks at operations that have no tuple.
    let unknown = array(&[op(&["x".into(), 1.into(), 1.into()])]);
    let missing = space.update(0, &array(&[9.into()]), &unknown, 1);
    assert_eq!(missing, Ok(crate::Written::default()));
    let taken = array(&[op(&["=".into(), 1.into(), 2.into()])]);
    let duplicate = text(space.update(0, &one, &taken, 1));
    assert!(duplicate.starts_with("3 Duplicate key exists in unique index \"i0\""), "{duplicate}");
    // Since 2.11, what was set can be computed with, as what was inserted.
    let set = op(&["=".into(), Val::Int(-1), 5.into()]);
    let ops = [op(&["!".into(), 3.into(), 4.into()]), set, op(&["+".into(), 3.into(), 1.into()])];
    assert_eq!(update(&ops), "[1, \"hello\", 6]");
    assert_eq!(
        update(&[op(&["+".into(), Val::Int(-1), 1.into()])]),
        "26 Argument type in operation '+' on field 2 does not match field type: expected a number"
    );
    let all = space.select(0, crate::IteratorType::All, &array(&[2.into()]), 0, 9, None);
    assert_eq!(all.expect("a selection").count(), 1);
    assert_eq!(space.count(0, crate::IteratorType::All, &array(&[2.into()])), Ok(2));

    let by_map = |field: u64, kind: &str, nullable: &str| {
        map(&[("field", field.into()), ("type", kind.into()), ("is_nullable", nullable.into())])
    };
    let define = |space: &Space, id, kind, parts| index_def(space.def(), id, kind, true, parts);
    let nullable = define(&space, 1, "tree", vec![by_map(1, "string", "true")]);
    space.create_index(nullable.expect("a definition")).expect("an index");
    assert_eq!(
        text(space.get(1, &array(&[Val::Nil]))),
        "18 Supplied key type of part 0 does not match index part type: expected string"
    );
    let hash = define(&space, 2, "hash", id_part()).expect("a definition");
    space.create_index(hash).expect("an index");
    assert_eq!(
        text(space.max(2, &array(&[1.into(), 2.into()]))),
        "112 Index 'i2' (HASH) of space 's' (memtx) does not support max()"
    );
    assert_eq!(
        text(define(&space, 3, "tree", vec![part(0, "unsigned"), by_map(1, "string", "true")])),
        "107 Wrong index parts: expected an array; expected field1 id (number), field1 type (string), ..."
    );
    assert_eq!(
        text(define(&space, 3, "tree", vec![by_map(1, "string", "true"), part(0, "unsigned")])),
        "108 Wrong index options (field 2): index part is expected to be a map"
    );
    let both = index_def(space.def(), 3, "hash", false, vec![by_map(1, "string", "true")]);
    assert_eq!(text(both), "5 HASH does not support nullable parts");
    let other = define(&space, 3, "tree", vec![part(0, "string")]).expect("a definition");
    assert_eq!(
        text(space.create_index(other)),
        "24 Field 1 (id) has type 'unsigned' in one index, but type 'string' in another"
    );
}

/// A number of more than 32 bits is no field's number; Tarantool shows another number then.
#[test]
fn field_numbers_have_32_bits() {
    for (number, shown) in [
        (Val::Uint(1 << 31), "2147483648"),
        (Val::Uint(u64::MAX), "18446744073709551615"),
        (Val::Int(i64::MIN), "-9223372036854775808"),
    ] {
        let wrong = format!(
            "26 Argument type in operation '+' on field {shown} does not match field type: \
             expected an integer"
        );
        assert_eq!(update(&[op(&["+".into(), number, 1.into()])]), wrong);
    }
    let last = Val::Uint(i32::MAX as u64);
    assert_eq!(
        update(&[op(&["+".into(), last, 1.into()])]),
        "37 Field 2147483647 was not found in the tuple"
    );
}

/// What an operation computes is of the type that an index gives its field.
#[test]
fn arithmetic_knows_the_types_of_indexes() {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    for id in 0..2 {
        let def = index_def(space.def(), id, "tree", true, vec![part(id, "double")]);
        space.create_index(def.expect("a definition")).expect("an index");
    }
    space.replace(&array(&[Val::Halves(2), Val::Halves(2)])).expect("a tuple");
    let key = array(&[Val::Halves(2)]);
    let add = |field: u64| array(&[op(&["+".into(), field.into(), Val::Halves(3)])]);
    let written = space.update(0, &key, &add(1), 0).expect("an update");
    let expected = array(&[Val::Halves(2), Val::Halves(5)]);
    assert_eq!(written.new.map(|new| new.bytes().to_vec()), Some(expected));
    assert_eq!(
        text(space.update(0, &key, &add(0), 0)),
        "94 Attempt to modify a tuple field which is part of primary index in space 's'"
    );
}

/// A sum is a float where that is exact, and a double elsewhere, as in a real Tarantool.
#[test]
fn sums_stay_exact() {
    let mut space = Space::new(space_def(vec![]).expect("a definition"));
    let def = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(def.expect("a definition")).expect("an index");
    let half = [&[0x92, 1, 0xca][..], &0.5f32.to_be_bytes()].concat();
    let float = |value: f32| [&[0x92, 1, 0xca][..], &value.to_be_bytes()].concat();
    let double = |value: f64| [&[0x92, 1, 0xcb][..], &value.to_be_bytes()].concat();
    for (added, sum) in [
        (Val::Int(-5), float(-4.5)),
        (Val::Int(-33_554_433), double(-33_554_432.5)),
        (Val::Uint(1 << 31), double(2_147_483_648.5)),
        (Val::Halves(3), float(2.0)),
    ] {
        space.replace(&half).expect("a tuple");
        let operations = array(&[op(&["+".into(), 1.into(), added])]);
        let written = space.update(0, &array(&[1.into()]), &operations, 0).expect("an update");
        assert_eq!(written.new.map(|new| new.bytes().to_vec()), Some(sum));
    }
}

/// A computed number is of the type of the place where its field is in the end.
#[test]
fn arithmetic_comes_before_fields_are_moved() {
    let format = vec![field("id", "unsigned", false), field("a", "double", false)];
    let mut space = Space::new(space_def(format).expect("a definition"));
    let def = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(def.expect("a definition")).expect("an index");
    space.replace(&array(&[1.into(), Val::Halves(2)])).expect("a tuple");
    let operations = array(&[
        op(&["+".into(), 1.into(), Val::Halves(3)]),
        op(&["!".into(), 1.into(), Val::Halves(1)]),
    ]);
    let written = space.update(0, &array(&[1.into()]), &operations, 0).expect("an update");
    let mut expected = array(&[1.into(), Val::Halves(1)]);
    expected[0] = 0x93;
    expected.push(0xca);
    expected.extend_from_slice(&2.5f32.to_be_bytes());
    assert_eq!(written.new.map(|new| new.bytes().to_vec()), Some(expected));
}

#[test]
fn a_space_without_indexes_answers_as_a_real_tarantool_does() {
    let format = vec![field("id", "unsigned", false), field("a", "string", true)];
    let mut space = Space::new(space_def(format).expect("a definition"));
    assert_eq!(
        text(space.replace(&array(&["x".into()]))),
        "23 Tuple field 1 (id) type does not match one required by operation: expected unsigned, got string"
    );
    let secondary = array(&[512.into(), 1.into(), "i".into(), "zree".into(), map(&[]), 7.into()]);
    assert_eq!(
        text(space.new_index_def(&secondary)),
        "12 Can't modify space 's': can not add a secondary key before primary"
    );
    // A part may be nil only if it says so itself.
    let parts = vec![part(0, "unsigned"), part(1, "string")];
    let primary = index_def(space.def(), 0, "tree", true, parts).expect("a definition");
    space.create_index(primary).expect("an index");
    assert_eq!(
        text(space.replace(&array(&[1.into(), Val::Nil]))),
        "23 Tuple field 2 (a) type does not match one required by operation: expected string, got nil"
    );
}

fn id_part() -> Vec<Val> {
    vec![part(0, "unsigned")]
}
