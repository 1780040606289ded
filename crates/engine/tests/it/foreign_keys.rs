//! Foreign keys between spaces: Tarantool's errors, random statements against a model, transactions
//! that break a key together, and definitions.

use crate::spaces::{Node, Part, array, dump, index_tuple, number, recounted, restored};
use ladon_engine::{Commit, CommitPace, Interactive};
use ladon_msgpack::write;
use ladon_record::{Lsn, Record};
use ladon_space::{BoxError, Space, Statement};
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::collections::BTreeMap;

pub const CITY: u32 = 520;
/// Locked before the space that it names.
pub const USER: u32 = 513;

fn text(value: &str) -> impl Fn(&mut Vec<u8>) + '_ {
    move |out| write::str(out, value.as_bytes())
}

fn nil(out: &mut Vec<u8>) {
    write::nil(out);
}

pub fn map<'a>(pairs: &'a [(&'a str, Part<'a>)]) -> impl Fn(&mut Vec<u8>) + 'a {
    move |out| {
        write::map(out, pairs.len() as u32);
        for (name, value) in pairs {
            write::str(out, name.as_bytes());
            value(out);
        }
    }
}

/// A tuple of `_space` with these options and this format.
pub fn defined(id: u32, options: Part<'_>, format: Part<'_>) -> Vec<u8> {
    let name = format!("s{id}");
    let fields: [Part<'_>; 7] =
        [&number(id.into()), &number(1), &text(&name), &text("memtx"), &number(0), options, format];
    array(&fields)
}

/// Fields `id`, `ref` that may be nil, and `x`; the second one with these options besides.
pub fn format_with<'a>(of_ref: &'a [(&'a str, Part<'a>)]) -> impl Fn(&mut Vec<u8>) + 'a {
    move |out| {
        write::array(out, 3);
        map(&[("name", &text("id")), ("type", &text("unsigned"))])(out);
        let nullable = |out: &mut Vec<u8>| write::bool(out, true);
        let (name, kind) = (text("ref"), text("unsigned"));
        let mut second: Vec<(&str, Part<'_>)> =
            vec![("name", &name), ("type", &kind), ("is_nullable", &nullable)];
        second.extend_from_slice(of_ref);
        map(&second)(out);
        map(&[("name", &text("x")), ("type", &text("unsigned"))])(out);
    }
}

/// A space whose `ref` names the first field of another space, or of the same one.
pub fn user_with_key(space: Option<u32>) -> Vec<u8> {
    let key = move |out: &mut Vec<u8>| {
        write::map(out, 1);
        write::str(out, b"city");
        write::map(out, 1 + u32::from(space.is_some()));
        if let Some(space) = space {
            write::str(out, b"space");
            write::uint(out, space.into());
        }
        write::str(out, b"field");
        write::uint(out, 0);
    };
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    let option: [(&str, Part<'_>); 1] = [("foreign_key", &key)];
    defined(USER, &none, &format_with(&option))
}

pub fn city() -> Vec<u8> {
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    defined(CITY, &none, &format_with(&[]))
}

pub fn nullable_index(space: u32) -> Vec<u8> {
    let options = |out: &mut Vec<u8>| {
        write::map(out, 1);
        write::str(out, b"unique");
        write::bool(out, false);
    };
    let parts = |out: &mut Vec<u8>| {
        write::array(out, 1);
        let nullable = |out: &mut Vec<u8>| write::bool(out, true);
        let (field, kind) = (number(1), text("unsigned"));
        map(&[("field", &field), ("type", &kind), ("is_nullable", &nullable)])(out);
    };
    array(&[&number(space.into()), &number(1), &text("ref"), &text("tree"), &options, &parts])
}

pub fn message<T>(result: Result<T, BoxError>) -> String {
    result.map_or_else(|error| format!("{} {}", error.code.0, error.message), |_| "ok".to_owned())
}

pub fn row(id: u64, of: Option<u64>, x: u64) -> Vec<u8> {
    match of {
        Some(of) => array(&[&number(id), &number(of), &number(x)]),
        None => array(&[&number(id), &nil, &number(x)]),
    }
}

pub fn define(node: &Node, tuple: &[u8]) -> String {
    message(node.write(system::SPACE, |s| s.replace(tuple)))
}

pub fn index(node: &Node, tuple: &[u8]) -> String {
    message(node.write(system::INDEX, |s| s.insert(tuple)))
}

pub fn put(node: &Node, space: u32, tuple: &[u8]) -> String {
    message(node.write(space, |s| s.replace(tuple)))
}

pub fn delete(node: &Node, space: u32, id: u64) -> String {
    message(node.write(space, |s| s.delete(0, &array(&[&number(id)]))))
}

pub fn bound() -> Node {
    let node = Node::new();
    assert_eq!(define(&node, &city()), "ok");
    assert_eq!(index(&node, &index_tuple(CITY.into(), 0, "tree", true, 0)), "ok");
    assert_eq!(define(&node, &user_with_key(Some(CITY))), "ok");
    assert_eq!(index(&node, &index_tuple(USER.into(), 0, "tree", true, 0)), "ok");
    assert_eq!(index(&node, &nullable_index(USER)), "ok");
    node
}

#[test]
fn a_key_is_checked_as_tarantool_checks_it() {
    let node = bound();
    let failed =
        |why: &str| format!("239 Foreign key constraint 'city' failed for field '2 (ref)': {why}");
    assert_eq!(put(&node, CITY, &row(1, None, 0)), "ok");
    assert_eq!(put(&node, USER, &row(7, Some(1), 0)), "ok");
    assert_eq!(put(&node, USER, &row(8, None, 0)), "ok");
    let before = (dump(&node.keyspace), node.keyspace.spaces.bytes());
    let not_found = failed("foreign tuple was not found");
    assert_eq!(put(&node, USER, &row(9, Some(2), 0)), not_found);
    assert_eq!(put(&node, USER, &row(7, Some(2), 0)), not_found);
    let referenced = "238 Foreign key 'city' integrity check failed: tuple is referenced";
    assert_eq!(delete(&node, CITY, 1), referenced);
    assert_eq!((dump(&node.keyspace), node.keyspace.spaces.bytes()), before);
    // Its key stays.
    assert_eq!(put(&node, CITY, &row(1, None, 5)), "ok");
    assert_eq!(put(&node, USER, &row(7, None, 0)), "ok");
    assert_eq!(delete(&node, CITY, 1), "ok");
    // Without an index, nobody can tell.
    assert_eq!(put(&node, CITY, &row(1, None, 0)), "ok");
    let by_ref = array(&[&number(USER.into()), &number(1)]);
    assert_eq!(message(node.write(system::INDEX, |s| s.delete(0, &by_ref))), "ok");
    let unknown = "238 Foreign key 'city' integrity check failed: index was not found";
    assert_eq!(delete(&node, CITY, 1), unknown);
}

/// Who still has a catalog from before a foreign key obeys it all the same.
#[test]
fn a_catalog_from_before_a_key_does_not_evade_it() {
    let node = bound();
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    assert_eq!(define(&node, &defined(USER, &none, &format_with(&[]))), "ok");
    put(&node, CITY, &row(1, None, 0));
    put(&node, USER, &row(7, Some(1), 0));
    let spaces = &node.keyspace.spaces;
    let before = spaces.catalog_to_keep();
    let write = |space, statement: Statement<'_>| {
        let (scratch, append) =
            (&mut node.scratch.borrow_mut(), |record: Record<'_>| node.append(&record));
        let run = |space: &mut Space| statement.run(space);
        message(node.keyspace.write_alone(&before, space, scratch, run, append).0)
    };
    let mut transactions = [(); 2].map(|()| Interactive::new(spaces));
    let (city, stranger) = (array(&[&number(1)]), row(8, Some(2), 0));
    let delete = Statement::Delete { index: 0, key: &city };
    transactions[0].write(&node.keyspace, CITY, delete).unwrap();
    transactions[1].write(&node.keyspace, USER, Statement::Replace(&stranger)).unwrap();
    assert_eq!(define(&node, &user_with_key(Some(CITY))), "ok");
    assert!(spaces.version() > before.version);
    let referenced = "238 Foreign key 'city' integrity check failed: tuple is referenced";
    assert_eq!(write(CITY, delete), referenced);
    assert!(write(USER, Statement::Replace(&stranger)).starts_with("239 "));
    let ids = [CITY];
    let begun = node
        .keyspace
        .begin_writing_spaces(&before, &ids, &mut node.scratch.borrow_mut())
        .is_ok_and(|begun| begun.is_some());
    assert!(!begun, "it looks at the catalog again");
    for mut transaction in transactions {
        let pace = CommitPace { work: 10, now_ms: 1 };
        let mut scratch = node.scratch.borrow_mut();
        let append = |record: Record<'_>| node.append(&record);
        let done = transaction.commit(&node.keyspace, &mut scratch, pace, append).0;
        assert!(done.is_err(), "a conflict");
    }
    assert_eq!(dangling(&node), 0);
}

#[test]
fn a_space_that_is_named_stays() {
    let node = bound();
    put(&node, CITY, &row(1, None, 0));
    let truncate = |space: u32| {
        let tuple = array(&[&number(space.into()), &number(1)]);
        message(node.write(system::TRUNCATE, |s| s.replace(&tuple)))
    };
    let drop_space = |space: u32| {
        for id in [1u64, 0] {
            let key = array(&[&number(space.into()), &number(id)]);
            let _ = node.write(system::INDEX, |s| s.delete(0, &key));
        }
        message(node.write(system::SPACE, |s| s.delete(0, &array(&[&number(space.into())]))))
    };
    assert_eq!(
        truncate(CITY),
        format!("12 Can't modify space 's{CITY}': space is referenced by foreign key")
    );
    assert_eq!(truncate(USER), "ok");
    // What says how often a space was emptied goes first, as with Tarantool's `space:drop`.
    let forget = |space: u32| {
        let key = array(&[&number(space.into())]);
        message(node.write(system::TRUNCATE, |s| s.delete(0, &key)))
    };
    assert_eq!(
        drop_space(CITY),
        format!("11 Can't drop space 's{CITY}': space is referenced by foreign key")
    );
    assert_eq!(put(&node, USER, &row(1, Some(1), 0)), {
        // Its index is gone already.
        "239 Foreign key constraint 'city' failed for field '2 (ref)': foreign index was not found"
    });
    assert_eq!(
        drop_space(USER),
        format!("11 Can't drop space 's{USER}': the space has truncate record")
    );
    assert_eq!(forget(USER), "ok");
    assert_eq!(drop_space(USER), "ok");
    assert_eq!(drop_space(CITY), "ok");
}

#[test]
fn definitions_are_checked_with_the_tuples_that_there_are() {
    let node = Node::new();
    let missing = format!(
        "237 Failed to create foreign key 'city' in space 's{USER}': foreign space '{CITY}' was not found by id"
    );
    assert_eq!(define(&node, &user_with_key(Some(CITY))), missing);
    assert_eq!(define(&node, &user_with_key(None)), "ok");
    assert_eq!(index(&node, &index_tuple(USER.into(), 0, "tree", true, 0)), "ok");
    assert_eq!(index(&node, &nullable_index(USER)), "ok");
    let not_found =
        "239 Foreign key constraint 'city' failed for field '2 (ref)': foreign tuple was not found";
    // A tuple does not satisfy its own key, unless it was there.
    assert_eq!(put(&node, USER, &row(1, Some(1), 0)), not_found);
    assert_eq!(put(&node, USER, &row(1, None, 0)), "ok");
    assert_eq!(put(&node, USER, &row(1, Some(1), 0)), "ok");
    assert_eq!(put(&node, USER, &row(2, Some(1), 0)), "ok");
    let referenced = "238 Foreign key 'city' integrity check failed: tuple is referenced";
    assert_eq!(delete(&node, USER, 1), referenced);
    assert_eq!(define(&node, &city()), "ok");
    assert_eq!(index(&node, &index_tuple(CITY.into(), 0, "tree", true, 0)), "ok");
    let before = (dump(&node.keyspace), node.keyspace.spaces.bytes());
    assert_eq!(define(&node, &user_with_key(Some(CITY))), not_found);
    assert_eq!((dump(&node.keyspace), node.keyspace.spaces.bytes()), before);
    assert_eq!(put(&node, CITY, &row(1, None, 0)), "ok");
    assert_eq!(define(&node, &user_with_key(Some(CITY))), "ok");
    assert_eq!(delete(&node, CITY, 1), referenced);
    let to_system = user_with_key(Some(280));
    assert!(define(&node, &to_system).contains("Ladon does not bind to system spaces"));
    // What is no longer bound is no longer checked.
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    assert_eq!(define(&node, &defined(USER, &none, &format_with(&[]))), "ok");
    assert_eq!(delete(&node, CITY, 1), "ok");
    let wrong = |out: &mut Vec<u8>| write::uint(out, 5);
    let option: [(&str, Part<'_>); 1] = [("foreign_key", &wrong)];
    let refused = define(&node, &defined(USER, &none, &format_with(&option)));
    assert_eq!(
        refused,
        "141 Wrong space format field 2: foreign key field is expected to be a MAP"
    );
}

/// A key of two fields, in another order than the index's parts.
#[test]
fn a_key_may_have_several_fields() {
    let node = Node::new();
    assert_eq!(define(&node, &city()), "ok");
    let parts = |out: &mut Vec<u8>| {
        write::array(out, 2);
        for field in [0, 2] {
            array(&[&number(field), &text("unsigned")]).iter().for_each(|byte| out.push(*byte));
        }
    };
    let unique = |out: &mut Vec<u8>| {
        write::map(out, 1);
        write::str(out, b"unique");
        write::bool(out, true);
    };
    let over_both = |space: u32, id: u64| {
        array(&[&number(space.into()), &number(id), &text("both"), &text("tree"), &unique, &parts])
    };
    assert_eq!(index(&node, &index_tuple(CITY.into(), 0, "tree", true, 0)), "ok");
    assert_eq!(index(&node, &over_both(CITY, 1)), "ok");
    let (x, id) = (text("x"), text("id"));
    let fields: [(&str, Part<'_>); 2] = [("x", &x), ("id", &id)];
    let (fields, space) = (map(&fields), number(CITY.into()));
    let key: [(&str, Part<'_>); 2] = [("space", &space), ("field", &fields)];
    let key = map(&key);
    let named: [(&str, Part<'_>); 1] = [("both", &key)];
    let named = map(&named);
    let options: [(&str, Part<'_>); 1] = [("foreign_key", &named)];
    assert_eq!(define(&node, &defined(USER, &map(&options), &format_with(&[]))), "ok");
    assert_eq!(index(&node, &over_both(USER, 0)), "ok");
    assert_eq!(put(&node, CITY, &row(1, None, 5)), "ok");
    let not_found = "240 Foreign key constraint 'both' failed: foreign tuple was not found";
    assert_eq!(put(&node, USER, &row(1, None, 6)), not_found);
    assert_eq!(put(&node, USER, &row(5, None, 1)), not_found);
    assert_eq!(put(&node, USER, &row(1, None, 5)), "ok");
    let referenced = "238 Foreign key 'both' integrity check failed: tuple is referenced";
    assert_eq!(put(&node, CITY, &row(1, None, 6)), referenced);
    assert_eq!(put(&node, CITY, &row(1, Some(3), 5)), "ok");
    assert_eq!(delete(&node, CITY, 1), referenced);
}

pub type Rows = BTreeMap<u64, Option<u64>>;

pub fn rows_of(node: &Node, space: u32) -> Rows {
    let tuples = &dump(&node.keyspace)[&(space, 0)];
    let field = |tuple: &[u8], at| {
        let value = ladon_space::fields::field(tuple, at).expect("a field");
        ladon_msgpack::read_uint(&mut { value }).ok()
    };
    tuples.iter().map(|tuple| (field(tuple, 0).expect("an id"), field(tuple, 1))).collect()
}

pub fn dangling(node: &Node) -> usize {
    let (cities, users) = (rows_of(node, CITY), rows_of(node, USER));
    users.values().flatten().filter(|city| !cities.contains_key(city)).count()
}

#[test]
fn random_statements_agree_with_a_model() {
    let (mut refused, mut done) = (0, 0);
    for seed in 0..20 {
        let random = &mut Random::new(seed);
        let node = bound();
        let (mut cities, mut users) = (Rows::new(), Rows::new());
        for _ in 0..300 {
            let (id, city) = (random.below(12), random.below(8));
            let of = (!random.chance(1, 4)).then_some(city);
            let is_named = |users: &Rows, city: u64| users.values().any(|of| *of == Some(city));
            let (found, expected) = match random.below(5) {
                0 | 1 => {
                    let fits = of.is_none_or(|of| cities.contains_key(&of));
                    if fits {
                        users.insert(id, of);
                    }
                    (put(&node, USER, &row(id, of, 0)), fits)
                }
                2 => {
                    cities.insert(city, None);
                    (put(&node, CITY, &row(city, None, id)), true)
                }
                3 => {
                    users.remove(&id);
                    (delete(&node, USER, id), true)
                }
                _ => {
                    let fits = !is_named(&users, city) || !cities.contains_key(&city);
                    if fits {
                        cities.remove(&city);
                    }
                    (delete(&node, CITY, city), fits)
                }
            };
            assert_eq!(found == "ok", expected, "seed {seed}: {found}");
            (refused, done) = (refused + u32::from(!expected), done + u32::from(expected));
        }
        assert_eq!((rows_of(&node, CITY), rows_of(&node, USER)), (cities, users));
        assert_eq!(node.keyspace.spaces.bytes(), recounted(&node.keyspace));
        let found = restored(&node, &[], Lsn::ZERO);
        assert_eq!(dump(&found), dump(&node.keyspace), "seed {seed}");
    }
    assert!(refused > 300 && done > 1000, "{refused} {done}");
}

/// A statement of the test below: a row of users or cities, or the city to be deleted.
#[derive(Clone, Copy)]
enum Did {
    Put(u32, u64, Option<u64>),
    Deleted(u64),
}

/// An open transaction, and what it was shown: whether each statement was refused.
struct Open {
    transaction: Interactive,
    shown: Vec<(Did, bool)>,
    /// Its commit has begun.
    is_ending: bool,
}

impl Open {
    fn step(&mut self, node: &Node, random: &mut Random) -> bool {
        let (id, city) = (random.below(6), random.below(4));
        let did = match random.below(3) {
            0 => Did::Put(USER, id, Some(city)),
            1 => Did::Put(CITY, city, None),
            _ => Did::Deleted(city),
        };
        let refused = match did {
            Did::Put(space, id, of) => {
                let tuple = row(id, of, 0);
                self.transaction.write(&node.keyspace, space, Statement::Replace(&tuple)).is_err()
            }
            Did::Deleted(city) => {
                let key = array(&[&number(city)]);
                let statement = Statement::Delete { index: 0, key: &key };
                self.transaction.write(&node.keyspace, CITY, statement).is_err()
            }
        };
        self.shown.push((did, refused));
        refused
    }
}

/// Whatever open transactions did on their copies, what is committed holds together, and is what
/// the same statements show one transaction after the other.
#[test]
fn transactions_do_not_break_a_key_together() {
    let (mut committed, mut conflicts, mut refused, mut slices) = (0, 0, 0, 0);
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let (node, oracle) = (bound(), bound());
        let mut open: Vec<Open> = Vec::new();
        for _ in 0..100 {
            if open.len() < 3 && random.chance(1, 3) {
                let transaction = Interactive::new(&node.keyspace.spaces);
                open.push(Open { transaction, shown: Vec::new(), is_ending: false });
            }
            let Some(at) = (random.below(8) as usize).checked_rem(open.len()) else { continue };
            if !open[at].is_ending && !random.chance(1, 4) {
                refused += u32::from(open[at].step(&node, random));
                continue;
            }
            let pace = CommitPace { work: 1 + random.below(4) as usize, now_ms: 1 };
            let mut scratch = node.scratch.borrow_mut();
            let append = |record: ladon_record::Record<'_>| node.append(&record);
            let done = open[at].transaction.commit(&node.keyspace, &mut scratch, pace, append).0;
            drop(scratch);
            match done {
                Ok(Commit::GoesOn | Commit::Waits) => {
                    slices += 1;
                    open[at].is_ending = true;
                }
                Err(_) => {
                    conflicts += 1;
                    open.swap_remove(at);
                }
                Ok(Commit::Done) => {
                    committed += 1;
                    for (did, is_refused) in open.swap_remove(at).shown {
                        let found = match did {
                            Did::Put(space, id, of) => put(&oracle, space, &row(id, of, 0)),
                            Did::Deleted(city) => delete(&oracle, CITY, city),
                        };
                        assert_eq!(found != "ok", is_refused, "seed {seed}: {found}");
                    }
                }
            }
            assert_eq!(dangling(&node), 0, "seed {seed}");
        }
        drop(open);
        assert_eq!(dump(&node.keyspace), dump(&oracle.keyspace), "seed {seed}");
        assert_eq!(node.keyspace.spaces.bytes(), recounted(&node.keyspace));
        let found = restored(&node, &[], Lsn::ZERO);
        assert_eq!(dump(&found), dump(&node.keyspace), "seed {seed}");
    }
    assert!(
        committed > 500 && conflicts > 50 && refused > 500 && slices > 50,
        "{committed} {conflicts} {refused} {slices}"
    );
}
