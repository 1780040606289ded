//! The table against a plain map, and its scan's guarantee.

use super::entry::{ValueInit, ValueRef};
use super::segment::CAPACITY;
use super::*;
use crate::object::Object;
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

fn key_of(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn insert(table: &mut Table, hasher: &KeyHasher, number: u64, value: i64) {
    let key = key_of(number);
    let local = table.local(hasher.hash(&key).0);
    match table.get_mut(local, &key) {
        Some(mut slot) => slot.set(0, ValueInit::Int(value)),
        None => {
            table.insert(hasher, local, &key, 0, ValueInit::Int(value), 0);
        }
    }
}

fn remove(table: &mut Table, hasher: &KeyHasher, number: u64) -> bool {
    let key = key_of(number);
    let local = table.local(hasher.hash(&key).0);
    table.get_mut(local, &key).map(|slot| slot.remove(hasher)).is_some()
}

fn get(table: &Table, hasher: &KeyHasher, number: u64) -> Option<i64> {
    let key = key_of(number);
    match table.get(table.local(hasher.hash(&key).0), &key)?.value() {
        ValueRef::Int(int) => Some(int),
        _ => panic!("only integers are put in"),
    }
}

#[test]
fn random_operations_match_a_map() {
    let operations = if cfg!(miri) { 1_400 } else { 300_000 };
    let numbers = if cfg!(miri) { 2_000 } else { 30_000 };
    let hasher = KeyHasher::new(1);
    let mut random = Random::new(42);
    let mut table = Table::new(9);
    let mut model = BTreeMap::new();
    for step in 0..operations {
        let number = random.next_u64() % numbers;
        // Mostly growing, then mostly shrinking.
        let grows = step < operations / 2;
        if (random.next_u64() % 10 < 7) == grows {
            insert(&mut table, &hasher, number, step);
            model.insert(number, step);
        } else {
            assert_eq!(remove(&mut table, &hasher, number), model.remove(&number).is_some());
        }
        assert_eq!(table.len(), model.len());
    }
    for number in 0..numbers {
        assert_eq!(get(&table, &hasher, number), model.get(&number).copied());
    }
    let mut seen = 0;
    table.for_each(|_| seen += 1);
    assert_eq!(seen, model.len());
}

/// A key that exists from the beginning to the end of a scan is seen at least once, whatever splits
/// and merges happen meanwhile; here even exactly once.
#[test]
fn scan_sees_every_lasting_key_while_the_table_splits_and_shrinks() {
    let hasher = KeyHasher::new(2);
    let (lasting, at_once) = if cfg!(miri) { (60, 12) } else { (2_000, 200) };
    for seed in 1..if cfg!(miri) { 2 } else { 30 } {
        let mut random = Random::new(seed);
        let mut table = Table::new(0);
        for number in 0..lasting {
            insert(&mut table, &hasher, number, 0);
        }
        let mut seen = BTreeSet::new();
        let mut at = Some(0);
        let mut other = lasting;
        while let Some(from) = at {
            at = table.scan(
                &hasher,
                from >> 16 << 16,
                1 + (random.next_u64() % 5) as usize,
                |entry| {
                    let number: u64 =
                        std::str::from_utf8(&entry.key()[4..]).unwrap().parse().unwrap();
                    if number < lasting {
                        assert!(seen.insert(number), "key {number} twice");
                    }
                },
            );
            for _ in 0..random.next_u64() % at_once {
                if random.next_u64() % 4000 < 3000 {
                    insert(&mut table, &hasher, other, 0);
                    other += 1;
                } else {
                    for number in lasting..other {
                        remove(&mut table, &hasher, number);
                    }
                    other = lasting;
                }
            }
        }
        assert_eq!(seen.len() as u64, lasting);
    }
}

#[test]
fn random_draw_is_uniform() {
    let hasher = KeyHasher::new(3);
    let mut table = Table::new(0);
    // A count at which some segments have split and others not.
    let keys = 700;
    for number in 0..keys {
        insert(&mut table, &hasher, number, number as i64);
    }
    let mut random = Random::new(7);
    let mut counts = vec![0u32; keys as usize];
    let draws = if cfg!(miri) { 100 } else { 700_000 };
    for _ in 0..draws {
        let entry = table.random(|| random.next_u64()).unwrap();
        let ValueRef::Int(number) = entry.value() else { panic!() };
        counts[number as usize] += 1;
    }
    if !cfg!(miri) {
        let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*low > 800 && *high < 1200, "1000 expected of each, {low} to {high} drawn");
    }
}

#[test]
fn objects_are_dropped_once() {
    let hasher = KeyHasher::new(4);
    let mut table = Table::new(9);
    for round in 0..3 {
        for number in 0..100 {
            let key = key_of(number);
            let local = table.local(hasher.hash(&key).0);
            let object = || Box::new(Object::String(vec![round; 5000].into()));
            match table.get_mut(local, &key) {
                Some(mut slot) => slot.set(0, ValueInit::Object(object())),
                None => {
                    table.insert(&hasher, local, &key, 0, ValueInit::Object(object()), 0);
                }
            }
            if let Some(mut slot) = table.get_mut(local, &key) {
                slot.set_expire(if number % 2 == 0 { 5 } else { 0 });
                let object = slot.object_mut().unwrap();
                assert_eq!(object.bytes_for_test(), vec![round; 5000]);
            }
        }
    }
    let taken = table.take();
    assert_eq!((table.len(), taken.len()), (0, 100));
    insert(&mut table, &hasher, 1, 1);
    assert_eq!(get(&table, &hasher, 1), Some(1));
}

#[test]
fn ten_thousand_keys_fill_segments_well() {
    let hasher = KeyHasher::new(5);
    let mut table = Table::new(9);
    let mut worst = f64::MAX;
    for number in 0..if cfg!(miri) { 1_000 } else { 100_000 } {
        insert(&mut table, &hasher, number, 0);
        if number > 2_000 {
            worst = worst.min(table.len() as f64 / (table.segments() * CAPACITY) as f64);
        }
    }
    assert!(worst > 0.38, "as empty as {worst:.2}");
}

#[test]
fn segments_are_visited_from_anywhere_to_their_end() {
    let hasher = KeyHasher::new(6);
    let mut table = Table::new(9);
    let keys = if cfg!(miri) { 530 } else { 5_000 };
    for number in 0..keys {
        insert(&mut table, &hasher, number, 0);
    }
    let mut random = Random::new(3);
    for _ in 0..if cfg!(miri) { 2 } else { 20 } {
        // The first segment from its middle on, all others from their beginning on.
        let mut from = random.next_u64();
        let mut expected: BTreeSet<u64> = (0..keys)
            .map(|number| table.local(hasher.hash(&key_of(number)).0))
            .filter(|&local| local >= from)
            .collect();
        loop {
            let last = table.segment_from(&hasher, from, |entry| {
                let local = table.local(hasher.hash(entry.key()).0);
                assert!(local >= from && expected.remove(&local));
            });
            match last.checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(expected.is_empty());
    }
}

/// What a split leaves would be freed late, one page here and one there.
#[test]
fn a_segment_that_splits_stays_as_the_lower_half() {
    let hasher = KeyHasher::new(4);
    let mut table = Table::new(9);
    insert(&mut table, &hasher, 0, 0);
    let first = table.directory().unwrap().at(0);
    let mut number = 0;
    while table.segments() < 4 {
        number += 1;
        insert(&mut table, &hasher, number, 0);
        assert_eq!(table.directory().unwrap().at(0), first);
    }
    for number in 0..=number {
        assert_eq!(get(&table, &hasher, number), Some(0));
    }
}

#[test]
fn an_empty_table_gives_its_memory_back_when_asked() {
    let hasher = KeyHasher::new(5);
    let mut table = Table::new(9);
    assert!(!table.release_empty());
    for _ in 0..2 {
        for number in 0..600 {
            insert(&mut table, &hasher, number, 1);
        }
        assert!(!table.release_empty());
        for number in 0..600 {
            assert!(remove(&mut table, &hasher, number));
        }
        assert!(table.bytes() > 0);
        assert!(table.release_empty());
        assert_eq!(table.bytes(), 0);
        assert_eq!(get(&table, &hasher, 1), None);
    }
}

fn contents(table: &Table) -> BTreeMap<Vec<u8>, i64> {
    let mut found = BTreeMap::new();
    let mut position = Position::default();
    // In steps, as a reader of a frozen table reads it.
    loop {
        let mut entries = table.entries_from(position);
        let before = found.len();
        // Beginning a walk is what takes Miri long.
        for entry in entries.by_ref().take(if cfg!(miri) { 64 } else { 1 }) {
            let ValueRef::Int(int) = entry.value() else { panic!("only integers are put in") };
            assert!(found.insert(entry.key().to_vec(), int).is_none(), "an entry comes once");
        }
        if found.len() == before {
            break;
        }
        position = entries.position();
    }
    assert_eq!(found.len(), table.len());
    found
}

#[test]
fn frozen_tables_stay_as_they_were() {
    let operations = if cfg!(miri) { 200 } else { 60_000 };
    let numbers = if cfg!(miri) { 700 } else { 4_000 };
    let often = if cfg!(miri) { 8 } else { 40 };
    for seed in 0..if cfg!(miri) { 1 } else { 6 } {
        let hasher = KeyHasher::new(seed);
        let mut random = Random::new(seed + 7);
        let mut table = Table::new(0);
        let mut model: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        // About to split, which so few operations would not come to.
        let present = if cfg!(miri) { 420 } else { 0 };
        for number in 0..present {
            insert(&mut table, &hasher, number, 0);
            model.insert(key_of(number), 0);
        }
        let mut frozen: Vec<(Table, BTreeMap<Vec<u8>, i64>)> = Vec::new();
        for step in 0..operations {
            let number = random.next_u64() % numbers;
            let grows = step < operations / 2;
            if (random.next_u64() % 10 < 7) == grows {
                insert(&mut table, &hasher, number, step);
                model.insert(key_of(number), step);
            } else {
                let removed = remove(&mut table, &hasher, number);
                assert_eq!(removed, model.remove(&key_of(number)).is_some());
            }
            if random.next_u64().is_multiple_of(operations as u64 / often) {
                frozen.push((table.freeze(), model.clone()));
            }
            if !frozen.is_empty() && random.next_u64().is_multiple_of(operations as u64 / often) {
                let at = random.next_u64() as usize % frozen.len();
                let (frozen, model) = frozen.swap_remove(at);
                assert_eq!(contents(&frozen), model);
                let number = random.next_u64() % numbers;
                assert_eq!(get(&frozen, &hasher, number), model.get(&key_of(number)).copied());
            }
        }
        assert_eq!(contents(&table), model);
        // Some outlive the living table.
        drop(table);
        for (frozen, model) in frozen {
            assert_eq!(contents(&frozen), model);
        }
    }
}

#[test]
fn what_was_kept_is_freed_once_nobody_looks() {
    let numbers = if cfg!(miri) { 150 } else { 2_000 };
    let hasher = KeyHasher::new(3);
    let mut table = Table::new(0);
    (0..numbers).for_each(|number| insert(&mut table, &hasher, number, 1));
    let before = table.bytes();
    let (first, second) = (table.freeze(), table.freeze());
    (0..numbers).for_each(|number| insert(&mut table, &hasher, number, 2));
    assert!(table.bytes() > before + numbers as usize * 16, "old entries are kept");
    drop(first);
    insert(&mut table, &hasher, 1, 3);
    assert!(table.bytes() > before + numbers as usize * 16, "the second still looks on");
    drop(second);
    // A few with each change, so that none takes long.
    (0..100).for_each(|number| insert(&mut table, &hasher, number, 2));
    assert_eq!(table.bytes(), before);
}

#[test]
fn frozen_tables_are_read_on_other_threads() {
    let (numbers, rounds) = if cfg!(miri) { (60, 3) } else { (20_000, 6) };
    let hasher = KeyHasher::new(5);
    let mut table = Table::new(0);
    (0..numbers).for_each(|number| insert(&mut table, &hasher, number, 0));
    std::thread::scope(|scope| {
        for round in 1..rounds {
            let frozen = table.freeze();
            scope.spawn(move || {
                let sum: i64 = contents(&frozen).values().sum();
                assert_eq!(sum, (round - 1) * numbers as i64);
            });
            (0..numbers).for_each(|number| insert(&mut table, &hasher, number, round));
        }
        drop(table);
    });
}

/// Freezing a value does not account for its size.
#[test]
fn freezing_does_not_change_what_a_table_takes() {
    let hasher = KeyHasher::new(3);
    let mut table = Table::new(0);
    (0..100).for_each(|number| insert(&mut table, &hasher, number, 1));
    let frozen = table.freeze();
    (0..100).for_each(|number| insert(&mut table, &hasher, number, 2));
    drop(frozen);
    let before = table.bytes();
    drop(table.freeze());
    drop(table.freeze());
    assert_eq!(table.bytes(), before);
    insert(&mut table, &hasher, 0, 3);
    assert!(table.bytes() < before, "what nobody needs goes with a change");
}

#[test]
fn there_is_no_last_freezing() {
    let hasher = KeyHasher::new(3);
    let mut table = Table::new(0);
    insert(&mut table, &hasher, 1, 1);
    drop(table.freeze());
    let Some(Sharing::Living(living)) = table.sharing.as_deref_mut() else { panic!("it lives") };
    living.generation = u64::from(u32::MAX);
    insert(&mut table, &hasher, 2, 1);
    let frozen = table.freeze();
    insert(&mut table, &hasher, 2, 2);
    assert_eq!(get(&frozen, &hasher, 2), Some(1));
}

#[test]
#[should_panic(expected = "a frozen table was changed")]
fn frozen_tables_cannot_be_changed() {
    let hasher = KeyHasher::new(6);
    let mut table = Table::new(0);
    insert(&mut table, &hasher, 1, 1);
    insert(&mut table.freeze(), &hasher, 1, 2);
}
