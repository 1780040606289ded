//! Random statements against rows in a `BTreeMap`: every index, every iterator, every error.

use super::{Val, array, field, index_def, map, part, space_def};
use crate::index::Store;
use crate::{ErrorCode, IteratorType, Space, Tuple, Written};
use ladon_testkit::Random;
use std::cmp::Ordering;
use std::collections::BTreeMap;

type Row = Vec<Val>;

/// An index of the test: its number, kind, fields, whether unique, and whether it leaves out nil.
struct Model {
    id: u32,
    kind: &'static str,
    fields: &'static [usize],
    unique: bool,
    excludes_nil: bool,
}

const INDEXES: [Model; 6] = [
    Model { id: 0, kind: "tree", fields: &[0], unique: true, excludes_nil: false },
    Model { id: 1, kind: "tree", fields: &[1], unique: false, excludes_nil: false },
    Model { id: 2, kind: "tree", fields: &[2], unique: true, excludes_nil: false },
    Model { id: 3, kind: "hash", fields: &[3, 0], unique: true, excludes_nil: false },
    Model { id: 4, kind: "tree", fields: &[1, 3], unique: false, excludes_nil: true },
    Model { id: 5, kind: "tree", fields: &[3, 2], unique: true, excludes_nil: false },
];
const TYPES: [&str; 4] = ["unsigned", "string", "unsigned", "unsigned"];

impl Model {
    fn key(&self, row: &Row) -> Row {
        self.fields.iter().map(|field| row[*field].clone()).collect()
    }

    fn includes(&self, row: &Row) -> bool {
        !self.excludes_nil || !self.fields.iter().any(|field| row[*field] == Val::Nil)
    }

    /// The rows in order.
    fn rows<'a>(&self, rows: &'a BTreeMap<Val, Row>) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> = rows.values().filter(|row| self.includes(row)).collect();
        rows.sort_by_key(|row| (self.key(row), row[0].clone()));
        rows
    }

    fn define(&self, space: &Space) -> crate::IndexDef {
        let parts = self.fields.iter().map(|field| {
            let mut pairs =
                vec![("field", Val::Uint(*field as u64)), ("type", TYPES[*field].into())];
            if self.excludes_nil && *field == 1 {
                pairs.push(("exclude_null", "true".into()));
            } else if matches!(*field, 1 | 2) {
                pairs.push(("is_nullable", "true".into()));
            }
            map(&pairs)
        });
        index_def(space.def(), self.id.into(), self.kind, self.unique, parts.collect())
            .expect("a definition")
    }
}

fn new_space(primary: &'static str) -> Space {
    let format = vec![
        field("id", "unsigned", false),
        field("s", "string", true),
        field("n", "unsigned", true),
        field("x", "unsigned", false),
    ];
    let mut space = Space::new(space_def(format).expect("a definition"));
    let def = index_def(space.def(), 0, primary, true, vec![part(0, "unsigned")]);
    space.create_index(def.expect("a definition")).expect("the first index");
    space
}

fn random_row(random: &mut Random, ids: u64) -> Row {
    let long = ["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b"];
    let s = if random.chance(1, 4) { Val::Nil } else { random.pick(&long).into() };
    let n = if random.chance(1, 3) { Val::Nil } else { random.below(ids * 2).into() };
    vec![random.below(ids).into(), s, n, random.below(6).into()]
}

/// Whether a row, in place of the one with its id, breaks a unique index.
fn is_duplicate(models: &[&Model], rows: &BTreeMap<Val, Row>, row: &Row) -> bool {
    models.iter().filter(|model| model.unique && model.id != 0).any(|model| {
        let key = model.key(row);
        !key.contains(&Val::Nil)
            && rows.values().any(|other| other[0] != row[0] && model.key(other) == key)
    })
}

fn decode(tuple: &Tuple, rows: &BTreeMap<Val, Row>) -> Row {
    let row = rows.values().find(|row| array(row) == tuple.bytes());
    row.unwrap_or_else(|| panic!("{tuple:?} is not in the model")).clone()
}

fn check_all(space: &Space, models: &[&Model], rows: &BTreeMap<Val, Row>, random: &mut Random) {
    for model in models {
        let index = space.index(model.id).expect("it was created");
        let expected = model.rows(rows);
        assert_eq!(index.len(), expected.len() as u64);
        if let Store::Tree(tree) = &index.store {
            tree.check(|a, b| index.key.compare(a.hint, &a.tuple, b.hint, b.tuple.bytes()));
            for iterator in 0..7 {
                check_iterator(space, model, &expected, iterator, random);
            }
        } else {
            for row in expected {
                let found = space.get(model.id, &array(&model.key(row))).expect("a key");
                assert_eq!(found.map(|tuple| tuple.bytes().to_vec()), Some(array(row)));
            }
        }
    }
    let bytes: usize = rows.values().map(|row| array(row).len()).sum();
    assert_eq!(space.bsize(), bytes as u64);
}

fn check_iterator(space: &Space, model: &Model, rows: &[&Row], iterator: u64, random: &mut Random) {
    let iterator = IteratorType::of_number(iterator).expect("an iterator");
    let parts = random.below(model.fields.len() as u64 + 1) as usize;
    let like = random_row(random, 40);
    let key: Row = model.key(&like).into_iter().take(parts).collect();
    let is_reverse = matches!(iterator, IteratorType::Req | IteratorType::Lt | IteratorType::Le);
    let is_selected = |row: &Row| {
        let order = model.key(row)[..parts].cmp(&key[..]);
        parts == 0
            || match iterator {
                IteratorType::Eq | IteratorType::Req => order == Ordering::Equal,
                IteratorType::Lt => order == Ordering::Less,
                IteratorType::Le => order != Ordering::Greater,
                IteratorType::Ge => order != Ordering::Less,
                // To a tree, ALL with a key is GE.
                IteratorType::All if model.kind == "tree" => order != Ordering::Less,
                IteratorType::Gt => order == Ordering::Greater,
                _ => true,
            }
    };
    let mut expected: Vec<Vec<u8>> =
        rows.iter().filter(|row| is_selected(row)).map(|row| array(row)).collect();
    if is_reverse {
        expected.reverse();
    }
    let key = array(&key);
    let found = |offset: u64, limit: u64, after: Option<&[u8]>| -> Vec<Vec<u8>> {
        let selection = space.select(model.id, iterator, &key, offset, limit, after);
        selection.expect("a selection").map(|tuple| tuple.bytes().to_vec()).collect()
    };
    let what = format!("index {} {iterator:?} {key:?}", model.id);
    assert_eq!(found(0, u64::MAX, None), expected, "{what}");
    let count = if iterator == IteratorType::All { rows.len() } else { expected.len() };
    assert_eq!(space.count(model.id, iterator, &key), Ok(count as u64), "{what}");
    let (offset, limit) = (random.below(5), random.below(5));
    let some: Vec<_> =
        expected.iter().skip(offset as usize).take(limit as usize).cloned().collect();
    assert_eq!(found(offset, limit, None), some, "{what}");
    if let Some(at) = (random.below(10) as usize).checked_rem(expected.len()) {
        let index = space.index(model.id).expect("it was created");
        let after = index.position_of(&expected[at]).expect("one key");
        assert_eq!(found(0, u64::MAX, Some(&after)), expected[at + 1..], "{what}");
    }
}

fn state(space: &Space) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for index in space.indexes() {
        let mut tuples: Vec<_> = index.tuples().map(|tuple| tuple.bytes().to_vec()).collect();
        if index.def().kind == crate::IndexKind::Hash {
            tuples.sort();
        }
        all.extend(tuples);
    }
    all
}

fn act(
    space: &mut Space,
    models: &[&Model],
    rows: &mut BTreeMap<Val, Row>,
    random: &mut Random,
    ids: u64,
) {
    let row = random_row(random, ids);
    let id = row[0].clone();
    let key = array(&row[..1]);
    let old = rows.get(&id).cloned();
    let (expected, result) = match random.below(5) {
        0 => {
            let fails = old.is_some() || is_duplicate(models, rows, &row);
            ((!fails).then_some(Some(row.clone())), space.insert(&array(&row)))
        }
        1 | 2 => {
            let fails = is_duplicate(models, rows, &row);
            ((!fails).then_some(Some(row.clone())), space.replace(&array(&row)))
        }
        3 => (Some(None), space.delete(0, &key)),
        _ => {
            let operations = array(&[
                Val::Array(vec!["=".into(), 1.into(), row[1].clone()]),
                Val::Array(vec!["=".into(), "n".into(), row[2].clone()]),
                Val::Array(vec!["+".into(), 3.into(), 1.into()]),
            ]);
            let new = old.as_ref().map(|old| {
                let Val::Uint(x) = old[3] else { panic!("x is a number") };
                vec![id.clone(), row[1].clone(), row[2].clone(), Val::Uint(x + 1)]
            });
            let fails = new.as_ref().is_some_and(|new| is_duplicate(models, rows, new));
            ((!fails).then_some(new), space.update(0, &key, &operations, 0))
        }
    };
    match (expected, result) {
        (Some(new), Ok(written)) => {
            let bytes = |tuple: &Option<Tuple>| tuple.as_ref().map(|tuple| tuple.bytes().to_vec());
            assert_eq!(bytes(&written.old), old.map(|row| array(&row)));
            assert_eq!(bytes(&written.new), new.as_ref().map(|row| array(row)));
            match new {
                Some(row) => rows.insert(id, row),
                None => rows.remove(&id),
            };
        }
        (None, Err(error)) => assert_eq!(error.code, ErrorCode::TUPLE_FOUND, "{error}"),
        (expected, result) => panic!("expected {expected:?}, got {result:?}"),
    }
}

fn run(primary: &'static str, seed: u64) {
    let mut random = Random::new(seed);
    let mut space = new_space(primary);
    let mut rows = BTreeMap::new();
    let mut models: Vec<&Model> = INDEXES.iter().take(1).collect();
    let mut most = 0;
    for step in 0..3000 {
        let ids = if step < 1500 { 600 } else { 60 };
        let before = (step % 7 == 0).then(|| (space.clone(), state(&space), rows.clone()));
        act(&mut space, &models, &mut rows, &mut random, ids);
        if let Some((clone, state_before, _)) = before {
            assert_eq!(state(&clone), state_before, "a clone keeps what it was");
        }
        if random.chance(1, 30) {
            change_indexes(&mut space, &mut models, &rows, &mut random);
        }
        most = most.max(models.len());
        if step % 25 == 0 {
            let others: Vec<&Model> =
                models.iter().copied().filter(|model| primary == "tree" || model.id > 0).collect();
            check_all(&space, &others, &rows, &mut random);
        }
    }
    assert!(most > 3, "indexes were created over data");
}

/// Creates an index over data, which fails if there are duplicates, or drops one.
fn change_indexes(
    space: &mut Space,
    models: &mut Vec<&Model>,
    rows: &BTreeMap<Val, Row>,
    random: &mut Random,
) {
    let model = &INDEXES[1 + random.below(5) as usize];
    if models.iter().any(|other| other.id == model.id) {
        if random.chance(1, 4) {
            space.drop_index(model.id).expect("it was created");
            models.retain(|other| other.id != model.id);
        }
        return;
    }
    let fails = rows.values().any(|row| is_duplicate(&[model], rows, row));
    let before = state(space);
    match space.create_index(model.define(space)) {
        Ok(()) => {
            assert!(!fails, "index {} has duplicates", model.id);
            models.push(model);
        }
        Err(error) => {
            assert!(fails && error.code == ErrorCode::TUPLE_FOUND, "{error}");
            assert_eq!(state(space), before);
        }
    }
}

#[test]
fn statements_and_iterators_agree_with_the_model() {
    (1..4).for_each(|seed| run("tree", seed));
}

#[test]
fn a_space_with_a_hashed_primary_key_agrees_with_the_model() {
    (1..3).for_each(|seed| run("hash", seed));
}

#[test]
fn statements_can_be_taken_back() {
    let mut random = Random::new(9);
    let mut space = new_space("tree");
    for model in &INDEXES[1..] {
        let def = model.define(&space);
        space.create_index(def).expect("an index");
    }
    let mut done: Vec<(Vec<Vec<u8>>, Written)> = Vec::new();
    for _ in 0..400 {
        let row = array(&random_row(&mut random, 40));
        let before = state(&space);
        let key = space.primary_key_of(&row).expect("a key");
        let result = if random.chance(1, 3) { space.delete(0, &key) } else { space.replace(&row) };
        match result {
            Ok(written) => done.push((before, written)),
            Err(_) => assert_eq!(state(&space), before, "an error leaves everything as it was"),
        }
    }
    for (before, written) in done.iter().rev() {
        space.undo(written);
        assert_eq!(&state(&space), before);
    }
    assert_eq!(space.bsize(), 0);
}

#[test]
fn checkpoints_walk_everything_once_and_load_again() {
    for primary in ["tree", "hash"] {
        let mut space = new_space(primary);
        let mut random = Random::new(11);
        let mut rows = BTreeMap::new();
        for id in 0..5000u64 {
            let mut row = random_row(&mut random, 5000);
            row[0] = id.into();
            space.replace(&array(&row)).expect("a tuple");
            rows.insert(row[0].clone(), row);
        }
        let (mut saved, mut after) = (Vec::new(), None);
        loop {
            after = space.save_range(after.as_deref(), 100, &mut |tuple| {
                saved.push(tuple.clone());
                true
            });
            let Some(key) = &after else { break };
            // The last tuple may be gone, and others may come.
            if saved.len() % 300 == 0 {
                space.delete(0, key).expect("a key");
            }
            for id in 0..20 {
                let row =
                    [(10_000 + id + 20 * saved.len() as u64).into(), Val::Nil, Val::Nil, 1.into()];
                space.insert(&array(&row)).expect("a tuple");
            }
        }
        let mut kept: Vec<Row> = Vec::new();
        for tuple in &saved {
            if rows.values().any(|row| row[0] == first(tuple)) {
                kept.push(decode(tuple, &rows));
            }
        }
        assert_eq!(kept.len(), 5000, "{primary}");
        let mut loaded = new_space(primary);
        loaded.begin_loading();
        let def = INDEXES[1].define(&loaded);
        loaded.create_index(def).expect("an index");
        saved.into_iter().for_each(|tuple| loaded.load(tuple));
        loaded.finish_loading().expect("no duplicates");
        assert_eq!(loaded.index(1).map(crate::Index::len), Some(loaded.len()));
    }
}

fn first(tuple: &Tuple) -> Val {
    let mut field = tuple.field(0).expect("a first field");
    ladon_msgpack::read_uint(&mut field).expect("a number").into()
}
