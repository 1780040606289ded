//! Random changes of every kind, taken back at every point: all that a transaction can change is
//! then as it was. And an undoable transaction that is committed does what a plain one does.

use crate::access::{Tracking, next_random};
use crate::libraries::Library;
use crate::object::Object;
use crate::partition::Unlogged;
use crate::table::entry::{EntryRef, ValueRef};
use crate::tx::{Candidate, Key, Scratch, Stored, Tx};
use crate::types::list::{End, ListValue};
use crate::types::set::SetValue;
use crate::types::sorted_set::SortedSet;
use crate::types::{self};
use crate::wait::Waiter;
use crate::watch::WatchFlag;
use crate::{Keyspace, KeyspaceOptions, Locks, PARTITIONS, partition_of};
use ladon_record::{DbId, FunctionFacts, LibraryBody, Lsn, ValueKind};
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
type Op = (u8, u8, u8, u16, u16);

fn op() -> impl Strategy<Value = Op> {
    (0u8..35, 0..KEYS, 0..KEYS, any::<u16>(), any::<u16>())
}

fn keyspace(frequency: bool) -> Keyspace {
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

fn name(key: u8) -> Vec<u8> {
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

/// What to do, spelt out.
struct Doing<'a> {
    what: u8,
    db: DbId,
    key: Key<'a>,
    other_db: DbId,
    other: Key<'a>,
    a: u16,
    b: u16,
    at: u64,
    words: &'a [Vec<u8>],
}

impl Doing<'_> {
    fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.words.iter().map(Vec::as_slice)
    }

    fn is_of_two_keys(&self) -> bool {
        (self.db, self.key.bytes) != (self.other_db, self.other.bytes)
    }
}

/// Mostly the first, for the same reason.
fn database(n: u16) -> DbId {
    DbId::from((n >> 8).is_multiple_of(4))
}

/// Does one thing; errors (of a wrong type) are part of it.
fn run(tx: &mut Tx<'_>, (what, key, other, a, b): Op) {
    if tx.scratch.stored.is_some() {
        // It is the only change of its transaction.
        return;
    }
    let (name, other_name) = (name(key), name(other));
    let count = if a.is_multiple_of(2) { b % 4 } else { b % 50 };
    let doing = Doing {
        what,
        db: database(a),
        key: tx.key(&name),
        other_db: database(b),
        other: tx.key(&other_name),
        a,
        b,
        at: [0, 200_000, 300_000 + u64::from(b), 1 << 40][usize::from(a) % 4],
        words: &words(a, usize::from(count) + 1),
    };
    match what {
        0..=7 => change_string(tx, &doing),
        8..=15 => change_set_or_hash(tx, &doing),
        16..=21 => change_ordered(tx, &doing),
        32 => change_library(tx, &doing),
        33 | 34 => change_set_times(tx, &doing),
        _ => change_key(tx, &doing),
    }
}

fn change_string(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, a, b, at, words, .. } = doing;
    match what {
        0 => tx.put_string(db, key, &word(b.into()), at),
        1 => tx.put_string(db, key, &vec![b as u8; usize::from(a) * 2], at),
        2 => tx.put_grown_string(db, key, &word(b.into()), at),
        3 => {
            tx.delete(db, key);
        }
        4 => {
            tx.set_expire(db, key, at);
        }
        5 => {
            let _ = tx.add_to_int(db, key, i64::from(a));
        }
        6 => {
            let _ = tx.write_string_at(db, key, usize::from(b), &words[0]);
        }
        7 if a.is_multiple_of(3) => {
            let new = vec![a as u8; usize::from(b) % 20_000];
            let _ = tx.replace_string(db, key, &new);
        }
        7 if a.is_multiple_of(2) => {
            let _ = tx.edit_string_in_place(
                db,
                key,
                |_| None,
                |string, written| {
                    let from = string.len() / 3;
                    string[from..].fill(b as u8);
                    written.push(from..string.len());
                },
            );
        }
        _ => {
            let _ = tx.edit_string(db, key, usize::from(b) % 900, |string| {
                string.fill(a as u8);
                0..string.len()
            });
        }
    }
}

fn change_set_or_hash(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, a, b, at, words, .. } = doing;
    match what {
        8 | 9 => {
            let _ = tx.set_add(db, key, doing.slices());
        }
        10 => {
            let _ = tx.set_remove(db, key, doing.slices());
        }
        11 => {
            let mut random = u64::from(a);
            // If few stay, these are sought instead.
            let length = tx.get_value(db, key).ok().flatten().map_or(0, SetValue::len);
            let count = [1, 3, length.saturating_sub(2), 1000][usize::from(b) % 4];
            let _ = tx.set_pop(db, key, count, || next_random(&mut random), |_| {});
        }
        12 | 13 => {
            let _ = tx.edit_or_create_hash(db, key, &[], |hash| {
                for (n, field) in words.iter().enumerate() {
                    let value = word(u64::from(b) + n as u64);
                    hash.set(field, &value, if n.is_multiple_of(3) { at } else { 0 });
                }
            });
        }
        14 => {
            let fields: Vec<&[u8]> = doing.slices().collect();
            let _ = tx.edit_hash(db, key, |hash| hash.remove_all(&fields));
        }
        _ => {
            let _ = tx.edit_hash(db, key, |hash| {
                for field in words {
                    hash.set_expiry(field, at);
                }
            });
        }
    }
}

/// On a set that may have none yet.
fn change_set_times(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { db, key, b, at, words, .. } = doing;
    if b.is_multiple_of(3) {
        let members: Vec<&[u8]> = doing.slices().collect();
        let _ = tx.edit_or_create_set(db, key, &members, |set| {
            members.iter().for_each(|member| {
                set.put(member, at);
            });
        });
        return;
    }
    let _ = tx.edit_set(db, key, |set| {
        for (n, member) in words.iter().enumerate() {
            match (usize::from(b) + n) % 4 {
                0 => set.remove(member),
                _ => set.set_expiry(member, at),
            };
        }
    });
}

fn change_ordered(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, a, b, words, .. } = doing;
    let end = |bit: u16| if bit.is_multiple_of(2) { End::Front } else { End::Back };
    match what {
        16 => {
            let _ = tx.list_push(db, key, end(a), doing.slices());
        }
        17 => {
            let count = usize::from(b) % 20;
            let _ = tx.list_pop(db, key, end(a), count, |_| (), |(), _| {});
        }
        18 => {
            let index = |length: usize| length.checked_sub(1 + usize::from(b) % 9);
            let (new, pivot) = (&words[0], word(a.into()));
            let _ = match a % 5 {
                0 => tx.list_set(db, key, index, new).map(|_| ()),
                1 => tx.list_insert(db, key, b.is_multiple_of(2), &pivot, new).map(|_| ()),
                2 => tx.list_remove(db, key, end(b), 3, &pivot).map(|_| ()),
                3 => tx.list_rotate(db, key, End::Front, end(b)).map(|_| ()),
                _ => tx.list_trim(db, key, |length| length / 4..length - length / 5).map(drop),
            };
        }
        19 | 20 => {
            let _ = tx.sorted_set_upsert(db, key, (words.len(), 8), |scores| {
                for (n, member) in words.iter().enumerate() {
                    scores.update(member, |old| Some(old.unwrap_or(0.0) + f64::from(b) + n as f64));
                }
            });
        }
        _ if a.is_multiple_of(3) => {
            let _ = tx.sorted_set_remove(db, key, doing.slices());
        }
        _ => {
            let ranks = |set: &SortedSet| {
                let length = set.len();
                if b.is_multiple_of(4) { 0..length } else { length / 3..length / 2 }
            };
            let _ = tx.sorted_set_remove_ranks(db, key, ranks, |_, _| {});
        }
    }
}

fn change_key(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, other_db, other, a, b, at, words } = doing;
    match what {
        22 | 23 if doing.is_of_two_keys() => {
            tx.rename(db, key, other_db, other);
        }
        24 if doing.is_of_two_keys() => {
            tx.copy(db, key, other_db, other);
        }
        25 => tx.flush(db),
        26 => tx.swap(0, 1),
        27 => {
            tx.read(db, key);
            tx.get(other_db, other);
        }
        28 => {
            tx.expire_due(partition_of(key.hash), usize::from(b) % 5);
        }
        29 => {
            let (mut list, limits) = (ListValue::new(), tx.list_limits());
            words.iter().for_each(|element| list.append(limits, element));
            tx.put_value(db, key, list, at);
        }
        30 => {
            let Some(entry) = tx.peek(db, key) else { return };
            let (access, expire_at) = (entry.access(), entry.expire_at());
            let key_bytes = key.bytes.to_vec();
            tx.evict(&Candidate { db, hash: key.hash, key: key_bytes, access, expire_at });
        }
        31 if tx.change_count() == 0 && doing.is_of_two_keys() => {
            put_stored(tx, (db, key), (other_db, other), a, words);
        }
        31 => {
            tx.rebuild(db);
        }
        _ => {}
    }
}

fn change_library(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let name = doing.key.bytes;
    match doing.a % 8 {
        0 => tx.flush_libraries(),
        1 | 2 => {
            tx.delete_library(name);
        }
        _ => {
            let function = FunctionFacts { name: name.to_vec(), ..FunctionFacts::default() };
            let code = doing.words.concat();
            let body = LibraryBody { code, functions: vec![function] };
            tx.put_library(Arc::new(Library::new(name, body)));
        }
    }
}

fn put_stored(
    tx: &mut Tx<'_>,
    (db, key): (DbId, Key<'_>),
    (from_db, from): (DbId, Key<'_>),
    a: u16,
    members: &[Vec<u8>],
) {
    let frozen = tx.freeze_object(from_db, from);
    let stored = match frozen {
        Some(frozen) if a.is_multiple_of(2) => {
            let expire_at = tx.peek(from_db, from).map_or(0, EntryRef::expire_at);
            Stored::moved((from_db, from.bytes), frozen, (db, key.bytes), expire_at)
        }
        _ => {
            let mut set = SetValue::table();
            let (env, limits) = (tx.env(), tx.set_limits());
            for member in members {
                set.add(env.hasher, limits, member);
            }
            Stored::new(db, key.bytes, Object::Set(set), 0)
        }
    };
    let _ = tx.put_stored(db, key, stored);
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
    unlogged: Vec<(usize, Vec<Unlogged>)>,
    touched: Vec<bool>,
    changed: Vec<Lsn>,
}

fn picture(keyspace: &Keyspace, observers: &Observers) -> Picture {
    let (mut keys, mut parts) = (BTreeMap::new(), Vec::new());
    let (mut unlogged, mut changed) = (Vec::new(), Vec::new());
    for partition in 0..PARTITIONS {
        let held = keyspace.try_lock(partition).expect("nobody else is here");
        changed.push(held.dependency_of_all());
        if !held.unlogged.is_empty() {
            unlogged.push((partition, held.unlogged.clone()));
        }
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
    Picture { keys, parts, select, libraries, library_bytes, unlogged, touched, changed }
}

/// A value's elements; in their order, if that is part of the value.
fn elements(keyspace: &Keyspace, entry: EntryRef<'_>) -> Vec<Vec<u8>> {
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
            // Members that were put back may lie elsewhere in their table, whose order a whole
            // value is written in.
            record.sort_unstable();
            (record, wrote, picture(&keyspace, &observers), buffers(&scratch))
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    /// While the log takes no records, expired elements are removed all the same.
    #[test]
    fn what_is_owed_to_the_log_is_taken_back_as_well(
        setup in prop::collection::vec(op(), 0..40),
        reads in prop::collection::vec((0..KEYS, 0..DATABASES), 1..8),
    ) {
        let Made { keyspace, mut scratch, observers } = make(&setup, false);
        for round in 0..3 {
            let before = picture(&keyspace, &observers);
            let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
            tx.scratch.read_only = round < 2;
            tx.make_undoable();
            for &(key, db) in &reads {
                let name = name(key);
                tx.read(db, tx.key(&name));
            }
            if round == 2 {
                let name = name(reads[0].0);
                tx.put_string(reads[0].1, tx.key(&name), b"logs what is owed", 0);
            }
            tx.abort();
            drop(tx);
            prop_assert_eq!(&picture(&keyspace, &observers), &before);
            check_accounts(&keyspace, scratch.counters.bytes_delta);
            // Now for good, so that the next round finds something owed.
            let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
            tx.scratch.read_only = true;
            for &(key, db) in &reads {
                let name = name(key);
                tx.read(db, tx.key(&name));
            }
            tx.commit(|_| unreachable!("nothing can be logged"));
        }
    }
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
