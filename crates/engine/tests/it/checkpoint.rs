//! Fuzzy checkpoints: whatever happens while one is made, its blocks and pieces with the records
//! since its begin give back the final keyspace.

use crate::check;
use ladon_engine::types::list::End;
use ladon_engine::types::sorted_set::SortedSet;
use ladon_engine::{
    Key, Keyspace, KeyspaceOptions, Library, Locks, Recovering, SaveCursor, SavedBlock, SavedBytes,
    Scratch, Tx, ValueRef,
};
use ladon_record::{Change, Changes, DbId, FunctionFacts, LibraryBody, Lsn};
use ladon_testkit::Random;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 3 })
}

/// What a keyspace holds.
fn dump(keyspace: &Keyspace) -> check::Dump {
    let found = check::dump(keyspace);
    assert!(found.values().all(|(_, parts, _)| !parts.is_empty()), "an empty value");
    found
}

/// A keyspace with its log.
struct Node {
    keyspace: Keyspace,
    records: RefCell<Vec<(Lsn, Vec<u8>)>>,
    scratch: RefCell<Scratch>,
    /// Is given each record; how many it has.
    follower: Keyspace,
    followed: Cell<usize>,
    followers_scratch: RefCell<Scratch>,
}

impl Node {
    fn new() -> Node {
        let (records, scratch) = (RefCell::default(), RefCell::default());
        let (follower, followers_scratch) = (keyspace(), RefCell::default());
        Node {
            keyspace: keyspace(),
            records,
            scratch,
            follower,
            followed: Cell::new(0),
            followers_scratch,
        }
    }

    fn reserved(&self) -> Lsn {
        self.records.borrow().last().map_or(Lsn::ZERO, |(lsn, _)| *lsn)
    }

    fn run(&self, work: impl FnOnce(&mut Tx<'_>)) {
        self.run_at(1000, work);
    }

    fn run_at(&self, now_ms: u64, work: impl FnOnce(&mut Tx<'_>)) {
        let mut scratch = self.scratch.borrow_mut();
        let mut tx = self.keyspace.begin(Locks::All, &mut scratch, now_ms);
        work(&mut tx);
        tx.commit(|record| {
            let changes = record.changes();
            let lsn = Lsn(self.reserved().0 + changes.len() as u64);
            self.records.borrow_mut().push((lsn, changes.to_vec()));
            lsn
        });
        let scratch = &mut *self.followers_scratch.borrow_mut();
        let records = self.records.borrow();
        for (lsn, changes) in &records[self.followed.replace(records.len())..] {
            self.follower.follow(*lsn, changes, scratch, FOLLOWED_MS).unwrap();
            self.follower.add_used_bytes(std::mem::take(&mut scratch.counters.bytes_delta));
            scratch.garbage.clear();
        }
    }
}

fn names(prefix: &str, range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(|n| format!("{prefix}{n}").into_bytes()).collect()
}

fn slices(names: &[Vec<u8>]) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
    names.iter().map(Vec::as_slice)
}

const KEYS: u64 = 12;
const MEMBERS: u64 = 6000;

/// Gives members scores that depend on `draw`.
fn set_scores(tx: &mut Tx<'_>, db: DbId, key: Key<'_>, members: &[Vec<u8>], draw: u64) {
    let _ = tx.sorted_set_upsert(db, key, (members.len(), 1), |set| {
        for (index, member) in members.iter().enumerate() {
            let score = (draw.wrapping_mul(2 * index as u64 + 1) >> 40) as f64;
            set.update(member, |_| Some(score));
        }
    });
}

/// Something happens to some sorted set; they mostly stay large.
fn change_sorted_set(node: &Node, random: &mut Random) {
    let (a, b) = (random.below(KEYS / 3), random.below(KEYS / 3));
    let (a, b) = (format!("sorted{a}").into_bytes(), format!("sorted{b}").into_bytes());
    let number = random.below(2) as u16;
    let choice = random.below(40);
    let from = random.below(MEMBERS);
    let some = names("m", from..from + 1 + random.below(40));
    let draw = random.next_u64();
    node.run(|tx| {
        let db = tx.keyspace().select(number);
        let (key, other) = (tx.key(&a), tx.key(&b));
        match choice {
            0..18 => set_scores(tx, db, key, &some, draw),
            18..30 => {
                let _ = tx.sorted_set_remove(db, key, slices(&some));
            }
            30..34 => {
                let ranks = |set: &SortedSet| {
                    let from = (draw % set.len() as u64) as usize;
                    from..(from + some.len()).min(set.len())
                };
                let _ = tx.sorted_set_remove_ranks(db, key, ranks, |_, _| {});
            }
            34 => {
                tx.delete(db, key);
                set_scores(tx, db, key, &names("m", 0..from), draw);
            }
            35 if a != b => {
                tx.rename(db, key, db, other);
            }
            36 if a != b => {
                tx.copy(db, key, db, other);
            }
            37 => {
                tx.delete(db, key);
            }
            _ => set_scores(tx, db, key, &names("m", 0..from), draw),
        }
    });
}

/// Something happens to some list; they mostly stay long.
fn change_list(node: &Node, random: &mut Random) {
    let (a, b) = (random.below(KEYS / 3), random.below(KEYS / 3));
    let (a, b) = (format!("list{a}").into_bytes(), format!("list{b}").into_bytes());
    let number = random.below(2) as u16;
    let choice = random.below(40);
    let from = random.below(MEMBERS);
    let some = names("m", from..from + 1 + random.below(40));
    let draw = random.next_u64();
    let (end, other_end) =
        if draw.is_multiple_of(2) { (End::Front, End::Back) } else { (End::Back, End::Front) };
    node.run(|tx| {
        let db = tx.keyspace().select(number);
        let (key, other) = (tx.key(&a), tx.key(&b));
        match choice {
            0..10 => {
                let _ = tx.list_push(db, key, end, slices(&some));
            }
            10..18 => {
                let _ = tx.list_pop(db, key, end, some.len(), |_| (), |(), _| {});
            }
            18..22 => {
                let _ = tx.list_rotate(db, key, end, other_end);
            }
            22..26 => {
                let index = |len: usize| Some((draw % len as u64) as usize);
                let _ = tx.list_set(db, key, index, &some[0]);
            }
            26..30 => {
                let _ = tx.list_insert(db, key, draw.is_multiple_of(3), &some[0], b"inserted");
            }
            30..33 => {
                let _ = tx.list_remove(db, key, end, 2, &some[0]);
            }
            33 => {
                let _ = tx.list_trim(db, key, |len| len / 10..len - len / 20);
            }
            34 if a != b => {
                tx.rename(db, key, db, other);
            }
            35 if a != b => {
                tx.copy(db, key, db, other);
            }
            36 => {
                tx.delete(db, key);
            }
            _ => {
                let _ = tx.list_push(db, key, end, slices(&names("m", 0..from)));
            }
        }
    });
}

/// Something happens to some library of functions.
fn change_library(node: &Node, random: &mut Random) {
    let name = format!("library{}", random.below(4)).into_bytes();
    // Functions change hands.
    let function = format!("function{}", random.below(5)).into_bytes();
    let (choice, code) = (random.below(12), vec![b'x'; random.below(90_000) as usize]);
    node.run(|tx| match choice {
        0 => tx.flush_libraries(),
        1..4 => {
            tx.delete_library(&name);
        }
        _ => {
            if let Some((owner, _)) = tx.library_with_function(&function) {
                tx.delete_library(&owner.name);
            }
            let facts = FunctionFacts { name: function, ..FunctionFacts::default() };
            let body = LibraryBody { code, functions: vec![facts] };
            tx.put_library(Arc::new(Library::new(&name, body)));
        }
    });
}

/// The libraries, and who has which function.
fn libraries(keyspace: &Keyspace) -> Vec<(Vec<u8>, LibraryBody, Vec<u8>)> {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    let mut found = Vec::new();
    for library in tx.libraries() {
        let function = &library.body.functions[0].name;
        let (owner, _) = tx.library_with_function(function).expect("its function is known");
        found.push((library.name.to_vec(), library.body.clone(), owner.name.to_vec()));
    }
    assert_eq!(tx.library_counts().functions, found.len());
    found
}

/// Something happens to some key; sets mostly stay large.
fn change(node: &Node, random: &mut Random) {
    if random.below(20) == 0 {
        return change_library(node, random);
    }
    match random.below(5) {
        0 => return change_sorted_set(node, random),
        1 => return change_list(node, random),
        2 if random.below(6) == 0 => return change_times(node, random),
        _ => {}
    }
    let (a, b) = (random.below(KEYS), random.below(KEYS));
    let (a, b) = (format!("key{a}").into_bytes(), format!("key{b}").into_bytes());
    let (number, choice) = (random.below(2) as u16, random.below(100));
    let from = random.below(MEMBERS);
    let some = names("m", from..from + 1 + random.below(40));
    let draw = random.next_u64();
    node.run(|tx| {
        let db = tx.keyspace().select(number);
        let (key, other) = (tx.key(&a), tx.key(&b));
        // A key of another type refuses what is meant for one, which is as good.
        if draw.is_multiple_of(2) && matches!(choice, 0..72 | 98..) {
            change_hash(tx, db, key, choice, &some, draw);
            return;
        }
        match choice {
            0..30 => {
                let _ = tx.set_add(db, key, slices(&some));
            }
            30..55 => {
                let _ = tx.set_remove(db, key, slices(&some));
            }
            55..65 => {
                let mut draws = Random::new(draw);
                let _ = tx.set_pop(db, key, some.len(), || draws.next_u64(), |_| {});
            }
            65..72 => {
                tx.delete(db, key);
                let _ = tx.set_add(db, key, slices(&names("m", 0..from)));
            }
            72..76 => {
                tx.delete(db, key);
            }
            76..80 => tx.put_string(db, key, &some[0], 0),
            80..86 => {
                tx.set_expire(db, key, if draw.is_multiple_of(3) { 0 } else { 5000 + draw % 1000 });
            }
            86..90 if a != b => {
                tx.rename(db, key, db, other);
            }
            90..93 if a != b => {
                tx.copy(db, key, db, other);
            }
            93 => tx.flush(db),
            94 => tx.swap(0, 1),
            // Many small keys come and go, so that the tables of keys split and merge.
            95 => {
                for name in names("small", 0..3000) {
                    tx.put_string(db, tx.key(&name), b"v", 0);
                }
            }
            96..98 => {
                for name in names("small", 0..3000) {
                    tx.delete(db, tx.key(&name));
                }
            }
            // Members by the thousand, for the same in a set's table.
            98 => {
                let _ = tx.set_add(db, key, slices(&names("m", 0..MEMBERS)));
            }
            _ => {
                let _ = tx.set_remove(db, key, slices(&names("m", from / 2..from)));
            }
        }
    });
}

/// Members of a set get or lose times; most sets never have any.
fn change_times(node: &Node, random: &mut Random) {
    let key = format!("key{}", 4 * random.below(KEYS / 4)).into_bytes();
    let expire_at = [0, 2000 + random.below(1000)][usize::from(random.below(4) > 0)];
    let from = random.below(MEMBERS);
    let some = names("m", from..from + 1 + random.below(40));
    let (number, puts) = (random.below(2) as u16, random.below(3) == 0);
    node.run(|tx| {
        let db = tx.keyspace().select(number);
        let members: Vec<&[u8]> = slices(&some).collect();
        let _ = tx.edit_or_create_set(db, tx.key(&key), &members, |edit| {
            for member in &members {
                match puts {
                    true => edit.put(member, expire_at),
                    false => edit.set_expiry(member, expire_at),
                };
            }
        });
    });
}

/// Something happens to a hash, if there is none of another type.
fn change_hash(tx: &mut Tx<'_>, db: DbId, key: Key<'_>, choice: u64, some: &[Vec<u8>], draw: u64) {
    let value = draw.to_string().into_bytes();
    let expire_at = 2000 + draw % 1000;
    let all = names("m", 0..MEMBERS);
    let _ = tx.edit_or_create_hash(db, key, &[], |edit| match choice {
        0..30 => some.iter().for_each(|name| {
            edit.set(name, &value, if draw.is_multiple_of(3) { expire_at } else { 0 });
        }),
        30..50 => some.iter().for_each(|name| {
            edit.remove(name);
        }),
        50..65 => some.iter().for_each(|name| {
            edit.set_expiry(name, if draw.is_multiple_of(3) { 0 } else { expire_at });
        }),
        65..72 => all.iter().step_by(3).for_each(|name| {
            edit.remove(name);
        }),
        _ => all.iter().for_each(|name| {
            edit.set(name, &value[..draw as usize % value.len()], 0);
        }),
    });
}

/// How often what the test is about came to pass.
#[derive(Default)]
struct Seen {
    pieces: usize,
    begun: usize,
    ended: usize,
    libraries: usize,
}

/// Makes large values.
fn fill(node: &Node) {
    for number in 0..KEYS / 2 {
        let key = format!("key{number}").into_bytes();
        node.run(|tx| {
            let members = names("m", 0..MEMBERS / (number + 1));
            if number.is_multiple_of(2) {
                tx.set_add(0, tx.key(&key), slices(&members)).unwrap();
            } else {
                tx.edit_or_create_hash(0, tx.key(&key), &[], |edit| {
                    members.iter().for_each(|name| {
                        edit.set(name, b"v", 0);
                    });
                })
                .unwrap();
            }
            let sorted = format!("sorted{number}").into_bytes();
            set_scores(tx, 0, tx.key(&sorted), &members, number + 99);
            let list = format!("list{number}").into_bytes();
            tx.list_push(0, tx.key(&list), End::Back, slices(&members)).unwrap();
        });
    }
}

fn run(seed: u64, seen: &mut Seen) {
    let mut random = Random::new(seed);
    let node = Node::new();
    fill(&node);
    for _ in 0..random.below(60) {
        change(&node, &mut random);
    }
    let begin = node.reserved();
    let mut cursor = SaveCursor::in_pieces_of(300);
    let mut blocks: Vec<(SavedBlock, Vec<u8>)> = Vec::new();
    let pace = 1 + random.below(8);
    loop {
        if random.below(pace) == 0 {
            change(&node, &mut random);
        }
        let mut out = SavedBytes::default();
        let saved = node.keyspace.save_next(&mut cursor, begin, || node.reserved(), &mut out);
        let Some(block) = saved else { break };
        let out = out.whole();
        let first = Changes::new(&out).next();
        if matches!(first, Some(Ok(Change::Library { .. }))) {
            seen.libraries += 1;
            // The next block is as of the same moment.
            for _ in 0..random.below(3) {
                change_library(&node, &mut random);
            }
        } else if block.keys == 0 && !out.is_empty() {
            seen.pieces += 1;
            seen.begun += usize::from(block.hash_first == 0);
            seen.ended += usize::from(block.hash_last == u64::MAX);
            // More of it while a set is half saved.
            for _ in 0..random.below(3) {
                change(&node, &mut random);
            }
        }
        blocks.push((block, out));
    }
    for _ in 0..random.below(20) {
        change(&node, &mut random);
    }
    // Blocks load in any order.
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, random.below(at as u64 + 1) as usize);
    }
    let restored = keyspace();
    let recovering = Recovering::new(&restored, RESTORED_MS);
    for (block, changes) in &blocks {
        recovering.block(block, changes).unwrap();
    }
    let (lsn, map) = node.keyspace.encode_select_map(|| node.reserved());
    recovering.select_map(lsn, &map).unwrap();
    let workers = 1 + random.below(3) as usize;
    for worker in 0..workers {
        for (lsn, changes) in node.records.borrow().iter().filter(|(lsn, _)| *lsn > begin) {
            recovering.replay((worker, workers)).record(*lsn, changes).unwrap();
        }
    }
    assert!(dump(&restored) == dump(&node.keyspace), "seed {seed}: the keyspaces differ");
    assert!(libraries(&restored) == libraries(&node.keyspace), "seed {seed}: the libraries differ");
    assert_eq!(restored.library_bytes(), node.keyspace.library_bytes());
    assert!(dump(&node.follower) == dump(&node.keyspace), "seed {seed}: the follower differs");
    assert!(libraries(&node.follower) == libraries(&node.keyspace), "seed {seed}: the libraries");
    let counted = node.follower.used_bytes();
    assert_eq!(counted, freed_by_flushing(&node.follower), "seed {seed}: the follower's memory");
    assert_eq!(longest_idle(&restored), 0, "seed {seed}: what was loaded counts as used then");
    let counted = restored.used_bytes();
    assert_eq!(counted, freed_by_flushing(&restored), "seed {seed}: memory is accounted for");
}

/// When the follower is given records: to its clock, much has expired that has not to the other's.
const FOLLOWED_MS: u64 = 5500;

/// When the copies are loaded.
const RESTORED_MS: u64 = 500_000_000;

/// For how many seconds some key has not been used when all have just been loaded.
fn longest_idle(keyspace: &Keyspace) -> u32 {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    let now = keyspace.access_rules().at(RESTORED_MS);
    let mut longest = 0;
    for db in 0..keyspace.databases() {
        tx.for_each(db, |entry| longest = longest.max(now.idle_seconds(entry.access())));
    }
    longest
}

fn freed_by_flushing(keyspace: &Keyspace) -> u64 {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    for db in 0..keyspace.databases() {
        tx.flush(db);
    }
    tx.commit(|_| Lsn(u64::MAX));
    scratch.counters.bytes_delta.unsigned_abs()
}

#[test]
fn a_checkpoint_and_the_log_give_back_what_was_there() {
    let mut seen = Seen::default();
    for seed in 1..=40 {
        run(seed, &mut seen);
    }
    assert!(seen.pieces > 1000, "only {} pieces", seen.pieces);
    assert!(seen.libraries > 20, "only {} blocks of libraries", seen.libraries);
    assert!(seen.begun > seen.ended, "every set stayed until it was saved");
}

/// No step of the saver encodes more than a few thousand members, however large a set is.
#[test]
fn a_large_set_is_saved_in_small_steps() {
    let node = Node::new();
    let members = names("member:", 0..300_000);
    node.run(|tx| {
        tx.set_add(0, tx.key(b"large"), slices(&members)).unwrap();
    });
    let mut cursor = SaveCursor::default();
    let (mut steps, mut longest) = (0, 0);
    let mut out = SavedBytes::default();
    while node.keyspace.save_next(&mut cursor, Lsn::ZERO, || node.reserved(), &mut out).is_some() {
        longest = longest.max(out.whole().len());
        steps += 1;
        out.clear(0);
    }
    let member_bytes = 1 + members[299_999].len();
    assert!(longest < 2 * 2048 * member_bytes, "{longest} bytes in one step");
    assert!(steps > 100, "{steps} steps");
}

/// All blocks of a checkpoint that is made now.
fn saved(node: &Node) -> Vec<(SavedBlock, Vec<u8>)> {
    let mut cursor = SaveCursor::default();
    let begin = node.reserved();
    let mut blocks = Vec::new();
    loop {
        let mut out = SavedBytes::default();
        let saved = node.keyspace.save_next(&mut cursor, begin, || node.reserved(), &mut out);
        let Some(block) = saved else { return blocks };
        blocks.push((block, out.whole()));
    }
}

/// What the blocks and the records after `begin` give.
fn restored(node: &Node, blocks: &[(SavedBlock, Vec<u8>)], begin: Lsn) -> Keyspace {
    let restored = keyspace();
    let recovering = Recovering::new(&restored, RESTORED_MS);
    for (block, changes) in blocks {
        recovering.block(block, changes).unwrap();
    }
    for (lsn, changes) in node.records.borrow().iter().filter(|(lsn, _)| *lsn > begin) {
        recovering.replay((0, 1)).record(*lsn, changes).unwrap();
    }
    drop(recovering);
    restored
}

/// Fields that went while nothing could be logged went without a record once: a reader of the
/// log then had them still.
#[test]
#[expect(clippy::too_many_lines, reason = "one story with five ends")]
fn what_expired_while_nothing_could_be_logged_is_logged_later() {
    type After<'a> = (&'a str, &'a dyn Fn(&Node));
    let after: [After<'_>; 5] = [
        ("a tick", &|node| {
            node.run_at(3000, |tx| {
                let hash = tx.key(b"part").hash;
                tx.expire_due(ladon_engine::partition_of(hash), 64);
                let hash = tx.key(b"all").hash;
                tx.expire_due(ladon_engine::partition_of(hash), 64);
            });
        }),
        ("a new value of the field", &|node| {
            for key in [b"part" as &[u8], b"all"] {
                node.run_at(3000, |tx| {
                    let key = tx.key(key);
                    tx.edit_or_create_hash(0, key, &[], |edit| edit.set(b"soon", b"new", 0))
                        .unwrap();
                });
            }
        }),
        ("the end of the key", &|node| {
            node.run_at(3000, |tx| {
                tx.delete(0, tx.key(b"part"));
                tx.set_add(0, tx.key(b"all"), [b"a set" as &[u8]].into_iter()).unwrap();
            });
        }),
        ("no data at all", &|node| node.run_at(3000, |tx| tx.flush(0))),
        ("another name", &|node| {
            node.run_at(3000, |tx| {
                tx.rename(0, tx.key(b"part"), 1, tx.key(b"all"));
            });
        }),
    ];
    for (what, after) in after {
        let node = Node::new();
        for (key, lasting) in [(b"part" as &[u8], true), (b"all", false)] {
            node.run(|tx| {
                tx.edit_or_create_hash(0, tx.key(key), &[], |edit| {
                    edit.set(b"soon", b"v", 2000);
                    edit.set(b"later", b"v", 2500);
                    if lasting {
                        edit.set(b"lasting", b"v", 0);
                    }
                })
                .unwrap();
            });
        }
        let logged = node.records.borrow().len();
        node.scratch.borrow_mut().read_only = true;
        node.run_at(2200, |tx| {
            assert!(tx.peek(0, tx.key(b"part")).is_some() && tx.peek(0, tx.key(b"all")).is_some());
        });
        node.run_at(3000, |tx| {
            let ValueRef::Object(part) = tx.peek(0, tx.key(b"part")).unwrap().value() else {
                panic!("it is a hash")
            };
            assert_eq!(part.len(), 1);
            assert!(tx.peek(0, tx.key(b"all")).is_none());
        });
        assert_eq!(node.records.borrow().len(), logged, "nothing may be logged");
        node.scratch.borrow_mut().read_only = false;
        let due = ladon_engine::partition_of(node.keyspace.hash(b"part"));
        assert!(node.keyspace.next_due(due) <= 3000, "the next tick comes by");
        let (blocks, begin) = (saved(&node), node.reserved());
        after(&node);
        // What another partition owes.
        for partition in 0..ladon_engine::PARTITIONS {
            node.run_at(3000, |tx| {
                tx.expire_due(partition, 64);
            });
        }
        assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), dump(&node.keyspace), "{what}");
        assert_eq!(dump(&restored(&node, &blocks, begin)), dump(&node.keyspace), "{what}");
    }
}

/// The same of members of a set.
#[test]
fn members_that_expired_while_nothing_could_be_logged_are_logged_later() {
    let node = Node::new();
    let times: [(&[u8], u64); 3] = [(b"soon", 2000), (b"later", 2500), (b"lasting", 0)];
    node.run(|tx| {
        for (key, members) in [(b"part" as &[u8], &times[..]), (b"all", &times[..2])] {
            tx.edit_or_create_set(0, tx.key(key), &[], |edit| {
                members.iter().for_each(|(member, at)| {
                    edit.put(member, *at);
                });
            })
            .unwrap();
        }
    });
    let logged = node.records.borrow().len();
    node.scratch.borrow_mut().read_only = true;
    node.run_at(3000, |tx| {
        let left = |value: ValueRef<'_>| match value {
            ValueRef::Object(object) => object.len(),
            _ => 0,
        };
        assert_eq!(tx.peek(0, tx.key(b"part")).map(|entry| left(entry.value())), Some(1));
        assert!(tx.peek(0, tx.key(b"all")).is_none());
    });
    assert_eq!(node.records.borrow().len(), logged, "nothing may be logged");
    node.scratch.borrow_mut().read_only = false;
    let (blocks, begin) = (saved(&node), node.reserved());
    node.run_at(3000, |tx| {
        // Before what is owed was logged, it comes again.
        tx.set_add(0, tx.key(b"part"), [b"soon" as &[u8]].into_iter()).unwrap();
    });
    for partition in 0..ladon_engine::PARTITIONS {
        node.run_at(3000, |tx| {
            tx.expire_due(partition, 64);
        });
    }
    assert_eq!(dump(&restored(&node, &[], Lsn::ZERO)), dump(&node.keyspace));
    assert_eq!(dump(&restored(&node, &blocks, begin)), dump(&node.keyspace));
}
