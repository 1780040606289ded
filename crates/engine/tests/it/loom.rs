//! Every interleaving (up to a bound) of transactions that lock several partitions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p ladon-engine --test it`; loom itself reports a
//! deadlock, the checks report transactions that saw half of another.

use ladon_engine::{Grown, Keyspace, KeyspaceOptions, Locks, Scratch, Tx, partition_of};
use ladon_record::{KeyHash, Lsn};
use loom::thread;
use std::sync::Arc;

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    // One transaction at the end takes all locks.
    builder.max_branches = 10_000;
    builder.check(check);
}

fn keyspace() -> Arc<Keyspace> {
    Arc::new(Keyspace::new(KeyspaceOptions { hash_seed: 7, databases: 1 }))
}

/// Three keys of three partitions, in falling order of their partitions.
fn keys(keyspace: &Keyspace) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..3).map(|n| format!("key{n}").into_bytes()).collect();
    keys.sort_by_key(|key| std::cmp::Reverse(partition_of(keyspace.hash(key))));
    keys.dedup_by_key(|key| partition_of(keyspace.hash(key)));
    assert_eq!(keys.len(), 3, "other names, please");
    keys
}

fn hashes(keyspace: &Keyspace, keys: &[&Vec<u8>]) -> Vec<KeyHash> {
    keys.iter().map(|key| keyspace.hash(key)).collect()
}

fn add(tx: &mut Tx<'_>, key: &[u8], delta: i64) -> i64 {
    let key = tx.key(key);
    tx.add_to_int(0, key, delta).unwrap()
}

/// One transaction moves one from `from` to `to`.
fn transfer(keyspace: &Keyspace, from: &Vec<u8>, to: &Vec<u8>) {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::Keys(&hashes(keyspace, &[from, to])), &mut scratch, 1);
    add(&mut tx, from, -1);
    add(&mut tx, to, 1);
    tx.commit(|_| Lsn(1));
}

fn values(keyspace: &Keyspace, locks: Locks<'_>, keys: &[Vec<u8>]) -> Vec<i64> {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(locks, &mut scratch, 1);
    // Adding nothing is reading.
    let values = keys.iter().map(|key| add(&mut tx, key, 0)).collect();
    tx.commit(|_| Lsn(1));
    values
}

/// They ask for the same partitions in opposite orders.
#[test]
fn transactions_over_crossing_keys_do_not_deadlock_and_do_not_mix() {
    model(|| {
        let keyspace = keyspace();
        let keys = keys(&keyspace);
        let threads: Vec<_> = [(0, 1), (1, 0)]
            .into_iter()
            .map(|(from, to)| {
                let (keyspace, keys) = (keyspace.clone(), keys.clone());
                thread::spawn(move || transfer(&keyspace, &keys[from], &keys[to]))
            })
            .collect();
        let seen: i64 = {
            let all: Vec<&Vec<u8>> = keys.iter().collect();
            let all = hashes(&keyspace, &all);
            values(&keyspace, Locks::Keys(&all), &keys).iter().sum()
        };
        assert_eq!(seen, 0, "half of a transfer was seen");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(values(&keyspace, Locks::All, &keys), [0, 0, 0]);
    });
}

/// What takes all locks (FLUSHALL, EXEC over scripts) against what takes some.
#[test]
fn all_locks_and_some_locks_do_not_deadlock() {
    model(|| {
        let keyspace = keyspace();
        let keys = keys(&keyspace);
        let other = {
            let (keyspace, keys) = (keyspace.clone(), keys.clone());
            thread::spawn(move || transfer(&keyspace, &keys[2], &keys[0]))
        };
        let seen: i64 = {
            let all: Vec<&Vec<u8>> = keys.iter().collect();
            let mut backwards = hashes(&keyspace, &all);
            backwards.reverse();
            values(&keyspace, Locks::Keys(&backwards), &keys).iter().sum()
        };
        assert_eq!(seen, 0);
        other.join().unwrap();
        assert_eq!(values(&keyspace, Locks::All, &keys), [1, 0, -1]);
    });
}

/// As `transfer`, by a transaction that begins with the first key's partition and then grows. If
/// that is refused, it runs again with both.
fn transfer_growing(keyspace: &Keyspace, from: &Vec<u8>, to: &Vec<u8>) {
    let both = hashes(keyspace, &[from, to]);
    let mut scratch = Scratch::default();
    for locks in [Locks::One(both[0]), Locks::Keys(&both)] {
        let mut tx = keyspace.begin(locks, &mut scratch, 1);
        tx.make_undoable();
        add(&mut tx, from, -1);
        if tx.grow(&both[1..]) == Grown::Refused {
            tx.abort();
            continue;
        }
        add(&mut tx, to, 1);
        tx.commit(|_| Lsn(1));
        return;
    }
    unreachable!("a transaction that holds its locks is not refused");
}

/// Two that grow in opposite orders, and one that waits for all from the beginning.
#[test]
fn growing_transactions_do_not_deadlock_and_all_commit() {
    model(|| {
        let keyspace = keyspace();
        let keys = keys(&keyspace);
        let threads: Vec<_> = [(0, 1), (1, 0)]
            .into_iter()
            .map(|(from, to)| {
                let (keyspace, keys) = (keyspace.clone(), keys.clone());
                thread::spawn(move || transfer_growing(&keyspace, &keys[from], &keys[to]))
            })
            .collect();
        let all: Vec<&Vec<u8>> = keys.iter().collect();
        let all = hashes(&keyspace, &all);
        let seen: i64 = values(&keyspace, Locks::Keys(&all), &keys).iter().sum();
        assert_eq!(seen, 0, "half of a transfer was seen");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(values(&keyspace, Locks::All, &keys), [0, 0, 0]);
    });
}
