//! What must hold for any bytes as a file or a payload. Shared by the corpus' replay and the fuzz
//! target `rdb_reader`.

use std::io::{self, Read};

use ladon_rdb::{Dialect, Event, Reader, Value, Version, payload};

/// Gives one byte at a time.
struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = out.len().min(1);
        self.0.read(&mut out[..count])
    }
}

/// A file is read the same however its bytes arrive, and a value that is read is read again from
/// what is written of it.
pub fn any_bytes(bytes: &[u8]) {
    let at_once = events(bytes);
    let dribbled = events(Dribble(bytes));
    assert_eq!(format!("{at_once:?}"), format!("{dribbled:?}"));
    for dialect in [Dialect::Redis, Dialect::Valkey] {
        if let Ok(value) = payload::read_value(bytes, dialect) {
            survives(&value);
        }
    }
}

fn events(read: impl Read) -> (Vec<Event>, Option<String>) {
    let mut events = Vec::new();
    for event in Reader::new(read) {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error.to_string())),
        }
    }
    assert!(matches!(events.last(), Some(Event::End { .. })));
    (events, None)
}

/// The value as every version that knows it writes it.
pub fn survives(value: &Value) {
    let mut written = 0;
    for version in Version::ALL {
        let Ok(payload) = payload::make(value, version) else { continue };
        written += 1;
        let (body, dialect) = payload::open(&payload).expect("its own payload");
        let again = payload::read_value(body, dialect).expect("its own value");
        assert_eq!(known_to(value, version), known_to(&again, version), "version {version:?}");
    }
    assert!(written > 0 || is_beyond_writing(value), "no version writes {value:?}");
}

/// A field's expiry of 0 means none where it is written.
fn is_beyond_writing(value: &Value) -> bool {
    matches!(value, Value::Hash(fields) if fields.iter().any(|f| f.expires_at_ms == Some(0)))
}

/// The value without what a version does not write.
pub fn known_to(value: &Value, version: Version) -> Value {
    let mut value = value.clone();
    if let Value::Stream(stream) = &mut value {
        if version == Version::Redis9 {
            stream.state.counters = None;
        } else if stream.state.counters.is_none() {
            let first = stream.entries.first();
            stream.state.counters = Some(ladon_rdb::StreamCounters {
                first_id: first.map(|entry| entry.id).unwrap_or_default(),
                max_deleted_id: Default::default(),
                entries_added: stream.state.length,
            });
        }
        for group in &mut stream.groups {
            if version == Version::Redis9 || group.head.entries_read == Some(u64::MAX) {
                group.head.entries_read = None;
            }
            for consumer in &mut group.consumers {
                if version < Version::Redis11 || consumer.head.active_at_ms == Some(-1) {
                    consumer.head.active_at_ms = None;
                }
            }
        }
    }
    value
}
