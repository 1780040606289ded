//! A foreign key of a large space is checked in slices, while that space and the one that it names
//! are changed: once it is there, every tuple has what it names; if it is refused, one has not.

use crate::foreign_keys::{
    CITY, USER, city, dangling, define, defined, delete, format_with, index, map, nullable_index,
    put, row, rows_of, user_with_key,
};
use crate::spaces::{Node, Part, array, dump, index_tuple, number, restored};
use ladon_engine::{AllRights, CommitPace, Interactive, Preparation, PreparationLimits, Progress};
use ladon_msgpack::write;
use ladon_record::{Lsn, Record};
use ladon_space::fields::Fields;
use ladon_space::{BoxError, Space, Statement};
use ladon_system_spaces as system;
use ladon_testkit::Random;

const USERS: u64 = 300;
const CITIES: u64 = 200;
const NOW_MS: u64 = 1;

/// Users without a foreign key, half of which name cities that there are.
fn unbound(is_indexed: bool, random: &mut Random) -> Node {
    let node = Node::new();
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    assert_eq!(define(&node, &city()), "ok");
    assert_eq!(define(&node, &defined(USER, &none, &format_with(&[]))), "ok");
    for space in [CITY, USER] {
        assert_eq!(index(&node, &index_tuple(space.into(), 0, "tree", true, 0)), "ok");
    }
    if is_indexed {
        assert_eq!(index(&node, &nullable_index(USER)), "ok");
    }
    (0..CITIES).for_each(|id| drop(put(&node, CITY, &row(id, None, 0))));
    for id in 0..USERS {
        let of = random.chance(1, 2).then(|| random.below(CITIES));
        put(&node, USER, &row(id, of, 0));
    }
    node
}

fn prepare(node: &Node, tuple: &[u8]) -> Option<Preparation> {
    let catalog = node.keyspace.spaces.catalog();
    let (written, _) = catalog.read(system::SPACE, |space| space.clone().replace(tuple));
    node.keyspace.prepare(
        (system::SPACE, &AllRights),
        &written.expect("a definition"),
        PreparationLimits::default(),
    )
}

/// Defines it, if nothing has to be prepared any more.
fn define_prepared(
    node: &Node,
    tuple: &[u8],
    preparation: &mut Preparation,
) -> Option<Result<(), BoxError>> {
    let mut scratch = node.scratch.borrow_mut();
    let append = |record: Record<'_>| node.append(&record);
    let replace = |space: &mut Space| space.replace(tuple);
    let (id, keyspace) = (system::SPACE, &node.keyspace);
    let (done, _) =
        keyspace.define_prepared((id, &AllRights), &mut scratch, replace, append, preparation);
    done.map(|done| done.map(drop))
}

/// Both spaces change; whether cities do as well depends on whether somebody has asked them to wait.
struct Changes<'a> {
    node: &'a Node,
    /// One in so many breaks the key.
    breaks_one_in: u64,
}

impl Changes<'_> {
    fn are_cities_free(&self) -> bool {
        let catalog = self.node.keyspace.spaces.catalog();
        !catalog.get(CITY).expect("the space").is_kept_still(NOW_MS)
    }

    /// The city's last users go to another one.
    fn abandon(&self, city: u64, to: Option<u64>) {
        let users = rows_of(self.node, USER);
        for (id, _) in users.iter().filter(|(_, of)| **of == Some(city)) {
            put(self.node, USER, &row(*id, to, 1));
        }
    }

    fn make(&self, random: &mut Random) {
        let node = self.node;
        let cities = rows_of(node, CITY);
        let is_there = |id: &u64| cities.contains_key(id);
        let (id, city) = (random.below(USERS + 50), random.below(CITIES));
        let breaks = random.chance(1, self.breaks_one_in);
        match random.below(6) {
            0 if breaks => drop(put(node, USER, &row(id, Some(CITIES + id), 0))),
            0 | 1 => drop(put(node, USER, &row(id, Some(city).filter(is_there), 0))),
            2 => drop(delete(node, USER, id)),
            _ if !self.are_cities_free() => {}
            3 if breaks => drop(delete(node, CITY, city)),
            3 => drop(put(node, CITY, &row(city, None, id))),
            // It comes again, before or after others have changed something.
            4 => {
                self.abandon(city, None);
                delete(node, CITY, city);
            }
            _ => self.in_a_transaction(city, id),
        }
    }

    /// A city moves under another name, and its users with it.
    fn in_a_transaction(&self, city: u64, other: u64) {
        let node = self.node;
        let mut transaction = Interactive::new(&node.keyspace.spaces);
        let mut run = |space, statement: Statement<'_>| {
            transaction.write(&node.keyspace, space, statement).expect("a statement");
        };
        let other = other % CITIES;
        run(CITY, Statement::Replace(&row(other, None, 2)));
        for (id, of) in rows_of(node, USER) {
            if of == Some(city) {
                run(USER, Statement::Replace(&row(id, Some(other), 2)));
            }
        }
        if city != other {
            run(CITY, Statement::Delete { index: 0, key: &array(&[&number(city)]) });
        }
        let mut scratch = node.scratch.borrow_mut();
        let pace = CommitPace { work: usize::MAX, now_ms: NOW_MS };
        let append = |record: Record<'_>| node.append(&record);
        transaction.commit(&node.keyspace, &mut scratch, pace, append).0.expect("commits");
    }
}

/// How often the key was there in the end, was refused, had to begin again, and was not ready in
/// the last moment.
#[derive(Default, Debug)]
struct Times {
    accepted: u32,
    refused: u32,
    broken: u32,
    late: u32,
}

fn bind_beside_changes(node: &Node, breaks_one_in: u64, random: &mut Random, times: &mut Times) {
    let (tuple, changes) = (user_with_key(Some(CITY)), Changes { node, breaks_one_in });
    let mut preparation = prepare(node, &tuple).expect("it is large");
    let mut slices = 0;
    let done = loop {
        slices += 1;
        assert!(slices < 10_000, "it has no end");
        for _ in 0..random.below(4) {
            changes.make(random);
        }
        match preparation.go_on(1 + random.below(80) as usize, NOW_MS) {
            Err(error) => break Err(error),
            Ok(Progress::GoesOn) => {}
            Ok(Progress::Broken) => {
                times.broken += 1;
                preparation =
                    prepare(node, &tuple).expect("it is large").after(&mut preparation, NOW_MS);
            }
            Ok(Progress::Ready) => {
                let most = random.pick(&[4, 4, 4, 400]);
                for _ in 0..random.below(most) {
                    changes.make(random);
                }
                match define_prepared(node, &tuple, &mut preparation) {
                    Some(done) => break done,
                    None => times.late += 1,
                }
            }
        }
    };
    match done {
        Ok(()) => {
            times.accepted += 1;
            assert_eq!(dangling(node), 0);
            let stranger = row(1, Some(CITIES + 1), 0);
            assert!(put(node, USER, &stranger).starts_with("239 "), "it is obeyed");
        }
        Err(error) => {
            times.refused += 1;
            assert_eq!(
                error.message,
                "Foreign key constraint 'city' failed for field '2 (ref)': foreign tuple was not found"
            );
            assert_ne!(dangling(node), 0, "one names nothing at this moment");
        }
    }
}

#[test]
fn a_key_that_was_checked_beside_changes_holds() {
    let mut times = Times::default();
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let node = unbound(random.chance(2, 3), random);
        let breaks_one_in = random.pick(&[6, 60, 1_000_000]);
        bind_beside_changes(&node, breaks_one_in, random, &mut times);
        node.scratch.borrow_mut().garbage.clear();
        assert!(dump(&restored(&node, &[], Lsn::ZERO)) == dump(&node.keyspace), "seed {seed}");
    }
    let Times { accepted, refused, broken, late } = times;
    assert!(accepted > 100 && refused > 50 && broken > 20 && late > 5, "{times:?}");
}

/// Definitions of the space that is named, and of keys that were there, break it off.
#[test]
fn what_it_depends_on_breaks_it_off() {
    let none = |out: &mut Vec<u8>| write::map(out, 0);
    let truncate = array(&[&number(CITY.into()), &number(1)]);
    let other_index = index_tuple(CITY.into(), 1, "tree", false, 2);
    let by_name = defined(
        CITY,
        &none,
        &format_with(&[("comment", &|out: &mut Vec<u8>| write::uint(out, 1))]),
    );
    let happens: [(u32, &[u8], bool); 4] = [
        (system::TRUNCATE, &truncate, true),
        (system::INDEX, &other_index, true),
        (system::SPACE, &city(), false),
        (system::SPACE, &by_name, false),
    ];
    for (space, tuple, breaks) in happens {
        let node = unbound(true, &mut Random::new(1));
        let key = user_with_key(Some(CITY));
        let mut preparation = prepare(&node, &key).expect("it is large");
        assert_eq!(preparation.go_on(50, NOW_MS), Ok(Progress::GoesOn));
        node.write(space, |s| s.replace(tuple)).expect("a definition");
        let goes_on = if breaks { Progress::Broken } else { Progress::GoesOn };
        assert_eq!(preparation.go_on(50, NOW_MS), Ok(goes_on), "{space}");
        assert!(define_prepared(&node, &key, &mut preparation).is_none());
    }
}

/// A key that was there need not be checked again, unless it is dropped meanwhile.
#[test]
fn a_key_that_was_there_is_kept_or_breaks_it_off() {
    let of_field = |out: &mut Vec<u8>| {
        write::map(out, 1);
        write::uint(out, 1);
        write::uint(out, 0);
    };
    let parent = number(CITY.into());
    let second: [(&str, Part<'_>); 2] = [("space", &parent), ("field", &of_field)];
    let second = map(&second);
    let named: [(&str, Part<'_>); 1] = [("second", &second)];
    let named = map(&named);
    let options: [(&str, Part<'_>); 1] = [("foreign_key", &named)];
    let (only_second, none) =
        (defined(USER, &map(&options), &format_with(&[])), |out: &mut Vec<u8>| {
            write::map(out, 0);
        });
    let first = user_with_key(Some(CITY));
    let format_of = |tuple: &[u8]| Fields::of(tuple).last().expect("a format").to_vec();
    let format = format_of(&first);
    let both = defined(USER, &map(&options), &|out: &mut Vec<u8>| out.extend_from_slice(&format));
    for drops in [false, true] {
        let node = unbound(true, &mut Random::new(1));
        assert_eq!(define(&node, &first), "ok");
        assert!(prepare(&node, &first).is_none(), "nothing is to be checked");
        let mut preparation = prepare(&node, &both).expect("the second is to be checked");
        assert_eq!(preparation.go_on(2_000, NOW_MS), Ok(Progress::Ready));
        if drops {
            assert_eq!(define(&node, &defined(USER, &none, &format_with(&[]))), "ok");
            put(&node, USER, &row(1, Some(CITIES + 1), 0));
        }
        let done = define_prepared(&node, &both, &mut preparation);
        assert_eq!(done, (!drops).then_some(Ok(())));
        if drops {
            assert_eq!(preparation.go_on(2_000, NOW_MS), Ok(Progress::Broken));
        }
        assert!(drops || define(&node, &only_second) == "ok", "one stays");
    }
}

/// A key of a space to itself.
#[test]
fn a_space_may_name_itself() {
    for breaks in [false, true] {
        let node = unbound(true, &mut Random::new(2));
        (0..USERS).for_each(|id| drop(put(&node, USER, &row(id, Some(id / 2), 0))));
        let key = user_with_key(None);
        let mut preparation = prepare(&node, &key).expect("it is large");
        assert_eq!(preparation.go_on(400, NOW_MS), Ok(Progress::GoesOn));
        // It was looked at, and is named by two.
        delete(&node, USER, 3);
        if !breaks {
            put(&node, USER, &row(3, Some(1), 5));
        }
        let done = loop {
            match preparation.go_on(50, NOW_MS) {
                Ok(Progress::GoesOn) => {}
                Ok(Progress::Ready) => {
                    break define_prepared(&node, &key, &mut preparation).expect("it is ready");
                }
                Ok(Progress::Broken) => panic!("the index tells who names it"),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(done.is_err(), breaks, "{done:?}");
    }
}

/// Writers of the other space who are too fast have to wait, so that it comes to its end.
#[test]
fn writers_of_the_other_space_wait_as_well() {
    for is_indexed in [true, false] {
        let node = unbound(is_indexed, &mut Random::new(3));
        let cell = node.keyspace.spaces.catalog().get(CITY).cloned().expect("the space");
        let key = user_with_key(Some(CITY));
        let mut preparation = prepare(&node, &key).expect("it is large");
        let (mut waited, mut slices, mut broken) = (0, 0, 0);
        loop {
            slices += 1;
            assert!(slices < 20_000, "it has no end");
            match preparation.go_on(16, NOW_MS).expect("all fit") {
                Progress::GoesOn => {}
                Progress::Ready => break,
                Progress::Broken => {
                    broken += 1;
                    preparation =
                        prepare(&node, &key).expect("it is large").after(&mut preparation, NOW_MS);
                }
            }
            if cell.is_kept_still(NOW_MS) {
                waited += 1;
                continue;
            }
            // Nobody names it, but who can tell?
            for _ in 0..400 {
                put(&node, CITY, &row(CITIES + 7, None, slices));
            }
            delete(&node, CITY, CITIES + 7);
        }
        assert_eq!(define_prepared(&node, &key, &mut preparation), Some(Ok(())));
        assert!(waited > 10 && (broken > 0) != is_indexed, "{waited} {broken}");
        drop(preparation);
        assert!(!cell.is_kept_still(NOW_MS), "writers go on");
    }
}
