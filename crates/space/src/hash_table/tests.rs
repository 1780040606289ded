//! The table against a plain set, with hashes that are even and with such that are not.

use super::SegmentedTable;
use crate::tuple::Tuple;
use ladon_testkit::Random;
use std::collections::BTreeSet;

/// A tuple that is its hash.
fn tuple(hash: u64) -> Tuple {
    let mut bytes = vec![0x91, 0xcf];
    bytes.extend_from_slice(&hash.to_be_bytes());
    Tuple::new(&bytes)
}

fn hash(tuple: &Tuple) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&tuple.bytes()[2..]);
    u64::from_be_bytes(bytes)
}

fn put(table: &mut SegmentedTable, item: u64) -> Option<u64> {
    let old = table.put(item, tuple(item), |other| hash(other) == item, hash);
    old.map(|old| hash(&old))
}

fn remove(table: &mut SegmentedTable, item: u64) -> Option<u64> {
    table.remove(item, |other| hash(other) == item, hash).map(|old| hash(&old))
}

fn walk(table: &SegmentedTable) -> Vec<u64> {
    let (mut items, mut from) = (Vec::new(), Some(0));
    while let Some(first) = from {
        let (segment, next) = table.segment_of(first);
        items.extend(segment.map(hash));
        from = next;
    }
    items
}

fn check(table: &SegmentedTable, model: &BTreeSet<u64>) {
    for (number, group) in table.groups.iter().enumerate() {
        let place = table.directory.iter().position(|group| *group as usize == number);
        let place = place.expect("every group has a place") as u64;
        let prefix = place.checked_shl(u64::BITS - table.depth).unwrap_or(0);
        group.check(prefix, hash);
    }
    let segments = || table.groups.iter().flat_map(|group| group.segments());
    assert_eq!(segments().count(), table.segments);
    assert_eq!(segments().map(|segment| segment.bytes_beyond()).sum::<usize>(), table.bytes_beyond);
    assert_eq!(table.len(), model.len() as u64);
    assert!(model.iter().all(|item| table.get(*item, |other| hash(other) == *item).is_some()));
    let mut walked = walk(table);
    walked.sort_unstable();
    assert!(walked.iter().eq(model));
    let random = table.random(table.len() * 7);
    assert_eq!(random.is_some(), !model.is_empty());
}

#[test]
fn items_are_found_however_segments_are_divided() {
    let mut random = Random::new(5);
    for skew in [0, 4, 20, 40] {
        let (mut table, mut model) = (SegmentedTable::new(), BTreeSet::new());
        // First it grows, then it shrinks to nothing.
        for step in 0..60_000u64 {
            let item = random.next_u64() >> skew;
            if step < 30_000 {
                assert_eq!(put(&mut table, item).is_none(), model.insert(item));
                assert_eq!(put(&mut table, item), Some(item));
            }
            let gone = model.range(random.next_u64() >> skew..).next().copied();
            let gone = gone.or_else(|| model.first().copied());
            if let Some(gone) = gone.filter(|gone| step >= 30_000 || gone % 3 == 0) {
                assert_eq!(remove(&mut table, gone), Some(gone));
                assert_eq!(remove(&mut table, gone), None);
                model.remove(&gone);
            }
            if step.is_power_of_two() || step % 7_500 == 0 {
                check(&table, &model);
            }
        }
        check(&table, &model);
        assert!(model.is_empty());
    }
}

/// Nothing tells their segments apart, so most of them find no place in one.
#[test]
fn items_of_one_hash_are_kept_beside_their_segment() {
    let mut table = SegmentedTable::new();
    let (same, other) = (0x1234_5678_9abc_def0, !0);
    let number = |tuple: &Tuple| tuple.bytes()[3];
    let of = |number: u8| Tuple::new(&[0x92, 0xcc, 1, number]);
    let hash = |tuple: &Tuple| if number(tuple) < 200 { same } else { other };
    for item in (0..=255).map(of) {
        assert!(table.put(hash(&item), item.clone(), |one| *one == item, hash).is_none());
    }
    assert!(table.bytes_beyond > 0);
    for item in (0..=255).map(of) {
        assert_eq!(table.get(hash(&item), |one| *one == item), Some(&item));
    }
    for number in 0..=255 {
        let item = of(number);
        assert_eq!(table.remove(hash(&item), |one| *one == item, hash), Some(item));
        if number % 32 == 0 {
            table.groups[0].check(0, hash);
        }
    }
    assert_eq!((table.len(), table.bytes_beyond), (0, 0));
}

#[test]
fn a_clone_keeps_what_it_was() {
    let mut table = SegmentedTable::new();
    for item in 0..10_000u64 {
        put(&mut table, item << 50);
    }
    let clone = table.clone();
    for item in 0..10_000u64 {
        assert_eq!(remove(&mut table, item << 50), Some(item << 50));
    }
    assert_eq!((table.len(), clone.len(), clone.iter().count()), (0, 10_000, 10_000));
    check(&clone, &(0..10_000u64).map(|item| item << 50).collect());
}
