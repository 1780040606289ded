//! What a record costs that is followed while clients may read, beside what it costs a start:
//! nanoseconds per record, medians of interleaved rounds.
//!
//! `cargo run --profile fast -p ladon-engine --example follow_cost`

use ladon_engine::{EventClass, Keyspace, KeyspaceOptions, Recovering, Scratch};
use ladon_record::{Change, Lsn, ValueKind};
use std::time::Instant;

const RECORDS: u64 = 200_000;
const ROUNDS: usize = 9;

fn keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 1 })
}

fn records(change: impl Fn(u64, &mut Vec<u8>)) -> Vec<Vec<u8>> {
    let encoded = |number| {
        let mut record = Vec::new();
        change(number, &mut record);
        record
    };
    (0..RECORDS).map(encoded).collect()
}

/// Strings of 100 bytes: each key twice, so half of them replace one.
fn set(number: u64, record: &mut Vec<u8>) {
    let (key, body) = (format!("key:{}", number % (RECORDS / 2)), [b'v'; 100]);
    let (kind, key) = (ValueKind::String, key.as_bytes());
    Change::Put { db: 0, key, expire_at: 0, kind, body: &body }.encode(record);
}

/// A member more in one of 1,000 sets.
fn add(number: u64, record: &mut Vec<u8>) {
    let (key, member) = (format!("set:{}", number % 1000), format!("member:{number}"));
    let (kind, mut member) = (ValueKind::Set, member.into_bytes());
    member.insert(0, member.len() as u8);
    let key = key.as_bytes();
    if number < 1000 {
        Change::Put { db: 0, key, expire_at: 0, kind, body: &member }.encode(record);
    } else {
        member.insert(0, 1);
        Change::Update { db: 0, key, kind, op: &member }.encode(record);
    }
}

fn followed(records: &[Vec<u8>], classes: EventClass) -> f64 {
    let (keyspace, mut scratch) = (keyspace(), Scratch::default());
    keyspace.set_follower(true);
    keyspace.collect_events(classes);
    let begin = Instant::now();
    for (lsn, record) in (1..).zip(records) {
        keyspace.follow(Lsn(lsn), record, &mut scratch, 1).expect("it fits");
    }
    begin.elapsed().as_nanos() as f64 / records.len() as f64
}

fn replayed(records: &[Vec<u8>]) -> f64 {
    let keyspace = keyspace();
    let recovering = Recovering::new(&keyspace, 1);
    let mut replay = recovering.replay((0, 1));
    let begin = Instant::now();
    for (lsn, record) in (1..).zip(records) {
        replay.record(Lsn(lsn), record).expect("it fits");
    }
    begin.elapsed().as_nanos() as f64 / records.len() as f64
}

fn main() {
    type Change = fn(u64, &mut Vec<u8>);
    let works: [(&str, Change); 2] = [("SET of 100 bytes", set), ("SADD of a member", add)];
    for (name, change) in works {
        let records = records(change);
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            rounds[0].push(replayed(&records));
            rounds[1].push(followed(&records, EventClass::NONE));
            rounds[2]
                .push(followed(&records, EventClass(EventClass::STRING.0 | EventClass::SET.0)));
        }
        let [replay, follow, heard] = rounds.map(|mut round| {
            round.sort_by(f64::total_cmp);
            round[ROUNDS / 2]
        });
        println!(
            "{name}: replayed {replay:.0} ns, followed {follow:.0} ns ({:.2}), with keyspace events \
             {heard:.0} ns",
            follow / replay
        );
    }
}
