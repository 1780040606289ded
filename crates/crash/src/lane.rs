//! One connection's part of the load, and the check of what a crash left of it.

use crate::client::Client;
use crate::lane_data::LaneData;
use crate::operation::{self, HASHES, LISTS, Operation, SETS, SORTED_SETS};
use ladon_resp::client::{Value, write_request};
use ladon_testkit::Random;
use ladon_testkit::reference::Datum;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// A connection with its own keys; continues after crashes.
pub struct Lane {
    seed: u64,
    number: u64,
    /// Operations sent, in all rounds together.
    sent: u64,
    /// Operations acknowledged, from the first on.
    acknowledged: u64,
    /// The state after `acknowledged` operations.
    model: LaneData,
}

impl Lane {
    /// Lane `number` of a run with this seed.
    pub fn new(seed: u64, number: u64) -> Lane {
        Lane { seed, number, sent: 0, acknowledged: 0, model: LaneData::default() }
    }

    /// Operations acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Sends operations until the connection breaks, checking every reply.
    ///
    /// # Errors
    /// A reply that should have been another. A broken connection is none.
    pub fn load(&mut self, client: &mut Client, pipeline_max: u64) -> Result<(), String> {
        let mut random = Random::stream(self.seed, self.sent);
        let mut waiting: VecDeque<(Operation, usize)> = VecDeque::new();
        loop {
            let mut bytes = Vec::new();
            let room = (2 * pipeline_max).saturating_sub(waiting.len() as u64);
            for _ in 0..room.min(1 + random.below(pipeline_max)) {
                let operation = Operation::nth(self.seed, self.number, self.sent);
                let before = operation.write(self.number, &mut bytes);
                waiting.push_back((operation, before));
                self.sent += 1;
            }
            if client.send(&bytes).is_err() {
                return Ok(());
            }
            // Some stay on their way, so that a crash hits requests in every state.
            let leave = random.below(pipeline_max) as usize;
            while waiting.len() > leave {
                let Some((operation, before)) = waiting.pop_front() else { break };
                for _ in 0..before {
                    match client.reply() {
                        Ok(Value::Simple(text)) if text == b"OK" || text == b"QUEUED" => {}
                        Ok(other) => return Err(self.wrong(&operation, &"QUEUED", &other)),
                        Err(error) => return broken(error),
                    }
                }
                let got = match client.reply() {
                    Ok(got) => got,
                    Err(error) => return broken(error),
                };
                let wanted = self.model.apply(self.number, &operation);
                if got != wanted {
                    return Err(self.wrong(&operation, &wanted, &got));
                }
                self.acknowledged += 1;
            }
        }
    }

    /// Compares the server's state with the states that a crash may leave, and continues from
    /// there.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&mut self, client: &mut Client) -> Result<(), String> {
        let found = self.read(client).map_err(|error| format!("reading back: {error}"))?;
        let mut model = self.model.clone();
        for number in self.acknowledged..=self.sent {
            if model == found {
                self.model = model;
                self.acknowledged = number;
                self.sent = number;
                return Ok(());
            }
            model.apply(self.number, &Operation::nth(self.seed, self.number, number));
        }
        Err(self.differences(&found))
    }

    /// As [`Lane::check`], but for the gate `none`, which may lose the most recent acknowledged
    /// operations.
    ///
    /// # Errors
    /// What differs.
    pub fn check_prefix(&mut self, before: &LaneMark, client: &mut Client) -> Result<(), String> {
        self.acknowledged = before.acknowledged;
        self.model = before.model.clone();
        self.check(client)
    }

    /// The lane's present state.
    pub fn mark(&self) -> LaneMark {
        LaneMark { acknowledged: self.acknowledged, model: self.model.clone() }
    }

    fn read(&self, client: &mut Client) -> io::Result<LaneData> {
        let mut bytes = Vec::new();
        let name = |key: &str| format!("lane{}:{key}", self.number);
        for key in operation::keys() {
            let name = name(key);
            match key {
                key if SETS.contains(&key) => write_request(&mut bytes, &["SMEMBERS", &name]),
                key if LISTS.contains(&key) => {
                    write_request(&mut bytes, &["LRANGE", &name, "0", "-1"]);
                }
                key if HASHES.contains(&key) => write_request(&mut bytes, &["HGETALL", &name]),
                key if SORTED_SETS.contains(&key) => {
                    write_request(&mut bytes, &["ZRANGE", &name, "0", "-1", "WITHSCORES"]);
                }
                _ => write_request(&mut bytes, &["GET", &name]),
            }
            write_request(&mut bytes, &["EXPIRETIME", &name]);
        }
        client.send(&bytes)?;
        let mut model = LaneData::default();
        for key in operation::keys() {
            let (value, expire_at) = (client.reply()?, client.reply()?);
            let Some(held) = held(key, value)? else { continue };
            let Value::Integer(expire_at) = expire_at else {
                return Err(io::Error::other(format!("{key}: EXPIRETIME says {expire_at:?}")));
            };
            let name = operation::full_name(self.number, key);
            if let Ok(expire_at @ 1..) = u64::try_from(expire_at) {
                model.expire_at.insert(name.clone(), expire_at);
            }
            model.values.insert(name, held);
        }
        Ok(model)
    }

    fn wrong(&self, operation: &Operation, wanted: &dyn std::fmt::Debug, got: &Value) -> String {
        let number = self.acknowledged;
        let text = format!("lane {}, operation {number}, {operation:?}", self.number);
        format!("{text}: wanted {wanted:?}, got {got:?}")
    }

    /// The keys that differ from the state after what was acknowledged.
    fn differences(&self, found: &LaneData) -> String {
        let mut text = format!(
            "lane {}: no number of operations from {} (acknowledged) to {} (sent) leads here:",
            self.number, self.acknowledged, self.sent
        );
        for key in operation::keys() {
            let name = operation::full_name(self.number, key);
            let entry = |model: &LaneData| {
                let expire_at = model.expire_at.get(&name).copied();
                Some((model.values.get(&name)?.clone(), expire_at.unwrap_or(0)))
            };
            let (wanted, got) = (entry(&self.model), entry(found));
            if wanted != got {
                let (wanted, got) = (show(wanted.as_ref()), show(got.as_ref()));
                text += &format!("\n  {key}: acknowledged {wanted}, found {got}");
            }
        }
        text
    }
}

/// A lane's state at some time.
#[derive(Clone)]
pub struct LaneMark {
    acknowledged: u64,
    model: LaneData,
}

/// What a lane's key holds by the reply that shows its value; nothing if it is not there.
fn held(key: &str, value: Value) -> io::Result<Option<Datum>> {
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Array(members) if members.is_empty() => return Ok(None),
        Value::Bulk(text) => Datum::Text(text),
        Value::Array(elements) if LISTS.contains(&key) => {
            Datum::List(elements.iter().map(bytes).collect::<Result<_, _>>()?)
        }
        Value::Array(flat) if HASHES.contains(&key) => Datum::Hash(pairs(&flat, |value| {
            Ok((bytes(value)?, 0)) // Fields do not expire here.
        })?),
        Value::Array(flat) if SORTED_SETS.contains(&key) => Datum::Sorted(pairs(&flat, score)?),
        Value::Array(members) => {
            // Nor do members.
            let member = |value| Ok((bytes(value)?, 0));
            Datum::Set(members.iter().map(member).collect::<io::Result<_>>()?)
        }
        other => return Err(io::Error::other(format!("{key}: {other:?}"))),
    }))
}

fn bytes(value: &Value) -> io::Result<Vec<u8>> {
    let bytes = value.as_bytes().map(<[u8]>::to_vec);
    bytes.ok_or_else(|| io::Error::other(format!("{value:?} is no string")))
}

fn score(value: &Value) -> io::Result<i64> {
    let text = value.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok());
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("{value:?} is no whole number")))
}

/// Distinct fields or members with their values.
fn pairs<T>(
    flat: &[Value],
    read: impl Fn(&Value) -> io::Result<T>,
) -> io::Result<BTreeMap<Vec<u8>, T>> {
    let mut pairs = BTreeMap::new();
    for pair in flat.chunks(2) {
        let [key, value] = pair else { return Err(io::Error::other(format!("{flat:?}: odd"))) };
        if pairs.insert(bytes(key)?, read(value)?).is_some() {
            return Err(io::Error::other(format!("{key:?} is there twice")));
        }
    }
    Ok(pairs)
}

/// A connection that a dying server broke is the purpose; garbage or silence is not.
pub(crate) fn broken(error: io::Error) -> Result<(), String> {
    use io::ErrorKind::{InvalidData, TimedOut, WouldBlock};
    match error.kind() {
        InvalidData | TimedOut | WouldBlock => Err(format!("reading a reply: {error}")),
        _ => Ok(()),
    }
}

fn show(entry: Option<&(Datum, u64)>) -> String {
    let Some((datum, at)) = entry else { return "nothing".to_owned() };
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (what, items): (&str, Vec<String>) = match datum {
        Datum::Text(bytes) => ("bytes", vec![text(&bytes[..bytes.len().min(60)].to_vec())]),
        Datum::List(list) => ("elements", list.iter().map(text).collect()),
        Datum::Set(set) => ("members", set.keys().map(text).collect()),
        Datum::Hash(fields) => {
            let fields = fields.iter();
            ("pairs", fields.map(|(field, (value, _))| text(field) + " " + &text(value)).collect())
        }
        Datum::Sorted(scores) => {
            let scores = scores.iter();
            ("pairs", scores.map(|(member, score)| format!("{} {score}", text(member))).collect())
        }
        Datum::Stream(stream) => {
            ("entries", stream.entries.keys().map(|id| format!("{id:?}")).collect())
        }
    };
    let count = if let Datum::Text(bytes) = datum { bytes.len() } else { items.len() };
    let mut shown = format!("until {at} {count} {what}: {}", items.join(", "));
    let end = shown.floor_char_boundary(400);
    shown.truncate(end);
    shown
}
