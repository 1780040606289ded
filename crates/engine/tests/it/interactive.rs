//! Interactive transactions against an oracle that runs the committed ones one after the other, in
//! the order of their commits: each shows what it showed while it was open. Commits are made in
//! slices, between which others go on.

use crate::spaces::{Node, array, dump, index_tuple, number, restored, space_tuple};
use ladon_engine::{Commit, CommitPace, Interactive};
use ladon_record::{Lsn, Record};
use ladon_space::{BoxError, IteratorType, OwnedStatement, Selected, Space, Statement, Tuple};
use ladon_system_spaces as system;
use ladon_testkit::Random;

/// The spaces. The second one has a unique secondary index, the third one is temporary.
const SPACES: [u32; 3] = [512, 513, 514];
const OPEN: usize = 4;

/// What a transaction did, with what was shown.
enum Shown {
    Statement(u32, OwnedStatement, Result<Option<Vec<u8>>, u32>),
    Selection(u32, Selected, Vec<Vec<u8>>),
    Savepoint(u64),
    WentBack(u64),
}

struct Open {
    transaction: Interactive,
    shown: Vec<Shown>,
    /// Savepoints that it may go back to.
    savepoints: Vec<u64>,
    /// Statements that are repeated at once, when the commit has begun.
    commit_work: Option<usize>,
}

/// Commits in one go.
fn commit(node: &Node, transaction: &mut Interactive) -> Result<Commit, BoxError> {
    let mut scratch = node.scratch.borrow_mut();
    let append = |record: Record<'_>| node.append(&record);
    let pace = CommitPace { work: usize::MAX, now_ms: 1 };
    transaction.commit(&node.keyspace, &mut scratch, pace, append).0
}

fn node() -> Node {
    let node = Node::new();
    for id in SPACES.map(u64::from) {
        node.write(system::SPACE, |s| s.insert(&space_tuple(id, format!("s{id}")))).unwrap();
        node.write(system::INDEX, |s| s.insert(&index_tuple(id, 0, "tree", true, 0))).unwrap();
    }
    node.write(system::INDEX, |s| s.insert(&index_tuple(513, 1, "tree", true, 1))).unwrap();
    node
}

fn statement(random: &mut Random) -> (u32, OwnedStatement) {
    let (a, b, c) = (random.below(12), random.below(12), random.below(1000));
    let tuple = array(&[&number(a), &number(b), &number(c)]);
    let key = array(&[&number(a)]);
    let add = |out: &mut Vec<u8>| {
        use ladon_msgpack::write;
        write::array(out, 3);
        write::str(out, b"+");
        write::uint(out, 2);
        write::uint(out, 1);
    };
    let operations = array(&[&add]);
    let statement = match random.below(6) {
        0 | 1 => Statement::Replace(&tuple),
        2 => Statement::Insert(&tuple),
        3 => Statement::Update { index: 0, key: &key, operations: &operations, index_base: 0 },
        4 => Statement::Upsert { tuple: &tuple, operations: &operations, index_base: 0 },
        _ => Statement::Delete { index: 0, key: &key },
    };
    (random.pick(&SPACES), statement.into())
}

fn selection(random: &mut Random) -> (u32, Selected) {
    let iterator = random.pick(&[IteratorType::Eq, IteratorType::Ge, IteratorType::Lt]);
    let key = array(&[&number(random.below(12))]);
    let limit = 1 + random.below(4);
    let key = key.into();
    let selected = Selected { index: 0, iterator, key, offset: 0, limit, after: None };
    (random.pick(&SPACES), selected)
}

fn bytes(tuple: &Tuple) -> Vec<u8> {
    tuple.bytes().to_vec()
}

fn run(statement: Statement<'_>, space: &mut Space) -> Result<Option<Vec<u8>>, u32> {
    let written = statement.run(space).map_err(|error| error.code.0)?;
    Ok(statement.shown(&written).map(bytes))
}

fn select(selected: &Selected, space: &Space) -> Vec<Vec<u8>> {
    selected.of(space).unwrap().map(bytes).collect()
}

/// One request of an open transaction.
fn step(node: &Node, open: &mut Open, random: &mut Random) {
    if random.chance(1, 8) {
        let savepoint = open.transaction.savepoint().unwrap();
        open.savepoints.push(savepoint);
        open.shown.push(Shown::Savepoint(savepoint));
        return;
    }
    if random.chance(1, 6) && !open.savepoints.is_empty() {
        let at = random.below(open.savepoints.len() as u64) as usize;
        let savepoint = open.savepoints[at];
        for gone in open.savepoints.drain(at + 1..) {
            assert!(open.transaction.go_back(savepoint).unwrap());
            assert!(!open.transaction.go_back(gone).unwrap(), "it came later");
        }
        assert!(open.transaction.go_back(savepoint).unwrap());
        open.shown.push(Shown::WentBack(savepoint));
        return;
    }
    if random.chance(1, 3) {
        let (id, selected) = selection(random);
        let (space, _) = open.transaction.space(&node.keyspace, id).unwrap();
        let tuples = select(&selected, space);
        open.transaction.note_selected(id, selected.clone()).unwrap();
        open.shown.push(Shown::Selection(id, selected, tuples));
        return;
    }
    let (id, kept) = statement(random);
    let done = open.transaction.write(&node.keyspace, id, kept.get());
    let shown = match done {
        Ok(written) => Ok(kept.get().shown(&written).map(bytes)),
        Err(error) => Err(error.code.0),
    };
    open.shown.push(Shown::Statement(id, kept, shown));
}

/// Runs what was committed on the oracle's spaces.
fn repeat(oracle: &mut [Space], shown: &[Shown], seed: u64) {
    let of = |id: u32| SPACES.iter().position(|space| *space == id).unwrap();
    let mut kept: Vec<(u64, Vec<Space>)> = Vec::new();
    for shown in shown {
        match shown {
            Shown::Savepoint(number) => kept.push((*number, oracle.to_vec())),
            Shown::WentBack(number) => {
                let (_, spaces) = kept.iter().find(|(of, _)| of == number).unwrap();
                oracle.clone_from_slice(spaces);
            }
            Shown::Statement(id, kept, before) => {
                assert_eq!(run(kept.get(), &mut oracle[of(*id)]), *before, "seed {seed}: {kept:?}");
            }
            Shown::Selection(id, selected, before) => {
                assert_eq!(select(selected, &oracle[of(*id)]), *before, "seed {seed}");
            }
        }
    }
}

/// Its moment is that of its copy, not the commit.
fn only_reads_one(shown: &[Shown]) -> bool {
    let (mut written, mut of, mut kept) = (0, Vec::new(), Vec::new());
    for one in shown {
        match one {
            Shown::Savepoint(number) => kept.push((*number, written)),
            Shown::WentBack(number) => {
                written = kept.iter().find(|(of, _)| of == number).unwrap().1;
            }
            Shown::Statement(id, _, done) => {
                of.push(*id);
                written += u32::from(done.is_ok());
            }
            Shown::Selection(id, ..) => of.push(*id),
        }
    }
    written == 0 && of.iter().all(|id| *id == of[0])
}

fn contents(space: &Space) -> Vec<Vec<Vec<u8>>> {
    space.indexes().map(|index| index.tuples().map(bytes).collect()).collect()
}

/// What came of the commits.
#[derive(Debug, Default)]
struct Seen {
    committed: u32,
    conflicts: u32,
    adopted: u32,
    /// Slices after which a commit was not over.
    unfinished: u32,
    /// Commits that wait for another one.
    waits: u32,
}

/// Goes on with a commit. Returns whether it is over.
fn go_on(node: &Node, open: &mut Open, now_ms: u64, seen: &mut Seen) -> Option<bool> {
    let mut scratch = node.scratch.borrow_mut();
    let pace = CommitPace { work: open.commit_work.unwrap_or(1), now_ms };
    let append = |record: Record<'_>| node.append(&record);
    match open.transaction.commit(&node.keyspace, &mut scratch, pace, append).0 {
        Ok(Commit::Done) => {
            seen.committed += 1;
            return Some(true);
        }
        Ok(Commit::GoesOn) => seen.unfinished += 1,
        Ok(Commit::Waits) => seen.waits += 1,
        Err(error) => {
            assert_eq!(error.message, "Transaction has been aborted by conflict");
            seen.conflicts += 1;
            return Some(false);
        }
    }
    None
}

#[test]
fn what_is_committed_has_an_order() {
    let mut seen = Seen::default();
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let node = node();
        let copy = |id| {
            let catalog = node.keyspace.spaces.catalog();
            let mut scratch = node.scratch.borrow_mut();
            let mut tx = node.keyspace.begin_on_spaces(&catalog, &[id], &mut scratch).unwrap();
            tx.space(id).clone()
        };
        let mut oracle = SPACES.map(copy);
        let mut open: Vec<Open> = Vec::new();
        let mut now_ms = 1;
        for _ in 0..160 {
            now_ms += random.below(20);
            if open.len() < OPEN && random.chance(1, 3) {
                let transaction = Interactive::new(&node.keyspace.spaces);
                open.push(Open {
                    transaction,
                    shown: vec![],
                    savepoints: vec![],
                    commit_work: None,
                });
            }
            if open.is_empty() {
                continue;
            }
            let at = random.below(open.len() as u64) as usize;
            if open[at].commit_work.is_none() {
                if random.chance(3, 4) {
                    step(&node, &mut open[at], random);
                    continue;
                }
                if random.chance(1, 6) {
                    open.swap_remove(at).transaction.roll_back(&mut node.scratch.borrow_mut());
                    continue;
                }
                open[at].commit_work = Some(1 + random.below(6) as usize);
            }
            let Some(is_committed) = go_on(&node, &mut open[at], now_ms, &mut seen) else {
                continue;
            };
            let Open { shown, .. } = open.swap_remove(at);
            seen.adopted += u32::from(is_committed && open.is_empty());
            if is_committed && !only_reads_one(&shown) {
                repeat(&mut oracle, &shown, seed);
            }
        }
        drop(open);
        for (id, oracle) in SPACES.iter().zip(&oracle) {
            assert_eq!(contents(&copy(*id)), contents(oracle), "seed {seed}");
        }
        assert_eq!(node.keyspace.spaces.bytes(), crate::spaces::recounted(&node.keyspace));
        let found = dump(&restored(&node, &[], Lsn::ZERO));
        assert_eq!(found, dump(&node.keyspace), "seed {seed}");
    }
    let Seen { committed, conflicts, adopted, unfinished, waits } = seen;
    assert!(committed > 1_000 && conflicts > 200 && adopted > 100, "{seen:?}");
    assert!(unfinished > 500 && waits > 20, "{seen:?}");
}

/// Transactions that show nothing of one another do not conflict.
#[test]
fn blind_writes_do_not_conflict() {
    let node = node();
    let put = |id: u64, value: u64| array(&[&number(id), &number(id), &number(value)]);
    let mut both: Vec<Interactive> =
        (0..2).map(|_| Interactive::new(&node.keyspace.spaces)).collect();
    for (at, transaction) in both.iter_mut().enumerate() {
        for id in 0..5 {
            let tuple = put(id, at as u64);
            transaction.write(&node.keyspace, 512, Statement::Replace(&tuple)).unwrap();
        }
    }
    for mut transaction in both {
        commit(&node, &mut transaction).expect("commits");
    }
    assert_eq!(dump(&node.keyspace)[&(512, 0)], (0..5).map(|id| put(id, 1)).collect::<Vec<_>>());
}

/// A program's functions are called for every change from a moment on, or it is refused: also that of
/// a transaction that began before.
#[test]
fn no_change_passes_triggers() {
    let node = node();
    let tuple = |id: u64| array(&[&number(id), &number(id), &number(id)]);
    let insert = |transaction: &mut Interactive, id: u64| {
        transaction.write(&node.keyspace, 512, Statement::Insert(&tuple(id)))
    };
    let mut transactions: Vec<Interactive> =
        (0..3).map(|_| Interactive::new(&node.keyspace.spaces)).collect();
    insert(&mut transactions[0], 1).unwrap();
    transactions[1].call_triggers(true);
    insert(&mut transactions[1], 2).unwrap();
    let catalog = node.keyspace.spaces.catalog();
    catalog.get(512).unwrap().set_triggers(true);
    let unsupported = |refused: BoxError| assert_eq!(refused.code.0, 5, "{refused:?}");
    unsupported(insert(&mut transactions[2], 3).unwrap_err());
    unsupported(node.write(512, |space| space.insert(&tuple(4))).unwrap_err());
    assert!(commit(&node, &mut transactions[0]).is_err(), "nothing was called for it");
    commit(&node, &mut transactions[1]).expect("who wrote it has called what is to be called");
    assert_eq!(dump(&node.keyspace)[&(512, 0)], [tuple(2)]);
    catalog.get(512).unwrap().set_triggers(false);
    node.write(512, |space| space.insert(&tuple(4))).unwrap();
}

/// Who is told of a conflict knows that something has changed: the reply depends on that.
#[test]
fn a_conflict_depends_on_what_changed() {
    let node = node();
    let tuple = |value: u64| array(&[&number(1), &number(1), &number(value)]);
    let mut transaction = Interactive::new(&node.keyspace.spaces);
    transaction.write(&node.keyspace, 512, Statement::Insert(&tuple(1))).unwrap();
    node.write(512, |space| space.insert(&tuple(2))).unwrap();
    let changed = node.reserved();
    let mut scratch = node.scratch.borrow_mut();
    let append = |_: ladon_record::Record<'_>| unreachable!("it has changed nothing");
    let pace = CommitPace::of_turn(1);
    let (done, lsn) = transaction.commit(&node.keyspace, &mut scratch, pace, append);
    assert_eq!((done.unwrap_err().code.0, lsn), (97, changed));
}

/// A definition that changes conflicts with every open transaction.
#[test]
fn a_changed_definition_conflicts() {
    let node = node();
    let mut transaction = Interactive::new(&node.keyspace.spaces);
    let tuple = array(&[&number(1), &number(1), &number(1)]);
    transaction.write(&node.keyspace, 512, Statement::Replace(&tuple)).unwrap();
    node.write(system::INDEX, |s| s.insert(&index_tuple(513, 2, "tree", false, 2))).unwrap();
    let before = dump(&node.keyspace);
    let error = commit(&node, &mut transaction).unwrap_err();
    assert_eq!((error.code.0, dump(&node.keyspace)), (97, before));
}

/// What a transaction holds is bounded, counted, and given back.
#[test]
fn a_transaction_is_bounded() {
    let node = node();
    let before = node.keyspace.spaces.bytes();
    let mut transaction = Interactive::new(&node.keyspace.spaces);
    let long = |out: &mut Vec<u8>| ladon_msgpack::write::str(out, &vec![b'x'; 500_000]);
    let error = (0..200).find_map(|id| {
        let tuple = array(&[&number(id), &number(id), &number(id), &long]);
        transaction.write(&node.keyspace, 512, Statement::Replace(&tuple)).err()
    });
    assert_eq!(error.expect("it ends").code.0, 2);
    assert!(node.keyspace.spaces.transaction_bytes() > 60 << 20);
    assert!(commit(&node, &mut transaction).is_err());
    drop(transaction);
    let spaces = &node.keyspace.spaces;
    assert_eq!((spaces.bytes(), spaces.transaction_bytes()), (before, 0));
}

/// A tuple of the test below.
fn row(id: u64, value: u64) -> Vec<u8> {
    array(&[&number(id), &number(id), &number(value)])
}

/// A transaction that has replaced so many tuples, and another that has changed its space since.
fn overtaken(node: &Node, tuples: u64) -> Interactive {
    let mut transaction = Interactive::new(&node.keyspace.spaces);
    for id in 0..tuples {
        transaction.write(&node.keyspace, 512, Statement::Replace(&row(id, 1))).unwrap();
    }
    node.write(512, |space| space.replace(&row(tuples, 0))).unwrap();
    transaction
}

/// However many steps are repeated, a slice repeats few: other clients' requests run in between,
/// and the space is not locked.
#[test]
fn a_long_repetition_is_made_in_slices() {
    const TUPLES: u64 = 20_000;
    let node = node();
    let mut transaction = overtaken(&node, TUPLES);
    let before = dump(&node.keyspace);
    let mut slices = 0;
    loop {
        let mut scratch = node.scratch.borrow_mut();
        let pace = CommitPace::of_turn(1);
        let append = |record: Record<'_>| node.append(&record);
        match transaction.commit(&node.keyspace, &mut scratch, pace, append).0.expect("commits") {
            Commit::Done => break,
            done => assert_eq!(done, Commit::GoesOn),
        }
        drop(scratch);
        slices += 1;
        if slices % 100 == 0 {
            assert_eq!(dump(&node.keyspace), before, "nobody sees a part");
        }
    }
    assert!(slices >= TUPLES / 100, "{slices} slices for {TUPLES} statements");
    let found = dump(&node.keyspace);
    let expected: Vec<_> = (0..TUPLES).map(|id| row(id, 1)).chain([row(TUPLES, 0)]).collect();
    assert!(found[&(512, 0)] == expected);
    assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), found);
}

/// A space that is changed again and again does not keep a long transaction from its commit, as
/// long as its writers wait when they are asked to.
#[test]
fn a_commit_that_is_overtaken_asks_writers_to_wait() {
    const TUPLES: u64 = 400;
    let node = node();
    let mut transaction = overtaken(&node, TUPLES);
    let (mut written, mut waited) = (0, 0);
    for now_ms in 1.. {
        let mut scratch = node.scratch.borrow_mut();
        let pace = CommitPace::of_turn(now_ms);
        let append = |record: Record<'_>| node.append(&record);
        let done = transaction.commit(&node.keyspace, &mut scratch, pace, append).0;
        drop(scratch);
        let catalog = node.keyspace.spaces.catalog();
        let cell = catalog.get(512).expect("the space");
        if matches!(done, Ok(Commit::Done)) {
            assert!(!cell.is_kept_still(now_ms), "writers go on");
            break;
        }
        assert_eq!(done, Ok(Commit::GoesOn));
        if cell.is_kept_still(now_ms) {
            assert!(!cell.is_kept_still(now_ms + 1_000), "not for long");
            waited += 1;
        } else {
            written += 1;
            node.write(512, |space| space.replace(&row(TUPLES + written, 0))).unwrap();
        }
    }
    assert!(written > 2 && waited > 2, "{written} {waited}");
    assert_eq!(dump(&node.keyspace)[&(512, 0)].len() as u64, TUPLES + 1 + written);
}

/// Writers that do not wait make it a conflict in the end, and not a repetition without end.
#[test]
fn a_commit_that_is_overtaken_for_ever_is_refused() {
    let node = node();
    let mut transaction = overtaken(&node, 400);
    for round in 1..10_000 {
        let mut scratch = node.scratch.borrow_mut();
        let append = |record: Record<'_>| node.append(&record);
        let pace = CommitPace::of_turn(1);
        let done = transaction.commit(&node.keyspace, &mut scratch, pace, append).0;
        drop(scratch);
        if let Err(error) = done {
            return assert_eq!(error.code.0, 97);
        }
        assert_eq!(done, Ok(Commit::GoesOn));
        node.write(512, |space| space.replace(&row(1_000 + round, 0))).unwrap();
    }
    panic!("it never ends");
}

/// The changes of a transaction are one record, also where the log takes over their memory.
#[test]
fn a_long_transaction_is_one_record() {
    let node = node();
    let mut transaction = Interactive::new(&node.keyspace.spaces);
    let long = |out: &mut Vec<u8>| ladon_msgpack::write::str(out, &vec![b'x'; 100_000]);
    for id in 0..10 {
        let tuple = array(&[&number(id), &number(id), &number(id), &long]);
        for space in [512, 513] {
            transaction.write(&node.keyspace, space, Statement::Replace(&tuple)).unwrap();
        }
    }
    let before = node.records();
    commit(&node, &mut transaction).expect("commits");
    assert_eq!(node.records(), before + 1);
    let found = dump(&node.keyspace);
    assert_eq!((found[&(512, 0)].len(), found[&(513, 1)].len()), (10, 10));
    assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), found);
}

/// A selection that looks at many tuples is not repeated, whether it finds them or not.
#[test]
fn a_long_search_that_finds_nothing_is_not_repeated() {
    const TUPLES: u64 = 100_000;
    for (key, is_repeated) in [(1, false), (TUPLES, true)] {
        let node = node();
        let bits = index_tuple(512, 1, "bitset", false, 0);
        node.write(system::INDEX, |indexes| indexes.insert(&bits)).unwrap();
        for id in 0..TUPLES {
            node.write(512, |space| space.replace(&row(2 * id, 0))).unwrap();
        }
        let mut transaction = Interactive::new(&node.keyspace.spaces);
        let iterator = if is_repeated { IteratorType::Eq } else { IteratorType::BitsAllSet };
        let key = array(&[&number(key)]).into();
        let selected = Selected { index: 1, iterator, key, offset: 0, limit: 10, after: None };
        let (space, _) = transaction.space(&node.keyspace, 512).unwrap();
        assert_eq!(select(&selected, space).len(), usize::from(is_repeated));
        transaction.note_selected(512, selected).unwrap();
        transaction.write(&node.keyspace, 512, Statement::Replace(&row(1, 1))).unwrap();
        node.write(512, |space| space.replace(&row(2, 2))).unwrap();
        let mut scratch = node.scratch.borrow_mut();
        let append = |record: Record<'_>| node.append(&record);
        let pace = CommitPace::of_turn(1);
        let done = transaction.commit(&node.keyspace, &mut scratch, pace, append).0;
        assert_eq!(done.is_ok(), is_repeated, "{done:?}");
    }
}
