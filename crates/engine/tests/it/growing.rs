//! Transactions that lock more partitions as they go on, and threads that do not wait for ever.

use ladon_engine::{
    Grown, Keyspace, KeyspaceOptions, Locks, PARTITIONS, Scratch, Tx, partition_of,
};
use ladon_record::{KeyHash, Lsn, Record};
use ladon_testkit::Random;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::scope;

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 7, databases: 1 })
}

/// Keys of different partitions, in the order of these.
fn keys(keyspace: &Keyspace, count: usize) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..4 * count).map(|n| format!("k{n}").into_bytes()).collect();
    keys.sort_by_key(|key| partition_of(keyspace.hash(key)));
    keys.dedup_by_key(|key| partition_of(keyspace.hash(key)));
    keys.truncate(count);
    assert_eq!(keys.len(), count);
    keys
}

fn add(tx: &mut Tx<'_>, key: &[u8], delta: i64) -> i64 {
    let key = tx.key(key);
    tx.add_to_int(0, key, delta).expect("an integer")
}

#[test]
fn what_was_grown_to_is_held_and_the_rest_is_not() {
    let keyspace = keyspace();
    let keys = keys(&keyspace, 5);
    let hash = |at: usize| keyspace.hash(&keys[at]);
    for begin in [Locks::One(hash(2)), Locks::Keys(&[hash(2)]), Locks::None] {
        let mut scratch = Scratch::default();
        let mut tx = keyspace.begin(begin, &mut scratch, 1);
        tx.make_undoable();
        let holds = |tx: &Tx<'_>| (0..5).map(|at| tx.holds(hash(at))).collect::<Vec<_>>();
        assert_eq!(tx.grow(&[hash(2)]), Grown::Held);
        assert_eq!(holds(&tx), [false, false, true, false, false]);
        add(&mut tx, &keys[2], 1);
        assert_eq!(tx.grow(&[hash(4), hash(0), hash(4), hash(2)]), Grown::Held);
        assert_eq!(holds(&tx), [true, false, true, false, true]);
        add(&mut tx, &keys[4], 1);
        add(&mut tx, &keys[0], 1);
        assert_eq!(tx.grow_to_all(), Grown::Held);
        assert_eq!(holds(&tx), [true; 5]);
        assert_eq!((tx.len(0), tx.grow_to_all()), (3, Grown::Held));
        tx.abort();
        assert_eq!(tx.len(0), 0);
        drop(tx);
        let mut tx = keyspace.begin(Locks::All, &mut scratch, 1);
        assert_eq!(tx.len(0), 0);
    }
}

#[test]
fn a_lower_partition_that_another_thread_holds_is_refused_and_a_higher_one_is_waited_for() {
    let keyspace = &keyspace();
    let keys = &keys(keyspace, 3);
    scope(|scope| {
        let (is_held, held) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        scope.spawn(move || {
            let hashes = [keyspace.hash(&keys[0]), keyspace.hash(&keys[2])];
            let mut scratch = Scratch::default();
            let tx = keyspace.begin(Locks::Keys(&hashes), &mut scratch, 1);
            is_held.send(()).expect("somebody waits");
            released.recv().expect("somebody releases");
            drop(tx);
        });
        held.recv().expect("it holds them");
        let mut scratch = Scratch::default();
        let mut tx = keyspace.begin(Locks::One(keyspace.hash(&keys[1])), &mut scratch, 1);
        tx.make_undoable();
        add(&mut tx, &keys[1], 1);
        assert_eq!(tx.grow(&[keyspace.hash(&keys[0])]), Grown::Refused);
        assert_eq!(tx.grow_to_all(), Grown::Refused);
        release.send(()).expect("it waits");
        // Waits until the other thread is done.
        assert_eq!(tx.grow(&[keyspace.hash(&keys[2])]), Grown::Held);
        add(&mut tx, &keys[2], 1);
        tx.commit(|_| Lsn(1));
    });
}

#[test]
fn who_is_told_that_the_holder_is_busy_does_not_wait() {
    let keyspace = &keyspace();
    let key = keyspace.hash(b"k");
    let mut scratch = Scratch::default();
    assert!(
        keyspace.begin_or_busy(Locks::All, &mut scratch, 1, |_| true).is_some(),
        "all are free"
    );
    scope(|scope| {
        let (is_held, held) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut scratch = Scratch::default();
            let mut tx = keyspace.begin(Locks::One(key), &mut scratch, 1);
            is_held.send(()).expect("somebody waits");
            released.recv().expect("somebody releases");
            add(&mut tx, b"k", 1);
            tx.commit(|_| Lsn(1));
        });
        held.recv().expect("it holds it");
        for locks in [Locks::One(key), Locks::Partition(partition_of(key)), Locks::All] {
            assert!(keyspace.begin_or_busy(locks, &mut scratch, 1, |_| true).is_none());
            let asked = Cell::new(0);
            let is_busy = |_| asked.replace(asked.get() + 1) == 3;
            assert!(keyspace.begin_or_busy(locks, &mut scratch, 1, is_busy).is_none());
        }
        // What was locked on the way was released.
        let others = (0..PARTITIONS).filter(|&index| index != partition_of(key));
        for index in others {
            let locks = Locks::Partition(index);
            assert!(keyspace.begin_or_busy(locks, &mut scratch, 1, |_| true).is_some());
        }
        // The holder ends while this thread waits.
        let release = Cell::new(Some(release));
        let is_busy = |_| {
            if let Some(release) = release.take() {
                release.send(()).expect("it waits");
            }
            false
        };
        let hashes: [KeyHash; 2] = [key, keyspace.hash(b"other")];
        let tx = keyspace.begin_or_busy(Locks::Keys(&hashes), &mut scratch, 1, is_busy);
        let mut tx = tx.expect("it waited");
        assert_eq!(add(&mut tx, b"k", 1), 2);
        tx.commit(|_| Lsn(2));
    });
}

/// Real threads: transfers between keys that each transaction only discovers as it goes on.
#[test]
fn growing_transfers_keep_the_sum() {
    let rounds = if cfg!(miri) { 10 } else { 2_000 };
    let keyspace = &keyspace();
    let lsn = &AtomicU64::new(0);
    let append = |_: Record<'_>| Lsn(lsn.fetch_add(1, Relaxed) + 1);
    let keys = &keys(keyspace, 12);
    let refused: u64 = scope(|scope| {
        let threads = [0u64, 1, 2].map(|seed| {
            scope.spawn(move || {
                let (mut random, mut scratch) = (Random::new(seed), Scratch::default());
                let mut refused = 0;
                for _ in 0..rounds {
                    let route: Vec<&Vec<u8>> =
                        (0..4).map(|_| &keys[random.below(12) as usize]).collect();
                    let hashes: Vec<KeyHash> = route.iter().map(|key| keyspace.hash(key)).collect();
                    refused += u64::from(!transfer(keyspace, &mut scratch, &route, 1, append));
                    let mut tx = keyspace.begin(Locks::Keys(&hashes), &mut scratch, 1);
                    route.iter().for_each(|key| {
                        add(&mut tx, key, 0);
                    });
                    tx.commit(append);
                }
                refused
            })
        });
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 1);
    let sum: i64 = keys.iter().map(|key| add(&mut tx, key, 0)).sum();
    assert_eq!(sum, 0, "after {refused} transfers that ran again");
    tx.commit(append);
}

/// Takes from each key and gives to the next, growing at each; whether it was not refused.
fn transfer(
    keyspace: &Keyspace,
    scratch: &mut Scratch,
    route: &[&Vec<u8>],
    amount: i64,
    append: impl Fn(Record<'_>) -> Lsn,
) -> bool {
    let hashes: Vec<KeyHash> = route.iter().map(|key| keyspace.hash(key)).collect();
    let mut tx = keyspace.begin(Locks::One(hashes[0]), scratch, 1);
    let mut is_first = true;
    loop {
        tx.make_undoable();
        let is_refused = route.windows(2).any(|pair| {
            let (from, to) = (pair[0], pair[1]);
            add(&mut tx, from, -amount);
            let grown = tx.grow(&[keyspace.hash(to)]);
            if grown == Grown::Held {
                add(&mut tx, to, amount);
            }
            grown == Grown::Refused
        });
        if !is_refused {
            tx.commit(&append);
            return is_first;
        }
        assert!(is_first, "a transaction that holds its locks is not refused");
        is_first = false;
        tx.abort();
        assert!(tx.begin_again_or_busy(Locks::Keys(&hashes), |_| false));
    }
}

#[test]
fn a_transaction_begins_again_with_other_locks() {
    let keyspace = keyspace();
    let keys = keys(&keyspace, 3);
    let hash = |at: usize| keyspace.hash(&keys[at]);
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::Keys(&[hash(0), hash(1)]), &mut scratch, 1);
    tx.make_undoable();
    add(&mut tx, &keys[0], 1);
    assert!(tx.is_undoable());
    tx.abort();
    tx.begin_again(Locks::Keys(&[hash(1), hash(2)]));
    assert_eq!([0, 1, 2].map(|at| tx.holds(hash(at))), [false, true, true]);
    assert!(!tx.is_undoable());
    add(&mut tx, &keys[2], 1);
    tx.commit(|_| Lsn(1));
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 1);
    assert_eq!((tx.len(0), is_free(&keyspace)), (1, false));
    assert!(tx.begin_again_or_busy(Locks::One(hash(0)), |_| true));
    assert!(tx.holds(hash(0)) && !tx.holds(hash(1)));
}

/// Whether anybody could begin a transaction now.
fn is_free(keyspace: &Keyspace) -> bool {
    let mut scratch = Scratch::default();
    std::thread::scope(|scope| {
        let begin = || keyspace.begin_or_busy(Locks::All, &mut scratch, 1, |_| true).is_some();
        scope.spawn(begin).join().expect("no panic")
    })
}
