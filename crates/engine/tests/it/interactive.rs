//! Interactive transactions against an oracle that runs the committed ones one after the other, in
//! the order of their commits: each shows what it showed while it was open.

use crate::spaces::{Node, array, dump, index_tuple, number, restored, space_tuple};
use ladon_engine::Interactive;
use ladon_model::Lsn;
use ladon_space::{IteratorType, OwnedStatement, Selected, Space, Statement, Tuple};
use ladon_system_spaces as system;
use ladon_testkit::Random;

/// The spaces. The second one has a unique secondary index, the third one is temporary.
const SPACES: [u32; 3] = [512, 513, 514];
const OPEN: usize = 4;

/// What a transaction did, with what was shown.
enum Shown {
    Statement(u32, OwnedStatement, Result<Option<Vec<u8>>, u32>),
    Selection(u32, Selected, Vec<Vec<u8>>),
}

struct Open {
    transaction: Interactive,
    shown: Vec<Shown>,
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
    for shown in shown {
        match shown {
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
    let of = |shown: &Shown| match shown {
        Shown::Statement(id, _, Err(_)) | Shown::Selection(id, ..) => Some(*id),
        Shown::Statement(_, _, Ok(_)) => None,
    };
    shown.iter().all(|one| of(one).is_some() && of(one) == of(&shown[0]))
}

fn contents(space: &Space) -> Vec<Vec<Vec<u8>>> {
    space.indexes().map(|index| index.tuples().map(bytes).collect()).collect()
}

#[test]
fn what_is_committed_has_an_order() {
    let (mut committed, mut conflicts, mut adopted) = (0, 0, 0);
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
        for _ in 0..120 {
            if open.len() < OPEN && random.chance(1, 3) {
                let transaction = Interactive::new(&node.keyspace.spaces);
                open.push(Open { transaction, shown: Vec::new() });
            }
            if open.is_empty() {
                continue;
            }
            let at = random.below(open.len() as u64) as usize;
            if random.chance(3, 4) {
                step(&node, &mut open[at], random);
                continue;
            }
            let Open { transaction, shown } = open.swap_remove(at);
            let mut scratch = node.scratch.borrow_mut();
            if random.chance(1, 6) {
                transaction.roll_back(&mut scratch);
                continue;
            }
            let append = |record: ladon_model::Record<'_>| node.append(&record);
            match transaction.commit(&node.keyspace, &mut scratch, append).0 {
                Ok(()) => {
                    committed += 1;
                    adopted += usize::from(open.is_empty());
                    if !only_reads_one(&shown) {
                        repeat(&mut oracle, &shown, seed);
                    }
                }
                Err(error) => {
                    assert_eq!(error.message, "Transaction has been aborted by conflict");
                    conflicts += 1;
                }
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
    assert!(
        committed > 1_000 && conflicts > 200 && adopted > 100,
        "{committed} {conflicts} {adopted}"
    );
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
    for transaction in both {
        let mut scratch = node.scratch.borrow_mut();
        let append = |record: ladon_model::Record<'_>| node.append(&record);
        transaction.commit(&node.keyspace, &mut scratch, append).0.expect("commits");
    }
    assert_eq!(dump(&node.keyspace)[&(512, 0)], (0..5).map(|id| put(id, 1)).collect::<Vec<_>>());
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
    let append = |_: ladon_model::Record<'_>| unreachable!("it has changed nothing");
    let (done, lsn) = transaction.commit(&node.keyspace, &mut scratch, append);
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
    let mut scratch = node.scratch.borrow_mut();
    let append = |_: ladon_model::Record<'_>| unreachable!("it has changed nothing");
    let error = transaction.commit(&node.keyspace, &mut scratch, append).0.unwrap_err();
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
    assert!(node.keyspace.spaces.bytes() > before + (60 << 20));
    let mut scratch = node.scratch.borrow_mut();
    let append = |_: ladon_model::Record<'_>| unreachable!("it has changed nothing");
    assert!(transaction.commit(&node.keyspace, &mut scratch, append).0.is_err());
    assert_eq!(node.keyspace.spaces.bytes(), before);
}
