//! Sets with times against a plain ordered map, through every representation.

use crate::types::Limits;
use crate::types::collection::{Collection, Env};
use crate::types::dump_value::DumpValue;
use crate::types::hash::item::Item;
use crate::types::set::edit::SetEdit;
use crate::types::set::{Member, OP_ADD, OP_REMOVE, SetLimits, SetValue, put_member};
use ladon_record::KeyHasher;
use ladon_testkit::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// Small limits, so that short runs cross them.
const LIMITS: SetLimits = SetLimits { intset_entries: 6, listpack_entries: 8, listpack_value: 10 };

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u8>),
    Put(Vec<u8>, u64),
    SetExpiry(Vec<u8>, u64),
    Remove(Vec<u8>),
    Edit(Vec<u8>),
    Pop(u64, usize),
    ExpireDue(u64, usize),
    Expect(usize),
    Reload,
    Duplicate,
    TakeBack(Vec<(Vec<u8>, u64)>),
}

/// Few members, so that steps meet; integers, and some too long to be packed.
fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u8..14).prop_map(|n| n.to_string().into_bytes()),
        4 => (0u8..6).prop_map(|n| format!("m{n}").into_bytes()),
        1 => (0u8..3).prop_map(|n| vec![n; 40]),
        1 => Just(Vec::new()),
    ]
}

fn at() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 1u64..40]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => member().prop_map(Step::Add),
        3 => (member(), at()).prop_map(|(member, at)| Step::Put(member, at)),
        3 => (member(), at()).prop_map(|(member, at)| Step::SetExpiry(member, at)),
        3 => member().prop_map(Step::Remove),
        1 => member().prop_map(Step::Edit),
        1 => (any::<u64>(), 1usize..5).prop_map(|(seed, count)| Step::Pop(seed, count)),
        1 => (1u64..40, 1usize..6).prop_map(|(now, max)| Step::ExpireDue(now, max)),
        1 => (0usize..14).prop_map(Step::Expect),
        1 => Just(Step::Reload),
        1 => Just(Step::Duplicate),
        1 => prop::collection::vec((member(), at()), 1..6).prop_map(Step::TakeBack),
    ]
}

type Model = BTreeMap<Vec<u8>, u64>;

fn contents(hasher: &KeyHasher, set: &SetValue) -> Model {
    let names = set.members().map(|member| member.with_bytes(<[u8]>::to_vec));
    names.map(|name| (name.clone(), set.expire_at(hasher, &name).unwrap())).collect()
}

fn small_limits() -> Limits {
    let limits = Limits::default();
    limits.set_intset_entries.store(LIMITS.intset_entries, Relaxed);
    limits.set_listpack_entries.store(LIMITS.listpack_entries, Relaxed);
    limits.set_listpack_value.store(LIMITS.listpack_value, Relaxed);
    limits
}

/// Changes a frozen set and takes that back.
fn take_back(set: &mut SetValue, puts: &[(Vec<u8>, u64)], env: Env<'_>) {
    let Some(before) = set.freeze() else { return };
    let encoding = set.encoding();
    let was_timed = set.is_timed();
    let mut op = Vec::new();
    let mut edit = SetEdit { set, op: &mut op, hasher: env.hasher, limits: LIMITS };
    for (member, at) in puts {
        edit.put(member, *at);
        edit.set_expiry(member, at + 1);
    }
    assert!(set.is_timed());
    set.revert(&before, &mut [&op[..]].into_iter(), env);
    assert_eq!((set.encoding(), set.is_timed()), (encoding, was_timed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn a_set_with_times_is_a_map(
        first in member(),
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 40 } else { 120 }),
    ) {
        let hasher = KeyHasher::new(1);
        let limits = small_limits();
        let env = Env { hasher: &hasher, limits: &limits };
        let mut set = SetValue::for_members(&first, 1, LIMITS);
        let mut model = Model::new();
        // What is logged on the way gives the same set, also when all of it comes twice.
        let mut log: Vec<Vec<u8>> = Vec::new();
        for step in steps {
            let mut op = Vec::new();
            match step {
                Step::Add(member) => {
                    // One that is there keeps its time.
                    let is_new = !model.contains_key(&member);
                    prop_assert_eq!(set.add(&hasher, LIMITS, &member), is_new);
                    if is_new {
                        put_member(&mut op, OP_ADD, &member);
                        model.insert(member, 0);
                    }
                }
                Step::Put(member, at) => {
                    let mut edit =
                        SetEdit { set: &mut set, op: &mut op, hasher: &hasher, limits: LIMITS };
                    let is_new = edit.put(&member, at);
                    prop_assert_eq!(is_new, model.insert(member, at).is_none());
                }
                Step::SetExpiry(member, at) => {
                    let mut edit =
                        SetEdit { set: &mut set, op: &mut op, hasher: &hasher, limits: LIMITS };
                    let there = model.get_mut(&member).map(|of| *of = at).is_some();
                    prop_assert_eq!(edit.set_expiry(&member, at), there);
                }
                Step::Remove(member) => {
                    let there = set.remove(&hasher, &member);
                    prop_assert_eq!(there, model.remove(&member).is_some());
                    if there {
                        put_member(&mut op, OP_REMOVE, &member);
                    }
                }
                Step::Edit(member) => {
                    let mut edit =
                        SetEdit { set: &mut set, op: &mut op, hasher: &hasher, limits: LIMITS };
                    prop_assert_eq!(edit.remove(&member), model.remove(&member).is_some());
                }
                Step::Pop(seed, count) => {
                    let mut random = Random::new(seed);
                    let expected = count.min(model.len());
                    let mut popped = 0;
                    set.pop_many(&hasher, count, || random.next_u64(), |member| {
                        member.with_bytes(|bytes| {
                            put_member(&mut op, OP_REMOVE, bytes);
                            assert!(model.remove(bytes).is_some());
                            popped += 1;
                        });
                    });
                    prop_assert_eq!(popped, expected);
                }
                Step::ExpireDue(now, max) => {
                    let is_due = |at: u64| at != 0 && at <= now;
                    let due = model.values().filter(|at| is_due(**at)).count();
                    if !model.is_empty() {
                        prop_assert_eq!(set.is_over(now), due == model.len());
                        prop_assert_eq!(set.has_due(now, max), due >= max);
                    }
                    prop_assert_eq!(set.expire_due(now, max, env, &mut op), due.min(max));
                    let left = contents(&hasher, &set);
                    model.retain(|name, at| left.contains_key(name) || !is_due(*at));
                }
                Step::Expect(count) => set.expect(&hasher, LIMITS, count),
                Step::Reload if !model.is_empty() => {
                    let mut body = Vec::new();
                    set.encode(&mut body);
                    set = SetValue::decode(&body, env).unwrap();
                    prop_assert_eq!(set.is_timed(), model.values().any(|at| *at != 0));
                    prop_assert!(SetValue::show_body(&body).is_some());
                }
                Step::Reload => {}
                Step::Duplicate => {
                    let copy = set.duplicate(env);
                    prop_assert_eq!(copy.encoding(), set.encoding());
                    set = copy;
                }
                Step::TakeBack(puts) => take_back(&mut set, &puts, env),
            }
            prop_assert_eq!(set.len(), model.len());
            let next = model.values().copied().filter(|at| *at != 0).min();
            prop_assert_eq!(set.next_expiry(), next.unwrap_or(0));
            prop_assert!(op.is_empty() || SetValue::show_op(&op).is_some());
            log.extend((!op.is_empty()).then_some(op));
        }
        prop_assert_eq!(contents(&hasher, &set), model.clone());
        for (member, at) in &model {
            prop_assert!(set.has(&hasher, Member::Bytes(member)));
            prop_assert_eq!(set.expire_at(&hasher, member), Some(*at));
        }
        prop_assert_eq!(set.expire_at(&hasher, b"no such member"), None);
        let mut scanned = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = set.scan(&hasher, cursor, 3, |member| {
                scanned.push(member.with_bytes(<[u8]>::to_vec));
                true
            });
            if cursor == 0 {
                break;
            }
        }
        scanned.sort();
        scanned.dedup();
        prop_assert!(scanned.iter().eq(model.keys()));
        let mut replayed = SetValue::for_ranges().unwrap();
        for _ in 0..2 {
            for op in &log {
                replayed.apply_op(op, env).unwrap();
            }
            prop_assert_eq!(contents(&hasher, &replayed), model.clone());
        }
        // So do ranges of it, as a checkpoint saves them.
        if set.is_in_ranges() {
            let mut ranges = SetValue::for_ranges().unwrap();
            let mut from = 0;
            loop {
                let mut op = Vec::new();
                let (last, _) = set.encode_range(from, env, &mut op);
                ranges.apply_op(&op, env).unwrap();
                match last.checked_add(1) {
                    Some(next) => from = next,
                    None => break,
                }
            }
            prop_assert_eq!(contents(&hasher, &ranges), model);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 4096 }))]

    /// What is read is written and read again as the same, or was refused.
    #[test]
    fn any_bytes_are_a_set_or_malformed(
        is_body: bool,
        items in prop::collection::vec((0u8..4, member(), at(), 0u8..40), 0..12),
        cut in prop::option::weighted(0.2, 0usize..100),
    ) {
        let hasher = KeyHasher::new(1);
        let limits = small_limits();
        let env = Env { hasher: &hasher, limits: &limits };
        let mut bytes = if is_body { [&[0xff; 9][..], &[1]].concat() } else { vec![3] };
        for (tag, member, at, flaw) in &items {
            let value: &[u8] = if *flaw == 0 { b"v" } else { b"" };
            match tag {
                2 => Item::Remove { field: member }.put(&mut bytes),
                3 => Item::Expire { field: member, at: *at }.put(&mut bytes),
                _ => Item::Set { field: member, value, at: *at }.put(&mut bytes),
            }
        }
        bytes.truncate(cut.unwrap_or(bytes.len()).max(1));
        let set = if is_body {
            SetValue::decode(&bytes, env)
        } else {
            let mut set = SetValue::for_members(b"1", 1, LIMITS);
            set.apply_op(&bytes, env).map(|()| set).filter(|set| !set.is_empty())
        };
        if let Some(set) = set {
            let mut again = Vec::new();
            set.encode(&mut again);
            let read = SetValue::decode(&again, env).unwrap();
            prop_assert_eq!(contents(&hasher, &read), contents(&hasher, &set));
            prop_assert_eq!(read.next_expiry(), set.next_expiry());
        }
    }
}

fn set_of(members: &[&str], hasher: &KeyHasher) -> SetValue {
    let mut set = SetValue::for_members(members[0].as_bytes(), 1, LIMITS);
    for member in members {
        set.add(hasher, LIMITS, member.as_bytes());
    }
    set
}

#[test]
fn the_first_time_converts_and_only_that() {
    let hasher = KeyHasher::new(2);
    let nine = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let cases: [(&[&str], &str, &str); 5] = [
        (&nine[..6], "intset", "listpackex"),
        (&["a", "b"], "listpack", "listpackex"),
        (&nine, "hashtable", "hashtable"),
        // Nine would not be packed, eight are.
        (&["a", "1", "2", "3", "4", "5", "6", "7"], "listpack", "listpackex"),
        (&["0123456789a", "b"], "hashtable", "hashtable"),
    ];
    for (members, before, after) in cases {
        let mut set = set_of(members, &hasher);
        assert_eq!(set.encoding(), before, "{members:?}");
        let bytes = set.bytes();
        assert!(!set.set_expiry(&hasher, LIMITS, b"none", 7));
        assert!(set.set_expiry(&hasher, LIMITS, members[1].as_bytes(), 0));
        assert!(!set.put(&hasher, LIMITS, members[1].as_bytes(), 0));
        assert_eq!((set.encoding(), set.bytes()), (before, bytes), "{members:?}");
        assert!(set.set_expiry(&hasher, LIMITS, members[1].as_bytes(), 7));
        assert_eq!((set.encoding(), set.is_timed()), (after, true), "{members:?}");
        assert!(set.set_expiry(&hasher, LIMITS, members[1].as_bytes(), 0));
        assert_eq!(set.encoding(), after, "{members:?}: it stays one");
        assert_eq!((set.len(), set.next_expiry()), (members.len(), 0));
    }
}

/// A body without times is what it was before there were times, byte by byte.
#[test]
fn bodies_and_ops_have_their_bytes() {
    let hasher = KeyHasher::new(3);
    let limits = small_limits();
    let env = Env { hasher: &hasher, limits: &limits };
    let body = |set: &SetValue| {
        let mut body = Vec::new();
        set.encode(&mut body);
        body
    };
    let mut set = set_of(&["a", "bc"], &hasher);
    assert_eq!(body(&set), b"\x01a\x02bc");
    let mut op = Vec::new();
    let mut edit = SetEdit { set: &mut set, op: &mut op, hasher: &hasher, limits: LIMITS };
    assert!(edit.set_expiry(b"bc", 0x0102) && edit.put(b"d", 3) && !edit.put(b"a", 0));
    assert!(edit.remove(b"d"));
    let logged: &[u8] = b"\x03\x0bbc\x02\x01\0\0\0\0\0\0\
        \x05d\0\x03\0\0\0\0\0\0\0\x04a\0\x06d";
    assert_eq!(op, logged);
    let written: &[u8] =
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04a\0\x09bc\0\x02\x01\0\0\0\0\0\0";
    assert_eq!(body(&set), written);
    for cut in 1..written.len() {
        let read = SetValue::decode(&written[..cut], env).map(|set| set.len());
        // After the mark and the first member.
        assert_eq!(read, (cut == 13).then_some(1), "cut at {cut}");
    }
    // As `ladon dump` shows them.
    let timed = |name, at| DumpValue::List(vec![DumpValue::Bytes(name), DumpValue::Int(at)]);
    let shown = DumpValue::List(vec![DumpValue::Bytes(b"a"), timed(b"bc", 0x0102)]);
    assert_eq!(SetValue::show_body(written), Some(shown));
    let shown = DumpValue::Record(vec![
        ("add", DumpValue::List(vec![timed(b"d", 3), DumpValue::Bytes(b"a")])),
        ("remove", DumpValue::List(vec![DumpValue::Bytes(b"d")])),
        ("expire", DumpValue::List(vec![timed(b"bc", 0x0102)])),
    ]);
    assert_eq!(SetValue::show_op(logged), Some(shown));
    // A hash's items have values.
    let with_value = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04a\x01v";
    assert!(SetValue::decode(with_value, env).is_none());
    assert!(SetValue::show_body(with_value).is_none());
    assert!(SetValue::table().apply_op(b"\x03\x04a\x01v", env).is_none());
    assert!(SetValue::table().apply_op(b"\x04", env).is_none());
}

/// Giving a member a time does not copy a large set.
#[test]
fn a_table_is_taken_over() {
    let hasher = KeyHasher::new(4);
    let mut set = SetValue::table();
    for number in 0..10_000 {
        set.add(&hasher, LIMITS, format!("member{number}").as_bytes());
    }
    let address = |set: &SetValue| match set.random(|| 7).unwrap() {
        Member::Bytes(bytes) => bytes.as_ptr() as usize,
        Member::Int(_) => unreachable!("members are text"),
    };
    let (before, bytes) = (address(&set), set.bytes());
    assert!(set.set_expiry(&hasher, LIMITS, b"member77", 7));
    assert_eq!(address(&set), before, "the entries are where they were");
    assert!(set.bytes() < bytes + 300, "{} bytes more", set.bytes() - bytes);
}
