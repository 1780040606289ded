//! Random changes of every kind, taken back at every point: all that a transaction can change is
//! then as it was. And an undoable transaction that is committed does what a plain one does.

pub(crate) mod changes;

use crate::access::{Tracking, next_random};
use crate::object::Object;
use crate::table::entry::{EntryRef, ValueRef};
use crate::tx::{Scratch, Tx};
use crate::types::{self};
use crate::wait::Waiter;
use crate::watch::WatchFlag;
use crate::{Keyspace, KeyspaceOptions, Locks, PARTITIONS, partition_of};
use changes::run;
use ladon_record::{DbId, LibraryBody, Lsn, ValueKind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const DATABASES: u16 = 2;
/// Few, so that one change often follows another of the same key.
const KEYS: u8 = 4;
/// The data is made at this time,
const MADE_MS: u64 = 100_000;
/// and changed later, when some of it has expired.
const NOW_MS: u64 = 400_000;

/// What is done, to which keys, and two numbers that say how.
pub(crate) type Op = (u8, u8, u8, u16, u16);

fn op() -> impl Strategy<Value = Op> {
    (0u8..35, 0..KEYS, 0..KEYS, any::<u16>(), any::<u16>())
}

pub(crate) fn keyspace(frequency: bool) -> Keyspace {
    let keyspace = Keyspace::new(KeyspaceOptions { hash_seed: 11, databases: DATABASES });
    let limits = keyspace.limits();
    limits.set_intset_entries.store(4, Relaxed);
    limits.set_listpack_entries.store(6, Relaxed);
    limits.hash_listpack_entries.store(6, Relaxed);
    limits.zset_listpack_entries.store(6, Relaxed);
    limits.list_size.store(8, Relaxed);
    let tracking = if frequency { Tracking::Frequency } else { Tracking::Recency };
    keyspace.access_rules().set(tracking, 2, 1);
    keyspace
}

pub(crate) fn name(key: u8) -> Vec<u8> {
    format!("key{key}").into_bytes()
}

/// A member, field or element: an integer, a short or a long text.
fn word(n: u64) -> Vec<u8> {
    match n % 4 {
        0 | 1 => (n % 61).to_string().into_bytes(),
        2 => format!("member{}", n % 61).into_bytes(),
        _ => format!("{:080}", n % 7).into_bytes(),
    }
}

fn words(seed: u16, count: usize) -> Vec<Vec<u8>> {
    let mut state = u64::from(seed);
    (0..count).map(|_| word(next_random(&mut state))).collect()
}

/// Who looks at the data from outside.
struct Observers {
    flags: Vec<Arc<WatchFlag>>,
}

/// Watches and awaits every key.
fn observe(keyspace: &Keyspace, now_ms: u64) -> Observers {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, now_ms);
    let mut flags = Vec::new();
    for db in 0..DATABASES {
        for key in 0..KEYS {
            let name = name(key);
            let flag = Arc::new(WatchFlag::default());
            tx.watch(db, tx.key(&name), &flag);
            flags.push(flag);
            for wants in [ValueKind::List, ValueKind::SortedSet] {
                let waiter = Waiter {
                    wants,
                    hears_loss: false,
                    claim: Arc::default(),
                    request: Box::new(()),
                };
                tx.wait(db, tx.key(&name), &Arc::new(waiter));
            }
        }
    }
    tx.commit(|_| unreachable!("watching changes nothing"));
    Observers { flags }
}

/// A key's value.
#[derive(Debug, PartialEq)]
struct Seen {
    encoding: &'static str,
    elements: Vec<Vec<u8>>,
    expire_at: u64,
    access: u32,
    next_expiry: u64,
}

/// What a database keeps in a partition beside its keys.
#[derive(Debug, PartialEq)]
struct Part {
    db: DbId,
    partition: usize,
    expiries: [Vec<(u64, u64)>; 2],
    watched: Vec<(Vec<u8>, bool)>,
    awaited: usize,
}

/// All that a transaction can change and that somebody could notice.
#[derive(Debug, PartialEq)]
struct Picture {
    keys: BTreeMap<(DbId, Vec<u8>), Seen>,
    parts: Vec<Part>,
    select: Vec<DbId>,
    libraries: Vec<(Box<[u8]>, LibraryBody)>,
    library_bytes: u64,
    touched: Vec<bool>,
    changed: Vec<Lsn>,
}

fn picture(keyspace: &Keyspace, observers: &Observers) -> Picture {
    let (mut keys, mut parts) = (BTreeMap::new(), Vec::new());
    let mut changed = Vec::new();
    for partition in 0..PARTITIONS {
        let held = keyspace.try_lock(partition).expect("nobody else is here");
        changed.push(held.dependency_of_all());
        for (db, database) in (0..).zip(&held.dbs) {
            let expiries = [database.expires.entries(), database.element_expires.entries()];
            let (watched, awaited) = (database.watched.states(), database.awaited.len());
            parts.push(Part { db, partition, expiries, watched, awaited });
            database.table.for_each(|entry| {
                let seen = Seen {
                    encoding: types::encoding_of(entry.value()),
                    elements: elements(keyspace, entry),
                    expire_at: entry.expire_at(),
                    access: entry.access(),
                    next_expiry: entry.object().map_or(0, Object::next_expiry),
                };
                keys.insert((db, entry.key().to_vec()), seen);
            });
        }
    }
    let select = (0..DATABASES).map(|number| keyspace.select(number)).collect();
    let touched = observers.flags.iter().map(|flag| flag.is_touched()).collect();
    let found = keyspace.libraries.all();
    assert!(found.iter().all(|library| !library.is_gone()));
    let counted: usize = found.iter().map(|library| library.bytes()).sum();
    let library_bytes = keyspace.library_bytes();
    assert_eq!(counted as u64, library_bytes);
    let libraries = found.iter().map(|found| (found.name.clone(), found.body.clone())).collect();
    Picture { keys, parts, select, libraries, library_bytes, touched, changed }
}

/// A value's elements; in their order, if that is part of the value.
pub(crate) fn elements(keyspace: &Keyspace, entry: EntryRef<'_>) -> Vec<Vec<u8>> {
    let ValueRef::Object(object) = entry.value() else {
        return vec![types::string::bytes(entry.value()).expect("a string").into_owned()];
    };
    if let Object::SortedSet(set) = object {
        // Its two parts agree.
        let mut count = 0;
        set.for_each(0..set.len(), |member, score| {
            assert_eq!(set.score(keyspace.hasher(), member), Some(score));
            count += 1;
        });
        assert_eq!(count, set.len());
    }
    let mut elements: Vec<Vec<u8>> = Vec::new();
    object.for_each(|parts| elements.push(parts.join(&0)));
    let is_packed_hash = matches!(object, Object::Hash(hash) if hash.encoding() != "hashtable");
    if !object.is_ordered() && !is_packed_hash {
        elements.sort();
    }
    elements
}

fn check_accounts(keyspace: &Keyspace, used: i64) {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
    let counted: u64 = (0..DATABASES).map(|db| tx.recount(db)).sum();
    assert_eq!(counted as i64, used, "memory is accounted for");
    #[cfg(debug_assertions)]
    tx.check_all();
}

/// The thread's buffers that are no part of the data.
fn buffers(scratch: &Scratch) -> (u64, u64, u64, u64, u64, usize, u64) {
    let it = scratch.counters;
    let (expired, elements) = (it.expired, it.expired_elements);
    (it.hits, it.misses, expired, elements, it.evicted, scratch.ready.len(), scratch.random)
}

struct Made {
    keyspace: Keyspace,
    scratch: Scratch,
    observers: Observers,
}

fn make(setup: &[Op], frequency: bool) -> Made {
    let keyspace = keyspace(frequency);
    let mut scratch = Scratch::default();
    for (lsn, &op) in (1..).zip(setup) {
        let mut tx = keyspace.begin(Locks::All, &mut scratch, MADE_MS);
        run(&mut tx, op);
        tx.commit(|_| Lsn(lsn));
    }
    // Some are watched while they have expired.
    let observers = observe(&keyspace, NOW_MS);
    Made { keyspace, scratch, observers }
}

/// Changes that may log a whole value: keys are renamed or copied, a value is stored.
const WRITE_WHOLE: [u8; 4] = [22, 23, 24, 31];

/// Pops all members of a set. Which of them a few random ones are depends on where they lie in the
/// table, and members that were put back may lie elsewhere.
fn of_no_chance(op: Op) -> Op {
    let (what, key, other, a, b) = op;
    if what == 11 { (what, key, other, a, b | 3) } else { op }
}

fn cases() -> ProptestConfig {
    ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_taken_back_was_never_there(
        setup in prop::collection::vec(op(), 0..40),
        ops in prop::collection::vec(op(), 1..12),
        frequency: bool,
        no_touch: bool,
        frozen in 0..KEYS,
    ) {
        let Made { keyspace, mut scratch, observers } = make(&setup, frequency);
        scratch.no_touch = no_touch;
        let before = picture(&keyspace, &observers);
        let buffers_before = buffers(&scratch);
        for count in 0..=ops.len() {
            let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
            tx.make_undoable();
            // A long reply is being made meanwhile.
            let name = name(frozen);
            let key = tx.key(&name);
            let held = tx.freeze_object(0, key);
            ops[..count].iter().for_each(|&op| run(&mut tx, op));
            tx.abort();
            prop_assert_eq!(tx.change_count(), 0);
            drop(tx);
            drop(held);
            prop_assert_eq!(&picture(&keyspace, &observers), &before, "{} of {:?}", count, ops);
            prop_assert_eq!(buffers(&scratch), buffers_before);
            check_accounts(&keyspace, scratch.counters.bytes_delta);
        }
    }

    #[test]
    fn what_is_not_taken_back_is_as_in_a_plain_transaction(
        setup in prop::collection::vec(op(), 0..40),
        ops in prop::collection::vec(op(), 1..12),
        aborted in prop::collection::vec(op(), 0..6),
        frequency: bool,
    ) {
        let outcome = |undoable: bool| {
            let Made { keyspace, mut scratch, observers } = make(&setup, frequency);
            if undoable {
                let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
                tx.make_undoable();
                aborted.iter().for_each(|&op| run(&mut tx, op));
                tx.abort();
            }
            let mut record = Vec::new();
            let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
            if undoable {
                tx.make_undoable();
            }
            ops.iter().for_each(|&op| run(&mut tx, of_no_chance(op)));
            let (_, wrote) = tx.commit(|changes| {
                record = changes.changes().into_owned();
                Lsn(1000)
            });
            check_accounts(&keyspace, scratch.counters.bytes_delta);
            if ops.iter().any(|&(what, ..)| WRITE_WHOLE.contains(&what)) {
                // In the order of its table, in which members that were put back may lie elsewhere.
                record.sort_unstable();
            }
            (record, wrote, picture(&keyspace, &observers), buffers(&scratch))
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    /// While the log takes no records, expired elements are hidden, and none of them is lost when
    /// what has removed them later is taken back.
    #[test]
    fn what_is_hidden_is_there_after_all(
        setup in prop::collection::vec(op(), 0..40),
        reads in prop::collection::vec((0..KEYS, 0..DATABASES), 1..8),
        ops in prop::collection::vec(op(), 1..8),
    ) {
        let Made { keyspace, mut scratch, observers } = make(&setup, false);
        for round in 0..3 {
            let read = |tx: &mut Tx<'_>| {
                for &(key, db) in &reads {
                    let name = name(key);
                    tx.read(db, tx.key(&name));
                }
            };
            let before = data_of(picture(&keyspace, &observers));
            let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
            tx.scratch.read_only = round < 2;
            tx.make_undoable();
            read(&mut tx);
            if round == 2 {
                ops.iter().for_each(|&op| run(&mut tx, op));
            }
            tx.abort();
            drop(tx);
            prop_assert_eq!(&data_of(picture(&keyspace, &observers)), &before);
            check_accounts(&keyspace, scratch.counters.bytes_delta);
            // So that something is hidden in the next round.
            let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
            tx.scratch.read_only = true;
            read(&mut tx);
            tx.commit(|_| unreachable!("nothing can be logged"));
        }
    }
}

/// What does not depend on what is hidden, nor on when keys were used.
fn data_of(mut picture: Picture) -> Picture {
    for seen in picture.keys.values_mut() {
        (seen.access, seen.next_expiry) = (0, 0);
        if seen.encoding.starts_with("listpack") {
            seen.elements.sort();
        }
    }
    picture.parts.iter_mut().for_each(|part| part.expiries[1].clear());
    picture
}

/// As `what_is_taken_back_was_never_there`, of one case.
fn check_taken_back(setup: impl Fn(&mut Tx<'_>), changes: impl Fn(&mut Tx<'_>)) {
    let Made { keyspace, mut scratch, .. } = make(&[], false);
    let mut tx = keyspace.begin(Locks::All, &mut scratch, MADE_MS);
    setup(&mut tx);
    tx.commit(|_| Lsn(1));
    let observers = observe(&keyspace, NOW_MS);
    let before = picture(&keyspace, &observers);
    let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
    tx.make_undoable();
    changes(&mut tx);
    tx.abort();
    drop(tx);
    assert_eq!(picture(&keyspace, &observers), before);
    check_accounts(&keyspace, scratch.counters.bytes_delta);
}

fn add_members(tx: &mut Tx<'_>, key: &[u8], members: std::ops::Range<u32>) {
    let members: Vec<Vec<u8>> = members.map(|n| format!("member{n}").into_bytes()).collect();
    let added = tx.set_add(0, tx.key(key), members.iter().map(Vec::as_slice));
    added.expect("a set");
}

#[test]
fn a_value_that_moved_is_not_confused_with_the_next_one_under_its_key() {
    for kept in [true, false] {
        check_taken_back(
            |tx| add_members(tx, b"a", 0..100),
            |tx| {
                add_members(tx, b"a", 90..110);
                assert!(tx.rename(0, tx.key(b"a"), 0, tx.key(b"b")));
                add_members(tx, b"b", 200..210);
                add_members(tx, b"a", 300..400);
                if !kept {
                    tx.delete(0, tx.key(b"a"));
                    tx.delete(0, tx.key(b"b"));
                }
            },
        );
    }
}

#[test]
fn writes_that_overlap_are_taken_back_from_the_last_on() {
    for length in [20_000, 200_000] {
        check_taken_back(
            |tx| tx.put_string(0, tx.key(b"long"), &vec![b'.'; length], 0),
            |tx| {
                for (at, bytes) in [(10, b"aaaa"), (12, b"bbbb"), (length - 2, b"cccc")] {
                    tx.write_string_at(0, tx.key(b"long"), at, bytes).expect("a string");
                }
            },
        );
    }
}

/// 4 MiB and more share their memory with the log's record.
#[test]
fn a_string_that_its_record_shares_is_taken_back() {
    let (long, longer) = (vec![b'l'; 4 << 20], vec![b'm'; 5 << 20]);
    check_taken_back(
        |tx| tx.put_string(0, tx.key(b"long"), &long, 0),
        |tx| {
            tx.put_string(0, tx.key(b"new"), &longer, 0);
            tx.put_string(0, tx.key(b"long"), &longer, 0);
            tx.write_string_at(0, tx.key(b"long"), 7, b"seven").expect("a string");
        },
    );
}

#[test]
fn what_was_flushed_expires_in_time_after_all() {
    check_taken_back(
        |tx| tx.put_string(0, tx.key(b"due"), b"", MADE_MS + 1),
        |tx| {
            tx.flush(0);
            let partition = partition_of(tx.key(b"due").hash);
            assert_eq!(tx.expire_due(partition, 10), 0);
        },
    );
}
