use super::collection::OP_SET;
use super::*;
use crate::types::Limits;
use crate::types::collection::{Collection, Env};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::Ordering::Relaxed;

/// A plain model: members with their scores; order is made when it is asked for.
#[derive(Default, Clone)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn ordered(&self) -> Vec<(Vec<u8>, f64)> {
        let mut all: Vec<_> = self.0.iter().map(|(m, &s)| (m.clone(), s)).collect();
        // A stable sort of members that are in order already.
        all.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap());
        all
    }
}

fn limits(entries: usize) -> Limits {
    let limits = Limits::default();
    limits.zset_listpack_entries.store(entries, Relaxed);
    limits.zset_listpack_value.store(10, Relaxed);
    limits
}

/// Scores that meet, and the ones at the ends.
fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-20i32..20).prop_map(f64::from),
        2 => any::<f64>().prop_filter("a number", |score| !score.is_nan()),
        1 => prop::sample::select(vec![
            f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, -5e-324, f64::MAX, f64::MIN,
        ]),
    ]
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => (0u16..400).prop_map(|number| number.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..14),
    ]
}

fn bound() -> impl Strategy<Value = Bound<f64>> {
    prop_oneof![
        score().prop_map(Bound::Included),
        score().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, f64),
    /// Numbers from .. on, scores that grow or fall: how leaves fill at the edges.
    Run(u16, u8, bool),
    Keep(Vec<u8>),
    Remove(Vec<u8>),
    RemoveRanks(prop::sample::Index, prop::sample::Index),
    RemoveScores(Bound<f64>, Bound<f64>),
    Reload,
    Duplicate,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => (member(), score()).prop_map(|(member, score)| Step::Set(member, score)),
        3 => (any::<u16>(), any::<u8>(), any::<bool>()).prop_map(|(a, b, c)| Step::Run(a, b, c)),
        2 => member().prop_map(Step::Keep),
        20 => member().prop_map(Step::Remove),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(a, b)| Step::RemoveRanks(a, b)),
        1 => (bound(), bound()).prop_map(|(a, b)| Step::RemoveScores(a, b)),
        1 => Just(Step::Reload),
        1 => Just(Step::Duplicate),
    ]
}

fn contents(set: &SortedSet) -> Vec<(Vec<u8>, f64)> {
    let mut all = Vec::new();
    set.for_each(0..set.len(), |member, score| all.push((member.to_vec(), score)));
    all
}

/// Every query of a sorted set, compared with the model.
fn check_against(set: &SortedSet, model: &Model, hasher: &KeyHasher) {
    let ordered = model.ordered();
    assert_eq!(contents(set), ordered);
    let mut reversed = Vec::new();
    set.for_each_reversed(0..set.len(), |member, score| reversed.push((member.to_vec(), score)));
    reversed.reverse();
    assert_eq!(reversed, ordered);
    for (rank, (member, score)) in ordered.iter().enumerate() {
        assert_eq!(set.rank(hasher, member), Some((rank, *score)));
        assert_eq!(set.score(hasher, member), Some(*score));
    }
    assert_eq!(set.rank(hasher, b"not a member"), None);
    let mut scanned = BTreeMap::new();
    let mut cursor = 0;
    loop {
        cursor = set.scan(hasher, cursor, 7, |member, score| {
            scanned.insert(member.to_vec(), score);
            true
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, model.0);
    if let Repr::Indexed(indexed) = &set.0 {
        indexed.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]

    #[test]
    fn random_operations_match_a_model(
        entries in prop::sample::select(vec![0usize, 12, 1000]),
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 60 } else { 700 }),
    ) {
        let (hasher, limits) = (KeyHasher::new(1), limits(entries));
        let env = Env { hasher: &hasher, limits: &limits };
        let few = limits.of_sorted_sets();
        let mut set = SortedSet::for_members(1, 1, few);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Set(member, score) => {
                    let old = set.update(&hasher, few, &member, |_| Some(score));
                    prop_assert_eq!(old, model.0.insert(member, score));
                }
                Step::Run(from, count, grows) => {
                    for index in 0..count {
                        let number = from.wrapping_add(index.into());
                        let score = f64::from(number) * if grows { 1.0 } else { -1.0 };
                        let member = format!("run{number}").into_bytes();
                        set.update(&hasher, few, &member, |_| Some(score));
                        model.0.insert(member, score);
                    }
                }
                Step::Keep(member) => {
                    let old = set.update(&hasher, few, &member, |_| None);
                    prop_assert_eq!(old, model.0.get(&member).copied());
                }
                Step::Remove(member) => {
                    prop_assert_eq!(set.remove(&hasher, &member), model.0.remove(&member));
                }
                Step::RemoveRanks(a, b) => {
                    let (a, b) = (a.index(set.len() + 1), b.index(set.len() + 1));
                    let ranks = a.min(b)..a.max(b);
                    let mut removed = Vec::new();
                    set.remove_ranks(&hasher, ranks.clone(), |member, score| {
                        removed.push((member.to_vec(), score));
                    });
                    let expected = model.ordered()[ranks].to_vec();
                    expected.iter().for_each(|(member, _)| { model.0.remove(member); });
                    prop_assert_eq!(removed, expected);
                }
                Step::RemoveScores(min, max) => {
                    let range = ScoreRange { min, max };
                    set.remove_ranks(&hasher, set.ranks_by_score(&range), |_, _| {});
                    let held = (min, max);
                    model.0.retain(|_, score| !std::ops::RangeBounds::contains(&held, score));
                }
                Step::Reload if !model.0.is_empty() => {
                    let mut body = Vec::new();
                    set.encode(&mut body);
                    set = SortedSet::decode(&body, env).unwrap();
                }
                Step::Duplicate => set = set.duplicate(env),
                Step::Reload => {}
            }
            prop_assert_eq!(set.len(), model.0.len());
        }
        check_against(&set, &model, &hasher);
    }

    #[test]
    fn ranges_by_score_match_a_filter(
        members in prop::collection::btree_map(member(), score(), 0..if cfg!(miri) { 40 } else { 300 }),
        packed in any::<bool>(),
        min in bound(),
        max in bound(),
    ) {
        let (hasher, limits) = (KeyHasher::new(2), limits(if packed { 1000 } else { 0 }));
        limits.zset_listpack_value.store(100, Relaxed);
        let few = limits.of_sorted_sets();
        let mut set = SortedSet::for_members(1, 1, few);
        for (member, &score) in &members {
            set.update(&hasher, few, member, |_| Some(score));
        }
        prop_assert_eq!(set.is_packed(), packed);
        let ranks = set.ranks_by_score(&ScoreRange { min, max });
        let mut found = Vec::new();
        set.for_each(ranks, |member, score| found.push((member.to_vec(), score)));
        let mut expected = Model(members).ordered();
        expected.retain(|(_, score)| std::ops::RangeBounds::contains(&(min, max), score));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn ranges_by_member_match_a_filter(
        members in prop::collection::btree_set(member(), 0..if cfg!(miri) { 40 } else { 300 }),
        packed in any::<bool>(),
        (low, low_kind) in (member(), 0..4u8),
        (high, high_kind) in (member(), 0..4u8),
    ) {
        let (hasher, limits) = (KeyHasher::new(3), limits(if packed { 1000 } else { 0 }));
        limits.zset_listpack_value.store(100, Relaxed);
        let few = limits.of_sorted_sets();
        let mut set = SortedSet::for_members(1, 1, few);
        for member in &members {
            set.update(&hasher, few, member, |_| Some(1.5));
        }
        let bound = |kind, member| match kind {
            0 => LexBound::Lowest,
            1 => LexBound::Highest,
            2 => LexBound::Included(member),
            _ => LexBound::Excluded(member),
        };
        let range = LexRange { min: bound(low_kind, &low), max: bound(high_kind, &high) };
        let mut found = Vec::new();
        set.for_each(set.ranks_by_lex(&range), |member, _| found.push(member.to_vec()));
        let above = |member: &Vec<u8>| match low_kind {
            0 => true,
            1 => false,
            2 => *member >= low,
            _ => *member > low,
        };
        let below = |member: &Vec<u8>| match high_kind {
            0 => false,
            1 => true,
            2 => *member <= high,
            _ => *member < high,
        };
        let expected: Vec<_> = members.into_iter().filter(|m| above(m) && below(m)).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_is_malformed_is_refused() {
    let (hasher, limits) = (KeyHasher::new(4), limits(10));
    let env = Env { hasher: &hasher, limits: &limits };
    let mut good = Vec::new();
    packed::put(&mut good, 1.0, b"a");
    assert!(SortedSet::decode(&good, env).is_some());
    assert!(SortedSet::decode(&good[..good.len() - 1], env).is_none());
    assert!(SortedSet::decode(&[], env).is_none());
    let mut nan = Vec::new();
    packed::put(&mut nan, f64::NAN, b"a");
    assert!(SortedSet::decode(&nan, env).is_none());
    let mut set = SortedSet::indexed();
    assert!(set.apply_op(&[&[OP_SET], &good[..]].concat(), env).is_some());
    assert!(set.apply_op(&[&[OP_SET], &nan[..]].concat(), env).is_none());
    assert!(set.apply_op(&[9], env).is_none());
    assert!(set.apply_op(&[], env).is_none());
    assert_eq!(contents(&set), [(b"a".to_vec(), 1.0)]);
}

#[test]
fn leaves_are_well_filled_whatever_the_order() {
    let hasher = KeyHasher::new(5);
    let limits = SortedSetLimits { entries: 0, value: 0 };
    let count: u64 = if cfg!(miri) { 300 } else { 100_000 };
    /// Name, score of the member of an index, most bytes a member may take.
    type Order = (&'static str, fn(u64) -> u64, usize);
    let orders: [Order; 4] = [
        ("growing", |index| index, 56),
        ("falling", |index| (1 << 40) - index, 56),
        ("random", |index| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29), 60),
        ("one score", |_| 7, 60),
    ];
    for (name, score, bytes_max) in orders {
        let mut set = SortedSet::for_members(1, 1, limits);
        for index in 0..count {
            // Ten bytes in no particular order.
            let member = format!("m{:09}", index.wrapping_mul(0x9e37_79b9) % 1_000_000_007);
            set.update(&hasher, limits, member.as_bytes(), |_| Some(score(index) as f64));
        }
        let Repr::Indexed(indexed) = &set.0 else { panic!() };
        indexed.check();
        let each = set.bytes() / set.len();
        println!("{name}: {each} bytes each, of these {}", indexed.tree_bytes() / set.len());
        assert!(cfg!(miri) || each <= bytes_max, "{name}: {each} bytes a member");
    }
}
