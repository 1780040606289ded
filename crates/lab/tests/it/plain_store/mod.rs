//! A plain model of a store, and any operations on it: what real servers are held against.

use std::collections::{BTreeMap, BTreeSet};

use ladon_lab::load::random::Random;
use ladon_lab::operation::{Answer, Operation};

/// What a store ought to hold.
#[derive(Default)]
pub struct Model {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    counters: BTreeMap<Vec<u8>, i64>,
    sets: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    rows: BTreeMap<u64, (u64, Vec<u8>)>,
    tuples: BTreeMap<u64, Vec<u8>>,
}

impl Model {
    /// What it answers.
    pub fn answer(&mut self, operation: &Operation) -> Answer {
        match operation.clone() {
            Operation::Ping => Answer::Done,
            Operation::Set { key, value } => {
                self.values.insert(key, value);
                Answer::Done
            }
            Operation::Get { key } | Operation::GetByCall { key } => {
                Answer::Value(self.values.get(&key).cloned())
            }
            Operation::Delete { key } => Answer::Existed(self.values.remove(&key).is_some()),
            Operation::Add { key, by } => {
                let counter = self.counters.entry(key).or_default();
                *counter += by;
                Answer::Integer(*counter)
            }
            Operation::AddMember { set, member } => {
                Answer::Existed(!self.sets.entry(set).or_default().insert(member))
            }
            Operation::Members { set } => {
                Answer::Members(self.sets.get(&set).into_iter().flatten().cloned().collect())
            }
            Operation::SetMany { pairs } => {
                self.values.extend(pairs);
                Answer::Done
            }
            Operation::InsertRow { id, group, value } => {
                self.rows.insert(id, (group, value));
                Answer::Done
            }
            Operation::InsertTuple { id, value } => {
                self.tuples.insert(id, value);
                Answer::Done
            }
            Operation::FindByGroup { group } => {
                let rows = self.rows.iter().filter(|(_, (of, _))| *of == group);
                Answer::Rows(rows.map(|(id, (_, value))| (*id, value.clone())).collect())
            }
            Operation::ScanFrom { key, count } => {
                let values = self.values.range(key..).take(count);
                Answer::Members(values.map(|(_, value)| value.clone()).collect())
            }
        }
    }
}

/// Any operation on few keys, so that they meet. Members and rows are added once each: that is what
/// the works do, and what not every system could refuse.
pub fn operation(
    random: &mut Random,
    number: usize,
    bytes: &dyn Fn(&mut Random) -> Vec<u8>,
) -> Operation {
    let key = |random: &mut Random| format!("key:{}", random.below(20)).into_bytes();
    match random.below(13) {
        0 => Operation::Set { key: key(random), value: bytes(random) },
        1 => Operation::Get { key: key(random) },
        2 => Operation::Delete { key: key(random) },
        3 => Operation::Add {
            key: format!("n:{}", random.below(5)).into(),
            by: random.below(2001) as i64 - 1000,
        },
        4 => Operation::AddMember {
            set: format!("set:{}", random.below(5)).into(),
            member: format!("member:{number}").into(),
        },
        5 => Operation::Members { set: format!("set:{}", random.below(5)).into() },
        6 => {
            let pairs = (0..random.below(30)).map(|_| (key(random), bytes(random)));
            let mut pairs: Vec<_> = pairs.collect();
            pairs.push((key(random), bytes(random)));
            Operation::SetMany { pairs }
        }
        7 => Operation::InsertRow {
            id: number as u64,
            group: random.below(5).into(),
            value: bytes(random),
        },
        8 => Operation::FindByGroup { group: random.below(5).into() },
        9 => Operation::GetByCall { key: key(random) },
        10 => Operation::InsertTuple { id: number as u64, value: bytes(random) },
        11 => Operation::Ping,
        _ => Operation::ScanFrom { key: key(random), count: 1 + random.below(5) as usize },
    }
}

/// Values of any bytes and lengths around where encodings change.
pub fn any_bytes(random: &mut Random) -> Vec<u8> {
    let lengths = [0, 1, 31, 32, 64, 255, 256, 1000, 65_535, 70_000];
    let length = lengths[random.below(lengths.len() as u32) as usize];
    (0..length).map(|_| random.below(256) as u8).collect()
}
