//! Any value is read as it was written, by every version that knows it.

use std::collections::BTreeMap;

use ladon_rdb::{
    Consumer, ConsumerHead, Entry, Field, Group, GroupHead, KeyFacts, Pending, Stream,
    StreamCounters, StreamId, StreamState, Value, Version, Writer,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use crate::check;
use crate::common::contents;

/// Short, long, and numbers.
fn string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..20),
        any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        (-200..70_000_i64).prop_map(|n| n.to_string().into_bytes()),
        Just(b"-0".to_vec()),
        Just(b"007".to_vec()),
        vec(any::<u8>(), 60..70),
        (any::<u8>(), 4000..5000_usize).prop_map(|(byte, count)| vec![byte; count]),
        (any::<u8>(), 16_380..70_000_usize).prop_map(|(byte, count)| vec![byte; count]),
    ]
}

fn id() -> impl Strategy<Value = StreamId> {
    let number = || prop_oneof![0..20_u64, any::<u64>()];
    (number(), number()).prop_map(|(ms, seq)| StreamId { ms, seq })
}

fn fields() -> impl Strategy<Value = Value> {
    let expiry = proptest::option::of(1..i64::MAX as u64);
    btree_map(string(), (string(), expiry), 1..10).prop_map(|fields| {
        let fields = fields.into_iter();
        let field = |(name, (value, expires_at_ms))| Field { name, value, expires_at_ms };
        Value::Hash(fields.map(field).collect())
    })
}

fn group() -> impl Strategy<Value = (Option<u64>, BTreeMap<StreamId, (i64, u64)>, bool)> {
    let pending = btree_map(id(), (any::<i64>(), any::<u64>()), 0..5);
    (proptest::option::of(0..1_u64 << 60), pending, any::<bool>())
}

fn stream() -> impl Strategy<Value = Value> {
    let entry = vec((string(), string()), 0..4);
    let entries = btree_map(id(), entry, 0..150);
    (entries, id(), id(), btree_map(string(), group(), 0..3)).prop_map(
        |(entries, last_id, max_deleted_id, groups)| {
            let entries: Vec<Entry> =
                entries.into_iter().map(|(id, fields)| Entry { id, fields }).collect();
            let greatest = entries.last().map(|entry| entry.id).unwrap_or_default();
            let first_id = entries.first().map(|entry| entry.id).unwrap_or_default();
            let length = entries.len() as u64;
            let counters = StreamCounters { first_id, max_deleted_id, entries_added: length + 7 };
            let state =
                StreamState { length, last_id: last_id.max(greatest), counters: Some(counters) };
            let groups = groups.into_iter().map(|(name, (entries_read, pending, is_active))| {
                let ids = pending.keys().copied().collect();
                let active_at_ms = is_active.then_some(5);
                let head = ConsumerHead { name: b"one".to_vec(), seen_at_ms: 9, active_at_ms };
                let pending = pending.into_iter();
                Group {
                    head: GroupHead { name, last_id, entries_read },
                    pending: pending
                        .map(|(id, (delivered_at_ms, deliveries))| Pending {
                            id,
                            delivered_at_ms,
                            deliveries,
                        })
                        .collect(),
                    consumers: vec![Consumer { head, pending: ids }],
                }
            });
            Value::Stream(Stream { entries, state, groups: groups.collect() })
        },
    )
}

fn value() -> impl Strategy<Value = Value> {
    let score = any::<f64>().prop_filter("a number", |score| !score.is_nan());
    prop_oneof![
        string().prop_map(Value::String),
        vec(string(), 1..30).prop_map(Value::List),
        btree_set(string(), 1..30).prop_map(|set| Value::Set(set.into_iter().collect())),
        btree_map(string(), score, 1..30)
            .prop_map(|set| Value::SortedSet(set.into_iter().collect())),
        fields(),
        stream(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_payload_holds_its_value(value in value()) {
        check::survives(&value);
    }

    #[test]
    fn a_file_holds_its_keys(
        values in btree_map("[a-z]{1,9}", (value(), any::<Option<i64>>()), 0..6),
        version in proptest::sample::select(&Version::ALL[..]),
    ) {
        let mut writer = Writer::new(Vec::new(), version).unwrap();
        writer.aux(b"made-by", b"a test").unwrap();
        writer.select_db(7).unwrap();
        writer.resize_db(values.len() as u64, 0).unwrap();
        let mut expected = BTreeMap::new();
        for (name, (value, expires_at_ms)) in &values {
            let facts = KeyFacts { expires_at_ms: *expires_at_ms, ..KeyFacts::default() };
            // A hash whose fields expire is not for every version, and leaves nothing behind.
            if writer.key(name.as_bytes(), &facts, value).is_ok() {
                let value = check::known_to(value, version);
                expected.insert((7, name.clone()), (*expires_at_ms, value));
            }
        }
        let file = writer.finish().unwrap();
        let contents = contents(&file[..]).unwrap();
        prop_assert_eq!(contents.version, u32::from(version.number()));
        prop_assert!(contents.checksum.is_some());
        let found = contents.keys.into_iter();
        let found: BTreeMap<_, _> = found
            .map(|(at, (key, value))| (at, (key.expires_at_ms, check::known_to(&value, version))))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
