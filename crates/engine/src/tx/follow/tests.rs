//! Random transactions of one node, which another one follows while clients read there, with a
//! clock of its own. It shows what has not expired by that clock, and has what the first one has.

use crate::object::Object;
use crate::table::entry::ValueRef;
use crate::tx::abort::tests::{Op, changes, elements, keyspace, name};
use crate::tx::{Scratch, Tx};
use crate::types::hash::HashValue;
use crate::types::set::SetValue;
use crate::types::stream::{Memory, StreamId};
use crate::types::{self};
use crate::{Keyspace, Locks, PARTITIONS, Recovering, SaveCursor, SavedBytes};
use ladon_record::{DbId, LibraryBody, Lsn};
use ladon_testkit::Random;
use std::collections::BTreeMap;

/// Of the node that is followed, at first.
const BEGIN_MS: u64 = 100_000;
/// By how much the follower's clock is ahead, at most.
const AHEAD_MS: u64 = 400_000;
const KEYS: u8 = 4;
const DATABASES: u16 = 2;

/// Type, elements, and when the key expires.
type Value = (&'static str, Vec<Vec<u8>>, u64);

#[derive(Debug, PartialEq)]
struct Data {
    keys: BTreeMap<(DbId, Vec<u8>), Value>,
    libraries: BTreeMap<Box<[u8]>, LibraryBody>,
    select: Vec<DbId>,
}

/// All that a keyspace has, hidden or not.
fn data(keyspace: &Keyspace) -> Data {
    let mut keys = BTreeMap::new();
    for partition in 0..PARTITIONS {
        let held = keyspace.try_lock(partition).expect("nobody else is here");
        for (db, database) in (0..).zip(&held.dbs) {
            database.table.for_each(|entry| {
                let mut found = elements(keyspace, entry);
                if entry.object().is_some_and(|object| !object.is_ordered()) {
                    found.sort();
                }
                let kind = types::kind_of(entry.value()).name();
                keys.insert((db, entry.key().to_vec()), (kind, found, entry.expire_at()));
            });
        }
    }
    let libraries = keyspace.libraries.all().into_iter();
    let libraries = libraries.map(|found| (found.name.clone(), found.body.clone())).collect();
    Data { keys, libraries, select: (0..DATABASES).map(|n| keyspace.select(n)).collect() }
}

fn saved_and_loaded(from: &Keyspace) -> Keyspace {
    let loaded = keyspace(false);
    let recovering = Recovering::new(&loaded, 0);
    let mut cursor = SaveCursor::in_pieces_of(2);
    let mut changes = SavedBytes::default();
    while let Some(block) = from.save_next(&mut cursor, Lsn::ZERO, || Lsn(1 << 50), &mut changes) {
        recovering.block(&block, &changes.whole()).expect("what was saved loads");
        changes.clear(0);
    }
    let (lsn, map) = from.encode_select_map(|| Lsn(1));
    recovering.select_map(lsn, &map).expect("a map");
    drop(recovering);
    loaded
}

/// What a reader sees of a value is what has not expired by his clock.
fn check_shown(tx: &mut Tx<'_>, db: DbId, bytes: &[u8], now_ms: u64) {
    let hasher = tx.keyspace().hasher();
    let key = tx.key(bytes);
    let Some(entry) = tx.peek(db, key) else { return };
    assert!(entry.expire_at() == 0 || entry.expire_at() > now_ms, "an expired key");
    let ValueRef::Object(object) = entry.value() else { return };
    let (mut shown, mut total, mut due) = (0, 0, 0);
    let mut count = |at: u64| {
        total += 1;
        due += usize::from(at != 0 && at <= now_ms);
    };
    match object {
        Object::Hash(hash) => {
            hash.all_fields().for_each(|field| count(field.expire_at));
            for field in hash.fields() {
                assert!(field.expire_at == 0 || field.expire_at > now_ms, "an expired field");
                assert!(hash.get(hasher, field.name).is_some());
                shown += 1;
            }
            assert_eq!(shown, HashValue::len(hash));
            assert!(hash.all_fields().all(|field| {
                let is_due = field.expire_at != 0 && field.expire_at <= now_ms;
                hash.get(hasher, field.name).is_none() == is_due
            }));
        }
        Object::Set(set) => {
            object.for_each(|parts| {
                let at = parts.get(1).map_or(0, |at| str::from_utf8(at).unwrap().parse().unwrap());
                count(at);
                assert_eq!(set.contains(hasher, parts[0]), at == 0 || at > now_ms);
            });
            set.members().for_each(|_| shown += 1);
            assert_eq!(shown, SetValue::len(set));
        }
        _ => return,
    }
    assert!(shown > 0, "a value of which all has expired");
    assert_eq!(shown, total - due);
}

fn change(tx: &mut Tx<'_>, random: &mut Random) {
    let op: Op = (
        random.below(38) as u8,
        random.below(u64::from(KEYS)) as u8,
        random.below(u64::from(KEYS)) as u8,
        random.next_u64() as u16,
        random.next_u64() as u16,
    );
    match op.0 {
        // A flush, or an exchange: less often.
        25 | 26 if !random.chance(1, 6) => {}
        0..35 => changes::run(tx, op),
        // A value that is stored as a whole is the only change of its transaction.
        _ if tx.scratch.stored.is_some() => {}
        _ => {
            let (db, name) = (DbId::from(op.3.is_multiple_of(2)), name(op.1));
            let now_ms = tx.now_ms();
            let memory = Memory { duration_s: 60 + u64::from(op.3 % 2) * 600, ids_max: 4 };
            let _ = tx.stream_upsert(db, tx.key(&name), |stream| {
                let last = stream.last_id();
                let id = StreamId::new(now_ms.max(last.ms + 1), 0);
                stream.add(id, &[b"field", b"value"]);
                stream.remember(memory, &name, &id.ms.to_le_bytes());
            });
        }
    }
}

/// A leader and its follower.
struct Pair {
    leader: Keyspace,
    follower: Keyspace,
    scratches: [Scratch; 2],
    now_ms: u64,
    ahead_ms: i64,
    lsn: u64,
}

impl Pair {
    fn new(canary: bool) -> Pair {
        let (leader, follower) = (keyspace(false), keyspace(false));
        follower.set_follower(true);
        let reader = Scratch { replica_expires_canary: canary, ..Scratch::default() };
        let scratches = [Scratch::default(), reader];
        Pair { leader, follower, scratches, now_ms: BEGIN_MS, ahead_ms: 0, lsn: 0 }
    }

    fn followers_ms(&self) -> u64 {
        self.now_ms.saturating_add_signed(self.ahead_ms)
    }

    /// A transaction of the leader, which is followed at once.
    fn lead(&mut self, work: impl FnOnce(&mut Tx<'_>)) -> Result<(), String> {
        let [scratch, followers] = &mut self.scratches;
        let mut record = Vec::new();
        let mut tx = self.leader.begin(Locks::All, scratch, self.now_ms);
        work(&mut tx);
        self.lsn += 1;
        let lsn = Lsn(self.lsn);
        tx.commit(|changes| {
            record = changes.changes().into_owned();
            lsn
        });
        if record.is_empty() {
            return Ok(());
        }
        let now_ms = self.now_ms.saturating_add_signed(self.ahead_ms);
        let followed = self.follower.follow(lsn, &record, followers, now_ms);
        followed.map(drop).map_err(|error| error.to_string())
    }

    /// A client of the follower reads.
    fn read(&mut self, random: &mut Random) {
        let now_ms = self.followers_ms();
        let is_canary = self.scratches[1].replica_expires_canary;
        let mut tx = self.follower.begin(Locks::All, &mut self.scratches[1], now_ms);
        for _ in 0..random.below(6) {
            let (db, name) = (random.below(2) as DbId, name(random.below(KEYS.into()) as u8));
            let key = tx.key(&name);
            match random.below(4) {
                0 => drop(tx.read(db, key)),
                1 => drop(tx.expire_ahead(db, key, 1 + random.below(3) as usize)),
                2 => drop(tx.expire_due(crate::partition_of(key.hash), 9)),
                _ => check_shown(&mut tx, db, &name, now_ms),
            }
        }
        tx.commit(|_| {
            assert!(is_canary, "a reader changes nothing");
            Lsn(self.lsn)
        });
    }

    fn check_accounts(&mut self) {
        for (keyspace, scratch) in [&self.leader, &self.follower].into_iter().zip(&self.scratches) {
            let mut own = Scratch::default();
            let mut tx = keyspace.begin(Locks::All, &mut own, self.now_ms);
            let counted: u64 = (0..DATABASES).map(|db| tx.recount(db)).sum();
            assert_eq!(counted as i64, scratch.counters.bytes_delta, "memory is accounted for");
            #[cfg(debug_assertions)]
            tx.check_all();
        }
    }
}

fn check(seed: u64, canary: bool) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(canary);
    for _ in 0..random.below(60) {
        if random.chance(1, 4) {
            pair.ahead_ms = random.below(AHEAD_MS) as i64 - (AHEAD_MS / 8) as i64;
        }
        pair.now_ms += random.below(8_000);
        pair.lead(|tx| (0..=random.below(3)).for_each(|_| change(tx, &mut random)))?;
        pair.read(&mut random);
        if random.chance(1, 8) {
            let [leaders, followers] = [&pair.leader, &pair.follower].map(data);
            if leaders != followers {
                return Err(format!("{followers:?} follows {leaders:?}"));
            }
            assert_eq!(data(&saved_and_loaded(&pair.follower)), followers, "a checkpoint");
            pair.check_accounts();
        }
    }
    // The follower leads, and everything that has a time expires.
    let [leaders, followers] = [&pair.leader, &pair.follower].map(data);
    if leaders != followers {
        return Err(format!("{followers:?} follows {leaders:?}"));
    }
    pair.follower.set_follower(false);
    let end_ms = [pair.now_ms, 250_000, 1 << 41][random.below(3) as usize].max(pair.now_ms);
    for (keyspace, scratch) in [&pair.leader, &pair.follower].into_iter().zip(&mut pair.scratches) {
        for partition in 0..PARTITIONS {
            let mut tx = keyspace.begin(Locks::Partition(partition), scratch, end_ms);
            tx.expire_due(partition, usize::MAX);
            tx.commit(|_| Lsn(pair.lsn + 1));
            assert!(keyspace.next_due(partition) > end_ms, "all of it is gone");
        }
    }
    pair.check_accounts();
    let [leaders, followers] = [&pair.leader, &pair.follower].map(data);
    if leaders == followers { Ok(()) } else { Err(format!("{followers:?} is not {leaders:?}")) }
}

#[test]
fn a_follower_has_what_it_follows_whatever_its_clock() {
    let seeds = if cfg!(miri) { 2 } else { 400 };
    for seed in 0..seeds {
        check(seed, false).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// The test above would notice.
#[test]
fn a_follower_that_removes_what_has_expired_is_caught() {
    assert!((0..300).any(|seed| check(seed, true).is_err()));
}
