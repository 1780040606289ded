//! What is written here, a real redis-server loads, and it writes the same again.

use ladon_rdb::{KeyFacts, Version, Writer};

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
