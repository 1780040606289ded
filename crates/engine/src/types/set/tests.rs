//! Sets against a plain ordered set, through every representation.

use super::*;
use crate::types::Limits;
use crate::types::collection::{Collection, Env};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// Small limits, so that short runs cross them.
const LIMITS: SetLimits = SetLimits { intset_entries: 12, listpack_entries: 8, listpack_value: 10 };

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u8>),
    Remove(Vec<u8>),
    Pop(u64),
    Random(u64),
    BecomeInts,
    Reload,
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (-20i64..20).prop_map(|int| int.to_string().into_bytes()),
        1 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
        1 => any::<i32>().prop_map(|int| int.to_string().into_bytes()),
        2 => (0..30u8).prop_map(|n| vec![b'm', n]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (0..4u8).prop_map(|n| vec![n; 300]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => member().prop_map(Step::Add),
        6 => member().prop_map(Step::Remove),
        2 => any::<u64>().prop_map(Step::Pop),
        1 => any::<u64>().prop_map(Step::Random),
        1 => Just(Step::BecomeInts),
        1 => Just(Step::Reload),
    ]
}

fn contents(set: &SetValue) -> BTreeSet<Vec<u8>> {
    let members: Vec<Vec<u8>> =
        set.members().map(|member| member.with_bytes(<[u8]>::to_vec)).collect();
    assert_eq!(members.len(), set.len());
    members.into_iter().collect()
}

/// A generator whose first draw is `seed`.
fn draws(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        let drawn = state;
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        drawn
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn random_operations_match_an_ordered_set(
        first in member(),
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 40 } else { 120 }),
    ) {
        let hasher = KeyHasher::new(1);
        let mut set = SetValue::for_members(&first, 1, LIMITS);
        let mut model = BTreeSet::new();
        for step in steps {
            match step {
                Step::Add(member) => {
                    prop_assert_eq!(set.add(&hasher, LIMITS, &member), model.insert(member));
                }
                Step::Remove(member) => {
                    prop_assert_eq!(set.remove(&hasher, &member), model.remove(&member));
                }
                Step::Pop(seed) => {
                    let popped = set.pop(&hasher, draws(seed), |member| {
                        member.with_bytes(<[u8]>::to_vec)
                    });
                    prop_assert_eq!(popped.is_some(), !model.is_empty());
                    if let Some(member) = popped {
                        prop_assert!(model.remove(&member));
                    }
                }
                Step::Random(seed) => {
                    let drawn = set.random(draws(seed)).map(|m| m.with_bytes(<[u8]>::to_vec));
                    prop_assert_eq!(drawn.is_some(), !model.is_empty());
                    prop_assert!(drawn.is_none_or(|member| model.contains(&member)));
                }
                Step::BecomeInts => {
                    set.become_ints(LIMITS);
                    let all = model.iter().all(|member| parse_int(member).is_some());
                    if all && model.len() <= LIMITS.intset_entries {
                        prop_assert!(set.is_of_ints());
                    }
                }
                Step::Reload if !model.is_empty() => {
                    let mut body = Vec::new();
                    set.encode(&mut body);
                    let limits = Limits::default();
                    limits.set_intset_entries.store(LIMITS.intset_entries, Relaxed);
                    limits.set_listpack_entries.store(LIMITS.listpack_entries, Relaxed);
                    limits.set_listpack_value.store(LIMITS.listpack_value, Relaxed);
                    let env = Env { hasher: &hasher, limits: &limits };
                    set = SetValue::decode(&body, env).unwrap();
                }
                Step::Reload => {}
            }
            prop_assert_eq!(set.len(), model.len());
        }
        prop_assert_eq!(contents(&set), model.clone());
        for member in &model {
            prop_assert!(set.contains(&hasher, member));
            prop_assert!(set.has(&hasher, Member::Bytes(member)));
            if let Some(int) = parse_int(member) {
                prop_assert!(set.has(&hasher, Member::Int(int)));
            }
        }
        let mut scanned = Vec::new();
        let mut cursor = 0;
        loop {
            let visit = |member: Member<'_>| {
                scanned.push(member.with_bytes(<[u8]>::to_vec));
                true
            };
            cursor = set.scan(&hasher, cursor, 3, visit);
            if cursor == 0 {
                break;
            }
        }
        prop_assert_eq!(scanned.into_iter().collect::<BTreeSet<_>>(), model);
    }
}

#[track_caller]
fn check_encoding(members: &[&str], encoding: &str) {
    let hasher = KeyHasher::new(2);
    let mut set = SetValue::for_members(members[0].as_bytes(), 1, LIMITS);
    for member in members {
        set.add(&hasher, LIMITS, member.as_bytes());
    }
    assert_eq!(set.encoding(), encoding, "{members:?}");
    let expected = members.iter().map(|member| member.as_bytes().to_vec()).collect();
    assert_eq!(contents(&set), expected);
}

#[test]
fn conversions_are_those_of_redis() {
    let ints: Vec<String> = (0..13).map(|int| int.to_string()).collect();
    let ints: Vec<&str> = ints.iter().map(String::as_str).collect();
    check_encoding(&ints[..12], "intset");
    check_encoding(&ints, "hashtable");
    check_encoding(&[&ints[..7], &["a"]].concat(), "listpack");
    check_encoding(&[&ints[..8], &["a"]].concat(), "hashtable");
    check_encoding(&[&["a"], &ints[..7]].concat(), "listpack");
    check_encoding(&[&["a"], &ints[..8]].concat(), "hashtable");
    check_encoding(&["1", "12345678901"], "intset");
    // A packed member may have ten bytes, here one of the integers has eleven.
    check_encoding(&["1", "12345678901", "a"], "hashtable");
    check_encoding(&["1", "01"], "listpack");
    check_encoding(&["1", "0123456789"], "listpack");
    check_encoding(&["1", "01234567890"], "hashtable");
    check_encoding(&["01234567890"], "hashtable");
}

#[test]
fn a_small_set_is_small() {
    assert_eq!(size_of::<SetValue>(), 40);
    let hasher = KeyHasher::new(3);
    let mut set = SetValue::of_ints();
    for int in 0..1000 {
        let limits = SetLimits { intset_entries: 1000, ..LIMITS };
        set.add(&hasher, limits, int.to_string().as_bytes());
    }
    assert!(set.bytes() < 1000 * 2 * 9 / 8 + 16, "{} bytes", set.bytes());
}
