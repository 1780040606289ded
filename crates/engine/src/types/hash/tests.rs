//! Hashes against a plain ordered map, through every representation.

use super::*;
use crate::types::Limits;
use crate::types::collection::{Collection, Env};
use ladon_testkit::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// Small limits, so that short runs cross them.
const LIMITS: HashLimits = HashLimits { listpack_entries: 8, listpack_value: 10 };

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, Vec<u8>, u64),
    SetExpiry(Vec<u8>, u64),
    Remove(Vec<u8>),
    ExpireDue(u64, usize),
    Random(u64),
    Reload,
    Duplicate,
}

/// Few names, so that steps meet; sometimes too long for a packed hash.
fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u8..14).prop_map(|n| format!("f{n}").into_bytes()),
        1 => (0u8..3).prop_map(|n| vec![n; 40]),
        1 => Just(Vec::new()),
    ]
}

fn at() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 1u64..40]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        6 => (name(), value, at()).prop_map(|(name, value, at)| Step::Set(name, value, at)),
        2 => (name(), at()).prop_map(|(name, at)| Step::SetExpiry(name, at)),
        3 => name().prop_map(Step::Remove),
        1 => (1u64..40, 1usize..6).prop_map(|(now, max)| Step::ExpireDue(now, max)),
        1 => any::<u64>().prop_map(Step::Random),
        1 => Just(Step::Reload),
        1 => Just(Step::Duplicate),
    ]
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

fn contents(hash: &HashValue) -> Model {
    let parts = |field: Field<'_>| (field.name.to_vec(), (field.value.to_vec(), field.expire_at));
    hash.fields().map(parts).collect()
}

fn small_limits() -> Limits {
    let limits = Limits::default();
    limits.hash_listpack_entries.store(LIMITS.listpack_entries, Relaxed);
    limits.hash_listpack_value.store(LIMITS.listpack_value, Relaxed);
    limits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn a_hash_is_a_map(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 40 } else { 120 }),
    ) {
        let hasher = KeyHasher::new(1);
        let limits = small_limits();
        let env = Env { hasher: &hasher, limits: &limits };
        let mut hash = HashValue::with_room(0, 0);
        let mut model = Model::new();
        // What is logged on the way gives the same hash, also when all of it comes twice.
        let mut log = Vec::new();
        for step in steps {
            let mut edit = HashEdit { hash: &mut hash, op: &mut log, hasher: &hasher, limits: LIMITS };
            match step {
                Step::Set(name, value, at) => {
                    let is_new = model.insert(name.clone(), (value.clone(), at)).is_none();
                    prop_assert_eq!(edit.set(&name, &value, at), is_new);
                }
                Step::SetExpiry(name, at) => {
                    let there = model.get_mut(&name).map(|(_, of)| *of = at).is_some();
                    prop_assert_eq!(edit.set_expiry(&name, at), there);
                }
                Step::Remove(name) => {
                    prop_assert_eq!(edit.remove(&name), model.remove(&name).is_some());
                }
                Step::ExpireDue(now, max) => {
                    let is_due = |at: u64| at != 0 && at <= now;
                    let due = model.values().filter(|(_, at)| is_due(*at)).count();
                    if !model.is_empty() {
                        prop_assert_eq!(hash.is_over(now), due == model.len());
                    }
                    let removed = hash.expire_due(now, max, env, &mut log);
                    prop_assert_eq!(removed, due.min(max));
                    let left = contents(&hash);
                    model.retain(|name, (_, at)| left.contains_key(name) || !is_due(*at));
                }
                Step::Random(seed) => {
                    let mut random = Random::new(seed);
                    let drawn = hash.random(|| random.next_u64());
                    prop_assert_eq!(drawn.is_some(), !model.is_empty());
                    prop_assert!(drawn.is_none_or(|field| model.contains_key(field.name)));
                }
                Step::Reload if !model.is_empty() => {
                    let mut body = Vec::new();
                    hash.encode(&mut body);
                    hash = HashValue::decode(&body, env).unwrap();
                    prop_assert!(HashValue::show_body(&body).is_some());
                }
                Step::Reload => {}
                Step::Duplicate => {
                    let copy = hash.duplicate(env);
                    prop_assert_eq!(copy.encoding(), hash.encoding());
                    hash = copy;
                }
            }
            prop_assert_eq!(hash.len(), model.len());
            let next = model.values().map(|(_, at)| *at).filter(|at| *at != 0).min();
            prop_assert_eq!(hash.next_expiry(), next.unwrap_or(0));
        }
        prop_assert_eq!(contents(&hash), model.clone());
        for (name, (value, at)) in &model {
            prop_assert_eq!(hash.get(&hasher, name), Some(&value[..]));
            prop_assert_eq!(hash.expire_at(&hasher, name), Some(*at));
        }
        prop_assert_eq!(hash.get(&hasher, b"no such field"), None);
        let mut scanned = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = hash.scan(&hasher, cursor, 3, |field| {
                scanned.push(field.name.to_vec());
                true
            });
            if cursor == 0 {
                break;
            }
        }
        prop_assert!(scanned.iter().all(|name| model.contains_key(name)));
        prop_assert!(model.keys().all(|name| scanned.contains(name)));
        let mut replayed = HashValue::on_table();
        for _ in 0..2 {
            replayed.apply_op(&log, env).unwrap();
            prop_assert_eq!(contents(&replayed), model.clone());
        }
        prop_assert!(HashValue::show_op(&log).is_some());
    }
}

#[track_caller]
fn check_encoding(fields: &[(&str, &str)], encoding: &str) {
    let hasher = KeyHasher::new(2);
    let mut hash = HashValue::with_room(0, 0);
    for (name, value) in fields {
        hash.set(&hasher, LIMITS, name.as_bytes(), value.as_bytes(), 0);
    }
    assert_eq!(hash.encoding(), encoding, "{fields:?}");
}

#[test]
fn conversions_are_those_of_redis() {
    let names: Vec<String> = (0..9).map(|int| int.to_string()).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    check_encoding(&fields[..8], "listpack");
    check_encoding(&fields, "hashtable");
    check_encoding(&[("0123456789", "0123456789")], "listpack");
    check_encoding(&[("0123456789x", "")], "hashtable");
    check_encoding(&[("", "0123456789x")], "hashtable");
}

#[test]
fn an_expiry_changes_the_name_of_the_encoding_for_good() {
    let hasher = KeyHasher::new(2);
    let mut hash = HashValue::with_room(0, 0);
    hash.set(&hasher, LIMITS, b"a", b"1", 0);
    assert!(hash.set_expiry(&hasher, b"a", 5) && hash.set_expiry(&hasher, b"a", 0));
    assert_eq!(hash.encoding(), "listpackex");
}

#[test]
fn a_small_hash_is_small() {
    assert!(size_of::<HashValue>() <= 40, "{}", size_of::<HashValue>());
    let hasher = KeyHasher::new(3);
    let mut hash = HashValue::with_room(0, 0);
    let limits = HashLimits { listpack_entries: 128, listpack_value: 64 };
    for number in 10..30 {
        let (name, value) = (format!("field{number}"), format!("value{number}"));
        hash.set(&hasher, limits, name.as_bytes(), value.as_bytes(), 0);
    }
    let needed = 20 * (2 + 7 + 7);
    assert!(hash.bytes() <= needed * 9 / 8, "{} bytes", hash.bytes());
    hash.shrink_to_fit();
    assert_eq!(hash.bytes(), needed, "a step of sixteen");
}
