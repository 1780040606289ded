//! What must hold for any update operations. Shared by the corpus' replay and the fuzz target
//! `update_operations`.

use ladon_msgpack::{self as msgpack, write};
use ladon_space::{IndexDef, Space, SpaceDef, Tuple};

/// The bytes are two MessagePack values, a tuple and operations, and what follows is cut off.
/// Operations leave a tuple that fits the space and is in its indexes, or the tuple as it was;
/// twice the same operations do twice the same.
pub fn update_operations(bytes: &[u8]) {
    let mut rest = bytes;
    let (Ok(tuple), Ok(operations)) = (msgpack::take(&mut rest), msgpack::take(&mut rest)) else {
        return;
    };
    let mut space = space();
    let Ok(written) = space.insert(tuple) else { return };
    let Some(old) = written.new else { panic!("nothing was inserted") };
    let key = space.primary_key_of(old.bytes()).expect("it fits");
    for index_base in [0, 1] {
        let mut one = space.clone();
        let mut other = space.clone();
        let updated = one.update(0, &key, operations, index_base);
        assert_eq!(updated, other.update(0, &key, operations, index_base));
        holds(
            &one,
            &key,
            updated.map(|written| written.new.expect("a tuple")).as_ref().unwrap_or(&old),
        );
        let mut upserted = space.clone();
        match upserted.upsert(old.bytes(), operations, index_base) {
            Ok(written) => holds(&upserted, &key, written.new.as_ref().unwrap_or(&old)),
            Err(_) => holds(&upserted, &key, &old),
        }
    }
}

/// The space has this tuple and no other, in both indexes.
fn holds(space: &Space, key: &[u8], tuple: &Tuple) {
    assert_eq!(msgpack::validate(tuple.bytes()), Ok(()));
    assert_eq!(space.get(0, key).expect("a key").as_ref(), Some(tuple));
    assert_eq!(space.primary_key_of(tuple.bytes()).expect("it fits"), key);
    for index in [0, 1] {
        let all = space.select(index, ladon_space::IteratorType::All, &[0x90], 0, 9, None);
        let all: Vec<_> = all.expect("a selection").collect();
        assert_eq!(all, [tuple]);
    }
}

/// `[id: unsigned, b: any, c: any, d: map]`, with an index of `c[1].x`.
fn space() -> Space {
    let mut def = Vec::new();
    write::array(&mut def, 7);
    [512, 1].iter().for_each(|&number| write::uint(&mut def, number));
    ["s", "memtx"].iter().for_each(|name| write::str(&mut def, name.as_bytes()));
    write::uint(&mut def, 0);
    write::map(&mut def, 0);
    write::array(&mut def, 4);
    for (name, kind) in [("id", "unsigned"), ("b", "any"), ("c", "any"), ("d", "map")] {
        write::map(&mut def, 3);
        for text in ["name", name, "type", kind, "is_nullable"] {
            write::str(&mut def, text.as_bytes());
        }
        write::bool(&mut def, name != "id");
    }
    let mut space = Space::new(SpaceDef::from_tuple(&def).expect("a space"));
    for (id, field, path) in [(0, 0, ""), (1, 2, "[1].x")] {
        let mut def = Vec::new();
        write::array(&mut def, 6);
        [512, id].iter().for_each(|&number| write::uint(&mut def, number));
        let name = format!("i{id}");
        [&name, "tree"].iter().for_each(|name| write::str(&mut def, name.as_bytes()));
        write::map(&mut def, 1);
        write::str(&mut def, b"unique");
        write::bool(&mut def, true);
        write::array(&mut def, 1);
        write::map(&mut def, if id == 0 { 2 } else { 4 });
        write::str(&mut def, b"field");
        write::uint(&mut def, field);
        let kind = if id == 0 { "unsigned" } else { "number" };
        ["type", kind].iter().for_each(|text| write::str(&mut def, text.as_bytes()));
        if id > 0 {
            ["path", path].iter().for_each(|text| write::str(&mut def, text.as_bytes()));
            write::str(&mut def, b"is_nullable");
            write::bool(&mut def, true);
        }
        let def = IndexDef::from_tuple(&def, space.def()).expect("an index");
        space.create_index(def).expect("an index");
    }
    space
}
