//! Definitions that are prepared while their space is changed: what it holds in the end is what
//! recovery, which does everything at once, finds in the log.

use crate::spaces::{
    Node, array, dump, index_tuple, number, other_index_tuple, recounted, restored, space_tuple,
};
use ladon_engine::{AllRights, CommitPace, Interactive, Preparation, Progress};
use ladon_msgpack::write;
use ladon_record::{Lsn, Record};
use ladon_space::{BoxError, ErrorCode, Space, Statement};
use ladon_system_spaces as system;
use ladon_testkit::Random;

const SPACE: u32 = 512;
const IDS: u64 = 600;
const NOW_MS: u64 = 1;

/// `b` may be that of other tuples, `c` is not.
fn tuple(id: u64, b: u64) -> Vec<u8> {
    let both = |out: &mut Vec<u8>| {
        write::array(out, 2);
        write::uint(out, b);
        write::uint(out, id);
    };
    array(&[&number(id), &number(b), &number(id * 100 + b), &both])
}

/// A space with a primary index of this kind.
fn filled(kind: &str) -> Node {
    let node = Node::new();
    node.write(system::SPACE, |s| s.insert(&space_tuple(SPACE.into(), "s".into()))).unwrap();
    let primary = index_tuple(SPACE.into(), 0, kind, true, 0);
    node.write(system::INDEX, |s| s.insert(&primary)).unwrap();
    for id in 0..IDS {
        node.write(SPACE, |s| s.insert(&tuple(id, id % 50))).unwrap();
    }
    node
}

/// A tuple of a system space.
type Definition = (u32, Vec<u8>);

/// The space with fields of these types.
fn format(kinds: &[&str]) -> Definition {
    let fields = |out: &mut Vec<u8>| {
        write::array(out, kinds.len() as u32);
        for (kind, name) in kinds.iter().zip("abcdefgh".chars()) {
            write::map(out, 2);
            for (key, value) in [("name", &*name.to_string()), ("type", kind)] {
                write::str(out, key.as_bytes());
                write::str(out, value.as_bytes());
            }
        }
    };
    let mut tuple = space_tuple(SPACE.into(), "s".into());
    // It ends with an empty format.
    tuple.pop();
    fields(&mut tuple);
    (system::SPACE, tuple)
}

fn index(id: u64, kind: &str, is_unique: bool, field: u64) -> Definition {
    (system::INDEX, index_tuple(SPACE.into(), id, kind, is_unique, field))
}

/// What is prepared at once.
fn definitions(random: &mut Random) -> Vec<Definition> {
    let first = match random.below(3) {
        0 => index(1, "tree", false, 1),
        1 => index(1, "tree", true, 2),
        _ => index(1, "hash", true, 2),
    };
    let other = other_index_tuple(SPACE.into(), 2 + random.below(3), false);
    let mut all = vec![first, (system::INDEX, other)];
    if random.chance(1, 2) {
        let primary = index(0, random.pick(&["tree", "hash"]), true, 2);
        let format = format(&["unsigned", "number", "unsigned", "array"]);
        all.push(if random.chance(1, 2) { primary } else { format });
    }
    all
}

fn prepare(node: &Node, (id, tuple): &Definition) -> Option<Preparation> {
    let catalog = node.keyspace.spaces.catalog();
    let (written, _) = catalog.read(*id, |space| space.clone().replace(tuple));
    node.keyspace.prepare((*id, &AllRights), &written.expect("a definition"), Default::default())
}

/// A statement, a transaction, or a definition that breaks the noting off; that is rare.
fn change(node: &Node, random: &mut Random) {
    let (id, b) = (random.below(IDS + 100), random.below(100));
    let tuple = tuple(id, b);
    let key = array(&[&number(id)]);
    if random.chance(1, 120) {
        node.write(system::SPACE, |s| s.replace(&space_tuple(SPACE.into(), "s".into()))).unwrap();
        return;
    }
    if random.chance(1, 20) {
        let mut transaction = Interactive::new(&node.keyspace.spaces);
        transaction.write(&node.keyspace, SPACE, Statement::Replace(&tuple)).unwrap();
        let mut scratch = node.scratch.borrow_mut();
        let pace = CommitPace { work: usize::MAX, now_ms: 1 };
        let append = |record: Record<'_>| node.append(&record);
        transaction.commit(&node.keyspace, &mut scratch, pace, append).0.expect("commits");
        return;
    }
    // An insertion may fail: then nothing is to be followed.
    let _ = match random.below(3) {
        0 => node.write(SPACE, |s| s.replace(&tuple)),
        1 => node.write(SPACE, |s| s.insert(&tuple)),
        _ => node.write(SPACE, |s| s.delete(0, &key)),
    };
}

/// Defines it, if nothing has to be prepared any more.
fn define(
    node: &Node,
    (id, tuple): &Definition,
    preparation: &mut Preparation,
) -> Option<Result<(), BoxError>> {
    let mut scratch = node.scratch.borrow_mut();
    let append = |record: Record<'_>| node.append(&record);
    let replace = |space: &mut Space| space.replace(tuple);
    let keyspace = &node.keyspace;
    let (done, _) =
        keyspace.define_prepared((*id, &AllRights), &mut scratch, replace, append, preparation);
    done.map(|done| done.map(drop))
}

fn must_define(node: &Node, definition: &Definition, mut preparation: Preparation) {
    let done = define(node, definition, &mut preparation);
    done.expect("everything is prepared").expect("a definition");
}

/// Checks that recovery finds in the log what there is.
fn assert_restored(node: &Node, seed: u64) {
    let (found, there) = (dump(&restored(node, &[], Lsn::ZERO)), dump(&node.keyspace));
    assert!(found.keys().eq(there.keys()), "seed {seed}");
    for (of, tuples) in there {
        assert!(found[&of] == tuples, "{of:?} of seed {seed}");
    }
}

/// Prepares all of these to their ends while the space is changed. Returns how often one went on,
/// was broken off, or was ready too early.
fn prepare_all(node: &Node, random: &mut Random, all: Vec<Definition>) -> [usize; 3] {
    let mut times = [0; 3];
    let begin = |definition| (prepare(node, &definition).expect("it is large"), definition);
    let mut rest: Vec<(Preparation, Definition)> = all.into_iter().map(begin).collect();
    while !rest.is_empty() {
        for _ in 0..random.below(4) {
            change(node, random);
        }
        let at = random.below(rest.len() as u64) as usize;
        let (preparation, definition) = &mut rest[at];
        match preparation.go_on(1 + random.below(80) as usize, NOW_MS).expect("all fit") {
            Progress::GoesOn => times[0] += 1,
            Progress::Broken => {
                times[1] += 1;
                *preparation = prepare(node, definition).expect("it is large");
            }
            Progress::Ready => {
                // What comes in the last moment counts as well.
                let most = random.pick(&[4, 4, 4, 300]);
                for _ in 0..random.below(most) {
                    change(node, random);
                }
                match define(node, definition, preparation) {
                    Some(done) => done.expect("a definition"),
                    None => {
                        times[2] += 1;
                        continue;
                    }
                }
                rest.swap_remove(at);
            }
        }
    }
    times
}

#[test]
fn what_was_prepared_beside_changes_is_what_recovery_makes() {
    let mut times = [0; 3];
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let node = filled(random.pick(&["tree", "hash"]));
        let first = definitions(random);
        // What is there gets another order, or is demanded otherwise.
        let second = match random.below(3) {
            0 => index(1, "tree", false, 0),
            1 => index(0, random.pick(&["tree", "hash"]), true, 2),
            _ => format(&["unsigned", "unsigned"]),
        };
        let mut count = |all| {
            let of_these = prepare_all(&node, random, all);
            times.iter_mut().zip(of_these).for_each(|(all, some)| *all += some);
        };
        count(first);
        if prepare(&node, &second).is_some() {
            count(vec![second]);
        }
        for _ in 0..20 {
            change(&node, random);
        }
        // What could not be added counts until it is dropped.
        node.scratch.borrow_mut().garbage.clear();
        assert_restored(&node, seed);
        assert_eq!(node.keyspace.spaces.bytes(), recounted(&node.keyspace), "seed {seed}");
    }
    assert!(times[0] > 2_000 && times[1] > 50 && times[2] > 20, "{times:?}");
}

/// Tuples that have one key, or are not as they have to be, end it, whether they were there or come
/// while it is prepared or at the last moment. Nothing of it is left.
#[test]
fn what_does_not_fit_ends_it() {
    let (duplicate, wrong_type) = (ErrorCode::TUPLE_FOUND, ErrorCode::FIELD_TYPE);
    let all = [
        (index(1, "tree", true, 2), duplicate),
        (index(0, "tree", true, 2), duplicate),
        (index(0, "hash", true, 2), duplicate),
        (format(&["unsigned", "unsigned", "string"]), wrong_type),
    ];
    for ((definition, code), comes) in all.iter().flat_map(|it| [(it, 0), (it, 1), (it, 2)]) {
        let node = filled("tree");
        node.write(system::INDEX, |s| s.insert(&index(2, "tree", false, 1).1)).unwrap();
        let twin = |id: u64| array(&[&number(id), &number(1), &number(7)]);
        if *code == wrong_type {
            let fits = |id: u64| {
                array(&[&number(id), &number(1), &|out: &mut Vec<u8>| write::str(out, b"text")])
            };
            (0..IDS).for_each(|id| drop(node.write(SPACE, |s| s.replace(&fits(id))).unwrap()));
        }
        let before = dump(&node.keyspace);
        let bytes = node.keyspace.spaces.bytes();
        let misfit = || [1, 2].map(|id| node.write(SPACE, |s| s.replace(&twin(id))).unwrap());
        if comes == 0 {
            misfit();
        }
        let mut preparation = prepare(&node, definition).expect("it is large");
        let mut slices = (0..100).map(|_| {
            if comes == 1 {
                misfit();
            }
            preparation.go_on(50, NOW_MS)
        });
        let refused = match slices.find(|done| matches!(done, Err(_) | Ok(Progress::Ready))) {
            Some(Err(error)) => {
                drop(slices);
                // Who is told of it knows what the last writer wrote.
                assert_eq!(preparation.depends(), node.reserved());
                error
            }
            _ => {
                drop(slices);
                assert_ne!(comes, 0, "it is met earlier");
                misfit();
                let done = define(&node, definition, &mut preparation).expect("little is left");
                done.expect_err("it does not fit")
            }
        };
        assert_eq!(refused.code, *code, "{}", refused.message);
        drop(preparation);
        node.scratch.borrow_mut().garbage.clear();
        assert!(node.keyspace.spaces.bytes().abs_diff(bytes) < 4_000, "its memory is counted");
        assert_eq!(node.keyspace.spaces.bytes(), recounted(&node.keyspace));
        let after = dump(&node.keyspace);
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        assert_eq!(after[&(definition.0, 0)], before[&(definition.0, 0)], "its definition is old");
        assert_restored(&node, 0);
    }
}

/// Definitions that it depends on break it off, and no others.
#[test]
fn some_definitions_break_it_off() {
    let prepared = [
        index(1, "tree", false, 1),
        index(2, "tree", false, 2),
        index(0, "tree", true, 2),
        format(&["unsigned", "number"]),
    ];
    let multikey = (system::INDEX, other_index_tuple(SPACE.into(), 2, false));
    let truncate = (system::TRUNCATE, array(&[&number(SPACE.into()), &number(1)]));
    // What happens, and whether it breaks off each of them.
    let happens = [
        (index(2, "tree", false, 2), [false, true, true, false]),
        (index(1, "tree", false, 1), [true, false, true, false]),
        (index(3, "tree", false, 1), [false, false, true, false]),
        (multikey, [true, true, true, true]),
        (index(0, "tree", true, 2), [true; 4]),
        (index(0, "tree", true, 0), [false; 4]),
        (format(&["number"]), [true, true, true, false]),
        (format(&[]), [false; 4]),
        (truncate, [true; 4]),
    ];
    for (happened, breaks) in happens {
        let node = filled("tree");
        let mut all = prepared.each_ref().map(|it| prepare(&node, it).expect("it is large"));
        for preparation in &mut all {
            assert_eq!(preparation.go_on(50, NOW_MS), Ok(Progress::GoesOn));
        }
        let (id, tuple) = &happened;
        node.write(*id, |s| s.replace(tuple)).unwrap();
        for ((preparation, definition), breaks) in all.iter_mut().zip(&prepared).zip(breaks) {
            let goes_on = if breaks { Progress::Broken } else { Progress::GoesOn };
            let what = format!("{definition:?} after {happened:?}");
            assert_eq!(preparation.go_on(50, NOW_MS), Ok(goes_on), "{what}");
            // Who would define it all the same is told to begin again.
            let done = define(&node, definition, preparation);
            assert!(!breaks || done.is_none(), "{what}");
        }
        assert_restored(&node, 0);
    }
}

/// What is at fault, or takes no longer than any request, is not prepared.
#[test]
fn there_may_be_nothing_to_prepare() {
    let node = filled("tree");
    let names = index(1, "tree", false, 1);
    node.write(system::INDEX, |s| s.insert(&names.1)).unwrap();
    assert!(prepare(&node, &names).is_none(), "it is that already");
    assert!(prepare(&node, &index(1, "tree", false, 2)).is_some());
    assert!(prepare(&node, &(system::INDEX, index_tuple(513, 1, "tree", false, 1))).is_none());
    assert!(prepare(&node, &format(&[])).is_none(), "it demands nothing");
    assert!(prepare(&node, &format(&["unsigned", "unsigned"])).is_none(), "indexes demand that");
    assert!(prepare(&node, &format(&["number", "any"])).is_none(), "indexes demand more");
    assert!(prepare(&node, &format(&["unsigned", "unsigned", "unsigned"])).is_some());
    assert!(prepare(&node, &format(&["string"])).is_none(), "it is at fault");
    let small = Node::new();
    small.write(system::SPACE, |s| s.insert(&space_tuple(SPACE.into(), "s".into()))).unwrap();
    small.write(system::INDEX, |s| s.insert(&index(0, "tree", true, 0).1)).unwrap();
    (0..20).for_each(|id| drop(small.write(SPACE, |s| s.insert(&tuple(id, 1))).unwrap()));
    assert!(prepare(&small, &names).is_none());
    let long = array(&[&number(20), &number(1), &|out: &mut Vec<u8>| {
        write::str(out, &vec![b'x'; 100_000]);
    }]);
    small.write(SPACE, |s| s.insert(&long)).unwrap();
    assert!(prepare(&small, &names).is_some(), "a long tuple takes long as well");
}

/// What another index demanded of tuples when it was begun is not demanded for ever.
#[test]
fn an_index_that_is_dropped_meanwhile_demands_nothing() {
    let node = filled("tree");
    node.write(system::INDEX, |s| s.insert(&index(2, "tree", false, 2).1)).unwrap();
    let definition = index(1, "tree", false, 1);
    let mut preparation = prepare(&node, &definition).expect("it is large");
    assert_eq!(preparation.go_on(50, NOW_MS), Ok(Progress::GoesOn));
    let key = array(&[&number(SPACE.into()), &number(2)]);
    node.write(system::INDEX, |s| s.delete(0, &key)).unwrap();
    let text = |out: &mut Vec<u8>| write::str(out, b"no number");
    node.write(SPACE, |s| s.replace(&array(&[&number(5), &number(1), &text]))).unwrap();
    while preparation.go_on(50, NOW_MS).expect("all fit") == Progress::GoesOn {}
    must_define(&node, &definition, preparation);
    assert_restored(&node, 0);
}

/// Writers who change the space faster than their changes can be followed have to wait, so that it
/// comes to its end, and are let go in the end.
#[test]
fn writers_that_are_too_fast_wait() {
    for definition in [index(1, "tree", false, 1), format(&["unsigned", "unsigned"])] {
        let node = filled("tree");
        let cell = node.keyspace.spaces.catalog().get(SPACE).cloned().expect("the space");
        let mut preparation = prepare(&node, &definition).expect("it is large");
        let (mut waited, mut written, mut slices) = (0, 0, 0);
        while preparation.go_on(128, NOW_MS).expect("all fit") == Progress::GoesOn {
            slices += 1;
            assert!(slices < 20_000, "it has no end");
            if cell.is_kept_still(NOW_MS) {
                waited += 1;
                assert!(!cell.is_kept_still(NOW_MS + 1_000), "not for long");
                continue;
            }
            for _ in 0..1_000 {
                written += 1;
                node.write(SPACE, |s| s.replace(&tuple(written % IDS, written % 100))).unwrap();
            }
        }
        assert!(waited > 100 && written > 10_000, "{waited} {written}");
        must_define(&node, &definition, preparation);
        assert!(!cell.is_kept_still(NOW_MS), "writers go on");
        assert_restored(&node, 0);
    }
}

/// One at a time claims that others wait with definitions of a space.
#[test]
fn a_claim_is_of_one_owner_and_ends() {
    let node = filled("tree");
    let cell = node.keyspace.spaces.catalog().get(SPACE).cloned().expect("the space");
    assert!(cell.claim(7, NOW_MS) && cell.claim(7, NOW_MS + 10));
    assert!(!cell.claim(8, NOW_MS + 10) && cell.is_claimed_beside(8, NOW_MS + 10));
    assert!(!cell.is_claimed_beside(7, NOW_MS + 10));
    cell.end_claim(8);
    assert!(cell.is_claimed_beside(8, NOW_MS + 10), "it is not theirs");
    assert!(cell.claim(8, NOW_MS + 1_000), "who asks no more may be gone");
    cell.end_claim(8);
    assert!(cell.claim(7, NOW_MS + 1_000));
}

/// Definitions that take long come one after the other. Who asks no more holds up nobody, and keeps
/// its place; who leaves leaves it.
#[test]
fn turns_come_in_the_order_of_arrival() {
    let node = filled("tree");
    let cell = node.keyspace.spaces.catalog().get(SPACE).cloned().expect("the space");
    let [first, second, third] = [(); 3].map(|()| cell.queue_definition());
    assert!(first.has_come(NOW_MS) && !second.has_come(NOW_MS) && !third.has_come(NOW_MS));
    assert!(second.has_come(NOW_MS + 1_000), "the first one has been quiet for too long");
    assert!(first.has_come(NOW_MS + 1_001) && !second.has_come(NOW_MS + 1_001));
    drop(first);
    assert!(!third.has_come(NOW_MS + 1_002) && second.has_come(NOW_MS + 1_002));
    drop(second);
    assert!(third.has_come(NOW_MS + 1_003));
    let last = cell.queue_definition();
    drop(cell);
    assert!(!last.has_come(NOW_MS + 1_003));
    drop(third);
    assert!(last.has_come(NOW_MS + 1_003));
}
