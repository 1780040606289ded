//! Strings with flags, marks and versions: whatever is done to them, the log, a checkpoint and a
//! follower know the flags, a version is never one that the key had before, and what is taken back was
//! not done.

use ladon_engine::types::string;
use ladon_engine::{
    ItemHead, Keyspace, KeyspaceOptions, Locks, Recovering, SaveCursor, SavedBytes, Scratch, Tx,
};
use ladon_record::{DbId, Lsn};
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

const DB: DbId = 0;
const KEYS: u64 = 6;
const NOW_MS: u64 = 1000;

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 1 })
}

fn name(key: u64) -> Vec<u8> {
    format!("key{key}").into_bytes()
}

/// A value as the log knows it: bytes, flags, whether it is stale, expiry.
type Item = (Vec<u8>, u32, bool, u64);

fn item(tx: &mut Tx<'_>, key: &[u8]) -> Option<(Item, u64)> {
    let key = tx.key(key);
    let entry = tx.peek(DB, key)?;
    let (head, expire_at) = (entry.item(), entry.expire_at());
    let bytes = string::bytes(entry.value()).expect("a string").into_owned();
    Some(((bytes, head.flags, head.stale, expire_at), head.cas))
}

fn dump(keyspace: &Keyspace) -> BTreeMap<u64, Item> {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, NOW_MS);
    let items = (0..KEYS).filter_map(|key| Some((key, item(&mut tx, &name(key))?.0))).collect();
    tx.commit(|_| Lsn::ZERO);
    items
}

fn value(random: &mut Random) -> Vec<u8> {
    let length = [0, 1, 2, 90, 3000, 17_000, 70_000, 1 << 20][random.below(8) as usize];
    match random.below(4) {
        0 => random.below(1000).to_string().into_bytes(),
        _ => vec![b'a' + random.below(26) as u8; length],
    }
}

fn change(tx: &mut Tx<'_>, random: &mut Random) {
    let (from, to) = (random.below(KEYS), random.below(KEYS));
    let (from, to) = (name(from), name(to));
    let (from, to) = (tx.key(&from), tx.key(&to));
    let expire_at = [0, 0, NOW_MS + 500_000][random.below(3) as usize];
    match random.below(12) {
        0..3 => {
            let flags = [0, 1, u32::MAX][random.below(3) as usize];
            let stale = random.chance(1, 4);
            let head = ItemHead { stale, ..ItemHead::of_flags(flags) };
            tx.put_item(DB, from, &value(random), expire_at, head);
        }
        3 => tx.put_string(DB, from, &value(random), expire_at),
        4 => drop(tx.write_string_at(DB, from, random.below(200) as usize, b"written")),
        5 => drop(tx.replace_string(DB, from, &value(random))),
        6 => drop(tx.add_to_int(DB, from, 7)),
        7 if from.bytes != to.bytes => drop(tx.rename(DB, from, DB, to)),
        8 if from.bytes != to.bytes => drop(tx.copy(DB, from, DB, to)),
        9 => drop(tx.set_expire(DB, from, expire_at)),
        10 => drop(tx.delete(DB, from)),
        _ => {
            let _ = tx.edit_string_in_place(
                DB,
                from,
                |bytes| bytes.is_empty().then_some(()),
                |bytes, written| {
                    bytes[0] ^= 1;
                    written.push(0..1);
                },
            );
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story with four ends")]
fn flags_are_wherever_the_bytes_are() {
    let mut random = Random::new(34);
    for _ in 0..6 {
        let (node, follower) = (keyspace(), keyspace());
        let (mut scratch, mut followers) = (Scratch::default(), Scratch::default());
        let mut log: Vec<(Lsn, Vec<u8>)> = Vec::new();
        let mut blocks = Vec::new();
        let mut cursor = SaveCursor::in_pieces_of(100);
        let mut versions: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for round in 0..300 {
            let before = dump(&node);
            if random.chance(1, 3) {
                let mut tx = node.begin(Locks::All, &mut scratch, NOW_MS);
                tx.make_undoable();
                for _ in 0..1 + random.below(3) {
                    change(&mut tx, &mut random);
                }
                tx.abort();
                tx.commit(|_| panic!("nothing was done"));
                assert!(dump(&node) == before, "round {round}: something is left");
            }
            let mut tx = node.begin(Locks::All, &mut scratch, NOW_MS);
            change(&mut tx, &mut random);
            tx.commit(|record| {
                let changes = record.changes().to_vec();
                let lsn = Lsn(log.last().map_or(0, |(lsn, _)| lsn.0) + changes.len() as u64);
                log.push((lsn, changes));
                lsn
            });
            // Versions are asked for, which is no change of the data.
            let after = dump(&node);
            let mut tx = node.begin(Locks::All, &mut scratch, NOW_MS);
            for key in 0..KEYS {
                let bytes = name(key);
                let at = tx.key(&bytes);
                let known = item(&mut tx, &bytes).map_or(0, |(_, cas)| cas);
                let value_before = before.get(&key).map(|item| &item.0);
                let value_after = after.get(&key).map(|item| &item.0);
                if value_before != value_after {
                    assert_eq!(known, 0, "round {round}: another value, and the version is known");
                }
                let seen = versions.entry(key).or_default();
                if let Some(cas) = tx.item_cas(DB, at) {
                    assert!(cas != 0 && (known == cas || seen.insert(cas)), "round {round}");
                }
            }
            tx.commit(|_| panic!("a version is no change"));
            assert!(dump(&node) == after);
            // A checkpoint is made meanwhile.
            if round == 100 {
                cursor = SaveCursor::in_pieces_of(100);
                blocks.clear();
            }
            let mut saved = SavedBytes::default();
            let reserved = || log.last().map_or(Lsn::ZERO, |(lsn, _)| *lsn);
            for _ in 0..4 {
                if let Some(block) = node.save_next(&mut cursor, Lsn::ZERO, reserved, &mut saved) {
                    blocks.push((block, saved.whole()));
                    saved.clear(0);
                }
            }
        }
        let reserved = || log.last().map_or(Lsn::ZERO, |(lsn, _)| *lsn);
        let mut saved = SavedBytes::default();
        while let Some(block) = node.save_next(&mut cursor, Lsn::ZERO, reserved, &mut saved) {
            blocks.push((block, saved.whole()));
            saved.clear(0);
        }
        let expected = dump(&node);
        assert!(expected.values().any(|item| item.1 != 0), "no flags to lose");
        for (lsn, changes) in &log {
            follower.follow(*lsn, changes, &mut followers, NOW_MS).expect("follows");
            follower.add_used_bytes(std::mem::take(&mut followers.counters.bytes_delta));
        }
        assert!(dump(&follower) == expected, "the follower has other data");
        for with_checkpoint in [false, true] {
            let recovered = keyspace();
            let recovering = Recovering::new(&recovered, NOW_MS);
            if with_checkpoint {
                for (block, bytes) in &blocks {
                    recovering.block(block, bytes).expect("a block");
                }
            }
            let mut replay = recovering.replay((0, 1));
            for (lsn, changes) in &log {
                replay.record(*lsn, changes).expect("a record");
            }
            drop(replay);
            recovering.finish().expect("finished");
            assert!(dump(&recovered) == expected, "with a checkpoint: {with_checkpoint}");
        }
    }
}
