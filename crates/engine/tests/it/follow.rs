//! What follows another node's log is seen as that node's clients saw it: by readers, watchers and
//! those who wait.

use crate::spaces::{array, dump, index_tuple, number, text};
use ladon_engine::types::hash::HashEdit;
use ladon_engine::types::list::End;
use ladon_engine::types::set::edit::SetEdit;
use ladon_engine::types::string;
use ladon_engine::{
    AllRights, ApplyError, EventClass, Key, Keyspace, KeyspaceOptions, Library, Locks, Scratch, Tx,
    WatchFlag,
};
use ladon_msgpack::write;
use ladon_record::{Change, ChangeBuffer, FunctionFacts, LibraryBody, Lsn, Record, ValueKind};
use ladon_space::{Space, Statement};
use ladon_system_spaces as system;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
            let mut records = records(number).into_iter().peekable();
            while let Some(record) = records.next() {
                keyspace.follow(Lsn(number), &record, &mut scratch, 1000).unwrap();
                // The first of these two readers' looks may have begun before, the third has not.
                let seen = looks.load(Ordering::Relaxed) + 3;
                while records.peek().is_some() && looks.load(Ordering::Relaxed) < seen {
                    std::thread::yield_now();
                }
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

/// A node, and another one that follows all that it does.
struct Pair {
    leader: Keyspace,
    follower: Keyspace,
    lsn: u64,
    /// What the follower's clients hear: database, event, key and elements.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Pair {
    fn new(classes: EventClass) -> Pair {
        let (leader, follower) = (keyspace(), keyspace());
        follower.set_follower(true);
        follower.collect_events(classes);
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = Arc::clone(&heard);
        follower.deliver_events(Box::new(move |event, _| {
            let subkeys: Vec<String> =
                event.subkeys.iter().map(|name| name.escape_ascii().to_string()).collect();
            let key = event.key.escape_ascii();
            let text = format!("{} {} {key} {}", event.database, event.name, subkeys.join(" "));
            list.lock().unwrap().push(text.trim_end().to_owned());
        }));
        Pair { leader, follower, lsn: 0, heard }
    }

    fn follow(&mut self, record: &[u8]) -> Result<(), ApplyError> {
        self.lsn += 1;
        self.follower.follow(Lsn(self.lsn), record, &mut Scratch::default(), 1000).map(drop)
    }

    /// A transaction of the leader on keys and tuples. Returns what is heard of it.
    fn run(&mut self, work: impl FnOnce(&mut Tx<'_>)) -> Vec<String> {
        let mut record = Vec::new();
        let mut scratch = Scratch::default();
        let mut tx = self.leader.begin(Locks::All, &mut scratch, 1000);
        work(&mut tx);
        tx.commit(|changes| {
            record = changes.changes().into_owned();
            Lsn(self.lsn + 1)
        });
        self.follow(&record).unwrap();
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    /// A definition of the leader.
    fn define(&mut self, space: u32, tuple: &[u8]) {
        let mut record = Vec::new();
        let append = |changes: Record<'_>| {
            record = changes.changes().into_owned();
            Lsn(self.lsn + 1)
        };
        let statement = |space: &mut Space| space.replace(tuple);
        let mut scratch = Scratch::default();
        let of = (space, &AllRights as _);
        self.leader.define(of, &mut scratch, statement, append).0.unwrap();
        self.follow(&record).unwrap();
    }

    /// A mounted space with a unique secondary index.
    fn define_users(&mut self) {
        let options = |out: &mut Vec<u8>| {
            write::map(out, 1);
            write::str(out, b"resp_prefix");
            write::str(out, b"user:");
        };
        let formats = |out: &mut Vec<u8>| write::array(out, 0);
        let (name, engine) = (text("users".to_owned()), text("memtx".to_owned()));
        let zero = number(0);
        let tuple = array(&[&number(512), &number(1), &name, &engine, &zero, &options, &formats]);
        self.define(system::SPACE, &tuple);
        self.define(system::INDEX, &index_tuple(512, 0, "tree", true, 0));
        self.define(system::INDEX, &index_tuple(512, 1, "tree", true, 1));
    }
}

fn user(id: u64, number: u64) -> Vec<u8> {
    array(&[&self::number(id), &self::number(number)])
}

/// What a leader does, and what is heard of it.
type Case<'a> = (&'a dyn Fn(&mut Tx<'_>), &'a [&'a str]);

fn check_heard(cases: &[Case<'_>]) {
    let mut pair = Pair::new(EventClass(!EventClass::CHANGED.0 & !EventClass::NEW.0));
    for (number, (does, expected)) in cases.iter().enumerate() {
        assert_eq!(pair.run(does), *expected, "case {number}");
    }
    pair.follower.collect_events(EventClass::NONE);
    let silent = pair.run(|tx| tx.put_string(0, tx.key(b"k"), b"v", 5));
    assert_eq!(silent, [] as [&str; 0], "nobody listens");
}

fn k(tx: &Tx<'_>) -> Key<'static> {
    tx.key(b"k")
}

fn done<T>(_: T) {}

#[test]
fn a_followed_change_is_heard_of_as_the_plainest_command() {
    check_heard(&[
        (&|tx| tx.put_string(0, k(tx), b"v", 0), &["0 set k"]),
        (&|tx| tx.put_string(0, k(tx), b"v", 5000), &["0 overwritten k", "0 set k", "0 expire k"]),
        (&|tx| done(tx.set_expire(0, k(tx), 7000)), &["0 expire k"]),
        (&|tx| done(tx.set_expire(0, k(tx), 0)), &["0 persist k"]),
        (&|tx| done(tx.delete(0, k(tx))), &["0 del k"]),
        (&|tx| tx.put_string(0, k(tx), &[b'x'; 9000], 0), &["0 set k"]),
        (&|tx| done(tx.write_string_at(0, k(tx), 9000, b"yz")), &["0 append k"]),
        (&|tx| done(tx.write_string_at(0, k(tx), 1, b"yz")), &["0 setrange k"]),
        (&|tx| tx.flush(0), &[]),
        (
            &|tx| done(tx.list_push(0, k(tx), End::Back, [&b"e"[..], b"f"].into_iter())),
            &["0 rpush k"],
        ),
        (&|tx| done(tx.list_rotate(0, k(tx), End::Back, End::Front)), &["0 rpop k", "0 lpush k"]),
        (&|tx| done(tx.rename(0, k(tx), 1, tx.key(b"other"))), &["0 del k", "1 rpush other"]),
        (&|tx| tx.swap(0, 1), &[]),
        (&|tx| done(tx.list_set(0, tx.key(b"new"), |_| Some(0), b"g")), &[]),
        (&|tx| done(tx.list_set(1, tx.key(b"other"), |_| Some(0), b"g")), &["0 lset other"]),
    ]);
}

#[test]
fn a_followed_change_is_heard_of_with_its_fields() {
    check_heard(&[
        (
            &|tx| {
                let set = |hash: &mut HashEdit<'_>| {
                    ["a", "b", "c"].map(|name| hash.set(name.as_bytes(), b"v", 0))
                };
                tx.edit_or_create_hash(0, k(tx), &[], set).unwrap();
            },
            &["0 hset k"],
        ),
        (
            &|tx| {
                let edit = |hash: &mut HashEdit<'_>| {
                    hash.set(b"a", b"w", 0);
                    hash.remove(b"b");
                    hash.set_expiry(b"c", 9000);
                    hash.set(b"d", b"w", 0);
                    hash.set_expiry(b"d", 0);
                };
                tx.edit_hash(0, k(tx), edit).unwrap();
            },
            &["0 hset k a d", "0 hdel k b", "0 hexpire k c", "0 hpersist k d"],
        ),
        (&|tx| done(tx.delete(0, k(tx))), &["0 del k"]),
        (&|tx| done(tx.set_add(0, k(tx), [&b"m"[..], b"n"].into_iter())), &["0 sadd k"]),
        (&|tx| done(tx.set_remove(0, k(tx), [&b"m"[..]].into_iter())), &["0 srem k"]),
        (
            &|tx| {
                let edit = |set: &mut SetEdit<'_>| {
                    set.put(b"o", 0);
                    set.set_expiry(b"n", 9000);
                };
                tx.edit_set(0, k(tx), edit).unwrap();
            },
            &["0 sadd k", "0 sexpire k"],
        ),
    ]);
}

#[test]
fn a_record_of_keys_and_tuples_is_one_transaction() {
    let mut pair = Pair::new(EventClass(EventClass::STRING.0 | EventClass::HASH.0));
    pair.define_users();
    let flags = [(); 2].map(|()| Arc::new(WatchFlag::default()));
    let mut scratch = Scratch::default();
    let mut tx = pair.follower.begin(Locks::None, &mut scratch, 1000);
    assert!(tx.lock_spaces(pair.follower.spaces.catalog_to_keep(), &[512]));
    tx.watch_tuple(512, b"user:7", &flags[0]);
    tx.watch_tuple(512, b"user:8", &flags[1]);
    tx.commit(|_| unreachable!());
    let heard = pair.run(|tx| {
        tx.put_string(0, tx.key(b"k"), b"v", 0);
        let catalog = tx.keyspace().spaces.catalog_to_keep();
        assert!(tx.lock_spaces(catalog, &[512]));
        tx.write_tuple(512, Statement::Insert(&user(7, 70))).unwrap();
        tx.write_tuple(512, Statement::Insert(&user(9, 90))).unwrap();
        // Its number is free again within the transaction.
        tx.write_tuple(512, Statement::Replace(&user(9, 91))).unwrap();
        tx.write_tuple(512, Statement::Insert(&user(10, 90))).unwrap();
    });
    let tuples = ["0 hset user:7", "0 hset user:9", "0 hset user:9", "0 hset user:10"];
    assert_eq!(heard, ["0 set k", tuples[0], tuples[1], tuples[2], tuples[3]]);
    assert_eq!(flags.map(|flag| flag.is_touched()), [true, false]);
    assert_eq!(dump(&pair.follower), dump(&pair.leader));
    let (_, changed) = pair.follower.spaces.catalog().read(512, |_| Ok(()));
    assert_eq!(changed, Lsn(pair.lsn), "a reply depends on the record");
}

#[test]
fn a_record_of_spaces_that_contradicts_the_data_is_refused() {
    let mut pair = Pair::new(EventClass::NONE);
    pair.define_users();
    let encoded = |changes: &[Change<'_>]| {
        let mut bytes = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut bytes));
        bytes
    };
    let put = |tuple: &[u8]| encoded(&[Change::SpacePut { space: 512, tuple }]);
    pair.follow(&put(&user(1, 10))).unwrap();
    let refused = |pair: &mut Pair, record: &[u8], expected: &str| {
        let version = pair.follower.spaces.version();
        let error = pair.follow(record).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(pair.follower.spaces.version(), version);
    };
    refused(&mut pair, &put(&user(2, 10)), "Duplicate key exists in unique index \"i1\"");
    refused(&mut pair, &put(&array(&[&number(1)])), "space 512");
    let key = &array(&[&number(5)]);
    let missing = encoded(&[Change::SpaceDelete { space: 512, key }]);
    refused(&mut pair, &missing, "has no tuple with a key that was deleted");
    let nowhere = encoded(&[Change::SpaceDelete { space: 600, key }]);
    refused(&mut pair, &nowhere, "space 600");
    let index = index_tuple(512, 2, "tree", true, 1);
    let definition = Change::SpacePut { space: system::INDEX, tuple: &index };
    let tuple = &user(3, 30);
    let mixed = encoded(&[definition, Change::SpacePut { space: 512, tuple }]);
    refused(&mut pair, &mixed, "a definition beside changes of data");
    let again = index_tuple(600, 0, "tree", true, 1);
    let again = encoded(&[Change::SpacePut { space: system::INDEX, tuple: &again }]);
    refused(&mut pair, &again, "Space '600' does not exist");
}

/// What threads have compiled of a library goes when another one has its name.
#[test]
fn a_library_that_is_replaced_is_gone() {
    let mut pair = Pair::new(EventClass::NONE);
    let library = |code: &str| {
        let function = FunctionFacts { name: b"f".to_vec(), ..FunctionFacts::default() };
        let body = LibraryBody { code: code.into(), functions: vec![function] };
        Arc::new(Library::new(b"lib", body))
    };
    let found = |pair: &Pair| {
        let mut scratch = Scratch::default();
        let mut tx = pair.follower.begin(Locks::One(pair.follower.hash(b"any")), &mut scratch, 1);
        let (library, _) = tx.library_with_function(b"F")?;
        assert_eq!(tx.libraries().len(), 1);
        assert_eq!(tx.commit(|_| unreachable!()).0, Lsn(pair.lsn), "a reply depends on it");
        Some(library)
    };
    pair.run(|tx| tx.put_library(library("one")));
    let first = found(&pair).unwrap();
    assert!(!first.is_gone());
    pair.run(|tx| tx.put_library(library("two")));
    let second = found(&pair).unwrap();
    assert!(first.is_gone() && second.body.code == b"two");
    pair.run(|tx| tx.flush_libraries());
    assert!(second.is_gone() && found(&pair).is_none());
}
