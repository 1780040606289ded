//! What the fuzz target `changes` checks; the ordinary tests replay the kept corpus through the
//! same code.
//!
//! Any bytes as a run of changes, whose bodies and deltas are the fuzzer's own: per change a byte
//! of what it is, a byte for its key, a length, and that many bytes. What it is: its low three bits
//! say put, update, delete, expire, flush, swap, a checkpoint's block of one put, or a piece of
//! one; the rest is the type.
//!
//! Applying never panics. What was applied up to the first refusal is a sound keyspace: a
//! checkpoint of it loads as the same data, and memory is accounted for to the byte, before
//! everything is deleted and after. A refusal ends recovery, so that nobody reads the account after
//! one.

use ladon_engine::{
    Keyspace, KeyspaceOptions, Locks, Recovering, SaveCursor, SavedBlock, SavedBytes, Scratch,
    ValueRef, types,
};
use ladon_record::{Change, DbId, LibraryBody, Lsn, ValueKind};
use std::collections::BTreeMap;

const DATABASES: u16 = 2;
const KEYS: [&[u8]; 4] = [b"a", b"b", b"", b"a longer key that no small entry holds"];

/// One input.
pub fn check(data: &[u8]) {
    let keyspace = keyspace();
    let all_applied = apply_all(&keyspace, data, &mut |_, _| {});
    let found = dump(&keyspace);
    check_followed(data, all_applied.then_some(&found));
    let loaded = saved_and_loaded(&keyspace);
    assert_eq!(dump(&loaded), found, "a checkpoint loads as the same data");
    assert_eq!(libraries(&loaded), libraries(&keyspace), "a checkpoint loads the same libraries");
    assert_eq!(loaded.library_bytes(), keyspace.library_bytes());
    check_account(&loaded);
    if all_applied {
        check_account(&keyspace);
    }
    let recovering = Recovering::new(&keyspace, 0);
    for (db, key) in found.keys() {
        let delete = encoded(Change::Delete { db: *db, key });
        recovering.replay((0, 1)).record(Lsn(u64::MAX), &delete).expect("a key is deleted");
    }
    if all_applied {
        check_account(&keyspace);
    }
}

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: DATABASES })
}

/// What follows the same changes while clients could read comes to the same data.
fn check_followed(data: &[u8], expected: Option<&Dump>) {
    let (keyspace, followed) = (self::keyspace(), self::keyspace());
    let mut scratch = Scratch::default();
    let mut is_whole = true;
    apply_all(&keyspace, data, &mut |lsn, record| {
        // Records of spaces, and what a checkpoint has brought, cannot be followed.
        is_whole &= record.is_some_and(|record| {
            is_whole && followed.follow(lsn, record, &mut scratch, 0).is_ok()
        });
    });
    followed.add_used_bytes(std::mem::take(&mut scratch.counters.bytes_delta));
    if let Some(expected) = expected.filter(|_| is_whole) {
        assert_eq!(&dump(&followed), expected, "what is followed is what is replayed");
        check_account(&followed);
    }
}

/// Up to the first that is refused, as a start would end there; whether none was. Each record is
/// shown before it is applied, and each block.
fn apply_all(
    keyspace: &Keyspace,
    mut data: &[u8],
    show: &mut dyn FnMut(Lsn, Option<&[u8]>),
) -> bool {
    let recovering = Recovering::new(keyspace, 0);
    let mut lsn = 0;
    while let [what, key, length, rest @ ..] = data {
        let (bytes, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        data = rest;
        lsn += 1;
        let (key, db) = (KEYS[usize::from(key & 3)], DbId::from(key >> 2 & 1));
        let kind = ValueKind::from_u8(1 + (what >> 3 & 15) % 6).expect("six types");
        let hash = keyspace.hash(key).0;
        let block =
            |keys| SavedBlock { db, hash_first: hash, hash_last: hash, lsn: Lsn(lsn), keys };
        let expire_at = if what & 0x80 == 0 { 0 } else { 1 << 41 };
        let put = Change::Put { db, key, expire_at, kind, body: bytes };
        let update = Change::Update { db, key, kind, op: bytes };
        let mut record = |record: &[u8]| {
            show(Lsn(lsn), Some(record));
            recovering.replay((0, 1)).record(Lsn(lsn), record)
        };
        let applied = match what & 7 {
            0 => record(&encoded(put)),
            1 | 2 => record(&encoded(update)),
            3 => record(&encoded(Change::Delete { db, key })),
            4 => record(&encoded(Change::Expire { db, key, expire_at })),
            5 => record(bytes),
            // Blocks come before any record.
            6 | 7 if lsn == 1 => {
                show(Lsn(lsn), None);
                match what & 7 {
                    6 => recovering.block(&block(1), &encoded(put)),
                    _ => recovering.block(&block(0), &encoded(update)),
                }
            }
            _ => record(&encoded(Change::FlushDb { db })),
        };
        if applied.is_err() {
            return false;
        }
    }
    true
}

fn encoded(change: Change<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    change.encode(&mut bytes);
    bytes
}

/// Type, parts and expiry of each key.
pub type Dump = BTreeMap<(DbId, Vec<u8>), (&'static str, Vec<Vec<u8>>, u64)>;

/// What a keyspace holds.
pub fn dump(keyspace: &Keyspace) -> Dump {
    let mut found = Dump::new();
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    for db in 0..keyspace.databases() {
        tx.for_each(db, |entry| {
            let parts = match entry.value() {
                ValueRef::Object(object) => {
                    let mut elements: Vec<Vec<u8>> = Vec::new();
                    object.for_each(|parts| elements.push(parts.join(&0)));
                    if !object.is_ordered() {
                        elements.sort();
                    }
                    elements
                }
                value => vec![types::string::bytes(value).expect("a string").into_owned()],
            };
            let kind = types::kind_of(entry.value()).name();
            found.insert((db, entry.key().to_vec()), (kind, parts, entry.expire_at()));
        });
    }
    found
}

fn libraries(keyspace: &Keyspace) -> Vec<(Box<[u8]>, LibraryBody)> {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    let found = tx.libraries();
    found.iter().map(|library| (library.name.clone(), library.body.clone())).collect()
}

/// What was accounted for while the data changed is what it takes.
fn check_account(keyspace: &Keyspace) {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    let counted: u64 = (0..keyspace.databases()).map(|db| tx.recount(db)).sum();
    assert_eq!(keyspace.used_bytes(), counted, "memory is accounted for");
}

fn saved_and_loaded(keyspace: &Keyspace) -> Keyspace {
    let loaded = self::keyspace();
    let recovering = Recovering::new(&loaded, 0);
    let mut cursor = SaveCursor::in_pieces_of(8);
    let mut changes = SavedBytes::default();
    while let Some(block) = keyspace.save_next(&mut cursor, Lsn::ZERO, || Lsn(1), &mut changes) {
        recovering.block(&block, &changes.whole()).expect("what was saved loads");
        changes.clear(0);
    }
    loaded
}
