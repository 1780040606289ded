//! What must hold for any JSON path. Shared by the corpus' replay and the fuzz target `json_paths`.

use ladon_msgpack::{self as msgpack, write};
use ladon_space::{IndexDef, IteratorType, Path, Space, SpaceDef, Step, Tuple};

/// The bytes are two MessagePack values, a path and a tuple, and what follows is cut off. A path is
/// read as it is shown; an index over it has a tuple exactly as long as the space does, whatever an
/// update does at the path.
pub fn json_paths(bytes: &[u8]) {
    let mut rest = bytes;
    let (Ok(path), Ok(tuple)) = (msgpack::read_str(&mut rest), msgpack::take(&mut rest)) else {
        return;
    };
    let Ok(path) = std::str::from_utf8(path) else { return };
    let parsed = Path::parse(path);
    if let Some(parsed) = &parsed {
        is_read_as_shown(parsed);
    }
    for kind in ["unsigned", "scalar"] {
        let mut space = space();
        let def = index(space.def(), 1, path, kind);
        let Ok(def) = def else { continue };
        assert!(parsed.is_some(), "an index over a path that is none: {path:?}");
        let is_multikey = parsed.as_ref().is_some_and(|path| path.steps().contains(&Step::Each));
        if space.create_index(def).is_err() {
            continue;
        }
        let Ok(written) = space.insert(tuple) else { continue };
        let Some(tuple) = written.new else { panic!("nothing was inserted") };
        holds(&space, &tuple, is_multikey);
        let key = space.primary_key_of(tuple.bytes()).expect("it fits");
        let updated = space.update(0, &key, &operation(path), 1).ok().and_then(|it| it.new);
        let tuple = updated.unwrap_or(tuple);
        holds(&space, &tuple, is_multikey);
        space.delete(0, &key).expect("a key");
        assert_eq!(space.index(1).expect("an index").len(), 0);
    }
}

/// Names with quotes in them are shown as they are.
fn is_read_as_shown(path: &Path) {
    let has_quote = |step: &Step| matches!(step, Step::Key(key) if key.contains(&b'"'));
    if !path.steps().iter().any(has_quote) {
        let shown: String = path.steps().iter().map(Step::to_string).collect();
        assert_eq!(Path::parse(&shown).as_ref(), Some(path), "{shown}");
    }
}

/// The space has this tuple and no other, in both indexes.
fn holds(space: &Space, tuple: &Tuple, is_multikey: bool) {
    for index in [0, 1] {
        let all = space.select(index, IteratorType::All, &[0x90], 0, 1_000, None);
        let all: Vec<_> = all.expect("a selection").collect();
        assert!(all.iter().all(|it| *it == tuple), "{all:?}");
        if index == 0 || !is_multikey {
            assert_eq!(all.len(), 1);
        }
    }
}

/// `[["=", "[2]PATH", 5]]`, or without a dot that is missing in front of a name.
fn operation(path: &str) -> Vec<u8> {
    let dot = if path.starts_with(['[', '.']) || path.is_empty() { "" } else { "." };
    let mut operations = Vec::new();
    write::array(&mut operations, 1);
    write::array(&mut operations, 3);
    write::str(&mut operations, b"=");
    write::str(&mut operations, format!("[2]{dot}{path}").as_bytes());
    write::uint(&mut operations, 5);
    operations
}

fn space() -> Space {
    let mut def = Vec::new();
    write::array(&mut def, 7);
    [512, 1].iter().for_each(|&number| write::uint(&mut def, number));
    ["s", "memtx"].iter().for_each(|name| write::str(&mut def, name.as_bytes()));
    write::uint(&mut def, 0);
    write::map(&mut def, 0);
    write::array(&mut def, 0);
    let mut space = Space::new(SpaceDef::from_tuple(&def).expect("a space"));
    let def = index(space.def(), 0, "", "unsigned").expect("an index");
    space.create_index(def).expect("an index");
    space
}

/// An index over a path into field 1; the primary one is over field 0.
fn index(
    space: &SpaceDef,
    id: u64,
    path: &str,
    kind: &str,
) -> Result<IndexDef, ladon_space::BoxError> {
    let mut def = Vec::new();
    write::array(&mut def, 6);
    [512, id].iter().for_each(|&number| write::uint(&mut def, number));
    [format!("i{id}").as_str(), "tree"]
        .iter()
        .for_each(|text| write::str(&mut def, text.as_bytes()));
    write::map(&mut def, 1);
    write::str(&mut def, b"unique");
    write::bool(&mut def, id == 0);
    write::array(&mut def, 1);
    write::map(&mut def, if id == 0 { 2 } else { 4 });
    write::str(&mut def, b"field");
    write::uint(&mut def, id);
    ["type", kind].iter().for_each(|text| write::str(&mut def, text.as_bytes()));
    if id > 0 {
        ["path", path].iter().for_each(|text| write::str(&mut def, text.as_bytes()));
        write::str(&mut def, b"is_nullable");
        write::bool(&mut def, true);
    }
    IndexDef::from_tuple(&def, space)
}
