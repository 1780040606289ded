//! Strings edited in place, against a plain map: what they hold, what they take, and what their
//! log gives back.

use ladon_engine::{Keyspace, KeyspaceOptions, Locks, Recovering, Scratch, Tx, types};
use ladon_record::{LargeRecord, Lsn, Record};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Put {
        key: u8,
        bytes: Vec<u8>,
        expire_at: u64,
    },
    /// Make room for `length`, then write there.
    Edit {
        key: u8,
        length: usize,
        at: usize,
        bytes: Vec<u8>,
    },
    /// Give it other bytes: some of it replaced by others.
    Replace {
        key: u8,
        from: prop::sample::Index,
        removed: usize,
        bytes: Vec<u8>,
    },
    /// Write to some of its places, if it is there.
    InPlace {
        key: u8,
        places: Vec<(prop::sample::Index, u8)>,
    },
    Delete {
        key: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Around where a string moves out of its entry, and where growing by doubling ends.
    let length = prop_oneof![0..100usize, 2000..2100usize, (1 << 20) - 5..(1 << 20) + 5usize];
    let bytes = prop_oneof![Just(b"12345".to_vec()), prop::collection::vec(any::<u8>(), 0..30)];
    let place = (any::<prop::sample::Index>(), any::<u8>());
    let step = prop_oneof![
        (0..4u8, bytes.clone(), prop_oneof![Just(0), Just(9_000_000)])
            .prop_map(|(key, bytes, expire_at)| Step::Put { key, bytes, expire_at }),
        (0..4u8, length, any::<prop::sample::Index>(), bytes.clone()).prop_map(
            |(key, length, at, bytes)| {
                let length = length.max(bytes.len()).max(1);
                let at = at.index(length - bytes.len() + 1);
                Step::Edit { key, length, at, bytes }
            }
        ),
        (0..4u8, any::<prop::sample::Index>(), 0..40usize, bytes)
            .prop_map(|(key, from, removed, bytes)| Step::Replace { key, from, removed, bytes }),
        (0..4u8, prop::collection::vec(place, 0..9))
            .prop_map(|(key, places)| Step::InPlace { key, places }),
        (0..4u8).prop_map(|key| Step::Delete { key }),
    ];
    prop::collection::vec(step, 1..30)
}

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 7, databases: 1 })
}

fn contents(keyspace: &Keyspace) -> BTreeMap<Vec<u8>, (Vec<u8>, u64)> {
    let mut found = BTreeMap::new();
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    tx.for_each(0, |entry| {
        let bytes = types::string::bytes(entry.value()).expect("a string").into_owned();
        found.insert(entry.key().to_vec(), (bytes, entry.expire_at()));
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn edits_are_those_of_a_vector_and_their_log_gives_them_back(steps in steps()) {
        let keyspace = keyspace();
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, u64)> = BTreeMap::new();
        let mut scratch = Scratch::default();
        let mut log: Vec<Vec<u8>> = Vec::new();
        for step in steps {
            let (Step::Put { key: name, .. } | Step::Edit { key: name, .. } | Step::Replace { key: name, .. } | Step::InPlace { key: name, .. } | Step::Delete { key: name }) = &step;
            let name = [*name];
            let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
            let key = tx.key(&name);
            match &step {
                Step::Put { bytes, expire_at, .. } => {
                    tx.put_string(0, key, bytes, *expire_at);
                    model.insert(name.to_vec(), (bytes.clone(), *expire_at));
                }
                Step::Edit { length, at, bytes, .. } => {
                    let written = *at..at + bytes.len();
                    let edited = tx.edit_string(0, key, *length, |string| {
                        string[written.clone()].copy_from_slice(bytes);
                        written.clone()
                    });
                    let (string, _) = model.entry(name.to_vec()).or_default();
                    string.resize(string.len().max(*length), 0);
                    string[written].copy_from_slice(bytes);
                    prop_assert_eq!(edited, Ok(string.len()));
                }
                Step::Replace { from, removed, bytes, .. } => {
                    let (string, _) = model.entry(name.to_vec()).or_default();
                    let from = from.index(string.len() + 1);
                    let end = (from + removed).min(string.len());
                    string.splice(from..end, bytes.iter().copied());
                    prop_assert_eq!(tx.replace_string(0, key, string), Ok(()));
                }
                Step::InPlace { places, .. } => {
                    let write = |string: &mut [u8]| {
                        let mut written = Vec::new();
                        let length = string.len();
                        for (place, byte) in places.iter().filter(|_| length > 0) {
                            let at = place.index(length);
                            string[at] = *byte;
                            written.push(at..at + 1);
                        }
                        written
                    };
                    let edited = tx.edit_string_in_place(0, key, |_| None, |string, written| {
                        written.extend(write(string));
                    });
                    let string = model.get_mut(&name[..]);
                    prop_assert_eq!(edited, Ok(string.is_some().then_some(())));
                    if let Some((string, _)) = string {
                        write(string);
                    }
                }
                Step::Delete { .. } => {
                    tx.delete(0, key);
                    model.remove(&name[..]);
                }
            }
            tx.commit(|record| {
                log.push(record.changes().to_vec());
                Lsn(log.len() as u64)
            });
        }
        prop_assert_eq!(&contents(&keyspace), &model);
        let again = self::keyspace();
        let recovering = Recovering::new(&again, 0);
        for (index, changes) in log.iter().enumerate() {
            recovering.replay((0, 1)).record(Lsn(index as u64 + 1), changes).expect("it applies");
        }
        prop_assert_eq!(&contents(&again), &model);
        // The accounts hold: with everything gone, what is left is the tables' own.
        let names: Vec<Vec<u8>> = model.into_keys().collect();
        let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
        for name in &names {
            let key = tx.key(name);
            tx.delete(0, key);
        }
        tx.commit(|_| Lsn(u64::MAX));
        let left = scratch.counters.bytes_delta;
        prop_assert!((0..20_000).contains(&left), "{} bytes are still accounted for", left);
    }
}

/// The log holds a long string's own memory until it is written: what changes the string meanwhile
/// changes a copy.
#[test]
fn a_record_stays_as_it_was_whatever_becomes_of_its_string() {
    let keyspace = keyspace();
    let mut scratch = Scratch::default();
    let mut log = Vec::new();
    let (a, b) = (vec![b'a'; 5 << 20], vec![b'b'; 4 << 20]);
    let mut run = |change: &dyn Fn(&mut Tx<'_>)| {
        let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
        change(&mut tx);
        tx.commit(|record| {
            log.push(match record {
                Record::Changes(changes) => LargeRecord::new(changes.to_vec()),
                Record::Large(record) => record,
            });
            Lsn(log.len() as u64)
        });
    };
    run(&|tx| {
        tx.put_string(0, tx.key(b"a"), &a, 0);
        tx.put_string(0, tx.key(b"short"), b"short", 9);
        tx.put_string(0, tx.key(b"b"), &b, 7);
        tx.put_string(0, tx.key(b"b"), &a, 7);
        tx.write_string_at(0, tx.key(b"b"), 1, b"in the same transaction").expect("a string");
    });
    run(&|tx| {
        tx.write_string_at(0, tx.key(b"a"), 3, b"in the next").expect("a string");
        tx.delete(0, tx.key(b"short"));
    });
    let expected = contents(&keyspace);
    let again = self::keyspace();
    let recovering = Recovering::new(&again, 0);
    for (index, record) in log.iter().enumerate() {
        let lsn = Lsn(index as u64 + 1);
        recovering.replay((0, 1)).record(lsn, &record.changes()).expect("it applies");
    }
    assert!(contents(&again) == expected);
    assert!(log[0].changes()[..100].ends_with(b"aaaa"));
}
