//! What is written here, a real redis-server loads or restores, and it writes the same again.

use ladon_rdb::{KeyFacts, Version, Writer, payload};

use crate::check::known_to;
use crate::common::{Contents, Redis, contents, ordered};
use crate::recorded::COMPRESSED;

fn written(contents: &Contents, version: Version) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), version).unwrap();
    writer.aux(b"redis-bits", b"64").unwrap();
    if version > Version::Redis9 {
        for source in &contents.functions {
            writer.function(source).unwrap();
        }
    }
    let mut database = None;
    for ((number, _), (key, value)) in &contents.keys {
        if database != Some(*number) {
            writer.select_db(*number).unwrap();
            database = Some(*number);
        }
        let facts = KeyFacts { expires_at_ms: key.expires_at_ms, ..KeyFacts::default() };
        writer.key(&key.name, &facts, value).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_written_file_is_loaded() {
    let before = contents(COMPRESSED).unwrap();
    for version in [Version::Redis9, Version::Redis10] {
        let Some(mut redis) = Redis::load(&written(&before, version)) else { return };
        let after = contents(&redis.save()[..]).unwrap();
        if version > Version::Redis9 {
            assert_eq!(before.functions, after.functions);
        }
        assert_eq!(before.keys.len(), after.keys.len());
        for (at, (key, value)) in &before.keys {
            let (their_key, their_value) = &after.keys[at];
            assert_eq!(key.expires_at_ms, their_key.expires_at_ms, "{at:?}");
            let known = |value| known_to(&ordered(value), version);
            assert_eq!(known(value), known(their_value), "{at:?} by version {version:?}");
        }
    }
}

#[test]
fn a_payload_is_restored_and_dumped() {
    let before = contents(COMPRESSED).unwrap();
    let empty = Writer::new(Vec::new(), Version::Redis9).unwrap().finish().unwrap();
    let Some(mut redis) = Redis::load(&empty) else { return };
    for version in [Version::Redis9, Version::Redis10] {
        for (key, value) in before.keys.values() {
            let payload = payload::make(value, version).unwrap();
            let restore = [&b"RESTORE"[..], &key.name, b"0", &payload, b"REPLACE"];
            assert_eq!(redis.request(&restore).0, "+OK", "{key:?}");
            let (_, dumped) = redis.request(&[b"DUMP", &key.name]);
            let (body, dialect) = payload::open(&dumped).unwrap();
            let theirs = payload::read_value(body, dialect).unwrap();
            let known = |value| known_to(&ordered(value), version);
            assert_eq!(known(value), known(&theirs), "{key:?} by version {version:?}");
        }
    }
    let mut damaged = payload::make(before.value("list:small"), Version::Redis10).unwrap();
    damaged[3] ^= 1;
    let (refused, _) = redis.request(&[b"RESTORE", b"damaged", b"0", &damaged]);
    assert!(refused.starts_with("-ERR"), "{refused}");
    assert_eq!(payload::open(&damaged), None);
}
