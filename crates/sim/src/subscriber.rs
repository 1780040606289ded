//! Subscribers: what they see, and what it promises.
//!
//! Clients publish messages unlike any other, alone and in transactions, and change keys, of which
//! the node notifies. Subscribers begin to listen at any time. All have to see one order on each
//! channel, and each message whose sender began after the subscription was acknowledged. No crash
//! may take back a transaction whose message somebody has got.

use crate::history::Operation;
use crate::oracle_commands::Call;
use crate::scripts;
use ladon_net::ConnId;
use ladon_resp::client::{Decoder, Value, write_request};
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

const CHANNELS: [&str; 2] = ["c0", "c1"];

/// All events of the data.
const EVENTS: &str = "__keyspace@0__:*";

/// The oracle's placeholder for the number of receivers.
pub(crate) fn published() -> Value {
    Value::Simple(b"published".to_vec())
}

/// A message of this client, alone or out of a script.
pub(crate) fn publish(random: &mut Random, client: u64, serial: &mut u64, in_script: bool) -> Call {
    *serial += 1;
    let channel = CHANNELS[random.below(2) as usize];
    let payload = format!("{client}:{serial}");
    if in_script {
        return scripts::publish(random, channel, &payload);
    }
    ["PUBLISH", channel, &payload].map(|word| word.as_bytes().to_vec()).to_vec()
}

pub(crate) fn is_publication(call: &Call, payload: &[u8]) -> bool {
    publication(call).is_some_and(|(_, published)| published == payload)
}

/// The channel and the message that a call publishes.
pub(crate) fn publication(call: &Call) -> Option<(&[u8], &[u8])> {
    match call[0].as_slice() {
        b"PUBLISH" => Some((&call[1], &call[2])),
        _ => scripts::publication(call),
    }
}

/// One subscriber's connection.
pub(crate) struct Subscriber {
    pub(crate) conn: ConnId,
    pub(crate) worker: usize,
    input: Vec<u8>,
    decoder: Decoder,
    /// How much it has asked for.
    asked: usize,
    /// When subscriptions were acknowledged, in steps.
    since: BTreeMap<Vec<u8>, u64>,
    /// Messages by channel, in the order in which they came.
    seen: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl Subscriber {
    pub(crate) fn new(conn: ConnId, worker: usize) -> Subscriber {
        let (since, seen) = (BTreeMap::new(), BTreeMap::new());
        Subscriber {
            conn,
            worker,
            input: Vec::new(),
            decoder: Decoder::default(),
            asked: 0,
            since,
            seen,
        }
    }

    /// The next request, if it does not have all yet: the strictest gate, where there is a choice,
    /// then its subscriptions.
    pub(crate) fn ask(&mut self, has_own_gate: bool) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.asked == 0 && has_own_gate {
            write_request(&mut bytes, &["CLIENT", "GATE", "fsync"]);
        }
        match self.asked {
            at @ 0..2 => write_request(&mut bytes, &["SUBSCRIBE", CHANNELS[at]]),
            2 => write_request(&mut bytes, &["PSUBSCRIBE", EVENTS]),
            _ => return None,
        }
        self.asked += 1;
        Some(bytes)
    }

    /// Takes in what came; returns the published messages among it.
    pub(crate) fn receive(&mut self, bytes: &[u8], step: u64) -> Result<Vec<Vec<u8>>, String> {
        self.input.extend_from_slice(bytes);
        let mut published = Vec::new();
        loop {
            let decoded = self.decoder.decode(&self.input);
            let decoded = decoded.map_err(|error| format!("a message that is none: {error}"))?;
            self.input.drain(..decoded.consumed);
            let Some(value) = decoded.value else { return Ok(published) };
            let Value::Array(parts) = &value else { continue };
            let parts: Vec<&[u8]> = parts.iter().map(|it| it.as_bytes().unwrap_or(b"")).collect();
            match parts[..] {
                [b"subscribe" | b"psubscribe", name, _] => {
                    self.since.insert(name.to_vec(), step);
                }
                [b"message", channel, payload] => {
                    published.push(payload.to_vec());
                    self.seen.entry(channel.to_vec()).or_default().push(payload.to_vec());
                }
                [b"pmessage", _, channel, event] => {
                    self.seen.entry(channel.to_vec()).or_default().push(event.to_vec());
                }
                _ => return Err(format!("a subscriber got {value:?}")),
            }
        }
    }

    fn messages(&self, channel: &[u8]) -> &[Vec<u8>] {
        self.seen.get(channel).map_or(&[], Vec::as_slice)
    }
}

/// What is wrong with what they have seen, if anything. `is_all`: everything has arrived.
pub(crate) fn trouble(
    subscribers: &[Subscriber],
    history: &[Operation],
    is_all: bool,
) -> Option<String> {
    for (at, one) in subscribers.iter().enumerate() {
        for other in &subscribers[..at] {
            for channel in CHANNELS {
                let (seen, seen_there) =
                    (one.messages(channel.as_bytes()), other.messages(channel.as_bytes()));
                if let Some(what) = disagree(seen, seen_there) {
                    return Some(format!("subscribers of {channel} disagree: {what}"));
                }
            }
            if is_all && let Some(what) = events_disagree(one, other) {
                return Some(what);
            }
        }
        if is_all && let Some(what) = missed(one, history) {
            return Some(what);
        }
    }
    None
}

/// Messages that are unlike any other: none twice, and those that both saw in one order.
fn disagree(one: &[Vec<u8>], other: &[Vec<u8>]) -> Option<String> {
    let sets = [one, other].map(|seen| seen.iter().collect::<BTreeSet<_>>());
    if sets[0].len() != one.len() || sets[1].len() != other.len() {
        return Some(format!("a message came twice: {one:?}, {other:?}"));
    }
    let common = |seen: &[Vec<u8>], there: &BTreeSet<&Vec<u8>>| {
        seen.iter().filter(|it| there.contains(it)).cloned().collect::<Vec<_>>()
    };
    let (one, other) = (common(one, &sets[1]), common(other, &sets[0]));
    (one != other).then(|| format!("{one:?}, {other:?}"))
}

/// Who began to listen later has seen the end of what the other has.
fn events_disagree(one: &Subscriber, other: &Subscriber) -> Option<String> {
    let is_listening = |it: &Subscriber| it.since.contains_key(EVENTS.as_bytes());
    if !is_listening(one) || !is_listening(other) {
        return None;
    }
    let channels = one.seen.keys().chain(other.seen.keys());
    let mut events = channels.filter(|it| it.starts_with(b"__keyspace"));
    events.find_map(|channel| {
        let (seen, there) = (one.messages(channel), other.messages(channel));
        let agree = seen.ends_with(there) || there.ends_with(seen);
        let channel = channel.escape_ascii();
        (!agree).then(|| format!("events of {channel} disagree: {seen:?}, {there:?}"))
    })
}

/// A message that was sent after an acknowledgement, and did not come.
fn missed(subscriber: &Subscriber, history: &[Operation]) -> Option<String> {
    let answered = |operation: &&Operation| {
        matches!(operation.end, Some((_, Value::Integer(_) | Value::Array(_))))
    };
    for operation in history.iter().filter(answered) {
        for (channel, payload) in operation.calls.iter().filter_map(publication) {
            let since = subscriber.since.get(channel);
            if since.is_some_and(|since| operation.begin > *since)
                && !subscriber.messages(channel).iter().any(|message| message == payload)
            {
                let since = since.copied().unwrap_or(0);
                return Some(format!(
                    "a subscriber since step {since} missed {}",
                    operation.show()
                ));
            }
        }
    }
    None
}
