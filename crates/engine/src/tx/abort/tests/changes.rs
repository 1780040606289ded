//! The changes that transactions make: one of every kind, from a few numbers.

use super::{Op, name, word, words};
use crate::access::next_random;
use crate::key::Key;
use crate::libraries::Library;
use crate::object::Object;
use crate::partition_of;
use crate::table::entry::EntryRef;
use crate::tx::Tx;
use crate::tx::evict::Candidate;
use crate::tx::stored::Stored;
use crate::types::list::{End, ListValue};
use crate::types::set::SetValue;
use crate::types::sorted_set::SortedSet;
use ladon_record::{DbId, FunctionFacts, LibraryBody};
use std::sync::Arc;

/// What to do, spelt out.
struct Doing<'a> {
    what: u8,
    db: DbId,
    key: Key<'a>,
    other_db: DbId,
    other: Key<'a>,
    a: u16,
    b: u16,
    at: u64,
    words: &'a [Vec<u8>],
}

impl Doing<'_> {
    fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.words.iter().map(Vec::as_slice)
    }

    fn is_of_two_keys(&self) -> bool {
        (self.db, self.key.bytes) != (self.other_db, self.other.bytes)
    }
}

/// Mostly the first, for the same reason.
pub(super) fn database(n: u16) -> DbId {
    DbId::from((n >> 8).is_multiple_of(4))
}

/// Does one thing; errors (of a wrong type) are part of it.
pub(crate) fn run(tx: &mut Tx<'_>, (what, key, other, a, b): Op) {
    if tx.scratch.stored.is_some() {
        // It is the only change of its transaction.
        return;
    }
    let (name, other_name) = (name(key), name(other));
    let count = if a.is_multiple_of(2) { b % 4 } else { b % 50 };
    let doing = Doing {
        what,
        db: database(a),
        key: tx.key(&name),
        other_db: database(b),
        other: tx.key(&other_name),
        a,
        b,
        at: [0, 200_000, 300_000 + u64::from(b), 1 << 40][usize::from(a) % 4],
        words: &words(a, usize::from(count) + 1),
    };
    match what {
        0..=7 => change_string(tx, &doing),
        8..=15 => change_set_or_hash(tx, &doing),
        16..=21 => change_ordered(tx, &doing),
        32 => change_library(tx, &doing),
        33 | 34 => change_set_times(tx, &doing),
        _ => change_key(tx, &doing),
    }
}

fn change_string(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, a, b, at, words, .. } = doing;
    match what {
        0 => tx.put_string(db, key, &word(b.into()), at),
        1 => tx.put_string(db, key, &vec![b as u8; usize::from(a) * 2], at),
        2 => tx.put_grown_string(db, key, &word(b.into()), at),
        3 => {
            tx.delete(db, key);
        }
        4 => {
            tx.set_expire(db, key, at);
        }
        5 => {
            let _ = tx.add_to_int(db, key, i64::from(a));
        }
        6 => {
            let _ = tx.write_string_at(db, key, usize::from(b), &words[0]);
        }
        7 if a.is_multiple_of(3) => {
            let new = vec![a as u8; usize::from(b) % 20_000];
            let _ = tx.replace_string(db, key, &new);
        }
        7 if a.is_multiple_of(2) => {
            let _ = tx.edit_string_in_place(
                db,
                key,
                |_| None,
                |string, written| {
                    let from = string.len() / 3;
                    string[from..].fill(b as u8);
                    written.push(from..string.len());
                },
            );
        }
        _ => {
            let _ = tx.edit_string(db, key, usize::from(b) % 900, |string| {
                string.fill(a as u8);
                0..string.len()
            });
        }
    }
}

fn change_set_or_hash(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, a, b, at, words, .. } = doing;
    match what {
        8 | 9 => {
            let _ = tx.set_add(db, key, doing.slices());
        }
        10 => {
            let _ = tx.set_remove(db, key, doing.slices());
        }
        11 => {
            let mut random = u64::from(a);
            // If few stay, these are sought instead.
            let length = tx.get_value(db, key).ok().flatten().map_or(0, SetValue::len);
            let count = [1, 3, length.saturating_sub(2), 1000][usize::from(b) % 4];
            let _ = tx.set_pop(db, key, count, || next_random(&mut random), |_| {});
        }
        12 | 13 => {
            let _ = tx.edit_or_create_hash(db, key, &[], |hash| {
                for (n, field) in words.iter().enumerate() {
                    let value = word(u64::from(b) + n as u64);
                    hash.set(field, &value, if n.is_multiple_of(3) { at } else { 0 });
                }
            });
        }
        14 => {
            let fields: Vec<&[u8]> = doing.slices().collect();
            let _ = tx.edit_hash(db, key, |hash| hash.remove_all(&fields));
        }
        _ => {
            let _ = tx.edit_hash(db, key, |hash| {
                for field in words {
                    hash.set_expiry(field, at);
                }
            });
        }
    }
}

/// On a set that may have none yet.
fn change_set_times(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { db, key, b, at, words, .. } = doing;
    if b.is_multiple_of(3) {
        let members: Vec<&[u8]> = doing.slices().collect();
        let _ = tx.edit_or_create_set(db, key, &members, |set| {
            members.iter().for_each(|member| {
                set.put(member, at);
            });
        });
        return;
    }
    let _ = tx.edit_set(db, key, |set| {
        for (n, member) in words.iter().enumerate() {
            match (usize::from(b) + n) % 4 {
                0 => set.remove(member),
                _ => set.set_expiry(member, at),
            };
        }
    });
}

fn change_ordered(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, a, b, words, .. } = doing;
    let end = |bit: u16| if bit.is_multiple_of(2) { End::Front } else { End::Back };
    match what {
        16 => {
            let _ = tx.list_push(db, key, end(a), doing.slices());
        }
        17 => {
            let count = usize::from(b) % 20;
            let _ = tx.list_pop(db, key, end(a), count, |_| (), |(), _| {});
        }
        18 => {
            let index = |length: usize| length.checked_sub(1 + usize::from(b) % 9);
            let (new, pivot) = (&words[0], word(a.into()));
            let _ = match a % 5 {
                0 => tx.list_set(db, key, index, new).map(|_| ()),
                1 => tx.list_insert(db, key, b.is_multiple_of(2), &pivot, new).map(|_| ()),
                2 => tx.list_remove(db, key, end(b), 3, &pivot).map(|_| ()),
                3 => tx.list_rotate(db, key, End::Front, end(b)).map(|_| ()),
                _ => tx.list_trim(db, key, |length| length / 4..length - length / 5).map(drop),
            };
        }
        19 | 20 => {
            let _ = tx.sorted_set_upsert(db, key, (words.len(), 8), |scores| {
                for (n, member) in words.iter().enumerate() {
                    scores.update(member, |old| Some(old.unwrap_or(0.0) + f64::from(b) + n as f64));
                }
            });
        }
        _ if a.is_multiple_of(3) => {
            let _ = tx.sorted_set_remove(db, key, doing.slices());
        }
        _ => {
            let ranks = |set: &SortedSet| {
                let length = set.len();
                if b.is_multiple_of(4) { 0..length } else { length / 3..length / 2 }
            };
            let _ = tx.sorted_set_remove_ranks(db, key, ranks, |_, _| {});
        }
    }
}

fn change_key(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let &Doing { what, db, key, other_db, other, a, b, at, words } = doing;
    match what {
        22 | 23 if doing.is_of_two_keys() => {
            tx.rename(db, key, other_db, other);
        }
        24 if doing.is_of_two_keys() => {
            tx.copy(db, key, other_db, other);
        }
        25 => tx.flush(db),
        26 => tx.swap(0, 1),
        27 => {
            tx.read(db, key);
            tx.get(other_db, other);
        }
        28 => {
            tx.expire_due(partition_of(key.hash), usize::from(b) % 5);
        }
        29 => {
            let (mut list, limits) = (ListValue::new(), tx.list_limits());
            words.iter().for_each(|element| list.append(limits, element));
            tx.put_value(db, key, list, at);
        }
        30 => {
            let Some(entry) = tx.peek(db, key) else { return };
            let (access, expire_at) = (entry.access(), entry.expire_at());
            let key_bytes = key.bytes.to_vec();
            tx.evict(&Candidate { db, hash: key.hash, key: key_bytes, access, expire_at });
        }
        31 if tx.change_count() == 0 && doing.is_of_two_keys() => {
            put_stored(tx, (db, key), (other_db, other), a, words);
        }
        31 => {
            tx.rebuild(db);
        }
        _ => {}
    }
}

fn change_library(tx: &mut Tx<'_>, doing: &Doing<'_>) {
    let name = doing.key.bytes;
    match doing.a % 8 {
        0 => tx.flush_libraries(),
        1 | 2 => {
            tx.delete_library(name);
        }
        _ => {
            let function = FunctionFacts { name: name.to_vec(), ..FunctionFacts::default() };
            let code = doing.words.concat();
            let body = LibraryBody { code, functions: vec![function] };
            tx.put_library(Arc::new(Library::new(name, body)));
        }
    }
}

fn put_stored(
    tx: &mut Tx<'_>,
    (db, key): (DbId, Key<'_>),
    (from_db, from): (DbId, Key<'_>),
    a: u16,
    members: &[Vec<u8>],
) {
    let frozen = tx.freeze_object(from_db, from);
    let stored = match frozen {
        Some(frozen) if a.is_multiple_of(2) => {
            let expire_at = tx.peek(from_db, from).map_or(0, EntryRef::expire_at);
            Stored::moved((from_db, from.bytes), frozen, (db, key.bytes), expire_at)
        }
        _ => {
            let mut set = SetValue::table();
            let (env, limits) = (tx.env(), tx.set_limits());
            for member in members {
                set.add(env.hasher, limits, member);
            }
            Stored::new(db, key.bytes, Object::Set(set), 0)
        }
    };
    let _ = tx.put_stored(db, key, stored);
}
