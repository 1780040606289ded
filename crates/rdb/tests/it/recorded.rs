//! Files that real servers wrote (`fixtures/make.py`): of redis-server 7.0.15, and of older and newer
//! ones.

use ladon_rdb::{Field, Stream, StreamId, Value, Version};

use crate::check;
use crate::common::{Contents, contents, ordered};

pub const COMPRESSED: &[u8] = include_bytes!("fixtures/redis-7.0.rdb");
pub const PLAIN: &[u8] = include_bytes!("fixtures/redis-7.0-plain.rdb");

const REDIS_6_2: &[u8] = include_bytes!("fixtures/redis-6.2.rdb");
const REDIS_8_0: &[u8] = include_bytes!("fixtures/redis-8.0.rdb");
const VALKEY_9_1: &[u8] = include_bytes!("fixtures/valkey-9.1.rdb");

fn read(file: &[u8]) -> Contents {
    contents(file).unwrap()
}

fn strings<const N: usize>(all: [&str; N]) -> Vec<Vec<u8>> {
    all.map(|string| string.as_bytes().to_vec()).to_vec()
}

fn numbered(name: &str, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("{name}-{n}").into_bytes()).collect()
}

#[test]
fn both_hold_the_same_and_say_what_they_are() {
    let (compressed, plain) = (read(COMPRESSED), read(PLAIN));
    assert_eq!((compressed.version, plain.version), (10, 10));
    assert_eq!(compressed.aux["redis-ver"], "7.0.15");
    assert_eq!(plain.aux["redis-bits"], "64");
    assert!(compressed.checksum.is_some());
    assert_eq!(plain.checksum, None, "switched off");
    assert_eq!(compressed.functions.len(), 1);
    assert!(compressed.functions[0].starts_with(b"#!lua name=library\n"));
    assert_eq!(compressed.functions, plain.functions);
    assert_eq!(compressed.keys.len(), 24);
    // Both were filled by their own commands, at their own times.
    for key in compressed.keys.keys().filter(|(_, name)| name != "stream:groups") {
        let is_same = ordered(&compressed.keys[key].1) == ordered(&plain.keys[key].1);
        assert!(is_same, "{key:?}");
    }
}

#[test]
fn facts_of_keys() {
    let (lru, lfu) = (read(COMPRESSED), read(PLAIN));
    let key = |contents: &Contents, name: &str| contents.keys[&(0, name.to_owned())].0.clone();
    assert_eq!(key(&lru, "expiring").expires_at_ms, Some(4_000_000_000_123));
    assert_eq!(key(&lru, "string:raw").expires_at_ms, None);
    assert!(key(&lru, "string:raw").idle_s.is_some());
    assert!(key(&lfu, "string:raw").frequency.is_some());
    assert_eq!(key(&lfu, "string:raw").idle_s, None);
    assert_eq!(lru.keys[&(3, "elsewhere".to_owned())].1, Value::String(b"1".to_vec()));
}

#[test]
fn strings_of_every_form() {
    let contents = read(COMPRESSED);
    for (key, expected) in [
        ("string:raw", &b"a few bytes"[..]),
        ("string:empty", b""),
        ("string:int8", b"-128"),
        ("string:int16", b"12345"),
        ("string:int32", b"-2147483648"),
        ("string:int64", b"1099511627776"),
        ("string:lzf", "abcdefgh".repeat(100).as_bytes()),
        ("string:binary", &(0..=255).collect::<Vec<u8>>()),
    ] {
        assert_eq!(contents.value(key), &Value::String(expected.to_vec()), "{key}");
    }
}

#[test]
fn collections_of_every_form() {
    let contents = read(COMPRESSED);
    let is = |key: &str, encoding: &str, value: Value| {
        assert_eq!(contents.encoding(key), encoding, "{key}");
        assert_eq!(ordered(contents.value(key)), ordered(&value));
    };
    let long = "x".repeat(100);
    let small =
        ["a", "1", "-4096", "70000", "-8388608", "2147483647", "4611686018427387904", &long];
    is("list:small", "list (quicklist 2)", Value::List(strings(small)));
    is("list:large", "list (quicklist 2)", Value::List(numbered("element", 600)));
    let long = "long".repeat(50);
    let elements = strings(["short", &long, "after"]);
    is("list:long-elements", "list (quicklist 2)", Value::List(elements));
    for (width, step) in [(16, 1), (32, 100_000), (64, 10_000_000_000_i64)] {
        let members = (-3..4).map(|n: i64| (n * step).to_string().into_bytes()).collect();
        is(&format!("set:intset{width}"), "set (intset)", Value::Set(members));
    }
    is("set:large", "set (plain)", Value::Set(numbered("member", 200)));
    let scored = [
        ("least", f64::NEG_INFINITY),
        ("less", -2.5),
        ("one", 1.0),
        ("1", 1e300),
        ("most", f64::INFINITY),
    ];
    let scored = scored.map(|(member, score)| (member.as_bytes().to_vec(), score));
    is("zset:small", "zset (listpack)", Value::SortedSet(scored.to_vec()));
    let members = numbered("member", 200).into_iter().enumerate();
    let members = members.map(|(n, member)| (member, n as f64 / 4.0)).collect();
    is("zset:large", "zset (plain)", Value::SortedSet(members));
    let field = |name: &str, value: &str| Field {
        name: name.into(),
        value: value.into(),
        expires_at_ms: None,
    };
    let fields = vec![field("field", "value"), field("number", "42"), field("7", "")];
    is("hash:small", "hash (listpack)", Value::Hash(fields));
    let fields = (0..600).map(|n| field(&format!("field-{n}"), &format!("value-{n}"))).collect();
    is("hash:large", "hash (plain)", Value::Hash(fields));
}

#[test]
fn streams() {
    let contents = read(COMPRESSED);
    assert_eq!(contents.encoding("stream:small"), "stream (listpacks 2)");
    let Value::Stream(small) = contents.value("stream:small") else { panic!() };
    let of = |n: usize| {
        let entry = &small.entries[n];
        let show = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let fields: Vec<_> = entry.fields.iter().map(|(a, b)| (show(a), show(b))).collect();
        format!("{}-{} {fields:?}", entry.id.ms, entry.id.seq)
    };
    assert_eq!(of(0), r#"5-1 [("temperature", "20"), ("place", "here")]"#);
    assert_eq!(of(1), r#"5-2 [("temperature", "-21"), ("place", "there")]"#);
    assert_eq!(of(2), r#"6-0 [("other", "fields")]"#);
    assert_eq!(small.state.last_id, StreamId { ms: 6, seq: 0 });

    let Value::Stream(stream) = contents.value("stream:groups") else { panic!() };
    let id = |n: u64| StreamId { ms: 1000 + n, seq: n };
    let ids: Vec<StreamId> = stream.entries.iter().map(|entry| entry.id).collect();
    let expected: Vec<StreamId> = (0..249).filter(|&n| n != 1).map(id).collect();
    assert_eq!(ids, expected, "without the deleted ones");
    assert_eq!(stream.state.length, 248);
    assert_eq!(stream.state.last_id, id(249));
    let counters = stream.state.counters.unwrap();
    assert_eq!(counters.first_id, id(0));
    assert_eq!(counters.max_deleted_id, id(249));
    assert_eq!(counters.entries_added, 250);
    let [first, second] = &stream.groups[..] else { panic!() };
    assert_eq!((&first.head.name[..], &second.head.name[..]), (&b"first"[..], &b"second"[..]));
    assert_eq!(second.head.last_id, StreamId { ms: 1100, seq: 0 });
    let pending: Vec<StreamId> = first.pending.iter().map(|pending| pending.id).collect();
    assert_eq!(pending, [id(0), id(3), id(4), id(5)]);
    assert!(first.pending.iter().all(|p| p.deliveries == 1 && p.delivered_at_ms > 1 << 40));
    let of_consumers: Vec<_> =
        first.consumers.iter().map(|c| (&c.head.name[..], c.pending.clone())).collect();
    let expected =
        [(&b"alice"[..], vec![id(0), id(3)]), (b"bob", vec![id(4), id(5)]), (b"idle", vec![])];
    assert_eq!(of_consumers, expected);
    let Value::Stream(empty) = contents.value("stream:empty") else { panic!() };
    assert_eq!((empty.entries.len(), empty.groups.len()), (0, 1));
}

/// What is the same whenever and by whichever version a stream was filled.
fn of_stream(stream: &Stream) -> Vec<String> {
    let groups = stream.groups.iter().map(|group| {
        let pending: Vec<StreamId> = group.pending.iter().map(|pending| pending.id).collect();
        let consumers: Vec<_> =
            group.consumers.iter().map(|it| (it.head.name.escape_ascii(), &it.pending)).collect();
        format!("{:?} {} {pending:?} {consumers:?}", group.head.name, group.head.last_id.ms)
    });
    let entries = stream.entries.iter().map(|entry| format!("{entry:?}"));
    entries.chain(groups).chain([format!("{:?}", stream.state.last_id)]).collect()
}

#[test]
fn other_versions_wrote_the_same() {
    let known = read(COMPRESSED);
    for (file, version, more) in [(REDIS_6_2, 9, 0), (REDIS_8_0, 12, 3), (VALKEY_9_1, 80, 3)] {
        let contents = read(file);
        assert_eq!(contents.version, version);
        assert_eq!(contents.functions.len(), usize::from(version > 9));
        assert_eq!(contents.keys.len(), known.keys.len() + more, "version {version}");
        for (at, (key, value)) in &known.keys {
            let (their_key, theirs) = &contents.keys[at];
            assert_eq!(key.expires_at_ms, their_key.expires_at_ms, "{at:?}");
            match (ordered(value), ordered(theirs)) {
                (Value::Stream(ours), Value::Stream(theirs)) => {
                    assert_eq!(of_stream(&ours), of_stream(&theirs), "version {version}");
                }
                (ours, theirs) => assert_eq!(ours, theirs, "{at:?} of version {version}"),
            }
        }
    }
}

#[test]
fn other_versions_have_encodings_of_their_own() {
    let forms = [
        "list:small",
        "zset:small",
        "hash:small",
        "stream:groups",
        "set:small",
        "expiring:small",
        "expiring:large",
    ];
    for (file, encodings) in [
        (
            REDIS_6_2,
            &["list (quicklist)", "zset (ziplist)", "hash (ziplist)", "stream (listpacks)"][..],
        ),
        (
            REDIS_8_0,
            &[
                "list (quicklist 2)",
                "zset (listpack)",
                "hash (listpack)",
                "stream (listpacks 3)",
                "set (listpack)",
                "hash (listpack with expiry)",
                "hash (metadata)",
            ],
        ),
        (
            VALKEY_9_1,
            &[
                "list (quicklist 2)",
                "zset (listpack)",
                "hash (listpack)",
                "stream (listpacks 3)",
                "set (listpack)",
                "hash (with expiry, of Valkey)",
                "hash (with expiry, of Valkey)",
            ],
        ),
    ] {
        let contents = read(file);
        for (key, encoding) in forms.iter().zip(encodings) {
            assert_eq!(contents.encoding(key), *encoding, "{key}");
        }
    }
}

#[test]
fn fields_expire() {
    for file in [REDIS_8_0, VALKEY_9_1] {
        let contents = read(file);
        for (key, count) in [("expiring:small", 3), ("expiring:large", 600)] {
            let expected = (0..count).map(|n| Field {
                name: format!("field-{n}").into(),
                value: n.to_string().into(),
                expires_at_ms: [4_000_000_000_123, 4_000_000_000_456].get(n).copied(),
            });
            let expected = ordered(&Value::Hash(expected.collect()));
            assert_eq!(ordered(contents.value(key)), expected, "{key}");
        }
    }
}

/// As each version writes them.
#[test]
fn other_versions_are_written_and_read_again() {
    for (file, version) in [
        (REDIS_6_2, Version::Redis9),
        (COMPRESSED, Version::Redis10),
        (REDIS_8_0, Version::Redis12),
        (VALKEY_9_1, Version::Valkey80),
    ] {
        for (at, (key, value)) in &read(file).keys {
            let mut writer = ladon_rdb::Writer::new(Vec::new(), version).unwrap();
            writer.key(&key.name, &ladon_rdb::KeyFacts::default(), value).unwrap();
            let again = read(&writer.finish().unwrap());
            let (_, again) = again.keys.into_values().next().unwrap();
            let known = |value| check::known_to(value, version);
            assert_eq!(known(&again), known(value), "{at:?} by {version:?}");
        }
    }
}

#[test]
fn what_was_read_is_written_and_read_again() {
    for file in [COMPRESSED, PLAIN, REDIS_6_2, REDIS_8_0, VALKEY_9_1] {
        for (_, value) in read(file).keys.values() {
            check::survives(value);
        }
        check::any_bytes(file);
    }
}
