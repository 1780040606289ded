//! Spaces through checkpoints and replay: whatever statements and definitions come while a
//! checkpoint is made, its blocks with the records since its begin give back every space.

use ladon_engine::{
    AllRights, Keyspace, KeyspaceOptions, PreparationLimits, Recovering, SaveCursor, SavedBlock,
    SavedBytes, Scratch, defines,
};
use ladon_msgpack::write;
use ladon_record::{Lsn, Record};
use ladon_space::{BoxError, IteratorType, SequenceDef, Space, SpaceSequence, Written};
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A keyspace with its log.
pub struct Node {
    pub keyspace: Keyspace,
    records: RefCell<Vec<(Lsn, Vec<u8>)>>,
    pub scratch: RefCell<Scratch>,
}

impl Node {
    pub fn new() -> Node {
        let keyspace = Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 1 });
        Node { keyspace, records: RefCell::default(), scratch: RefCell::default() }
    }

    pub fn reserved(&self) -> Lsn {
        self.records.borrow().last().map_or(Lsn::ZERO, |(lsn, _)| *lsn)
    }

    /// How many records there are.
    pub fn records(&self) -> usize {
        self.records.borrow().len()
    }

    pub fn append(&self, record: &Record<'_>) -> Lsn {
        let changes = record.changes();
        let lsn = Lsn(self.reserved().0 + changes.len() as u64);
        self.records.borrow_mut().push((lsn, changes.to_vec()));
        lsn
    }

    pub fn write(
        &self,
        space: u32,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
    ) -> Result<Written, BoxError> {
        let mut scratch = self.scratch.borrow_mut();
        if defines(space) {
            let append = |record: Record<'_>| self.append(&record);
            let (written, _) =
                self.keyspace.define((space, &AllRights), &mut scratch, statement, append);
            // Who keeps a catalog sees by this that it has changed.
            let spaces = &self.keyspace.spaces;
            assert_eq!(spaces.version(), spaces.catalog().version);
            return written;
        }
        let catalog = self.keyspace.spaces.catalog();
        let append = |record: Record<'_>| self.append(&record);
        let (_, before) = catalog.read(space, |_| Ok(()));
        let records = self.records();
        let scratch = &mut scratch;
        let (written, lsn) = self.keyspace.write_alone(&catalog, space, scratch, statement, append);
        // What failed, or did nothing, depends on the last change; with foreign keys, of any space.
        let has_logged = lsn != before && self.records() != records;
        assert!(!has_logged || written.as_ref().is_ok_and(|written| !written.is_nothing()));
        written
    }
}

/// Whoever made the records: what follows them one by one comes to the same spaces, with all of
/// their indexes at any time.
impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let follower = Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 1 });
        follower.set_follower(true);
        let limits = PreparationLimits { tuples_at_once: 3, slice_work: 5, ..Default::default() };
        let mut scratch = Scratch::default();
        scratch.preparation_limits = Some(limits);
        for (at, (lsn, record)) in self.records.borrow().iter().enumerate() {
            let followed = follower.follow(*lsn, record, &mut scratch, 1_000);
            let before = follower.spaces.catalog().version;
            if followed.unwrap_or_else(|error| panic!("record {at}: {error}")).defines {
                assert_eq!(follower.spaces.version(), before);
            }
            if at.is_power_of_two() {
                dump(&follower);
            }
        }
        assert_eq!(dump(&follower), dump(&self.keyspace), "what is followed");
        assert_eq!(fillers(&follower), fillers(&self.keyspace), "what is followed");
        assert_eq!(follower.spaces.bytes(), recounted(&follower), "what is followed");
    }
}

impl Node {
    /// Puts a tuple, with its sequence's number.
    fn put(&self, id: u32, tuple: &[u8], insert: bool) -> Result<Written, BoxError> {
        let mut scratch = self.scratch.borrow_mut();
        let catalog = self.keyspace.spaces.catalog();
        let filler = catalog.filler(id);
        let ids = [system::SEQUENCE_DATA, id];
        let ids = if filler.is_some() { &ids[..] } else { &ids[1..] };
        let mut tx = self.keyspace.begin_on_spaces(&catalog, ids, &mut scratch)?;
        let filled = filler.map_or(Ok(tuple.into()), |filler| tx.fill(filler, tuple));
        let written = filled.and_then(|tuple| {
            tx.write(id, |s| if insert { s.insert(&tuple) } else { s.replace(&tuple) })
        });
        tx.commit(|record| self.append(&record));
        written
    }
}

/// Which sequences fill in fields, with their definitions.
fn fillers(keyspace: &Keyspace) -> Vec<(SpaceSequence, SequenceDef)> {
    let catalog = keyspace.spaces.catalog();
    let filler = |id| catalog.filler(id).map(|(filler, def)| (filler, def.clone()));
    (512..512 + SPACES as u32).filter_map(filler).collect()
}

/// Everything in every space: by space and index, the tuples in the index's order.
pub fn dump(keyspace: &Keyspace) -> BTreeMap<(u32, u32), Vec<Vec<u8>>> {
    let mut scratch = Scratch::default();
    let catalog = keyspace.spaces.catalog();
    let mut found = BTreeMap::new();
    for cell in catalog.cells() {
        let mut tx = keyspace.begin_on_spaces(&catalog, &[cell.id()], &mut scratch).unwrap();
        let space = tx.space(cell.id());
        assert_eq!(catalog.named(&space.def().name), Some(cell.id()));
        for index in space.indexes() {
            let id = index.def().id;
            let all = space.select(id, IteratorType::All, &[0x90], 0, u64::MAX, None).unwrap();
            let mut tuples: Vec<Vec<u8>> = all.map(|tuple| tuple.bytes().to_vec()).collect();
            assert_eq!(tuples.len() as u64, index.len(), "index {id} of {}", cell.id());
            if !index.key_def().is_multikey() {
                assert_eq!(index.len(), space.len(), "index {id} of {}", cell.id());
            }
            // The others have no order of their own.
            if index.def().kind != ladon_space::IndexKind::Tree {
                tuples.sort_unstable();
            }
            found.insert((cell.id(), id), tuples);
        }
    }
    found
}

/// The memory of all spaces, counted anew.
pub fn recounted(keyspace: &Keyspace) -> u64 {
    let mut scratch = Scratch::default();
    let catalog = keyspace.spaces.catalog();
    let of = |id| {
        let mut tx = keyspace.begin_on_spaces(&catalog, &[id], &mut scratch).unwrap();
        tx.space(id).bytes() as u64
    };
    catalog.cells().map(|cell| cell.id()).map(of).sum()
}

/// Writes one value.
pub type Part<'a> = &'a dyn Fn(&mut Vec<u8>);

/// A MessagePack array of what is written by these.
pub fn array(parts: &[Part<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, parts.len() as u32);
    parts.iter().for_each(|part| part(&mut out));
    out
}

pub fn number(value: u64) -> impl Fn(&mut Vec<u8>) {
    move |out| write::uint(out, value)
}

pub fn text(value: String) -> impl Fn(&mut Vec<u8>) {
    move |out| write::str(out, value.as_bytes())
}

fn empty_map(out: &mut Vec<u8>) {
    write::map(out, 0);
}

fn empty_array(out: &mut Vec<u8>) {
    write::array(out, 0);
}

pub fn space_tuple(id: u64, name: String) -> Vec<u8> {
    array(&[
        &number(id),
        &number(1),
        &text(name),
        &text("memtx".into()),
        &number(0),
        &empty_map,
        &empty_array,
    ])
}

pub fn index_tuple(space: u64, id: u64, kind: &str, is_unique: bool, field: u64) -> Vec<u8> {
    let options = move |out: &mut Vec<u8>| {
        write::map(out, 1);
        write::str(out, b"unique");
        write::bool(out, is_unique);
    };
    let parts = move |out: &mut Vec<u8>| {
        write::array(out, 1);
        write::array(out, 2);
        write::uint(out, field);
        write::str(out, b"unsigned");
    };
    let (name, kind) = (text(format!("i{id}")), text(kind.to_owned()));
    array(&[&number(space), &number(id), &name, &kind, &options, &parts])
}

/// The indexes that are neither TREE nor HASH, and a multikey one: over `c`, and over an array of
/// two numbers.
pub fn other_index_tuple(space: u64, id: u64, is_unique: bool) -> Vec<u8> {
    let (kind, field, part_kind, path) = match id {
        2 => ("tree", 3, "unsigned", "[*]"),
        3 => ("bitset", 2, "unsigned", ""),
        _ => ("rtree", 3, "array", ""),
    };
    let options = move |out: &mut Vec<u8>| {
        write::map(out, 1);
        write::str(out, b"unique");
        write::bool(out, is_unique);
    };
    let parts = move |out: &mut Vec<u8>| {
        write::array(out, 1);
        write::map(out, 3);
        write::str(out, b"field");
        write::uint(out, field);
        for (name, value) in [("type", part_kind), ("path", path)] {
            write::str(out, name.as_bytes());
            write::str(out, value.as_bytes());
        }
    };
    let (name, kind) = (text(format!("i{id}")), text(kind.to_owned()));
    array(&[&number(space), &number(id), &name, &kind, &options, &parts])
}

fn sequence_tuple(id: u64, step: u64) -> Vec<u8> {
    let no = |out: &mut Vec<u8>| write::bool(out, false);
    array(&[
        &number(id),
        &number(1),
        &text(format!("q{id}")),
        &number(step),
        &number(1),
        &number(70),
        &number(1),
        &number(0),
        &no,
    ])
}

fn space_sequence_tuple(space: u64, sequence: u64) -> Vec<u8> {
    let no = |out: &mut Vec<u8>| write::bool(out, false);
    array(&[&number(space), &number(sequence), &no, &number(0), &text(String::new())])
}

const SPACES: u64 = 4;

/// Some statement or definition; what is refused changes nothing.
fn change(node: &Node, random: &mut Random) {
    let space = 512 + random.below(SPACES);
    let id = space as u32;
    let (a, b, c) = (random.below(60), random.below(60), random.below(1000));
    let both = |out: &mut Vec<u8>| {
        write::array(out, 2);
        write::uint(out, b);
        write::uint(out, c);
    };
    let tuple = array(&[&number(a), &number(b), &number(c), &both]);
    let key = array(&[&number(a)]);
    let of_space = array(&[&number(space)]);
    let nil = |out: &mut Vec<u8>| write::nil(out);
    let without_number = array(&[&nil, &number(b), &number(c), &both]);
    let (sequence, of_sequence) = (c % 2, array(&[&number(c % 2)]));
    let _ = match random.below(76) {
        0 => node.write(system::SPACE, |s| s.insert(&space_tuple(space, format!("s{space}")))),
        1 => node.write(system::SPACE, |s| s.replace(&space_tuple(space, format!("t{c}")))),
        2 => node.write(system::SPACE, |s| s.delete(0, &of_space)),
        3..6 => {
            let kind = random.pick(&["tree", "hash"]);
            node.write(system::INDEX, |s| s.insert(&index_tuple(space, 0, kind, true, 0)))
        }
        6 | 7 => {
            let unique = random.chance(1, 3);
            node.write(system::INDEX, |s| s.insert(&index_tuple(space, 1, "tree", unique, 1)))
        }
        8 => node.write(system::INDEX, |s| s.replace(&index_tuple(space, 1, "tree", false, 2))),
        9 => {
            let key = array(&[&number(space), &number(random.below(5))]);
            node.write(system::INDEX, |s| s.delete(0, &key))
        }
        10 => {
            let truncate = array(&[&number(space), &number(c)]);
            node.write(system::TRUNCATE, |s| s.replace(&truncate))
        }
        11..40 => node.put(id, &tuple, false),
        40..50 => node.put(id, &tuple, true),
        60..66 => node.put(id, &without_number, true),
        66 => {
            let step = random.below(3);
            node.write(system::SEQUENCE, |s| s.replace(&sequence_tuple(sequence, step)))
        }
        67 => node.write(system::SEQUENCE, |s| s.delete(0, &of_sequence)),
        68 => node.write(system::SEQUENCE_DATA, |s| s.delete(0, &of_sequence)),
        69 => node.write(system::SPACE_SEQUENCE, |s| s.delete(0, &of_space)),
        72..75 => {
            let (other, unique) = (2 + random.below(3), random.chance(1, 8));
            node.write(system::INDEX, |s| s.insert(&other_index_tuple(space, other, unique)))
        }
        70 | 71 => {
            let tuple = space_sequence_tuple(space, sequence);
            node.write(system::SPACE_SEQUENCE, |s| s.insert(&tuple))
        }
        _ => node.write(id, |s| s.delete(0, &key)),
    };
}

pub fn restored(node: &Node, blocks: &[(SavedBlock, Vec<u8>)], begin: Lsn) -> Keyspace {
    let keyspace = Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 1 });
    let recovering = Recovering::new(&keyspace, 0);
    for (block, changes) in blocks.iter().rev() {
        recovering.block(block, changes).unwrap();
    }
    for (lsn, changes) in node.records.borrow().iter().filter(|(lsn, _)| *lsn > begin) {
        for worker in 0..2 {
            recovering.replay((worker, 2)).record(*lsn, changes).unwrap();
        }
    }
    recovering.finish().unwrap();
    drop(recovering);
    keyspace
}

#[test]
fn a_checkpoint_and_the_log_give_back_every_space() {
    let (mut populated, mut filled, mut others) = (0, 0, [0; 3]);
    for seed in 0..150 {
        let random = &mut Random::new(seed);
        let node = Node::new();
        for _ in 0..random.below(400) {
            change(&node, random);
        }
        let begin = node.reserved();
        let mut cursor = SaveCursor::default();
        let mut blocks = Vec::new();
        let mut out = SavedBytes::default();
        let pace = 1 + random.below(6);
        while let Some(block) =
            node.keyspace.save_next(&mut cursor, begin, || node.reserved(), &mut out)
        {
            assert!(block.lsn <= node.reserved());
            blocks.push((block, std::mem::take(&mut out).whole()));
            for _ in 0..random.below(pace) {
                change(&node, random);
            }
        }
        assert!(!cursor.has_given_up(), "seed {seed}");
        for _ in 0..random.below(100) {
            change(&node, random);
        }
        let expected = dump(&node.keyspace);
        for (at, others) in others.iter_mut().enumerate() {
            let id = at as u32 + 2;
            let has = |((space, index), tuples): (&(u32, u32), &Vec<_>)| {
                *space >= 512 && *index == id && !tuples.is_empty()
            };
            *others += expected.iter().filter(|one| has(*one)).count();
        }
        populated += expected.keys().filter(|(space, index)| *space >= 512 && *index == 1).count();
        let found = restored(&node, &blocks, begin);
        assert_eq!(dump(&found), expected, "seed {seed}");
        assert_eq!(fillers(&found), fillers(&node.keyspace), "seed {seed}");
        filled += fillers(&found).len();
        for keyspace in [&found, &node.keyspace] {
            assert_eq!(keyspace.spaces.bytes(), recounted(keyspace), "seed {seed}");
        }
        // And without any checkpoint.
        let found = restored(&node, &[], Lsn::ZERO);
        assert_eq!(dump(&found), expected, "seed {seed}, from the log alone");
        assert_eq!(fillers(&found), fillers(&node.keyspace), "seed {seed}, from the log alone");
    }
    assert!(populated > 50, "too few secondary indexes: {populated}");
    assert!(filled > 50, "too few sequences: {filled}");
    assert!(others.iter().all(|count| *count > 10), "too few other indexes: {others:?}");
}

/// A definition that is refused leaves neither its tuple nor a part of its effect.
#[test]
fn a_refused_definition_is_taken_back() {
    let node = Node::new();
    node.write(system::SPACE, |s| s.insert(&space_tuple(512, "rows".into()))).unwrap();
    node.write(system::INDEX, |s| s.insert(&index_tuple(512, 0, "tree", true, 0))).unwrap();
    for id in 0..3 {
        let tuple = array(&[&number(id), &number(7), &number(0)]);
        node.write(512, |s| s.insert(&tuple)).unwrap();
    }
    let before = (dump(&node.keyspace), node.reserved());
    let unique = index_tuple(512, 1, "tree", true, 1);
    let error = node.write(system::INDEX, |s| s.insert(&unique)).unwrap_err();
    let text = "Duplicate key exists in unique index \"i1\" in space \"rows\"";
    assert!(error.message.starts_with(text), "{error}");
    let dropped = node.write(system::SPACE, |s| s.delete(0, &array(&[&number(512)])));
    assert_eq!(dropped.unwrap_err().message, "Can't drop space 'rows': the space has indexes");
    for id in [1, 100, 257, 281, 511] {
        let low = node.write(system::SPACE, |s| s.insert(&space_tuple(id, "low".into())));
        assert!(low.is_err(), "a user's space {id}");
    }
    let system_index = index_tuple(280, 5, "tree", false, 0);
    assert!(node.write(system::INDEX, |s| s.insert(&system_index)).is_err());
    assert_eq!((dump(&node.keyspace), node.reserved()), before);
}

/// What is refused shows definitions: the reply depends on their last change.
#[test]
fn a_refused_definition_depends_on_what_it_met() {
    let node = Node::new();
    node.write(system::SPACE, |s| s.insert(&space_tuple(512, "rows".into()))).unwrap();
    let changed = node.reserved();
    let again = space_tuple(512, "rows".into());
    let append = |_: Record<'_>| unreachable!("it has changed nothing");
    let mut scratch = node.scratch.borrow_mut();
    let done = node.keyspace.define(
        (system::SPACE, &AllRights),
        &mut scratch,
        |s| s.insert(&again),
        append,
    );
    assert_eq!((done.0.is_err(), done.1), (true, changed));
}

/// Who deletes an index that is not there changes no definition, and a checkpoint that is being
/// made goes on.
#[test]
fn a_definition_that_changes_nothing_begins_no_generation() {
    let node = Node::new();
    node.write(system::SPACE, |s| s.insert(&space_tuple(512, "rows".into()))).unwrap();
    node.write(system::INDEX, |s| s.insert(&index_tuple(512, 0, "tree", true, 0))).unwrap();
    node.put(512, &array(&[&number(1), &number(2), &number(3)]), true).unwrap();
    let (begin, version) = (node.reserved(), node.keyspace.spaces.catalog().version);
    let mut cursor = SaveCursor::default();
    let mut blocks = Vec::new();
    let mut out = SavedBytes::default();
    while let Some(block) =
        node.keyspace.save_next(&mut cursor, begin, || node.reserved(), &mut out)
    {
        blocks.push((block, std::mem::take(&mut out).whole()));
        let key = array(&[&number(512), &number(7)]);
        assert_eq!(node.write(system::INDEX, |s| s.delete(0, &key)), Ok(Written::default()));
    }
    assert_eq!((node.reserved(), node.keyspace.spaces.catalog().version), (begin, version));
    assert!(!cursor.has_given_up());
    assert_eq!(dump(&restored(&node, &blocks, begin)), dump(&node.keyspace));
}
