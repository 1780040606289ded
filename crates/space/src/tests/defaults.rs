//! Values in the place of nil, as Tarantool 3 has them.

use super::{Val, array, field, index_def, map, part, space_def};
use crate::Space;

fn with_default(name: &str, kind: &str, value: Val) -> Val {
    map(&[("name", name.into()), ("type", kind.into()), ("default", value)])
}

fn new_space() -> Space {
    let format = vec![
        field("id", "unsigned", false),
        with_default("n", "unsigned", 7.into()),
        field("x", "string", true),
        with_default("s", "string", "none".into()),
        field("y", "any", true),
    ];
    let mut space = Space::new(space_def(format).expect("a definition"));
    let primary = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(primary.expect("a definition")).expect("an index");
    let by_n = index_def(space.def(), 1, "tree", false, vec![part(1, "unsigned")]);
    space.create_index(by_n.expect("a definition")).expect("an index");
    space
}

#[test]
fn what_is_nil_or_absent_gets_its_default() {
    let none = || Val::from("none");
    for (row, expected) in [
        (vec![1.into()], vec![1.into(), 7.into(), Val::Nil, none()]),
        (vec![1.into(), Val::Nil], vec![1.into(), 7.into(), Val::Nil, none()]),
        (vec![1.into(), 3.into(), "x".into()], vec![1.into(), 3.into(), "x".into(), none()]),
        (
            vec![1.into(), Val::Nil, Val::Nil, Val::Nil, Val::Nil, 5.into()],
            vec![1.into(), 7.into(), Val::Nil, none(), Val::Nil, 5.into()],
        ),
        (
            vec![1.into(), 2.into(), "x".into(), "y".into()],
            vec![1.into(), 2.into(), "x".into(), "y".into()],
        ),
    ] {
        let (row, expected) = (array(&row), array(&expected));
        let mut space = new_space();
        let written = space.insert(&row).expect("a tuple");
        assert_eq!(written.new.as_ref().map(crate::Tuple::bytes), Some(&expected[..]));
        let written = space.replace(&row).expect("a tuple");
        assert_eq!(written.new.as_ref().map(crate::Tuple::bytes), Some(&expected[..]));
        let mut space = new_space();
        let written = space.upsert(&row, &array(&[]), 0).expect("a tuple");
        assert_eq!(written.new.as_ref().map(crate::Tuple::bytes), Some(&expected[..]));
        let found = space.select(1, crate::IteratorType::All, &[0x90], 0, 9, None).unwrap();
        assert_eq!(found.count(), 1);
    }
}

#[test]
fn an_update_fills_in_nothing() {
    let mut space = new_space();
    space.insert(&array(&[1.into()])).unwrap();
    let to_nil = array(&[Val::Array(vec!["=".into(), 3.into(), Val::Nil])]);
    let error = space.update(0, &array(&[1.into()]), &to_nil, 0).unwrap_err();
    assert_eq!(error.code.0, 23);
}

#[test]
fn damaged_tuples_and_wrong_definitions_are_refused() {
    let mut space = new_space();
    assert_eq!(space.insert(&[0x01]).unwrap_err().code.0, 22);
    assert_eq!(space.insert(&[0x92, 0x01]).unwrap_err().code.0, 20);
    assert_eq!(space.insert(&[0x91, 0x01, 0x01]).unwrap_err().code.0, 20);
    let wrong = space_def(vec![with_default("n", "unsigned", "a".into())]).unwrap_err();
    let message = "Type of the default value does not match tuple field 1 (n) type: \
                   expected unsigned, got string";
    assert_eq!((wrong.code.0, &wrong.message[..]), (248, message));
    assert!(space_def(vec![with_default("n", "unsigned", Val::Nil)]).is_ok());
    let by_function = map(&[("name", "n".into()), ("default_func", 5.into())]);
    let refused = space_def(vec![by_function]).unwrap_err();
    assert_eq!(refused.message, "Ladon does not support the field option 'default_func'");
}
