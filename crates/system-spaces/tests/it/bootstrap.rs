//! The tuples of a fresh server agree with each other, with the ids, and with a real server's
//! bytes.

use ladon_msgpack::{Value, read, read_array, read_str, take, validate};
use ladon_system_spaces as system;
use std::collections::{BTreeMap, BTreeSet};

/// The tuples of one space, each as its fields' bytes.
fn tuples(space: u32) -> Vec<Vec<Vec<u8>>> {
    let all = system::bootstrap().into_iter().filter(|(id, _)| *id == space);
    let fields = |tuple: Vec<u8>| {
        let mut rest = &tuple[..];
        let count = read_array(&mut rest).expect("an array");
        (0..count).map(|_| take(&mut rest).expect("a field").to_vec()).collect()
    };
    all.map(|(_, tuple)| fields(tuple)).collect()
}

fn uint(mut field: &[u8]) -> u32 {
    match read(&mut field) {
        Ok(Value::Uint(value)) => u32::try_from(value).expect("32 bits"),
        other => panic!("{other:?}"),
    }
}

fn text(mut field: &[u8]) -> String {
    String::from_utf8(read_str(&mut field).expect("a string").to_vec()).expect("UTF-8")
}

#[test]
fn every_tuple_is_one_array() {
    let all = system::bootstrap();
    let mut count = BTreeMap::<u32, usize>::new();
    for (space, tuple) in &all {
        assert_eq!(validate(tuple), Ok(()));
        assert!(read_array(&mut &tuple[..]).is_ok());
        *count.entry(*space).or_default() += 1;
    }
    let expected = [
        (system::SCHEMA, 1),
        (system::COLLATION, 277),
        (system::SPACE, 26),
        (system::INDEX, 55),
        (system::FUNC, 2),
        (system::USER, 5),
        (system::PRIV, 18),
    ];
    assert_eq!(count, BTreeMap::from(expected));
}

#[test]
fn spaces_come_first_and_then_their_indexes() {
    let order: Vec<u32> = system::bootstrap().into_iter().map(|(space, _)| space).collect();
    let mut groups = order.clone();
    groups.dedup();
    let distinct: BTreeSet<_> = order.into_iter().collect();
    assert_eq!(groups.len(), distinct.len(), "{groups:?}");
    assert_eq!(groups[..2], [system::SPACE, system::INDEX]);
}

#[test]
fn ids_and_names_are_those_of_the_tuples() {
    let listed: Vec<_> = system::ALL.iter().map(|(id, name)| (*id, (*name).to_owned())).collect();
    let rows = tuples(system::SPACE);
    let found: Vec<_> = rows.iter().map(|row| (uint(&row[0]), text(&row[2]))).collect();
    assert_eq!(listed, found);
    assert!(listed.iter().all(|(id, _)| system::is_system(*id)));
    assert!(!system::is_system(system::USER_ID_MIN) && !system::is_system(0));
}

#[test]
fn a_view_is_as_its_space() {
    let rows = tuples(system::SPACE);
    let row = |id: u32| rows.iter().find(|row| uint(&row[0]) == id).expect("a row of _space");
    let indexes = |id: u32| -> Vec<Vec<Vec<u8>>> {
        let all = tuples(system::INDEX).into_iter().filter(|row| uint(&row[0]) == id);
        all.map(|row| row[1..].to_vec()).collect()
    };
    let views = rows.iter().filter(|row| text(&row[3]) == "sysview").map(|row| uint(&row[0]));
    let views: Vec<u32> = views.collect();
    assert_eq!(views.len(), 8);
    for id in rows.iter().map(|row| uint(&row[0])) {
        assert_eq!(system::view_of(id).is_some(), views.contains(&id), "{id}");
    }
    for view in views {
        let source = system::view_of(view).expect("a space");
        assert_eq!(row(view)[6], row(source)[6], "the formats of {view} and {source}");
        assert_eq!(indexes(view), indexes(source), "the indexes of {view} and {source}");
        assert_eq!(text(&row(view)[2]), text(&row(source)[2]).replacen('_', "_v", 1));
    }
}

#[test]
fn what_tuples_refer_to_exists() {
    let ids = |space| -> BTreeSet<u32> { tuples(space).iter().map(|row| uint(&row[0])).collect() };
    let (spaces, users) = (ids(system::SPACE), ids(system::USER));
    let functions = ids(system::FUNC);
    let mut keys = BTreeSet::new();
    for index in tuples(system::INDEX) {
        assert!(spaces.contains(&uint(&index[0])));
        assert!(keys.insert((uint(&index[0]), uint(&index[1]))), "{index:?} twice");
    }
    // The space without an index keeps nothing.
    let bare: Vec<_> = spaces.iter().filter(|id| !keys.contains(&(**id, 0))).collect();
    assert_eq!(bare, [&system::VINYL_DEFERRED_DELETE]);
    for row in tuples(system::PRIV) {
        assert!(users.contains(&uint(&row[0])) && users.contains(&uint(&row[1])));
        let object = uint(&row[3]);
        match text(&row[2]).as_str() {
            "space" => assert!(spaces.contains(&object), "{object}"),
            "function" => assert!(functions.contains(&object), "{object}"),
            "role" => assert!(users.contains(&object), "{object}"),
            "universe" => assert_eq!(object, 0),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn tuples_have_the_fields_of_their_formats() {
    let rows = tuples(system::SPACE);
    for (space, tuple) in system::bootstrap() {
        let format = &rows.iter().find(|row| uint(&row[0]) == space).expect("a format")[6];
        let fields = read_array(&mut &format[..]).expect("an array of fields");
        let found = read_array(&mut &tuple[..]).expect("an array");
        // The version has fields that _schema's format does not name.
        assert!(found == fields || space == system::SCHEMA, "{space}: {found} of {fields}");
    }
}

/// The bytes that a real server has, of tuples that did not change since.
#[test]
fn bytes_are_the_servers() {
    let recorded = [
        (
            system::SPACE,
            "97cd011001a75f736368656d61a56d656d747800809282a474797065a6737472696e67a46e616d65a36b65\
             7983a474797065a3616e79a46e616d65a576616c7565ab69735f6e756c6c61626c65c3",
        ),
        (
            system::INDEX,
            "96cd013801a56f776e6572a47472656581a6756e69717565c2919200a8756e7369676e6564",
        ),
        (system::PRIV, "95011fa8756e69766572736500ceffffffff"),
        (
            system::SPACE,
            "97cd017c01b15f73657373696f6e5f73657474696e6773a7736572766963650281a974656d706f72617279\
             c39282a46e616d65a46e616d65a474797065a6737472696e6782a46e616d65a576616c7565a474797065a3\
             616e79",
        ),
    ];
    let all = system::bootstrap();
    for (space, hexadecimal) in recorded {
        let found = all.iter().any(|(id, tuple)| {
            let text: String = tuple.iter().map(|byte| format!("{byte:02x}")).collect();
            *id == space && text == hexadecimal
        });
        assert!(found, "no tuple of {space} is {hexadecimal}");
    }
}
