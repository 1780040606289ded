//! Encodings that the redis-server at hand no longer writes, or does not write yet, by hand. Those
//! that it reads, it reads as they are read here.

use ladon_rdb::{Field, StreamId, Value};

use crate::common::{Redis, contents, ordered};
use crate::packs::{file, join, key, listpack, string, ziplist};

/// Elements of a ziplist in every form, and what they are.
fn ziplist_of_every_form() -> (Vec<u8>, Vec<Vec<u8>>) {
    let middle = [b"\x40\x64".to_vec(), vec![b'm'; 100]].concat();
    let long = [b"\x41\x2c".to_vec(), vec![b'n'; 300]].concat();
    let longest = [b"\x80\x00\x00\x40\x00".to_vec(), vec![b'o'; 0x4000]].concat();
    let entries: [&[u8]; 13] = [
        b"\x01a",
        b"\x00",
        b"\xf1",
        b"\xfd",
        b"\xfe\x80",
        b"\xc0\x00\x80",
        b"\xf0\x00\x00\x80",
        b"\xd0\x00\x00\x00\x80",
        b"\xe0\x00\x00\x00\x00\x00\x00\x00\x80",
        &middle,
        &long,
        &longest,
        b"\x03end",
    ];
    let mut expected: Vec<Vec<u8>> =
        ["a", "", "0", "12", "-128", "-32768", "-8388608", "-2147483648", "-9223372036854775808"]
            .map(|text| text.as_bytes().to_vec())
            .to_vec();
    let lengths = [(b'm', 100), (b'n', 300), (b'o', 0x4000)];
    expected.extend(lengths.map(|(byte, count)| vec![byte; count]));
    expected.push(b"end".to_vec());
    (ziplist(&entries), expected)
}

/// A node at 7-1: two entries with the node's field, and a deleted one with its own between them.
fn stream_node() -> Vec<u8> {
    let pack = listpack(&[
        b"\x02",
        b"\x01",
        b"\x01",
        b"\x81f",
        b"\x00",
        // 7-1
        b"\x02",
        b"\x00",
        b"\x00",
        b"\x82v1",
        b"\x04",
        // 7-2, deleted
        b"\x01",
        b"\x00",
        b"\x01",
        b"\x01",
        b"\x81g",
        b"\x81x",
        b"\x06",
        // 9-0: a difference below zero
        b"\x02",
        b"\x02",
        b"\xdf\xff",
        b"\x7f",
        b"\x04",
    ]);
    join(&[b"\x01", &string(b"\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01"), &string(&pack)])
}

fn is_the_stream(value: &Value) {
    let Value::Stream(stream) = value else { panic!("{value:?}") };
    let shown: Vec<_> = stream
        .entries
        .iter()
        .map(|entry| (entry.id.ms, entry.id.seq, &entry.fields[0].0[..], &entry.fields[0].1[..]))
        .collect();
    assert_eq!(shown, [(7, 1, &b"f"[..], &b"v1"[..]), (9, 0, b"f", b"127")]);
    let [group] = &stream.groups[..] else { panic!("{:?}", stream.groups) };
    assert_eq!(group.head.last_id, StreamId { ms: 7, seq: 1 });
    let [pending] = group.pending[..] else { panic!("{:?}", group.pending) };
    assert_eq!((pending.id.ms, pending.delivered_at_ms, pending.deliveries), (7, 16, 3));
    assert_eq!(group.consumers[0].head.name, b"bob");
    assert_eq!(group.consumers[0].head.seen_at_ms, 32);
    assert_eq!(group.consumers[0].pending, [pending.id]);
}

/// What Redis up to 6 wrote.
fn old_file() -> Vec<u8> {
    let (packed, _) = ziplist_of_every_form();
    let pairs = ziplist(&[b"\x01m", b"\x041.25", b"\x02mm", b"\xf3"]);
    let head = b"\x02\x03one\x01\x00\x31\x03two\xfe\x2c\x01\0\0\x02";
    let zipmap = join(&[head, &[b'v'; 300], b"..\xff"]);
    let stream_end = b"\x02\x09\x00\x01\x05group\x07\x01\x01\
        \0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01\
        \x10\0\0\0\0\0\0\0\x03\x01\x03bob\x20\0\0\0\0\0\0\0\x01\
        \0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01";
    let seconds = join(&[b"\xfd", &2_000_000_000_i32.to_le_bytes()]);
    file(
        "REDIS0009",
        &[
            b"\xfe\x00\xfb\x0b\x01",
            &seconds,
            &key(1, "list", b"\x02\x01a\xc0\x05"),
            &key(3, "zset", b"\x03\x01a\x041.25\x01b\xfe\x01c\xff"),
            &key(9, "zipmap", &string(&zipmap)),
            &key(10, "list-ziplist", &string(&packed)),
            &key(12, "zset-ziplist", &string(&pairs)),
            &key(13, "hash-ziplist", &string(&pairs)),
            &key(14, "quicklist", &join(&[b"\x02", &string(&packed), &string(&pairs)])),
            &key(15, "stream", &join(&[&stream_node(), stream_end])),
        ],
    )
}

fn field(name: &str, value: &str, expires_at_ms: Option<u64>) -> Field {
    Field { name: name.into(), value: value.into(), expires_at_ms }
}

#[test]
fn old_encodings() {
    let contents = contents(&old_file()[..]).unwrap();
    let (_, every_form) = ziplist_of_every_form();
    let list = &contents.keys[&(0, "list".to_owned())];
    assert_eq!(list.0.expires_at_ms, Some(2_000_000_000_000));
    assert_eq!(list.1, Value::List(vec![b"a".to_vec(), b"5".to_vec()]));
    let scored = |pairs: &[(&str, f64)]| {
        Value::SortedSet(pairs.iter().map(|(m, s)| (m.as_bytes().to_vec(), *s)).collect())
    };
    let infinite = [("a", 1.25), ("b", f64::INFINITY), ("c", f64::NEG_INFINITY)];
    assert_eq!(contents.value("zset"), &scored(&infinite));
    let fields = vec![field("one", "1", None), field("two", &"v".repeat(300), None)];
    assert_eq!(contents.value("zipmap"), &Value::Hash(fields));
    assert_eq!(contents.value("list-ziplist"), &Value::List(every_form.clone()));
    assert_eq!(contents.value("zset-ziplist"), &scored(&[("m", 1.25), ("mm", 2.0)]));
    let fields = vec![field("m", "1.25", None), field("mm", "2", None)];
    assert_eq!(contents.value("hash-ziplist"), &Value::Hash(fields));
    let mut elements = every_form;
    elements.extend(["m", "1.25", "mm", "2"].map(|text| text.as_bytes().to_vec()));
    assert_eq!(contents.value("quicklist"), &Value::List(elements));
    is_the_stream(contents.value("stream"));
}

/// The proof that the bytes above are what they are said to be.
#[test]
fn redis_reads_the_old_encodings_alike() {
    let file = old_file();
    let Some(mut redis) = Redis::load(&file) else { return };
    let (ours, theirs) = (contents(&file[..]).unwrap(), contents(&redis.save()[..]).unwrap());
    assert_eq!(ours.keys.len(), theirs.keys.len());
    for (at, (key, value)) in &ours.keys {
        let (their_key, their_value) = &theirs.keys[at];
        assert_eq!(key.expires_at_ms, their_key.expires_at_ms, "{at:?}");
        if at.1 == "stream" {
            is_the_stream(their_value);
        } else {
            assert_eq!(ordered(value), ordered(their_value), "{at:?}");
        }
    }
}

/// What Redis 7.2, 7.4 and 8 and Valkey 9 write.
#[test]
fn new_encodings() {
    let numbers: [&[u8]; 8] = [
        b"\x7f",
        b"\xd0\x00",
        b"\xcf\xff",
        b"\xf1\x00\x80",
        b"\xf2\x00\x00\x80",
        b"\xf3\x00\x00\x00\x80",
        b"\xf4\x00\x00\x00\x00\x00\x00\x00\x80",
        b"\x83end",
    ];
    let long = [b"\xe1\x2c".to_vec(), vec![b'n'; 300]].concat();
    let longest = [b"\xf0\x00\x10\x00\x00".to_vec(), vec![b'o'; 0x1000]].concat();
    let members = [&numbers[..], &[&long, &longest]].concat();
    let end_3 = b"\x02\x09\x00\x07\x01\x07\x02\x03\x01\x05group\x07\x01\x01\x01\
        \0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01\
        \x10\0\0\0\0\0\0\0\x03\x01\x03bob\x20\0\0\0\0\0\0\0\x1f\0\0\0\0\0\0\0\x01\
        \0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01";
    let at = 1_700_000_000_000_u64;
    let at_lp = join(&[b"\xf4", &at.to_le_bytes()]);
    let expiring = listpack(&[b"\x81f", b"\x81v", &at_lp, b"\x81g", b"\x81w", b"\x00"]);
    let at_length = join(&[b"\x81", &at.to_be_bytes()]);
    let least = at.to_le_bytes();
    let file = file(
        "REDIS0012",
        &[
            b"\xfe\x00\xf4\x05\x06\x01",
            &key(20, "set", &string(&listpack(&members))),
            &key(21, "stream", &join(&[&stream_node(), end_3])),
            &key(22, "pre-ga", &join(&[b"\x02", &at_length, b"\x01f\x01v\x00\x01g\x01w"])),
            &key(23, "pre-ga-listpack", &string(&expiring)),
            &key(
                24,
                "metadata",
                &join(&[&least, b"\x03\x01\x01f\x01v\x00\x01g\x01w\x05\x01h\x01x"]),
            ),
            &key(25, "listpack", &join(&[&least, &string(&expiring)])),
        ],
    );
    let contents = contents(&file[..]).unwrap();
    let mut expected: Vec<Vec<u8>> = [
        "127",
        "-4096",
        "4095",
        "-32768",
        "-8388608",
        "-2147483648",
        "-9223372036854775808",
        "end",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    expected.extend([vec![b'n'; 300], vec![b'o'; 0x1000]]);
    assert_eq!(contents.value("set"), &Value::Set(expected));
    is_the_stream(contents.value("stream"));
    let Value::Stream(stream) = contents.value("stream") else { panic!() };
    assert_eq!(stream.groups[0].consumers[0].head.active_at_ms, Some(31));
    assert_eq!(stream.groups[0].head.entries_read, Some(1));
    assert_eq!(stream.state.counters.unwrap().entries_added, 3);
    let two = vec![field("f", "v", Some(at)), field("g", "w", None)];
    for key in ["pre-ga", "pre-ga-listpack", "listpack"] {
        assert_eq!(contents.value(key), &Value::Hash(two.clone()), "{key}");
    }
    let three = [two, vec![field("h", "x", Some(at + 4))]].concat();
    assert_eq!(contents.value("metadata"), &Value::Hash(three));
}

#[test]
fn what_valkey_writes() {
    let at = 1_700_000_000_000_i64;
    let fields = join(&[b"\x02\x01f\x01v", &at.to_le_bytes(), b"\x01g\x01w", &[0xff; 8]]);
    let contents = contents(&file("VALKEY080", &[&key(22, "hash", &fields)])[..]).unwrap();
    assert_eq!(contents.version, 80);
    let expected = vec![field("f", "v", Some(at as u64)), field("g", "w", None)];
    assert_eq!(contents.value("hash"), &Value::Hash(expected));
}

/// Files of versions 1 to 4 have no checksum; all have had strings and seconds since.
#[test]
fn the_oldest_versions() {
    for version in 1..=12 {
        let bytes = file(&format!("REDIS{version:04}"), &[b"\xfe\x00", &key(0, "a", b"\x01b")]);
        let contents = contents(&bytes[..]).unwrap();
        assert_eq!(contents.value("a"), &Value::String(b"b".to_vec()), "{version}");
    }
}
