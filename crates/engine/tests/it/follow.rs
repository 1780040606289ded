//! What follows another node's log is seen as that node's clients saw it: by readers, watchers and
//! those who wait.

use ladon_engine::types::string;
use ladon_engine::{ApplyError, Keyspace, KeyspaceOptions, Locks, Scratch, Tx};
use ladon_record::{Change, ChangeBuffer, Lsn, ValueKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KEYS: [&[u8]; 3] = [b"one", b"two", b"three"];

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 2 })
}

fn put(key: &[u8], number: u64) -> Vec<u8> {
    let mut changes = ChangeBuffer::new();
    let (kind, body) = (ValueKind::String, number.to_string());
    let body = body.as_bytes();
    changes.push(Change::Put { db: 0, key, expire_at: 0, kind, body });
    changes.as_bytes().to_vec()
}

fn value(tx: &mut Tx<'_>, key: &[u8]) -> Option<Vec<u8>> {
    let key = tx.key(key);
    let entry = tx.read(0, key)?;
    string::bytes(entry.value()).map(|bytes| bytes.into_owned())
}

/// Readers look at three keys at once, while another thread follows changes of all three. Returns
/// whether they ever saw two of different numbers.
fn readers_see_parts(records: impl Fn(u64) -> Vec<Vec<u8>>) -> bool {
    let keyspace = keyspace();
    let (is_over, saw_parts, looks) =
        (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let mut scratch = Scratch::default();
                let hashes = KEYS.map(|key| keyspace.hash(key));
                while !is_over.load(Ordering::Relaxed) {
                    let mut tx = keyspace.begin(Locks::Keys(&hashes), &mut scratch, 1000);
                    let [a, b, c] = KEYS.map(|key| value(&mut tx, key));
                    if a != b || b != c {
                        saw_parts.store(true, Ordering::Relaxed);
                    }
                    tx.commit(|_| Lsn::ZERO);
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut scratch = Scratch::default();
        let mut number = 0;
        // Until they had every occasion, or what is looked for was seen.
        while (number < 2_000 || looks.load(Ordering::Relaxed) < 2_000)
            && !saw_parts.load(Ordering::Relaxed)
        {
            number += 1;
            for record in records(number) {
                keyspace.follow(Lsn(number), &record, &mut scratch, 1000).unwrap();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    saw_parts.into_inner()
}

#[test]
fn readers_see_whole_records() {
    let whole = |number| vec![KEYS.map(|key| put(key, number)).concat()];
    assert!(!readers_see_parts(whole));
}

/// The test above would notice.
#[test]
fn readers_would_see_parts_of_records() {
    let parts = |number| KEYS.map(|key| put(key, number)).to_vec();
    assert!(readers_see_parts(parts));
}

#[test]
fn a_record_that_contradicts_the_data_is_refused() {
    let keyspace = keyspace();
    let mut scratch = Scratch::default();
    let mut follow = |change: Change<'_>| {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        keyspace.follow(Lsn(1), &bytes, &mut scratch, 1000).map(drop)
    };
    let (key, op) = (&b"k"[..], &b"\x01\x01m"[..]);
    let none = Err(ApplyError::NoSuchValue("k".to_owned()));
    assert_eq!(follow(Change::Expire { db: 0, key, expire_at: 5 }), none);
    assert_eq!(follow(Change::Update { db: 0, key, kind: ValueKind::Set, op }), none);
    assert_eq!(follow(Change::FlushDb { db: 2 }), Err(ApplyError::NoSuchDb(2)));
    let kind = ValueKind::Set;
    let malformed = follow(Change::Put { db: 0, key, expire_at: 0, kind, body: b"\xff" });
    assert!(matches!(malformed, Err(ApplyError::Malformed { what: "value", .. })));
    let space = follow(Change::SpacePut { space: 512, tuple: b"\x91\x01" });
    assert!(matches!(space, Err(ApplyError::Space(512, _))), "{space:?}");
    assert_eq!(keyspace.used_bytes(), 0);
}

#[test]
fn a_reply_depends_on_what_was_followed() {
    let keyspace = keyspace();
    let mut scratch = Scratch::default();
    keyspace.follow(Lsn(77), &put(b"k", 1), &mut scratch, 1000).unwrap();
    let mut tx = keyspace.begin(Locks::One(keyspace.hash(b"k")), &mut scratch, 1000);
    assert_eq!(value(&mut tx, b"k"), Some(b"1".to_vec()));
    assert_eq!(tx.commit(|_| Lsn::ZERO), (Lsn(77), false));
}
