//! Real threads on one keyspace: transactions over several partitions are serializable and end,
//! while other threads prefetch through tables that grow and shrink. `scripts/tsan.sh` runs this
//! under a race checker.

use ladon_engine::{AccessedPart, Ahead, Keyspace, KeyspaceOptions, Locks, PartAhead, Scratch, Tx};
use ladon_record::{KeyHash, Lsn, Record};
use ladon_testkit::Random;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::scope;

const ACCOUNTS: u64 = if cfg!(miri) { 8 } else { 40 };

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 7, databases: 2 })
}

fn account(number: u64) -> Vec<u8> {
    format!("account:{number}").into_bytes()
}

/// How much is done: under Miri, in an ordinary test, in a release build.
fn size(miri: u64, test: u64, release: u64) -> u64 {
    match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => miri,
        (false, true) => test,
        (false, false) => release,
    }
}

fn add(tx: &mut Tx<'_>, key: &[u8], delta: i64) -> i64 {
    let key = tx.key(key);
    tx.add_to_int(0, key, delta).expect("an integer")
}

#[test]
fn transfers_keep_the_sum_whoever_looks() {
    let rounds = size(20, 3_000, 30_000);
    let keyspace = keyspace();
    let lsn = AtomicU64::new(0);
    let (keyspace, lsn) = (&keyspace, &lsn);
    let append = |_: Record<'_>| Lsn(lsn.fetch_add(1, Relaxed) + 1);
    let all: Vec<KeyHash> = (0..ACCOUNTS).map(|n| keyspace.hash(&account(n))).collect();
    let (all, done) = (&all, &AtomicBool::new(false));
    scope(|scope| {
        let writers: Vec<_> = (0..3u64)
            .map(|seed| {
                scope.spawn(move || {
                    let (mut random, mut scratch) = (Random::new(seed), Scratch::default());
                    for _ in 0..rounds {
                        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                        let hashes = [all[from as usize], all[to as usize]];
                        let mut tx = keyspace.begin(Locks::Keys(&hashes), &mut scratch, 1);
                        add(&mut tx, &account(from), -1);
                        add(&mut tx, &account(to), 1);
                        tx.commit(append);
                    }
                })
            })
            .collect();
        for backwards in [false, true] {
            scope.spawn(move || {
                let mut scratch = Scratch::default();
                let mut hashes = all.clone();
                if backwards {
                    hashes.reverse();
                }
                while !done.load(Relaxed) {
                    let mut tx = keyspace.begin(Locks::Keys(&hashes), &mut scratch, 1);
                    let sum: i64 = (0..ACCOUNTS).map(|n| add(&mut tx, &account(n), 0)).sum();
                    tx.commit(append);
                    assert_eq!(sum, 0, "half of a transfer was seen");
                }
            });
        }
        for writer in writers {
            writer.join().expect("no panic");
        }
        done.store(true, Relaxed);
    });
}

/// Prefetching reads buckets and entries without their lock; it must only ever touch memory that
/// is still there.
#[test]
fn prefetching_goes_on_while_tables_grow_shrink_and_flush() {
    let (keys, ahead_keys) = (size(70, 20_000, 200_000), size(6, 64, 64));
    let keyspace = &keyspace();
    let done = &AtomicBool::new(false);
    let name = |n: u64| format!("m{n}").into_bytes();
    scope(|scope| {
        for seed in 0..2u64 {
            scope.spawn(move || {
                let mut random = Random::new(seed);
                while !done.load(Relaxed) {
                    let names: Vec<u64> = (0..ahead_keys).map(|_| random.below(keys)).collect();
                    let ahead = |key: u64| Ahead { db: 0, hash: keyspace.hash(&name(key)) };
                    let batch: Vec<Ahead> = names.iter().map(|&key| ahead(key)).collect();
                    let insides: Vec<PartAhead> = (0u32..)
                        .zip(&names)
                        .map(|(at, &key)| PartAhead {
                            key: ahead(key),
                            at,
                            inside: match key % 2 {
                                0 => AccessedPart::Element(ahead(key + 1).hash),
                                _ => AccessedPart::Byte(3),
                            },
                        })
                        .collect();
                    let mut lookahead = keyspace.lookahead();
                    for next in 0..=batch.len() {
                        lookahead.advance(&batch, next);
                        lookahead.advance_inside(&insides, next);
                    }
                }
            });
        }
        let writer = scope.spawn(move || {
            let mut scratch = Scratch::default();
            for round in 0..3 {
                for n in 0..keys {
                    let (key, text) = (name(n), vec![b'v'; (n % 90) as usize]);
                    let locks = Locks::One(keyspace.hash(&key));
                    let mut tx = keyspace.begin(locks, &mut scratch, 1);
                    let key = tx.key(&key);
                    if n % 64 == 0 {
                        // Enough for a table of its own.
                        let members: Vec<_> =
                            (0..size(140, 300, 300)).map(|m| name(n + m)).collect();
                        tx.set_add(0, key, members.iter().map(Vec::as_slice)).expect("a new key");
                    } else {
                        tx.put_string(0, key, &text, 0);
                    }
                    tx.commit(|_| Lsn(1));
                }
                if round == 1 {
                    let mut tx = keyspace.begin(Locks::All, &mut scratch, 1);
                    tx.flush(0);
                    tx.commit(|_| Lsn(1));
                } else {
                    for n in 0..keys {
                        let key = name(n);
                        let locks = Locks::One(keyspace.hash(&key));
                        let mut tx = keyspace.begin(locks, &mut scratch, 1);
                        let key = tx.key(&key);
                        assert!(tx.delete(0, key));
                        tx.commit(|_| Lsn(1));
                    }
                }
                scratch.garbage.clear();
            }
        });
        writer.join().expect("no panic");
        done.store(true, Relaxed);
    });
}
